"""Ranges: the values of a column that a subscription admits, as an interval of order keys.

Ranges are closed: a strict bound is the next key. The keys of a text column are not exact, so there the texts
themselves decide. Several conditions on a column are one range, and an empty one is always EMPTY.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from tidings.errors import SubscriptionError
from tidings.formats.namespaces import XSD
from tidings.kinds.joins.schema.order_keys import HIGHEST, LOWEST, TYPE_OF, key_of
from tidings.language.query import Between, Comparison, Constant, OneOf, Parameter
from tidings.model.terms import Iri, Literal
from tidings.model.values import BOOLEAN, INSTANT, NUMBER, TEXT, constant_view, instant

Leaf = Comparison | Between | OneOf


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


def range_of(conditions: Iterable[Leaf], kind: str, name: str) -> Range:
    """The range that satisfies all conditions on a column of this type; `name` is for error messages."""
    found = ALL
    for leaf in conditions:
        found = _intersection(found, _range(leaf, kind, name), kind)
    return found


def _range(leaf: Leaf, kind: str, name: str) -> Range:
    """The range of one condition on a column of this type."""
    if isinstance(leaf, Between):
        low, high = _value(leaf.low, kind, name), _value(leaf.high, kind, name)
        _check_ordered(kind, name)
        return _intersection(_side(">=", low, kind), _side("<=", high, kind), kind)
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
    """A constant on the scale of the column: a text, or an exact number whose position among the keys is known."""
    if isinstance(constant, Parameter):
        raise SubscriptionError(f"${constant.name} has no value yet; give one with subscribe_table")
    view = constant_view(constant)
    if view is not None and view[0] == TEXT and _KINDS[kind] == INSTANT:
        view = (INSTANT, moment) if (moment := instant(view[1])) is not None else view
    if view is None or view[0] != _KINDS[kind]:
        value_text = constant.text if isinstance(constant, Literal) else constant.value
        if isinstance(constant, Literal) and constant.datatype in (None, XSD + "string"):
            value_text = repr(value_text)
        raise SubscriptionError(
            f"{name} of type {kind} is compared with {value_text}; it needs {_WANTED[_KINDS[kind]]}"
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


def _intersection(left: Range, right: Range, kind: str) -> Range:
    """The intersection of two ranges; an empty one is always EMPTY."""
    if is_empty(left) or is_empty(right):
        return EMPTY
    for first, second in ((left, right), (right, left)):
        if first.options:
            if kind == "text":
                return _texts([text for text in first.options if _admits_text(second, str(text))])  # type: ignore[misc]
            return _keys([key for key in first.options if _admits_key(second, key)])  # type: ignore[misc,arg-type]
    found = Range(max(left.low, right.low), min(left.high, right.high))
    if kind == "text":
        lows = [(r.low_text, r.low_open) for r in (left, right) if r.low_text is not None]
        highs = [(r.high_text, not r.high_open) for r in (left, right) if r.high_text is not None]
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
