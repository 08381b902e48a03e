"""Matches events with a divided index in two stages and one shuffle. RSS cluster, 3.

    events ─► front ─► its notifications ───────────────┐
                  └──► (part, events that visit it) ─► shuffle by part ─► parts ─► notifications

Both are one lineage, so the front is matched once. What is shuffled are whole Arrow batches, one to a row: a row for each
event would be converted four times between Python and Java.

A graph that is expensive to parse, such as RDF/XML, is sent as N-Triples instead of its document: stage 2 reads these by a compiled
loop, in a fraction of the time (docs/decisions/spark-two-stages.md).

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
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from tidings.engine.engine import Engine
from tidings.model.batch import CONTENT
from tidings.model.envelope import ArrangedEvents, arrange
from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.spark.task_index import TaskIndex
from tidings.storage.divided_index import DividedIndex, Forwards
from tidings.storage.part_visits import PartVisits

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
GRAPH = "\0graph"
"""The column of graphs that stage 1 has parsed, as N-Triples."""
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
                visiting = without_documents(pa.Table.from_batches([batch]), forwards, rows)
                yield from shuffled_rows(part, task, number, visiting, forwarded=True)


def _part_task(index: TaskIndex, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for part, forwarded, piece in received(batches):
        found = match_part(index.open(), part, piece)[0] if forwarded else piece
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


def match_part(index: Engine, part: int, events: pa.Table) -> tuple[pa.Table, PartVisits]:
    """The notifications of a part, and the counts of these visits."""
    assert isinstance(index, DividedIndex)
    graphs = events[GRAPH].to_pylist() if GRAPH in events.column_names else None
    given = without_graphs(events)
    arranged = arrange(given.drop_columns([CARRIED]) if CARRIED in given.column_names else given)
    index.visits()  # those of an attempt that has failed are not counted
    found = index.match_part(part, arranged.events, graphs)
    return _named(arranged, found), index.visits()


def _named(events: ArrangedEvents, found: pa.Table) -> pa.Table:
    named = [events.named(batch) for batch in found.combine_chunks().to_batches()]
    return pa.Table.from_batches(named, NOTIFICATION_SCHEMA)


def with_positions(batch: pa.RecordBatch, first: int) -> pa.Table:
    """The events with their positions, the first of which is given."""
    positions = pa.array(first + np.arange(batch.num_rows))
    return pa.Table.from_batches([batch]).append_column(CARRIED, positions)


def with_graphs(events: pa.Table, forwards: Forwards, rows: np.ndarray) -> pa.Table:
    """The events that visit a part, with the graphs that were parsed, if any of them was."""
    taken = events.take(pa.array(rows))
    if forwards.graphs is None:
        return taken
    graphs = forwards.graphs.take(pa.array(rows))
    return taken if graphs.null_count == len(graphs) else taken.append_column(GRAPH, graphs)


def without_graphs(events: pa.Table) -> pa.Table:
    return events.drop_columns([GRAPH]) if GRAPH in events.column_names else events


def without_documents(events: pa.Table, forwards: Forwards, rows: np.ndarray) -> pa.Table:
    """The same, without the documents of these graphs. An event without an id keeps its own, which makes the id."""
    taken = with_graphs(events, forwards, rows)
    if GRAPH not in taken.column_names or "id" not in taken.column_names:
        return taken
    has_id = pc.fill_null(pc.not_equal(taken["id"].cast(pa.string()), ""), False)
    is_needless = pc.and_(pc.is_valid(taken[GRAPH]), has_id)
    at = taken.column_names.index(CONTENT)
    nothing = pa.scalar(None, taken[CONTENT].type)
    return taken.set_column(at, CONTENT, pc.if_else(is_needless, nothing, taken[CONTENT]))


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
