"""What events are matched against: the finders of base and tail, the checkers, and facts of subscriptions, frozen.

A snapshot is made when the first event after a change comes. Only one thing in it may still change: a subscription
that is removed is dead at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.engine.contracts import Checker
from tidings.engine.segment import OwnedFinder
from tidings.engine.subscriptions import Subscriptions
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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An index at one moment."""

    subscriptions: Subscriptions
    finders: tuple[OwnedFinder, ...]
    checkers: tuple[OwnedChecker, ...]
    several: tuple[np.ndarray, ...] | None
    """Of the subscriptions of base and tail whether they have several ways; None if none of them has."""
    finds_several: bool
    """Whether a finder may give one row of an event several times, with several bindings."""
    mixed: tuple[np.ndarray, ...]
    """The same, for those whose ways are not all patterns that finders alone settle."""
    is_plain: bool
    """Whether it has filters alone, perhaps at places in networks: then an event needs no table."""
    events_at_once: int

    def has_several(self, subscription: np.ndarray) -> np.ndarray:
        return _flags(self.several, subscription)

    def is_mixed(self, subscription: np.ndarray) -> np.ndarray:
        return _flags(self.mixed, subscription)


def _flags(parts: tuple[np.ndarray, ...] | None, subscription: np.ndarray) -> np.ndarray:
    """The flags of subscriptions that are in two parts, one behind the other."""
    if parts is None:
        return np.zeros(len(subscription), dtype=np.bool_)
    base, tail = parts
    if not len(tail):
        return base[subscription]
    found = np.zeros(len(subscription), dtype=np.bool_)
    inside = subscription < len(base)
    found[inside], found[~inside] = base[subscription[inside]], tail[subscription[~inside] - len(base)]
    return found
