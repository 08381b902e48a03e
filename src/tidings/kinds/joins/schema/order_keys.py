"""Order keys: maps every value of a column to a 64-bit integer, so that keys have the order of the values.

Keys of integers, numbers, booleans, dates and timestamps are exact: equal keys, equal values. The key of a text is
its first eight bytes, so longer texts are compared in full; a lower text never has a higher key. The
lowest 64-bit integer is the key of NULL and of nothing else.
"""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NULL = -(2**63)
LOWEST = NULL + 1
HIGHEST = 2**63 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)

TYPE_OF = {
    int: "integer",
    float: "number",
    str: "text",
    bool: "boolean",
    date: "date",
    datetime: "timestamp",
}
ARROW = {
    "integer": pa.int64(),
    "number": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}


def key_of(kind: str, value: Any) -> int:
    """The key of a value as `Table.read` gives it, in a column of this type."""
    if value is None:
        return NULL
    if kind == "number":
        bits: int = struct.unpack("<q", struct.pack("<d", value + 0.0))[0]  # -0.0 + 0.0 is 0.0
        return bits if bits >= 0 else bits ^ HIGHEST
    if kind == "text":
        start = value[:8].encode()[:8]
        return max(int.from_bytes(start.ljust(8, b"\0"), "big") + NULL, LOWEST)
    if kind == "date":
        return int(value.toordinal()) - _FIRST_DAY
    if kind == "timestamp":
        return int((value - EPOCH) // _MICROSECOND)
    return int(value)


def keys_of(kind: str, array: pa.Array) -> np.ndarray:
    """The keys of a column, NULL where it is null."""
    array = array.cast(ARROW[kind])
    if kind == "text":
        keys = _text_keys(array)
    elif kind == "number":
        bits = (pc.fill_null(array, 0.0).to_numpy(zero_copy_only=False) + 0.0).view(np.int64)
        keys = np.where(bits >= 0, bits, bits ^ HIGHEST)
    elif kind == "boolean":
        keys = pc.fill_null(array, False).to_numpy(zero_copy_only=False).astype(np.int64)
    else:
        whole = array.cast(pa.int32()) if kind == "date" else array
        keys = pc.fill_null(whole.cast(pa.int64()), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if array.null_count:
        keys[array.is_null().to_numpy(zero_copy_only=False)] = NULL
    return keys


def _text_keys(array: pa.Array) -> np.ndarray:
    keys = np.zeros(len(array), np.uint64)
    _, offsets_buffer, data_buffer = array.buffers()
    if not len(array) or data_buffer is None:
        return np.full(len(array), LOWEST, np.int64)
    offsets = np.frombuffer(offsets_buffer, np.int32)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(data_buffer, np.uint8)
    lengths = np.diff(offsets)
    for position in range(8):
        longer = np.flatnonzero(lengths > position)
        keys[longer] |= data[offsets[longer] + position].astype(np.uint64) << np.uint64(56 - 8 * position)
    return np.maximum((keys ^ np.uint64(2**63)).view(np.int64), LOWEST)
