"""Reads the headers of changes in JSON texts: in our form, in the short form, and in Debezium's.

A compiled loop finds the few members that say whether a text is a change, of which table and from which source, without
Python objects. The rows are read afterwards (row_sources.py), those of one table together. Other texts are skipped.

    {"type": "tidings.insert", "table": "stocks", "row": {...}, "before": {...}, "sequence": 7}
    {"insert": "stocks", "row": {...}}        {"op": "insert", "table": "stocks", "row": {...}}
    {"op": "u", "before": {...}, "after": {...}, "source": {"table": "stocks", "lsn": 7}}, or that as a "payload"
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types

from tidings.formats.kernels.json import DICT, NUMBER, TEXT, TRUE, PathTable, read_objects
from tidings.kinds.joins.changes.sequences import NONE

INSERT, UPDATE, DELETE, TRUNCATE = range(4)
NO_CHANGE, SNAPSHOT, UNKNOWN, IGNORED = -1, -2, -3, -4
OURS, BARE, WRAPPED = range(3)  # where the row is: in `row`, `after` or `payload.after`

_WORDS = {"insert": INSERT, "update": UPDATE, "delete": DELETE, "truncate": TRUNCATE}
OPERATIONS = {
    **_WORDS,
    **{f"tidings.{word}": op for word, op in _WORDS.items()},
    "tidings.snapshot": SNAPSHOT,
}
DEBEZIUM = {"c": INSERT, "r": INSERT, "u": UPDATE, "d": DELETE, "t": TRUNCATE, "m": IGNORED}
_OUR_NAMES = ("type", "op", "table", "sequence", "subscription", "row", "before", *_WORDS)
_THEIR_NAMES = (
    "op",
    *(
        "source." + name
        for name in ("table", "collection", "name", "lsn", "file", "pos", "scn", "ts_ms", "snapshot")
    ),
)
_NAMES = tuple(
    dict.fromkeys([*_OUR_NAMES, *_THEIR_NAMES, *("payload." + n for n in _THEIR_NAMES), "schema", "payload"])
)


@cache
def _paths() -> PathTable:
    return PathTable.build(_NAMES)


@dataclass(slots=True)
class ChangeHeaders:
    """The header of the change in each text, in columns: `op`, or why there is none; `form`, and in `group` the number
    of its schema; the table's name; its sequence, NONE without one; the source that the text itself names."""

    op: np.ndarray
    form: np.ndarray
    group: np.ndarray
    table: pa.Array
    word: pa.Array
    sequence: np.ndarray
    ties: np.ndarray
    source: pa.Array
    subscription: pa.Array
    errors: dict[int, str] = field(default_factory=dict)

    @classmethod
    def empty(cls, count: int) -> ChangeHeaders:
        """Headers of `count` texts, none of which is a change."""
        none = pa.nulls(count, pa.string())
        return cls(
            op=np.full(count, NO_CHANGE, dtype=np.int8),
            form=np.full(count, OURS, dtype=np.int8),
            group=np.zeros(count, dtype=np.int32),
            table=none,
            word=none,
            sequence=np.full(count, NONE, dtype=np.int64),
            ties=np.zeros(count, dtype=np.bool_),
            source=none,
            subscription=none,
        )

    def refuse_sequence(self, row: int, given: object) -> None:
        value_text = "no number" if given is None else repr(given)[:40]
        self.errors[row] = (
            f"the change's sequence is {value_text}; give an integer of at most 18 digits, or leave it out"
        )


