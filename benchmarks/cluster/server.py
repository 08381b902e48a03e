"""The server's index: subscriptions that no other one contains, mergers, and the trees below them. RSS cluster, 4.2 to 4.4.

    index      what the server matches; all that is below an entry matches only what the entry matches
    parent     of each subscription that is not in the index; a merger is a parent and no subscription
    node       the back-end that has it

Corrections: a merger is entered like a subscription, so that it takes what it contains below it; it is never empty; what comes back into the index
when a root or a merger goes is checked like a new subscription, because its siblings may contain it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from benchmarks.cluster import kernels
from benchmarks.cluster.merger import Merger
from benchmarks.cluster.node import Graphs, Node
from benchmarks.cluster.patterns import VARIABLES, Patterns
from benchmarks.cluster.summaries import Summaries
from benchmarks.workloads import NO_VALUE, Longs

_LONGEST = 64  # edges of a subscription


class Thresholds(NamedTuple):
    """Merging begins when the index has more entries than `start`, and ends when it has `end`."""

    start: int
    end: int


class Server:
    """`contains` says whether subscriptions are checked for containment; without it only mergers have something below them."""

    def __init__(self, patterns: Patterns, value: Longs, nodes: int, contains: bool = True) -> None:
        self.patterns, self.value, self.nodes, self.contains = patterns, value, nodes, contains
        self.index: set[int] = set()
        self.mergers: set[int] = set()
        self.parent: dict[int, int] = {}
        self.children: dict[int, dict[int, None]] = {}
        self.node: dict[int, int] = {}
        room = len(patterns) + len(patterns) // 2 + 16
        labels = int(patterns.columns.label.max(initial=0)) + 1
        self._lists = kernels.Lists(
            *(np.zeros(labels, np.int64) for _ in range(3)), np.empty(0, np.int32), np.zeros(1, np.int64)
        )
        self._scratch = (
            np.zeros(room, np.int32),
            np.empty(room, np.int32),
            np.empty(VARIABLES, np.int32),
            np.empty(_LONGEST, np.int64),
            np.empty((_LONGEST, 2), np.int32),
            np.empty(room, np.int64),
        )

    # ------------------------------------------------------------------ subscribing

    def insert(self, s: int) -> None:
        """A new subscription goes below one that contains it, or into the index, above those that it contains."""
        container, contained = self.check(s) if self.contains else (-1, [])
        if container >= 0:
            self._hang(s, container)
            return
        self._enter(s)
        for other in contained:
            self._put_below(other, s)

    def check(self, s: int) -> tuple[int, list[int]]:
        """Algorithm `containmentChecking`: the entry that contains s, or -1, and the entries that s contains."""
        *scratch, out = self._scratch
        container, found = kernels.check_containment(
            s, self.patterns.columns, self._lists, self.value, *scratch, out
        )
        return int(container), out[:found].tolist()

    def _enter(self, s: int) -> None:
        columns, lists = self.patterns.columns, self._lists
        labels = columns.label[columns.first[s] : columns.first[s + 1]]
        needed = int(lists.used[0] + (2 * lists.size[labels] + 4).sum())  # if all of them move
        if needed > len(self._lists.owner):
            self._lists = self._lists._replace(owner=np.resize(self._lists.owner, 2 * needed))
        kernels.enter(s, columns, self._lists)
        self.index.add(s)

    def _leave(self, s: int) -> None:
        kernels.leave(s, self.patterns.columns, self._lists)
        self.index.remove(s)

    def _hang(self, s: int, parent: int) -> None:
        """Below a parent; children of one parent go to different nodes in turns."""
        siblings = self.children.setdefault(parent, {})
        self.parent[s] = parent
        self.node.setdefault(s, (parent + len(siblings)) % self.nodes)
        siblings[s] = None

    def _put_below(self, entry: int, parent: int) -> None:
        """An entry leaves the index; of a merger nothing stays but what was below it."""
        self._leave(entry)
        if entry in self.mergers:
            self.mergers.discard(entry)
            for child in self.children.pop(entry):
                self._hang(child, parent)
        else:
            self._hang(entry, parent)

    def deal(self, nodes: int) -> None:
        """Spreads what is below the index over another number of nodes."""
        self.nodes = nodes
        self.node = {
            s: (parent + turn) % nodes
            for parent, siblings in self.children.items()
            for turn, s in enumerate(siblings)
        }

    # ------------------------------------------------------------------ unsubscribing

    def remove(self, s: int) -> None:
        """Root, inner, leaf and merged leaf: 4.4 and Figure 8."""
        below = self.children.pop(s, {})
        if s in self.index:
            self._leave(s)
            self._recover(below)
            return
        parent = self.parent.pop(s)
        del self.node[s], self.children[parent][s]
        if parent not in self.mergers:
            for child in below:
                self._hang(child, parent)
            return
        self.mergers.discard(parent)
        self._leave(parent)
        self._recover([*self.children.pop(parent), *below])

    def _recover(self, subscriptions: Iterable[int]) -> None:
        """Back from nodes into the index, each with what is below it."""
        for s in subscriptions:
            del self.parent[s], self.node[s]
        for s in subscriptions:
            self.insert(s)

    # ------------------------------------------------------------------ merging

    def merge_if_needed(self, summaries: Summaries, thresholds: Thresholds) -> None:
        if len(self.index) > thresholds.start:
            self.merge(summaries, thresholds.end)

    def merge(self, summaries: Summaries, end: int) -> None:
        """Merges what the most frequent summaries match, until the index has `end` entries or nothing more can be merged."""
        entries = np.array(sorted(self.index - self.mergers), np.int64)
        matrix = Node(self.patterns, entries, self.value, structure_only=True)
        some_number = int(np.argmax(self.value != NO_VALUE))
        for summary in summaries.by_frequency():
            if len(self.index) <= end:
                return
            if summary.edges:
                matched = matrix.match(summary.graph(some_number))[:, 1].tolist()
                self._merge([s for s in matched if s in self.index], end)

    def _merge(self, subscriptions: list[int], end: int) -> None:
        """Takes out one after the other, and merges those that leave the merger an edge."""
        merger, members = None, list[int]()
        for s in subscriptions:
            if len(self.index) - len(members) < end:
                break
            this = Merger.of(self.patterns, s)
            merged = this if merger is None else merger.with_other(this)
            if merged.edges:
                merger = merged
                members.append(s)
        if merger is None or len(members) < 2:
            return
        for s in members:
            self._leave(s)
        number = self.patterns.append(*merger.pattern())
        self._make_room(number)
        above, contained = self.check(number)
        if above < 0:
            above = number
            self._enter(number)
            self.mergers.add(number)
        for s in members:
            self._hang(s, above)
        for entry in contained:
            if len(self.index) > end:
                self._put_below(entry, above)

    def _make_room(self, number: int) -> None:
        counts, touched, *search, out = self._scratch
        if number >= len(counts):
            more = np.zeros(len(counts), np.int32)
            self._scratch = (np.append(counts, more), np.append(touched, more), *search, np.append(out, more))  # type: ignore[assignment]


class Pipeline:
    """Algorithm `filtering`, by its two stages: the server matches and routes, then each back-end matches what it gets."""

    def __init__(self, server: Server) -> None:
        self.server = server
        count = len(server.patterns)
        self._routes = np.zeros((count, server.nodes), np.bool_)
        for s, node in server.node.items():
            root = s
            while root in server.parent:
                root = server.parent[root]
            self._routes[root, node] = True
        self._reported = np.ones(count, np.bool_)
        self._reported[list(server.mergers)] = False
        place = np.full(count, -1)
        place[list(server.node)] = list(server.node.values())
        self.front_node = Node(server.patterns, np.array(sorted(server.index), np.int64), server.value)
        self.back_nodes = [
            Node(server.patterns, np.flatnonzero(place == node), server.value) for node in range(server.nodes)
        ]

    def front(self, publications: Graphs) -> tuple[Longs, np.ndarray]:
        """The pairs of the server, of real subscriptions only, and which publication visits which node."""
        pairs = self.front_node.match(publications)
        visits = np.zeros((len(publications.subject), self.server.nodes), np.bool_)
        np.logical_or.at(visits, pairs[:, 0], self._routes[pairs[:, 1]])
        return pairs[self._reported[pairs[:, 1]]], visits

    def back(self, node: int, publications: Graphs, visits: np.ndarray) -> Longs:
        """The pairs of a back-end, among the publications that visit it."""
        rows = np.flatnonzero(visits[:, node])
        pairs = self.back_nodes[node].match(Graphs(*(column[rows] for column in publications)))
        pairs[:, 0] = rows[pairs[:, 0]]
        return pairs

    def filter(self, publications: Graphs) -> Longs:
        """All pairs."""
        pairs, visits = self.front(publications)
        return np.concatenate(
            [pairs, *(self.back(node, publications, visits) for node in range(self.server.nodes))]
        )
