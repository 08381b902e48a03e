"""Filters as SQL, for a table of `cases.COLUMNS` and `cases.LISTS`: where NULL would be unknown, it is false.

A comparison between kinds, which SQL refuses or answers by a cast, is written as the `false` that it means. A list
makes a test a loop over its elements.
"""

from __future__ import annotations

from typing import Any

from tests.kinds.filters.cases import COLUMNS, DATES, LISTED, OF_ELEMENTS, TEXTS, TRUTHS
from tidings.formats.namespaces import XSD
from tidings.language.query import (
    And,
    AnyElement,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Condition,
    Exists,
    Folded,
    Missing,
    Not,
    OneOf,
    Or,
    TextTest,
)
from tidings.model.terms import Iri, Literal

_HELD = {
    **{name: held for name, (_, held) in COLUMNS.items()},
    **LISTED,
    **{name: held for _, parts in OF_ELEMENTS.values() for name, held in parts.items()},
}
_TYPES = {"integer": "number", "decimal": "number", "boolean": "boolean", "date": "date"}
_TEXT = {
    "LIKE": "({} LIKE {} ESCAPE '\\')",
    "CONTAINS": "contains({}, {})",
    "STARTS": "starts_with({}, {})",
    "ENDS": "ends_with({}, {})",
    "MATCHES": "regexp_matches({}, {})",
}


def to_sql(condition: Condition) -> str:
    """The condition as a WHERE clause has it."""
    match condition:
        case And(parts):
            return "(" + " AND ".join(map(to_sql, parts)) + ")"
        case Or(parts):
            return "(" + " OR ".join(map(to_sql, parts)) + ")"
        case Not(part):
            return f"(NOT {to_sql(part)})"
        case Missing(Attribute(path)) if path in LISTED and "." not in path:
            return f"({path} IS NULL)"  # an empty list is there
        case Missing(attribute):
            return f"(NOT {to_sql(Exists(attribute))})"
        case AnyElement(name, Attribute(path), inner):
            return _any(f"({name} IS NOT NULL AND {to_sql(inner)})", name, path)
    return _Test().sql(condition)


def _any(test: str, name: str, items: str) -> str:
    return f"coalesce(list_bool_or([{test} FOR {name} IN {items}]), false)"


class _Test:
    """One leaf; `loops` are the lists that it goes through, a variable for each mention."""

    def __init__(self) -> None:
        self.loops: list[tuple[str, str]] = []

    def sql(self, leaf: Condition) -> str:
        test = f"coalesce({self._test(leaf)}, false)"
        for variable, items in self.loops:
            test = _any(test, variable, items)
        return test

    def _test(self, leaf: Condition) -> str:
        match leaf:
            case Comparison(left, op, right):
                fold = isinstance(left, Folded)
                unordered = _kind(left) == "boolean" and op not in ("=", "!=")
                if _kind(left) != _kind(right) or unordered:
                    return "false"
                return f"{self._term(left, fold)} {op} {self._term(right, fold)}"
            case Between(operand, low, high):
                kinds = {_kind(operand), _kind(low), _kind(high)}
                if len(kinds) > 1 or kinds == {"boolean"}:
                    return "false"
                bounds = [self._term(bound, isinstance(operand, Folded)) for bound in (low, high)]
                return f"{self._term(operand)} BETWEEN {bounds[0]} AND {bounds[1]}"
            case OneOf(operand, options, negated):
                fold = isinstance(operand, Folded)
                same = [self._term(option, fold) for option in options if _kind(option) == _kind(operand)]
                word = "NOT IN" if negated else "IN"
                return f"{self._term(operand)} {word} ({', '.join(same)})" if same else "false"
            case TextTest(operand, op, pattern):
                if _kind(operand) != "text":
                    return "false"
                return _TEXT[op].format(self._term(operand), self._term(pattern, isinstance(operand, Folded)))
            case Exists(attribute):
                return f"{self._term(attribute)} IS NOT NULL"
        raise TypeError(f"{leaf!r} has no form in SQL")

    def _term(self, term: Any, fold: bool = False) -> str:
        match term:
            case Attribute(path):
                value = path
                if path in LISTED:
                    name, _, part = path.partition(".")
                    value = f"v{len(self.loops)}"
                    self.loops.append((value, f"[r.{part} FOR r IN {name}]" if part else name))
                return f"lower({value})" if fold and _kind(term) == "text" else value
            case Folded(operand):
                return self._term(operand, fold=True)
            case Arithmetic("/", left, right):
                return f"({self._term(left)}::DOUBLE / nullif({self._term(right)}::DOUBLE, 0))"
            case Arithmetic(op, left, right):
                return f"({self._term(left)} {op} {self._term(right)})"
            case Literal(text, datatype):
                if datatype == XSD + "date":
                    return f"DATE '{text}'"
                if datatype:
                    return f"({text}::DOUBLE)" if "." in text else text
                quoted = text.replace("'", "''")
                return f"lower('{quoted}')" if fold else f"'{quoted}'"
        raise TypeError(f"{term!r} has no form in SQL")


def _kind(term: Any) -> str:
    match term:
        case Attribute(path):
            kinds = ((TEXTS, "text"), (DATES, "date"), (TRUTHS, "boolean"))
            return next((kind for held, kind in kinds if _HELD[path] is held), "number")
        case Folded(operand):
            return _kind(operand)
        case Arithmetic():
            return "number"
        case Literal(_, datatype):
            return _TYPES[datatype.removeprefix(XSD)] if datatype else "text"
    assert isinstance(term, Iri)
    return "resource"
