"""Matches a DataFrame of events: the Python workers open the index and match Arrow batches to notifications.

Filters read their attributes from the columns of the DataFrame, of any Spark type; an event becomes a Python
object only if it is notified and has no id, or needs a parser.

Every task uses one version of the index. In batch it is fixed when the DataFrame is made; in a stream, where the
plan is made once and lives for months, the first task of a micro-batch pins it (task_index.py). An index whose
subscriptions are divided is matched in two stages (divided/stages.py).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from tidings.containment import forest
from tidings.engine.contracts import Kind
from tidings.engine.engine import Engine
from tidings.errors import IndexFileError, TidingsError
from tidings.formats.sizes import read_size
from tidings.model.envelope import arrange, event_keys
from tidings.model.notification import NOTIFICATION_SCHEMA, to_table
from tidings.spark.code_pickle import Operators, pickle_code, unpickle_code
from tidings.spark.divided.forest import parents
from tidings.spark.divided.stages import match_divided
from tidings.spark.task_index import TaskIndex, sent_root
from tidings.spark.worker_python import need_package
from tidings.storage import remote_index, versions
from tidings.storage.subscription_table import check_subscription_columns, publish_table

_PIECE = 8_192  # rows

Index = str | os.PathLike[str] | tuple[str | os.PathLike[str], versions.Version | str]


def match(
    events: DataFrame,
    index: Index | DataFrame,
    *,
    operators: Operators = (),
    kinds: Iterable[Kind] = (),
    memory: int | str | None = None,
) -> DataFrame:
    """The notifications that `events` cause, as NOTIFICATION_SCHEMA has them.

    `index` is an index folder that all hosts see, or in batch an address such as "s3://bucket/index", of which each host fetches
    what it needs once; then its current version counts (in a stream: current when a micro-batch begins), or (index, version).
    Or a DataFrame with the columns `id` and `text`, a subscription a row, of which an index is built for this session, in
    batch: a row that cannot be used gives one with verdict "error" that names the subscription and no event.
    Columns of `events` that are missing are taken as null; extra ones are attributes.
    An event that cannot be read gives one row with verdict "error" and disturbs no other.

    `operators` are what subscriptions call, beside those of packages that are installed on all hosts: operators, or
    modules ("package.module") and files ("path/to/file.py") of them. Each worker learns which to call first for
    itself; only a stream (`run`) gathers that for the next version, because a DataFrame may be computed any number of
    times, or in part, and counts as nothing. `kinds` are kinds of subscription of your own, which an index names; those
    that keep state take no part here.

    `memory` (bytes, or a text such as "1GB") is how much of the files of an index one Python worker may have open. An
    index that needs more is refused, with the number of parts that it would have to be divided into.
    """
    if isinstance(index, DataFrame):
        if events.isStreaming or index.isStreaming:
            raise TidingsError(
                f"the {'events' if events.isStreaming else 'subscriptions'} are a stream, and the index of a DataFrame of"
                " subscriptions is there for one session and never changes; build one with 'tidings index build' or"
                " versions.publish, which a stream follows as it changes"
            )
        operators, kinds = tuple(operators), tuple(kinds)
        folder, refused = _index_of(index, operators, kinds, read_size(memory))
        found = _match(events, str(folder), "", pickle_code(operators, kinds), memory, is_sent=True)
        return found if refused is None else found.union(refused)
    given, version = (index[0], str(index[1])) if isinstance(index, tuple) else (index, "")
    root = remote_index.absolute(given)
    if not remote_index.is_address(root):
        if not os.path.isdir(root):
            raise IndexFileError(f"there is no index in {root}; build one with 'tidings index build'")
    elif events.isStreaming:
        raise TidingsError(
            f"the events are a stream, whose workers agree on a version in the folder of the index, and {root} is an address;"
            " give a folder that all hosts see, or start the stream by tidings.spark.run"
        )
    return _match(events, root, version, pickle_code(operators, kinds), memory)


def _match(
    events: DataFrame,
    root: str,
    version: str,
    pickled: bytes,
    memory: int | str | None,
    *,
    is_sent: bool = False,
) -> DataFrame:
    """`is_sent`: the index is on the driver's host only."""
    # A column that cannot be read is an error here, not in a task.
    arrange(to_arrow_schema(events.schema, timezone="UTC").empty_table())
    now = versions.Version.parse(version) if version else versions.current(root)
    versions.check_operators(root, now, unpickle_code(pickled).operators)
    need_package(events.sparkSession)
    allowed = read_size(memory)
    versions.check_memory(root, now, allowed)
    if not events.isStreaming:
        version = str(now)
    if is_sent:
        tasks_root = sent_root(events.sparkSession.sparkContext, Path(root))
    else:
        tasks_root = remote_index.exact(root, now.base)
    task_index = TaskIndex(tasks_root, version, pickled, allowed)
    if (division := versions.division(root, now)) is not None:
        return match_divided(events, task_index, len(division.parts))
    return events.mapInArrow(partial(_match_task, task_index), from_arrow_schema(NOTIFICATION_SCHEMA))


def _index_of(
    subscriptions: DataFrame, operators: Operators, kinds: Iterable[Kind], memory: int | None
) -> tuple[Path, DataFrame | None]:
    """A folder with the index of a DataFrame, which Spark removes when the session ends, and notifications of what was
    refused, if anything was."""
    check_subscription_columns(subscriptions.columns)
    spark = subscriptions.sparkSession
    code = unpickle_code(pickle_code(operators, kinds))
    try:
        local = spark.sparkContext._temp_dir
    except PySparkException:
        raise TidingsError(
            "a session over Spark Connect has no folder here that its workers see; publish an index in one that they do, or at"
            " an address, and give that instead of the subscriptions"
        ) from None
    root = Path(tempfile.mkdtemp(prefix="subscriptions-", dir=local))
    table = subscriptions.select("id", "text").toArrow()
    # Workers on other machines do not see the folder.
    is_local = str(spark.sparkContext.master).startswith("local")
    refused = publish_table(
        root,
        table,
        operators=code.operators,
        kinds=code.kinds,
        memory=memory,
        forest=partial(parents, spark, root) if is_local else forest.parents,
    )
    if not refused:
        return root, None
    ids, reasons = (pa.array(column, pa.string()) for column in zip(*refused, strict=True))
    verdicts = pa.array(["error"] * len(ids), pa.string())
    found = to_table({"subscription": ids, "verdict": verdicts, "message": reasons})
    return root, spark.createDataFrame(found, from_arrow_schema(NOTIFICATION_SCHEMA))


def _match_task(index: TaskIndex, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One task: yields its notifications in parts that fit into the JVM's cache, which saved an eighth of the time
    of a job with a hundred notifications per event."""
    for found in match_batches(index.open(), batches):
        for first in range(0, found.num_rows, _PIECE):
            yield found.slice(first, _PIECE)


def match_batches(index: Engine, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The notifications of batches of events."""
    for batch in batches:
        if batch.num_rows:
            arranged = arrange(batch)
            yield arranged.named(index.match(arranged.events.combine_chunks().to_batches()[0]))


def in_log_order(notifications: pa.Table, events: pa.Table) -> tuple[pa.Table, pa.Array]:
    """The notifications in the order of their events, and the row of the event of each."""
    wanted = event_keys(notifications["source"], notifications["event"])
    known = event_keys(events["source"], events["id"])
    rows = pc.index_in(wanted, value_set=known).combine_chunks()
    order = pc.array_sort_indices(rows)
    return notifications.take(order), rows.take(order)
