"""Defines what a join subscription means, in the fewest obvious lines: recomputes every result after every change.

Rows are bags of tuples as `Table.read` gives them. The semijoin form of a subscription has the rows, copies counted,
that take part in at least one joined row; the difference that a change makes to it is the subscriber's notification.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tidings.errors import EventError
from tidings.kinds.joins.schema.shape import JoinShape, Range, admits, read
from tidings.kinds.joins.schema.table import Row, Table
from tidings.language.query import Query

Rows = Mapping[str, Counter[Row]]
"""The rows of each table, with the number of their copies."""
Joined = tuple[Row, ...]
"""A row of every table of a subscription, in the order of its slots."""
Form = Counter[tuple[str, Row]]
"""Rows with the names of their tables."""


def selected(shape: JoinShape, ranges: Sequence[Range], rows: Rows, slot: int) -> Counter[Row]:
    """The rows of a slot's table that are in all its ranges."""
    wanted = [
        (column, found) for (at, column), found in zip(shape.selections, ranges, strict=True) if at == slot
    ]
    return Counter(
        {
            row: copies
            for row, copies in rows[shape.tables[slot]].items()
            if all(admits(found, row[column]) for column, found in wanted)
        }
    )


def result(shape: JoinShape, ranges: Sequence[Range], rows: Rows) -> Counter[Joined]:
    """The joined rows and how often each occurs."""
    joined: Counter[Joined] = Counter({(): 1})
    for slot in range(len(shape.tables)):
        # The first occurrence of a variable stands for all before this slot: they are equal already.
        pairs = [(refs[0], column) for refs in shape.variables for at, column in refs[1:] if at == slot]
        partners: dict[Row, list[Joined]] = {}
        for start in joined:
            partners.setdefault(tuple(start[at][column] for (at, column), _ in pairs), []).append(start)
        extended: Counter[Joined] = Counter()
        for row, copies in selected(shape, ranges, rows, slot).items():
            values = tuple(row[column] for _, column in pairs)
            if None not in values:
                for start in partners.get(values, ()):
                    extended[*start, row] += joined[start] * copies
        joined = extended
    return joined


def semijoin(shape: JoinShape, ranges: Sequence[Range], rows: Rows) -> Form:
    """The rows, copies counted, that take part in at least one joined row."""
    joined = result(shape, ranges, rows)
    return Counter(
        {
            (name, joined_row[slot]): rows[name][joined_row[slot]]
            for joined_row in joined
            for slot, name in enumerate(shape.tables)
        }
    )


def binary_semijoin(
    shape: JoinShape, ranges: Sequence[Range], rows: Rows, base: int, filtering: int
) -> Counter[Row]:
    """The selected rows of slot `base` that agree with a selected row of slot `filtering` on what the two share."""
    shared = [dict(refs) for refs in shape.variables if {base, filtering} <= {at for at, _ in refs}]
    there = {
        tuple(row[columns[filtering]] for columns in shared)
        for row in selected(shape, ranges, rows, filtering)
    }
    found: Counter[Row] = Counter()
    for row, copies in selected(shape, ranges, rows, base).items():
        values = tuple(row[columns[base]] for columns in shared)
        if None not in values and values in there:
            found[row] = copies
    return found


def delta(before: Form, after: Form) -> tuple[Form, Form]:
    """The rows gained and the rows lost, from one semijoin to another."""
    return after - before, before - after


class Naive:
    """Recomputes all subscriptions after every change."""

    def __init__(self, tables: Iterable[Table]) -> None:
        self.tables = {table.name: table for table in tables}
        self.rows: dict[str, Counter[Row]] = {name: Counter() for name in self.tables}
        self.subscriptions: dict[str, tuple[JoinShape, tuple[Range, ...]]] = {}
        self.forms: dict[str, Form] = {}

    def subscribe(self, id: str, query: Query) -> None:
        self.subscriptions[id] = read(query, self.tables)
        self.forms[id] = semijoin(*self.subscriptions[id], self.rows)

    def unsubscribe(self, id: str) -> None:
        del self.subscriptions[id], self.forms[id]

    def result(self, id: str) -> Counter[Joined]:
        return result(*self.subscriptions[id], self.rows)

    def apply(
        self, op: str, table: str, row: Mapping[str, Any], before: Mapping[str, Any] | None = None
    ) -> dict[str, tuple[Form, Form]]:
        """Applies an "insert", "update" or "delete" of a row; returns what each affected subscription gained and lost.

        A "truncate" deletes all rows of the table, whatever `row` is. An EventError says what is wrong with a change; then nothing has changed.
        """
        self.rows[table] = self._changed(op, self.tables[table], row, before)
        found = {}
        for id, (shape, ranges) in self.subscriptions.items():
            after = semijoin(shape, ranges, self.rows)
            gained, lost = delta(self.forms[id], after)
            if gained or lost:
                found[id] = gained, lost
                self.forms[id] = after
        return found

    def _changed(
        self, op: str, table: Table, row: Mapping[str, Any], before: Mapping[str, Any] | None
    ) -> Counter[Row]:
        rows: Counter[Row] = Counter() if op == "truncate" else self.rows[table.name].copy()
        if op in ("update", "delete"):
            if op == "update" and before is None and not table.key:
                raise EventError(f"table '{table.name}' has no key; an update needs the row before it too")
            old = _find_row(table, rows, row if before is None else before)
            rows -= Counter([old])
        if op in ("insert", "update"):
            new = table.read(row)
            if table.key and any(table.key_of(other) == table.key_of(new) for other in rows):
                raise EventError(
                    f"a row of table '{table.name}' with this key is there already; update it, or delete it first"
                )
            rows[new] += 1
        return rows


def _find_row(table: Table, rows: Counter[Row], row: Mapping[str, Any]) -> Row:
    """The current row that `row` identifies."""
    known_by = table.key_of(table.read(row))
    for other in rows:
        if table.key_of(other) == known_by:
            return other
    raise EventError(f"table '{table.name}' has no row {table.text(table.read(row))}")
