"""Counts what the parts of a divided index are visited for.

    forwards          events that visited the part
    false positives   those of them that match nothing there
    matches           notifications of the part: its load
    opened            how often the part was opened

Counts only add up: those of tasks, of micro-batches, of drivers. An index that is not divided has no parts, and no counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

COUNTS = ("forwards", "false_positives", "matches", "opened")


@dataclass(frozen=True, slots=True, eq=False)
class PartVisits:
    """A row for each of COUNTS, a column for each part."""

    counts: np.ndarray = field(default_factory=lambda: np.zeros((len(COUNTS), 0), dtype=np.int64))

    def __bool__(self) -> bool:
        return bool(self.counts.any())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartVisits) and np.array_equal(self.counts, other.counts)

    def __getitem__(self, name: str) -> list[int]:
        """One of COUNTS by part."""
        found: list[int] = self.counts[COUNTS.index(name)].tolist()
        return found

    @property
    def parts(self) -> int:
        return int(self.counts.shape[1])

    @property
    def forwards(self) -> int:
        """Of all parts."""
        return sum(self["forwards"])

    @property
    def false_positives(self) -> int:
        return sum(self["false_positives"])

    def to_bytes(self) -> bytes:
        return self.counts.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> PartVisits:
        return cls(np.frombuffer(data, dtype=np.int64).reshape(len(COUNTS), -1))

    def to_lists(self) -> list[list[int]]:
        """For JSON."""
        found: list[list[int]] = self.counts.tolist()
        return found

    @classmethod
    def from_lists(cls, lists: list[list[int]]) -> PartVisits:
        return cls(np.array(lists, dtype=np.int64).reshape(len(COUNTS), -1))


def no_visits(parts: int) -> PartVisits:
    return PartVisits(np.zeros((len(COUNTS), parts), dtype=np.int64))


def total(visits: Iterable[PartVisits]) -> PartVisits:
    """The counts of all. Where an index was divided otherwise meanwhile, some have more parts than others."""
    found = list(visits)
    counts = no_visits(max((each.parts for each in found), default=0)).counts
    for each in found:
        counts[:, : each.parts] += each.counts
    return PartVisits(counts)


class VisitCounter:
    """What an open index counts until somebody takes it."""

    def __init__(self, parts: int) -> None:
        self._counts = np.zeros((len(COUNTS), parts), dtype=np.int64)

    def visited(self, part: int, events: int, answered: int, matches: int) -> None:
        """Events have visited a part; so many of them have answers there."""
        self._counts[:3, part] += (events, events - answered, matches)

    def opened(self, part: int) -> None:
        self._counts[3, part] += 1

    def take(self) -> PartVisits:
        """The counts since the last call."""
        taken, self._counts = self._counts, np.zeros_like(self._counts)
        return PartVisits(taken)
