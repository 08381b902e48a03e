"""Events -> pieces: what a task found of changes of tables, on its way to the ledger.

Rows travel as their canonical texts. A piece has only the events that say something of tables, numbered from 0.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from tidings.engine.pipeline import event_times
from tidings.kinds.joins.changes.changes import Changes, read_changes
from tidings.kinds.joins.changes.row_images import RowImages, canonical
from tidings.kinds.joins.kind import Joins
from tidings.kinds.joins.schema.table import Table
from tidings.model.envelope import arrange
from tidings.spark import version_pins
from tidings.spark.matching import opened
from tidings.spark.output import unfinished
from tidings.storage import versions

PIECE = "task int, number int, piece binary"
_ARROW = pa.schema([("task", pa.int32()), ("number", pa.int32()), ("piece", pa.binary())])


class Site(NamedTuple):
    """Where tasks find the index, which version of it counts, and where they write."""

    root: str
    pins: str
    shipment: bytes
    output: str
    buckets: int
    joined: bool

    def joins(self) -> Joins:
        """The joins of the version that is pinned for the task's micro-batch."""
        version = version_pins.pin(Path(self.pins), self.batch(), lambda: str(versions.current(self.root)))
        return opened(self.root, version, self.shipment).joins

    def batch(self) -> int:
        return int(_property("streaming.sql.batchId"))

    def aside(self) -> Path:
        """Where the batch's files are until they are put in place."""
        return unfinished(Path(self.output), _property("sql.streaming.queryId"), self.batch())


class Events(NamedTuple):
    """Events by number: what notifications call them, and when they happened."""

    id: pa.Array
    source: pa.Array
    moment: np.ndarray

    def take(self, numbers: np.ndarray) -> Events:
        return Events(
            self.id.take(pa.array(numbers)), self.source.take(pa.array(numbers)), self.moment[numbers]
        )

    def table(self) -> pa.Table:
        return pa.table({"id": self.id, "source": self.source})


class Piece(NamedTuple):
    """Changes without the columns of their rows; `names` is what each row is known by."""

    changes: Changes
    names: list[pa.Array]
    events: Events

    @staticmethod
    def concat(pieces: Sequence[Piece]) -> Piece:
        columns = zip(*(piece.events for piece in pieces), strict=True)
        ids, sources, moments = (list(column) for column in columns)
        return Piece(
            Changes.concat([piece.changes for piece in pieces]),
            [pa.concat_arrays(names) for names in zip(*(piece.names for piece in pieces), strict=True)],
            Events(pa.concat_arrays(ids), pa.concat_arrays(sources), np.concatenate(moments)),
        )


def cut(site: Site, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What one task does."""
    tables = site.joins().subscriptions.tables
    task = TaskContext.get()
    partition = task.partitionId() if task else 0
    for number, batch in enumerate(batches):
        piece = piece_of(batch, tables) if batch.num_rows else None
        if piece is not None:
            row = {"task": partition, "number": number, "piece": pickle.dumps(piece, protocol=5)}
            yield pa.RecordBatch.from_pylist([row], _ARROW)


def piece_of(batch: pa.RecordBatch, tables: Sequence[Table]) -> Piece | None:
    """What a batch of events says of tables; None if nothing."""
    arranged = arrange(batch)
    changes = read_changes(arranged.events, tables)
    asked = [row for row, _ in changes.snapshots]
    told = np.unique(np.concatenate([changes.event, np.array([*changes.errors, *asked], dtype=np.int64)]))
    if not len(told):
        return None
    some = arranged.events.select(["id", "source"]).take(pa.array(told)).combine_chunks()
    ids = arranged.named(pa.RecordBatch.from_arrays([_text(some["id"])], ["event"])).column("event")
    moments = event_times(arranged.events, 0, batch.num_rows)[told]
    place = {row: number for number, row in enumerate(told.tolist())}
    light = Changes(
        event=np.searchsorted(told, changes.event),
        table=changes.table,
        op=changes.op,
        new=changes.new,
        old=changes.old,
        source=changes.source,
        sequence=changes.sequence,
        ties=changes.ties,
        images=[RowImages([], images.texts, images.partial) for images in changes.images],
        errors={place[row]: error for row, error in changes.errors.items()},
        snapshots=[(place[row], id) for row, id in changes.snapshots],
    )
    names = [
        names_of(table, images.columns, images.texts)
        for table, images in zip(tables, changes.images, strict=True)
    ]
    return Piece(light, names, Events(ids, _text(some["source"]), moments))


def names_of(table: Table, columns: Sequence[pa.Array], texts: pa.Array) -> pa.Array:
    """What rows are known by: the text of the key, or of the row."""
    if not table.key:
        return texts
    key = Table("key", {name: table.columns[name] for name in table.key})
    return canonical(key, [columns[place] for place in table.key_places])


def _text(column: pa.ChunkedArray) -> pa.Array:
    texts = column.cast(pa.string()).fill_null("").combine_chunks()
    return pa.concat_arrays(texts.chunks) if isinstance(texts, pa.ChunkedArray) else texts


def _property(name: str) -> str:
    task = TaskContext.get()
    assert task is not None
    return str(task.getLocalProperty(name))
