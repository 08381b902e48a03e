"""Stores rows in Spark's state, many rows per entry of a MapState, because each entry costs a call.

A call takes 0.15 ms; a megabyte of bytes takes 18 ms to read, but of ASCII text 3 ms, because Spark passes bytes
to Python one by one. So an entry (a shelf) is compressed and written as base64. When shelves grow beyond 32 KB
their number is raised. The column `place` of a row selects its shelf.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64

import numpy as np
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle, ValueState

_FULL = 32 << 10  # characters
_RUN = 8_192  # numbers side by side in one entry
_FIRST = -1  # the entry of what counts start with
_RECORDS = -2  # the entry of the last record of messages
_OPTIONS = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 1))


class Shelves:
    """A table of rows for one grouping key at a time. The first column is `place`, a whole number from 0 on."""

    def __init__(self, handle: StatefulProcessorHandle, name: str, schema: pa.Schema) -> None:
        self._schema = schema
        self._shelves: MapState = handle.getMapState(name, "shelf int", "rows string")
        self._size: ValueState = handle.getValueState(f"{name}_shelves", "count int")

    def take(self, places: np.ndarray | None = None) -> pa.Table:
        """The rows on the shelves of these places, or (None) on all."""
        return self._read(self._which(places))

    def put(self, rows: pa.Table, places: np.ndarray | None = None) -> None:
        """Replaces the rows on the shelves of these places, or on all, with `rows`."""
        count, which = self._count(), self._which(places)
        place = rows["place"].to_numpy()
        shelf = place % count
        order = np.argsort(shelf, kind="stable")
        rows, shelf = rows.take(pa.array(order)), shelf[order]
        first, last = (np.searchsorted(shelf, which, side) for side in ("left", "right"))
        texts = {
            number: pack(rows.slice(a, b - a)) if a < b else ""
            for number, a, b in zip(which.tolist(), first.tolist(), last.tolist(), strict=True)
        }
        mean = sum(map(len, texts.values())) / max(1, len(texts))
        if mean > _FULL and len(np.unique(place)) > len(texts):
            others = self._read(np.setdiff1d(np.arange(count), which))
            self._shelves.clear()
            self._size.update((count * (1 << int(mean / _FULL).bit_length()),))
            self.put(pa.concat_tables([others, rows]))
            return
        for number, text in texts.items():
            if text:
                self._shelves.updateValue((number,), (text,))
            else:
                self._shelves.removeKey((number,))

    def _which(self, places: np.ndarray | None) -> np.ndarray:
        count = self._count()
        return np.arange(count) if places is None else np.unique(places % count)

    def _read(self, which: np.ndarray) -> pa.Table:
        found = [self._shelves.getValue((number,)) for number in which.tolist()]
        return pa.concat_tables(
            [self._schema.empty_table(), *(unpack(value[0]) for value in found if value is not None)]
        )

    def _count(self) -> int:
        found = self._size.get()
        return 1 if found is None else int(found[0])


class Counts:
    """A whole number for each subscription, `first` by default; neighbouring numbers share an entry. With another
    `first` than before, all of them start there."""

    def __init__(self, handle: StatefulProcessorHandle, name: str, first: int = 0) -> None:
        self._runs: MapState = handle.getMapState(name, "run int", "counts string")
        self._first = first

    def _start_anew(self) -> None:
        found = self._runs.getValue((_FIRST,))
        if (0 if found is None else int(found[0])) != self._first:
            self._runs.clear()
            self._runs.updateValue((_FIRST,), (str(self._first),))

    def take(self, numbers: np.ndarray, room: int) -> np.ndarray:
        """An array of `room` counts, valid for these numbers and their neighbours."""
        self._start_anew()
        counts = np.full(room + _RUN, self._first, dtype=np.int64)
        for run in np.unique(numbers // _RUN).tolist():
            found = self._runs.getValue((run,))
            if found is not None:
                counts[run * _RUN : (run + 1) * _RUN] = unpack(found[0])["count"].to_numpy()
        return counts

    def records(self, more: int) -> int:
        """The number of records of messages so far, and counts so many more."""
        self._start_anew()
        found = self._runs.getValue((_RECORDS,))
        before = self._first if found is None else int(found[0])
        if more:
            self._runs.updateValue((_RECORDS,), (str(before + more),))
        return before

    def put(self, counts: np.ndarray, numbers: np.ndarray) -> None:
        """Stores the array that `take` gave, where these numbers have new counts."""
        for run in np.unique(numbers // _RUN).tolist():
            text = pack(pa.table({"count": counts[run * _RUN : (run + 1) * _RUN]}))
            self._runs.updateValue((run,), (text,))


def pack(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as writer:
        writer.write_table(table)
    return b2a_base64(sink.getvalue(), newline=False).decode("ascii")


def unpack(text: str) -> pa.Table:
    return pa.ipc.open_stream(a2b_base64(text)).read_all()
