"""Which row of a checker each way of each subscription has, in two columns.

first[subscription]    where its ways begin in `rows`; -1, or no entry at all: none of them has a row
rows[first + way]      the row, -1: this way has none
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidings.arrays.bounds import within
from tidings.arrays.growing import Growing

NONE = -1


class WayRows:
    """Subscriptions are added by ascending number; most have no rows and cost four bytes at most."""

    def __init__(self, first: np.ndarray | None = None, rows: np.ndarray | None = None) -> None:
        self.first = Growing(np.int32, () if first is None else first)
        self.rows = Growing(np.int32, () if rows is None else rows)

    def __bool__(self) -> bool:
        return len(self.rows) > 0

    def add(self, subscription: int, rows: Sequence[int]) -> None:
        """The rows of all ways of a subscription."""
        missing = subscription - len(self.first)
        if missing:
            self.first.extend(np.full(missing, NONE, dtype=np.int32))
        self.first.append(len(self.rows))
        self.rows.extend(rows)

    def add_many(self, first: int, rows: np.ndarray) -> None:
        """The rows of all ways of subscriptions from `first` on, a row of the array for each."""
        count, ways = rows.shape
        missing = first - len(self.first)
        starts = len(self.rows) + ways * np.arange(count, dtype=np.int32)
        self.first.extend(np.concatenate([np.full(missing, NONE, dtype=np.int32), starts]))
        self.rows.extend(rows.ravel())

    def extend(self, first: int, other: WayRows, rows: int) -> None:
        """The rows of subscriptions from `first` on, whose rows in the checker are behind `rows` others."""
        missing, known = np.full(first - len(self.first), NONE, dtype=np.int32), other.first.all
        self.first.extend(np.concatenate([missing, np.where(known < 0, NONE, known + len(self.rows))]))
        self.rows.extend(np.where(other.rows.all < 0, NONE, other.rows.all + rows))

    def find(self, subscription: np.ndarray, way: np.ndarray) -> np.ndarray:
        """The rows of ways, -1 where there is none."""
        known = len(self.first)
        if not known:
            return np.full(len(subscription), NONE, dtype=np.int32)
        first = self.first.all[np.minimum(subscription, known - 1)]
        first = np.where(subscription < known, first, NONE)
        return np.where(first < 0, NONE, self.rows.all[np.where(first < 0, 0, first + way)])

    def has(self, count: int) -> np.ndarray:
        """Of the first `count` subscriptions whether they have rows."""
        found = np.zeros(count, dtype=np.bool_)
        first = self.first.all[:count]
        found[: len(first)] = first >= 0
        return found

    def kept(self, live: np.ndarray) -> tuple[WayRows, np.ndarray]:
        """The same for the live subscriptions, numbered anew; and the rows that they have, which are numbered anew in
        this order."""
        first, rows = self.first.all, self.rows.all
        owners = np.flatnonzero(first >= 0)
        sizes = np.diff(first[owners], append=len(rows))
        stays = live[owners]
        taken = rows[np.repeat(stays, sizes)]
        moved = np.full(len(live), NONE, dtype=np.int32)
        moved[owners[stays]] = np.cumsum(sizes[stays]) - sizes[stays]
        used, renumbering = np.unique(taken[taken >= 0], return_inverse=True)
        renumbered = taken.copy()
        renumbered[taken >= 0] = renumbering
        return WayRows(moved[live] if len(taken) else None, renumbered), used

    def fits(self, subscriptions: int, rows: int, owner: np.ndarray, way: np.ndarray) -> bool:
        """Whether arrays from a folder are what they should be, for the ways that finders have."""
        first, known = self.first.all, len(self.first)
        starts = np.append(first[first >= 0], len(self.rows))
        if known > subscriptions or starts[0] != 0 or not np.all(np.diff(starts) > 0):
            return False
        if not within(self.rows.all, NONE, rows):
            return False
        inside = owner < known
        begin = first[owner[inside]]
        end = starts[np.searchsorted(starts, begin, side="right").clip(max=len(starts) - 1)]
        return bool(np.all((begin < 0) | (begin + way[inside] < end)))
