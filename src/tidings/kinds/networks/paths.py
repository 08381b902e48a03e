"""Explains why an event reached a node, or where it was stopped.

A path consists of the nodes and edges that accepted the event. A frontier consists of the nodes and edges on the ways
to the node that the event reached and that did not accept it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidings.kinds.networks.kernels import walks
from tidings.kinds.networks.kernels.layout import NOWHERE
from tidings.kinds.networks.snapshot import NetworkSnapshot
from tidings.kinds.networks.walk import Walk


@dataclass(frozen=True, slots=True)
class PathStep:
    """A step over an edge to `node`; the expressions of both accepted the event (None accepts every event)."""

    node: str
    edge_where: str | None
    node_where: str | None


@dataclass(frozen=True, slots=True)
class Cut:
    """A node, or an edge by its two nodes, that the event came to and whose expression did not accept it."""

    place: str | tuple[str, str]
    where: str


def find_path(snapshot: NetworkSnapshot, source: int, event: Any, node: int) -> list[PathStep] | None:
    """The steps of a shortest valid path from the publisher to a node; None if the event does not get there."""
    passed = _passed(snapshot, source, event)
    if not passed[node]:
        return None
    came_from: dict[int, int] = {}
    queue = deque([source])
    while node not in came_from:
        here = queue.popleft()
        for child in snapshot.wiring.children(here):
            if passed[child] and child not in came_from:
                came_from[child] = here
                queue.append(child)
    way = [node]
    while (here := came_from[way[-1]]) != source:
        way.append(here)
    steps: list[PathStep] = []
    edge_where: str | None = None
    for entity in reversed(way):
        where = snapshot.where_text(entity)
        if (owner := int(snapshot.wiring.owner[entity])) < 0:
            edge_where = where
        else:
            steps.append(PathStep(snapshot.name(owner), edge_where, where))
            edge_where = None
    return steps


def find_frontier(snapshot: NetworkSnapshot, source: int, event: Any, node: int) -> list[Cut]:
    """The nodes and edges that stopped the event on its paths to a node; empty if it reaches the node, or if no path exists."""
    passed = _passed(snapshot, source, event)
    if passed[node]:
        return []
    wiring = snapshot.wiring
    edges = wiring.edges()
    leads = _leading_to(node, edges.source, edges.target, snapshot.size)
    passed[source], at_source = True, passed[source]
    left = passed[edges.source] & leads[edges.target]
    passed[source] = at_source
    split = edges.entity != NOWHERE
    open_ = ~split | passed[edges.entity]
    cuts: dict[Cut, None] = {}
    for i in np.flatnonzero(left & ~open_).tolist():
        ends = [snapshot.name(int(wiring.owner[end[i]])) for end in (edges.source, edges.target)]
        cuts[Cut((ends[0], ends[1]), snapshot.where_text(int(edges.entity[i])) or "")] = None
    stopped = np.unique(edges.target[left & open_ & ~passed[edges.target]])
    for entity in stopped.tolist():
        cuts[Cut(snapshot.name(int(wiring.owner[entity])), snapshot.where_text(entity) or "")] = None
    return list(cuts)


def _passed(snapshot: NetworkSnapshot, source: int, event: Any) -> np.ndarray:
    """A flag for each entity: whether the event reached it and was accepted."""
    walk = Walk(snapshot, source, event, walks.adaptive)
    passed = np.zeros(snapshot.size, dtype=np.bool_)
    passed[walk.advance(snapshot.size)] = True
    return passed


def _leading_to(node: int, source: np.ndarray, target: np.ndarray, size: int) -> np.ndarray:
    """A flag for each node: whether edges lead from it to a node, whatever they accept."""
    order = np.argsort(target, kind="stable")
    first = np.searchsorted(target[order], np.arange(size + 1))
    leads = np.zeros(size, dtype=np.bool_)
    leads[node] = True
    stack = [node]
    while stack:
        here = stack.pop()
        before = np.unique(source[order[first[here] : first[here + 1]]])
        new = before[~leads[before]]
        leads[new] = True
        stack += new.tolist()
    return leads
