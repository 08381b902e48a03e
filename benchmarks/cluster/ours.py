"""The workload in our engine: subscriptions by tables of their structures, publications as N-Triples."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa

from benchmarks.cluster.patterns import GREATER, NO_TEST, Patterns
from benchmarks.cluster.workload import Workload
from benchmarks.texts import BASE
from benchmarks.workloads import NO_VALUE, Edges, Longs
from tidings import Engine
from tidings.formats.namespaces import XSD
from tidings.formats.rdf import NTRIPLES

_VARIABLES = ("", "?v", "?a", "?b")


def engine(workload: Workload, count: int | None = None) -> Engine:
    """An engine with the first `count` subscriptions, or all; subscription 12 is called s12."""
    patterns = workload.subscriptions
    rows = np.arange(len(patterns) if count is None else count)
    made = Engine()
    for template, table in _tables(patterns, rows):
        made.subscribe_table(template, table)
    made.index.fold()
    return made


def _tables(patterns: Patterns, rows: Longs) -> list[tuple[str, pa.Table]]:
    """A template and a table of constants for each structure: which ends are variables, and which test there is."""
    columns = patterns.take(rows)
    size = np.diff(columns.first)
    place = (
        np.repeat(np.arange(len(rows)), size),
        np.arange(len(columns.label)) - np.repeat(columns.first[:-1], size),
    )
    shape = np.ones((len(rows), int(size.max()), 2), np.int8)
    for end, nodes in enumerate((columns.subject, columns.object)):
        shape[(*place, np.full(len(nodes), end))] = np.minimum(nodes, 0)
    keys = np.column_stack([shape.reshape(len(rows), -1), columns.operator])
    distinct, group = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(group, kind="stable")
    bounds = np.searchsorted(group[order], np.arange(len(distinct) + 1))
    return [_table(patterns, rows[order[low:high]]) for low, high in itertools.pairwise(bounds)]


def _table(patterns: Patterns, rows: Longs) -> tuple[str, pa.Table]:
    columns, first = patterns.columns, patterns.columns.first[rows]
    values: dict[str, pa.Array] = {"id": pa.array([f"s{row}" for row in rows.tolist()])}
    triples = []
    for j in range(int(columns.first[rows[0] + 1] - first[0])):
        values[f"p{j}"] = _names("p", columns.label[first + j])
        ends = []
        for letter, nodes in (("s", columns.subject[first + j]), ("o", columns.object[first + j])):
            if nodes[0] < 0:
                ends.append(_VARIABLES[-int(nodes[0])])
            else:
                ends.append(f"${letter}{j}")
                values[f"{letter}{j}"] = _names("n", nodes)
        triples.append(f"({ends[0]}, $p{j}, {ends[1]})")
    text = f"SELECT * WHERE {', '.join(triples)}"
    operator = int(columns.operator[rows[0]])
    if operator != NO_TEST:
        text += f" AND ?v {'>' if operator == GREATER else '<'} $bound"
        values["bound"] = pa.array(columns.bound[rows])
    return text, pa.table(values)


def _names(letter: str, numbers: np.ndarray) -> pa.Array:
    return pa.array([f"{BASE}{letter}{number}" for number in numbers.tolist()])


def events(workload: Workload, publications: Edges) -> pa.Table:
    """Publications as a table of events; event 12 is called 12."""
    value = workload.value.tolist()
    terms = [
        f"<{BASE}n{node}>" if number == NO_VALUE else f'"{number}"^^<{XSD}integer>'
        for node, number in enumerate(value)
    ]
    labels = [f"<{BASE}p{label}>" for label in range(workload.parameters.labels + 1)]
    rows = zip(
        publications.subject.tolist(), publications.label.tolist(), publications.object.tolist(), strict=True
    )
    documents = [
        "".join(f"{terms[s]} {labels[p]} {terms[o]} .\n" for s, p, o in zip(*row, strict=True)).encode()
        for row in rows
    ]
    return pa.table(
        {
            "id": [str(number) for number in range(len(documents))],
            "datacontenttype": [NTRIPLES] * len(documents),
            "data": pa.array(documents, pa.binary()),
        }
    )
