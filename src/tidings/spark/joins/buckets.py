"""Applies changes to one bucket of a partition class, a group of Spark's state: its rows, and each subscription's
sequence number.

For each micro-batch the rows that its changes can join are read from the state, the changes are applied to them,
and the deltas of the subscriptions are written to Parquet beside the output, to be moved there when the batch is
done. Workers get other groups from batch to batch, so only the index is kept between them.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from tidings.kinds.joins.changes.changes import DELETE, INSERT, Changes
from tidings.kinds.joins.changes.row_images import RowImages
from tidings.kinds.joins.changes.sequences import NONE
from tidings.kinds.joins.deltas import Deltas
from tidings.kinds.joins.index.correlator import Correlator
from tidings.kinds.joins.index.levels import Levels
from tidings.kinds.joins.index.partition import ClassLevels
from tidings.kinds.joins.index.subscriptions import Subscriptions
from tidings.kinds.joins.kind import Joins, read_texts
from tidings.kinds.joins.payload_once import deltas_once
from tidings.kinds.joins.rows.texts import Texts
from tidings.kinds.joins.schema.table import Table
from tidings.model.notification import to_table
from tidings.spark.joins.bucket_messages import BucketMessages, is_member
from tidings.spark.joins.change_extract import TaskSettings
from tidings.spark.joins.ledger import HELD, BucketWork, UnreadEvents
from tidings.spark.joins.state_store import Counts, Shelves
from tidings.spark.ordered_files import POSITION, ROWS
from tidings.storage.event_log import sync

REPORT = "file string, events long, notifications long, errors long"

_levels: dict[str, ClassLevels] = {}


class BucketProcessor(StatefulProcessor):
    """Converts the work of a bucket to reports of files."""

    def __init__(self, settings: TaskSettings) -> None:
        self._settings = settings

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._rows = Shelves(handle, "rows", HELD)
        self._sequences = Counts(handle, "told", self._settings.first)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        for row in rows:
            work = pickle.loads(row.errand)
            if isinstance(work, UnreadEvents):
                file = self._write(_errors(work), work.events.position, "errors")
                yield Row(file=file, events=work.heard, notifications=0, errors=len(work.errors))
                continue
            part, positions = work.partition.part(key[1]), work.events.position
            name = f"{blake2b(key[0].encode(), digest_size=8).hexdigest()}-{key[1]:05d}"
            for table, event, content in self._answers(work, part):
                file = self._write(table, positions[event], f"{name}-{content}")
                yield Row(file=file, events=0, notifications=len(table), errors=0)

    def close(self) -> None:
        pass

    def _answers(self, work: BucketWork, part: str) -> Iterator[tuple[pa.Table, np.ndarray, str]]:
        """Applies the work to the rows and subscriptions of the bucket; the notifications, of each its event, and what
        they are."""
        joins, form, events = self._settings.joins(), self._settings.form, work.events.table()
        everything = work.partition.is_whole or bool(work.snapshots)
        places = pa.concat_tables([work.rows, work.changed])["place"].to_numpy()
        held = pa.concat_tables([self._rows.take(None if everything else places), work.rows])
        messages = None if form.messages is None else BucketMessages(joins, form, work, part, held)
        if messages is not None and messages.is_needed:
            before = self._sequences.records(0)
            records, snapshots, last = messages.written(before)
            self._sequences.records(last - before)
            yield *records, "messages"
            yield *snapshots, "member-snapshots"
            work = work._replace(snapshots=[one for one in work.snapshots if not is_member(form, one[1])])
        deltas = self._run(joins, work, held, None if everything else places)
        changed = deltas.in_dictionaries(events, part)
        yield changed, changed["event"].combine_chunks().indices.to_numpy(), "deltas"
        of_requests = np.array([snapshot.event for snapshot in deltas.snapshots], dtype=np.int64)
        yield deltas.answers(events, part), of_requests, "snapshots"

    def _run(self, joins: Joins, work: BucketWork, held: pa.Table, places: np.ndarray | None) -> Deltas:
        """The deltas of subscriptions, without those that get messages."""
        subscriptions, texts = joins.subscriptions, len(joins.subscriptions.texts)
        # A bag of rows without keys: the ledger has already resolved replacements.
        tables = [replace(table, key=()) for table in subscriptions.tables]
        form = self._settings.form
        if form.messages is not None and not form.members:  # all get messages
            nobody = Subscriptions(tables, Texts())
            correlator = Correlator(tables, nobody, Levels(nobody))
        else:
            levels = _levels_of(joins, work.partition.name)
            correlator = Correlator(tables, subscriptions, levels)  # type: ignore[arg-type]
        correlator.levels.indexes(correlator.rows)  # first: rows get cells in the columns that it looks at
        for place, table in enumerate(tables):
            mine = held.filter(pc.equal(held["table"], table.name))["row"].combine_chunks()
            correlator.rows.load(place, read_texts(table, mine), mine)
        subscriptions.records.all["sequence"] = 0  # counted from here on
        deltas = correlator.apply(_changes(work, tables), work.events.moment, joined=form.joined)
        if form.messages is not None:
            deltas = _without_members(deltas, form.members)
        self._keep(work, correlator, held, places)
        subscriptions.texts.forget_from(texts)
        if form.payload_once:
            deltas = deltas_once(deltas, subscriptions.tables)
        return self._counted(joins, deltas)

    def _keep(
        self, work: BucketWork, correlator: Correlator, held: pa.Table, places: np.ndarray | None
    ) -> None:
        """Writes the remaining rows back to the state."""
        both = pa.concat_tables([held, work.changed])
        columns = (both[name].to_pylist() for name in ("table", "row", "place"))
        shelf = {(table, row): place for table, row, place in zip(*columns, strict=True)}
        left = []
        for place, table in enumerate(correlator.tables):
            numbers = np.array(correlator.rows.of(place), dtype=np.int64)
            texts = correlator.rows.contents.texts(numbers).cast(pa.string())
            where = pa.array((shelf[table.name, text] for text in texts.to_pylist()), pa.int64())
            left.append(pa.table([where, pa.repeat(table.name, len(texts)), texts], schema=HELD))
        self._rows.put(pa.concat_tables(left), places)

    def _counted(self, joins: Joins, deltas: Deltas) -> Deltas:
        """The deltas with sequence numbers that continue those of the last batch."""
        asked = [joins.subscriptions.find(snapshot.subscription) for snapshot in deltas.snapshots]
        is_changed = np.zeros(len(joins.subscriptions), dtype=np.bool_)
        is_changed[deltas.number] = True
        changed = np.flatnonzero(is_changed)
        counts = self._sequences.take(np.append(changed, asked).astype(np.int64), len(joins.subscriptions))
        sequence = deltas.sequence + counts[deltas.number]
        counts[changed] += joins.subscriptions.records.all["sequence"][changed]
        self._sequences.put(counts, changed)
        snapshots = [
            replace(snapshot, sequence=int(counts[number]))
            for snapshot, number in zip(deltas.snapshots, asked, strict=True)
        ]
        return replace(deltas, sequence=sequence, snapshots=snapshots)

    def _write(self, notifications: pa.Table, positions: np.ndarray, name: str) -> str | None:
        """Writes a file for the batch, whose name begins with `name`; returns its name, or None if there is nothing to
        write."""
        if not len(notifications):
            return None
        name = f"{name}-{uuid.uuid4().hex}.parquet"
        path = self._settings.aside() / name
        pq.write_table(
            notifications.append_column(POSITION, pa.array(positions)),
            path,
            row_group_size=ROWS,
            compression="zstd",
            store_schema=False,  # or dictionaries would be read back as such
            write_statistics=False,
            dictionary_pagesize_limit=16
            << 20,  # or a dictionary of many rows is given up and each is written out
        )
        sync(path)
        return name


def _without_members(deltas: Deltas, prefix: str) -> Deltas:
    """The deltas of subscriptions whose ids do not begin so."""
    named = np.unique(deltas.number)
    is_member = pc.starts_with(deltas.ids.take(pa.array(named)), prefix).to_numpy(zero_copy_only=False)
    if not is_member.any():
        return deltas
    kept = ~is_member[np.searchsorted(named, deltas.number)]
    columns = ("event", "number", "sequence", "sign", "row")
    return replace(deltas, **{name: getattr(deltas, name)[kept] for name in columns})


def _levels_of(joins: Joins, name: str) -> ClassLevels:
    kept = _levels.get(name)
    if kept is None or kept.levels is not joins.levels:
        kept = _levels[name] = ClassLevels(joins.subscriptions, joins.levels, name)
    return kept


def _changes(work: BucketWork, tables: list[Table]) -> Changes:
    """The changes of the work as inserts and deletes."""
    count = len(work.event)
    table, row = np.zeros(count, dtype=np.int16), np.zeros(count, dtype=np.int32)
    images = []
    for place, one in enumerate(tables):
        is_mine = pc.equal(work.changed["table"], one.name).to_numpy()
        texts = work.changed["row"].filter(pa.array(is_mine)).combine_chunks()
        images.append(RowImages(read_texts(one, texts), texts, np.zeros(len(texts), dtype=np.bool_)))
        table[is_mine], row[is_mine] = place, np.arange(len(texts))
    comes = work.sign > 0
    return Changes(
        event=work.event,
        table=table,
        op=np.where(comes, INSERT, DELETE).astype(np.int8),
        new=np.where(comes, row, -1),
        old=np.where(comes, -1, row),
        source=pa.nulls(count, pa.string()),
        sequence=np.full(count, NONE),
        ties=np.zeros(count, dtype=np.bool_),
        images=images,
        snapshots=work.snapshots,
    )


def _errors(wrong: UnreadEvents) -> pa.Table:
    count = len(wrong.errors)
    return to_table(
        {
            "event": wrong.events.id,
            "source": wrong.events.source,
            "verdict": pa.repeat("error", count),
            "message": pa.array(wrong.errors, pa.string()),
        }
    )
