"""The stabbing-set index: rectangles in clusters whose first ranges share a point. Select-joins, 3.1.1.

Greedy stabbing gives the fewest clusters. When ranges leave afterwards, fewer may suffice; `fewest` is the lower bound
that the witnesses still prove, so `len(clusters) <= 2 * fewest(live)` is within twice the optimum. The members of a
cluster are adjacent, sorted by `c_low`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.kinds.joins.kernels.clusters import (
    CLUSTER,
    HIGHEST,
    NODE,
    bound_nodes,
    list_members,
    place_boundaries,
    stab,
)

POINTS_A_LEAF = (
    32  # ends of ranges in one leaf of a tree: more take less room, and looking through them longer
)


class ClusterTrees(NamedTuple):
    """Arrays that the loops in `kernels` walk. Ranges are columns, because a walk along a list reads one of them only."""

    c_low: np.ndarray
    c_high: np.ndarray
    a: np.ndarray
    clusters: np.ndarray
    boundaries: np.ndarray
    nodes: np.ndarray
    by_low: np.ndarray
    by_high: np.ndarray


def cluster(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The fewest clusters of ranges: the cluster of each range, the anchors in rising order, and the witnesses."""
    of = np.empty(len(low), dtype=np.int32)
    anchor = np.empty(len(low), dtype=np.int64)
    witness = np.empty(len(low), dtype=np.int64)
    count = stab(np.argsort(high, kind="stable"), low, high, of, anchor, witness)
    return of, anchor[:count].copy(), witness[:count].copy()


def build_trees(c_low: np.ndarray, c_high: np.ndarray, a: np.ndarray) -> tuple[ClusterTrees, np.ndarray]:
    """Builds trees over rectangles; also returns the position of each member in the input. No range is empty."""
    of, anchors, witnesses = cluster(c_low, c_high)
    order = np.lexsort((c_low, of))
    c_low, c_high, a, of = c_low[order], c_high[order], a[order], of[order]
    clusters = np.zeros(len(anchors), dtype=CLUSTER)
    starts = np.searchsorted(of, np.arange(len(anchors) + 1))
    clusters["anchor"], clusters["first"], clusters["count"] = anchors, starts[:-1], np.diff(starts)
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    clusters["witness"] = position[witnesses]
    clusters["min_low"] = c_low[starts[:-1]]
    clusters["max_high"] = np.maximum.reduceat(c_high, starts[:-1])
    width = a["high"].view(np.uint64) - a["low"].view(np.uint64)  # up to twice what has a sign
    clusters["narrowest"] = np.minimum.reduceat(np.minimum(width, HIGHEST), starts[:-1])
    # Leaves as many as have their share of points; a power of two, because nodes find their parents by halving.
    wanted = np.maximum(1, 2 * clusters["count"] // POINTS_A_LEAF)
    clusters["leaves"] = 1 << np.floor(np.log2(wanted)).astype(np.int64)
    clusters["boundary"] = np.cumsum(clusters["leaves"] - 1) - (clusters["leaves"] - 1)
    clusters["node"] = 3 * (np.cumsum(clusters["leaves"]) - clusters["leaves"])
    boundaries = np.empty(int((clusters["leaves"] - 1).sum()), dtype=np.int64)
    points, point_of = np.concatenate([a["low"], a["high"]]), np.concatenate([of, of])
    place_boundaries(points[np.lexsort((points, point_of))], clusters, 2 * starts, boundaries)

    nodes = np.zeros(3 * int(clusters["leaves"].sum()), dtype=NODE)
    cursor, nothing = np.zeros(len(nodes), dtype=np.int64), np.empty(0, dtype=np.int32)
    rising = np.arange(len(order))
    list_members(rising, a, of, clusters, boundaries, cursor, nothing, True)
    nodes["count"], nodes["first"] = cursor, np.cumsum(cursor) - cursor
    by_low, by_high = (np.empty(int(cursor.sum()), dtype=np.int32) for _ in range(2))
    cursor[:] = nodes["first"]
    list_members(rising, a, of, clusters, boundaries, cursor, by_low, False)
    cursor[:] = nodes["first"]
    falling = np.argsort(c_high, kind="stable")[::-1].copy()
    list_members(falling, a, of, clusters, boundaries, cursor, by_high, False)
    bound_nodes(nodes, by_low, by_high, c_low, c_high)
    return ClusterTrees(c_low, c_high, a, clusters, boundaries, nodes, by_low, by_high), order


def fewest(trees: ClusterTrees, live: np.ndarray) -> int:
    """The least number of clusters that the live members need."""
    return int(np.count_nonzero(live[trees.clusters["witness"]]))
