"""Spark data source of the event log: `spark.readStream.format("tidings").load(folder)`, and `spark.read` too.

The offset is the log's own (segment, byte), so reading the end costs one small read whatever the log's size.
Columns are those of `EVENT_SCHEMA`: id, source, type, time, datacontenttype, data, and attributes, the JSON text
of every other attribute.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tidings.errors import TidingsError
from tidings.model.event import EVENT_SCHEMA
from tidings.spark.batch_size import read_limit
from tidings.storage.event_log import EventLog, Offset

# A task costs some 10 ms whatever it does; below this many bytes a second one does not pay.
_PARTITION_BYTES = 256 << 10
BATCH_BYTES = 64 << 20  # of the log in a micro-batch
_UNCHANGED = 100_000  # events that change no table, after which there is a micro-batch all the same


def register(spark: SparkSession) -> None:
    """Registers `format("tidings")` in this session, and the source of joins."""
    for source in (LogSource, ChangesSource):
        spark.dataSource.register(source)


class LogSource(DataSource):
    """The data source. Options: `path` (the log's folder), `partitions` (tasks at most, 8), `maxEvents` (a
    micro-batch at most), `limit` (a file with a lower number, batch_size.py), `tables` (their declarations as JSON: a
    micro-batch then begins only when an event changes one of them, and only such events count for `limit`), `start` (where a new stream begins, "segment:byte"),
    `edge` (an offset across which no micro-batch reads changes of tables)."""

    @classmethod
    def name(cls) -> str:
        return "tidings"

    def schema(self) -> StructType:
        return from_arrow_schema(EVENT_SCHEMA)

    def reader(self, schema: StructType) -> DataSourceReader:
        return LogReader(self._folder(), self._number("partitions", 8))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return LogStreamReader(
            self._folder(),
            self._number("partitions", 8),
            self._number("maxEvents", 0),
            limit_file=self.options.get("limit", ""),
            tables=self.options.get("tables", ""),
            start=self._offset("start"),
            edge=self._offset("edge"),
        )

    def _offset(self, option: str) -> Offset | None:
        text = self.options.get(option)
        return Offset.parse(text) if text else None

    def _folder(self) -> str:
        path = self.options.get("path")
        if not path:
            raise TidingsError("the source 'tidings' needs the event log's folder; give it as .load(folder)")
        return path.removeprefix("file://")

    def _number(self, option: str, default: int) -> int:
        text = self.options.get(option, str(default))
        if not text.isdigit():
            raise TidingsError(f"the option {option!r} is {text!r}; it must be a whole number")
        return int(text)


class ChangesSource(LogSource):
    """The same for the query of joins, under a name of its own: what queries over one source share in Java is not made
    for two that start at once (ConcurrentModificationException)."""

    @classmethod
    def name(cls) -> str:
        return "tidings_changes"


@dataclass
class OffsetRange(InputPartition):
    """The range of the log that one task reads: everything between two offsets."""

    folder: str
    start: Offset
    end: Offset


class LogReader(DataSourceReader):
    """Reads all events that are in the log when the query is planned."""

    def __init__(self, folder: str, partitions: int) -> None:
        log = EventLog(folder)
        self._folder = folder
        self._parts = split(log, log.start(), log.end(), partitions)

    def partitions(self) -> list[OffsetRange]:
        # Spark reads one partition even if there is none: an empty stretch stands for an empty log.
        empty = Offset(0, 0)
        return self._parts or [OffsetRange(self._folder, empty, empty)]

    def read(self, partition: OffsetRange) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        return _read(partition)


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the log as a stream. Lives in one process on the driver while the query runs; tasks get a pickled copy."""

    def __init__(
        self,
        folder: str,
        partitions: int,
        max_events: int,
        *,
        limit_file: str = "",
        tables: str = "",
        start: Offset | None = None,
        edge: Offset | None = None,
    ) -> None:
        self._folder = folder
        self._partitions = partitions
        self._max_events = max_events
        self._limit_file = limit_file
        self._tables = tables
        self._start, self._edge = start, edge
        # From the end of the last micro-batch up to there, no event changes a table.
        self._unchanged = Offset(0, 0)
        self._target: Offset | None = None

    def initialOffset(self) -> dict[str, int]:
        return _to_json(first_offset(EventLog(self._folder), self._start))

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._max_events) if self._max_events else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = EventLog(self._folder).end()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        log, begin = EventLog(self._folder), _from_json(start)
        end = log.end() if self._target is None else self._target
        # After a power cut HEAD may be older than what was read; an offset never goes back.
        if end <= begin:
            return start
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else 0
        if self._tables:
            end = self._end_of_changes(log, begin, end, most)
        elif most:
            end = limited(log, begin, end, min(most, read_limit(self._limit_file) or most))
        return _to_json(end)

    def _end_of_changes(self, log: EventLog, begin: Offset, end: Offset, most: int) -> Offset:
        """The end of the last event that changes a table, within the limit; `begin` if there is none. After very many
        other events it is their end, so that a start need not look at them again."""
        from tidings.spark.joins.change_extract import end_of_changes

        low = max(begin, self._unchanged, log.start())
        while low < end:
            edge = self._edge if self._edge is not None and low < self._edge < end else end
            high = limited(log, low, edge, most or _UNCHANGED)
            found = end_of_changes(log, low, high, self._tables, read_limit(self._limit_file))
            if found is not None:
                return found
            self._unchanged = low = high
        return (
            low
            if sum(frame.rows for frame in log.frames(max(begin, log.start()), low)) > _UNCHANGED
            else begin
        )

    def reportLatestOffset(self) -> dict[str, int]:
        return _to_json(EventLog(self._folder).end())

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[OffsetRange]:
        log = EventLog(self._folder)
        # What does not change a table may have been dropped before it was read.
        begin = max(_from_json(start), log.start()) if self._tables else _from_json(start)
        return split(log, begin, _from_json(end), self._partitions)

    def read(self, partition: OffsetRange) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        return _read(partition)


