"""Computes descriptive skylines: few points that describe which subscriptions a row affects. Select-joins, 3.2.1 and
Appendix B.

A row of the base table has the key `at`; `values` are the rising, distinct keys of the filtering rows that join it.
Each function gives points (X, Y), one a line, such that of all pairs whose base range holds `at` exactly those are
covered (low <= X and Y <= high) whose filtering range holds some of the values.
"""

from __future__ import annotations

import numpy as np

from tidings.dissemination.schemes.message import Longs
from tidings.dissemination.schemes.pairs import RangePairs


def minimum_area(pairs: RangePairs, at: int, values: Longs) -> Longs:
    """Ref-SJ-Sub: the affected ranges themselves, without those around another one."""
    low, high = pairs.filtering(pairs.affected(at, values))
    order = np.lexsort((high, ~low))  # ~low falls as low rises, for every 64-bit integer
    low, high = low[order], high[order]
    # From the highest low end down: a range is around none of those before if it ends before all of them.
    before = np.minimum.accumulate(np.concatenate([_MOST, high[:-1]])) if len(high) else high
    kept = high < before
    if len(high):
        kept[0] = True
    return np.column_stack([low[kept], high[kept]])[::-1]


def joining_tuples(pairs: RangePairs, at: int, values: Longs) -> Longs:
    """Ref-SJ-Tup: every joining row, independent of the subscriptions."""
    return np.column_stack([values, values])


def clusters(pairs: RangePairs, at: int, values: Longs) -> Longs:
    """Ref-SJ-Clu: of each cluster of ranges the last value up to its anchor and the first from its anchor on."""
    near = values[_next_to_anchors(pairs.anchors, values)]
    return np.column_stack([near, near])


def improved_clusters(pairs: RangePairs, at: int, values: Longs) -> Longs:
    """Ref-SJ-Clu+: runs of those values, broken where a range that holds `at` lies inside a gap between two.

    A run from q to r is the one point (r, q). A range that it covers holds a value of the run, or lies in a gap of it,
    where there is none. Beyond the paper, a point that covers no subscription is left out: so a row that affects none has an
    empty skyline, and no message. Whether a gap's triangle is disposable is one search a tree node, in place of the
    enumeration of Appendix B: a range strictly inside a gap holds no value at all, so any is one too many.
    """
    near = values[_next_to_anchors(pairs.anchors, values)]
    if not len(near):
        return _NO_POINTS
    breaks = np.flatnonzero(pairs.inside(at, near[:-1], near[1:])) if len(near) > 1 else _NO_BREAKS
    first, last = np.concatenate([_START, breaks + 1]), np.concatenate([breaks, [len(near) - 1]])
    points = np.column_stack([near[last], near[first]])
    return points[pairs.reaching(at, points)]


def _next_to_anchors(anchors: Longs, values: Longs) -> np.ndarray:
    """The values that have an anchor at them, or between them and a neighbour; searches by values, which are fewer."""
    below, up_to = anchors.searchsorted(values), anchors.searchsorted(values, "right")
    chosen = up_to > below
    chosen[:-1] |= below[1:] > up_to[:-1]
    chosen[1:] |= below[1:] > up_to[:-1]
    if len(values):
        chosen[0] |= below[0] > 0
        chosen[-1] |= up_to[-1] < len(anchors)
    return chosen


_NO_POINTS: Longs = np.empty((0, 2), dtype=np.int64)
_NO_BREAKS: Longs = np.empty(0, dtype=np.int64)
_START: Longs = np.zeros(1, dtype=np.int64)
_MOST: Longs = np.array([np.iinfo(np.int64).max])
