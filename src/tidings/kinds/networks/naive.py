"""Defines what a network means: slow, obvious, complete. The tests compare the index with it.

An event starts at its publisher, whose own expression is not evaluated; from there it passes every edge that accepts it
to every node that accepts it. A publisher that a cycle leads back to is evaluated like any other node, and may be a
result. Graph constraints 2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from tidings.kinds.filters.naive import matches
from tidings.language.query import Condition

Nodes = Mapping[str, Condition | None]
Edges = Mapping[tuple[str, str], Condition | None]


def accepts(condition: Condition | None, event: Mapping[str, Any]) -> bool:
    return condition is None or matches(condition, event)


def reached(nodes: Nodes, edges: Edges, source: str, event: Mapping[str, Any]) -> set[str]:
    """The nodes that an event gets to, published at `source`."""
    results: set[str] = set()
    queue = deque([source])
    while queue:
        here = queue.popleft()
        for (a, b), condition in edges.items():
            if a == here and b not in results and accepts(condition, event) and accepts(nodes[b], event):
                results.add(b)
                queue.append(b)
    return results


def cheapest(
    nodes: Nodes,
    edges: Edges,
    costs: Mapping[str | tuple[str, str], float],
    source: str,
    event: Mapping[str, Any],
) -> dict[str, float]:
    """The cost of the best way to each node that is reached: the edges and nodes after the publisher, added up."""
    best: dict[str, float] = {}
    open_edges = {edge for edge, condition in edges.items() if accepts(condition, event)}
    open_nodes = {node for node, condition in nodes.items() if accepts(condition, event)}
    changed = True
    while changed:
        changed = False
        for a, b in open_edges:
            before = 0.0 if a == source else best.get(a)
            if b not in open_nodes or before is None:
                continue
            cost = before + costs.get((a, b), 0.0) + costs.get(b, 0.0)
            if cost < best.get(b, float("inf")):
                best[b] = cost
                changed = True
    return best
