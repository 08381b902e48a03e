"""The adjacency lists of a network by id, which change while nodes and edges are added and removed.

Entities below `base` have the ids of the last numbering, and their edges lie in rows (first, child; a removed one
is -1). Newer entities have ids above, and newer edges are in linked lists. The invariant that lets evaluation skip: on
every edge u -> v that an event can take, group[u] <= group[v], and the ids of one group that the index may find are one
range. Edges out of a node without incoming edges are exempt, because an event only starts there. Graph constraints 3.3,
with the exact rule of docs/papers.md.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np

from tidings.kinds.networks.expressions import NONE
from tidings.kinds.networks.index.columns import Columns
from tidings.kinds.networks.index.numbering import number_entities
from tidings.kinds.networks.kernels.layout import ALWAYS, ASKED, GONE, INDEXED, NOWHERE

_ENTITY_COLUMNS = ("kind", "group", "where", "owner", "weight", "arriving", "head")
_LINK_COLUMNS = ("link_next", "link_child", "link_cost")


class Edges(NamedTuple):
    """Edges as columns: ids of both nodes, the entity of a split edge or -1, the cost."""

    source: np.ndarray
    target: np.ndarray
    entity: np.ndarray
    cost: np.ndarray


class Wiring:
    """kind[i], where[i] (its expression), weight[i] (its cost), arriving[i] (how many edges lead to it); owner[i] is
    its node's number, or ~target for a split edge; head[i] is the first link to a child that came since."""

    def __init__(self, columns: Columns) -> None:
        numbered = number_entities(columns)
        self.base = self.size = len(numbered.origin)
        self.first, self.child, self.cost, self.group = (
            numbered.first,
            numbered.child,
            numbered.cost,
            numbered.group,
        )
        origin = numbered.origin
        is_node = origin >= 0
        node, edge = origin[is_node], ~origin[~is_node]
        id_of = np.empty(len(columns.node), dtype=np.int32)
        id_of[node] = np.flatnonzero(is_node)
        self.owner = np.empty(self.base, dtype=np.int32)
        self.owner[is_node], self.owner[~is_node] = columns.node[node], ~id_of[columns.target[edge]]
        self.where = np.empty(self.base, dtype=np.int32)
        self.where[is_node], self.where[~is_node] = columns.node_where[node], columns.edge_where[edge]
        self.weight = np.zeros(self.base)
        self.weight[is_node] = columns.node_cost[node]
        self.arriving = np.bincount(self.child, minlength=self.base).astype(np.int32)
        # What no edge leads to is never looked for: it need not be in the index.
        self.kind = np.where(self.where == NONE, ALWAYS, np.where(self.arriving > 0, INDEXED, ASKED)).astype(
            np.int8
        )
        self.head = np.full(self.base, NOWHERE, dtype=np.int32)
        self.links = 0
        self.link_next, self.link_child, self.link_cost = (
            np.zeros(0, np.int32),
            np.zeros(0, np.int32),
            np.zeros(0),
        )
        self.link_of: dict[tuple[int, int], int] = {}  # both nodes' ids -> the link out of the first
        numbers = int(columns.node.max(initial=-1)) + 1
        self.id_of = np.full(numbers, NOWHERE, dtype=np.int32)
        self.id_of[columns.node] = id_of
        self.merged = self.changed = 0
        self.indexed = np.flatnonzero(self.kind == INDEXED).astype(np.int32)
        self.indexed_where = self.where[self.indexed]
        self.row_of = np.zeros(self.base + 1, dtype=np.int32)
        np.cumsum(self.kind == INDEXED, out=self.row_of[1:])

    def copy(self) -> Wiring:
        """Another wiring to change, while evaluations go on over this one."""
        other = copy(self)
        for name in (*_ENTITY_COLUMNS, *_LINK_COLUMNS, "child", "id_of"):
            setattr(other, name, getattr(self, name).copy())
        other.link_of = dict(self.link_of)
        return other

    @property
    def changes(self) -> int:
        """The number of additions since the numbering; removals do not count."""
        return self.size - self.base + self.links + self.changed

    # ------------------------------------------------------------------ looking

    def node(self, number: int) -> int:
        """The id of a node, or NOWHERE."""
        return int(self.id_of[number]) if 0 <= number < len(self.id_of) else NOWHERE

    def children(self, entity: int) -> list[int]:
        found: list[int] = []
        if entity < self.base:
            row = self.child[self.first[entity] : self.first[entity + 1]]
            found = row[row >= 0].tolist()
        link = int(self.head[entity])
        while link >= 0:
            if self.link_child[link] >= 0:
                found.append(int(self.link_child[link]))
            link = int(self.link_next[link])
        return found

    def edges(self) -> Edges:
        """Every edge between nodes that are there."""
        link_source = np.full(self.links, NOWHERE, dtype=np.int32)
        for (node, _), link in self.link_of.items():
            link_source[link] = node
        source = np.concatenate(
            [np.repeat(np.arange(self.base, dtype=np.int32), np.diff(self.first)), link_source]
        )
        child = np.concatenate([self.child, self.link_child[: self.links]])
        cost = np.concatenate([self.cost, self.link_cost[: self.links]])
        # The second half of a split edge starts at an entity that is no node.
        kept = (child >= 0) & (source >= 0)
        kept[kept] = (self.owner[source[kept]] >= 0) & (self.kind[source[kept]] != GONE)
        source, child, cost = source[kept], child[kept], cost[kept]
        split = self.owner[child] < 0
        target = np.where(split, ~self.owner[child], child)
        there = (self.kind[child] != GONE) & (self.kind[target] != GONE)
        return Edges(source[there], target[there], np.where(split, child, NOWHERE)[there], cost[there])

    def columns(self) -> Columns:
        """The network as it is now."""
        ids = np.flatnonzero((self.kind[: self.size] != GONE) & (self.owner[: self.size] >= 0))
        position = np.full(self.size, NOWHERE, dtype=np.int32)
        position[ids] = np.arange(len(ids), dtype=np.int32)
        edges = self.edges()
        edge_where = np.where(edges.entity >= 0, self.where[edges.entity], NONE).astype(np.int32)
        return Columns(
            self.owner[ids],
            self.where[ids],
            self.weight[ids],
            position[edges.source],
            position[edges.target],
            edge_where,
            edges.cost,
        )

    def find_edge(self, source: int, target: int) -> tuple[np.ndarray, int] | None:
        """The array that holds the edge's child, and the position in it; None if there is no such edge."""
        link = self.link_of.get((source, target), NOWHERE)
        if link >= 0 and self.link_child[link] >= 0:
            return self.link_child, link
        if source >= self.base:
            return None
        begin, end = self.first[source], self.first[source + 1]
        row = self.child[begin:end]
        found = np.flatnonzero((row >= 0) & ((row == target) | (self.owner[row] == ~target)))
        return (self.child, int(begin + found[0])) if len(found) else None

    # ------------------------------------------------------------------ changing

    def add_node(self, number: int, where: int, weight: float) -> int:
        if number >= len(self.id_of):
            self.id_of = _room(self.id_of, number + 1, NOWHERE)
        entity = self._add_entity(number, where, weight)
        self.id_of[number] = entity
        return entity

    def add_edge(self, source: int, target: int, where: int, cost: float) -> None:
        child = target
        if where != NONE:
            child = self._add_entity(~target, where, 0.0)
        self.link_of[source, target] = self._link(source, child, cost)
        if where != NONE:
            self._link(child, target, 0.0)

    def remove_node(self, number: int) -> None:
        entity = self.id_of[number]
        for child in self.children(entity):
            self._leave(child)
        self.kind[entity], self.id_of[number] = GONE, NOWHERE

    def remove_edge(self, array: np.ndarray, position: int) -> None:
        child = int(array[position])
        array[position] = NOWHERE
        self._leave(child)

    def set_where(self, entity: int, where: int) -> None:
        self.where[entity] = where
        self.kind[entity] = ALWAYS if where == NONE else ASKED
        self.changed += 1

    def set_edge_where(self, source: int, target: int, where: int) -> None:
        """For an edge that is there; a plain one is split."""
        array, position = self.find_edge(source, target) or (self.child, NOWHERE)
        child = int(array[position])
        if self.owner[child] < 0:
            self.set_where(child, where)
        elif where != NONE:
            cost = float((self.cost if array is self.child else self.link_cost)[position])
            self.remove_edge(array, position)
            self.add_edge(source, target, where, cost)

    def _leave(self, child: int) -> None:
        """One edge to `child` is no more; a split edge goes with it."""
        self.arriving[child] -= 1
        if self.owner[child] < 0:
            self.kind[child] = GONE
            self.arriving[~self.owner[child]] -= 1

    def _add_entity(self, owner: int, where: int, weight: float) -> int:
        if self.size == len(self.kind):
            for name in _ENTITY_COLUMNS:
                setattr(self, name, _room(getattr(self, name), self.size + 1, 0))
        entity = self.size
        self.size += 1
        self.kind[entity] = ALWAYS if where == NONE else ASKED
        # The lowest group: every edge out of it is in order, and an edge to it lifts it.
        self.group[entity] = 0
        self.owner[entity], self.where[entity], self.weight[entity] = owner, where, weight
        self.arriving[entity], self.head[entity] = 0, NOWHERE
        return entity

    def _link(self, source: int, child: int, cost: float) -> int:
        if self.links == len(self.link_next):
            for name in _LINK_COLUMNS:
                setattr(self, name, _room(getattr(self, name), self.links + 1, 0))
        link = self.links
        self.links += 1
        self.link_next[link], self.link_child[link], self.link_cost[link] = self.head[source], child, cost
        self.head[source] = link
        self.arriving[child] += 1
        self._keep_order(source, child)
        return link

    # ------------------------------------------------------------------ groups

    def _keep_order(self, source: int, child: int) -> None:
        """Groups for a new edge: an entity newer than the numbering is lifted, others are merged."""
        group = self.group
        if self.arriving[source] > 0 and group[source] > group[child]:
            below = min((int(group[c]) for c in self.children(child)), default=int(group[source]))
            if child < self.base:
                below = int(group[child])
            if below < group[source]:
                self._merge(below, int(group[source]))
            if child >= self.base:
                group[child] = group[source]
        if self.arriving[child] == 1:  # its own edges were exempt so far
            below = min((int(group[c]) for c in self.children(child)), default=int(group[child]))
            if below < group[child]:
                self._merge(below, int(group[child]))

    def _merge(self, low: int, high: int) -> None:
        """All groups from one to the other become one: skipping stays on elsewhere."""
        end = int(np.searchsorted(self.group[: self.base], high, side="right"))
        self.merged += len(np.unique(self.group[low:end])) - 1
        self.group[low:end] = low
        new = self.group[self.base : self.size]
        new[(new >= low) & (new <= high)] = low


def _room(array: np.ndarray, size: int, fill: int) -> np.ndarray:
    """The array with room for at least `size`, at least doubled."""
    larger = np.full(max(size, 2 * len(array), 16), fill, dtype=array.dtype)
    larger[: len(array)] = array
    return larger
