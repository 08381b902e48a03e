"""Reads JSON lines into a table of events, without a Python object for each: every member is an attribute.

Members named id, source, type and time also belong to the envelope. The id of an event without one is the number of its
line, counted from 1 over the lines that are not blank.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.formats.kernels.json import NUMBER, TEXT, PathTable, lines, read_objects

_ENVELOPE = ("id", "source", "type", "time")


@cache
def _names() -> PathTable:
    return PathTable.build(_ENVELOPE)


def read_lines(data: bytes) -> pa.Table:
    """The events of an NDJSON document; a line that is no JSON object is an error when it is matched."""
    start, stop = lines(data)
    # Each up to the beginning of the next: what lies between is blank.
    where = np.append(start, len(data) if len(start) else 0).astype(np.int64)
    attributes = pa.Array.from_buffers(
        pa.large_string(), len(start), [None, pa.py_buffer(where), pa.py_buffer(data)]
    )
    columns: dict[str, pa.Array] = {"attributes": attributes, **_envelope(data, start, stop)}
    numbers = pa.array(np.arange(1, len(start) + 1)).cast(pa.string())
    given = columns.get("id", pa.nulls(len(start), pa.string()))
    columns["id"] = pc.if_else(pc.equal(pc.fill_null(given, ""), ""), numbers, given)
    return pa.table(columns)


def _envelope(data: bytes, start: np.ndarray, stop: np.ndarray) -> dict[str, pa.Array]:
    """The members of the envelope that some object has, as columns of texts."""
    found = read_objects(np.frombuffer(data, dtype=np.uint8), start, stop, _names())
    event = np.repeat(np.arange(len(start)), np.diff(found.first))
    blob = found.blob.tobytes() if len(found.blob) != len(data) else data
    columns = {}
    for number in np.unique(found.path).tolist():
        mine = np.flatnonzero((found.path == number) & ((found.kind == TEXT) | (found.kind == NUMBER)))
        texts: list[str | None] = [None] * len(start)
        spans = zip(event[mine].tolist(), found.low[mine].tolist(), found.high[mine].tolist(), strict=True)
        for row, low, high in spans:
            texts[row] = blob[low:high].decode(errors="replace")
        columns[_ENVELOPE[number]] = pa.array(texts, pa.string())
    return columns
