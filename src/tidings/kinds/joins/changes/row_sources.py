"""Reads the rows of changes from members of JSON texts, or from columns of their own.

Both sources give the new row and the row before it: of many events at once as Arrow structs, or of one event as Python
dicts. Arrow reads JSON with the types that the table declares; an undeclared name or a value of another type fails
`read_many`, never `read_one`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.types as types

from tidings.errors import EventError
from tidings.kinds.joins.changes.change_texts import BARE, OURS, WRAPPED, Members, spans
from tidings.kinds.joins.changes.debezium import Hint, decoded, hints_of, json_types, row_of
from tidings.kinds.joins.changes.row_images import NeedsTableRead
from tidings.kinds.joins.schema.order_keys import ARROW
from tidings.kinds.joins.schema.table import Table

_SAMPLES = 8  # messages whose values show how a connector writes them
_BLANK = b" \t\r\n"

Pair = tuple[pa.StructArray | None, pa.StructArray | None]


class RowSource(Protocol):
    """The row and the row before it, of events whose changes have one form and one table."""

    def read_many(self, events: np.ndarray, table: Table, form: int) -> Pair:
        """The rows of many events; raises `NeedsTableRead` or an Arrow error if some may be wrong."""

    def read_one(self, event: int, table: Table, form: int) -> tuple[Any, Any]:
        """The rows of one event, as they were given."""


class TextRows:
    """Rows in JSON texts; those of Debezium under other names."""

    def __init__(self, texts: pa.Array) -> None:
        self.texts = texts

    def read_many(self, events: np.ndarray, table: Table, form: int) -> Pair:
        picked = self.texts if len(events) == len(self.texts) else self.texts.take(pa.array(events))
        if form == OURS:
            row = pa.struct([(name, _json_type(kind)) for name, kind in table.columns.items()])
            read = _read_json(picked, pa.schema([("row", row), ("before", row)]), "infer")
            if read["row"].type != row or read["before"].type != row:
                raise NeedsTableRead  # a name that the table does not have
            return read["row"], read["before"]
        samples = [json.loads(text) for text in picked[:_SAMPLES].to_pylist()]
        hints = hints_of(samples[0].get("schema")) if form == WRAPPED else {}
        payloads = [message.get("payload") if form == WRAPPED else message for message in samples]
        images = [p.get(side) for p in payloads if isinstance(p, Mapping) for side in ("before", "after")]
        row = json_types(table, images)
        members = [("after", row), ("before", row)]
        if form == BARE:
            read = _read_json(picked, pa.schema(members), "ignore")
            after, before = read["after"], read["before"]
        else:
            payload = _read_json(picked, pa.schema([("payload", pa.struct(members))]), "ignore")["payload"]
            after, before = payload.flatten()
        return _as_declared(table, after, hints), _as_declared(table, before, hints)

    def read_one(self, event: int, table: Table, form: int) -> tuple[Any, Any]:
        try:
            message = json.loads(self.texts[event].as_py())
        except (ValueError, RecursionError) as error:
            raise EventError(f"the change is not valid JSON: {error}; correct it") from None
        if form == OURS:
            return message.get("row"), message.get("before")
        payload, hints = (
            (message, {}) if form == BARE else (message.get("payload"), hints_of(message.get("schema")))
        )
        if not isinstance(payload, Mapping):
            return None, None
        return row_of(table, payload.get("after"), hints), row_of(table, payload.get("before"), hints)


class ColumnRows:
    """Rows in columns of structs, of maps or of JSON texts."""

    def __init__(self, row: pa.Array | None, before: pa.Array | None) -> None:
        self.row, self.before = row, before

    def read_many(self, events: np.ndarray, table: Table, form: int) -> Pair:
        return _structs(self.row, events, table), _structs(self.before, events, table)

    def read_one(self, event: int, table: Table, form: int) -> tuple[Any, Any]:
        return _given(self.row, event, table), _given(self.before, event, table)


def _json_type(kind: str) -> pa.DataType:
    return pa.string() if kind in ("date", "timestamp") else ARROW[kind]


def _read_json(texts: pa.Array, schema: pa.Schema, unexpected: str) -> dict[str, pa.Array]:
    """The members that the schema names, of texts that are JSON objects."""
    start, stop, _ = spans(texts)
    data = texts.buffers()[2].slice(int(start[0]), int(stop[-1] - start[0]))  # a slice shares all bytes
    read = pj.read_json(
        pa.BufferReader(data),
        pj.ReadOptions(use_threads=False, block_size=data.size + 1),
        pj.ParseOptions(
            explicit_schema=schema, newlines_in_values=True, unexpected_field_behavior=unexpected
        ),
    )
    if read.num_rows != len(texts):
        raise NeedsTableRead
    return {name: whole(read[name]) for name in schema.names}


def whole(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _as_declared(table: Table, images: pa.StructArray, hints: Mapping[str, Hint]) -> pa.StructArray:
    columns = decoded(table, dict(zip(table.names, images.flatten(), strict=True)), hints)
    return pa.StructArray.from_arrays(list(columns.values()), list(columns), mask=images.is_null())


def _structs(column: pa.Array | None, events: np.ndarray, table: Table) -> pa.StructArray | None:
    if column is None or types.is_null(column.type):
        return None
    picked = column if len(events) == len(column) else column.take(pa.array(events))
    if types.is_struct(picked.type):
        return picked
    if not (types.is_string(picked.type) or types.is_large_string(picked.type)):
        raise NeedsTableRead
    valid = picked.is_valid().to_numpy(zero_copy_only=False)
    texts = picked if valid.all() else picked.drop_null()
    row = pa.schema([(name, _json_type(kind)) for name, kind in table.columns.items()])
    if not len(texts):
        return pa.nulls(len(picked), pa.struct(list(row)))
    if Members(texts).errors:
        raise NeedsTableRead  # a text that is no object would shift the rows after it
    read = _read_json(texts, row, "error")
    structs = pa.StructArray.from_arrays(list(read.values()), list(read))
    return structs if valid.all() else structs.take(pa.array(np.cumsum(valid) - 1, mask=~valid))


def _given(column: pa.Array | None, event: int, table: Table) -> Any:
    value = None if column is None else column[event].as_py()
    if isinstance(value, str | bytes):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    if column is not None and value is not None and types.is_map(column.type):
        value = dict(value)
    if not isinstance(value, dict):
        return value
    # One struct may serve several tables; what is null in it is not there.
    return {
        name: _plain(member) for name, member in value.items() if member is not None or name in table.columns
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    return value
