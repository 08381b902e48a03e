"""Conditions with operators as SQL: each operator a table of its inputs and Outs, a call a row of it.

A value is two columns, a number and a text, one of them NULL, so that a comparison between kinds is false. A way
through the ORs is a SELECT over the tables of its calls; a NOT over calls is a NOT EXISTS that sees the columns
around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count, product
from typing import Any

import duckdb

from tests.kinds.operators.cases import DOMAIN, PLACES, SIGNATURES, Case
from tidings.language.query import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    Condition,
    Constant,
    Not,
    OneOf,
    Operand,
    Or,
    TextTest,
    Variable,
    has_calls,
)
from tidings.model.terms import Literal

# The number and the text of a value, as expressions.
Pair = tuple[str, str]
Columns = Mapping[str, Pair]


def load(connection: duckdb.DuckDBPyConnection, case: Case, n: int) -> None:
    """Fills a table for each operator with all that it says of an event."""
    for name, kinds in SIGNATURES.items():
        places = ", ".join(f"n{i} BIGINT, t{i} VARCHAR" for i in range(len(kinds)))
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} (one INTEGER, {places})")
        lines = []
        for inputs in product([*DOMAIN, *PLACES], repeat=kinds.count("i")):
            for row in case.rows(n, name, inputs) or ():
                given, found = iter(inputs), iter(row)
                values = [next(given) if kind == "i" else next(found) for kind in kinds]
                pairs = [
                    f"{value}, NULL" if isinstance(value, int) else f"NULL, '{value}'" for value in values
                ]
                lines.append(f"({', '.join(['1', *pairs])})")
        if lines:
            connection.execute(f"INSERT INTO {name} VALUES {', '.join(lines)}")


def to_sql(condition: Condition, attributes: Mapping[str, Any]) -> str:
    """Whether the condition has a solution, as an expression."""
    return _Writer(attributes).exists(condition, {})


class _Writer:
    def __init__(self, attributes: Mapping[str, Any]) -> None:
        self.attributes = attributes
        self.aliases = (f"r{number}" for number in count())

    def exists(self, condition: Condition, around: Columns) -> str:
        ways = [f"EXISTS ({self.select(way, around)})" for way in _ways(condition)]
        return f"({' OR '.join(ways)})"

    def select(self, way: tuple[Condition, ...], around: Columns) -> str:
        columns, tables, tests = dict(around), ["(SELECT 1)"], ["true"]
        for part in way:
            if isinstance(part, Call):
                alias = next(self.aliases)
                tables.append(f"{part.name} AS {alias}")
                for position, argument in enumerate(part.arguments):
                    here = f"{alias}.n{position}", f"{alias}.t{position}"
                    if isinstance(argument, Variable):
                        there = columns.setdefault(argument.name, here)
                    else:
                        there = self.pair(argument, columns)
                    tests.append(_compared(here, "=", there))
        tests += [self.test(part, columns) for part in way if not isinstance(part, Call)]
        return f"SELECT 1 FROM {', '.join(tables)} WHERE {' AND '.join(tests)}"

    def test(self, test: Condition, columns: Columns) -> str:
        match test:
            case Not(part):
                inner = self.exists(part, columns) if has_calls(part) else self.test(part, columns)
                return f"(NOT {inner})"
            case And(parts):
                return f"({' AND '.join(self.test(part, columns) for part in parts)})"
            case Or(parts):
                return f"({' OR '.join(self.test(part, columns) for part in parts)})"
            case Comparison(left, op, right):
                return _compared(self.pair(left, columns), op, self.pair(right, columns))
            case Between(operand, low, high):
                value = self.pair(operand, columns)
                bounds = ((">=", low), ("<=", high))
                return f"({' AND '.join(_compared(value, op, self.pair(b, columns)) for op, b in bounds)})"
            case OneOf(operand, options, negated):
                value, others = self.pair(operand, columns), [self.pair(o, columns) for o in options]
                is_one = " OR ".join(_compared(value, "=", other) for other in others)
                alike = " OR ".join(_compared(value, op, other) for other in others for op in ("=", "!="))
                return f"(({alike}) AND NOT ({is_one}))" if negated else f"({is_one})"
            case TextTest(operand, "LIKE", Literal(text)):
                return f"coalesce({self.pair(operand, columns)[1]} LIKE '{text}', false)"
        raise TypeError(f"{test!r} is not written as SQL")

    def pair(self, term: Operand | Constant, columns: Columns) -> Pair:
        match term:
            case Variable(name):
                return columns.get(name, ("NULL::BIGINT", "NULL::VARCHAR"))
            case Attribute(path):
                return _constant(self.attributes[path])
            case Literal(text, datatype):
                return _constant(int(text) if datatype else text)
            case Arithmetic(op, left, right):
                sides = [self.pair(side, columns)[0] for side in (left, right)]
                return f"({sides[0]} {op} {sides[1]})", "NULL::VARCHAR"
        raise TypeError(f"{term!r} is not written as SQL")


def _ways(condition: Condition) -> Iterator[tuple[Condition, ...]]:
    """The choices through ORs over calls, each a flat conjunction."""
    if isinstance(condition, And):
        for chosen in product(*(list(_ways(part)) for part in condition.parts)):
            yield tuple(part for way in chosen for part in way)
    elif isinstance(condition, Or) and has_calls(condition):
        for part in condition.parts:
            yield from _ways(part)
    else:
        yield (condition,)


def _compared(left: Pair, op: str, right: Pair) -> str:
    op = "<>" if op == "!=" else op
    return f"(coalesce({left[0]} {op} {right[0]}, false) OR coalesce({left[1]} {op} {right[1]}, false))"


def _constant(value: Any) -> Pair:
    return (str(value), "NULL::VARCHAR") if isinstance(value, int) else ("NULL::BIGINT", f"'{value}'")
