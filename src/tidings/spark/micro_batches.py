"""Runs the micro-batches of a query: pins the version of each, and has it answered.

Before a micro-batch runs, its index version is pinned on disk. A batch that is replayed after a crash therefore gives
the same answer. A version published while the stream runs is used from the next micro-batch on.

    checkpoint/spark   what Spark keeps: offsets, commits, state, the query's id
    checkpoint/pins    the version of each batch
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.spark import version_pins
from tidings.spark.code_pickle import unpickle_code
from tidings.spark.java_errors import short_java_errors
from tidings.spark.lock import StreamLock
from tidings.spark.offsets import query_id
from tidings.spark.output import Batch, clear_unfinished
from tidings.spark.stream_handle import Running
from tidings.storage import versions

Folder = str | os.PathLike[str]
Sink = Callable[[DataFrame, int], None]
Answer = Callable[[DataFrame, str, int, str], None]
"""What to do with a micro-batch's rows, for a query, the batch's number, and a version of the index."""


@dataclass
class MicroBatches:
    """The index by which a stream's micro-batches are answered, the code that it needs, and the trigger."""

    index: str | Path
    pickled: bytes
    interval: str | None = None
    available_now: bool = False
    memory: int | None = None

    def __post_init__(self) -> None:
        self._can_answer = _Check(self.index, self.pickled, self.memory)
        # Fail in the caller and not in the first micro-batch.
        self._can_answer(str(versions.current(self.index)))

    def start(self, frame: DataFrame, checkpoint: Path, answer: Answer) -> Running:
        """Starts a query whose micro-batches are answered."""
        busy = threading.Lock()
        done: list[int] = [0]
        version_pins.replace_lost(checkpoint / "pins", self.index)

        def process(rows: DataFrame, batch: int) -> None:
            with busy, short_java_errors():
                # Checked before it is pinned: every replay uses the pinned version.
                version = version_pins.pin(
                    checkpoint / "pins", batch, lambda: self._can_answer(str(versions.current(self.index)))
                )
                self._can_answer(version)
                answer(rows, query_id(checkpoint), batch, version)
                done[0] += 1

        writer = frame.writeStream.option("checkpointLocation", str(checkpoint / "spark"))
        writer = writer.outputMode("append").foreachBatch(process)
        if self.available_now:
            writer = writer.trigger(availableNow=True)
        elif self.interval is not None:
            writer = writer.trigger(processingTime=self.interval)
        return Running(writer.start(), busy, lambda: done[0])


@dataclass
class ParquetOutput:
    """A folder of a stream's notifications; its output folder is given by (query id, batch id), so that a replayed
    batch replaces itself. Then `sink` and `on_batch` are called with the batch."""

    folder: Path
    sink: Sink | None = None
    on_batch: Callable[[Batch], None] | None = None
    _reporting: threading.Lock = field(default_factory=threading.Lock)

    def prepare(self) -> None:
        """Removes the unfinished output of a killed stream. The stream must be locked."""
        self.folder.mkdir(parents=True, exist_ok=True)
        clear_unfinished(self.folder)

    def report(self, spark: SparkSession, batch: Batch) -> None:
        with self._reporting:  # two queries may be done at once
            if self.sink is not None:
                self.sink(_frame(spark, batch), batch.id)
            if self.on_batch is not None:
                self.on_batch(batch)


def lock_stream(spark: SparkSession, checkpoint: Path) -> StreamLock:
    """Locks the checkpoint for one stream."""
    return StreamLock(checkpoint, spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]


class _Check:
    """Refuses a version whose subscriptions call operators that were not given, or that needs more memory than is allowed."""

    def __init__(self, index: str | Path, pickled: bytes, memory: int | None) -> None:
        self._index, self._operators, self._memory = index, unpickle_code(pickled).operators, memory
        self._good: versions.Version | None = None

    def __call__(self, version: str) -> str:
        asked = versions.Version.parse(version)
        if asked != self._good:
            versions.check_operators(self._index, asked, self._operators, since=self._good)
            if self._good is None or asked.base != self._good.base:
                versions.check_memory(self._index, asked, self._memory)
            self._good = asked
        return version


def _frame(spark: SparkSession, batch: Batch) -> DataFrame:
    """The notifications of a batch, read back from the output, so that a sink repeats no matching."""
    schema = from_arrow_schema(NOTIFICATION_SCHEMA)
    if not batch.folder.exists():
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(str(batch.folder))
