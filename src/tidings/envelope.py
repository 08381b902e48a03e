"""Events from any table as rows of `EVENT_SCHEMA`: what a user's own columns mean is decided here and only here.

A column that is missing is null, a column outside the envelope is an attribute, and an event without an id gets the
hash of its content.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidings.errors import EventError
from tidings.event import EVENT_SCHEMA, Event, content_id, to_table


def conform(events: pa.Table | pa.RecordBatch | Iterable[Event]) -> pa.RecordBatch:
    """The events as one batch of `EVENT_SCHEMA`, the extra columns folded into the JSON text of `attributes`."""
    if isinstance(events, pa.RecordBatch):
        table = pa.Table.from_batches([events])
    else:
        table = events if isinstance(events, pa.Table) else to_table(events)
    given = set(table.column_names)
    columns = {
        field.name: _cast(table[field.name], field)
        if field.name in given
        else pa.nulls(table.num_rows, field.type)
        for field in EVENT_SCHEMA
    }
    if extra := [name for name in table.column_names if name not in columns]:
        columns["attributes"] = _fold(table.select(extra), columns["attributes"])
    if pc.any(pc.equal(pc.fill_null(columns["id"], ""), "")).as_py():
        parts = (columns[name].to_pylist() for name in ("id", "datacontenttype", "data", "attributes"))
        ids = [
            id or content_id(kind or "", data or b"", text)
            for id, kind, data, text in zip(*parts, strict=True)
        ]
        columns["id"] = pa.array(ids, pa.string())
    batches = pa.table(columns, schema=EVENT_SCHEMA).combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], EVENT_SCHEMA)


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    try:
        if pa.types.is_timestamp(column.type):
            return pc.strftime(column.cast(pa.timestamp("us", "UTC")), "%Y-%m-%dT%H:%M:%SZ")
        return column.cast(field.type)
    except pa.ArrowException:
        raise EventError(
            f"the events' column {field.name!r} is {column.type}; it must be {field.type}"
        ) from None


def _fold(extra: pa.Table, attributes: pa.ChunkedArray) -> pa.Array:
    """The extra columns into the JSON text; a text that is no JSON object stays, for the engine to report."""
    texts = []
    for row, text in zip(extra.to_pylist(), attributes.to_pylist(), strict=True):
        try:
            merged = {**json.loads(text or "{}"), **{k: v for k, v in row.items() if v is not None}}
        except (ValueError, TypeError):
            texts.append(text)
        else:
            texts.append(json.dumps(merged, sort_keys=True, default=_plain) if merged else None)
    return pa.array(texts, pa.string())


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
