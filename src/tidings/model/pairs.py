"""Pairs of an event and a subscription that may match: what the steps of matching hand on to each other, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from tidings.model.terms import Term

NONE = -1
_NOTHING = np.full(1 << 16, NONE, dtype=np.int32)  # for all who have none: no step writes into its pairs
_NOTHING.flags.writeable = False


class Found(NamedTuple):
    """What a finder has found: pair i is the event `event[i]` of the batch and the row `row[i]` of the finder.

    `doubt` is the number of a message of the batch that says why a pair is undecided, `binding` the number of its
    bindings in the batch; -1 is neither.
    """

    event: np.ndarray
    row: np.ndarray
    doubt: np.ndarray
    binding: np.ndarray

    @classmethod
    def certain(cls, event: np.ndarray, row: np.ndarray) -> Found:
        """Pairs without doubts and bindings."""
        nothing = _NOTHING[: len(row)] if len(row) <= len(_NOTHING) else np.full(len(row), NONE, np.int32)
        return cls(event, row, nothing, nothing)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pair i: the event may satisfy this way of this subscription (`language/alternatives.py` says what a way is).

    `doubt` and `binding` are those of `Found`.
    """

    event: np.ndarray
    subscription: np.ndarray
    way: np.ndarray
    doubt: np.ndarray
    binding: np.ndarray

    def __len__(self) -> int:
        return len(self.event)

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        return self.event, self.subscription, self.way, self.doubt, self.binding

    def take(self, which: np.ndarray | slice) -> Pairs:
        """Some of the pairs, by a mask, by their positions or by a range of positions."""
        return Pairs(
            self.event[which],
            self.subscription[which],
            self.way[which],
            self.doubt[which],
            self.binding[which],
        )

    def with_doubt(self, which: np.ndarray, doubt: int) -> Pairs:
        """The same pairs, of which some are undecided; `doubt` is what `Batch.doubt` gave for the reason."""
        return replace(self, doubt=np.where(which, np.int32(doubt), self.doubt))

    @property
    def key(self) -> np.ndarray:
        """The same number for pairs of the same event and subscription."""
        return self.event.astype(np.int64) << 32 | self.subscription

    @classmethod
    def concat(cls, parts: Sequence[Pairs]) -> Pairs:
        if len(parts) == 1:
            return parts[0]
        nothing = [np.zeros(0, dtype=dtype) for dtype in (np.int32, np.int32, np.int16, np.int32, np.int32)]
        return cls(*map(np.concatenate, zip(nothing, *(part.columns for part in parts), strict=True)))


class BindingSource(Protocol):
    """Bindings that one step of matching has found, numbered from 0."""

    def __len__(self) -> int: ...

    def terms(self, number: int) -> dict[str, Term]:
        """What every variable is bound to."""

    def texts(self, numbers: np.ndarray) -> pa.MapArray:
        """Variable -> plain text, for the variables that the subscription selects."""


class Bindings:
    """The bindings of a batch, from several sources, numbered through."""

    def __init__(self) -> None:
        self._sources: list[BindingSource] = []
        self._first = [0]

    def add(self, source: BindingSource) -> int:
        """Adds a source; the number of its first binding."""
        self._sources.append(source)
        self._first.append(self._first[-1] + len(source))
        return self._first[-2]

    def terms(self, number: int) -> dict[str, Term]:
        """What every variable of a binding is bound to."""
        source = int(np.searchsorted(self._first, number, side="right")) - 1
        return self._sources[source].terms(number - self._first[source])

    def split(self, numbers: np.ndarray) -> list[tuple[np.ndarray, BindingSource, np.ndarray]]:
        """For each source its positions in `numbers`, and its own numbers there."""
        if not self._sources:
            return []
        of = np.searchsorted(np.array(self._first), numbers, side="right") - 1
        positions = ((i, np.flatnonzero(of == i)) for i in range(len(self._sources)))
        return [
            (where, self._sources[i], numbers[where] - self._first[i]) for i, where in positions if len(where)
        ]
