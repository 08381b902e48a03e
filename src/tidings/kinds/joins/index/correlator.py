"""Computes from changes of rows what each join subscription gains and loses; owns rows, subscriptions and indexes.

Changes are applied in order; a wrong one is reported as an error and changes nothing. A change sees the rows of all
changes before it, also of the same batch.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence

import numpy as np
import pyarrow as pa

from tidings.kinds.joins.changes.changes import Changes
from tidings.kinds.joins.deltas import Deltas, JoinSnapshot
from tidings.kinds.joins.index.index import JoinIndex
from tidings.kinds.joins.index.levels import Levels
from tidings.kinds.joins.index.subscriptions import Subscriptions
from tidings.kinds.joins.joined import joined as put_together
from tidings.kinds.joins.kernels.deltas import DELTAS_ARE_FULL, DONE, apply, taking_part
from tidings.kinds.joins.kernels.layout import DELTA, IndexArrays, SearchArrays
from tidings.kinds.joins.rows.rows import Rows
from tidings.kinds.joins.schema.shape import MAX_TABLES
from tidings.kinds.joins.schema.table import Table

_DEEP = MAX_TABLES + 1
_FIRST_ROOM, _LARGE = 1 << 12, 1 << 22  # deltas


class Correlator:
    """Rows, and the subscriptions that their changes may affect; several correlators may share subscriptions and indexes."""

    def __init__(self, tables: Sequence[Table], subscriptions: Subscriptions, levels: Levels) -> None:
        self.tables, self.subscriptions, self.levels = list(tables), subscriptions, levels
        self.rows = Rows(self.tables, subscriptions.texts)
        self._deltas = np.empty(_FIRST_ROOM, dtype=DELTA)
        self._scratch = _scratch(0, 0)

    def apply(self, changes: Changes, moments: np.ndarray | None = None, *, joined: bool = False) -> Deltas:
        """Applies changes; returns the rows, or the joined rows, that each subscription gains and loses.

        `moments` says when each event of the batch happened, in seconds since 1970.
        """
        # First: a new order is made of the rows before these changes.
        indexes = self.levels.indexes(self.rows)
        errors = dict(changes.errors)
        numbers, names = self._numbered(changes)
        steps = list(self.rows.ledger.steps(changes, names, numbers, errors))
        event, table, row, sign = np.array(steps, dtype=np.int64).reshape(-1, 4).T.copy()
        moment = np.full(len(row), time.time()) if moments is None else moments[event]
        found = self._run(indexes, row.astype(np.int32), sign.astype(np.int32), event, moment, joined)
        snapshots = []
        for position, id in changes.snapshots:
            if (snapshot := self.snapshot(id, position)) is not None:
                snapshots.append(snapshot)
            else:
                errors[position] = f"there is no subscription {id!r} over tables; a snapshot is of one"
        deltas = self._make_deltas(found, joined, dict(sorted(errors.items())), snapshots)
        self._forget(numbers, table, row, sign)
        return deltas

    def snapshot(self, id: str, event: int = 0) -> JoinSnapshot | None:
        """All rows of a subscription; None if there is none with this id."""
        number = self.subscriptions.find(id)
        if number < 0:
            return None
        index = JoinIndex.build(self.subscriptions, np.array([number])).for_rows(self.rows)
        tables = sorted(set(index.sides["table"].tolist()))
        selected = np.array([row for table in tables for row in self.rows.of(table)], dtype=np.int32)
        out = np.empty_like(selected)
        count = taking_part(
            selected, self.rows.arrays(), index, self.subscriptions.arrays(), number, self._search(), out
        )
        taking = out[:count].astype(np.int64)
        names = [self.tables[table].name for table in self.rows.tables_of(taking).tolist()]
        sequence = int(self.subscriptions.records.all["sequence"][number])
        texts = self.rows.contents.texts(taking).to_pylist()
        return JoinSnapshot(event, id, sequence, list(zip(names, texts, strict=True)))

    def _numbered(self, changes: Changes) -> tuple[list[list[int]], list[list[Hashable]]]:
        """Adds the new rows; returns for each table the row numbers of its images, -1 for other images, and their keys."""
        numbers, names = [], []
        for table, images in enumerate(changes.images):
            position = np.full(len(images), -1, dtype=np.int64)
            new = np.unique(changes.new[(changes.table == table) & (changes.new >= 0)])
            if len(new):
                selected = images.take(new)
                position[new] = self.rows.add(table, selected.columns, selected.texts)
            numbers.append(position.tolist())
            names.append(self.rows.names(table, images.columns, images.texts))
        return numbers, names

    def _forget(self, numbers: list[list[int]], table: np.ndarray, row: np.ndarray, sign: np.ndarray) -> None:
        """Gives back the numbers of rows that went, and of those that never came."""
        for position, given in enumerate(numbers):
            mine = table == position
            came = set(row[mine & (sign > 0)].tolist())
            never = [number for number in given if number >= 0 and number not in came]
            self.rows.forget(position, [*row[mine & (sign < 0)].tolist(), *never])
        self.rows.rebuild_orders()

    def _run(
        self,
        indexes: tuple[IndexArrays, IndexArrays, IndexArrays],
        row: np.ndarray,
        sign: np.ndarray,
        event: np.ndarray,
        moment: np.ndarray,
        joined: bool,
    ) -> np.ndarray:
        search, written = self._search(), np.zeros(2, dtype=np.int64)
        clock = self.subscriptions.clock(int(event.max(initial=-1)) + 1)
        while True:
            why = apply(
                row, sign, event, clock, moment, self.rows.arrays(), indexes,
                self.subscriptions.arrays(), search, self._deltas, written, joined,
            )  # fmt: skip
            if why == DONE:
                break
            if why == DELTAS_ARE_FULL:
                larger = np.empty(2 * len(self._deltas), dtype=DELTA)
                larger[: written[1]] = self._deltas[: written[1]]
                self._deltas = larger
            else:
                self.rows.grow()
        found = self._deltas[: written[1]]
        if len(self._deltas) > _LARGE:
            self._deltas = np.empty(_FIRST_ROOM, dtype=DELTA)
        return found

    def _make_deltas(
        self, found: np.ndarray, joined: bool, errors: dict[int, str], snapshots: list[JoinSnapshot]
    ) -> Deltas:
        is_lost = found["row"] < 0
        row = np.where(is_lost, ~found["row"], found["row"])
        named = np.zeros(self.rows.room(), dtype=np.bool_)
        named[row] = True
        rows = np.flatnonzero(named)
        position = np.cumsum(named, dtype=np.int32) - 1
        deltas = Deltas(
            event=found["event"].astype(np.int64),
            number=found["number"].copy(),  # the room is used again
            sequence=found["sequence"].astype(np.int64),
            sign=np.where(is_lost, np.int8(-1), np.int8(1)),
            row=position[row],
            ids=self.subscriptions.id_column,
            texts=self.rows.contents.texts(rows),
            table=self.rows.tables_of(rows).astype(np.int16),
            tables=pa.array([table.name for table in self.tables], pa.string()),
            errors=errors,
            snapshots=snapshots,
        )
        if not joined:
            return deltas
        arity = np.array([len(shape.tables) for shape in self.subscriptions.shapes], dtype=np.int64)
        return put_together(deltas, arity[self.subscriptions.shape_of.all[deltas.number]])

    def _search(self) -> SearchArrays:
        if len(self._scratch.found) < self.levels.largest or len(self._scratch.seen) < self.rows.room():
            self._scratch = _scratch(self.levels.largest, 2 * self.rows.room())
        return self._scratch


def _scratch(members: int, rows: int) -> SearchArrays:
    steps = {name: np.zeros(_DEEP, dtype=np.int64) for name in ("cursor", "stop", "high", "chosen")}
    return SearchArrays(
        **steps,
        forced=np.full(_DEEP, -1, dtype=np.int64),
        fresh=np.zeros(1, dtype=np.bool_),
        any=np.zeros(1, dtype=np.bool_),
        found=np.empty(members, dtype=np.int32),
        queue=np.empty(rows + 1, dtype=np.int32),
        begin=np.zeros(_DEEP + 1, dtype=np.int64),
        seen=np.zeros(rows, dtype=np.int64),
        clock=np.zeros(1, dtype=np.int64),
    )
