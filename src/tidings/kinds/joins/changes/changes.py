"""Changes of tables, in columns: which event inserts, updates or deletes which row of which table.

`read_changes` finds them in a batch of events and keeps their order; `changes_of` takes rows that are in columns
already. An error is reported for its event alone and affects no other. Arrow reads many rows at once; rows that it may
read wrongly are read one by one by `Table.read`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types

from tidings.errors import EventError
from tidings.kinds.joins.changes.change_texts import (
    DEBEZIUM,
    DELETE,
    INSERT,
    NO_CHANGE,
    OPERATIONS,
    SNAPSHOT,
    TRUNCATE,
    UNKNOWN,
    UPDATE,
    ChangeHeaders,
    codes_of,
    read_headers,
)
from tidings.kinds.joins.changes.reading import ChangeReader
from tidings.kinds.joins.changes.row_images import RowImages
from tidings.kinds.joins.changes.row_sources import ColumnRows, TextRows, whole
from tidings.kinds.joins.changes.sequences import NONE
from tidings.kinds.joins.schema.table import Table

__all__ = ["DELETE", "INSERT", "TRUNCATE", "UPDATE", "Changes", "changes_of", "read_changes"]


@dataclass(frozen=True, slots=True)
class Changes:
    """One entry for each change, in the order of the events.

    `new` and `old` are rows of `images[table]`, -1 for none: an insert has a new one, a delete an old one, an update
    a new one and, where it was given, the old. A truncate has neither: all rows of the table are deleted.
    """

    event: np.ndarray  # int64: the row in the batch of events
    table: np.ndarray  # int16: the position in the list of tables
    op: np.ndarray  # int8: INSERT, UPDATE, DELETE, TRUNCATE
    new: np.ndarray  # int32
    old: np.ndarray  # int32
    source: pa.Array  # string: whose sequence it is
    sequence: np.ndarray  # int64, sequences.NONE where there is none
    ties: np.ndarray  # bool: the same sequence may come again
    images: list[RowImages]
    errors: dict[int, str] = field(default_factory=dict)  # event row -> what is wrong with it
    snapshots: list[tuple[int, str]] = field(default_factory=list)  # event row, subscription

    def __len__(self) -> int:
        return len(self.event)

    @staticmethod
    def concat(parts: Sequence[Changes]) -> Changes:
        """The changes of consecutive batches over the same tables; events are numbered on."""
        if len(parts) == 1:
            return parts[0]
        table_numbers = range(len(parts[0].images))
        before = [np.cumsum([0, *(len(part.images[number]) for part in parts)]) for number in table_numbers]
        last = [
            int(max([-1, *part.event[-1:].tolist(), *part.errors, *(row for row, _ in part.snapshots)]))
            for part in parts
        ]
        start = np.cumsum([0, *(count + 1 for count in last)])
        images = [
            RowImages(
                [
                    pa.concat_arrays(column)
                    for column in zip(*(part.images[number].columns for part in parts), strict=True)
                ],
                pa.concat_arrays([part.images[number].texts for part in parts]),
                np.concatenate([part.images[number].partial for part in parts]),
            )
            for number in table_numbers
        ]

        def moved(number: int, rows: np.ndarray) -> np.ndarray:
            shift = np.array([counts[number] for counts in before], dtype=np.int32)
            return np.where(rows < 0, -1, rows + shift[parts[number].table]).astype(np.int32)

        def joined(name: str) -> np.ndarray:
            return np.concatenate([getattr(part, name) for part in parts])

        return Changes(
            event=np.concatenate([part.event + at for part, at in zip(parts, start, strict=False)]),
            table=joined("table"),
            op=joined("op"),
            new=np.concatenate([moved(i, part.new) for i, part in enumerate(parts)]),
            old=np.concatenate([moved(i, part.old) for i, part in enumerate(parts)]),
            source=pa.concat_arrays([part.source for part in parts]),
            sequence=joined("sequence"),
            ties=joined("ties"),
            images=images,
            errors={
                int(row + at): error
                for part, at in zip(parts, start, strict=False)
                for row, error in part.errors.items()
            },
            snapshots=[
                (int(row + at), id)
                for part, at in zip(parts, start, strict=False)
                for row, id in part.snapshots
            ],
        )


def changes_of(
    tables: Sequence[Table],
    table: str | Table,
    rows: pa.Table | pa.RecordBatch,
    op: int = INSERT,
    before: pa.Table | pa.RecordBatch | None = None,
    *,
    source: str = "",
    sequence: np.ndarray | None = None,
) -> Changes:
    """The same change to each row of `rows`, whose columns are the table's; `before` has the rows as they were.

    Each row counts as an event. A column of a wrong type is an error of each of its rows.
    """
    count = rows.num_rows
    name = table if isinstance(table, str) else table.name
    if op not in (INSERT, UPDATE, DELETE):
        raise EventError(f"the change of rows is {op!r}; give INSERT, UPDATE or DELETE")
    if before is not None and before.num_rows != count:
        raise EventError(f"{count} rows and {before.num_rows} before them; give one for each")
    reader = ChangeReader(count, tables)
    headers = ChangeHeaders.empty(count)
    headers.op[:], headers.table = op, pa.array([name]).take(pa.array(np.zeros(count, dtype=np.int64)))
    headers.sequence[:] = NONE if sequence is None else sequence
    given = pa.array([source]).take(pa.array(np.zeros(count, dtype=np.int64)))
    reader.take(headers, given, ColumnRows(_struct(rows), None if before is None else _struct(before)))
    return _changes(reader)


def read_changes(events: pa.Table, tables: Sequence[Table]) -> Changes:
    """The changes among events: in columns `table`, `op` or `type`, `row`, `before`, `sequence`; in the JSON of the
    column `attributes`; or in that of `data`."""
    count = events.num_rows
    reader = ChangeReader(count, tables)
    source, kind = _texts(events, "source"), _texts(events, "type")
    if "table" in events.column_names:
        headers = _headers_in_columns(events, kind)
        rows = ColumnRows(
            *(whole(events[name]) if name in events.column_names else None for name in ("row", "before"))
        )
        reader.take(headers, source, rows)
    names = frozenset(table.name for table in tables)
    for texts, type_ in ((_json_texts(events), kind), (_json_data(events), None)):
        if texts is not None and (reader.op == NO_CHANGE).any():
            if not reader.is_empty:
                texts = pc.if_else(pa.array(reader.op == NO_CHANGE), texts, None)
            headers = read_headers(texts, type_, names)
            reader.take(headers, source, TextRows(texts))
    return _changes(reader)


def _changes(reader: ChangeReader) -> Changes:
    reader.number_single_rows()
    event = np.flatnonzero(reader.op >= 0)
    return Changes(
        event=event,
        table=reader.table[event],
        op=reader.op[event],
        new=reader.new[event],
        old=reader.old[event],
        source=reader.source.take(pa.array(event)),
        sequence=reader.sequence[event],
        ties=reader.ties[event],
        images=[builder.images() for builder in reader.builders],
        errors=dict(sorted(reader.errors.items())),
        snapshots=reader.snapshots,
    )


def _struct(rows: pa.Table | pa.RecordBatch) -> pa.StructArray:
    columns = [column if isinstance(column, pa.Array) else whole(column) for column in rows.columns]
    return pa.StructArray.from_arrays(columns, rows.schema.names)


def _headers_in_columns(events: pa.Table, kind: pa.Array) -> ChangeHeaders:
    """The headers of changes in the columns `table`, `op` or `type`, `sequence` and `subscription`."""
    headers = ChangeHeaders.empty(events.num_rows)
    headers.table = _texts(events, "table")
    headers.word = pc.coalesce(_texts(events, "op"), kind)
    headers.subscription = _texts(events, "subscription")
    op = codes_of(headers.word, {**DEBEZIUM, **OPERATIONS}, UNKNOWN)
    has_row = np.zeros(events.num_rows, dtype=np.bool_)
    for name in {"row", "before"} & set(events.column_names):
        has_row |= whole(events[name]).is_valid().to_numpy(zero_copy_only=False)
    named = headers.table.is_valid().to_numpy(zero_copy_only=False)
    asks = (op == SNAPSHOT) & headers.subscription.is_valid().to_numpy(zero_copy_only=False)
    mine = (named & ((op >= 0) | ((op == UNKNOWN) & has_row))) | asks
    headers.op[mine] = op[mine]
    if "sequence" in events.column_names:
        _read_sequence(whole(events["sequence"]), headers)
    return headers


def _read_sequence(given: pa.Array, headers: ChangeHeaders) -> None:
    counted = (headers.op >= 0) & given.is_valid().to_numpy(zero_copy_only=False)
    if not counted.any():
        return
    try:
        if not types.is_integer(given.type):
            raise ValueError
        headers.sequence[counted] = given.cast(pa.int64()).filter(pa.array(counted)).to_numpy()
    except ValueError:
        for row in np.flatnonzero(counted).tolist():
            headers.refuse_sequence(row, given[row].as_py())


def _texts(events: pa.Table, name: str) -> pa.Array:
    """A column of texts, null where it is empty; all null if there is no such column."""
    if name not in events.column_names:
        return pa.nulls(events.num_rows, pa.string())
    column = whole(events[name])
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_large_string(column.type) or types.is_string_view(column.type):
        column = column.cast(pa.string())
    if not types.is_string(column.type):
        return pa.nulls(events.num_rows, pa.string())
    return pc.if_else(pc.equal(column, ""), None, column)


def _json_texts(events: pa.Table) -> pa.Array | None:
    """The column `attributes`, if it holds texts."""
    if "attributes" not in events.column_names:
        return None
    column = whole(events["attributes"])
    if types.is_string_view(column.type):
        column = column.cast(pa.string())
    return column if types.is_string(column.type) or types.is_large_string(column.type) else None


def _json_data(events: pa.Table) -> pa.Array | None:
    """The contents that may be Debezium messages; null for all others."""
    if "data" not in events.column_names:
        return None
    data, media_type = whole(events["data"]), pc.fill_null(_texts(events, "datacontenttype"), "json")
    if not (types.is_binary(data.type) or types.is_large_binary(data.type)) or data.null_count == len(data):
        return None
    may_be = pc.and_(pc.match_substring(data, b'"op"'), pc.match_substring(media_type, "json"))
    may_be = pc.and_(may_be, pc.invert(pc.match_substring(media_type, "ld+json")))
    return pc.if_else(may_be, data, None) if pc.any(may_be).as_py() else None
