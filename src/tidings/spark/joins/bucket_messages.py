"""Makes the messages of a scheme in one bucket of a partition class: its rows, and the members of the whole class.

The members of a class are kept between batches and follow the index; the rows are those that the batch can join.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidings.dissemination.live.join_messages import live_scheme
from tidings.dissemination.live.population_server import BucketServer, PopulationServer, RowStep
from tidings.dissemination.live.records import MessageRecord, notification_of, packets_of, row_changes
from tidings.kinds.joins.kind import Joins
from tidings.kinds.joins.schema.table import Row, Table
from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.spark.joins.change_extract import OutputForm
from tidings.spark.joins.ledger import BucketWork

_populations: dict[tuple[str, str, str], tuple[Joins, PopulationServer]] = {}


class Written(NamedTuple):
    """Notifications, and of each the event that it is of."""

    notifications: pa.Table
    event: np.ndarray


def is_member(form: OutputForm, id: str) -> bool:
    """Whether a subscription gets messages."""
    return form.messages is not None and id.startswith(form.members)


class BucketMessages:
    """The messages of one bucket for one batch; `held` are the rows before it, as the columns of HELD."""

    def __init__(self, joins: Joins, form: OutputForm, work: BucketWork, part: str, held: pa.Table) -> None:
        assert form.messages is not None
        self._joins, self._form, self._work, self._part = joins, form, work, part
        self._population = _population(joins, work.partition.name, form)
        self._held = held

    @property
    def is_needed(self) -> bool:
        """Whether there are members."""
        return len(self._population) > 0 or any(is_member(self._form, id) for _, id in self._work.snapshots)

    def written(self, sequence: int) -> tuple[Written, Written, int]:
        """The records of the batch, and the snapshots that members request; `sequence` is that of the last record, and the
        third is that of the last one now."""
        work, tables = self._work, self._joins.tables
        asked = [(event, id) for event, id in work.snapshots if is_member(self._form, id)]
        bucket = self._population.bucket(_rows(self._held, tables, self._population.reads))
        changed = (work.changed[name].to_pylist() for name in ("table", "row"))
        steps = [
            RowStep(event, table, _row(tables[table], text), sign)
            for event, sign, table, text in zip(
                work.event.tolist(), work.sign.tolist(), *changed, strict=True
            )
            if table in self._population.reads
        ]
        records = list(self._records(bucket, steps, sequence))
        last = sequence + len(records)
        found = Written(
            _table([notification_of(record) for _, record in records]),
            np.array([event for event, _ in records], dtype=np.int64),
        )
        return found, self._snapshots(bucket, asked, last), last

    def _records(
        self, bucket: BucketServer, steps: Sequence[RowStep], sequence: int
    ) -> Iterator[tuple[int, MessageRecord]]:
        ids, sources = (column.to_pylist() for column in self._work.events[:2])
        assert self._form.messages is not None
        for event, messages in bucket.apply(steps):
            sequence += 1
            packets = packets_of(messages, self._form.messages, self._population.tables)
            name = self._population.name
            yield event, MessageRecord(name, self._part, sequence, ids[event], sources[event], packets)

    def _snapshots(self, bucket: BucketServer, asked: Sequence[tuple[int, str]], sequence: int) -> Written:
        ids, sources = (column.to_pylist() for column in self._work.events[:2])
        rows = []
        for event, id in asked:
            number = self._joins.subscriptions.find(id)
            changes = row_changes(bucket.snapshot(self._joins.subscriptions, number), self._population.tables)
            rows.append(
                {
                    "subscription": id,
                    "source": sources[event],
                    "event": ids[event],
                    "verdict": "snapshot",
                    "part": self._part,
                    "sequence": sequence,
                    "message": self._joins.text(id),
                    "changes": [
                        {
                            "table": one.table,
                            "change": one.change,
                            "row": json.dumps(one.row, ensure_ascii=False),
                        }
                        for one in changes
                    ],
                }
            )
        return Written(_table(rows), np.array([event for event, _ in asked], dtype=np.int64))


def _table(rows: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=NOTIFICATION_SCHEMA)


def _population(joins: Joins, name: str, form: OutputForm) -> PopulationServer:
    """The members of a class, as far as the index has them now."""
    assert form.messages is not None
    key = name, form.messages, form.members
    kept, population = _populations.get(key, (None, None))
    if population is None or kept is not joins:
        population = PopulationServer(name, joins.subscriptions.tables, live_scheme(form.messages))
        _populations[key] = joins, population
    population.follow(joins.subscriptions, form.members)
    return population


def _rows(held: pa.Table, tables: dict[str, Table], names: frozenset[str]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {name: [] for name in names}
    for name, text in zip(held["table"].to_pylist(), held["row"].to_pylist(), strict=True):
        if name in found:
            found[name].append(_row(tables[name], text))
    return found


def _row(table: Table, text: str) -> Row:
    return table.read(json.loads(text))
