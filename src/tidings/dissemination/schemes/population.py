"""A population: the subscriptions of one signature and one decomposition, by number, with their ranges on each table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidings.arrays.growing import Growing
from tidings.dissemination.schemes.message import Longs
from tidings.dissemination.schemes.pair_index import Flags
from tidings.dissemination.schemes.signature import Semijoin, Signature


class Population:
    def __init__(self, signature: Signature, semijoins: tuple[Semijoin, ...]) -> None:
        self.signature = signature
        self.semijoins = semijoins
        self._numbers = Growing(np.int64)
        self._low = [Growing(np.int64) for _ in signature.tables]
        self._high = [Growing(np.int64) for _ in signature.tables]

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, numbers: Longs, ranges: Sequence[tuple[Longs, Longs]]) -> None:
        """Low and high ends for each table of the signature."""
        self._numbers.extend(numbers)
        for low, high, ends in zip(self._low, self._high, ranges, strict=True):
            low.extend(ends[0])
            high.extend(ends[1])

    @property
    def numbers(self) -> Longs:
        return self._numbers.all

    def low(self, table: int) -> Longs:
        """Low ends of the ranges on a table of the signature."""
        return self._low[table].all

    def high(self, table: int) -> Longs:
        return self._high[table].all

    def among(self, numbers: Longs) -> Flags:
        """A flag for each number: whether it belongs to this population."""
        indexes = np.minimum(self.numbers.searchsorted(numbers), len(self) - 1)
        return self.numbers[indexes] == numbers

    def ranges(self, number: int) -> tuple[tuple[int, int], ...] | None:
        """The ranges of one subscription; None if it is not of this population."""
        index = int(self.numbers.searchsorted(number))
        if index == len(self) or self.numbers[index] != number:
            return None
        return tuple(
            (int(low.all[index]), int(high.all[index]))
            for low, high in zip(self._low, self._high, strict=True)
        )
