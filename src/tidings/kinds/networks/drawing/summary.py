"""Summarises a network in numbers: its size, its expressions, its publishers and subscribers, its cycles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.kinds.networks.expressions import NONE
from tidings.kinds.networks.index.columns import Columns
from tidings.kinds.networks.index.numbering import number_entities
from tidings.kinds.networks.network import Network


@dataclass(frozen=True, slots=True)
class Summary:
    """`components` are strongly connected: from each node of one an event may come to every other of it."""

    nodes: int
    edges: int
    nodes_with_expression: int
    edges_with_expression: int
    distinct_expressions: int
    publishers: int  # no edge leads to them, some leave
    subscribers: int  # some edge leads to them, none leaves
    alone: int
    components: int
    largest_component: int
    most_edges_out: tuple[str, int] | None
    most_edges_in: tuple[str, int] | None


def summarise(network: Network) -> Summary:
    nodes, edges = dict(network.nodes()), list(network.edges())
    number = {name: i for i, name in enumerate(nodes)}
    names = list(nodes)
    source = np.array([number[a] for a, _, _ in edges], dtype=np.int32)
    target = np.array([number[b] for _, b, _ in edges], dtype=np.int32)
    out, into = (np.bincount(ends, minlength=len(names)) for ends in (source, target))
    sizes = _components(len(names), source, target)
    asking = [where for where in nodes.values() if where], [where for _, _, where in edges if where]
    return Summary(
        nodes=len(names),
        edges=len(edges),
        nodes_with_expression=len(asking[0]),
        edges_with_expression=len(asking[1]),
        distinct_expressions=len({*asking[0], *asking[1]}),
        publishers=int(((into == 0) & (out > 0)).sum()),
        subscribers=int(((into > 0) & (out == 0)).sum()),
        alone=int(((into == 0) & (out == 0)).sum()),
        components=len(sizes),
        largest_component=int(sizes.max(initial=0)),
        most_edges_out=_most(names, out),
        most_edges_in=_most(names, into),
    )


def _components(nodes: int, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The number of nodes of each strongly connected component."""
    columns = Columns(
        np.arange(nodes, dtype=np.int32),
        np.full(nodes, NONE, dtype=np.int32),
        np.zeros(nodes),
        source,
        target,
        np.full(len(source), NONE, dtype=np.int32),
        np.zeros(len(source)),
    )
    return np.unique(number_entities(columns).group, return_counts=True)[1]


def _most(names: list[str], counts: np.ndarray) -> tuple[str, int] | None:
    if not counts.any():
        return None
    first = int(counts.argmax())
    return names[first], int(counts[first])
