"""Stores the contents of rows as JSON texts in one byte array, which is compacted when half of it belongs to gone rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidings.arrays.growing import Growing
from tidings.kinds.joins.kernels.resizing import gather

_SQUEEZE_FROM = 1 << 20  # bytes


class RowContents:
    """The JSON text of each row, by its number."""

    def __init__(self) -> None:
        self._bytes = Growing(np.uint8)
        self._first, self._length = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._live = 0

    def put(self, rows: np.ndarray, texts: pa.Array) -> None:
        _, offsets, data = texts.cast(pa.large_string()).buffers()
        where = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
        if len(rows) and rows.max() >= len(self._first):
            room = max(int(rows.max()) + 1, 2 * len(self._first))
            for name in ("_first", "_length"):
                old, new = getattr(self, name), np.zeros(room, dtype=np.int64)
                new[: len(old)] = old
                setattr(self, name, new)
        self._first[rows] = len(self._bytes) + where[:-1] - where[0]
        self._length[rows] = np.diff(where)
        if data is not None:
            self._bytes.extend(np.frombuffer(data, dtype=np.uint8)[where[0] : where[-1]])
        self._live += int(where[-1] - where[0])

    def drop(self, rows: np.ndarray) -> None:
        self._live -= int(self._length[rows].sum())
        self._length[rows] = 0
        if len(self._bytes) > max(_SQUEEZE_FROM, 2 * self._live):
            everything = np.arange(len(self._first))
            first, kept = self._copied_texts(everything)
            self._bytes, self._first = Growing(np.uint8, kept), first[:-1].copy()

    def are_equal(self, row_a: int, row_b: int) -> bool:
        """Whether two rows have the same text."""
        a, b = (slice(self._first[row], self._first[row] + self._length[row]) for row in (row_a, row_b))
        return bool(np.array_equal(self._bytes.all[a], self._bytes.all[b]))

    def texts(self, rows: np.ndarray) -> pa.Array:
        """The texts of some rows."""
        first, found = self._copied_texts(rows)
        return pa.Array.from_buffers(
            pa.large_string(), len(rows), [None, pa.py_buffer(first), pa.py_buffer(found)]
        )

    def _copied_texts(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(self._length[rows], out=first[1:])
        found = np.empty(int(first[-1]), dtype=np.uint8)
        gather(self._bytes.all, self._first, rows.astype(np.int64), first, found)
        return first, found
