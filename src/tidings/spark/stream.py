"""The stream: log -> micro-batches -> match -> notifications, each exactly once.

What workers learn of operators is stored beside the index, where the next base reads it (operator_feedback.py).
An index with tables has a second query, which keeps its joins (join_stream.py).

    checkpoint/          of the query that matches (micro_batches.py)
    checkpoint/joins/    of the one that keeps joins
    checkpoint/LOCK      the process that runs the stream
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from tidings.engine.contracts import Kind
from tidings.spark import join_stream
from tidings.spark import output as outputs
from tidings.spark.code_pickle import Operators, pickle_code
from tidings.spark.micro_batches import Folder, NotificationOutput, Sink
from tidings.spark.output import Batch
from tidings.spark.stream_handle import Stream
from tidings.storage import operator_feedback, versions
from tidings.storage.event_log import Offset


def run(
    spark: SparkSession,
    log: Folder,
    index: Folder,
    output: Folder,
    checkpoint: Folder,
    *,
    operators: Operators = (),
    kinds: Iterable[Kind] = (),
    sink: Sink | None = None,
    on_batch: Callable[[Batch], None] | None = None,
    interval: str | None = None,
    available_now: bool = False,
    max_events: int = 100_000,
    start: Offset | None = None,
    edge: Offset | None = None,
) -> Stream:
    """Start matching a log against an index, for good or (`available_now`) until the log's present end.

    Notifications go to Parquet under `output` (read them with `notifications`); then to `sink`, a function as for
    Spark's foreachBatch, which a replay calls again with the same rows and batch id. `on_batch` hears of
    every batch that is done. `operators` are what subscriptions call, beside those of packages that are installed on
    all hosts: operators, or modules ("package.module") and files ("path/to/file.py") of them. Without an `interval`
    ("5 seconds") a micro-batch begins as soon as there are events.

    A query without a checkpoint starts at the log's first event, or the one that matches at `start`. No micro-batch of the
    one that keeps joins reads across `edge`.

    If the index has tables, a second query keeps the joins over them: `sink` and `on_batch` hear of the batches of both,
    and each query counts its own from 0.
    """
    index, output, checkpoint = Path(index).absolute(), Path(output).absolute(), Path(checkpoint).absolute()
    pickled = pickle_code(operators, kinds)
    notification_output = NotificationOutput(index, output, pickled, sink, on_batch, interval, available_now)
    lock = notification_output.lock(spark, checkpoint)
    running = []
    try:

        def match(events: DataFrame, query: str, batch: int, version: str) -> Batch:
            done = outputs.write(events, index, version, pickled, output, query=query, batch=batch)
            operator_feedback.record(index, query, versions.Version.parse(version).base, batch, done.learnt)
            return done

        events = (
            spark.readStream.format("tidings")
            .option("partitions", spark.sparkContext.defaultParallelism)
            .option("maxEvents", max_events)
        )
        path = str(Path(log).absolute())
        matched = events.option("start", "" if start is None else str(start)).load(path)
        running.append(notification_output.start(matched, checkpoint, match))
        if join_stream.has_tables(index):
            options = {"start": "", "edge": "" if edge is None else str(edge)}
            changes = events.options(**options).load(path)
            running.append(join_stream.start(spark, changes, notification_output, checkpoint / "joins"))
        return Stream(running, lock)
    except BaseException:
        for handle in running:
            handle.query.stop()
        lock.release()
        raise
