"""Matches a micro-batch's range of the log in slices: a slice has a bounded number of answers, and few of them wait to
be recorded, so that memory has a ceiling whatever the match rate, and answers flow while a backlog is worked off.

A small micro-batch is matched in this process, because a Spark job costs some 150 ms whatever it does. A larger one is
matched by tasks, which read the log themselves and send their answers back as Arrow (in two stages if the index is divided:
divided/ranges.py); so is every one whose subscriptions call operators, because a user's code may fail in ways that end
its process.

A slice ends between any two events. The recorder stores its end with it: a micro-batch that is replayed after a crash
goes on from there, with the version that was pinned for it.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark import RDD
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidings.engine.engine import Engine
from tidings.kinds.operators.learning import Learning, merged
from tidings.model.event import EVENT_SCHEMA
from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.spark.batch_size import BatchSize, ChunkSize
from tidings.spark.divided.ranges import Limits, answer_ranges, join_answers
from tidings.spark.divided.stages import to_bytes
from tidings.spark.matching import in_log_order, match_batches
from tidings.spark.offsets import BatchRange
from tidings.spark.source import limited, split
from tidings.spark.task_index import TaskIndex
from tidings.storage import operator_feedback, versions
from tidings.storage.divided_index import visits_of
from tidings.storage.event_log import EventLog, Offset, Position
from tidings.storage.part_loads import add_visits
from tidings.storage.part_visits import PartVisits, total

SLICE = 20_000  # answers after which a slice ends
SLICE_SECONDS = 120.0  # and seconds: however slow an operator is, the stream is seen to make progress
# What Spark says of a worker that a machine under load did not start in time, after it has tried each task four times.
NO_WORKER = "Python worker failed to connect back"
PAUSES = (1.0, 5.0, 15.0)  # seconds before a job, or a query, is tried again

logger = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class Slice(NamedTuple):
    """Answers to consecutive events, in the log's order, and the events that they are of. It ends at `reached`;
    `events` and `errors` count all events and those that could not be read, `visits` those of parts of a divided index."""

    events: int
    errors: int
    notifications: pa.Table
    notified: pa.Table
    reached: Position
    visits: PartVisits = PartVisits()


class MicroBatch(NamedTuple):
    """A micro-batch of a query: its number, the version of the index and the range of the log."""

    query: str
    number: int
    version: str
    range: BatchRange


class Recorder(Protocol):
    """Where slices go."""

    def resume(self, batch: MicroBatch) -> Position | None:
        """The end of the last slice of this micro-batch that is recorded; None if there is none."""

    def record(self, batch: MicroBatch, part: Slice) -> None:
        """Records a slice. The last one reaches the end of the micro-batch's range."""


class SliceMatcher:
    """Matches the micro-batches of one query. `size` decides which are small."""

    def __init__(
        self,
        spark: SparkSession,
        log: Path,
        index: Path,
        pickled: bytes,
        recorder: Recorder,
        size: BatchSize,
        *,
        answers: int = SLICE,
        memory: int | None = None,
    ) -> None:
        self._context, self._log, self._recorder = spark.sparkContext, EventLog(log), recorder
        self._index, self._pickled, self._size, self._answers = index, pickled, size, answers
        self._memory = memory
        self._calls: tuple[str, bool] = ("", False)

    def __call__(self, batch: MicroBatch) -> None:
        """Matches and records what is not yet recorded of a micro-batch."""
        start = self._recorder.resume(batch)
        if start is None:
            start = Position(*(batch.range.start or self._log.start()))
        end = batch.range.end
        events = sum(frame.rows for frame in self._log.frames(Offset(*start[:2]), end)) - start.row
        if self._size.is_small(events) and not self._has_calls(batch.version):
            self._match_here(batch, start)
        else:
            with _RecordingThread(partial(self._record, batch), self._context.defaultParallelism) as record:
                learnt = merged(self._match_in_tasks(batch.version, start, end, record))
            base = versions.Version.parse(batch.version).base
            operator_feedback.record(self._index, batch.query, base, batch.number, learnt)

    def _has_calls(self, version: str) -> bool:
        if self._calls[0] != version:
            self._calls = version, bool(versions.calls(self._index, versions.Version.parse(version)))
        return self._calls[1]

    def _task_index(self, version: str) -> TaskIndex:
        return TaskIndex(str(self._index), version, self._pickled, self._memory)

    def _match_here(self, batch: MicroBatch, start: Position) -> None:
        index = self._task_index(batch.version).open()
        began = time.perf_counter()
        for part in slices(index, self._log, start, batch.range.end, self._answers):
            self._size.matched_here(part.events, len(part.notifications), time.perf_counter() - began)
            self._record(batch, part)
            began = time.perf_counter()

    def _record(self, batch: MicroBatch, part: Slice) -> None:
        self._recorder.record(batch, part)
        add_visits(self._index, batch.query, versions.Version.parse(batch.version).base, part.visits)

    def _match_in_tasks(
        self, version: str, start: Position, end: Offset, record: Callable[[Slice], None]
    ) -> Iterator[Learning]:
        """Runs jobs of a few tasks, each with about a slice of answers; yields what each task has learnt."""
        tasks = self._context.defaultParallelism
        while start < Position(*end):
            ranges = self._ranges(start, end, tasks)
            began = time.perf_counter()
            found = self._run_tasks(version, ranges)
            seconds = time.perf_counter() - began
            events = sum(part.events for part, _ in found)
            self._size.matched_in_tasks(events, sum(len(part.notifications) for part, _ in found), seconds)
            for (_, high), (part, learnt) in zip(ranges, found, strict=True):
                record(part)
                yield learnt
                if part.reached < Position(*high):  # more answers than expected: before what follows
                    yield from self._match_in_tasks(version, part.reached, high, record)
            start = Position(*ranges[-1][1])

    def _ranges(self, start: Position, end: Offset, tasks: int) -> list[tuple[Position, Offset]]:
        """The next ranges, one for each task, of about a slice of answers."""
        first = Offset(start.segment, start.byte)
        end = limited(self._log, first, end, self._size.fitting(tasks * self._answers))
        parts = split(self._log, first, end, tasks)
        return [(max(start, Position(*part.start)), part.end) for part in parts] or [(start, end)]

    def _run_tasks(
        self, version: str, ranges: Sequence[tuple[Position, Offset]]
    ) -> list[tuple[Slice, Learning]]:
        index, log = self._task_index(version), str(self._log.folder)
        division = versions.division(self._index, versions.Version.parse(version))
        if division is not None:
            limits = Limits(self._answers, SLICE_SECONDS)
            job = answer_ranges(self._context, index, log, limits, ranges, len(division.parts))
            while (answered := join_answers(_collect(job), len(ranges))) is None:
                logger.warning("a host was lost while a part of the log was matched; matching it again")
            return [(Slice(*found), learnt) for *found, learnt in answered]
        task = partial(_task, index, log, self._answers)
        reports = _collect(self._context.parallelize(ranges, len(ranges)).mapPartitions(task))
        return [_from_report(*report) for report in reports]


