"""Converts a micro-batch to rows of the mailbox's tables, before the writer takes its lock.

The key of an event and the id of a notification are hashes of their contents: they are the same however often it
is recorded, from whatever batch. The id begins with the event's key, by which the notification is found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidings.model.event import EVENT_SCHEMA
from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.service.model import BatchRecord
from tidings.service.store.tables import clean

_ID = re.compile("([0-9a-f]{32})-[0-9a-f]{16}")
# Of one batch; how many there were is in its record.
FAULTS_KEPT = 1_000
_CODES = 1 << 62
_ITEMS = pa.list_(pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string())]))


@dataclass(frozen=True, slots=True)
class MailboxRows:
    """Columns by name, of plain values with clean texts; a column without any value is left out, because a null that is
    written costs as much as a value. No notification is there twice. They are numbered from 1 to `count`, and come in the
    order of their subscriptions: so they go into neighbouring pages of the index. `first` and `last` of an event are the
    smallest and the largest number of its notifications."""

    count: int
    notifications: dict[str, Sequence[Any]]
    events: dict[str, Sequence[Any]]
    faults: dict[str, Sequence[Any]]


def event_key(source: str, id: str) -> bytes:
    """A hash of 16 bytes of an event's source and id."""
    encoded = source.encode(errors="surrogatepass")
    return blake2b(
        b"%d:%b%b" % (len(encoded), encoded, id.encode(errors="surrogatepass")), digest_size=16
    ).digest()


def notification_id(
    subscription: str, event: bytes, part: str | None, sequence: int | None, kind: str
) -> str:
    text = f"{subscription}\0{kind}\0{'' if part is None else part}\0{'' if sequence is None else sequence}"
    return f"{event.hex()}-{blake2b(text.encode(errors='surrogatepass'), digest_size=8).hexdigest()}"


def event_of(id: str) -> bytes | None:
    """The key of the event that a notification with this id is of; None for an id of another form."""
    found = _ID.fullmatch(id)
    return None if found is None else bytes.fromhex(found[1])


def mailbox_rows(batch: BatchRecord, notifications: pa.Table, events: pa.Table) -> MailboxRows:
    """The rows of a batch: notifications with their events, and faults for errors that belong to no subscription."""
    given = notifications.select(NOTIFICATION_SCHEMA.names).cast(NOTIFICATION_SCHEMA).combine_chunks()
    lost = given.filter(pc.is_null(given["subscription"])).slice(0, FAULTS_KEPT)
    kept = _each_once(given.filter(pc.is_valid(given["subscription"])) if lost.num_rows else given)
    count = kept.num_rows
    _, first, about = np.unique(_codes(kept, ("source", "event")), return_index=True, return_inverse=True)
    named = kept.select(["source", "event"]).take(pa.array(first))
    pairs = list(zip(_texts(named["source"]), _texts(named["event"]), strict=True))
    keys = [event_key(*pair) for pair in pairs]
    lasts = np.zeros(len(pairs), np.int64)
    lasts[about] = np.arange(1, count + 1)  # of several numbers of an event the last one stays
    spans = zip(keys, (first + 1).tolist(), lasts.tolist(), strict=True)

    order = pc.sort_indices(kept["subscription"]).to_numpy()
    kept = kept.take(pa.array(order))
    columns: dict[str, Sequence[Any] | None] = {
        "number": (order + 1).tolist(),
        "subscription": _clean(kept["subscription"]),
        "kind": _texts(kept["verdict"]),
        "at": [batch.ended] * count,
        "event": [keys[row] for row in about[order].tolist()],
        "bindings": _bindings(kept["bindings"]),
        "part": _clean(kept["part"]),
        "sequence": _values(kept["sequence"]),
        "changes": _changes(kept["changes"]),
        "message": _clean(kept["message"]),
    }
    faults: dict[str, Sequence[Any]] = {
        **{name: _clean(pc.fill_null(lost[name], "")) or [] for name in ("source", "event", "message")},
        "at": [batch.ended] * len(lost),
    }
    described = _events(events, dict(zip(pairs, spans, strict=True)))
    return MailboxRows(count, _filled(columns), _filled(described), faults)


def _each_once(notifications: pa.Table) -> pa.Table:
    """The notifications without those that repeat an earlier row."""
    codes = _codes(notifications, ("subscription", "source", "event", "verdict", "part", "sequence"))
    if len(np.unique(codes)) == len(codes):
        return notifications
    return notifications.take(pa.array(np.sort(np.unique(codes, return_index=True)[1])))


def _codes(table: pa.Table, names: Sequence[str]) -> NDArray[np.int64]:
    """A number for each row, the same for rows that have the same values in these columns."""
    codes, bound = np.zeros(table.num_rows, np.int64), 1
    for name in names:
        encoded = pc.dictionary_encode(table[name].combine_chunks(), null_encoding="encode")
        size = len(encoded.dictionary)
        if bound * size > _CODES:
            found, codes = np.unique(codes, return_inverse=True)
            bound = len(found)
        if size > 1:
            codes, bound = codes * size + encoded.indices.to_numpy(), bound * size
    return codes


def _filled(columns: dict[str, Sequence[Any] | None]) -> dict[str, Sequence[Any]]:
    return {name: values for name, values in columns.items() if values is not None}


def _events(
    events: pa.Table, named: dict[tuple[str, str], tuple[bytes, int, int]]
) -> dict[str, Sequence[Any] | None]:
    """The events that notifications refer to, each once, by source and id with their keys, first and last numbers. One
    that is not given is stored with its name only."""
    given = events.select(EVENT_SCHEMA.names).cast(EVENT_SCHEMA)
    missing, rows, found = dict.fromkeys(named), [], []
    for row, about in enumerate(zip(_texts(given["source"]), _texts(given["id"]), strict=True)):
        if about in missing:
            del missing[about]
            rows.append(row)
            found.append(about)
    kept = given if len(rows) == len(given) else given.take(pa.array(rows, pa.int64()))
    if missing:
        names = [{"source": source, "id": id} for source, id in missing]
        kept = pa.concat_tables([kept, pa.Table.from_pylist(names, EVENT_SCHEMA)])
        found += missing
    columns = {
        name: _values(kept[name]) if name == "data" else _clean(kept[name]) for name in EVENT_SCHEMA.names
    }
    keys, firsts, lasts = zip(*map(named.__getitem__, found), strict=True) if found else ((), (), ())
    return {"key": keys, "first": firsts, "last": lasts, **columns}


def _bindings(column: pa.ChunkedArray) -> list[str | None] | None:
    if not _has_items(column.cast(_ITEMS)):
        return None
    return [json.dumps(dict(value)) if value else None for value in column.to_pylist()]


def _changes(column: pa.ChunkedArray) -> list[str | None] | None:
    if not _has_items(column):
        return None
    return [
        json.dumps([(change["table"], change["change"], change["row"]) for change in value])
        if value
        else None
        for value in column.to_pylist()
    ]


def _has_items(column: pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.greater(pc.list_value_length(column), 0)).as_py())


def _texts(column: pa.ChunkedArray) -> list[str]:
    return pc.fill_null(column, "").to_pylist()


def _values(column: pa.ChunkedArray) -> list[Any] | None:
    return None if column.null_count == len(column) else column.to_pylist()


def _clean(column: pa.ChunkedArray) -> list[Any] | None:
    """The texts of a column without NUL; None if it has no text. Arrow has no lone surrogates."""
    values = _values(column)
    if values is None or not pc.any(pc.match_substring(column, "\0")).as_py():
        return values
    return [None if value is None else clean(value) for value in values]
