"""Answers ranges of the log with a divided index, by tasks of two stages; slices.py records the answers.

A range is read in chunks of a few hundred events. Stage 1 ends it after about a slice of answers of the front, and a part
after as many of its own: the slice then ends with the last chunk that the front and all parts have answered, and what lies
behind it is matched again. So memory has a ceiling also where one part has very many answers.

Where a range and its chunks end depends on times. If a host is lost during stage 2, its tasks of stage 1 are repeated, and other tasks of
stage 2 have read the first attempt: the answers then do not fit each other, which is noticed by the attempt that each names.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import RDD, SparkContext

from tidings.kinds.operators.learning import Learning
from tidings.model.event import EVENT_SCHEMA
from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.spark.batch_size import ChunkSize
from tidings.spark.divided.stages import (
    CARRIED,
    by_parts,
    match_front,
    match_part,
    to_bytes,
    with_graphs,
    with_positions,
    without_graphs,
)
from tidings.spark.matching import in_log_order
from tidings.spark.task_index import TaskIndex
from tidings.storage.divided_index import DividedIndex
from tidings.storage.event_log import EventLog, Offset, Position
from tidings.storage.part_visits import PartVisits, total

_CHUNK = 1 << 32  # positions of a chunk

Range = tuple[Position, Offset]


class Limits(NamedTuple):
    """After how many answers and how many seconds a task ends its range."""

    answers: int
    seconds: float


class Chunk(NamedTuple):
    """How many events, and how many that could not be read, end where."""

    events: int
    errors: int
    reached: Position


class Answers(NamedTuple):
    """Of the front, which has `chunks`, or of a part to a range; `last` is the chunk that a part ended after before its
    time. Both tables have positions: notifications, and the events that they are of. `visits` counts also what lies behind
    that chunk: it was visited."""

    range: int
    notifications: bytes
    notified: bytes
    attempt: str
    chunks: Sequence[Chunk] = ()
    last: int | None = None
    learnt: bytes = b""
    visits: bytes = b""


class Answered(NamedTuple):
    """What a slice is made of."""

    events: int
    errors: int
    notifications: pa.Table
    notified: pa.Table
    reached: Position
    visits: PartVisits
    learnt: Learning


class _Visitors(NamedTuple):
    """The events of a chunk that visit a part."""

    range: int
    chunk: int
    events: bytes


class _End(NamedTuple):
    """Sent to every part for every range: the attempt whose rows it got."""

    range: int
    attempt: str


_Row = tuple[int, _Visitors | _End | Answers]  # for a part; answers are passed on


def answer_ranges(
    context: SparkContext,
    index: TaskIndex,
    log: str,
    limits: Limits,
    ranges: Sequence[Range],
    parts: int,
) -> RDD[Answers]:
    """A job; its result is for `join_answers`."""
    numbered = context.parallelize(list(enumerate(ranges)), len(ranges))
    rows = numbered.mapPartitions(partial(_front_task, index, log, limits))
    return rows.partitionBy(parts, int).mapPartitions(partial(_part_task, index, limits))


def join_answers(found: Sequence[Answers], ranges: int) -> list[Answered] | None:
    """The answers to each range; None if they are of different attempts, and the job has to be run again."""
    by_range = [[each for each in found if each.range == number] for number in range(ranges)]
    if any(len({each.attempt for each in answers}) > 1 for answers in by_range):
        return None
    return [_join(answers) for answers in by_range]


def _front_task(
    index: TaskIndex, log: str, limits: Limits, ranges: Iterator[tuple[int, Range]]
) -> Iterator[_Row]:
    opened = index.open()
    parts = len(opened.division.parts) if isinstance(opened, DividedIndex) else 0
    for number, (start, end) in ranges:
        chunks, found, size = list[Chunk](), _Found(), ChunkSize(limits.answers)
        attempt = uuid.uuid4().hex
        began = time.monotonic()
        for batch, reached in EventLog(log).pieces(Position(*start), Offset(*end), size.rows):
            at = time.monotonic()
            notifications, forwards = match_front(opened, batch)
            size.matched(batch.num_rows, len(notifications), time.monotonic() - at)
            events = with_positions(batch, len(chunks) * _CHUNK)
            found.add(notifications, events)
            for part, rows in by_parts(forwards):
                visitors = to_bytes(with_graphs(events, forwards, rows))
                yield part, _Visitors(number, len(chunks), visitors)
            errors = pc.sum(pc.equal(notifications["verdict"], "error")).as_py() or 0
            chunks.append(Chunk(batch.num_rows, errors, reached))
            is_full = found.count >= limits.answers or time.monotonic() - began >= limits.seconds
            if is_full and reached < Position(*end):
                break
        else:
            last = chunks.pop() if chunks else Chunk(0, 0, Position(*start))
            chunks.append(last._replace(reached=Position(*end)))
        yield from ((part, _End(number, attempt)) for part in range(parts))
        learnt = opened.learnt().to_bytes()
        yield number, Answers(number, *found.to_bytes(), attempt, chunks=chunks, learnt=learnt)


def _part_task(index: TaskIndex, limits: Limits, rows: Iterator[_Row]) -> Iterator[Answers]:
    visitors, attempts = list[tuple[int, _Visitors]](), dict[int, str]()
    for part, row in rows:
        if isinstance(row, Answers):
            yield row
        elif isinstance(row, _End):
            attempts[row.range] = row.attempt
        else:
            visitors.append((part, row))
    for number, attempt in attempts.items():
        yield Answers(number, b"", b"", attempt)
    for (part, number), chunks in groupby(sorted(visitors), key=lambda row: (row[0], row[1].range)):
        found, last, visits = _Found(), None, PartVisits()
        for _, (_, chunk, piece) in chunks:
            events = pa.ipc.open_stream(piece).read_all()
            notifications, visited = match_part(index.open(), part, events)
            visits = total([visits, visited])
            found.add(notifications, without_graphs(events))
            if found.count >= limits.answers:
                last = chunk
                break
        yield Answers(number, *found.to_bytes(), attempts[number], last=last, visits=visits.to_bytes())


class _Found:
    """Gathers notifications in the order of their events, and these events."""

    def __init__(self) -> None:
        self.count = 0
        self._tables: tuple[list[pa.Table], list[pa.Table]] = ([], [])

    def add(self, notifications: pa.Table, events: pa.Table) -> None:
        if notifications.num_rows:
            self.count += notifications.num_rows
            ordered, rows = in_log_order(notifications, events)
            self._tables[0].append(ordered.append_column(CARRIED, events[CARRIED].take(rows)))
            self._tables[1].append(events.take(pc.unique(rows)))

    def to_bytes(self) -> tuple[bytes, bytes]:
        found, notified = (to_bytes(pa.concat_tables(tables)) if tables else b"" for tables in self._tables)
        return found, notified


def _join(found: Sequence[Answers]) -> Answered:
    (front,) = (each for each in found if each.chunks)
    last = min([len(front.chunks) - 1, *(each.last for each in found if each.last is not None)])
    chunks, learnt = front.chunks[: last + 1], Learning.from_bytes(front.learnt)
    notifications = _read([each.notifications for each in found], NOTIFICATION_SCHEMA, last)
    notified = _read([each.notified for each in found], EVENT_SCHEMA, last)
    first = np.unique(notified[CARRIED].to_numpy(), return_index=True)[1]  # each event once
    return Answered(
        sum(chunk.events for chunk in chunks),
        sum(chunk.errors for chunk in chunks),
        notifications.drop_columns([CARRIED]),
        notified.take(pa.array(first)).drop_columns([CARRIED]),
        Position(*chunks[-1].reached),
        total(PartVisits.from_bytes(each.visits) for each in found),
        learnt,
    )


def _read(tables: Sequence[bytes], schema: pa.Schema, last: int) -> pa.Table:
    """All tables as one, up to a chunk, in the order of positions; that of equal ones is the front's, then the parts'."""
    empty = schema.append(pa.field(CARRIED, pa.int64())).empty_table()
    read = [pa.ipc.open_stream(table).read_all() for table in tables if table]
    whole = pa.concat_tables([empty, *read], promote_options="default")
    return whole.filter(pc.less(whole[CARRIED], (last + 1) * _CHUNK)).sort_by(CARRIED)
