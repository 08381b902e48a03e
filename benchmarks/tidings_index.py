"""Our index over the integer form of a workload, so that a kernel can be timed without reading any text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from benchmarks import texts
from benchmarks.texts import BASE
from benchmarks.workloads import GREATER, LESS, NO_TEST, Workload
from tidings.formats.namespaces import XSD
from tidings.formats.rdf import NTRIPLES, canonical
from tidings.kinds.patterns import graphs
from tidings.kinds.patterns.graphs import GraphBatch
from tidings.kinds.patterns.index import PatternIndex
from tidings.kinds.patterns.shape import Pattern, compile_pattern
from tidings.kinds.patterns.table import PatternTable
from tidings.language.query import Comparison, Condition, Node, Parameter, TriplePattern, Variable

Column = tuple[npt.NDArray[np.integer], list[str]]


class Tidings:
    """The index of all subscriptions; a row's owner is the subscription's number."""

    def __init__(self, workload: Workload) -> None:
        rows, self.owner = table(workload)
        self.index = PatternIndex.build(rows)
        self.nbytes = self.index.nbytes

    def prepare(self, workload: Workload, count: int) -> Sequence[GraphBatch]:
        """The first `count` publications, read."""
        documents = [texts.ntriples(workload, row) for row in range(count)]
        return list(graphs.read(documents, lambda data: canonical(data, NTRIPLES), {}))

    def match(self, batches: Sequence[GraphBatch]) -> npt.NDArray[np.int64]:
        """Pairs (publication, subscription)."""
        pairs = []
        for batch in batches:
            matches = self.index.match(batch)
            pairs.append(np.column_stack([matches.event + batch.first_row, self.owner[matches.row]]))
        return np.concatenate(pairs)


def table(workload: Workload) -> tuple[PatternTable, npt.NDArray[np.int64]]:
    """The rows of all subscriptions, shape by shape, and the subscription of each."""
    edges, rows = workload.subscriptions, PatternTable()
    key = workload.shape * 3 + workload.operator
    order = np.argsort(key, kind="stable")
    bounds = np.flatnonzero(np.diff(key[order], prepend=-1, append=-1))
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        some = order[first:last]
        columns: dict[str, Column] = {}
        patterns = []
        for j in range(edges.label.shape[1]):
            columns[f"p{j}"] = _column(edges.label[some, j], "p")
            patterns.append(
                TriplePattern(
                    _end(edges.subject[some, j], f"s{j}", columns),
                    Parameter(f"p{j}"),
                    _end(edges.object[some, j], f"o{j}", columns),
                )
            )
        tests: tuple[Condition, ...] = ()
        if workload.operator[some[0]] != NO_TEST:
            op = {GREATER: ">", LESS: "<"}[int(workload.operator[some[0]])]
            tests = (Comparison(Variable("a"), op, Parameter("bound")),)
            distinct, codes = np.unique(workload.bound[some], return_inverse=True)
            columns["bound"] = codes, [f'"{value}"^^<{XSD}integer>' for value in distinct.tolist()]
        shape = rows.add_shape(compile_pattern(Pattern(tuple(patterns), tests)))
        rows.add_many(shape, columns, len(some))
    return rows, order


def _end(nodes: npt.NDArray[np.int32], name: str, columns: dict[str, Column]) -> Node:
    if nodes[0] < 0:
        return Variable("abcdefgh"[-1 - int(nodes[0])])
    columns[name] = _column(nodes, "n")
    return Parameter(name)


def _column(numbers: npt.NDArray[np.int32], letter: str) -> Column:
    distinct, codes = np.unique(numbers, return_inverse=True)
    return codes, [f"<{BASE}{letter}{number}>" for number in distinct.tolist()]
