"""Reads the changes of a batch of events: an operation and rows for each event.

Rows of one table and form are read together by Arrow; a batch that fails is divided into smaller parts, down to single
rows, so that an error is reported for its event alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.errors import EventError, did_you_mean
from tidings.kinds.joins.changes.change_texts import (
    DELETE,
    IGNORED,
    INSERT,
    NO_CHANGE,
    SNAPSHOT,
    TRUNCATE,
    UNKNOWN,
    UPDATE,
    ChangeHeaders,
    codes_of,
)
from tidings.kinds.joins.changes.row_images import NeedsTableRead, RowImageBuilder, typed
from tidings.kinds.joins.changes.row_sources import RowSource
from tidings.kinds.joins.changes.sequences import NONE
from tidings.kinds.joins.schema.table import Table

_PIECE = 32_768  # rows that are read together at first
_PARTS = 8  # that a batch which failed is divided into
_FEW = 64  # rows that are read one by one: Arrow is no faster with so few
_FAILED = (pa.ArrowException, ValueError, TypeError, OverflowError)


class ChangeReader:
    """Collects the changes of a batch: an entry for each event."""

    def __init__(self, count: int, tables: Sequence[Table]) -> None:
        self.tables = list(tables)
        self.table_numbers = {table.name: table_number for table_number, table in enumerate(tables)}
        self.op = np.full(count, NO_CHANGE, dtype=np.int8)
        self.table = np.full(count, -1, dtype=np.int16)
        self.new = np.full(count, -1, dtype=np.int32)
        self.old = np.full(count, -1, dtype=np.int32)
        self.sequence = np.full(count, NONE, dtype=np.int64)
        self.ties = np.zeros(count, dtype=np.bool_)
        self.source = pa.nulls(count, pa.string())
        self.errors: dict[int, str] = {}
        self.snapshots: list[tuple[int, str]] = []
        self.builders = [RowImageBuilder(table) for table in tables]
        # The array (new or old), the event, the table, and the number among its rows that were read one by one.
        self.singles: list[tuple[np.ndarray, int, int, int]] = []

    @property
    def is_empty(self) -> bool:
        return bool((self.op == NO_CHANGE).all())

    def take(self, headers: ChangeHeaders, source: pa.Array, rows: RowSource) -> None:
        """Adds the changes of events that had none so far, and reads their rows."""
        for row, sentence in headers.errors.items():
            if self.op[row] == NO_CHANGE:
                self._refuse(row, sentence)
        found = (headers.op != NO_CHANGE) & (self.op == NO_CHANGE)
        if not found.any():
            return
        self.op[found] = headers.op[found]
        self.sequence[found] = headers.sequence[found]
        self.ties[found] = headers.ties[found]
        self._add_snapshot_requests(headers, found)
        for row in np.flatnonzero(found & (headers.op == UNKNOWN)).tolist():
            self._refuse(
                row,
                f"the change is {_shown(headers.word[row].as_py())}; give insert, update, delete or truncate",
            )
        wanted = found & (headers.op >= 0)
        self._find_tables(headers, wanted)
        self._name_sources(headers, wanted, source)
        wanted &= (self.table >= 0) & (self.op >= 0)
        events = np.flatnonzero(wanted & (self.op != TRUNCATE))
        keys = (
            (headers.group[events].astype(np.int64) << 24)
            + (headers.form[events].astype(np.int64) << 16)
            + self.table[events]
        )
        for key in np.unique(keys).tolist():
            mine = events[keys == key]
            self._read(
                mine, int(self.table[mine[0]]), rows, int(headers.form[mine[0]]), int(headers.group[mine[0]])
            )

    def number_single_rows(self) -> None:
        """Numbers the rows that were read one by one after all others."""
        for rows, event, table, number in self.singles:
            rows[event] = self.builders[table].count + number

    def _refuse(self, row: int, sentence: str) -> None:
        self.op[row] = IGNORED
        self.errors[row] = sentence

    def _add_snapshot_requests(self, headers: ChangeHeaders, found: np.ndarray) -> None:
        for row in np.flatnonzero(found & (headers.op == SNAPSHOT)).tolist():
            id = headers.subscription[row].as_py()
            if id:
                self.snapshots.append((row, id))
            else:
                self._refuse(
                    row, "a request for a snapshot has no 'subscription'; give the subscription's id"
                )

    def _find_tables(self, headers: ChangeHeaders, wanted: np.ndarray) -> None:
        codes = codes_of(headers.table, self.table_numbers, -2)
        self.table[wanted] = np.maximum(codes, -1)[wanted]
        sentences: dict[str | None, str] = {None: "the change names no table; give its name as 'table'"}
        for row in np.flatnonzero(wanted & (codes < 0)).tolist():
            name = headers.table[row].as_py()
            if name not in sentences:
                advice = did_you_mean(
                    name, self.table_numbers, f"the tables are: {', '.join(self.table_numbers) or 'none'}"
                )
                sentences[name] = f"there is no table {_shown(name)}; {advice}"
            self._refuse(row, sentences[name])

    def _name_sources(self, headers: ChangeHeaders, wanted: np.ndarray, source: pa.Array) -> None:
        """Names the source of each sequence: the event's source; for a database, whose tables arrive independently, one
        source for each table."""
        name = pc.fill_null(source, "")
        if headers.source.null_count < len(headers.source) or headers.ties.any():
            server = pc.if_else(pc.equal(name, ""), pc.fill_null(headers.source, ""), name)
            apart = pc.binary_join_element_wise(server, pc.fill_null(headers.table, ""), ":")
            name = pc.if_else(pa.array(headers.ties), apart, name)
        self.source = name if wanted.all() else pc.if_else(pa.array(wanted), name, self.source)

    def _read(self, events: np.ndarray, table: int, rows: RowSource, form: int, group: int) -> None:
        """Reads the rows of changes of one table, many at once unless that fails."""
        ahead = [events[at : at + _PIECE] for at in range(0, len(events), _PIECE)][::-1]
        while ahead:
            piece = ahead.pop()
            if len(piece) <= _FEW or group < 0:
                for event in piece.tolist():
                    self._read_single(event, table, rows, form)
                continue
            try:
                self._read_many(piece, table, rows, form)
            except _FAILED:
                ahead += np.array_split(piece, _PARTS)[::-1]

    def _read_many(self, events: np.ndarray, table: int, rows: RowSource, form: int) -> None:
        given, before = rows.read_many(events, self.tables[table], form)
        op = self.op[events]
        has_row, has_before = _present(given, len(events)), _present(before, len(events))
        deleted, updated = op == DELETE, op == UPDATE
        needs_before = updated if not self.tables[table].key else np.zeros(len(events), dtype=np.bool_)
        if (
            (~deleted & ~has_row).any()
            or (deleted & ~has_row & ~has_before).any()
            or (needs_before & ~has_before).any()
        ):
            raise NeedsTableRead
        parts = [
            (self.new, given, ~deleted),
            (self.old, before, updated & has_before),
            (self.old, given, deleted & has_row),
            (self.old, before, deleted & ~has_row),
        ]
        ready = [
            (target, mine, self._columns(image, mine, table)) for target, image, mine in parts if mine.any()
        ]
        for target, mine, columns in ready:
            first = self.builders[table].add(columns)
            target[events[mine]] = np.arange(first, first + len(columns[0]), dtype=np.int32)

    def _columns(self, image: pa.StructArray, mine: np.ndarray, table: int) -> list[pa.Array]:
        picked = image if mine.all() else image.filter(pa.array(mine))
        names = [picked.type.field(table_number).name for table_number in range(picked.type.num_fields)]
        return typed(self.tables[table], dict(zip(names, picked.flatten(), strict=True)), len(picked))

    def _read_single(self, event: int, table_number: int, rows: RowSource, form: int) -> None:
        table, op = self.tables[table_number], int(self.op[event])
        try:
            given, before = rows.read_one(event, table, form)
            if op == DELETE:
                given, before = None, before if given is None else given
            if op == INSERT:
                before = None
            if op == DELETE and before is None:
                raise EventError(f"a delete of table '{table.name}' has no row; give the row, or its key")
            if op != DELETE and given is None:
                raise EventError(
                    f"a change of table '{table.name}' has no row; give it as an object of its columns"
                )
            if op == UPDATE and before is None and not table.key:
                raise EventError(
                    f"an update of table '{table.name}', which has no key, needs the row as it was; give it as 'before'"
                )
            read = [
                (target, table.read(_mapping(table, image)))
                for target, image in ((self.new, given), (self.old, before))
                if image is not None
            ]
        except EventError as error:
            self._refuse(event, str(error))
            return
        for target, row in read:
            self.singles.append((target, event, table_number, self.builders[table_number].add_row(row)))


def _mapping(table: Table, image: object) -> dict[str, object]:
    if not isinstance(image, dict):
        raise EventError(
            f"the row of table '{table.name}' is {_shown(image)}; give an object such as {{\"{table.names[0]}\": ...}}"
        )
    return image


def _shown(value: object) -> str:
    return repr(value) if len(repr(value)) <= 60 else repr(value)[:57] + "..."


def _present(image: pa.Array | None, count: int) -> np.ndarray:
    if image is None:
        return np.zeros(count, dtype=np.bool_)
    return image.is_valid().to_numpy(zero_copy_only=False)
