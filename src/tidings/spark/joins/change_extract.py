"""Extracts changes of tables from events, in Spark's tasks, for the ledger.

Rows are sent as their canonical texts. An extract has only the events that change tables, numbered from 0.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from tidings.kinds.joins.changes.changes import Changes, read_changes
from tidings.kinds.joins.changes.row_images import RowImages, names_of
from tidings.kinds.joins.kind import Joins
from tidings.kinds.joins.schema.declarations import saved_tables
from tidings.kinds.joins.schema.table import Table
from tidings.model.batch import event_times
from tidings.model.envelope import arrange
from tidings.spark import version_pins
from tidings.spark.output import unfinished
from tidings.spark.task_index import TaskIndex
from tidings.storage import versions
from tidings.storage.event_log import EventLog, Offset

EXTRACT = "task int, number int, piece binary"
_ARROW = pa.schema([("task", pa.int32()), ("number", pa.int32()), ("piece", pa.binary())])


class OutputForm(NamedTuple):
    """What buckets write: deltas of joined rows, or of rows of tables, whole or with each payload once; for subscriptions
    whose ids begin with `members`, messages of a scheme instead."""

    joined: bool = False
    payload_once: bool = False
    messages: str | None = None
    members: str = ""


WHOLE_ROWS = OutputForm()


class TaskSettings(NamedTuple):
    """Where tasks find the index, which version of it counts, and where they write."""

    root: str
    pins: str
    pickled: bytes
    output: str
    buckets: int
    form: OutputForm
    first: int  # what sequences start after
    memory: int | None = None

    def joins(self) -> Joins:
        """The joins of the version that is pinned for the task's micro-batch."""
        version = version_pins.pin(Path(self.pins), self.batch(), lambda: str(versions.current(self.root)))
        return TaskIndex(self.root, version, self.pickled, self.memory).open().joins

    def batch(self) -> int:
        return int(_property("streaming.sql.batchId"))

    def aside(self) -> Path:
        """The folder of the batch's files until they are moved to the output."""
        return unfinished(Path(self.output), _property("sql.streaming.queryId"), self.batch())


class Events(NamedTuple):
    """Ids, sources and times of events, by number; `position` is the number in the whole micro-batch."""

    id: pa.Array
    source: pa.Array
    moment: np.ndarray
    position: np.ndarray

    def take(self, numbers: np.ndarray) -> Events:
        return Events(
            self.id.take(pa.array(numbers)),
            self.source.take(pa.array(numbers)),
            self.moment[numbers],
            self.position[numbers],
        )

    def table(self) -> pa.Table:
        return pa.table({"id": self.id, "source": self.source})


class ChangeExtract(NamedTuple):
    """Changes without the columns of their rows; `names` are the names of the rows."""

    changes: Changes
    names: list[pa.Array]
    events: Events

    @staticmethod
    def concat(extracts: Sequence[ChangeExtract]) -> ChangeExtract:
        columns = zip(*(extract.events for extract in extracts), strict=True)
        ids, sources, moments, _ = (list(column) for column in columns)
        numbers = np.arange(sum(map(len, moments)))
        return ChangeExtract(
            Changes.concat([extract.changes for extract in extracts]),
            [pa.concat_arrays(names) for names in zip(*(extract.names for extract in extracts), strict=True)],
            Events(pa.concat_arrays(ids), pa.concat_arrays(sources), np.concatenate(moments), numbers),
        )


def extract_task(settings: TaskSettings, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One task: extracts the changes of its batches of events."""
    tables = settings.joins().subscriptions.tables
    task = TaskContext.get()
    partition = task.partitionId() if task else 0
    for number, batch in enumerate(batches):
        extract = extract_changes(batch, tables) if batch.num_rows else None
        if extract is not None:
            row = {"task": partition, "number": number, "piece": pickle.dumps(extract, protocol=5)}
            yield pa.RecordBatch.from_pylist([row], _ARROW)


def extract_changes(batch: pa.RecordBatch, tables: Sequence[Table]) -> ChangeExtract | None:
    """The changes of tables in a batch of events; None if there are none."""
    arranged = arrange(batch)
    changes = read_changes(arranged.events, tables)
    rows = _changed_rows(changes)
    if not len(rows):
        return None
    events = arranged.events.select(["id", "source"]).take(pa.array(rows)).combine_chunks()
    ids = arranged.named(pa.RecordBatch.from_arrays([_text(events["id"])], ["event"])).column("event")
    moments = event_times(arranged.events)[rows]
    number_of = {row: number for number, row in enumerate(rows.tolist())}
    light = Changes(
        event=np.searchsorted(rows, changes.event),
        table=changes.table,
        op=changes.op,
        new=changes.new,
        old=changes.old,
        source=changes.source,
        sequence=changes.sequence,
        ties=changes.ties,
        images=[RowImages([], images.texts, images.partial) for images in changes.images],
        errors={number_of[row]: error for row, error in changes.errors.items()},
        snapshots=[(number_of[row], id) for row, id in changes.snapshots],
    )
    names = [
        names_of(table, images.columns, images.texts)
        for table, images in zip(tables, changes.images, strict=True)
    ]
    return ChangeExtract(light, names, Events(ids, _text(events["source"]), moments, np.arange(len(rows))))


def end_of_changes(
    log: EventLog, start: Offset, end: Offset, declared: str, most: int | None = None
) -> Offset | None:
    """The end of the last frame between two offsets that changes one of the tables that are declared, or requests a
    snapshot; None if there is none. With `most` it is at the latest the frame of the change of that number."""
    tables, last, before, left = saved_tables(json.loads(declared)), -1, 0, most
    for batch in log.read(start, end):
        rows = _changed_rows(read_changes(arrange(batch).events, tables))
        if left is not None:
            rows, left = rows[:left], left - len(rows)
        last = before + int(rows[-1]) if len(rows) else last
        before += batch.num_rows
        if left is not None and left <= 0:
            break
    reached = None
    for frame in log.frames(start, end) if last >= 0 else ():
        reached, last = frame.end, last - frame.rows
        if last < 0:
            break
    return reached


def _changed_rows(changes: Changes) -> np.ndarray:
    """The rows of events that change tables, should but cannot be read, or request a snapshot; ascending."""
    asked = [row for row, _ in changes.snapshots]
    return np.unique(np.concatenate([changes.event, np.array([*changes.errors, *asked], dtype=np.int64)]))


def _text(column: pa.ChunkedArray) -> pa.Array:
    texts = column.cast(pa.string()).fill_null("").combine_chunks()
    return pa.concat_arrays(texts.chunks) if isinstance(texts, pa.ChunkedArray) else texts


def _property(name: str) -> str:
    task = TaskContext.get()
    assert task is not None
    return str(task.getLocalProperty(name))
