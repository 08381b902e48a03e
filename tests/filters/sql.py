"""Filters as SQL, for a table of the columns of `cases.COLUMNS`: where NULL would be unknown, it is false.

A comparison between kinds, which SQL refuses or answers by a cast, is written as the `false` that it means.
"""

from __future__ import annotations

from typing import Any

from tests.filters.cases import COLUMNS
from tidings.language.query import (
    And,
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
from tidings.terms import XSD, Iri, Literal

_KINDS = {"BIGINT": "number", "DOUBLE": "number", "HUGEINT": "number", "VARCHAR": "text"}
_TYPES = {"integer": "number", "decimal": "number", "boolean": "BOOLEAN", "date": "DATE"}
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
        case Comparison(left, op, right):
            return _compare(left, op, right)
        case Between(operand, low, high):
            if _kind(low) != _kind(operand) or _kind(high) != _kind(operand) or _kind(operand) == "BOOLEAN":
                return "false"
            fold = isinstance(operand, Folded)
            return _sure(f"{_term(operand)} BETWEEN {_term(low, fold)} AND {_term(high, fold)}")
        case OneOf(operand, options, negated):
            fold = isinstance(operand, Folded)
            comparable = [_term(option, fold) for option in options if _kind(option) == _kind(operand)]
            word = "NOT IN" if negated else "IN"
            return _sure(f"{_term(operand)} {word} ({', '.join(comparable)})") if comparable else "false"
        case TextTest(operand, op, pattern):
            if _kind(operand) != "text":
                return "false"
            return _sure(_TEXT[op].format(_term(operand), _term(pattern, isinstance(operand, Folded))))
        case Exists(attribute):
            return f"({_term(attribute)} IS NOT NULL)"
        case Missing(attribute):
            return f"({_term(attribute)} IS NULL)"
    raise TypeError(f"{condition!r} has no form in SQL")


def _compare(left: Any, op: str, right: Any) -> str:
    if _kind(left) != _kind(right) or (_kind(left) == "BOOLEAN" and op not in ("=", "!=")):
        return "false"
    fold = isinstance(left, Folded) or isinstance(right, Folded)
    return _sure(f"{_term(left, fold)} {op} {_term(right, fold)}")


def _sure(test: str) -> str:
    return f"coalesce({test}, false)"


def _kind(term: Any) -> str:
    match term:
        case Attribute(path):
            return _KINDS.get(COLUMNS[path][0], COLUMNS[path][0])
        case Folded(operand):
            return _kind(operand)
        case Arithmetic():
            return "number"
        case Literal(_, datatype):
            return _TYPES[datatype.removeprefix(XSD)] if datatype else "text"
    assert isinstance(term, Iri)
    return "resource"


def _term(term: Any, fold: bool = False) -> str:
    match term:
        case Attribute(path):
            return f"lower({path})" if fold and _kind(term) == "text" else path
        case Folded(operand):
            return _term(operand, fold=True)
        case Arithmetic("/", left, right):
            return f"({_term(left)}::DOUBLE / nullif({_term(right)}::DOUBLE, 0))"
        case Arithmetic(op, left, right):
            return f"({_term(left)} {op} {_term(right)})"
        case Literal(text, datatype):
            if datatype == XSD + "date":
                return f"DATE '{text}'"
            if datatype:
                return f"({text}::DOUBLE)" if "." in text else text
            quoted = text.replace("'", "''")
            return f"lower('{quoted}')" if fold else f"'{quoted}'"
    raise TypeError(f"{term!r} has no form in SQL")
