"""A segment of the index: builders of all kinds that find, and which subscription and way each of their rows is.

There are two, a large base that rarely changes and a small tail that takes every change. Both number their
subscriptions alike, the tail from where the base ends.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np

from tidings.engine.contracts import Builder, Columns, Finder
from tidings.language.alternatives import MAX_ALTERNATIVES
from tidings.model.batch import Batch
from tidings.model.pairs import Pairs


class Owners:
    """Of each row of a builder the subscription and the way that it belongs to: what comes from a folder stays mapped,
    and is not added to."""

    def __init__(self, subscription: np.ndarray | None = None, way: np.ndarray | None = None) -> None:
        self._stored = (subscription, way) if subscription is not None and way is not None else None
        self._subscription, self._way = array("i"), array("h")

    def __len__(self) -> int:
        return len(self._way) if self._stored is None else len(self._stored[1])

    def add(self, subscription: int, way: int) -> None:
        self._subscription.append(subscription)
        self._way.append(way)

    def add_many(self, subscription: np.ndarray, way: np.ndarray) -> None:
        self._subscription.frombytes(subscription.astype(np.int32).tobytes())
        self._way.frombytes(way.astype(np.int16).tobytes())

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Subscriptions and ways, as they are now."""
        if self._stored is not None:
            return self._stored
        # Copies: a column that is looked at cannot grow.
        return np.array(self._subscription, dtype=np.int32), np.array(self._way, dtype=np.int16)

    def fits(self, rows: int, subscriptions: int) -> bool:
        """Whether arrays from a folder are what they should be."""
        owner, way = self.arrays()
        return (
            len(owner) == len(way) == rows
            and bool(np.all((owner >= 0) & (owner < subscriptions)))
            and bool(np.all((way >= 0) & (way < MAX_ALTERNATIVES)))
        )


class OwnedFinder(NamedTuple):
    """A finder, and the subscription and way of each of its rows."""

    finder: Finder
    subscription: np.ndarray
    way: np.ndarray

    def find(self, batch: Batch) -> Pairs:
        found = self.finder.find(batch)
        return Pairs(
            found.event, self.subscription[found.row], self.way[found.row], found.doubt, found.binding
        )


class Segment:
    """Rows are added, and never changed."""

    def __init__(self, builders: dict[str, Builder], first: int = 0) -> None:
        self.builders, self.first = builders, first
        self.owners = {name: Owners() for name in builders}
        self._finders: dict[str, OwnedFinder] | None = None
        self._ways: tuple[np.ndarray, np.ndarray] | None = None

    def add(self, kind: str, part: object, prepared: object, owner: tuple[int, int]) -> None:
        """A row of a kind; `owner` is its subscription and way."""
        if self.builders[kind].add(part, prepared) >= 0:
            self.owners[kind].add(*owner)
        self._finders = self._ways = None

    def add_many(self, kind: str, part: object, columns: Columns, numbers: np.ndarray, way: int) -> None:
        """A row of a kind for each of many subscriptions."""
        if self.builders[kind].add_many(part, columns, len(numbers)) >= 0:
            self.owners[kind].add_many(numbers, np.full(len(numbers), way))
        self._finders = self._ways = None

    def extend(self, other: Segment, live: np.ndarray, numbers: np.ndarray) -> None:
        """Takes over the rows of live subscriptions, which have new `numbers`."""
        for name, owners in other.owners.items():
            owner, way = owners.arrays()
            rows = np.flatnonzero(live[owner])
            if len(rows):
                self.builders[name].extend(other.builders[name], rows)
                self.owners[name].add_many(numbers[owner[rows]], way[rows])
        self._finders = self._ways = None

    @property
    def finders(self) -> dict[str, OwnedFinder]:
        """The finders of kinds that have rows, by the kind's name."""
        if self._finders is None:
            self._finders = {
                name: OwnedFinder(self.builders[name].finder(), *owners.arrays())
                for name, owners in self.owners.items()
                if len(owners)
            }
        return self._finders

    def ways(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Of its `count` subscriptions whether they have several rows, and whether one is found without bindings."""
        if self._ways is None:
            rows, unbound = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
            for owned in self.finders.values():
                rows += np.bincount(owned.subscription - self.first, minlength=count)
                if not owned.finder.binds:
                    unbound[owned.subscription - self.first] = True
            self._ways = rows > 1, unbound
        return self._ways
