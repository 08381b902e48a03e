"""A backtest as one Spark job: each task matches a stretch of the log, and only its counts come back.

Tasks read the log themselves, so that events do not pass through Java, and open an index of the one subscription. Segments
of the log that are older than the time that is asked for are not read.
"""

from __future__ import annotations

import os
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial, reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tidings.engine.backtest import Tally, backtest_engine, tally
from tidings.engine.engine import Engine
from tidings.errors import TidingsError
from tidings.model.batch import event_times
from tidings.model.envelope import arrange
from tidings.spark.code_pickle import Operators, pickle_code, unpickle_code
from tidings.spark.source import OffsetRange, split
from tidings.spark.task_index import TaskIndex, sent_root
from tidings.spark.worker_python import need_package
from tidings.storage import versions
from tidings.storage.event_log import EventLog
from tidings.storage.log_times import LogTimes

_TASK_BYTES = 16 << 20  # of the log: a few tens of thousands of events, so that progress is seen
_MOST_TASKS = 2_000
_POLL_SECONDS = 0.2

Moment = datetime | float | None
Progress = Callable[[float], None]


def backtest(
    events: str | os.PathLike[str] | DataFrame,
    text: str,
    *,
    since: Moment = None,
    until: Moment = None,
    definitions: Engine | None = None,
    operators: Operators = (),
    scope: str = "",
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> Tally:
    """What a subscription would have matched of the events that arrived from `since` on and before `until`.

    `events` is the folder of an event log that all hosts see, or a DataFrame, whose events count by their own time. The
    taxonomy, prefixes and networks are those of the engine `definitions`; `operators` are as for `match`. `progress` is
    called with the part that is done, from 0 to 1. `spark` is the active session unless another is given.
    """
    low, high = _seconds(since, -np.inf), _seconds(until, np.inf)
    code = pickle_code(operators)
    named = unpickle_code(code).operators
    engine = backtest_engine(definitions or Engine(operators=named), text, scope)
    session = _session(events, spark)
    need_package(session)
    with tempfile.TemporaryDirectory(prefix="backtest-", dir=_folder(session)) as root:
        version = versions.publish(root, engine)
        index = TaskIndex(sent_root(session.sparkContext, Path(root)), str(version), code)
        return run_backtest(session, events, index, (low, high), progress)


def run_backtest(
    session: SparkSession,
    events: str | os.PathLike[str] | DataFrame,
    index: TaskIndex,
    span: tuple[float, float],
    progress: Progress | None = None,
) -> Tally:
    """The same by an index that has the subscription, from a time on and before another, in seconds since 1970."""
    low, high = span
    if isinstance(events, DataFrame):
        counted = events.mapInArrow(partial(_frame_task, index, low, high), "tally string")
    else:
        ranges = _ranges(events, low, high)
        if not ranges:
            return Tally()
        numbers = session.range(0, len(ranges), 1, len(ranges))
        counted = numbers.mapInArrow(partial(_log_task, index, ranges, low, high), "tally string")
    with _watched(session, progress):
        rows = counted.collect()
    return reduce(Tally.__add__, (Tally.from_json(row[0]) for row in rows), Tally())


def _ranges(folder: str | os.PathLike[str], low: float, high: float) -> list[OffsetRange]:
    """The stretch of the log between two times, in one range a task."""
    log = EventLog(Path(folder).resolve())
    if not (log.folder / "HEAD").exists():
        raise TidingsError(f"there is no event log in {folder}; give the folder 'log' of a service's data")
    times = LogTimes(log)
    start = times.offset(low) if np.isfinite(low) else log.start()
    end = times.offset(high) if np.isfinite(high) else log.end()
    size = sum(log.segment_path(n).stat().st_size for n in range(start.segment, end.segment + 1))
    return split(log, start, end, min(_MOST_TASKS, max(1, size // _TASK_BYTES)))


def _log_task(
    index: TaskIndex,
    ranges: list[OffsetRange],
    low: float,
    high: float,
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    engine, total = index.open(), Tally()
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            part = ranges[number]
            for events, arrivals in LogTimes(EventLog(part.folder)).read(part.start, part.end):
                total += _tally(engine, pa.Table.from_batches([events]), arrivals, low, high)
    yield _row(total)


def _frame_task(
    index: TaskIndex, low: float, high: float, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    engine, total = index.open(), Tally()
    for batch in batches:
        arranged = arrange(batch).events
        total += _tally(engine, arranged, event_times(arranged), low, high)
    yield _row(total)


def _tally(engine: Engine, events: pa.Table, arrivals: np.ndarray, low: float, high: float) -> Tally:
    inside = (low <= arrivals) & (arrivals < high)
    if not inside.all():
        events, arrivals = events.filter(pa.array(inside)), arrivals[inside]
    return tally(engine, events, arrivals)


def _row(total: Tally) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"tally": [total.to_json()]})


@contextmanager
def _watched(session: SparkSession, progress: Progress | None) -> Iterator[None]:
    """Reports how many tasks of the jobs within are done; an exception that `progress` raises cancels them."""
    if progress is None:
        yield
        return
    context, group, done = session.sparkContext, f"backtest-{uuid.uuid4().hex}", threading.Event()
    refused: list[BaseException] = []

    def watch() -> None:
        tracker = context.statusTracker()
        while not done.wait(_POLL_SECONDS):
            jobs = (tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group))
            stages = [tracker.getStageInfo(n) for job in jobs if job is not None for n in job.stageIds]
            known = [stage for stage in stages if stage is not None]
            tasks = sum(stage.numTasks for stage in known)
            try:
                progress(sum(stage.numCompletedTasks for stage in known) / tasks if tasks else 0.0)
            except BaseException as error:
                refused.append(error)
                context.cancelJobGroup(group)
                return

    context.setJobGroup(group, "backtest", interruptOnCancel=True)
    watcher = threading.Thread(target=watch, name="backtest-progress", daemon=True)
    watcher.start()
    try:
        yield
    except Exception:
        if refused:
            raise refused[0] from None
        raise
    finally:
        done.set()
        watcher.join()
        context.setLocalProperty("spark.jobGroup.id", "")
        context.setLocalProperty("spark.job.description", "")


def _session(events: object, spark: SparkSession | None) -> SparkSession:
    if isinstance(events, DataFrame):
        return events.sparkSession
    found = spark or SparkSession.getActiveSession()
    if found is None:
        raise TidingsError("a backtest needs a Spark session; start one by tidings.spark.session()")
    return found


def _folder(session: SparkSession) -> str | None:
    """A folder that ends with the session."""
    with suppress(Exception):
        return str(session.sparkContext._temp_dir)
    return None


def _seconds(moment: Moment, missing: float) -> float:
    """Seconds since 1970. A datetime without a zone is one of this machine."""
    if moment is None:
        return missing
    return moment.timestamp() if isinstance(moment, datetime) else float(moment)
