"""A cache: a dictionary that computes missing values and is cleared when it is full."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_LONGEST = 200  # longer texts are rarely repeated


class BoundedCache(dict[str, T]):
    """`cache[text]` is `compute(text)`, kept for at most `most` texts."""

    def __init__(self, compute: Callable[[str], T], most: int) -> None:
        super().__init__()
        self._compute = compute
        self._most = most

    def __missing__(self, text: str) -> T:
        found = self._compute(text)
        if len(text) <= _LONGEST:
            if len(self) >= self._most:
                self.clear()
            self[text] = found
        return found
