"""Shape and ranges: what many join subscriptions share, and what each has of its own.

The shape says which tables are joined on which columns and which columns are selected on; the ranges say what the
selections let through, one for each. Ranges are closed, in order keys. A USING column stands for all columns that it
equates, so a condition on it is one on each of them. All columns of a variable have one type, and no two are of the
same table; the tables hang together by their variables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from tidings.errors import SubscriptionError
from tidings.joins.order import HIGHEST, LOWEST, TYPE_OF, key_of
from tidings.joins.table import Table
from tidings.language.faults import did_you_mean
from tidings.language.query import (
    And,
    Attribute,
    Between,
    Comparison,
    Condition,
    Constant,
    JoinedTable,
    OneOf,
    Parameter,
    Query,
)
from tidings.terms import XSD, Iri, Literal
from tidings.values import BOOLEAN, INSTANT, NUMBER, TEXT, constant_view, instant

MAX_TABLES = 8
Place = tuple[int, int]
"""A slot and a column of its table."""


class Shape(NamedTuple):
    tables: tuple[str, ...]
    """The slots, as in the text."""
    variables: tuple[tuple[Place, ...], ...]
    """The equated columns."""
    selections: tuple[Place, ...]
    """The columns with conditions, sorted, each once."""

    @property
    def one_key(self) -> bool:
        """Whether every table is joined with every other on the same values."""
        return all(len(places) == len(self.tables) for places in self.variables)


class Range(NamedTuple):
    """The keys from `low` to `high`, LOWEST and HIGHEST where open-ended; `low > high` if there are none.

    `options` are the sorted keys of an IN (its texts in a text column), `low` and `high` then their ends. In a text
    column keys let too much through and the texts decide: `low_text` and `high_text`, themselves outside if open.
    """

    low: int
    high: int
    options: tuple[int | str, ...] = ()
    low_text: str | None = None
    high_text: str | None = None
    low_open: bool = False
    high_open: bool = False


ALL = Range(LOWEST, HIGHEST)
EMPTY = Range(HIGHEST, LOWEST)


def is_empty(found: Range) -> bool:
    return found.low > found.high


def admits(found: Range, value: Any) -> bool:
    """Whether a value of a row is in the range; NULL never is."""
    if value is None:
        return False
    if isinstance(value, str):
        return _admits_text(found, value)
    return _admits_key(found, key_of(TYPE_OF[type(value)], value))


def read(query: Query, tables: Mapping[str, Table]) -> tuple[Shape, tuple[Range, ...]]:
    """The shape of a query over declared tables, and the ranges of its selections in the same order."""
    joined = _tables(query, tables)
    variables, shared = _variables(query, joined)
    found: dict[Place, Range] = {}
    for leaf in _leaves(query.where):
        for slot, column in _selected(leaf, joined, shared):
            table = joined[slot]
            condition = _range(leaf, table.types[column], f"{table.name}.{table.names[column]}")
            before = found.get((slot, column), ALL)
            found[slot, column] = _both(before, condition, table.types[column])
    selections = tuple(sorted(found))
    shape = Shape(tuple(table.name for table in joined), variables, selections)
    return shape, tuple(found[place] for place in selections)


def _tables(query: Query, tables: Mapping[str, Table]) -> list[Table]:
    names = [query.stream or "", *(one.name for one in query.joined)]
    if query.via is not None:
        raise SubscriptionError("VIA stands with a join; a join hears of every change, so leave VIA out")
    if query.select is not None:
        raise SubscriptionError("a join selects variables; write SELECT * to get its rows")
    if len(names) > MAX_TABLES:
        raise SubscriptionError(f"{len(names)} tables are joined; join at most {MAX_TABLES}")
    for place, name in enumerate(names):
        if name not in tables:
            advice = did_you_mean(name, tables, f"the tables are {', '.join(sorted(tables)) or 'none'}")
            raise SubscriptionError(f"there is no table '{name}'; {advice}")
        if name in names[:place]:
            raise SubscriptionError(
                f"table '{name}' is joined with itself; name each table once, or declare it under another name too"
            )
    return [tables[name] for name in names]


def _variables(
    query: Query, joined: Sequence[Table]
) -> tuple[tuple[tuple[Place, ...], ...], dict[str, set[Place]]]:
    """The classes of equated columns, and for each USING column the places that its name stands for."""
    classes: list[set[Place]] = []
    shared: dict[str, set[Place]] = {}
    for slot, one in enumerate(query.joined, start=1):
        for left, right in _equated(slot, one, joined, shared):
            merged = {left, right}.union(*(known for known in classes if known & {left, right}))
            classes = [known for known in classes if not known & merged] + [merged]
    for places in classes:
        _check_class(places, joined)
    linked = {0}
    for _ in joined:
        linked.update(slot for places in classes if linked & {s for s, _ in places} for slot, _ in places)
    for slot, table in enumerate(joined):
        if slot not in linked:
            raise SubscriptionError(
                f"table '{table.name}' is joined on no column of the tables before it; "
                f"write JOIN {table.name} USING (column) or ON a.x = {table.name}.y"
            )
    return tuple(sorted(tuple(sorted(places)) for places in classes)), shared


def _equated(
    slot: int, one: JoinedTable, joined: Sequence[Table], shared: dict[str, set[Place]]
) -> list[tuple[Place, Place]]:
    """The pairs of columns that a JOIN equates; a USING column is noted in `shared`."""
    pairs: list[tuple[Place, Place]] = []
    for name in one.using:
        before = _named(name, joined[:slot], shared)
        here = _place(f"{one.name}.{name}", joined, slot)
        pairs.append((before[0], here))
        shared[name] = {*before, here}
    for sides in one.on:
        left, right = (_one(side.path, joined[: slot + 1], shared) for side in sides)
        if left[0] == right[0]:
            name = joined[left[0]].name
            raise SubscriptionError(
                f"{sides[0].path} = {sides[1].path} compares two columns of '{name}'; ON joins it with another table"
            )
        pairs.append((left, right))
    return pairs


def _check_class(places: set[Place], joined: Sequence[Table]) -> None:
    ordered = sorted(places)
    shown = [f"{joined[slot].name}.{joined[slot].names[column]}" for slot, column in ordered]
    for (slot, column), (other, _) in zip(ordered[1:], ordered, strict=False):
        if slot == other:
            names = " and ".join(one for one, (at, _) in zip(shown, ordered, strict=True) if at == slot)
            raise SubscriptionError(f"{names} would have to be equal; join on one of them only")
        first = joined[ordered[0][0]].types[ordered[0][1]]
        if joined[slot].types[column] != first:
            at = ordered.index((slot, column))
            raise SubscriptionError(
                f"{shown[0]} is of type {first}, {shown[at]} of type {joined[slot].types[column]}; "
                "join columns of one type"
            )


def _named(path: str, joined: Sequence[Table], shared: Mapping[str, set[Place]]) -> list[Place]:
    """The places that a written column stands for: one, or all that a USING column equates."""
    for slot, table in enumerate(joined):
        if path.startswith(f"{table.name}.") and path[len(table.name) + 1 :] in table.columns:
            return [_place(path, joined, slot)]
    owners = [slot for slot, table in enumerate(joined) if path in table.columns]
    found = [_place(f"{joined[slot].name}.{path}", joined, slot) for slot in owners]
    if len(found) == 1 or (found and set(found) <= shared.get(path, set())):
        return found
    if found:
        options = " or ".join(f"{joined[slot].name}.{path}" for slot in owners)
        raise SubscriptionError(f"'{path}' is a column of several tables; write {options}")
    for slot, table in enumerate(joined):
        if path.startswith(f"{table.name}."):
            return [_place(path, joined, slot)]  # which says that the table has no such column
    known = [name for table in joined for name in table.names]
    otherwise = (
        f"the columns are {', '.join(f'{table.name}.{name}' for table in joined for name in table.names)}"
    )
    raise SubscriptionError(f"there is no column '{path}'; {did_you_mean(path, known, otherwise)}")


def _one(path: str, joined: Sequence[Table], shared: Mapping[str, set[Place]]) -> Place:
    return _named(path, joined, shared)[0]


def _place(path: str, joined: Sequence[Table], slot: int) -> Place:
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


def _leaves(where: Condition) -> list[Comparison | Between | OneOf]:
    if isinstance(where, And):
        return [leaf for part in where.parts for leaf in _leaves(part)]
    if isinstance(where, Comparison | Between) or (isinstance(where, OneOf) and not where.negated):
        return [where]
    raise SubscriptionError(
        f"{_spoken(where)} stands in the WHERE of a join; use comparisons (= < <= > >=), BETWEEN and IN of columns "
        "with constants, put together by AND"
    )


def _spoken(where: Condition) -> str:
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


def _selected(
    leaf: Comparison | Between | OneOf, joined: Sequence[Table], shared: Mapping[str, set[Place]]
) -> list[Place]:
    operand = leaf.left if isinstance(leaf, Comparison) else leaf.operand
    if not isinstance(operand, Attribute):
        raise SubscriptionError(
            "a join compares something else than a column; write conditions such as stocks.per >= 45"
        )
    return _named(operand.path, joined, shared)


def _range(leaf: Comparison | Between | OneOf, kind: str, name: str) -> Range:
    """What one condition lets through, in a column of this type."""
    if isinstance(leaf, Between):
        low, high = _value(leaf.low, kind, name), _value(leaf.high, kind, name)
        _check_ordered(kind, name)
        return _both(_side(">=", low, kind), _side("<=", high, kind), kind)
    if isinstance(leaf, OneOf):
        return _options({_value(option, kind, name) for option in leaf.options}, kind)
    if not isinstance(leaf.right, Iri | Literal | Parameter):
        raise SubscriptionError(
            f"{name} {leaf.op} is followed by no constant; to join columns write JOIN … ON a.x = b.y"
        )
    value = _value(leaf.right, kind, name)
    if leaf.op == "=":
        return _options({value}, kind)
    if leaf.op == "!=":
        raise SubscriptionError(f"{name} is compared by !=; use = < <= > >=, BETWEEN and IN")
    _check_ordered(kind, name)
    return _side(leaf.op, value, kind)


def _check_ordered(kind: str, name: str) -> None:
    if kind == "boolean":
        raise SubscriptionError(f"{name} is true or false, which have no order; compare it by =")


_KINDS = {
    "integer": NUMBER,
    "number": NUMBER,
    "text": TEXT,
    "boolean": BOOLEAN,
    "date": INSTANT,
    "timestamp": INSTANT,
}
_WANTED = {
    NUMBER: "a number",
    TEXT: "a 'quoted text'",
    BOOLEAN: "true or false",
    INSTANT: "a date or time such as 2004-01-31 or 2004-01-31T10:00:00Z",
}
_DAY = 86_400_000_000


def _value(constant: Constant, kind: str, name: str) -> Any:
    """A constant on the scale of the column: a text, or an exact number whose place among the keys is known."""
    if isinstance(constant, Parameter):
        raise SubscriptionError(f"${constant.name} has no value yet; give one with subscribe_table")
    view = constant_view(constant)
    if view is not None and view[0] == TEXT and _KINDS[kind] == INSTANT:
        view = (INSTANT, moment) if (moment := instant(view[1])) is not None else view
    if view is None or view[0] != _KINDS[kind]:
        shown = constant.text if isinstance(constant, Literal) else constant.value
        if isinstance(constant, Literal) and constant.datatype in (None, XSD + "string"):
            shown = repr(shown)
        raise SubscriptionError(
            f"{name} of type {kind} is compared with {shown}; it needs {_WANTED[_KINDS[kind]]}"
        )
    return Fraction(view[1], _DAY) if kind == "date" else view[1]


def _side(op: str, value: Any, kind: str) -> Range:
    """`op value` for one of < <= > >=; a strict bound is the next key, in a text column an open one."""
    upper, strict = op[0] == "<", len(op) == 1
    if kind == "text":
        key = key_of(kind, value)
        if upper:
            return ALL._replace(high=key, high_text=value, high_open=strict)
        return ALL._replace(low=key, low_text=value, low_open=strict)
    if kind == "number":
        key = key_of(kind, _double(value))
        whole = True  # a constant is the double next to it, as in SQL
    else:
        key = math.floor(value) if upper else math.ceil(value)
        whole = key == value
    if strict and whole:
        key += -1 if upper else 1
    bounds = (LOWEST, key) if upper else (key, HIGHEST)
    return Range(*bounds) if LOWEST <= key <= HIGHEST else (ALL if (key > HIGHEST) == upper else EMPTY)


def _options(values: set[Any], kind: str) -> Range:
    """The values that are one of these, which may be a single one."""
    if kind == "text":
        return _texts(sorted(values))
    if kind == "number":
        keys = sorted({key_of(kind, _double(value)) for value in values})
    else:
        keys = sorted({int(value) for value in values if value == int(value) and LOWEST <= value <= HIGHEST})
    return _keys(keys)


def _double(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _keys(keys: Sequence[int]) -> Range:
    if not keys:
        return EMPTY
    return Range(keys[0], keys[-1], tuple(keys) if len(keys) > 1 else ())


def _texts(texts: Sequence[str]) -> Range:
    if not texts:
        return EMPTY
    low, high = texts[0], texts[-1]
    options = tuple(texts) if len(texts) > 1 else ()
    return Range(key_of("text", low), key_of("text", high), options, low, high)


def _both(one: Range, other: Range, kind: str) -> Range:
    """What both let through; an empty one is always EMPTY."""
    if is_empty(one) or is_empty(other):
        return EMPTY
    for first, second in ((one, other), (other, one)):
        if first.options:
            if kind == "text":
                return _texts([text for text in first.options if _admits_text(second, str(text))])  # type: ignore[misc]
            return _keys([key for key in first.options if _admits_key(second, key)])  # type: ignore[misc,arg-type]
    found = Range(max(one.low, other.low), min(one.high, other.high))
    if kind == "text":
        lows = [(r.low_text, r.low_open) for r in (one, other) if r.low_text is not None]
        highs = [(r.high_text, not r.high_open) for r in (one, other) if r.high_text is not None]
        low, low_open = max(lows, default=(None, False))
        high, high_closed = min(highs, default=(None, True))
        found = found._replace(low_text=low, low_open=low_open, high_text=high, high_open=not high_closed)
        if (
            low is not None
            and high is not None
            and (low > high or (low == high and (low_open or not high_closed)))
        ):
            return EMPTY
    return EMPTY if is_empty(found) else found


def _admits_key(found: Range, key: int) -> bool:
    return found.low <= key <= found.high and (not found.options or key in found.options)


def _admits_text(found: Range, text: str) -> bool:
    if is_empty(found) or (found.options and text not in found.options):
        return False
    low, high = found.low_text, found.high_text
    above = low is None or text > low or (text == low and not found.low_open)
    return above and (high is None or text < high or (text == high and not found.high_open))
