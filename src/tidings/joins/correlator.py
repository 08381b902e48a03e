"""Changes of rows -> what each join subscription gains and loses: rows, subscriptions and their indexes together.

Changes are applied one after another; what is wrong with one is told and changes nothing. A change's rows are known
to the next one, of the same batch too.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidings.joins.changes import DELETE, INSERT, UPDATE, Changes
from tidings.joins.deltas import Deltas
from tidings.joins.kernels.deltas import DELTAS_ARE_FULL, DONE, apply
from tidings.joins.kernels.layout import DELTA, IndexArrays, SearchArrays
from tidings.joins.levels import Levels
from tidings.joins.rows import Rows
from tidings.joins.sequences import Sequences
from tidings.joins.shape import MAX_TABLES
from tidings.joins.subscriptions import Subscriptions
from tidings.joins.table import Table

_DEEP = MAX_TABLES + 1


class Correlator:
    """`apply` is the whole of it."""

    def __init__(self, tables: Sequence[Table], subscriptions: Subscriptions) -> None:
        self.tables, self.subscriptions = list(tables), subscriptions
        self.rows = Rows(self.tables, subscriptions.texts)
        self.levels = Levels(subscriptions)
        self.sequences = Sequences()
        self._names = pa.array([table.name for table in tables], pa.string())
        self._deltas = np.empty(1 << 12, dtype=DELTA)
        self._events = 0
        self._scratch = _scratch(0, 0)

    def apply(self, changes: Changes, moments: np.ndarray | None = None) -> Deltas:
        """What the changes do. `moments` says when each event of the batch happened, in seconds since 1970."""
        indexes = self.levels.indexes(
            self.rows
        )  # first: a new order is made of the rows before these changes
        steps = _Steps(self.rows, self.sequences, changes)
        row, sign, event = (np.array(column) for column in (steps.row, steps.sign, steps.event))
        moment = np.full(len(row), time.time()) if moments is None else moments[event]
        found = self._run(
            indexes, row.astype(np.int32), sign.astype(np.int32), event.astype(np.int64), moment
        )
        deltas = self._told(found, {**changes.errors, **steps.errors})
        for table, gone in enumerate(steps.gone):
            self.rows.forget(table, gone)
        return deltas

    def _run(
        self,
        indexes: tuple[IndexArrays, IndexArrays, IndexArrays],
        row: np.ndarray,
        sign: np.ndarray,
        event: np.ndarray,
        moment: np.ndarray,
    ) -> np.ndarray:
        search = self._search()
        written = np.zeros(2, dtype=np.int64)
        stamps = self._events + event
        while True:
            why = apply(
                written[0], row, sign, stamps, moment, self.rows.arrays(), *indexes,
                self.subscriptions.arrays(), search, self._deltas, written,
            )  # fmt: skip
            if why == DONE:
                break
            if why == DELTAS_ARE_FULL:
                larger = np.empty(2 * len(self._deltas), dtype=DELTA)
                larger[: len(self._deltas)] = self._deltas
                self._deltas = larger
            else:
                self.rows.grow()
        found = self._deltas[: written[1]].copy()
        found["event"] -= self._events
        self._events += int(event.max(initial=-1)) + 1
        return found

    def _told(self, found: np.ndarray, errors: dict[int, str]) -> Deltas:
        named = np.zeros(self.rows.room(), dtype=np.bool_)
        named[found["row"]] = True
        rows = np.flatnonzero(named)
        place = np.cumsum(named, dtype=np.int32) - 1
        return Deltas(
            event=np.ascontiguousarray(found["event"]),
            number=np.ascontiguousarray(found["number"]),
            sequence=np.ascontiguousarray(found["sequence"]),
            sign=found["sign"].astype(np.int8),
            row=place[found["row"]],
            ids=self.subscriptions.id_column,
            texts=self.rows.contents.texts(rows),
            table=self.rows.tables_of(rows).astype(np.int8),
            tables=self._names,
            errors=dict(sorted(errors.items())),
        )

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


class _Steps:
    """Changes as rows that come (sign 1) and go (-1): an update is a row that comes, then the old one goes."""

    def __init__(self, rows: Rows, sequences: Sequences, changes: Changes) -> None:
        self.rows, self.changes = rows, changes
        self.row: list[int] = []
        self.sign: list[int] = []
        self.event: list[int] = []
        self.errors: dict[int, str] = {}
        self.gone: list[list[int]] = [[] for _ in rows.tables]
        admitted = sequences.admit_all(changes.source, changes.sequence, changes.ties).tolist()
        numbers, names = self._numbered()
        columns = (changes.event, changes.table, changes.op, changes.new, changes.old, changes.sequence)
        for taken, event, table, op, new, old, sequence in zip(
            admitted, *(column.tolist() for column in columns), strict=True
        ):
            row = numbers[table][new] if new >= 0 else -1
            if not taken:
                error: str | None = (
                    f"the change has sequence {sequence}, which its source has passed; it came again or late and is ignored"
                )
            elif op == INSERT:
                error = self._insert(event, table, row, names[table][new])
            elif op == DELETE:
                error = self._delete(event, table, names[table][old])
            elif op == UPDATE:
                error = self._update(
                    event, table, row, names[table][new], names[table][new if old < 0 else old]
                )
            else:
                error = self._truncate(event, table)
            if error is not None:
                self.errors[event] = error
                if row >= 0:
                    self.gone[table].append(row)

    def _numbered(self) -> tuple[list[list[int]], list[list[object]]]:
        """Of each table's images the numbers of rows that will be, -1 for the others, and what all are known by."""
        changes, numbers, names = self.changes, [], []
        for table, images in enumerate(changes.images):
            place = np.full(len(images), -1, dtype=np.int64)
            new = np.unique(changes.new[(changes.table == table) & (changes.new >= 0)])
            if len(new):
                which = pa.array(new)
                all_new = len(new) == len(images)
                columns = images.columns if all_new else [column.take(which) for column in images.columns]
                place[new] = self.rows.add(
                    table, columns, images.texts if all_new else images.texts.take(which)
                )
            numbers.append(place.tolist())
            names.append(self.rows.names(table, images.columns, images.texts))
        return numbers, names

    def _insert(self, event: int, table: int, row: int, name: object) -> str | None:
        rows = self.rows.known[table].setdefault(name, [])
        if rows and self.rows.tables[table].key:
            return (
                f"a row of table '{self._name(table)}' with this key is there; update it, or delete it first"
            )
        rows.append(row)
        self._step(event, row, 1)
        return None

    def _delete(self, event: int, table: int, name: object) -> str | None:
        row = self._take(table, name)
        if row < 0:
            return (
                f"table '{self._name(table)}' has no such row to delete; look at its key, or insert it first"
            )
        self._step(event, row, -1)
        self.gone[table].append(row)
        return None

    def _update(self, event: int, table: int, row: int, name: object, old_name: object) -> str | None:
        known, has_key = self.rows.known[table], bool(self.rows.tables[table].key)
        if not known.get(old_name):
            return (
                f"table '{self._name(table)}' has no such row to update; look at its key, or insert it first"
            )
        if has_key and name != old_name and known.get(name):
            return f"the update would give a row of table '{self._name(table)}' the key of another; delete that first"
        old = self._take(table, old_name)
        known.setdefault(name, []).append(row)
        self.gone[table].append(old)
        if self.rows.contents.are_equal(old, row):
            # The row that was there stays: nobody needs to hear of it.
            known[name][-1], self.gone[table][-1] = old, row
            return None
        self._step(event, row, 1)
        self._step(event, old, -1)
        return None

    def _truncate(self, event: int, table: int) -> None:
        for row in self.rows.of(table):
            self._step(event, row, -1)
            self.gone[table].append(row)
        self.rows.known[table].clear()

    def _take(self, table: int, name: object) -> int:
        rows = self.rows.known[table].get(name)
        if not rows:
            return -1
        row = rows.pop()
        if not rows:
            del self.rows.known[table][name]
        return row

    def _step(self, event: int, row: int, sign: int) -> None:
        self.row.append(row)
        self.sign.append(sign)
        self.event.append(event)

    def _name(self, table: int) -> str:
        return self.rows.tables[table].name
