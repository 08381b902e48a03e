"""Keeps the ledger of a stream, one group of Spark's state: all rows by key, from which the effect of a change is
known.

Updates, deletes by key, repeated changes and truncates are resolved here. Buckets get inserted and deleted rows,
whole and in the order of the log, each bucket those that its partition class assigns to it. A class that is new
in a version of the index gets the existing rows.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from tidings.kinds.joins.changes.changes import TRUNCATE
from tidings.kinds.joins.changes.ledger import Ledger
from tidings.kinds.joins.changes.row_images import names_of
from tidings.kinds.joins.changes.sequences import Sequences
from tidings.kinds.joins.index.partition import Partition, partition_of, partitions
from tidings.kinds.joins.kind import Joins, read_texts
from tidings.kinds.joins.schema.table import Table
from tidings.spark.joins.change_extract import ChangeExtract, Events, TaskSettings
from tidings.spark.joins.state_store import Shelves

WORK = "class string, bucket int, errand binary"
HELD = pa.schema([("place", pa.int64()), ("table", pa.string()), ("row", pa.string())])
_KNOWN = pa.schema([*HELD, ("name", pa.string())])


class BucketWork(NamedTuple):
    """The work of one bucket: load the existing `rows`; then apply inserts (sign 1) and deletes (-1), in order; then
    answer snapshots. The column `place` selects the shelf of a row in the bucket's state."""

    partition: Partition
    rows: pa.Table  # HELD
    event: np.ndarray
    sign: np.ndarray
    changed: pa.Table  # HELD, parallel to `event`
    events: Events
    snapshots: list[tuple[int, str]]  # event, subscription


class UnreadEvents(NamedTuple):
    """The number of events of a batch, and the errors of those that could not be read; it belongs to no bucket."""

    heard: int
    errors: list[str]
    events: Events


class LedgerProcessor(StatefulProcessor):
    """Converts extracts of changes to the work of buckets."""

    def __init__(self, settings: TaskSettings) -> None:
        self._settings = settings

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._rows = Shelves(handle, "rows", _KNOWN)
        self._facts = handle.getValueState("facts", "json string")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        joins = self._settings.joins()
        given = sorted(rows, key=lambda row: (row.task, row.number))
        extract = ChangeExtract.concat([pickle.loads(row.piece) for row in given])
        facts = self._facts.get()
        book = _Book.begun(joins) if facts is None else _Book.read(facts[0], joins)
        before, book.partitions = (
            book.partitions,
            partitions(_live_shapes(joins), joins.tables, self._settings.buckets, book.partitions.values()),
        )
        fresh = {
            (name, table)
            for name, partition in book.partitions.items()
            for table in partition.columns
            if name not in before or table not in before[name].columns
        }
        names = [column.to_pylist() for column in extract.names]
        touched: np.ndarray | None = None
        if not fresh and facts is not None and TRUNCATE not in extract.changes.op:
            touched = np.concatenate(
                [_places(table, chosen_rows) for table, chosen_rows in zip(book.tables, names, strict=True)]
            )
        book.take(self._rows.take(touched))
        work_by_bucket = _WorkByBucket(book, extract.events)
        work_by_bucket.fill(fresh)
        errors = dict(extract.changes.errors)
        texts = [images.texts.to_pylist() for images in extract.changes.images]
        work_by_bucket.send(list(book.ledger.steps(extract.changes, names, texts, errors)))
        for event, id in extract.changes.snapshots:
            number = joins.subscriptions.find(id)
            if number < 0:
                errors[event] = f"there is no subscription {id!r} over tables; look at its spelling"
            else:
                shape = joins.subscriptions.shapes[joins.subscriptions.shape_of.all[number]]
                work_by_bucket.ask(partition_of(shape, joins.tables, 1).name, event, id)
        self._rows.put(book.rows(), touched)
        self._facts.update((book.to_json(),))
        wrong = np.array(sorted(errors), dtype=np.int64)
        unread = UnreadEvents(
            len(extract.events.id), [errors[event] for event in wrong.tolist()], extract.events.take(wrong)
        )
        yield Row(**{"class": "", "bucket": 0, "errand": pickle.dumps(unread, protocol=5)})
        for name, bucket, work in work_by_bucket.all():
            yield Row(**{"class": name, "bucket": bucket, "errand": pickle.dumps(work, protocol=5)})

    def close(self) -> None:
        pass


