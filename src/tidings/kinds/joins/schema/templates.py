"""Computes the ranges of many subscriptions at once: fills a template's selections from the columns of a table.

Comparisons and BETWEEN on integers, numbers, booleans, dates and timestamps are filled column by column; for everything
else (texts, IN, a column of another type) the ranges are computed row by row, once for equal values.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.errors import SubscriptionError
from tidings.formats.namespaces import XSD
from tidings.kinds.joins.schema.order_keys import HIGHEST, LOWEST, keys_of
from tidings.kinds.joins.schema.ranges import EMPTY, Leaf, Range, range_of
from tidings.kinds.joins.schema.shape import Selection
from tidings.language.parameters import parameters, substitute
from tidings.language.query import And, Between, Comparison, Parameter, Query
from tidings.model.terms import Literal

_FITTING = {
    "integer": pa.types.is_integer,
    "number": lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind),
    "boolean": pa.types.is_boolean,
    "date": pa.types.is_date32,
    "timestamp": lambda kind: pa.types.is_timestamp(kind) and kind.unit in ("s", "ms", "us"),
}


class FilledRanges(NamedTuple):
    """The ranges of one selection, a row for each subscription; `ranges` is None if low and high say it all."""

    low: np.ndarray
    high: np.ndarray
    ranges: list[Range] | None = None


def fill(selections: Sequence[Selection], table: pa.Table) -> list[FilledRanges]:
    """The ranges of a template's selections for every row of `table`, which has a column for each parameter."""
    for name in dict.fromkeys(name for selection in selections for name in _parameters(selection)):
        _check_column(name, table)
    return [_by_columns(selection, table) or _by_rows(selection, table) for selection in selections]


def _check_column(name: str, table: pa.Table) -> None:
    if name not in table.column_names:
        raise SubscriptionError(f"the table has no column '{name}'; it needs one for each $parameter")
    column = table[name]
    if column.null_count:
        raise SubscriptionError(f"${name} has no value in {column.null_count} rows; give every row one")
    if pa.types.is_nested(column.type):
        raise SubscriptionError(
            f"${name} is of type {column.type}; give numbers, texts, truth values, dates or times"
        )
    if pa.types.is_floating(column.type) and not pc.all(pc.is_finite(column)).as_py():
        raise SubscriptionError(f"${name} is not finite in some row; give every row a finite number")


def _parameters(selection: Selection) -> tuple[str, ...]:
    return parameters(Query(And(selection.conditions)))


def _by_columns(selection: Selection, table: pa.Table) -> FilledRanges | None:
    """The ranges of a selection that needs low and high only; None if it may need more."""
    sides = [side for leaf in selection.conditions for side in _sides(leaf)]
    if selection.kind == "text" or None in sides:
        return None
    low, high = np.full(len(table), LOWEST), np.full(len(table), HIGHEST)
    beyond = np.zeros(len(table), dtype=bool)
    for side in sides:
        assert side is not None
        if not isinstance(side.right, Parameter):
            found = range_of([side], selection.kind, selection.name)
            low, high = np.maximum(low, found.low), np.minimum(high, found.high)
            continue
        column = table[side.right.name]
        if not _FITTING[selection.kind](column.type) or (selection.kind == "boolean" and side.op != "="):
            return None
        try:
            keys = keys_of(selection.kind, column.combine_chunks())
        except pa.ArrowInvalid:  # an integer beyond 64 bits, or beyond what a double holds exactly
            return None
        if side.op in ("=", ">=", ">"):
            beyond |= (keys == HIGHEST) & (side.op == ">")
            low = np.maximum(low, keys + ((keys < HIGHEST) & (side.op == ">")))
        if side.op in ("=", "<=", "<"):
            beyond |= (keys == LOWEST) & (side.op == "<")
            high = np.minimum(high, keys - ((keys > LOWEST) & (side.op == "<")))
    empty = beyond | (low > high)
    low[empty], high[empty] = EMPTY.low, EMPTY.high
    return FilledRanges(low, high)


def _sides(leaf: Leaf) -> list[Comparison | None]:
    """A condition as comparisons; None if it is not one or two comparisons."""
    if isinstance(leaf, Between):
        return [Comparison(leaf.operand, ">=", leaf.low), Comparison(leaf.operand, "<=", leaf.high)]
    return [leaf if isinstance(leaf, Comparison) and leaf.op != "!=" else None]


def _by_rows(selection: Selection, table: pa.Table) -> FilledRanges:
    names = _parameters(selection)
    template = Query(And(selection.conditions))
    made: dict[tuple[Any, ...], Range] = {}
    ranges = []
    rows = zip(*(table[name].to_pylist() for name in names), strict=True) if names else [()] * len(table)
    for values in rows:
        typed = tuple((type(value), value) for value in values)  # 1, 1.0 and True are equal
        if typed not in made:
            constants = {name: _literal(name, value) for name, value in zip(names, values, strict=True)}
            where = substitute(template, constants).where
            assert isinstance(where, And)
            made[typed] = range_of(where.parts, selection.kind, selection.name)  # type: ignore[arg-type]
        ranges.append(made[typed])
    low = np.array([found.low for found in ranges], dtype=np.int64)
    high = np.array([found.high for found in ranges], dtype=np.int64)
    return FilledRanges(low, high, ranges)


def _literal(name: str, value: Any) -> Literal:
    """A value of the table as the text would write it."""
    if isinstance(value, bool):
        return Literal(str(value).lower(), f"{XSD}boolean")
    if isinstance(value, int):
        return Literal(str(value), f"{XSD}integer")
    if isinstance(value, float):
        return Literal(repr(value), f"{XSD}double")
    if isinstance(value, datetime):
        return Literal(value.isoformat(), f"{XSD}dateTime")
    if isinstance(value, date):
        return Literal(value.isoformat(), f"{XSD}date")
    if isinstance(value, str):
        return Literal(value)
    raise SubscriptionError(f"${name} is {value!r}; give numbers, texts, truth values, dates or times")
