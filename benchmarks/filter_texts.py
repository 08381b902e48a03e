"""A workload of filters in the forms that users bring: texts, query trees, templates with tables, events.

Everything is made from the arrays on demand, because a million query trees take more memory than their index.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import pairwise
from typing import TypeVar

import pyarrow as pa

from benchmarks.conjunctions import Conjunctions
from benchmarks.expression_kernels import AND, EQUAL, IN, NOT_IN, OR, RANGE, UNEQUAL
from benchmarks.filter_workloads import Events, Workload
from tidings.formats.namespaces import XSD
from tidings.language.query import And, Attribute, Between, Comparison, Condition, OneOf, Or
from tidings.model.terms import Literal

Value = str | int | float
Nodes = list[tuple[int, int, int, int, int]]
T = TypeVar("T")


def conditions(workload: Workload, first: int = 0, last: int | None = None) -> Iterator[Condition]:
    """The expressions first … last - 1 as query trees."""
    leaf = _Leaves(workload)
    for nodes in _nodes(workload, first, last):
        yield _folded(nodes, leaf, lambda kind, parts, _: And(parts) if kind == AND else Or(parts))


def subscription_texts(workload: Workload, first: int = 0, last: int | None = None) -> list[tuple[str, str]]:
    """(id, text) of the expressions first … last - 1: WHERE a7 = 12 AND (a4 IN (3, 5) OR a91 >= 60)."""
    leaf = partial(_leaf_text, workload)
    return [
        (f"s{row}", f"WHERE {_folded(nodes, leaf, _joined)}")
        for row, nodes in enumerate(_nodes(workload, first, last), start=first)
    ]


def tables(workload: Conjunctions) -> Iterator[tuple[str, pa.Table]]:
    """A template for each form and a table of its conjunctions' constants, as `subscribe_table` takes them."""
    for form, template in zip(workload.forms, templates(workload), strict=True):
        if not len(form.constants):
            continue
        ids = [f"s{row}" for row in range(form.first, form.first + len(form.constants))]
        columns: dict[str, pa.Array] = {"id": pa.array(ids)}
        for attribute, column in zip(form.attributes, form.columns, strict=True):
            values = pa.array(list(workload.names.values[attribute]))
            for i in range(column.start, column.stop):
                columns[f"p{i}"] = values.take(pa.array(form.constants[:, i]))
        yield template, pa.table(columns)


def templates(workload: Conjunctions) -> Iterator[str]:
    """WHERE a7 = $p0 AND a4 IN ($p1, $p2) AND a91 BETWEEN $p3 AND $p4, of each form."""
    for form in workload.forms:
        tests = []
        for attribute, kind, column in zip(form.attributes, form.kinds, form.columns, strict=True):
            parameters = [f"$p{i}" for i in range(column.start, column.stop)]
            test = {
                EQUAL: f"= {parameters[0]}",
                UNEQUAL: f"!= {parameters[0]}",
                IN: f"IN ({', '.join(parameters)})",
                RANGE: f"BETWEEN {parameters[0]} AND {parameters[-1]}",
            }[kind]
            tests.append(f"{workload.names.attributes[attribute]} {test}")
        yield f"WHERE {' AND '.join(tests)}"


def event_dicts(workload: Workload, events: Events | None = None) -> list[dict[str, Value]]:
    """The events' attributes."""
    events = workload.events if events is None else events
    names = workload.names
    return [
        {names.attributes[a]: names.values[a][v] for a, v in zip(attributes, values, strict=True) if a >= 0}
        for attributes, values in zip(events.attribute.tolist(), events.value.tolist(), strict=True)
    ]


def json_lines(workload: Workload, events: Events | None = None) -> list[str]:
    """The events' attributes, each a JSON object in one line."""
    return [json.dumps(event) for event in event_dicts(workload, events)]


def event_table(workload: Workload, events: Events | None = None) -> pa.Table:
    """The events as a table of one column: attributes, JSON texts."""
    return pa.table({"attributes": pa.array(json_lines(workload, events))})


def ndjson(workload: Workload, events: Events | None = None) -> bytes:
    """The events as a file of JSON lines."""
    return "".join(line + "\n" for line in json_lines(workload, events)).encode()


