"""Clusters of ranges, and a segment tree in each: which rectangles hold a point. Select-joins, 3.1.1.

A member is the rectangle of two ranges, `c` and `a`. All `c` ranges of a cluster contain its anchor. So a member that
contains some value of a sorted list contains the last one up to the anchor or the first one from it on. Among the
members that hold the other coordinate, sorted by an end of `c`, those that contain it are a prefix. The tree gives
such lists: a node stands for a stretch of `a` and lists the members that cover
it, once by rising `c_low` and once by falling `c_high`.

    nodes of a cluster with m leaves:  [ -, 1 … 2 m - 1 | 2 m … 3 m - 1 ]
                                            cover it all  cover a leaf in part
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.arrays.compiled import compiled, inlined

Array = np.ndarray

RANGE = np.dtype([("low", "i8"), ("high", "i8")])
CLUSTER = np.dtype(
    [
        ("anchor", "i8"),
        ("min_low", "i8"),  # of all c ranges
        ("max_high", "i8"),
        ("first", "i8"),  # members
        ("count", "i8"),
        ("leaves", "i8"),  # a power of two
        (
            "boundary",
            "i8",
        ),  # where its leaves - 1 boundaries begin; a leaf begins at one and ends before the next
        ("node", "i8"),  # where its 3 * leaves nodes begin
        ("narrowest", "i8"),  # of all a ranges: how much lies between the ends
        ("witness", "i8"),  # a member whose c range touches no other witness's
    ]
)
NODE = np.dtype([("first", "i8"), ("count", "i8"), ("min_low", "i8"), ("max_high", "i8")])

LOWEST = -(2**63) + 1
HIGHEST = 2**63 - 1


@compiled
def stab(by_high: Array, low: Array, high: Array, cluster: Array, anchor: Array, witness: Array) -> int:
    """The fewest points that stab all ranges, greedily from the left: each the end of the first range that the one
    before misses. Those ranges are the witnesses: no two have a point in common, so no fewer points can do."""
    count = 0
    for i in by_high:
        if count == 0 or low[i] > anchor[count - 1]:
            anchor[count] = high[i]
            witness[count] = i
            count += 1
        cluster[i] = count - 1
    return count


@inlined
def leaf_of(boundaries: Array, first: int, leaves: int, value: int) -> int:
    """The leaf that holds a value: the number of boundaries up to it."""
    low, high = 0, leaves - 1
    while low < high:
        middle = (low + high) >> 1
        if boundaries[first + middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def place_boundaries(points: Array, clusters: Array, first_point: Array, boundaries: Array) -> None:
    """The boundaries of each cluster's leaves, evenly among its sorted points."""
    for k in range(len(clusters)):
        cluster = clusters[k]
        count, leaves = first_point[k + 1] - first_point[k], cluster["leaves"]
        for j in range(1, leaves):
            boundaries[cluster["boundary"] + j - 1] = points[first_point[k] + count * j // leaves]


@compiled
def list_members(
    order: Array,
    a: Array,
    cluster_of: Array,
    clusters: Array,
    boundaries: Array,
    cursor: Array,
    listed: Array,
    counting: bool,
) -> None:
    """Lists members, in `order`, at the nodes that their `a` ranges cover; when `counting`, only how many there are."""
    for i in order:
        cluster = clusters[cluster_of[i]]
        leaves, boundary, node = cluster["leaves"], cluster["boundary"], cluster["node"]
        low, high = a[i]["low"], a[i]["high"]
        left = leaf_of(boundaries, boundary, leaves, low)
        right = leaf_of(boundaries, boundary, leaves, high)
        whole_left = low == (boundaries[boundary + left - 1] if left else LOWEST)
        whole_right = high == HIGHEST if right == leaves - 1 else high == boundaries[boundary + right] - 1
        if left == right and not (whole_left and whole_right):
            _put(node + 2 * leaves + left, i, cursor, listed, counting)
            continue
        if not whole_left:
            _put(node + 2 * leaves + left, i, cursor, listed, counting)
            left += 1
        if not whole_right:
            _put(node + 2 * leaves + right, i, cursor, listed, counting)
            right -= 1
        left, right = left + leaves, right + leaves + 1
        while left < right:
            if left & 1:
                _put(node + left, i, cursor, listed, counting)
                left += 1
            if right & 1:
                right -= 1
                _put(node + right, i, cursor, listed, counting)
            left >>= 1
            right >>= 1


@inlined
def _put(node: int, member: int, cursor: Array, listed: Array, counting: bool) -> None:
    if not counting:
        listed[cursor[node]] = member
    cursor[node] += 1


@compiled
def bound_nodes(nodes: Array, by_low: Array, by_high: Array, c_low: Array, c_high: Array) -> None:
    """The ends of each node's lists: most nodes have nothing to say about most values."""
    for n in range(len(nodes)):
        if nodes[n]["count"]:
            first = nodes[n]["first"]
            nodes[n]["min_low"] = c_low[by_low[first]]
            nodes[n]["max_high"] = c_high[by_high[first]]
        else:
            nodes[n]["min_low"] = HIGHEST
            nodes[n]["max_high"] = LOWEST - 1


@inlined
def collect(
    trees: Any, k: int, low_value: int, high_value: int, has_high: bool, a: int, found: int, out: Array
) -> int:
    """Members of cluster k that hold `a` and one of two values of `c`, each once: the last value up to the anchor
    (LOWEST - 1 if there is none) and, if it `has_high`, the first from the anchor on."""
    cluster = trees.clusters[k]
    leaves = cluster["leaves"]
    leaf = leaf_of(trees.boundaries, cluster["boundary"], leaves, a)
    partial = cluster["node"] + 2 * leaves + leaf
    at = leaf + leaves
    while at >= 0:
        node = trees.nodes[cluster["node"] + at if at else partial]
        first, stop = node["first"], node["first"] + node["count"]
        if node["min_low"] <= low_value:
            for m in range(first, stop):
                member = trees.by_low[m]
                if trees.c_low[member] > low_value:
                    break
                if (at or trees.a[member]["low"] <= a <= trees.a[member]["high"]) and found < len(out):
                    out[found] = member
                    found += 1
        if has_high and node["max_high"] >= high_value:
            for m in range(first, stop):
                member = trees.by_high[m]
                if trees.c_high[member] < high_value:
                    break
                if (
                    trees.c_low[member] > low_value
                    and (at or trees.a[member]["low"] <= a <= trees.a[member]["high"])
                    and found < len(out)
                ):
                    out[found] = member
                    found += 1
        at = at >> 1 if at else -1
    return found