class _Book:
    """The state of the ledger: rows, the last sequences of sources, and the classes that have been given rows."""

    def __init__(self, joins: Joins, sequences: Sequences, known: dict[str, Partition]) -> None:
        self.tables: Sequence[Table] = joins.subscriptions.tables
        self.ledger: Ledger[str] = Ledger(self.tables, str.__eq__)
        self.ledger.sequences = sequences
        self.partitions = known

    @classmethod
    def begun(cls, joins: Joins) -> _Book:
        """The state of a new stream: the rows that the index was built with."""
        rows = joins.correlator.rows
        book = cls(joins, Sequences(dict(rows.ledger.sequences.last)), {})
        for place, table in enumerate(book.tables):
            texts = rows.contents.texts(np.array(rows.of(place), dtype=np.int64)).cast(pa.string())
            names = names_of(table, read_texts(table, texts), texts)
            for name, text in zip(names.to_pylist(), texts.to_pylist(), strict=True):
                book.ledger.known[place].setdefault(name, []).append(text)
        return book

    @classmethod
    def read(cls, text: str, joins: Joins) -> _Book:
        facts = json.loads(text)
        known = {
            name: Partition(name, {table: tuple(names) for table, names in columns.items()}, buckets)
            for name, columns, buckets in facts["partitions"]
        }
        return cls(joins, Sequences(facts["sequences"]), known)

    def to_json(self) -> str:
        return json.dumps(
            {"sequences": self.ledger.sequences.last, "partitions": list(self.partitions.values())}
        )

    def take(self, rows: pa.Table) -> None:
        places = {table.name: place for place, table in enumerate(self.tables)}
        columns = (rows[name].to_pylist() for name in ("table", "name", "row"))
        for table, name, text in zip(*columns, strict=True):
            if table in places:  # one that is declared no longer is forgotten
                self.ledger.known[places[table]].setdefault(name, []).append(text)

    def rows(self) -> pa.Table:
        parts = []
        for table, known in zip(self.tables, self.ledger.known, strict=True):
            names = [str(name) for name, texts in known.items() for _ in texts]
            columns = {
                "place": _places(table, names),
                "table": pa.repeat(table.name, len(names)),
                "row": pa.array((text for texts in known.values() for text in texts), pa.string()),
                "name": pa.array(names, pa.string()),
            }
            parts.append(pa.table(columns, schema=_KNOWN))
        return pa.concat_tables([_KNOWN.empty_table(), *parts])


