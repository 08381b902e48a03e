"""Numbers entities by group: strongly connected components in topological order, breadth-first inside one.

An edge with an expression becomes an entity of its own between its two nodes, numbered like a node. Then an edge
leads from a group to the same or a later one, and a group is one range of ids. Graph constraints 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.kinds.networks.expressions import NONE
from tidings.kinds.networks.index.columns import Columns
from tidings.kinds.networks.kernels.components import find_components, order_nodes
from tidings.kinds.networks.kernels.rows import count_rows, sort_by


@dataclass(frozen=True, slots=True)
class NumberedEntities:
    """Entities by id. The children of id i are child[first[i]:first[i + 1]], ascending; cost[j] is that of edge j.

    origin[i] is the node of the columns that has id i, or ~edge; group[i] is the first id of its group.
    """

    first: np.ndarray
    child: np.ndarray
    cost: np.ndarray
    origin: np.ndarray
    group: np.ndarray


def number_entities(columns: Columns) -> NumberedEntities:
    nodes, split = len(columns.node), np.flatnonzero(columns.edge_where != NONE)
    count = nodes + len(split)
    # Before they have ids: nodes 0 .. nodes - 1, then an entity for each split edge.
    between = np.arange(nodes, count, dtype=np.int32)
    source, child = (
        np.concatenate([columns.source, between]),
        np.concatenate([columns.target, columns.target[split]]),
    )
    child[split] = between
    first, by_source = _rows(source, np.arange(len(source), dtype=np.int32), count)
    component, order = _order(first, child[by_source])
    id_of = np.empty(count, dtype=np.int32)
    id_of[order] = np.arange(count, dtype=np.int32)
    source, child = id_of[source], id_of[child]
    first, by_source = _rows(source, _rows(child, by_source, count)[1], count)
    cost = np.zeros(len(source))  # untouched memory costs nothing
    if columns.edge_cost.any():
        cost[: len(columns.edge_cost)] = columns.edge_cost
        cost = cost[by_source]
    origin = np.concatenate([np.arange(nodes, dtype=np.int32), ~split.astype(np.int32)])[order]
    begins = np.ones(count, dtype=np.bool_)
    begins[1:] = component[order[1:]] != component[order[:-1]]
    starts = np.flatnonzero(begins).astype(np.int32)
    group = np.repeat(starts, np.diff(np.append(starts, count)))
    return NumberedEntities(first, child[by_source], cost, origin, group)


def _rows(numbers: np.ndarray, order: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Sorts `order` stably by the numbers; also returns where the entries of each number begin."""
    first, out = np.zeros(count + 1, dtype=np.int64), np.empty_like(order)
    count_rows(numbers, first)
    sort_by(numbers, order, first.copy(), out)
    return first, out


def _order(first: np.ndarray, child: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The component of every node, and the nodes in the order of their ids."""
    count = len(first) - 1
    component = np.full(count, -1, dtype=np.int32)
    low, path, open_ = (np.empty(count, dtype=np.int32) for _ in range(3))
    groups = find_components(
        first, child, low, component.copy(), np.empty(count, np.int64), path, open_, component
    )
    begin = np.zeros(groups, dtype=np.int64)
    np.cumsum(np.bincount(component, minlength=groups)[:0:-1], out=begin[1:])
    begin = begin[::-1].copy()  # the last to be finished comes first
    order = np.empty(count, dtype=np.int32)
    order_nodes(first, child, component, begin, begin.copy(), np.zeros(count, dtype=np.int8), order)
    return component, order
