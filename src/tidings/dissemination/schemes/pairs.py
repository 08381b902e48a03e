"""The subscriptions of one semijoin form R^S as pairs of ranges, with the searches that schemes need.

The searches: which pairs a row of R affects, given the joining rows of S; whether a pair is inside a gap between two of
those (a triangle of Select-joins, Appendix B, is disposable if not); to which pairs a row of S exposes rows of R. Most
pairs are in an index; newer ones are in a tail that is scanned, and that is merged when it has grown. The yes-or-no
searches may still see removed pairs: a description is then larger than necessary, but filters stay correct.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.growing import Growing
from tidings.dissemination.kernels.skylines import mark_held
from tidings.dissemination.schemes.message import Bounds, Longs
from tidings.dissemination.schemes.pair_index import Flags, PairIndex
from tidings.kinds.joins.index.stabbing import cluster

TAIL = 256  # pairs that are scanned without an index, besides 1/64 of the indexed ones


class RangePairs:
    """Rows of five columns, in the order of their owners' numbers."""

    def __init__(self) -> None:
        self._owner = Growing(np.int64)
        self._base = (Growing(np.int64), Growing(np.int64))
        self._filtering = (Growing(np.int64), Growing(np.int64))
        self._alive = Growing(np.bool_)
        self._indexed = 0
        self._index: PairIndex | None = None

    def __len__(self) -> int:
        return int(self._alive.all.sum())

    def add(self, owners: Longs, base: tuple[Longs, Longs], filtering: tuple[Longs, Longs]) -> None:
        """Subscriptions with the low and high ends of their ranges; an empty range holds nothing, so it is left out."""
        full = (base[0] <= base[1]) & (filtering[0] <= filtering[1])
        for column, values in zip(
            (self._owner, *self._base, *self._filtering), (owners, *base, *filtering), strict=True
        ):
            column.extend(values[full])
        self._alive.extend(np.ones(int(full.sum()), dtype=np.bool_))

    def remove(self, owner: int) -> None:
        index = int(self._owner.all.searchsorted(owner))
        if index < len(self._owner) and self._owner.all[index] == owner:
            self._alive.all[index] = False

    @property
    def anchors(self) -> Longs:
        """Points, rising, that stab every filtering range: the anchors of the clusters of Select-joins, 3.1.1."""
        index = self._ready()
        if not self._has_tail:
            return index.anchors
        low, high = self._tail(self._filtering)
        return np.union1d(index.anchors, cluster(low, high)[1])

    def affected(self, at: int, values: Longs) -> Longs:
        """Pairs whose base range holds `at` and whose filtering range holds some of the rising `values`."""
        found = self._ready().affected(at, values)
        if not self._has_tail:
            return self._living(found)
        low, high = self._tail(self._filtering)
        holds = values.searchsorted(low) < values.searchsorted(high, "right")
        return self._living(found, holds & self._tail_holds(at))

    def inside(self, at: int, below: Longs, above: Longs) -> Flags:
        """For each gap (below, above) whether some pair that holds `at` has its filtering range strictly inside."""
        found = self._ready().inside(at, below, above)
        if not self._has_tail:
            return found
        low, high = (end[self._tail_holds(at)] for end in self._tail(self._filtering))
        return found | ((low > below[:, None]) & (high < above[:, None])).any(axis=1)

    def reaching(self, at: int, points: Longs) -> Flags:
        """For each point (X, Y) of a skyline whether it covers some pair that holds `at`."""
        found = self._ready().reaching(at, points)
        if not self._has_tail:
            return found
        low, high = (end[self._tail_holds(at)] for end in self._tail(self._filtering))
        return found | ((low <= points[:, :1]) & (points[:, 1:] <= high)).any(axis=1)

    def exposed(self, bounds: Bounds) -> Longs:
        """Pairs whose filtering range holds a row at `bounds.at` and neither of its neighbours."""
        found = self._ready().exposed(bounds)
        if not self._has_tail:
            return self._living(found)
        low, high = self._tail(self._filtering)
        missed = (low <= bounds.at) & (bounds.at <= high)
        if bounds.below is not None:
            missed &= bounds.below < low
        if bounds.above is not None:
            missed &= high < bounds.above
        return self._living(found, missed)

    def held(self, pairs: Longs, keys: Longs) -> Flags:
        """For each of the rising keys whether the base range of some of the pairs holds it."""
        marks = np.zeros(len(keys) + 1, dtype=np.int64)
        mark_held(pairs, self._base[0].all, self._base[1].all, keys, marks)
        return marks[:-1] > 0

    def owners(self, pairs: Longs) -> Longs:
        return self._owner.all[pairs]

    def base(self, pairs: Longs) -> tuple[Longs, Longs]:
        """Their ranges on the base table: low ends, high ends."""
        return self._base[0].all[pairs], self._base[1].all[pairs]

    def filtering(self, pairs: Longs) -> tuple[Longs, Longs]:
        """Their ranges on the filtering table: low ends, high ends."""
        return self._filtering[0].all[pairs], self._filtering[1].all[pairs]

    def _living(self, found: Longs, tail: Flags | None = None) -> Longs:
        if tail is not None:
            found = np.concatenate([found, self._indexed + np.flatnonzero(tail)])
        return found[self._alive.all[found]]

    @property
    def _has_tail(self) -> bool:
        return self._indexed < len(self._owner)

    def _tail(self, ends: tuple[Growing, Growing]) -> tuple[Longs, Longs]:
        return ends[0].all[self._indexed :], ends[1].all[self._indexed :]

    def _tail_holds(self, at: int) -> Flags:
        low, high = self._tail(self._base)
        return (low <= at) & (at <= high)

    def build(self) -> None:
        """Puts the tail into the index, if it has grown."""
        self._ready()

    def _ready(self) -> PairIndex:
        if self._index is None or len(self._owner) - self._indexed > TAIL + self._indexed // 64:
            alive = self._alive.all
            self._owner, self._base, self._filtering = (
                Growing(np.int64, self._owner.all[alive]),
                (Growing(np.int64, self._base[0].all[alive]), Growing(np.int64, self._base[1].all[alive])),
                (
                    Growing(np.int64, self._filtering[0].all[alive]),
                    Growing(np.int64, self._filtering[1].all[alive]),
                ),
            )
            self._alive = Growing(np.bool_, alive[alive])
            self._indexed = len(self._owner)
            base, filtering = ((low.all, high.all) for low, high in (self._base, self._filtering))
            self._index = PairIndex(base, filtering)
        return self._index
