"""The stream: log -> micro-batches -> match -> notifications, nothing lost and nothing twice.

Before a micro-batch runs its index version is pinned on disk; its output has the place (query id, batch id). A
batch that is replayed after a crash therefore gives the same answer in the same place. A version published while
the stream runs is used from the next micro-batch on. What workers learn of operators is put beside the index, where
the next base finds it (gathered.py).

    checkpoint/spark   what Spark keeps: offsets, commits, the query's id
    checkpoint/pins    the version of each batch
    checkpoint/LOCK    the process that runs the stream
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from tidings import gathered, versions
from tidings.errors import TidingsError
from tidings.notification import NOTIFICATION_SCHEMA
from tidings.spark import output as outputs
from tidings.spark import pins
from tidings.spark.lock import StreamLock
from tidings.spark.output import Batch
from tidings.spark.shipment import Operators, pack, unpack

Folder = str | os.PathLike[str]


class StreamError(TidingsError):
    """The stream ended because something in it failed."""


class Stream:
    """A running stream. `query` is Spark's own handle, with its progress."""

    def __init__(self, query: StreamingQuery, lock: StreamLock, busy: threading.Lock) -> None:
        self.query = query
        self._lock = lock
        self._busy = busy

    def wait(self, seconds: float | None = None) -> bool:
        """Until the stream ends, or for some seconds; whether it has ended. A failure inside is raised here."""
        try:
            ended = self.query.awaitTermination(seconds)  # type: ignore[arg-type]  # it takes a float
        except StreamingQueryException as error:
            self._lock.release()
            raise StreamError(f"the stream stopped: {_reason(error)}") from error
        if ended is None or ended:
            self._lock.release()
            return True
        return False

    def drain(self) -> None:
        """Until all that is in the log now has been answered."""
        try:
            self.query.processAllAvailable()
        except StreamingQueryException as error:
            raise StreamError(f"the stream stopped: {_reason(error)}") from error

    def stop(self) -> None:
        """End the stream; a micro-batch under way is given up and replayed at the next start."""
        self.query.stop()
        # Spark does not wait for our side of a micro-batch that it has given up.
        with self._busy:
            self._lock.release()

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def run(
    spark: SparkSession,
    log: Folder,
    index: Folder,
    output: Folder,
    checkpoint: Folder,
    *,
    operators: Operators = (),
    sink: Callable[[DataFrame, int], None] | None = None,
    on_batch: Callable[[Batch], None] | None = None,
    interval: str | None = None,
    available_now: bool = False,
    max_events: int = 100_000,
) -> Stream:
    """Start matching a log against an index, for good or (`available_now`) until the log's present end.

    Notifications go to Parquet under `output` (read them with `notifications`); then to `sink`, a function as for
    Spark's foreachBatch, which a replay calls again with the same rows and batch id. `on_batch` hears of
    every batch that is done. `operators` are what subscriptions call, beside those of packages that are installed on
    all hosts: operators, or modules ("package.module") and files ("path/to/file.py") of them. Without an `interval` ("5 seconds") a micro-batch begins as soon as there are events.
    """
    index, output, checkpoint = Path(index).absolute(), Path(output).absolute(), Path(checkpoint).absolute()
    # Fail here, in the caller's hands, and not in the first micro-batch.
    shipment = pack(operators)
    can_answer = _Check(index, shipment)
    can_answer(str(versions.current(index)))
    lock = StreamLock(checkpoint, spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    try:
        output.mkdir(parents=True, exist_ok=True)
        outputs.clear_unfinished(output)
        events = (
            spark.readStream.format("tidings")
            .option("partitions", spark.sparkContext.defaultParallelism)
            .option("maxEvents", max_events)
            .load(str(Path(log).absolute()))
        )

        busy = threading.Lock()

        def process(batch_events: DataFrame, batch: int) -> None:
            with busy:
                # Looked at before it is pinned: a version that is pinned is asked for again by every replay.
                version = pins.pin(
                    checkpoint / "pins", batch, lambda: can_answer(str(versions.current(index)))
                )
                can_answer(version)
                query = _query_id(checkpoint)
                done = outputs.write(batch_events, index, version, shipment, output, query, batch)
                gathered.gather(index, query, versions.Version.parse(version).base, batch, done.learnt)
                if sink is not None:
                    sink(_frame(batch_events.sparkSession, done), batch)
                if on_batch is not None:
                    on_batch(done)

        writer = events.writeStream.option("checkpointLocation", str(checkpoint / "spark")).foreachBatch(
            process
        )
        if available_now:
            writer = writer.trigger(availableNow=True)
        elif interval is not None:
            writer = writer.trigger(processingTime=interval)
        return Stream(writer.start(), lock, busy)
    except BaseException:
        lock.release()
        raise


class _Check:
    """Refuses a version whose subscriptions call operators that were not given."""

    def __init__(self, index: Path, shipment: bytes) -> None:
        self._index, self._operators = index, unpack(shipment)
        self._good: versions.Version | None = None

    def __call__(self, version: str) -> str:
        asked = versions.Version.parse(version)
        if asked != self._good:
            versions.check_operators(self._index, asked, self._operators, since=self._good)
            self._good = asked
        return version


def _frame(spark: SparkSession, batch: Batch) -> DataFrame:
    """A batch's notifications, read back from where they were put: a sink computes nothing twice."""
    schema = from_arrow_schema(NOTIFICATION_SCHEMA)
    if not batch.folder.exists():
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(str(batch.folder))


def _query_id(checkpoint: Path) -> str:
    text = (checkpoint / "spark" / "metadata").read_text()
    query: str = json.loads(text)["id"]
    return query


# The line that ends a Python traceback. Spark wraps such tracebacks in others; the last is where it began.
_RAISED = re.compile(r"^((?:\w+\.)*)(\w+): (.*[^:\s])$", re.MULTILINE)


def _reason(error: StreamingQueryException) -> str:
    """What went wrong in one line: our own errors as they are, others with their name."""
    text = re.sub(r" SQLSTATE: \w+", "", str(error).partition("=== Streaming Query ===")[0])
    raised = _RAISED.findall(text)
    if not raised:
        return text.strip().splitlines()[0]
    module, name, message = raised[-1]
    return message if module.startswith("tidings.") else f"{name}: {message}"
