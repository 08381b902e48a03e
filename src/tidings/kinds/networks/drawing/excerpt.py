"""Selects a part of a network that is small enough to draw, and traces an event through it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tidings.kinds.networks.expressions import read_condition
from tidings.kinds.networks.faults import NetworkError
from tidings.kinds.networks.naive import accepts
from tidings.kinds.networks.network import Network

MAX_NODES = 200
Edge = tuple[str, str]

# What an event does to a node, and to an edge: the last two and `PASSED`.
PUBLISHER, REACHED, REFUSES, AWAITS, ASIDE = "publisher", "reached", "refuses", "awaits", "aside"
PASSED = "passed"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Nodes and edges with the texts of their expressions; `publishers` have no incoming edge, `subscribers` no outgoing."""

    nodes: dict[str, str | None]
    edges: dict[Edge, str | None]
    publishers: frozenset[str]
    subscribers: frozenset[str]


def excerpt(network: Network, around: str | None = None, depth: int = 2) -> Excerpt:
    """A whole small network, or the nodes within `depth` edges before and after a node."""
    if around is None:
        if len(network) > MAX_NODES:
            raise NetworkError(
                f"the network has {len(network):,} nodes, too many to be looked at; draw at most {MAX_NODES},"
                " those around one node (--around NODE)"
            )
        names = {name for name, _ in network.nodes()}
    else:
        names = _near(network, around, depth)
    nodes = {name: where for name, where in network.nodes() if name in names}
    edges: dict[Edge, str | None] = {}
    entered, left = set(), set()
    for source, target, where in network.edges():
        if source != target:
            left.add(source)
            entered.add(target)
        if source in names and target in names:
            edges[source, target] = where
    publishers = frozenset(names - entered)
    return Excerpt(nodes, edges, publishers, frozenset(names - left - publishers))


def _near(network: Network, around: str, depth: int) -> set[str]:
    if around not in network:
        raise NetworkError(f"the network has no node {around!r}; look at the spelling")
    before, after = {around}, {around}
    # All edges are read for each step: a network may be large, but the depth is small.
    for _ in range(depth):
        sources, targets = set(before), set(after)
        for source, target, _where in network.edges():
            if target in before:
                sources.add(source)
            if source in after:
                targets.add(target)
        before, after = sources, targets
        if len(before | after) > MAX_NODES:
            raise NetworkError(
                f"more than {MAX_NODES} nodes are within {depth} edges of {around!r}; go less far (--depth)"
            )
    return before | after


@dataclass(frozen=True, slots=True)
class EventCourse:
    """The state of each node and edge of an excerpt for one event.

    A node is the PUBLISHER; is REACHED; gets the event and REFUSES it; would accept it but does not get it (AWAITS); or
    would neither get nor accept it (ASIDE). An edge from a node that has the event is PASSED or REFUSES it; others are
    ASIDE.
    """

    nodes: dict[str, str]
    edges: dict[Edge, str]


def trace_event(network: Network, part: Excerpt, source: str, event: Mapping[str, Any]) -> EventCourse:
    """The course of an event that is published at `source`."""
    reached = set(network.evaluate(source, event))
    having = reached | {source}

    @cache
    def lets_through(where: str | None) -> bool:
        return accepts(None if where is None else read_condition(where, "the network"), event)

    arrived = {
        target
        for a, target, where in network.edges()
        if a in having and target in part.nodes and lets_through(where)
    }
    nodes = {}
    for name, where in part.nodes.items():
        if name == source:
            nodes[name] = PUBLISHER
        elif name in reached:
            nodes[name] = REACHED
        elif name in arrived:
            nodes[name] = REFUSES
        else:
            nodes[name] = AWAITS if lets_through(where) else ASIDE
    edges = {
        edge: ASIDE if edge[0] not in having else PASSED if lets_through(where) else REFUSES
        for edge, where in part.edges.items()
    }
    return EventCourse(nodes, edges)
