"""The stream of joins: changes of tables to the deltas of join subscriptions, each exactly once.

    events -> extracts of changes -> ledger, one group -> buckets, a group each -> Parquet

Rows and sequence numbers are in Spark's state, the subscriptions in the index that workers map. A micro-batch
that is replayed after a crash uses the same state, the version that was pinned for it, and the same output
folder.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit
from pyspark.sql.streaming.readwriter import DataStreamReader

from tidings.dissemination.live.join_messages import live_scheme
from tidings.dissemination.schemes import DEFAULT
from tidings.engine.contracts import Kind
from tidings.errors import IndexFileError
from tidings.kinds.joins.payload_once import Payload, wants_once
from tidings.spark.code_pickle import Operators, pickle_code
from tidings.spark.joins.buckets import REPORT, BucketProcessor
from tidings.spark.joins.change_extract import EXTRACT, WHOLE_ROWS, OutputForm, TaskSettings, extract_task
from tidings.spark.joins.ledger import WORK, LedgerProcessor
from tidings.spark.joins.sequence_mark import first_sequence
from tidings.spark.lock import StreamLock
from tidings.spark.micro_batches import Folder, MicroBatches, ParquetOutput, Sink, lock_stream
from tidings.spark.output import Batch, settle, unfinished
from tidings.spark.source import ChangesSource, LogSource
from tidings.spark.stream_handle import Running, Stream
from tidings.spark.worker_python import need_package
from tidings.storage import remote_index, versions
from tidings.storage.division import front_of

BUCKETS = 16
NO_TABLES = "[]"
_STATE = {
    # The only store in which a group has maps and values of its own.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # What has changed is written at each micro-batch, the whole store only now and then.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def correlate(
    spark: SparkSession,
    changes: Folder | DataFrame,
    index: Folder,
    output: Folder,
    checkpoint: Folder,
    *,
    buckets: int = BUCKETS,
    joined: bool = False,
    payload: Payload = "always",
    messages: str | None = None,
    operators: Operators = (),
    kinds: Iterable[Kind] = (),
    sink: Sink | None = None,
    on_batch: Callable[[Batch], None] | None = None,
    interval: str | None = None,
    available_now: bool = False,
    max_events: int = 20_000,
) -> Stream:
    """Starts a stream that notifies the join subscriptions of an index of the rows they gain and lose by changes of
    its tables.

    `changes` is a log, or a streaming DataFrame: of events, or of columns `table`, `op` (or `type`), `row`,
    `before` and `sequence`. Its rows count in the order of its partitions. Notifications and all else are as in
    `run`; a subscription has a sequence of its own in each of its parts ("3/16": bucket 3 of 16), which a
    `Replica` combines. `joined` reports joined rows instead of rows of tables; a `payload` of "once"
    leaves columns out that the subscriber has; `messages` names a scheme, such as "Ref-SJ-Clu+", whose messages
    are written instead, for all subscriptions at once: `read_records` reads them, a `MessageReplica` takes them. A request for a snapshot is an
    event, `Event.snapshot`, and is answered by each part with the rows as they are after its micro-batch. The
    number of `buckets` of a partition class is fixed when it first gets rows."""
    form = OutputForm(joined, wants_once(payload, joined), messages and live_scheme(messages).name)
    root, folder = remote_index.absolute(index), Path(checkpoint).absolute()
    batches = MicroBatches(root, pickle_code(operators, kinds), interval, available_now)
    parquet = ParquetOutput(Path(output).absolute(), sink, on_batch)
    tables = declared_tables(root)
    if tables == NO_TABLES:
        raise IndexFileError(f"the index in {root} has no tables; build it of Engine(tables=[...])")
    need_package(spark)
    lock = lock_stream(spark, folder)
    try:
        parquet.prepare()
        if not isinstance(changes, DataFrame):
            changes = log_frame(spark, changes, max_events, ChangesSource).option("tables", tables).load()
        return Stream([start(spark, changes, batches, parquet, folder, buckets=buckets, form=form)], lock)
    except BaseException:
        lock.release()
        raise


def member_form(members: str | None) -> OutputForm:
    """The form of a stream that answers subscriptions whose ids begin so by messages; None: no such subscriptions."""
    return WHOLE_ROWS if members is None else OutputForm(messages=DEFAULT.name, members=members)


def log_frame(spark: SparkSession, log: Folder, max_events: int, source: type[LogSource]) -> DataStreamReader:
    """Reads a log as a stream, with a task for each core."""
    return (
        spark.readStream.format(source.name())
        .option("path", str(Path(log).absolute()))
        .option("partitions", spark.sparkContext.defaultParallelism)
        .option("maxEvents", max_events)
    )


def declared_tables(index: str | Path) -> str:
    """The tables of the current version of an index, as JSON."""
    root = remote_index.local_root(index)
    facts = front_of(root / f"v{versions.current(root).base}") / "joins" / "tables.json"
    return json.dumps(json.loads(facts.read_text())["tables"]) if facts.exists() else NO_TABLES


def leave_other_tables(index: Path, checkpoint: Path) -> None:
    """Removes the joins' checkpoint of a stream if it was made with other tables than the index has now, because its
    state is of no use then. The stream must not be running."""
    folder = checkpoint / "joins"
    now = declared_tables(index)
    mark = folder / "TABLES"
    lock = StreamLock(checkpoint, os.getpid())
    try:
        if (folder / "spark").exists() and (not mark.exists() or mark.read_text() != now):
            shutil.rmtree(folder)
        if now != NO_TABLES:
            folder.mkdir(parents=True, exist_ok=True)
            mark.write_text(now)
    finally:
        lock.release()


def start(
    spark: SparkSession,
    events: DataFrame,
    batches: MicroBatches,
    parquet: ParquetOutput,
    checkpoint: Path,
    *,
    buckets: int = BUCKETS,
    form: OutputForm = WHOLE_ROWS,
) -> Running:
    """Starts the query."""
    output = parquet.folder
    settings = TaskSettings(
        str(batches.index),
        str(checkpoint / "pins"),
        batches.pickled,
        str(output),
        buckets,
        form,
        first_sequence(checkpoint),
        batches.memory,
    )
    extracts = events.mapInArrow(partial(extract_task, settings), EXTRACT)
    ledger = extracts.withColumn("ledger", lit(0)).groupBy("ledger")
    work = ledger.transformWithState(LedgerProcessor(settings), WORK, "append", "None")
    bucket = work.groupBy("class", "bucket")
    reports = bucket.transformWithState(BucketProcessor(settings), REPORT, "append", "None")

    def answer(rows: DataFrame, query: str, batch: int, version: str) -> None:
        unfinished(output, query, batch).mkdir(parents=True, exist_ok=True)
        parquet.report(spark, settle(rows.toArrow().to_pylist(), output, query, batch, version))

    # A task for each core, with its share of the groups. Spark keeps the number with the checkpoint.
    tasks = {"spark.sql.shuffle.partitions": str(max(2, spark.sparkContext.defaultParallelism))}
    with _set(spark, {**_STATE, **tasks}):
        return batches.start(reports, checkpoint, answer)


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Sets options for a query that is started inside; Spark copies them."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)
