"""Matches events with a divided index in two stages and one shuffle. RSS cluster, 3.

    events ─► front ─► its notifications ───────────────┐
                  └──► (part, events that visit it) ─► shuffle by part ─► parts ─► notifications

Both are one lineage, so the front is matched once. What is shuffled are whole Arrow batches, one to a row: a row for each
event would be converted four times between Python and Java.

A task of stage 2 gets all that visits one part, so a worker opens few parts: `repartitionById` sends a row to the task that its
number names. A hash of the part would send 8 parts to 5 of 8 tasks.

When a host is lost, Spark repeats those tasks of stage 1 whose rows were there, while tasks of stage 2 that are done stay done. So where a
row goes depends on its events and on the number of its task, never on the order in which events came.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from tidings.engine.engine import Engine
from tidings.model.envelope import ArrangedEvents, arrange
from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.spark.task_index import TaskIndex
from tidings.storage.divided_index import DividedIndex, Forwards

SHUFFLED = "part int, task int, number int, forwarded boolean, piece binary"
"""Events that visit a part, or what stage 2 only passes on; of the batch with this number of this task of stage 1."""
_SHUFFLED_ARROW = pa.schema(
    [
        ("part", pa.int32()),
        ("task", pa.int32()),
        ("number", pa.int32()),
        ("forwarded", pa.bool_()),
        ("piece", pa.binary()),
    ]
)
CARRIED = "\0position"
"""The column of an event's position, in streams that keep the order of their log; no event of a log has such a column."""
_PIECE_BYTES = 8 << 20  # of one row
_ROWS = 8_192  # of notifications that are given to Java at once, as in matching.py


def match_divided(events: DataFrame, index: TaskIndex, parts: int) -> DataFrame:
    """The notifications that events cause, in as many partitions as the index has parts."""
    shuffled = by_part(events.mapInArrow(partial(_front_task, index), SHUFFLED), parts)
    return shuffled.mapInArrow(partial(_part_task, index), from_arrow_schema(NOTIFICATION_SCHEMA))


def by_part(rows: DataFrame, parts: int) -> DataFrame:
    """The shuffle. Its number of partitions is given, so adaptive execution does not change it."""
    return rows.repartitionById(parts, "part")


def _front_task(index: TaskIndex, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    opened, task = index.open(), task_number()
    for number, batch in enumerate(batches):
        if batch.num_rows:
            found, forwards = match_front(opened, batch)
            # All to one task: if this one is repeated because its host is lost, its batches may be others.
            yield from shuffled_rows(task, task, number, found)
            for part, rows in by_parts(forwards):
                visiting = pa.Table.from_batches([batch.take(pa.array(rows))])
                yield from shuffled_rows(part, task, number, visiting, forwarded=True)


def _part_task(index: TaskIndex, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for part, forwarded, piece in received(batches):
        found = match_part(index.open(), part, piece) if forwarded else piece
        for first in range(0, found.num_rows, _ROWS):
            yield from found.slice(first, _ROWS).combine_chunks().to_batches()


def task_number() -> int:
    task = TaskContext.get()
    return task.partitionId() if task else 0


def match_front(index: Engine, batch: pa.RecordBatch) -> tuple[pa.Table, Forwards]:
    """The notifications of the front, and which events visit which parts. A version that is not divided, which a running
    stream may come to, is all front."""
    arranged = arrange(batch)
    if isinstance(index, DividedIndex):
        found, forwards = index.match_front(arranged.events)
    else:
        found = pa.Table.from_batches([index.match(arranged.events.combine_chunks().to_batches()[0])])
        forwards = Forwards(np.zeros(0, np.int64), np.zeros(0, np.int64))
    return _named(arranged, found), forwards


def match_part(index: Engine, part: int, events: pa.Table) -> pa.Table:
    """The notifications of a part."""
    assert isinstance(index, DividedIndex)
    arranged = arrange(events.drop_columns([CARRIED]) if CARRIED in events.column_names else events)
    return _named(arranged, index.match_part(part, arranged.events))


def _named(events: ArrangedEvents, found: pa.Table) -> pa.Table:
    named = [events.named(batch) for batch in found.combine_chunks().to_batches()]
    return pa.Table.from_batches(named, NOTIFICATION_SCHEMA)


def with_positions(batch: pa.RecordBatch, first: int) -> pa.Table:
    """The events with their positions, the first of which is given."""
    positions = pa.array(first + np.arange(batch.num_rows))
    return pa.Table.from_batches([batch]).append_column(CARRIED, positions)


def by_parts(forwards: Forwards) -> Iterator[tuple[int, np.ndarray]]:
    """Each part that is visited, with the rows of events that visit it."""
    for part in np.unique(forwards.part).tolist():
        yield part, forwards.event[forwards.part == part]


def shuffled_rows(
    part: int, task: int, number: int, table: pa.Table, *, forwarded: bool = False
) -> Iterator[pa.RecordBatch]:
    """A table as rows of the shuffle, none of which is very large."""
    most = max(1, table.num_rows * _PIECE_BYTES // max(1, table.nbytes))
    for first in range(0, table.num_rows, most):
        piece = to_bytes(table.slice(first, most))
        yield pa.RecordBatch.from_pylist(
            [{"part": part, "task": task, "number": number, "forwarded": forwarded, "piece": piece}],
            _SHUFFLED_ARROW,
        )


def received(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, bool, pa.Table]]:
    """The part, whether its events are to be matched there, and the table of each row of the shuffle."""
    for batch in batches:
        parts, forwarded = (batch.column(name).to_pylist() for name in ("part", "forwarded"))
        for part, visits, piece in zip(parts, forwarded, batch.column("piece"), strict=True):
            yield part, visits, pa.ipc.open_stream(piece.as_buffer()).read_all()


def to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