class _WorkByBucket:
    """Collects the work of buckets."""

    def __init__(self, book: _Book, events: Events) -> None:
        self._book, self._events = book, events
        self._rows: dict[tuple[str, int], list[pa.Table]] = {}
        self._changed: dict[tuple[str, int], tuple[np.ndarray, np.ndarray, pa.Table]] = {}
        self._snapshots: dict[tuple[str, int], list[tuple[int, str]]] = {}

    def fill(self, fresh: set[tuple[str, str]]) -> None:
        """Sends the rows of a table to classes that have not been given them."""
        for place, table in enumerate(self._book.tables):
            names = [name for name, of in fresh if of == table.name]
            texts = pa.array(self._book.ledger.rows(place), pa.string())
            if not names or not len(texts):
                continue
            columns = read_texts(table, texts)
            for name in names:
                partition = self._book.partitions[name]
                for bucket, _, held in _split(partition, partition.bucket_keys(table, columns), table, texts):
                    self._rows.setdefault((name, bucket), []).append(held)

    def send(self, steps: Sequence[tuple[int, int, str, int]]) -> None:
        """Sends inserted and deleted rows, in their order."""
        if not steps:
            return
        event, place, texts, sign = zip(*steps, strict=True)
        tables, rows = np.array(place), pa.array(texts, pa.string())
        spread = {name: np.full(len(rows), -1) for name in self._book.partitions}
        for number, table in enumerate(self._book.tables):
            mine = np.flatnonzero(tables == number)
            wanted = [
                partition for partition in self._book.partitions.values() if table.name in partition.columns
            ]
            if not len(mine) or not wanted:
                continue
            columns = read_texts(table, rows.take(pa.array(mine)))
            for partition in wanted:
                spread[partition.name][mine] = partition.bucket_keys(table, columns)
        names = pa.array([table.name for table in self._book.tables]).take(pa.array(tables))
        events, signs = np.array(event), np.array(sign, dtype=np.int8)
        for name, places in spread.items():
            for bucket, chosen_rows, held in _split(self._book.partitions[name], places, names, rows):
                self._changed[name, bucket] = events[chosen_rows], signs[chosen_rows], held

    def ask(self, name: str, event: int, id: str) -> None:
        """Requests a snapshot from all buckets."""
        for bucket in range(self._book.partitions[name].buckets):
            self._snapshots.setdefault((name, bucket), []).append((event, id))

    def all(self) -> Iterator[tuple[str, int, BucketWork]]:
        nothing = np.empty(0, np.int64), np.empty(0, np.int8), HELD.empty_table()
        for name, bucket in sorted({*self._rows, *self._changed, *self._snapshots}):
            event, sign, changed = self._changed.get((name, bucket), nothing)
            asked = self._snapshots.get((name, bucket), [])
            numbers = np.unique(np.concatenate([event, np.array([row for row, _ in asked], dtype=np.int64)]))
            yield (
                name,
                bucket,
                BucketWork(
                    self._book.partitions[name],
                    pa.concat_tables([HELD.empty_table(), *self._rows.get((name, bucket), [])]),
                    np.asarray(np.searchsorted(numbers, event)),
                    sign,
                    changed,
                    self._events.take(numbers),
                    [(int(np.searchsorted(numbers, row)), id) for row, id in asked],
                ),
            )


def _split(
    partition: Partition, places: np.ndarray, tables: Table | pa.Array, texts: pa.Array
) -> Iterator[tuple[int, np.ndarray, pa.Table]]:
    """Rows by bucket, in their order: the bucket, the indices of the rows, and the columns that it keeps."""
    chosen = np.flatnonzero(places >= 0)
    bucket = places[chosen] % partition.buckets
    order = np.argsort(bucket, kind="stable")
    chosen, bucket = chosen[order], bucket[order]
    for chosen_rows in np.split(chosen, np.flatnonzero(np.diff(bucket)) + 1):
        if len(chosen_rows):
            which = pa.array(chosen_rows)
            names = (
                pa.repeat(tables.name, len(chosen_rows)) if isinstance(tables, Table) else tables.take(which)
            )
            shelf = places[chosen_rows] // partition.buckets
            held = pa.table({"place": shelf, "table": names, "row": texts.take(which)}, schema=HELD)
            yield int(places[chosen_rows[0]] % partition.buckets), chosen_rows, held


def _live_shapes(joins: Joins) -> Iterable[Any]:
    subscriptions = joins.subscriptions
    return (
        subscriptions.shapes[n] for n in np.unique(subscriptions.shape_of.all[subscriptions.live]).tolist()
    )


def _places(table: Table, names: Sequence[str]) -> np.ndarray:
    start = crc32(table.name.encode())
    return np.fromiter((crc32(name.encode(), start) for name in names), np.int64, len(names))
