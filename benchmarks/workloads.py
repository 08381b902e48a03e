"""The workloads of G-ToPSS Section 5 and RSS cluster Section 5, as arrays of integers.

A publication of size (k, m) is a path through k nodes, then random edges between them until there are m.
Subscriptions come in three parts, mixed at the end:

    matching      connected subgraphs of one publication, `matches` for each publication
    overlapping   connected subgraphs of one big graph, the union of many publications (the measured ones too)
    other         random graphs of the subscription's size, made like publications

and `stars` vertices of most of them are replaced by variables. Two things the papers leave open are set here.
The big graph grows with the number of subscriptions, so that the overlap between them stays as it is; node
names (one for ten subscriptions, at most 10,000) and labels (100) come from pools that all parts share. A connected subgraph with 10 edges on 5
nodes does not exist in a publication of 30 nodes and 90 edges, so subgraphs have the asked number of edges on as
many nodes as these happen to touch; other graphs have both as asked.

A node is its number, a variable is negative: -1, -2, … Everything follows from the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

NO_VALUE = np.iinfo(np.int64).min
NO_TEST, GREATER, LESS = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Parameters:
    """Defaults are those of RSS cluster Section 5. `shapes`: None if every subscription has a structure of its
    own, else the number of structures they share, as texts made by an application's few forms would."""

    subscriptions: int = 100_000
    matches: int = 100
    publications: int = 200
    publication_size: tuple[int, int] = (30, 90)
    subscription_size: tuple[int, int] = (5, 10)
    starred: float = 0.9
    stars: int = 2
    overlap: float = 0.5
    shapes: int | None = None
    nodes: int = 10_000
    labels: int = 100
    seed: int = 2007


@dataclass(frozen=True, slots=True)
class Edges:
    """Graphs with the same number of edges: three arrays of shape (graphs, edges)."""

    subject: Ints
    label: Ints
    object: Ints

    def __len__(self) -> int:
        return len(self.subject)

    def __getitem__(self, rows: slice | npt.NDArray[np.integer]) -> Edges:
        return Edges(self.subject[rows], self.label[rows], self.object[rows])


@dataclass(frozen=True, slots=True)
class Workload:
    """Publications and subscriptions. `shape` is equal for subscriptions that differ only in constants. A
    subscription may test its first variable, ?x > bound or ?x < bound; `value` holds the numbers that nodes
    stand for."""

    parameters: Parameters
    publications: Edges
    subscriptions: Edges
    shape: Longs
    operator: npt.NDArray[np.int8]
    bound: Longs
    value: Longs