def _nodes(workload: Workload, first: int, last: int | None) -> Iterator[Nodes]:
    """The nodes of each expression, (kind, size, attribute, low, high), a few thousand expressions at a time."""
    roots, trees = workload.expressions.first, workload.expressions.trees
    stop = len(workload.expressions) if last is None else last
    for start in range(first, stop, 5000):
        bounds = roots[start : min(start + 5000, stop) + 1].tolist()
        part = slice(bounds[0], bounds[-1])
        nodes = list(
            zip(
                trees.kind[part].tolist(),
                trees.size[part].tolist(),
                trees.attribute[part].tolist(),
                trees.low[part].tolist(),
                trees.high[part].tolist(),
                strict=True,
            )
        )
        for begin, end in pairwise(bounds):
            yield nodes[begin - bounds[0] : end - bounds[0]]


@lru_cache(maxsize=1 << 16)
def literal(value: Value) -> Literal:
    """A value as a constant of a query."""
    if isinstance(value, str):
        return Literal(value)
    return Literal(str(value), XSD + ("integer" if isinstance(value, int) else "decimal"))


class _Leaves:
    """Makes the query tree of a leaf; equal ones of one value are made once."""

    def __init__(self, workload: Workload) -> None:
        self._attributes = [Attribute(name) for name in workload.names.attributes]
        self._values = [[literal(value) for value in values] for values in workload.names.values]
        self._options = workload.expressions.trees.options
        self._made: dict[tuple[int, int, int], Condition] = {}

    def __call__(self, kind: int, attribute: int, low: int, high: int) -> Condition:
        operand, values = self._attributes[attribute], self._values[attribute]
        if kind in (IN, NOT_IN):
            options = tuple([values[v] for v in self._options[low:high].tolist()])
            return OneOf(operand, options, kind == NOT_IN)
        if kind == RANGE:
            if low == 0:
                return Comparison(operand, "<=", values[high])
            if high == len(values) - 1:
                return Comparison(operand, ">=", values[low])
            return Between(operand, values[low], values[high])
        made = self._made.get((kind, attribute, low))
        if made is None:
            made = Comparison(operand, "=" if kind == EQUAL else "!=", values[low])
            self._made[kind, attribute, low] = made
        return made


def _folded(
    nodes: Nodes, leaf: Callable[[int, int, int, int], T], inner: Callable[[int, tuple[T, ...], bool], T]
) -> T:
    """An expression made from its parts, from the last node to the first: a node's children are the newest then."""
    done: list[T] = []
    sizes: list[int] = []
    for kind, size, attribute, low, high in reversed(nodes):
        if kind > OR:
            done.append(leaf(kind, attribute, low, high))
            sizes.append(1)
            continue
        inside, count = 1, 0
        while inside < size:
            count += 1
            inside += sizes[-count]
        parts = tuple(done[: -count - 1 : -1])
        del done[-count:], sizes[-count:]
        done.append(inner(kind, parts, size == len(nodes)))
        sizes.append(size)
    return done[0]


def _joined(kind: int, parts: tuple[str, ...], outermost: bool) -> str:
    text = (" AND " if kind == AND else " OR ").join(parts)
    return text if outermost else f"({text})"


def _leaf_text(workload: Workload, kind: int, attribute: int, low: int, high: int) -> str:
    name, values = workload.names.attributes[attribute], workload.names.values[attribute]
    if kind in (IN, NOT_IN):
        options = ", ".join(
            _constant(values[v]) for v in workload.expressions.trees.options[low:high].tolist()
        )
        return f"{name} {'IN' if kind == IN else 'NOT IN'} ({options})"
    if kind == RANGE:
        if low == 0:
            return f"{name} <= {_constant(values[high])}"
        if high == len(values) - 1:
            return f"{name} >= {_constant(values[low])}"
        return f"{name} BETWEEN {_constant(values[low])} AND {_constant(values[high])}"
    return f"{name} {'=' if kind == EQUAL else '!='} {_constant(values[low])}"


def _constant(value: Value) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)
