"""One machine of the cluster: subscriptions in a matrix with constraint tables, matched by counting. RSS cluster, 4.1 and 4.5."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.cluster import kernels
from benchmarks.cluster.patterns import NO_TEST, OPERATORS, VARIABLES, Patterns
from benchmarks.workloads import Edges, Ints, Longs

Pairs = Longs


class Graphs(NamedTuple):
    """Publications as the compiled loops take them."""

    subject: Ints
    label: Ints
    object: Ints

    @classmethod
    def of(cls, edges: Edges) -> Graphs:
        return cls(*map(np.ascontiguousarray, (edges.subject, edges.label, edges.object)))


class Node:
    """Some of the subscriptions; pairs have the numbers that they have in `patterns`. With `structure_only` tests are left out."""

    def __init__(self, patterns: Patterns, rows: Longs, value: Longs, structure_only: bool = False) -> None:
        self.rows, self.value = np.asarray(rows, np.int64), value
        columns = patterns.take(self.rows)
        if structure_only:
            columns = columns._replace(operator=np.zeros_like(columns.operator))
        self.patterns = columns
        owner = np.repeat(np.arange(len(self.rows)), np.diff(columns.first))
        width = len(value) + 1
        vertices = [
            np.maximum(column, -1).astype(np.int64) + 1 for column in (columns.subject, columns.object)
        ]
        key = (columns.label.astype(np.int64) * width + vertices[0]) * width + vertices[1]
        unique, edge = np.unique(key, return_inverse=True)
        self.sub_edge = edge.astype(np.int32)
        slots = np.full(1 << max(1, 2 * len(unique) - 1).bit_length(), -1, np.int32)
        kernels.fill_slots(unique, slots)
        tested = columns.operator[owner] != NO_TEST
        sides = [tested & (column == -1) for column in (columns.subject, columns.object)]
        is_plain = ~(sides[0] | sides[1])
        plain_first, plain = _lists(edge[is_plain], len(unique), owner[is_plain])
        table, lists, bounds, listed = self._constraint_tables(edge, owner, sides, len(unique))
        self.matrix = kernels.Matrix(slots, unique, plain_first, plain, table, lists, bounds, listed)
        self.scratch = self._room(0)

    def _constraint_tables(
        self, edge: Longs, owner: Longs, sides: list[np.ndarray], edges: int
    ) -> tuple[Ints, Longs, Longs, Ints]:
        """Of each edge with tests the lists of both its ends, for each operator, ordered by bound."""
        place = np.concatenate([np.flatnonzero(side) for side in sides])
        end = np.repeat([0, 1], [int(side.sum()) for side in sides])
        with_tests, number = np.unique(edge[place], return_inverse=True)
        table = np.full(edges, -1, np.int32)
        table[with_tests] = np.arange(len(with_tests))
        who = owner[place]
        group = (number * 2 + end) * len(OPERATORS) + self.patterns.operator[who] - 1
        order = np.lexsort((self.patterns.bound[who], group))
        first, listed = _lists(group[order], len(with_tests) * 2 * len(OPERATORS), who[order])
        return table, first, self.patterns.bound[who][order], listed

    def _room(self, edges: int) -> kernels.Counted:
        count, longest = len(self.rows), int(np.diff(self.patterns.first).max(initial=1))
        bindings = 4 * edges
        return kernels.Counted(
            counts=np.zeros(count, np.int32),
            touched=np.empty(count, np.int32),
            head=np.full(len(self.matrix.key), -1, np.int32),
            following=np.empty(bindings, np.int32),
            entry=np.empty(bindings, np.int32),
            used=np.empty(bindings, np.int32),
            bound_to=np.empty(VARIABLES, np.int32),
            cursor=np.empty(longest, np.int32),
            news=np.empty((longest, 2), np.int32),
            joined=np.empty(longest, np.int32),
        )

    def match(self, publications: Graphs) -> Pairs:
        """Pairs (publication, subscription)."""
        if not len(self.rows) or not len(publications.subject):
            return np.empty((0, 2), np.int64)
        edges = publications.subject.shape[1]
        if len(self.scratch.entry) < 4 * edges:
            self.scratch = self._room(edges)
        out = np.empty((1 << 14, 2), np.int64)
        while (found := self._run(publications, out)) > len(out):
            out = np.empty((found, 2), np.int64)
        pairs = out[:found]
        pairs[:, 1] = self.rows[pairs[:, 1]]
        return pairs

    def _run(self, publications: Graphs, out: Pairs) -> int:
        found: int = kernels.match(
            publications, self.matrix, self.patterns, self.sub_edge, self.value, self.scratch, out
        )
        return found


def _lists(keys: Longs, count: int, members: Longs) -> tuple[Longs, Ints]:
    """Members by key: those of key k are list[first[k] : first[k + 1]], in their order."""
    first = np.append(0, np.cumsum(np.bincount(keys, minlength=count)))
    return first, members[np.argsort(keys, kind="stable")].astype(np.int32)