def first_offset(log: EventLog, start: Offset | None) -> Offset:
    """Where a stream that is to begin at `start` does. Events before the first one kept are gone; an offset behind the
    end is one of another log."""
    first = log.start()
    return start if start is not None and first <= start <= log.end() else first


def split(log: EventLog, start: Offset, end: Offset, most: int) -> list[OffsetRange]:
    """[start, end) in at most `most` ranges of about equal bytes, cut between frames."""
    edges, sizes = [start], [0]
    for frame in log.frames(start, end):
        edges.append(frame.end)
        sizes.append(sizes[-1] + frame.end.byte - frame.start.byte)
    total = sizes[-1]
    if not total:
        return []
    parts = max(1, min(most, total // _PARTITION_BYTES))
    cuts = [
        edge
        for edge, (low, high) in zip(edges[1:], pairwise(sizes), strict=True)
        if _crosses(low, high, total, parts)
    ]
    folder = str(log.folder)
    return [OffsetRange(folder, low, high) for low, high in pairwise([start, *cuts[:-1], end])]


def _crosses(low: int, high: int, total: int, parts: int) -> bool:
    """Whether the running size passes one of the `parts` equal marks between low and high."""
    return low * parts // total < high * parts // total


def limited(log: EventLog, start: Offset, end: Offset, rows: int) -> Offset:
    """The end of the last frame within `rows` events and BATCH_BYTES of start; one frame at least, so that the stream
    advances."""
    reached, size = start, 0
    for frame in log.frames(start, end):
        rows, size = rows - frame.rows, size + frame.end.byte - frame.start.byte
        if (rows < 0 or size > BATCH_BYTES) and reached != start:
            break
        reached = frame.end
    return reached


def _read(part: OffsetRange) -> Iterator[pa.RecordBatch]:
    return EventLog(part.folder).read(part.start, part.end)


def _to_json(offset: Offset) -> dict[str, int]:
    return {"segment": offset.segment, "byte": offset.byte}


def _from_json(offset: dict[str, Any]) -> Offset:
    return Offset(offset["segment"], offset["byte"])