def make(parameters: Parameters) -> Workload:
    """The workload that `parameters` describe."""
    # With too many names for few publications the big graph would fall apart into them.
    parameters = replace(parameters, nodes=min(parameters.nodes, max(200, parameters.subscriptions // 10)))
    rng = np.random.default_rng(parameters.seed)
    total, matches = parameters.subscriptions, parameters.matches
    background = max(1, total // 500)
    measured = max(1, min(parameters.publications, background, total // 2 // max(1, matches)))
    matching = measured * matches
    overlapping = max(0, int(total * parameters.overlap) - matching)
    m = parameters.publication_size[1]
    graphs, places = _publications(rng, parameters, background)
    home = np.repeat(np.arange(measured), matches)
    structures = _Structures(rng, parameters)
    parts = (
        # Inside a publication a node is known by its place, so that growth never leaves it; in the big graph by
        # its name, so that growth goes wherever the name does.
        structures.subgraphs(
            graphs, places, matching, lambda rows: home[rows] * m + rng.integers(0, m, len(rows))
        ),
        structures.subgraphs(
            graphs, graphs, overlapping, lambda rows: rng.integers(0, graphs.subject.size, len(rows))
        ),
        structures.others(total - matching - overlapping),
    )
    order = rng.permutation(total)
    return Workload(
        parameters,
        publications=graphs[:measured],
        subscriptions=Edges(
            *(
                np.concatenate([getattr(edges, name) for edges, _ in parts])[order]
                for name in ("subject", "label", "object")
            )
        ),
        shape=np.concatenate([shape for _, shape in parts])[order],
        operator=np.zeros(total, np.int8),
        bound=np.zeros(total, np.int64),
        value=np.full(parameters.nodes, NO_VALUE),
    )


def make_same_structure(parameters: Parameters) -> Workload:
    """Subscriptions that are equal but for one constraint; RSS cluster, Figure 9(b).

    Every publication holds the structure, with a variable bound to some node, and a value that satisfies `matches`
    subscriptions: half of them by ?x > bound, half by ?x < bound.
    """
    rng = np.random.default_rng(parameters.seed)
    total, half = parameters.subscriptions, parameters.matches // 2
    k, m = parameters.subscription_size
    graphs, _ = _publications(rng, parameters, parameters.publications)
    names = rng.choice(parameters.nodes, k, replace=False).astype(np.int32)
    names[-1] = -2  # the structure's own variable; -1 is the one with the constraint
    tail, head = _path_and_more(rng, 1, k, m - 1)
    pattern = Edges(
        np.append(names[tail[0]], names[0])[None],
        np.append(rng.integers(0, parameters.labels, m - 1), parameters.labels).astype(np.int32)[None],
        np.append(names[head[0]], -1)[None].astype(np.int32),
    )
    middle = 10 * total
    value = np.concatenate([np.full(parameters.nodes, NO_VALUE), middle + np.arange(-4, 5)])
    bindings = np.column_stack(
        [
            rng.integers(0, parameters.nodes, len(graphs)),
            parameters.nodes + rng.integers(0, 9, len(graphs)),
        ]
    )
    for column, source in ((graphs.subject, pattern.subject), (graphs.object, pattern.object)):
        column[:, :m] = np.where(
            source == -2, bindings[:, :1], np.where(source == -1, bindings[:, 1:], source)
        )
    graphs.label[:, :m] = pattern.label
    step = 10 * (np.arange(total, dtype=np.int64) // 2 - half) + 5
    more = np.arange(total) % 2 == 0
    order = rng.permutation(total)
    return Workload(
        parameters,
        publications=graphs,
        subscriptions=Edges(
            *(np.repeat(column, total, axis=0) for column in (pattern.subject, pattern.label, pattern.object))
        ),
        shape=np.zeros(total, np.int64),
        operator=np.where(more, GREATER, LESS).astype(np.int8)[order],
        bound=np.where(more, middle + step, middle - step)[order],
        value=value,
    )


def _path_and_more(
    rng: np.random.Generator, count: int, nodes: int, edges: int
) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]:
    """Tails and heads of `count` graphs: a path through all nodes, then edges between random pairs."""
    path = np.arange(nodes - 1)[:edges]
    tail = rng.integers(0, nodes, (count, edges - len(path)))
    head = (tail + rng.integers(1, nodes, tail.shape)) % nodes
    first = np.broadcast_to(path, (count, len(path)))
    return np.concatenate([first, tail], axis=1), np.concatenate([first + 1, head], axis=1)


def _distinct(rng: np.random.Generator, count: int, width: int, below: int) -> Ints:
    """`count` rows of `width` different numbers below `below`."""
    rows = rng.integers(0, below, (count, width), dtype=np.int32)
    while True:
        ordered = np.sort(rows, axis=1)
        again = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if not len(again):
            return rows
        rows[again] = rng.integers(0, below, (len(again), width), dtype=np.int32)


def _publications(rng: np.random.Generator, parameters: Parameters, count: int) -> tuple[Edges, Edges]:
    """Publications by the names of their nodes, and the same by places: publication x k + node."""
    k, m = parameters.publication_size
    tail, head = _path_and_more(rng, count, k, m)
    names = _distinct(rng, count, k, parameters.nodes)
    labels = rng.integers(0, parameters.labels, (count, m), dtype=np.int32)
    named = Edges(np.take_along_axis(names, tail, 1), labels, np.take_along_axis(names, head, 1))
    first = k * np.arange(count)[:, None]
    return named, Edges((tail + first).astype(np.int32), labels, (head + first).astype(np.int32))


class _Structures:
    """Draws subscriptions. A structure says which slots each edge joins and which slots are variables; it is
    drawn anew for each subscription, or from a pool of `shapes` that they share."""

    def __init__(self, rng: np.random.Generator, parameters: Parameters) -> None:
        self.rng = rng
        self.parameters = parameters
        self.size = parameters.subscription_size[1]
        self.numbered = 0
        self.half = max(2, (parameters.shapes or 0) // 2)
        # The first structures of a pool have no variables, the others have `stars` each.
        self.plain = max(1, round(self.half * (1 - parameters.starred)))
        if parameters.shapes:
            starred = np.arange(self.half) >= self.plain
            self.trees = self._draw_trees(starred)
            self.graphs = self._draw_graphs(starred)

    def subgraphs(
        self, named: Edges, joined: Edges, count: int, first_edge: Callable[[Longs], Longs]
    ) -> tuple[Edges, Longs]:
        """Connected subgraphs of the graph whose edges `joined` gives, with their nodes called as in `named`."""
        tail, head = joined.subject.ravel(), joined.object.ravel()
        called = named.subject.ravel(), named.object.ravel()
        outward, inward = _incidence(tail), _incidence(head)
        slots = np.empty((count, self.size + 1), np.int32)
        edges = np.empty((count, self.size), np.int64)
        anchors, out = np.empty((count, self.size), np.int64), np.empty((count, self.size), np.int64)
        stars = np.empty((count, self.parameters.stars), np.int64)
        shape = np.empty(count, np.int64)
        starred = self._starred(count)
        left = np.arange(count)
        while len(left):
            shape[left], (anchors[left], out[left], stars[left]) = self._take_trees(starred[left])
            edges[left, 0] = first_edge(left)
            good = self._grow(left, anchors, out, edges, tail, head, outward, inward)
            for j in range(self.size):
                forward = out[left, j] == 1
                low, high = called[0][edges[left, j]], called[1][edges[left, j]]
                if j == 0:
                    slots[left, 0] = np.where(forward, low, high)
                slots[left, j + 1] = np.where(forward, high, low)
            for i in range(stars.shape[1]):  # a vertex that becomes a variable must fill one slot only
                has = stars[left, i] >= 0
                name = slots[left, np.maximum(stars[left, i], 0)]
                good &= ~has | ((slots[left] == name[:, None]).sum(axis=1) == 1)
            left = left[~good]
        _put_stars(slots, stars)
        start = np.take_along_axis(slots, anchors, 1)
        end = slots[:, 1:]
        return (
            Edges(np.where(out == 1, start, end), named.label.ravel()[edges], np.where(out == 1, end, start)),
            shape,
        )

    def others(self, count: int) -> tuple[Edges, Longs]:
        """Graphs of nodes and labels drawn at random."""
        starred = self._starred(count)
        if self.parameters.shapes:
            chosen = self._choose(starred)
            shape = self.half + chosen
            tail, head, stars = (column[chosen] for column in self.graphs)
        else:
            shape = self._new_shapes(count)
            tail, head, stars = self._draw_graphs(starred)
        slots = _distinct(self.rng, count, self.parameters.subscription_size[0], self.parameters.nodes)
        _put_stars(slots, stars)
        labels = self.rng.integers(0, self.parameters.labels, (count, self.size), dtype=np.int32)
        return Edges(np.take_along_axis(slots, tail, 1), labels, np.take_along_axis(slots, head, 1)), shape

    def _grow(
        self,
        rows: Longs,
        anchors: Longs,
        out: Longs,
        edges: Longs,
        tail: Ints,
        head: Ints,
        outward: tuple[Longs, Longs],
        inward: tuple[Longs, Longs],
    ) -> npt.NDArray[np.bool_]:
        """Fills edges[rows, 1:], each an edge at its anchor that is not there yet; False where none was found."""
        reached = np.empty((len(rows), self.size + 1), np.int64)
        forward = out[rows, 0] == 1
        reached[:, 0] = np.where(forward, tail[edges[rows, 0]], head[edges[rows, 0]])
        reached[:, 1] = np.where(forward, head[edges[rows, 0]], tail[edges[rows, 0]])
        good = np.ones(len(rows), np.bool_)
        for j in range(1, self.size):
            forward = out[rows, j] == 1
            node = reached[np.arange(len(rows)), anchors[rows, j]]
            start = np.where(forward, outward[0][node], inward[0][node])
            degree = np.where(forward, outward[0][node + 1], inward[0][node + 1]) - start
            found = np.zeros(len(rows), np.bool_)
            chosen = np.zeros(len(rows), np.int64)
            for _ in range(4):  # the edge drawn may be in use already
                at = np.minimum(start + (self.rng.random(len(rows)) * degree).astype(np.int64), len(tail) - 1)
                drawn = np.where(forward, outward[1][at], inward[1][at])
                fresh = (degree > 0) & ~found & (edges[rows, :j] != drawn[:, None]).all(axis=1)
                chosen[fresh] = drawn[fresh]
                found |= fresh
            good &= found
            edges[rows, j] = chosen
            reached[:, j + 1] = np.where(forward, head[chosen], tail[chosen])
        return good

    def _take_trees(self, starred: npt.NDArray[np.bool_]) -> tuple[Longs, tuple[Longs, Longs, Longs]]:
        if not self.parameters.shapes:
            return self._new_shapes(len(starred)), self._draw_trees(starred)
        chosen = self._choose(starred)
        anchors, out, stars = self.trees
        return chosen, (anchors[chosen], out[chosen], stars[chosen])

    def _choose(self, starred: npt.NDArray[np.bool_]) -> Longs:
        """A structure of the pool for each subscription, with variables or without."""
        some = self.rng.random(len(starred))
        return np.where(starred, self.plain + some * (self.half - self.plain), some * self.plain).astype(
            np.int64
        )

    def _draw_trees(self, starred: npt.NDArray[np.bool_]) -> tuple[Longs, Longs, Longs]:
        """Edge j joins the slot `anchors[j]`, filled before, to slot j + 1; `out` says in which direction."""
        count = len(starred)
        anchors = (self.rng.random((count, self.size)) * np.arange(1, self.size + 1)).astype(np.int64)
        return anchors, self.rng.integers(0, 2, (count, self.size)), self._draw_stars(starred, self.size + 1)

    def _draw_graphs(self, starred: npt.NDArray[np.bool_]) -> tuple[Longs, Longs, Longs]:
        nodes = self.parameters.subscription_size[0]
        tail, head = _path_and_more(self.rng, len(starred), nodes, self.size)
        return tail, head, self._draw_stars(starred, nodes)

    def _draw_stars(self, starred: npt.NDArray[np.bool_], slots: int) -> Longs:
        """Different slots for the variables of each structure; -1 where it has none."""
        stars = np.argsort(self.rng.random((len(starred), slots)), axis=1)[:, : self.parameters.stars]
        stars[~starred] = -1
        return stars

    def _starred(self, count: int) -> npt.NDArray[np.bool_]:
        return self.rng.random(count) < self.parameters.starred

    def _new_shapes(self, count: int) -> Longs:
        self.numbered += count
        return np.arange(self.numbered - count, self.numbered)


def _incidence(nodes: Ints) -> tuple[Longs, Longs]:
    """Edges by one of their ends: those of node n are list[start[n] : start[n + 1]]."""
    start = np.zeros((int(nodes.max()) if len(nodes) else 0) + 3, np.int64)
    np.cumsum(np.bincount(nodes, minlength=len(start) - 1), out=start[1:])
    return start, np.argsort(nodes, kind="stable")


def _put_stars(slots: Ints, stars: Longs) -> None:
    for i in range(stars.shape[1]):
        rows = np.flatnonzero(stars[:, i] >= 0)
        slots[rows, stars[rows, i]] = -1 - i
