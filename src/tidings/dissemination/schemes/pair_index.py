"""An immutable index over pairs of ranges: one on a base table, one on a filtering table.

The base ranges are in a segment tree, the filtering ranges in sorted lists at its nodes (`kernels.skylines`). A pair is
identified by its position in the input. No range is empty.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.dissemination.kernels.skylines import (
    BLOCK,
    between,
    bound_lists,
    holding,
    inside,
    list_pairs,
    reaching,
)
from tidings.dissemination.schemes.message import Bounds, Longs
from tidings.kinds.joins.index.stabbing import cluster
from tidings.kinds.joins.schema.order_keys import HIGHEST

Flags = npt.NDArray[np.bool_]
Ranks = npt.NDArray[np.int32]
NONE: Longs = np.empty(0, dtype=np.int64)


class Tree(NamedTuple):
    """The arrays that the loops walk; ends of filtering ranges are ranks."""

    leaves: int
    first: Longs
    listed: Ranks
    low: Ranks
    least: Ranks
    most: Ranks
    block: Ranks
    high: Ranks  # of each pair
    order: Longs  # all pairs by low end of the filtering range, those ends, and the high ends of every BLOCK of them
    all_low: Ranks
    block_least: Ranks
    block_most: Ranks


class PairIndex:
    def __init__(self, base: tuple[Longs, Longs], filtering: tuple[Longs, Longs]) -> None:
        base_low, base_high = base
        low, high = filtering
        self.anchors = cluster(low, high)[1]
        # A stretch of the base attribute begins where a range begins, or behind the end of one.
        self._stretches = np.unique(np.concatenate([base_low, base_high[base_high < HIGHEST] + 1]))
        self._ends = np.unique(np.concatenate([low, high]))
        self._scratch = np.empty(len(low), dtype=np.int64)
        first_leaf = self._stretches.searchsorted(base_low)
        last_leaf = self._stretches.searchsorted(base_high, "right") - 1
        low_rank, high_rank = (self._ends.searchsorted(end).astype(np.int32) for end in (low, high))
        order = np.argsort(low, kind="stable")

        leaves = max(1, len(self._stretches))
        counts = np.zeros(2 * leaves, dtype=np.int64)
        list_pairs(order, first_leaf, last_leaf, leaves, counts, np.empty(0, dtype=np.int32), True)
        first = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        listed, listed_low, least, most = (np.empty(first[-1], dtype=np.int32) for _ in range(4))
        block = np.zeros(first[-1] // BLOCK + 1, dtype=np.int32)
        list_pairs(order, first_leaf, last_leaf, leaves, first[:-1].copy(), listed, False)
        bound_lists(first, listed, low_rank, high_rank, listed_low, least, most, block)

        begins = np.arange(0, len(order), BLOCK)
        rising = high_rank[order]
        self._tree = Tree(
            *(leaves, first, listed, listed_low, least, most, block, high_rank, order, low_rank[order]),
            *(
                extreme.reduceat(rising, begins) if len(order) else rising
                for extreme in (np.minimum, np.maximum)
            ),
        )

    def affected(self, at: int, values: Longs) -> Longs:
        """Pairs whose base range holds `at` and whose filtering range holds some of the rising `values`."""
        leaf = self._leaf(at)
        if leaf < 0:
            return NONE
        up_to, from_on = self._ends.searchsorted(values, "right") - 1, self._ends.searchsorted(values)
        return self._scratch[: holding(self._tree, leaf, up_to, from_on, self._scratch)]

    def inside(self, at: int, below: Longs, above: Longs) -> Flags:
        """For each gap (below, above) whether some pair that holds `at` has its filtering range strictly inside."""
        leaf = self._leaf(at)
        out = np.zeros(len(below), dtype=np.bool_)
        if leaf >= 0:
            after, before = self._ends.searchsorted(below, "right"), self._ends.searchsorted(above)
            inside(self._tree, leaf, after, before, out)
        return out

    def reaching(self, at: int, points: Longs) -> Flags:
        """For each point (X, Y) of a skyline whether it covers some pair that holds `at`."""
        leaf = self._leaf(at)
        out = np.zeros(len(points), dtype=np.bool_)
        if leaf >= 0:
            up_to = self._ends.searchsorted(points[:, 0], "right") - 1
            reaching(self._tree, leaf, up_to, self._ends.searchsorted(points[:, 1]), out)
        return out

    def exposed(self, bounds: Bounds) -> Longs:
        """Pairs whose filtering range holds a row at `bounds.at` and neither of its neighbours."""
        ends = self._ends
        after = 0 if bounds.below is None else ends.searchsorted(bounds.below, "right")
        before = len(ends) if bounds.above is None else ends.searchsorted(bounds.above)
        up_to, from_on = ends.searchsorted(bounds.at, "right") - 1, ends.searchsorted(bounds.at)
        return self._scratch[: between(self._tree, after, up_to, from_on, before, self._scratch)]

    def _leaf(self, at: int) -> int:
        return int(self._stretches.searchsorted(at, "right")) - 1
