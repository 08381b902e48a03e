"""Events in Arrow columns -> occurrences of the paths that filters name, without a Python object for each event.

The column `attributes` holds JSON objects, read by a compiled loop. Any other column is an attribute of its name:
numbers and dates are taken by their text, structs are dicts, lists stand for their elements. Null is not there. Only
columns that some filter names are looked at. Columns of other types, such as maps, go through Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types

from tidings.formats.kernels.json import (
    DICT,
    FALSE,
    LIST,
    NUMBER,
    TEXT,
    TRUE,
    Occurrences,
    PathTable,
    occurrences_of,
    read_objects,
)
from tidings.kinds.filters.kernels.ranking import interleave
from tidings.model.batch import CONTENT, ENVELOPE, JSON


@dataclass(frozen=True, slots=True)
class Wanted:
    """The paths that filters name: as a table for the loops, by name, and all their beginnings."""

    table: PathTable
    numbers: dict[str, int]
    beginnings: frozenset[str]

    @classmethod
    def of(cls, table: PathTable, paths: Sequence[str]) -> Wanted:
        parts = [path.split(".") for path in paths]
        beginnings = {".".join(names[: i + 1]) for names in parts for i in range(len(names))}
        return cls(table, {path: i for i, path in enumerate(paths)}, frozenset(beginnings))


def read_events(events: pa.Table, wanted: Wanted) -> Occurrences:
    """What stands at the wanted paths in each event; events that cannot be read are in its errors."""
    count = events.num_rows
    sources: list[Occurrences] = []
    for name in events.column_names:
        if name == JSON:
            sources.append(_json(events[name], wanted))
        elif name != CONTENT and name in wanted.beginnings:
            column = _whole(events[name])
            if name in ENVELOPE:
                column = _without_blanks(column)
            sources += _column(column, np.arange(count, dtype=np.int64), count, name, wanted)
    if len(sources) == 1:
        return sources[0]
    return _merged(sources, count)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece; it is copied only if it has several."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _without_blanks(column: pa.Array) -> pa.Array:
    """An envelope's empty text says that there is none."""
    if not types.is_string(column.type):
        return column
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)


def _json(column: pa.ChunkedArray, wanted: Wanted) -> Occurrences:
    array = _whole(column)
    if not (types.is_string(array.type) or types.is_large_string(array.type)):
        return occurrences_of(array.to_pylist(), wanted.table)
    start, stop, blob = _spans(array)
    return read_objects(blob, start, stop, wanted.table)


def _spans(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each text of a string column lies in its bytes; one that is null is empty."""
    offset_type = np.int64 if types.is_large_string(array.type) else np.int32
    _, offsets, data = array.buffers()
    where = np.frombuffer(offsets, offset_type)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    blob = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    blob.flags.writeable = False  # one type for the compiled loops
    start, stop = where[:-1], where[1:]
    if array.null_count:
        stop = np.where(array.is_valid().to_numpy(zero_copy_only=False), stop, start)
    return start, stop, blob


def _column(
    column: pa.Array, event: np.ndarray, count: int, path: str, wanted: Wanted
) -> Iterator[Occurrences]:
    """The occurrences at `path` and below: value i of the column belongs to event[i]."""
    if types.is_string_view(column.type):
        column = column.cast(pa.string())
    if column.null_count:
        valid = column.is_valid()
        event = event[valid.to_numpy(zero_copy_only=False)]
        column = column.filter(valid)
    kind, number = column.type, wanted.numbers.get(path, -1)
    if types.is_dictionary(kind):
        yield from _column(column.dictionary_decode(), event, count, path, wanted)
    elif types.is_struct(kind):
        if number >= 0:
            yield _alike(event, count, number, DICT)
        for i in range(kind.num_fields):
            inner = f"{path}.{kind.field(i).name}"
            if inner in wanted.beginnings:
                yield from _column(pc.struct_field(column, i), event, count, inner, wanted)
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        if number >= 0:
            yield _alike(event, count, number, LIST)
        parents = pc.list_parent_indices(column).to_numpy()
        yield from _column(pc.list_flatten(column), event[parents], count, path, wanted)
    elif types.is_boolean(kind):
        if number >= 0:
            values = column.to_numpy(zero_copy_only=False)
            yield _alike(event, count, number, np.where(values, TRUE, FALSE).astype(np.int8))
    elif (texts := _texts(column)) is not None:
        if number >= 0:
            is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
            yield _alike(event, count, number, NUMBER if is_number else TEXT, _spans(texts))
    elif not types.is_null(kind):
        # Each under its path, so that what is in a map or a union is found by name.
        values = column.to_pylist()
        documents = [{path: dict(value) if types.is_map(kind) else value} for value in values]
        found = occurrences_of(documents, wanted.table)
        owner = np.repeat(event, np.diff(found.first))
        first = np.searchsorted(owner, np.arange(count + 1))
        yield Occurrences(first, found.path, found.kind, found.low, found.high, found.blob, {})


def _texts(column: pa.Array) -> pa.Array | None:
    """A column of scalars by their texts, if its type has such."""
    kind = column.type
    if types.is_string(kind) or types.is_large_string(kind):
        return column
    if types.is_timestamp(kind):
        zone = "Z" if kind.tz else ""
        in_utc = column.cast(pa.timestamp("us", "UTC" if kind.tz else None), safe=False)
        texts = pc.strftime(in_utc, f"%Y-%m-%dT%H:%M:%S{zone}")
        return pc.replace_substring(texts, ".000000", "")  # as Python writes it
    if types.is_float16(kind) or types.is_float32(kind):
        column = column.cast(pa.float64())  # the number it is, not the shortest text that is rounded to it
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_date(kind):
        return column.cast(pa.string())
    return None


def _alike(
    event: np.ndarray,
    count: int,
    path: int,
    kind: int | np.ndarray,
    spans: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
) -> Occurrences:
    """One occurrence of a path for each entry of `event`, which ascends; `spans` are their texts."""
    size = len(event)
    nothing = np.zeros(size, dtype=np.int64)
    low, high, blob = spans or (nothing, nothing, np.zeros(0, dtype=np.uint8))
    return Occurrences(
        first=np.searchsorted(event, np.arange(count + 1)),
        path=np.full(size, path, dtype=np.int32),
        kind=kind if isinstance(kind, np.ndarray) else np.full(size, kind, dtype=np.int8),
        low=low,
        high=high,
        blob=blob,
        errors={},
    )


def _merged(sources: list[Occurrences], count: int) -> Occurrences:
    """The occurrences of all sources, event by event."""
    if not sources:
        return occurrences_of([None] * count, PathTable.build([]))
    occurrences_before = np.cumsum([0, *(len(source.path) for source in sources)])
    bytes_before = np.cumsum([0, *(len(source.blob) for source in sources)])
    firsts = np.stack(
        [source.first + at for source, at in zip(sources, occurrences_before, strict=False)]
    ).astype(np.int64)
    path = np.concatenate([source.path for source in sources])
    kind = np.concatenate([source.kind for source in sources])
    low, high = (
        np.concatenate([getattr(s, name) + at for s, at in zip(sources, bytes_before, strict=False)])
        for name in ("low", "high")
    )
    first, order = np.zeros(count + 1, dtype=np.int64), np.empty(len(path), dtype=np.int64)
    interleave(firsts, first, order)
    errors = {row: text for source in sources for row, text in source.errors.items()}
    blob = np.concatenate([source.blob for source in sources])
    blob.flags.writeable = False
    return Occurrences(first, path[order], kind[order], low[order], high[order], blob, errors)
