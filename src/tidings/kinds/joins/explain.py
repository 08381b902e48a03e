"""Explains what a change does to a join subscription: the change's rows, one by one, and the rows that join them.

The verdict is the definition's: the subscription's rows before and after, computed anew. The clauses show how far each
row of the change gets: the conditions on it, then table by table the rows that join it and hold their own conditions.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.errors import EventError
from tidings.kinds.joins.changes.changes import INSERT, TRUNCATE, UPDATE, Changes, read_changes
from tidings.kinds.joins.changes.sequences import Sequences
from tidings.kinds.joins.naive import Naive
from tidings.kinds.joins.schema.ranges import Leaf, admits, range_of
from tidings.kinds.joins.schema.shape import JoinShape, outline
from tidings.kinds.joins.schema.table import Row, Table, plain
from tidings.language.printer import condition_text
from tidings.language.query import Query
from tidings.model.event import Event, to_table
from tidings.model.explanation import Clause, Explanation

if TYPE_CHECKING:
    from tidings.kinds.joins.kind import Joins

MAX_WAYS = 1000
MAX_ROWS = 20


def explain(id: str, joins: Joins, query: Query, event: Event) -> Explanation:
    """What the event does to a subscription, given the rows that are there now; nothing changes by it."""
    tables = list(joins.tables.values())
    changes = read_changes(to_table([event]), tables)
    if changes.errors:
        return Explanation(id, "error", message=changes.errors[0])
    if changes.snapshots:
        return Explanation(id, "no match", message="the event asks for a snapshot and changes no row")
    if not len(changes):
        return Explanation(id, "no match", message="the event changes no row of a table")
    shape, _ = outline(query, joins.tables)
    table, op = tables[int(changes.table[0])], int(changes.op[0])
    if table.name not in shape.tables:
        looked_at = ", ".join(shape.tables)
        return Explanation(
            id,
            "no match",
            message=f"a row of {table.name} changes, and the subscription looks at {looked_at}",
        )
    last = dict(joins.correlator.rows.ledger.sequences.last)
    sequence = int(changes.sequence[0])
    if not Sequences(last).admit(changes.source[0].as_py() or "", sequence, bool(changes.ties[0])):
        return Explanation(
            id, "error", message=f"its source has passed sequence {sequence}: the change came again, or late"
        )
    naive = Naive(tables)
    naive.rows = _rows(joins, shape.tables)
    new, old = (_image(changes, table, int(rows[0])) for rows in (changes.new, changes.old))
    before = naive.rows[table.name]
    try:
        naive.subscribe("it", query)
        word = "insert" if op == INSERT else "update" if op == UPDATE else "delete"
        answers = naive.apply(
            "truncate" if op == TRUNCATE else word, table.name, new or old or {}, new and old
        )
    except EventError as error:
        return Explanation(id, "error", message=str(error))
    gained, lost = answers.get("it", (Counter(), Counter()))
    after, look = naive.rows[table.name], _Look(query, shape, joins.tables, naive.rows)
    lines: list[Clause] = []
    for title, moved in (("goes", before - after), ("comes", after - before)):
        for row in list(moved)[: 1 if op != TRUNCATE else MAX_ROWS]:
            lines += look.at(table, row, title)
    lines += _changed("loses", lost, joins.tables)
    lines += _changed("gains", gained, joins.tables)
    return Explanation(
        id,
        "match" if gained or lost else "no match",
        tuple(lines),
        message=_counted(gained, lost, before, after),
    )


class _Look:
    """A subscription, and the rows of its tables."""

    def __init__(
        self, query: Query, shape: JoinShape, tables: Mapping[str, Table], rows: Mapping[str, Counter[Row]]
    ) -> None:
        self.shape, self.rows = shape, rows
        self.tables = [tables[name] for name in shape.tables]
        self.selections: dict[int, list[tuple[int, str, str, Leaf]]] = {}
        for (slot, column), selection in zip(shape.selections, outline(query, tables)[1], strict=True):
            self.selections.setdefault(slot, []).extend(
                (column, selection.kind, selection.name, leaf) for leaf in selection.conditions
            )

    def at(self, table: Table, row: Row, title: str) -> Iterator[Clause]:
        """How far a row of the change gets."""
        start = self.shape.tables.index(table.name)
        inner = list(self._conditions(start, row))
        if all(line.held for line in inner):
            inner += self._partners(start, row)
        else:
            inner += [Clause(self._joining(slot), None, "", 1) for slot in self._others(start)]
        yield Clause(f"{title}: {table.name}  {_shown(table, row)}", all(line.held for line in inner))
        yield from inner

    def _conditions(self, slot: int, row: Row) -> Iterator[Clause]:
        for column, kind, name, leaf in self.selections.get(slot, ()):
            held = admits(range_of([leaf], kind, name), row[column])
            yield Clause(condition_text(leaf), held, f"{name} is {_value(row[column])}", 1)

    def _holds(self, slot: int, row: Row) -> bool:
        return all(line.held for line in self._conditions(slot, row))

    def _partners(self, start: int, row: Row) -> Iterator[Clause]:
        """The other tables in the order in which they hang together, as long as some rows join."""
        ways: list[dict[int, Row]] = [{start: row}]
        cut = False
        for slot in self._others(start):
            if not ways:
                yield Clause(self._joining(slot), None, "", 1)
                continue
            joining = [(way, other) for way in ways for other in self._joins(way, slot)]
            ways = [{**way, slot: other} for way, other in joining if self._holds(slot, other)]
            found, name = len({other for _, other in joining}), self.tables[slot].name
            rest = len({way[slot] for way in ways})
            seen = f"{found:,} row{' joins' if found == 1 else 's join'} it" if found else "no row joins it"
            if rest < found:
                seen += f", {f'of which {rest:,} hold' if rest else 'but none holds'} what is asked of {name}"
            yield Clause(self._joining(slot), None if cut and not ways else bool(ways), seen, 1)
            cut = cut or len(ways) > MAX_WAYS
            ways = ways[:MAX_WAYS]

    def _joins(self, way: Mapping[int, Row], slot: int) -> list[Row]:
        """The rows of a slot that agree with those chosen so far."""
        pairs = [
            (way[at][column], here)
            for places in self.shape.variables
            for there, here in places
            if there == slot
            for at, column in places
            if at in way
        ]
        return [
            row
            for row in self.rows[self.tables[slot].name]
            if all(value is not None and row[column] == value for value, column in pairs)
        ]

    def _others(self, start: int) -> list[int]:
        seen = [start]
        for _ in self.tables:
            linked = (
                slot for slot in range(len(self.tables)) if slot not in seen and self._links(slot, seen)
            )
            seen.extend(list(linked)[:1])
        return seen[1:]

    def _links(self, slot: int, seen: Sequence[int]) -> list[str]:
        """The columns by which a slot is joined with those before it."""
        return [
            self.tables[slot].names[column]
            for places in self.shape.variables
            for at, column in places
            if at == slot and any(other in seen for other, _ in places)
        ]

    def _joining(self, slot: int) -> str:
        others = [other for other in range(len(self.tables)) if other != slot]
        return f"rows of {self.tables[slot].name} with the same {', '.join(self._links(slot, others))}"


def _rows(joins: Joins, names: Sequence[str]) -> dict[str, Counter[Row]]:
    """The rows of some tables; none of the others, which nobody looks at."""
    rows = joins.correlator.rows
    found: dict[str, Counter[Row]] = {}
    for number, (name, table) in enumerate(joins.tables.items()):
        texts = (
            rows.contents.texts(np.array(rows.of(number), dtype=np.int64)).to_pylist()
            if name in names
            else []
        )
        found[name] = Counter(table.read(json.loads(text)) for text in texts)
    return found


def _image(changes: Changes, table: Table, row: int) -> dict[str, Any] | None:
    if row < 0:
        return None
    found: dict[str, Any] = json.loads(changes.images[int(changes.table[0])].texts[row].as_py())
    return found


def _changed(word: str, rows: Counter[tuple[str, Row]], tables: Mapping[str, Table]) -> Iterator[Clause]:
    shown = list(rows.elements())
    for name, row in shown[:MAX_ROWS]:
        yield Clause(f"{word} {name}  {_shown(tables[name], row)}", True)
    if len(shown) > MAX_ROWS:
        yield Clause(f"{word} {len(shown) - MAX_ROWS:,} rows more", True)


def _counted(
    gained: Counter[tuple[str, Row]],
    lost: Counter[tuple[str, Row]],
    before: Counter[Row],
    after: Counter[Row],
) -> str:
    if not gained and not lost:
        return "the row stays as it is" if before == after else ""
    parts = [
        f"{word} {rows.total():,} row{'' if rows.total() == 1 else 's'}"
        for word, rows in (("gains", gained), ("loses", lost))
        if rows
    ]
    return " and ".join(parts)


def _shown(table: Table, row: Row) -> str:
    cells = zip(table.names, row, strict=True)
    return "  ".join(f"{name} {_value(value)}" for name, value in cells if value is not None)


def _value(value: Any) -> str:
    if value is None:
        return "NULL"
    text = json.dumps(plain(value), ensure_ascii=False) if not isinstance(value, str) else f"'{value}'"
    return text if len(text) <= 60 else f"{text[:59]}…"
