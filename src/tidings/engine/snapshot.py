"""What events are matched against: the finders of base and tail, the checkers, and facts of subscriptions, frozen.

A snapshot is made when the first event after a change comes. A subscription that is removed is dead in it at once; what
is added later is not found by it, though checkers are shared and grow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from tidings.engine.contracts import Checker, RemarkingChecker
from tidings.engine.segment import OwnedFinder
from tidings.engine.subscriptions import Subscriptions, take_split
from tidings.engine.way_rows import WayRows
from tidings.model.batch import Batch
from tidings.model.pairs import Pairs


@dataclass(frozen=True, slots=True)
class OwnedChecker:
    """A checker, and the row that each way of each subscription has in it."""

    name: str
    checker: Checker
    rows: WayRows

    def check(self, batch: Batch, pairs: Pairs) -> Pairs:
        if not len(pairs):
            return pairs
        rows = self.rows.find(pairs.subscription, pairs.way)
        return self.checker.check(batch, pairs, rows) if (rows >= 0).any() else pairs

    def remarks(self, batch: Batch, pairs: Pairs) -> dict[int, dict[str, str]]:
        """What the checker has to say about pairs that match, by their positions."""
        if not len(pairs) or not hasattr(self.checker, "remarks"):
            return {}
        checker = cast(RemarkingChecker, self.checker)
        return checker.remarks(batch, pairs, self.rows.find(pairs.subscription, pairs.way))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An index at one moment."""

    subscriptions: Subscriptions
    finders: tuple[OwnedFinder, ...]
    checkers: tuple[OwnedChecker, ...]
    several: tuple[np.ndarray, np.ndarray] | None
    """Of the subscriptions of base and tail whether they have several ways; None if none of them has."""
    finds_several: bool
    """Whether a finder may give one row of an event several times, with several bindings."""
    mixed: tuple[np.ndarray, np.ndarray]
    """The same, for those whose ways are not all patterns that finders alone settle."""
    is_plain: bool
    """Whether it has filters alone, perhaps at places in networks: then an event needs no table."""
    events_at_once: int

    def remarks(self, batch: Batch, pairs: Pairs) -> dict[int, dict[str, str]]:
        """What all checkers say about pairs that match, by their positions."""
        remarks: dict[int, dict[str, str]] = {}
        for checker in self.checkers:
            for position, remark in checker.remarks(batch, pairs).items():
                remarks[position] = {**remarks.get(position, {}), **remark}
        return remarks

    def has_several(self, subscription: np.ndarray) -> np.ndarray:
        if self.several is None:
            return np.zeros(len(subscription), dtype=np.bool_)
        return take_split(subscription, *self.several)

    def is_mixed(self, subscription: np.ndarray) -> np.ndarray:
        return take_split(subscription, *self.mixed)
