"""What Tidings is compared with: the papers' algorithms on the integer forms, and SPARQL one by one.

Each has `match(publications) -> pairs`, an array of (publication, subscription), and `nbytes`, the size of its
index without tests. All but SPARQL are compiled the way our own loops are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyoxigraph as ox

from benchmarks import kernels, texts
from benchmarks.workloads import Edges, Workload

Pairs = npt.NDArray[np.int64]


class Contender(Protocol):
    """What can be timed: `prepare` brings the first publications into the form that `match` takes."""

    nbytes: int

    def prepare(self, workload: Workload, count: int) -> Any: ...

    def match(self, prepared: Any) -> Pairs: ...


class _OnIntegers:
    def prepare(self, workload: Workload, count: int) -> Edges:
        return workload.publications[:count]


class Counting(_OnIntegers):
    """G-ToPSS 4: the matrix of all subscriptions as a two-level table, pair of vertices then label, counted."""

    def __init__(self, workload: Workload) -> None:
        self.stars = _stars(workload)
        width, labels = len(workload.value) + self.stars, workload.parameters.labels + 1
        edges = workload.subscriptions
        tail, head = (
            _vertex(column, self.stars).astype(np.int64) for column in (edges.subject, edges.object)
        )
        keys = (tail * width + head) * labels + edges.label
        unique, edge = np.unique(keys, return_inverse=True)
        edge = edge.reshape(keys.shape)
        pairs, pair_first = np.unique(unique // labels, return_index=True)
        slots = np.full(1 << (2 * len(pairs) - 1).bit_length(), -1, np.int32)
        kernels.fill_pairs(pairs, slots)
        order = np.argsort(edge.ravel(), kind="stable")
        edge_first = np.append(0, np.cumsum(np.bincount(edge.ravel(), minlength=len(unique))))
        self.matrix = (
            slots,
            pairs,
            np.append(pair_first, len(unique)).astype(np.int32),
            (unique % labels).astype(np.int32),
            edge_first.astype(np.int32),
            (order // keys.shape[1]).astype(np.int32),
        )
        self.subscriptions = (edges.subject, edges.object, edge.astype(np.int32))
        self.tests = _tests(workload)
        self.matrix_bytes = sum(array.nbytes for array in self.matrix)
        self.nbytes = self.matrix_bytes + sum(array.nbytes for array in self.subscriptions)

    def match(self, publications: Edges) -> Pairs:
        edges, choices = publications.subject.shape[1], (self.stars + 1) ** 2
        scratch = kernels.Counted(
            counts=np.zeros(len(self.subscriptions[0]), np.int32),
            touched=_room(len(self.subscriptions[0])),
            head=np.full(len(self.matrix[3]), -1, np.int32),
            following=_room(edges * choices),
            entry=_room(edges * choices),
            used=_room(edges * choices),
            rows=_room(2, 1 + edges * edges, self.stars),
        )
        return _collected(
            lambda out: kernels.match_by_counting(
                _columns(publications), self.matrix, self.subscriptions, self.tests, self.stars, scratch, out
            )
        )


class AsVariables(_OnIntegers):
    """In the manner of OPS, as G-ToPSS 5 describes it: every node is a variable until an embedding is complete."""

    def __init__(self, workload: Workload) -> None:
        edges = workload.subscriptions
        self.subscriptions, self.names = _local(edges)
        labels = workload.parameters.labels + 1
        owner = np.repeat(np.arange(len(edges)), edges.label.shape[1])
        pair = np.unique(edges.label.ravel().astype(np.int64) * len(edges) + owner)
        first = np.append(0, np.cumsum(np.bincount(pair // len(edges), minlength=labels)))
        listed = pair % len(edges)
        self.by_label = (
            first,
            listed.astype(np.int32),
            np.bincount(listed, minlength=len(edges)).astype(np.int32),
        )
        self.tests = _tests(workload)
        self.nbytes = sum(array.nbytes for array in (*self.by_label, *self.subscriptions, self.names))

    def match(self, publications: Edges) -> Pairs:
        labels, slots = len(self.by_label[0]) - 1, self.names.shape[1]
        scratch = _search_room(publications, self.subscriptions, labels, slots)
        return _collected(
            lambda out: kernels.match_as_variables(
                _columns(publications),
                self.by_label,
                self.subscriptions,
                self.names,
                self.tests,
                scratch,
                out,
            )
        )


class OneByOne(_OnIntegers):
    """No index: every subscription is tried against every publication."""

    def __init__(self, workload: Workload) -> None:
        self.stars = _stars(workload)
        self.subscriptions = _columns(workload.subscriptions)
        self.tests = _tests(workload)
        self.nbytes = sum(array.nbytes for array in self.subscriptions)

    def match(self, publications: Edges) -> Pairs:
        scratch = _search_room(publications, self.subscriptions, 0, self.stars)
        return _collected(
            lambda out: kernels.match_one_by_one(
                _columns(publications), self.subscriptions, self.tests, scratch, out
            )
        )


class Sparql(_OnIntegers):
    """One query for each subscription, asked of each publication in a store of its own."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.queries = [texts.sparql_text(workload, row) for row in range(len(workload.subscriptions))]
        self.nbytes = sum(map(len, self.queries))

    def match(self, publications: Edges) -> Pairs:
        pairs = []
        for p in range(len(publications)):
            store = ox.Store()
            store.extend(
                ox.Quad(quad.subject, quad.predicate, quad.object)
                for quad in ox.parse(texts.ntriples(self.workload, p), ox.RdfFormat.N_TRIPLES)
            )
            pairs += [(p, s) for s, query in enumerate(self.queries) if bool(store.query(query))]
        return np.array(pairs, np.int64).reshape(-1, 2)


