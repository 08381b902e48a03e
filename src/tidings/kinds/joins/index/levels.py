"""Keeps the indexes of join subscriptions in three levels, so that adding one is cheap, however many there are.

New ones go to a list that is scanned; when it is too long they go to a middle index, and when that is too large, to the
base. So there are at most twice the fewest clusters (new ones have none), and twice that when members have ended: an
index is rebuilt when half of its witnesses have ended.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tidings.kinds.joins.index.index import JoinIndex
from tidings.kinds.joins.index.recent_index import RecentIndex
from tidings.kinds.joins.index.subscriptions import Subscriptions
from tidings.kinds.joins.kernels.layout import IndexArrays
from tidings.kinds.joins.rows.rows import Rows

RECENT = 1024  # subscriptions that are scanned
MIDDLE_AT_LEAST, MIDDLE_SHARE = 8_192, 1 / 24
_LOOK_AGAIN = 1_024  # ended subscriptions, before the indexes are checked for rebuilding


class Levels:
    """`added` queues new subscriptions; `indexes` cover all live ones."""

    def __init__(self, subscriptions: Subscriptions, base: JoinIndex | None = None) -> None:
        self.subscriptions = subscriptions
        self.middle = JoinIndex.build(subscriptions, np.empty(0, dtype=np.int64))
        self.base = base or self.middle
        self.recent = RecentIndex(subscriptions, [])
        self._pending: list[int] = []
        self._ended = subscriptions.ended  # at the last check

    def added(self, numbers: Iterable[int]) -> None:
        self._pending.extend(numbers)

    def indexes(self, rows: Rows) -> tuple[IndexArrays, IndexArrays, IndexArrays]:
        if self._pending:
            self._file_pending()
        if self.subscriptions.ended - self._ended >= _LOOK_AGAIN:
            self._ended = self.subscriptions.ended
            self.base, self.middle = self._renewed(self.base), self._renewed(self.middle)
        return self.base.for_rows(rows), self.middle.for_rows(rows), self.recent.index.for_rows(rows)

    def fold(self) -> JoinIndex:
        """Builds one base index of all live subscriptions and returns it."""
        every = np.flatnonzero(self.subscriptions.live)
        if self._pending or not np.array_equal(np.sort(self.base.numbers), every):
            self._pending.clear()
            self.middle = JoinIndex.build(self.subscriptions, every[:0])
            self.recent = RecentIndex(self.subscriptions, [])
            self.base = JoinIndex.build(self.subscriptions, every)
        return self.base

    @property
    def largest(self) -> int:
        """The most members that one side of any index has."""
        return max(self.base.largest, self.middle.largest, 2 * RECENT)

    def _file_pending(self) -> None:
        """Adds the pending subscriptions to the lowest level that has room for them."""
        pending, self._pending = self._pending, []
        if len(self.recent.numbers) + len(pending) <= RECENT:
            done = 0
            while done < len(pending) and self.recent.add(pending[done]):
                done += 1
            if done < len(pending):
                self.recent = RecentIndex(self.subscriptions, [*self.recent.numbers, *pending[done:]])
            return
        numbers = np.array([*self.middle.numbers, *self.recent.numbers, *pending], dtype=np.int64)
        self.recent = RecentIndex(self.subscriptions, [])
        if len(numbers) <= max(MIDDLE_AT_LEAST, MIDDLE_SHARE * len(self.base.numbers)):
            self.middle = JoinIndex.build(self.subscriptions, numbers)
            return
        numbers = np.concatenate([self.base.numbers, numbers])
        # Freed first: two indexes of a million take more room than one.
        self.base = self.middle = JoinIndex.build(self.subscriptions, numbers[:0])
        self.base = JoinIndex.build(self.subscriptions, numbers)

    def _renewed(self, index: JoinIndex) -> JoinIndex:
        live = self.subscriptions.live
        numbers = index.arrays["number"][index.arrays["clusters"]["witness"]]
        witnesses = live[np.where(numbers < 0, ~numbers, numbers)]
        few_are_left = 2 * np.count_nonzero(live[index.numbers]) < len(index.numbers)
        if few_are_left or 2 * np.count_nonzero(witnesses) < len(witnesses):
            return JoinIndex.build(self.subscriptions, index.numbers)
        return index
