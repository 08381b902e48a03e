"""Converts any table to events; only this module decides what a user's own columns mean.

A missing column is null, a column outside the envelope is an attribute, and an event without an id gets the hash of its
content. `arrange` is for matching: the engine reads attributes from their columns, and only events with notifications
are converted one by one, for their ids. `conform` is for storing: every event becomes a row of `EVENT_SCHEMA`.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.errors import EventError, check_columns
from tidings.model.event import EVENT_SCHEMA, Event, content_id, to_table

_MARK = "\x02"
# JSON has exact decimals, Python's writer of it has not: they are written as texts with a mark, which is taken off.
_NUMBER = uuid.uuid4().hex
_DECIMAL = re.compile(rf'"{_NUMBER}([-+.0-9E]+)"')


@dataclass(frozen=True, slots=True)
class ArrangedEvents:
    """Events for the engine. Where there is no id, `events` has the number of the row behind `mark`: a filter that
    looks at `id` finds one there, as everywhere, but none that a condition could name."""

    given: pa.Table
    events: pa.Table
    mark: str

    def named(self, notifications: pa.RecordBatch) -> pa.RecordBatch:
        """The engine's notifications, with the ids that `conform` gives to events without one."""
        column = notifications.column("event")
        marked = pc.fill_null(pc.starts_with(column, self.mark), False) if self.mark else pa.array([False])
        if not pc.any(marked).as_py():
            return notifications
        row = pc.utf8_slice_codeunits(column.filter(marked), len(self.mark)).cast(pa.int64())
        rows = row.unique()
        ids = conform(self.given.take(rows)).column("id").take(pc.index_in(row, rows))
        position = notifications.schema.get_field_index("event")
        return notifications.set_column(position, "event", pc.replace_with_mask(column, marked, ids))


def arrange(events: pa.Table | pa.RecordBatch) -> ArrangedEvents:
    """The events with the envelope in its types, and every other column as it is."""
    table = _checked(events)
    # A network needs the source of every event.
    columns = {
        "source": pa.nulls(table.num_rows, pa.string()),
        **dict(zip(table.column_names, table.columns, strict=True)),
    }
    for field in EVENT_SCHEMA:
        if field.name in columns:
            columns[field.name] = _cast(columns[field.name], field)
    ids = columns.get("id", pa.nulls(table.num_rows, pa.string()))
    unnamed, mark = pc.equal(pc.fill_null(ids, ""), ""), ""
    if pc.any(unnamed).as_py():
        mark = _MARK
        while pc.any(pc.starts_with(ids, mark)).as_py():  # a user's own id must not begin with the mark
            mark += _MARK
        rows = pa.array(np.arange(table.num_rows)).cast(pa.string())
        columns["id"] = pc.if_else(unnamed, pc.binary_join_element_wise(mark, rows, ""), ids)
    return ArrangedEvents(table, pa.table(columns), mark)


def conform(events: pa.Table | pa.RecordBatch | Iterable[Event]) -> pa.RecordBatch:
    """The events as one batch of `EVENT_SCHEMA`, the extra columns folded into the JSON text of `attributes`."""
    table = _checked(events if isinstance(events, pa.Table | pa.RecordBatch) else to_table(events))
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


def _checked(events: pa.Table | pa.RecordBatch) -> pa.Table:
    """The events as a table; refuses repeated column names."""
    table = pa.Table.from_batches([events]) if isinstance(events, pa.RecordBatch) else events
    check_columns(table.column_names, "the events have", EventError)
    return table


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if column.type == field.type:
        return column
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
    # Moments and days as texts before they are Python's, which ends with the year 9999.
    columns = {name: _without_moments(extra[name]) for name in extra.column_names}
    texts = []
    rows = pa.table(columns).to_pylist(maps_as_pydicts="lossy")
    for row, text in zip(rows, attributes.to_pylist(), strict=True):
        try:
            merged = {**json.loads(text or "{}"), **{k: v for k, v in row.items() if v is not None}}
        except (ValueError, TypeError):
            texts.append(text)
        else:
            texts.append(_json(merged) if merged else None)
    return pa.array(texts, pa.string())


def _without_moments(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        zone = "UTC" if column.type.tz else None
        written = pc.strftime(column.cast(pa.timestamp("us", zone), safe=False), "%Y-%m-%dT%H:%M:%S")
        return pc.binary_join_element_wise(written, "Z", "") if zone else written
    return column.cast(pa.string()) if pa.types.is_date(column.type) else column


def _json(merged: dict[str, Any]) -> str:
    text = json.dumps(merged, sort_keys=True, default=_plain)
    return _DECIMAL.sub(r"\1", text) if _NUMBER in text else text


def _plain(value: Any) -> str:
    if isinstance(value, Decimal):
        return f"{_NUMBER}{value}"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def event_keys(sources: pa.Array | pa.ChunkedArray, ids: pa.Array | pa.ChunkedArray) -> Any:
    """Source and id of each event joined as one text. Two pairs may give the same text; the mailbox tells them apart."""
    return pc.binary_join_element_wise(sources, ids, "\0", null_handling="replace", null_replacement="")
