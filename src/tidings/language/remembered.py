"""A cache: a dictionary that computes missing values and is cleared when it is full."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_LONGEST = 200  # longer texts hardly come twice


class Remembered(dict[str, T]):
    """`remembered[text]` is `work_out(text)`."""

    def __init__(self, work_out: Callable[[str], T], most: int) -> None:
        super().__init__()
        self._work_out = work_out
        self._most = most

    def __missing__(self, text: str) -> T:
        found = self._work_out(text)
        if len(text) <= _LONGEST:
            if len(self) >= self._most:
                self.clear()
            self[text] = found
        return found
