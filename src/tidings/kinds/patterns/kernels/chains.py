"""An event's edges, chained by what a step may know of them.

For mode m the edges of one hash value form the list head[m, h] -> next[m, e] -> …; a walk compares what is known,
so a collision costs a step, never an answer.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import inlined
from tidings.kinds.patterns.kernels.layout import SPO


@inlined
def bucket(mode, s, p, o, mask):  # type: ignore[no-untyped-def]
    """Where edges of these terms are chained, by the terms the mode knows. Without a branch: which mode a step has
    is not to be guessed, and a wrong guess costs more than the multiplications."""
    h = np.uint64(s * ((mode >> 2) & 1)) * np.uint64(0x9E3779B97F4A7C15)
    h += np.uint64(p * ((mode >> 1) & 1)) * np.uint64(0xC2B2AE3D27D4EB4F)
    h += np.uint64(o * (mode & 1)) * np.uint64(0x165667B19E3779F9)
    return np.int64((h >> np.uint64(32)) & mask)


@inlined
def chain(d, graphs, terms, modes, space):  # type: ignore[no-untyped-def]
    """Chains the distinct edges of event d; returns (number of edges, mask of the buckets)."""
    low, high = graphs.first[d], graphs.first[d + 1]
    buckets = 8
    while buckets < 2 * (high - low):
        buckets *= 2
    mask = np.uint64(buckets - 1)
    for mode in range(8):
        if modes[mode]:
            space.head[mode, :buckets] = -1
    count = 0
    for e in range(low, high):
        s, p, o = graphs.subjects[e], graphs.properties[e], graphs.objects[e]
        gs, gp, go = terms.number[s], terms.number[p], terms.number[o]
        at = space.head[SPO, bucket(SPO, gs, gp, go, mask)]
        while at >= 0 and not (
            space.known[0, at] == gs and space.known[1, at] == gp and space.known[2, at] == go
        ):
            at = space.next[SPO, at]
        if at >= 0:
            continue
        space.edge[0, count], space.edge[1, count], space.edge[2, count] = s, p, o
        space.known[0, count], space.known[1, count], space.known[2, count] = gs, gp, go
        for mode in range(8):
            if modes[mode]:
                h = bucket(mode, gs, gp, go, mask)
                space.next[mode, count] = space.head[mode, h]
                space.head[mode, h] = count
        count += 1
    return count, mask


@inlined
def next_edge(mode, s, p, o, e, head, following, known, mask):  # type: ignore[no-untyped-def]
    """The edge after e that agrees with what the mode knows, or the first one when e is -2; -1 for none."""
    by_s, by_p, by_o = -((mode >> 2) & 1), -((mode >> 1) & 1), -(mode & 1)
    e = head[mode, bucket(mode, s, p, o, mask)] if e == -2 else following[mode, e]
    while e >= 0:
        if ((known[0, e] ^ s) & by_s) | ((known[1, e] ^ p) & by_p) | ((known[2, e] ^ o) & by_o) == 0:
            break
        e = following[mode, e]
    return e