def _room(*shape: int) -> npt.NDArray[np.int32]:
    return np.empty(shape, np.int32)


def _search_room(
    publications: Edges, subscriptions: tuple[npt.NDArray[np.int32], ...], labels: int, slots: int
) -> kernels.Searched:
    count, size = subscriptions[0].shape
    return kernels.Searched(
        counts=np.zeros(count, np.int32),
        touched=_room(count),
        first=_room(labels),
        following=_room(publications.subject.shape[1]),
        bound_to=_room(slots),
        cursor=_room(size),
        news=_room(size, 2),
    )


def _collected(run: Callable[[Pairs], int]) -> Pairs:
    out = np.empty((1 << 16, 2), np.int64)
    while (found := run(out)) > len(out):
        out = np.empty((found, 2), np.int64)
    return out[:found]


def _columns(edges: Edges) -> tuple[npt.NDArray[np.int32], ...]:
    return edges.subject, edges.label, edges.object


def _tests(workload: Workload) -> tuple[npt.NDArray[np.integer], ...]:
    return workload.operator, workload.bound, workload.value


def _stars(workload: Workload) -> int:
    edges: Sequence[npt.NDArray[np.int32]] = (workload.subscriptions.subject, workload.subscriptions.object)
    return max(1, *(-int(column.min()) for column in edges))


def _vertex(column: npt.NDArray[np.int32], stars: int) -> npt.NDArray[np.int32]:
    """Stars are the first vertices of the matrix, names come behind them."""
    return np.where(column < 0, -1 - column, column + stars)


def _local(edges: Edges) -> tuple[tuple[npt.NDArray[np.int32], ...], npt.NDArray[np.int32]]:
    """Subscriptions by slots 0, 1, … of their own, and the name of each slot: a node, a variable, or -99."""
    size = edges.subject.shape[1]
    ends = np.concatenate([edges.subject, edges.object], axis=1)
    order = np.argsort(ends, axis=1, kind="stable")
    ordered = np.take_along_axis(ends, order, 1)
    rank = np.cumsum(np.diff(ordered, axis=1, prepend=ordered[:, :1]) != 0, axis=1)
    slots = np.empty_like(ends)
    np.put_along_axis(slots, order, rank.astype(np.int32), 1)
    names = np.full((len(ends), int(rank.max()) + 1), -99, np.int32)
    np.put_along_axis(names, rank, ordered, 1)
    return (slots[:, :size].copy(), edges.label, slots[:, size:].copy()), names