class Members:
    """The members of JSON texts that `_NAMES` names, each as a column."""

    def __init__(self, texts: pa.Array) -> None:
        self.start, self.stop, blob = spans(texts)
        found = read_objects(blob, self.start, self.stop, _paths())
        self.count = len(self.start)
        self.errors = found.errors
        self.found = found
        self._event = np.repeat(np.arange(self.count), np.diff(found.first))
        self._kinds: dict[str, np.ndarray] = {}
        self._present = set(np.unique(found.path).tolist())

    def occurrences(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The texts that have the member, and where in `found` its first occurrence is."""
        number = _NAMES.index(name)
        if number not in self._present:
            return _EMPTY, _EMPTY
        mine = np.flatnonzero(self.found.path == number)
        event, first = np.unique(self._event[mine], return_index=True)
        return event, mine[first]

    def kind(self, name: str) -> np.ndarray:
        """The JSON type of the member in each text; -1 where it is absent."""
        if name not in self._kinds:
            kinds = np.full(self.count, -1, dtype=np.int8)
            event, occurrence = self.occurrences(name)
            kinds[event] = self.found.kind[occurrence]
            self._kinds[name] = kinds
        return self._kinds[name]

    def has(self, name: str) -> np.ndarray:
        return self.kind(name) >= 0

    def text(self, name: str, kinds: tuple[int, ...] = (TEXT,)) -> pa.Array:
        """The member as a column of texts, null where it has another type."""
        event, occurrence = self.occurrences(name)
        if len(event):
            kind = self.found.kind[occurrence]
            keep = kind == TEXT if kinds == (TEXT,) else np.isin(kind, kinds)
            event, occurrence = event[keep], occurrence[keep]
        if not len(event):
            return pa.nulls(self.count, pa.string())
        low, size = self.found.low[occurrence], self.found.high[occurrence] - self.found.low[occurrence]
        lengths = np.zeros(self.count + 1, dtype=np.int32)
        lengths[event + 1] = size
        offsets = np.cumsum(lengths, dtype=np.int32)
        where = np.repeat(low - offsets[event], size) + np.arange(int(offsets[-1]))
        valid = np.zeros(self.count, dtype=np.bool_)
        valid[event] = True
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
        data = pa.py_buffer(np.ascontiguousarray(self.found.blob[where]))
        return pa.Array.from_buffers(pa.string(), self.count, [bitmap, pa.py_buffer(offsets), data])

    def integer(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The member as an integer, and whether it is one that 63 bits hold; a text of digits is one too."""
        texts = self.text(name, (TEXT, NUMBER))
        fits = pc.fill_null(pc.match_substring_regex(texts, r"^-?[0-9]{1,18}$"), False)
        values = pc.fill_null(pc.if_else(fits, texts, None).cast(pa.int64()), 0)
        return values.to_numpy(zero_copy_only=False), fits.to_numpy(zero_copy_only=False)


_EMPTY = np.zeros(0, dtype=np.int64)


def spans(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The start and stop of each text in the bytes of its column; a null is empty."""
    wide = types.is_large_string(array.type) or types.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    if offsets is None:
        return np.zeros(len(array), np.int64), np.zeros(len(array), np.int64), np.zeros(0, np.uint8)
    where = np.frombuffer(offsets, np.int64 if wide else np.int32)
    where = where[array.offset : array.offset + len(array) + 1].astype(np.int64)
    blob = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    start, stop = where[:-1], where[1:]
    if array.null_count:
        stop = np.where(array.is_valid().to_numpy(zero_copy_only=False), stop, start)
    return start, stop, blob


def codes_of(words: pa.Array, meaning: dict[str, int], default: int) -> np.ndarray:
    """The code of each word; -1 for null, `default` for an unknown word."""
    encoded = words.dictionary_encode()
    if words.null_count == len(words):
        return np.full(len(words), -1, dtype=np.int64)
    meanings = np.array(
        [meaning.get(word, default) for word in encoded.dictionary.to_pylist()] + [-1], dtype=np.int64
    )
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    return meanings[codes]


def read_headers(texts: pa.Array, kind: pa.Array | None, tables: frozenset[str]) -> ChangeHeaders:
    """Reads the header of each text; `kind` is the type of each event, where the events have one."""
    members = Members(texts)
    word = members.text("type")
    if kind is not None:
        word = pc.if_else(pc.equal(pc.fill_null(kind, ""), ""), word, kind)
    headers = ChangeHeaders.empty(members.count)
    headers.table, headers.word, headers.subscription = (
        members.text("table"),
        word,
        members.text("subscription"),
    )
    ours = pc.fill_null(pc.starts_with(word, "tidings."), False).to_numpy(zero_copy_only=False)
    if ours.any():
        headers.op[ours] = codes_of(word.filter(pa.array(ours)), OPERATIONS, UNKNOWN)
    free = pc.equal(pc.fill_null(word, ""), "").to_numpy(zero_copy_only=False)
    # What cannot be read and has no type may have been a change; but not a document that an event carries.
    may_be = ours if kind is None else ours | free
    headers.errors = {row: error for row, error in members.errors.items() if may_be[row]}
    _short(members, headers, free, tables)
    _by_operation(members, headers, free & (headers.op == NO_CHANGE))
    _sequence(members, headers)
    for form, prefix in ((BARE, ""), (WRAPPED, "payload.")):
        _debezium(members, headers, form, prefix)
    return headers


def _short(members: Members, headers: ChangeHeaders, free: np.ndarray, tables: frozenset[str]) -> None:
    """{"insert": "stocks", "row": {...}}"""
    for name, op in _WORDS.items():
        event, _ = members.occurrences(name)
        if not len(event):
            continue
        named = members.text(name)
        known = codes_of(named, dict.fromkeys(tables, 1), 0) == 1
        mine = free & (members.kind(name) == TEXT) & (known | members.has("row") | members.has("before"))
        for row in np.flatnonzero(mine & (headers.op != NO_CHANGE)).tolist():
            headers.errors[row] = f"the change has another operation beside {name!r}; give one for each line"
        headers.op[mine] = op
        headers.table = pc.if_else(pa.array(mine), named, headers.table)


def _by_operation(members: Members, headers: ChangeHeaders, free: np.ndarray) -> None:
    """{"op": "insert", "table": "stocks", "row": {...}}"""
    mine = free & (members.kind("op") == TEXT) & (members.kind("table") == TEXT)
    mine &= members.has("row") | members.has("before")
    if mine.any():
        words = members.text("op")
        headers.op[mine] = codes_of(words.filter(pa.array(mine)), {**DEBEZIUM, **OPERATIONS}, UNKNOWN)
        headers.word = pc.if_else(pa.array(mine), words, headers.word)


def _sequence(members: Members, headers: ChangeHeaders) -> None:
    given = (headers.op >= 0) & (members.kind("sequence") > 0)  # null is none
    if not given.any():
        return
    values, fits = members.integer("sequence")
    fits &= members.kind("sequence") == NUMBER
    headers.sequence[given & fits] = values[given & fits]
    written = members.text("sequence", (TEXT, NUMBER))
    for row in np.flatnonzero(given & ~fits).tolist():
        headers.refuse_sequence(row, written[row].as_py())


def _debezium(members: Members, headers: ChangeHeaders, form: int, prefix: str) -> None:
    mine = (headers.op == NO_CHANGE) & (members.kind(prefix + "op") == TEXT)
    if not mine.any():
        return
    named = members.text(prefix + "source.table")
    named = pc.coalesce(named, members.text(prefix + "source.collection"))
    mine &= named.is_valid().to_numpy(zero_copy_only=False)
    if not mine.any():
        return
    flags = pa.array(mine)
    words = members.text(prefix + "op")
    headers.op[mine] = codes_of(words.filter(flags), DEBEZIUM, UNKNOWN)
    headers.form[mine] = form
    headers.word = pc.if_else(flags, words, headers.word)
    headers.table = pc.if_else(flags, named, headers.table)
    headers.source = pc.if_else(flags, members.text(prefix + "source.name"), headers.source)
    headers.ties |= mine
    _positions(members, headers, mine, prefix + "source.")
    if form == WRAPPED:
        _schemas(members, headers, mine)


def _positions(members: Members, headers: ChangeHeaders, mine: np.ndarray, prefix: str) -> None:
    """Sets the sequence of a change to its position in the database's log; rows of the initial snapshot have none."""
    snapshot = members.text(prefix + "snapshot")
    copied = pc.fill_null(pc.not_equal(snapshot, "false"), False).to_numpy(zero_copy_only=False)
    open_ = mine & ~copied & (members.kind(prefix + "snapshot") != TRUE)
    position, in_file = members.integer(prefix + "pos")
    file = pc.extract_regex(members.text(prefix + "file"), r"\.(?P<number>[0-9]{1,9})$").field(0)
    in_file &= file.is_valid().to_numpy(zero_copy_only=False)
    number = pc.fill_null(pc.if_else(pa.array(in_file), file, None).cast(pa.int64()), 0)
    by_file = (number.to_numpy(zero_copy_only=False) << 32) + position, in_file & (position < 2**32)
    for values, fits in (
        members.integer(prefix + "lsn"),
        by_file,
        members.integer(prefix + "scn"),
        members.integer(prefix + "ts_ms"),
    ):
        now = open_ & fits
        headers.sequence[now] = values[now]
        open_ &= ~fits


def _schemas(members: Members, headers: ChangeHeaders, mine: np.ndarray) -> None:
    """Numbers the schemas of messages, equal ones alike; messages of group -1 are read one by one."""
    headers.group[mine] = -1
    numbers: dict[bytes, int] = {b"": 0}
    found, blob = members.found, members.found.blob
    payload = dict(zip(*(a.tolist() for a in members.occurrences("payload")), strict=True))
    schema = dict(zip(*(a.tolist() for a in members.occurrences("schema")), strict=True))
    for row in np.flatnonzero(mine).tolist():
        at, of = payload.get(row), schema.get(row)
        if of is None or found.kind[of] != DICT:
            headers.group[row] = 0
            continue
        if at is None:
            continue
        low, end = int(found.low[of]), int(found.low[at])
        if found.high[of] > low and found.high[at] > end:  # not where Python has read it: it keeps no offsets
            text = blob[low : end if end > low else members.stop[row]].tobytes()
            headers.group[row] = numbers.setdefault(text, len(numbers))
