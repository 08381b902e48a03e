"""The stream: log -> micro-batches -> match -> notifications, each exactly once.

`run` writes Parquet, for files and for sinks of one's own; `deliver` gives slices of answers to a recorder, which is
the service's way (slices.py). What workers learn of operators is stored beside the index, where the next base reads it
(operator_feedback.py). An index with tables has a second query, which keeps its joins (joins/stream.py).

    checkpoint/          of the query that matches (micro_batches.py)
    checkpoint/joins/    of the one that keeps joins
    checkpoint/LIMIT     the number of events in a micro-batch, and joins/LIMIT of changes of tables (batch_size.py)
    checkpoint/LOCK      the process that runs the stream
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from tidings.engine.contracts import Kind
from tidings.formats.sizes import read_size
from tidings.spark import output as outputs
from tidings.spark.batch_size import BatchSize
from tidings.spark.code_pickle import Operators, pickle_code
from tidings.spark.joins import stream as join_stream
from tidings.spark.joins.change_extract import WHOLE_ROWS, OutputForm
from tidings.spark.micro_batches import Answer, Folder, MicroBatches, ParquetOutput, Sink, lock_stream
from tidings.spark.offsets import batch_range
from tidings.spark.output import Batch
from tidings.spark.slices import MicroBatch, Recorder, SliceMatcher
from tidings.spark.source import ChangesSource, LogSource, first_offset
from tidings.spark.stream_handle import Stream
from tidings.spark.task_index import TaskIndex
from tidings.spark.worker_python import need_package
from tidings.storage import operator_feedback, remote_index, versions
from tidings.storage.event_log import EventLog, Offset
from tidings.storage.part_loads import add_visits


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
    memory: int | str | None = None,
) -> Stream:
    """Start matching a log against an index, for good or (`available_now`) until the log's present end.

    Notifications go to Parquet under `output` (read them with `notifications`); then to `sink`, a function as for
    Spark's foreachBatch, which a replay calls again with the same rows and batch id. `on_batch` is called with
    every batch that is done. `operators` are what subscriptions call, beside those of packages that are installed on
    all hosts: operators, or modules ("package.module") and files ("path/to/file.py") of them. Without an `interval`
    ("5 seconds") a micro-batch begins as soon as there are events. `index` may be an address and `memory` is as in `match`.

    If the index has tables, a second query keeps the joins over them: `sink` and `on_batch` are called with the batches of both,
    and each query counts its own from 0.
    """
    need_package(spark)
    root, output, checkpoint = (
        remote_index.absolute(index),
        Path(output).absolute(),
        Path(checkpoint).absolute(),
    )
    pickled = pickle_code(operators, kinds)
    parquet, allowed = ParquetOutput(output, sink, on_batch), read_size(memory)

    def match(events: DataFrame, query: str, batch: int, version: str) -> None:
        base = versions.Version.parse(version).base
        task_index = TaskIndex(remote_index.exact(root, base), version, pickled, allowed)
        done = outputs.write(events, task_index, output, query=query, batch=batch)
        if not remote_index.is_address(root):
            operator_feedback.record(Path(root), query, base, batch, done.learnt)
            add_visits(Path(root), query, base, done.visits)
        parquet.report(spark, done)

    batches = MicroBatches(root, pickled, interval, available_now, allowed)
    events, changes = (
        join_stream.log_frame(spark, log, max_events, source) for source in (LogSource, ChangesSource)
    )
    return _start(spark, (events, changes), batches, parquet, checkpoint, match)


class ServiceRecorder(Recorder, Protocol):
    """Where slices go, and the batches of joins."""

    def record_joins(self, batch: Batch) -> None: ...


def deliver(
    spark: SparkSession,
    log: Folder,
    index: Folder,
    output: Folder,
    checkpoint: Folder,
    recorder: ServiceRecorder,
    *,
    operators: Operators = (),
    small: int | None = None,
    start: Offset | None = None,
    edge: Offset | None = None,
    memory: int | None = None,
    members: str | None = None,
) -> Stream:
    """Start matching a log against an index; `recorder` is given the answers in slices. Micro-batches of up to `small`
    events are matched without a Spark job (None: learnt; 0: never). Joins write to `output` first, as in `run`.

    A stream without a checkpoint begins at `start`, and its joins, which need all changes, at the log's first event: no
    micro-batch of them reads across the `edge`, up to which their notifications exist already. Joins whose ids begin with
    `members` are answered by messages of a scheme for all of them."""
    log, index = Path(log).absolute(), Path(index).absolute()
    output, checkpoint = Path(output).absolute(), Path(checkpoint).absolute()
    pickled = pickle_code(operators, ())
    size = BatchSize(checkpoint / "LIMIT", spark.sparkContext.defaultParallelism, small)
    matcher = SliceMatcher(spark, log, index, pickled, recorder, size, memory=memory)
    first = first_offset(EventLog(log), start)

    def match(events: DataFrame, query: str, batch: int, version: str) -> None:
        read = batch_range(checkpoint, batch)
        matcher(MicroBatch(query, batch, version, read._replace(start=read.start or first)))

    size_of_joins = BatchSize(checkpoint / "joins" / "LIMIT", spark.sparkContext.defaultParallelism)

    def record_joins(batch: Batch) -> None:
        if batch.events:
            size_of_joins.learn(batch.events, batch.notifications)
        recorder.record_joins(batch)

    parquet = ParquetOutput(output, on_batch=record_joins)
    events, changes = (
        join_stream.log_frame(spark, log, 100_000, source).option("limit", str(folder / "LIMIT"))
        for source, folder in ((LogSource, checkpoint), (ChangesSource, checkpoint / "joins"))
    )
    events = events.option("start", str(start or ""))
    changes = changes.option("edge", str(edge or ""))
    batches = MicroBatches(index, pickled, memory=memory)
    form = join_stream.member_form(members)
    return _start(spark, (events, changes), batches, parquet, checkpoint, match, form=form)


def _start(
    spark: SparkSession,
    readers: tuple[DataStreamReader, DataStreamReader],
    batches: MicroBatches,
    parquet: ParquetOutput,
    checkpoint: Path,
    match: Answer,
    *,
    form: OutputForm = WHOLE_ROWS,
) -> Stream:
    """Starts the query that matches, and the one that keeps joins if the index has tables, each with its reader."""
    events, changes = readers
    lock = lock_stream(spark, checkpoint)
    running = []
    try:
        parquet.prepare()
        running.append(batches.start(events.load(), checkpoint, match))
        if (tables := join_stream.declared_tables(batches.index)) != join_stream.NO_TABLES:
            changes = changes.option("tables", tables)
            folder = checkpoint / "joins"
            running.append(join_stream.start(spark, changes.load(), batches, parquet, folder, form=form))
        return Stream(running, lock)
    except BaseException:
        for handle in running:
            handle.query.stop()
        lock.release()
        raise