def _collect(job: RDD[_Result]) -> list[_Result]:
    """The result of a job, which is tried again if its workers did not start in time."""
    for pause in PAUSES:
        try:
            return job.collect()
        except (Py4JJavaError, PySparkException) as error:
            if NO_WORKER not in str(error):
                raise
            logger.warning("Spark's Python workers did not start in time; trying again in %.0f s", pause)
            time.sleep(pause)
    return job.collect()


class _RecordingThread:
    """Records slices one after the other while the next ones are matched; `waiting` is how many may wait for it. After
    one that failed none is recorded: what is recorded has no gap. The block ends when all are recorded, and raises what
    recording has raised."""

    def __init__(self, record: Callable[[Slice], None], waiting: int) -> None:
        self._record, self._waiting, self._failed = record, waiting, False
        self._thread = ThreadPoolExecutor(1, "recording")
        self._pending: deque[Future[None]] = deque()

    def __enter__(self) -> _RecordingThread:
        return self

    def __exit__(self, *raised: object) -> None:
        self._thread.shutdown()
        if raised[0] is None:
            self._wait_until_pending(0)

    def __call__(self, part: Slice) -> None:
        self._wait_until_pending(self._waiting - 1)
        self._pending.append(self._thread.submit(self._record_next, part))

    def _wait_until_pending(self, most: int) -> None:
        while len(self._pending) > most:
            self._pending.popleft().result()

    def _record_next(self, part: Slice) -> None:
        if self._failed:
            return
        try:
            self._record(part)
        except BaseException:
            self._failed = True
            raise


def slices(
    index: Engine, log: EventLog, start: Position, end: Offset, answers: int = SLICE
) -> Iterator[Slice]:
    """The answers to the events between two places, in slices of about so many answers."""
    chunk = ChunkSize(answers)
    held: list[Slice] = []
    count, slice_began = 0, time.monotonic()
    for batch, reached in log.pieces(start, end, chunk.rows):
        began = time.monotonic()
        part = _match(index, batch, reached)
        now = time.monotonic()
        chunk.matched(batch.num_rows, len(part.notifications), now - began)
        held.append(part)
        count += len(part.notifications)
        if (count >= answers or now - slice_began >= SLICE_SECONDS) and reached < Position(*end):
            yield _joined(held, reached)
            held, count, slice_began = [], 0, time.monotonic()
    yield _joined(held, Position(*end))


def _match(index: Engine, batch: pa.RecordBatch, reached: Position) -> Slice:
    (found,) = match_batches(index, iter([batch]))
    notifications, rows = in_log_order(pa.Table.from_batches([found]), pa.Table.from_batches([batch]))
    errors = pc.sum(pc.equal(notifications["verdict"], "error")).as_py() or 0
    notified = pa.Table.from_batches([batch.take(pc.unique(rows))])
    return Slice(batch.num_rows, errors, notifications, notified, reached, visits_of(index))


def _joined(parts: Sequence[Slice], reached: Position) -> Slice:
    return Slice(
        sum(part.events for part in parts),
        sum(part.errors for part in parts),
        pa.concat_tables([NOTIFICATION_SCHEMA.empty_table(), *(part.notifications for part in parts)]),
        pa.concat_tables([EVENT_SCHEMA.empty_table(), *(part.notified for part in parts)]),
        reached,
        total(part.visits for part in parts),
    )


_Report = tuple[int, int, bytes, bytes, Position, bytes]


def _task(
    task_index: TaskIndex, log: str, answers: int, ranges: Iterator[tuple[Position, Offset]]
) -> Iterator[_Report]:
    """One task: reports the first slice of each of its ranges, which is all of it unless there are very many answers."""
    index = task_index.open()
    for start, end in ranges:
        part = next(slices(index, EventLog(log), Position(*start), Offset(*end), answers))
        yield (
            part.events,
            part.errors,
            to_bytes(part.notifications),
            to_bytes(part.notified),
            part.reached,
            index.learnt().to_bytes(),
        )


def _from_report(
    events: int, errors: int, notifications: bytes, notified: bytes, reached: Position, learnt: bytes
) -> tuple[Slice, Learning]:
    answers, about = (pa.ipc.open_stream(data).read_all() for data in (notifications, notified))
    return Slice(events, errors, answers, about, Position(*reached)), Learning.from_bytes(learnt)
