"""A growing column, whose values compiled loops can read at any time without a copy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


class Growing:
    """Values of one type; new ones are appended. `all` is valid until the next append."""

    def __init__(self, dtype: Any, values: Iterable[Any] = ()) -> None:
        self._room = np.array(values if isinstance(values, np.ndarray) else list(values), dtype=dtype)
        self._size = len(self._room)

    def __len__(self) -> int:
        return self._size

    @property
    def all(self) -> np.ndarray:
        return self._room[: self._size]

    def append(self, value: Any) -> None:
        self.extend((value,))

    def extend(self, values: Any) -> None:
        end = self._size + len(values)
        if end > len(self._room):
            room = np.empty(max(end, 2 * self._size, 16), dtype=self._room.dtype)
            room[: self._size] = self._room[: self._size]
            self._room = room
        self._room[self._size : end] = values
        self._size = end

    def shorten(self, size: int) -> None:
        """Drops all but the first `size`."""
        self._size = min(size, self._size)
