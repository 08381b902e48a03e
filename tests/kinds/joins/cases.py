"""Random tables, joins and changes, by a seed: small domains, so that much joins, is NULL, and is there twice.

A query comes as text, which DuckDB reads too, and as the tree that the text stands for.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from itertools import islice
from typing import Any, NamedTuple

from tidings.errors import EventError
from tidings.formats.namespaces import XSD
from tidings.kinds.joins.naive import Naive
from tidings.kinds.joins.schema.table import Row, Table, plain
from tidings.language.query import And, Attribute, Between, Comparison, Condition, JoinedTable, OneOf, Query
from tidings.model.terms import Literal

TEXTS = [
    "",
    "a",
    "prefix-",
    "prefix-a",
    "prefix-aa",
    "prefix-ab",
    "prefix-ab\u00e9",
    "prefix-b",
    "\u00e9",
    "it's",
]
DOMAINS: dict[str, list[Any]] = {
    "integer": [0, 1, 2, 3],
    "number": [-1.5, 0.0, 0.1, 1.0, 2.5, 1e300],
    "text": TEXTS,
    "boolean": [False, True],
    "date": [date(2019, 12, 31), date(2020, 1, 1), date(2020, 1, 2), date(1969, 7, 20)],
    "timestamp": [
        datetime(2020, 1, 1, tzinfo=UTC),
        datetime(2020, 1, 1, 10, 30, 0, 1, tzinfo=UTC),
        datetime(1960, 2, 29, 23, 59, 59, 999999, tzinfo=UTC),
    ],
}
ENDS = [2**63 - 1, -(2**63 - 1), -7]
COLUMNS = {
    "other": "integer",
    "amount": "number",
    "name": "text",
    "label": "text",
    "flag": "boolean",
    "day": "date",
    "moment": "timestamp",
}
GRAPHS = ("one key", "chain", "star", "cycle")


def some_tables(rng: random.Random, count: int | None = None) -> list[Table]:
    """Tables of which all have the integer column `whole`; about half have a key."""
    return [_table(rng, f"t{number}") for number in range(count or rng.choice((2, 3, 3, 4, 5, 8, 8)))]


def _table(rng: random.Random, name: str) -> Table:
    chosen = ["whole", *rng.sample(list(COLUMNS), rng.randint(1, 4))]
    key: Sequence[str] = ()
    if rng.random() < 0.5:
        chosen.append("id")
        key = ["id", "whole"] if rng.random() < 0.3 else ["id"]
    payload = ["note"] if rng.random() < 0.3 else []
    rng.shuffle(chosen)
    types = {"whole": "integer", "id": "integer", "note": "text", **COLUMNS}
    return Table(name, {column: types[column] for column in [*chosen, *payload]}, key, payload)


class Case(NamedTuple):
    text: str
    query: Query


def some_query(
    rng: random.Random, tables: Sequence[Table], graph: str | None = None, count: int | None = None
) -> Case:
    """A join of `count` of the tables along a graph; conditions on some of their columns."""
    count = count or rng.choice([n for n in (1, 2, 2, 3, 3, 4, 5, 6, 7, 8) if n <= len(tables)])
    chosen = rng.sample(list(tables), count)
    texts, joined = [chosen[0].name], []
    equated = _Equated(chosen)
    graph = graph or rng.choice(GRAPHS)
    columns = [name for name in chosen[0].columns if all(name in table.columns for table in chosen)]
    columns = [name for name in columns if name not in ("note", "id")]
    keys = rng.sample(columns, rng.randint(1, min(2, len(columns))))
    for slot in range(1, count):
        table = _joined(rng, chosen, slot, graph, keys, equated)
        joined.append(table)
        if table.using:
            texts.append(f"{table.name} USING ({', '.join(table.using)})")
        else:
            pairs = " AND ".join(f"{left.path} = {right.path}" for left, right in table.on)
            texts.append(f"{table.name} ON {pairs}")
    conditions = list(_conditions(rng, chosen, equated))
    if count == 1 and not conditions:
        conditions.append(_at_least(chosen[0].name))
    text = "SELECT * FROM " + f" {rng.choice(('JOIN', 'INNER JOIN'))} ".join(texts)
    if conditions:
        text += " WHERE " + " AND ".join(said for said, _ in conditions)
    where = conditions[0][1] if len(conditions) == 1 else And(tuple(tree for _, tree in conditions))
    return Case(text, Query(where, stream=chosen[0].name, joined=tuple(joined)))


def _at_least(table: str) -> tuple[str, Condition]:
    return f"{table}.whole >= 0", Comparison(Attribute(f"{table}.whole"), ">=", Literal("0", f"{XSD}integer"))


class _Equated:
    """Which columns are equal so far, so that no two of one table are, and which a USING has made one."""

    def __init__(self, chosen: Sequence[Table]) -> None:
        self.chosen = chosen
        self.classes: list[set[tuple[int, str]]] = []
        self.using: dict[str, set[int]] = {}

    def of(self, column: tuple[int, str]) -> set[tuple[int, str]]:
        return next((known for known in self.classes if column in known), {column})

    def join(self, left: tuple[int, str], right: tuple[int, str]) -> bool:
        """Equates two columns, unless two of one table would be."""
        merged = self.of(left) | self.of(right)
        if len({slot for slot, _ in merged}) < len(merged):
            return False
        self.classes = [known for known in self.classes if not known & merged] + [merged]
        return True

    def can_use(self, name: str, slot: int) -> bool:
        """Whether USING (name) of this slot means one column of the tables before it."""
        owners = {at for at in range(slot) if name in self.chosen[at].columns}
        return len(owners) == 1 or (bool(owners) and owners <= self.using.get(name, set()))

    def stands_for_all(self, name: str) -> bool:
        owners = {at for at, table in enumerate(self.chosen) if name in table.columns}
        return len(owners) == 1 or owners <= self.using.get(name, set())


def _joined(
    rng: random.Random,
    chosen: Sequence[Table],
    slot: int,
    graph: str,
    keys: Sequence[str],
    equated: _Equated,
) -> JoinedTable:
    name = chosen[slot].name
    if graph == "one key" and all(equated.can_use(key, slot) for key in keys):
        for key in keys:
            first = next(at for at in range(slot) if key in chosen[at].columns)
            equated.join((first, key), (slot, key))
            equated.using.setdefault(key, {at for at in range(slot) if key in chosen[at].columns}).add(slot)
        return JoinedTable(name, using=tuple(keys))
    partners = [0] if graph == "star" else [slot - 1]
    if graph == "cycle" and slot == len(chosen) - 1 and slot > 1:
        partners.append(0)
    pairs: list[tuple[tuple[int, str], str]] = []
    for partner in partners:
        possible = [
            ((partner, left), right)
            for left, kind in chosen[partner].columns.items()
            for right, other in chosen[slot].columns.items()
            if kind == other and "note" not in (left, right) and kind != "boolean"
        ]
        # Equal names join more often: their values come from one domain.
        rng.shuffle(possible)
        possible.sort(key=lambda pair: pair[0][1] != pair[1] or rng.random() < 0.3)
        wanted = 2 if rng.random() < 0.25 else 1
        pairs += islice((pair for pair in possible if equated.join(pair[0], (slot, pair[1]))), wanted)
    names = [right for (_, left), right in pairs if left == right]
    can_use = len(names) == len(pairs) == len(set(names)) and all(
        equated.can_use(column, slot) for column in names
    )
    if can_use and rng.random() < 0.6:
        for column in names:
            owners = {at for at in range(slot) if column in chosen[at].columns}
            equated.using.setdefault(column, owners).add(slot)
        return JoinedTable(name, using=tuple(names))
    on = []
    for (partner, left), right in pairs:
        sides = Attribute(f"{chosen[partner].name}.{left}"), Attribute(f"{name}.{right}")
        on.append(sides if rng.random() < 0.5 else sides[::-1])
    return JoinedTable(name, on=tuple(on))


def _conditions(
    rng: random.Random, chosen: Sequence[Table], equated: _Equated
) -> Iterator[tuple[str, Condition]]:
    numbers = (
        (0, 0, 1, 1, 2, 3) if len(chosen) < 3 else (0, 0, 0, 1, 2) if len(chosen) < 5 else (0, 0, 0, 0, 1)
    )
    for table in chosen:
        columns = [name for name in table.columns if name not in table.payload]
        for _ in range(rng.choice(numbers)):
            column = rng.choice(columns)
            short = equated.stands_for_all(column) and rng.random() < 0.5
            yield _condition(rng, column if short else f"{table.name}.{column}", table.columns[column])


def _condition(rng: random.Random, path: str, kind: str) -> tuple[str, Condition]:
    """A condition that mostly lets much through."""
    column = Attribute(path)
    values = sorted(rng.sample(DOMAINS[kind], rng.randint(2, min(4, len(DOMAINS[kind])))))
    constants = [_constant(rng, kind, value) for value in values]
    form = rng.choice(("range", "range", "side", "side", "=", "IN"))
    if kind == "boolean" and form in ("range", "side"):
        form = "IN"
    if form == "range":
        first, last = (constants[0], constants[-1]) if rng.random() < 0.95 else (constants[-1], constants[0])
        return f"{path} BETWEEN {first[0]} AND {last[0]}", Between(column, first[1], last[1])
    if form == "IN":
        options = tuple(tree for _, tree in constants)
        return f"{path} IN ({', '.join(said for said, _ in constants)})", OneOf(column, options)
    op = "=" if form == "=" else rng.choice(("<", "<=", ">", ">="))
    said, tree = constants[-1] if op in ("<", "<=") else constants[0]
    return f"{path} {op} {said}", Comparison(column, op, tree)


def _constant(rng: random.Random, kind: str, value: Any) -> tuple[str, Literal]:
    if kind == "integer":
        if rng.random() < 0.2:
            return f"{value}.5", Literal(f"{value}.5", f"{XSD}decimal")
        if rng.random() < 0.1:
            value = rng.choice(ENDS)
        return str(value), Literal(str(value), f"{XSD}integer")
    if kind == "number":
        said = repr(value)
        return said, Literal(said, f"{XSD}{'double' if 'e' in said else 'decimal'}")
    if kind == "boolean":
        said = str(value).lower()
        return said, Literal(said, f"{XSD}boolean")
    text = plain(value).removesuffix("Z") if kind == "timestamp" else str(value)
    return "'" + text.replace("'", "''") + "'", Literal(text)


class Change(NamedTuple):
    op: str
    table: str
    row: dict[str, Any]
    before: dict[str, Any] | None = None


def some_inserts(rng: random.Random, tables: Sequence[Table]) -> list[Change]:
    """Rows to begin with; fewer where many tables may be joined."""
    inserts = []
    size = 6 if len(tables) < 5 else 4
    for table in tables:
        rows = [some_row(rng, table) for _ in range(size)]
        if table.key:
            rows = list({table.key_of(table.read(row)): row for row in rows}.values())
        inserts += [Change("insert", table.name, row) for row in rows]
    rng.shuffle(inserts)
    return inserts


class Changes:
    """An endless sequence of changes, most of which can be applied, of tables that have `rows` to begin with."""

    def __init__(self, rng: random.Random, tables: Sequence[Table], rows: Mapping[str, Counter[Row]]) -> None:
        self._rng, self._tables = rng, tables
        self._there = Naive(tables)
        self._there.rows = {name: there.copy() for name, there in rows.items()}
        self._size = 8 if len(tables) < 5 else 5

    def __iter__(self) -> Iterator[Change]:
        while True:
            change = self._next()
            with suppress(EventError):
                self._there.apply(*change)
            yield change

    def _next(self) -> Change:
        rng = self._rng
        table = rng.choice(self._tables)
        there = self._there.rows[table.name]
        if rng.random() < 0.05:
            return self._wrong(table)
        # Tables hover about their size, so that deletes are as frequent as inserts.
        op = rng.choice(("insert", "insert", "update", "update", "delete"))
        if not there:
            op = "insert"
        elif there.total() > self._size:
            op = rng.choice(("update", "delete"))
        if op == "insert":
            if there and not table.key and rng.random() < 0.35:
                return Change(op, table.name, as_given(table, rng.choice(sorted(there, key=repr))))
            return Change(op, table.name, some_row(rng, table))
        old = as_given(table, rng.choice(sorted(there, key=repr)))
        if op == "delete":
            only_key = table.key and rng.random() < 0.5
            return Change(op, table.name, {name: old[name] for name in table.key} if only_key else old)
        new = some_row(rng, table)
        if rng.random() < 0.5:  # a few columns only
            new = {**old, **{name: new.get(name) for name in rng.sample(table.names, 1)}}
        if table.key and rng.random() < 0.5:
            return Change(op, table.name, {**new, **{name: old[name] for name in table.key}})
        return Change(op, table.name, new, old)

    def _wrong(self, table: Table) -> Change:
        """A change that is mostly refused."""
        rng = self._rng
        row = some_row(rng, table)
        match rng.randrange(5):
            case 0:
                return Change("delete", table.name, row)
            case 1:
                return Change("update", table.name, row)
            case 2:
                return Change("update", table.name, row, some_row(rng, table))
            case 3:
                return Change("insert", table.name, {**row, "nowhere": 1})
            case _:
                return Change("insert", table.name, {**row, "whole": rng.choice(("1", 1.5, 2**63, True))})


def some_row(rng: random.Random, table: Table) -> dict[str, Any]:
    """A row as a user gives it: NULL is a null or missing."""
    row: dict[str, Any] = {}
    for name, kind in table.columns.items():
        domain = DOMAINS[kind] if name != "id" else range(12)
        value = rng.choice(domain[: rng.randint(1, len(domain))])  # the first ones most often
        if name == "whole" and rng.random() < 0.03:
            value = rng.choice(ENDS)
        if name not in table.key and rng.random() < 0.07:
            value = None
            if rng.random() < 0.5:
                continue
        row[name] = plain(value) if rng.random() < 0.5 else value
    return row


def as_given(table: Table, values: Row) -> dict[str, Any]:
    return dict(zip(table.names, values, strict=True))
