"""Reads a join query as a shape, which many subscriptions share, and ranges, which each has of its own.

The shape says which tables are joined on which columns and which columns have conditions; there is one range for each
of the latter. A USING column stands for all columns that it equates, so a condition on it applies to each of them. All
columns of a variable have one type, and no two are of the same table; the variables connect the tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidings.errors import SubscriptionError, did_you_mean
from tidings.kinds.joins.schema.ranges import ALL, EMPTY, Leaf, Range, admits, is_empty, range_of
from tidings.kinds.joins.schema.table import Table
from tidings.language.query import And, Attribute, Between, Comparison, Condition, JoinedTable, OneOf, Query

__all__ = [
    "ALL",
    "EMPTY",
    "MAX_TABLES",
    "ColumnRef",
    "JoinShape",
    "Range",
    "Selection",
    "admits",
    "is_empty",
    "outline",
    "read"
]  # fmt: skip

MAX_TABLES = 8
ColumnRef = tuple[int, int]
"""A slot and a column of its table."""


class JoinShape(NamedTuple):
    tables: tuple[str, ...]
    """The slots, as in the text."""
    variables: tuple[tuple[ColumnRef, ...], ...]
    """The equated columns."""
    selections: tuple[ColumnRef, ...]
    """The columns with conditions, sorted, each once."""

    @property
    def one_key(self) -> bool:
        """Whether every table is joined with every other on the same values."""
        return all(len(refs) == len(self.tables) for refs in self.variables)


class Selection(NamedTuple):
    """A column with all conditions on it, which may still have parameters."""

    name: str
    kind: str
    conditions: tuple[Leaf, ...]


def read(query: Query, tables: Mapping[str, Table]) -> tuple[JoinShape, tuple[Range, ...]]:
    """The shape of a query over declared tables, and the ranges of its selections in the same order."""
    shape, selections = outline(query, tables)
    return shape, tuple(
        range_of(selection.conditions, selection.kind, selection.name) for selection in selections
    )


def outline(query: Query, tables: Mapping[str, Table]) -> tuple[JoinShape, tuple[Selection, ...]]:
    """The shape of a query, or of a template, and the conditions on each column."""
    joined = _tables(query, tables)
    variables, shared = _variables(query, joined)
    found: dict[ColumnRef, list[Leaf]] = {}
    for leaf in _leaves(query.where):
        for ref in _selected(leaf, joined, shared):
            found.setdefault(ref, []).append(leaf)
    refs = tuple(sorted(found))
    selections = []
    for slot, column in refs:
        table = joined[slot]
        name = f"{table.name}.{table.names[column]}"
        selections.append(Selection(name, table.types[column], tuple(found[slot, column])))
    return JoinShape(tuple(table.name for table in joined), variables, refs), tuple(selections)


def _tables(query: Query, tables: Mapping[str, Table]) -> list[Table]:
    if query.stream is None:
        raise SubscriptionError(
            "the subscription names no table; write FROM table JOIN ..., or FROM table WHERE ..."
        )
    names = [query.stream, *(joined_table.name for joined_table in query.joined)]
    if query.via is not None:
        raise SubscriptionError("VIA stands with a join; a join hears of every change, so leave VIA out")
    if query.select is not None:
        raise SubscriptionError("a join selects variables; write SELECT * to get its rows")
    if len(names) > MAX_TABLES:
        raise SubscriptionError(f"{len(names)} tables are joined; join at most {MAX_TABLES}")
    for at, name in enumerate(names):
        if name not in tables:
            advice = did_you_mean(name, tables, f"the tables are {', '.join(sorted(tables)) or 'none'}")
            raise SubscriptionError(f"there is no table '{name}'; {advice}")
        if name in names[:at]:
            raise SubscriptionError(
                f"table '{name}' is joined with itself; name each table once, or declare it under another name too"
            )
    return [tables[name] for name in names]


def _variables(
    query: Query, joined: Sequence[Table]
) -> tuple[tuple[tuple[ColumnRef, ...], ...], dict[str, set[ColumnRef]]]:
    """The classes of equated columns, and for each USING column the columns that its name stands for."""
    classes: list[set[ColumnRef]] = []
    shared: dict[str, set[ColumnRef]] = {}
    for slot, joined_table in enumerate(query.joined, start=1):
        for left, right in _equated(slot, joined_table, joined, shared):
            merged = {left, right}.union(*(known for known in classes if known & {left, right}))
            classes = [known for known in classes if not known & merged] + [merged]
    for refs in classes:
        _check_class(refs, joined)
    linked = {0}
    for _ in joined:
        linked.update(slot for refs in classes if linked & {s for s, _ in refs} for slot, _ in refs)
    for slot, table in enumerate(joined):
        if slot not in linked:
            raise SubscriptionError(
                f"table '{table.name}' is joined on no column of the tables before it; "
                f"write JOIN {table.name} USING (column) or ON a.x = {table.name}.y"
            )
    return tuple(sorted(tuple(sorted(refs)) for refs in classes)), shared


def _equated(
    slot: int, joined_table: JoinedTable, joined: Sequence[Table], shared: dict[str, set[ColumnRef]]
) -> list[tuple[ColumnRef, ColumnRef]]:
    """The pairs of columns that a JOIN equates; a USING column is noted in `shared`."""
    pairs: list[tuple[ColumnRef, ColumnRef]] = []
    for name in joined_table.using:
        before = _resolve(name, joined[:slot], shared)
        here = _column_ref(f"{joined_table.name}.{name}", joined, slot)
        pairs.append((before[0], here))
        shared[name] = {*before, here}
    for sides in joined_table.on:
        left, right = (_single_ref(side.path, joined[: slot + 1], shared) for side in sides)
        if left[0] == right[0]:
            name = joined[left[0]].name
            raise SubscriptionError(
                f"{sides[0].path} = {sides[1].path} compares two columns of '{name}'; ON joins it with another table"
            )
        pairs.append((left, right))
    return pairs


def _check_class(refs: set[ColumnRef], joined: Sequence[Table]) -> None:
    ordered = sorted(refs)
    names_of = [f"{joined[slot].name}.{joined[slot].names[column]}" for slot, column in ordered]
    for (slot, column), (other, _) in zip(ordered[1:], ordered, strict=False):
        if slot == other:
            names = " and ".join(name for name, (at, _) in zip(names_of, ordered, strict=True) if at == slot)
            raise SubscriptionError(f"{names} would have to be equal; join on one of them only")
        first = joined[ordered[0][0]].types[ordered[0][1]]
        if joined[slot].types[column] != first:
            at = ordered.index((slot, column))
            raise SubscriptionError(
                f"{names_of[0]} is of type {first}, {names_of[at]} of type {joined[slot].types[column]}; "
                "join columns of one type"
            )


def _resolve(path: str, joined: Sequence[Table], shared: Mapping[str, set[ColumnRef]]) -> list[ColumnRef]:
    """The columns that a written name stands for: one, or all that a USING column equates."""
    for slot, table in enumerate(joined):
        if path.startswith(f"{table.name}.") and path[len(table.name) + 1 :] in table.columns:
            return [_column_ref(path, joined, slot)]
    owners = [slot for slot, table in enumerate(joined) if path in table.columns]
    found = [_column_ref(f"{joined[slot].name}.{path}", joined, slot) for slot in owners]
    if len(found) == 1 or (found and set(found) <= shared.get(path, set())):
        return found
    if found:
        options = " or ".join(f"{joined[slot].name}.{path}" for slot in owners)
        raise SubscriptionError(f"'{path}' is a column of several tables; write {options}")
    for slot, table in enumerate(joined):
        if path.startswith(f"{table.name}."):
            return [_column_ref(path, joined, slot)]  # which says that the table has no such column
    known = [name for table in joined for name in table.names]
    otherwise = (
        f"the columns are {', '.join(f'{table.name}.{name}' for table in joined for name in table.names)}"
    )
    raise SubscriptionError(f"there is no column '{path}'; {did_you_mean(path, known, otherwise)}")


def _single_ref(path: str, joined: Sequence[Table], shared: Mapping[str, set[ColumnRef]]) -> ColumnRef:
    return _resolve(path, joined, shared)[0]


def _column_ref(path: str, joined: Sequence[Table], slot: int) -> ColumnRef:
    table = joined[slot]
    name = path[len(table.name) + 1 :]
    if name not in table.columns:
        advice = did_you_mean(name, table.names, f"its columns are {', '.join(table.names)}")
        raise SubscriptionError(f"table '{table.name}' has no column '{name}'; {advice}")
    if name in table.payload:
        raise SubscriptionError(
            f"{path} is payload; take it out of the table's payload to compare or join it"
        )
    return slot, table.names.index(name)


def _leaves(where: Condition) -> list[Leaf]:
    if isinstance(where, And):
        return [leaf for part in where.parts for leaf in _leaves(part)]
    if isinstance(where, Comparison | Between) or (isinstance(where, OneOf) and not where.negated):
        return [where]
    raise SubscriptionError(
        f"{_described(where)} stands in the WHERE of a join; use comparisons (= < <= > >=), BETWEEN and IN of columns "
        "with constants, put together by AND"
    )


def _described(where: Condition) -> str:
    names = {
        "OneOf": "NOT IN",
        "TriplePattern": "a triple",
        "Call": "a call",
        "AnyElement": "ANY",
        "IsA": "ISA",
    }
    if type(where).__name__ == "TextTest":
        return str(where.op)  # type: ignore[union-attr]
    return names.get(type(where).__name__, type(where).__name__.upper())


def _selected(leaf: Leaf, joined: Sequence[Table], shared: Mapping[str, set[ColumnRef]]) -> list[ColumnRef]:
    operand = leaf.left if isinstance(leaf, Comparison) else leaf.operand
    if not isinstance(operand, Attribute):
        raise SubscriptionError(
            "a join compares something else than a column; write conditions such as stocks.per >= 45"
        )
    return _resolve(operand.path, joined, shared)
