"""Sorts the rows of a table by (join value, selection attribute): the B-trees of Select-joins, 3.1, as sorted arrays.

All rows of one join value are in one array, sorted by the order key of the selection attribute. Rows with a NULL in
their join value join nothing and are in none. Equal rows have an entry each.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from tidings.dissemination.schemes.message import Image, Longs
from tidings.dissemination.schemes.signature import Side


class JoinValueRows:
    """The rows of one join value, by rising order key."""

    __slots__ = ("_keys", "images")

    def __init__(self) -> None:
        self._keys = np.empty(4, dtype=np.int64)
        self.images: list[Image] = []

    @property
    def keys(self) -> Longs:
        return self._keys[: len(self.images)]

    def put(self, key: int, image: Image) -> None:
        count = len(self.images)
        if count == len(self._keys):
            self._keys = np.concatenate([self._keys, np.empty_like(self._keys)])
        index = int(self.keys.searchsorted(key, "right"))
        self._keys[index + 1 : count + 1] = self._keys[index:count].copy()
        self._keys[index] = key
        self.images.insert(index, image)

    def take(self, key: int, image: Image) -> None:
        """Takes one of the rows equal to this one away."""
        count = len(self.images)
        index = int(self.keys.searchsorted(key))
        while self.images[index].row != image.row:
            index += 1
        self._keys[index : count - 1] = self._keys[index + 1 : count].copy()
        del self.images[index]

    def around(self, key: int) -> tuple[int | None, int | None]:
        """a- and a+: the nearest keys at or below, and at or above."""
        keys = self.keys
        after, before = int(keys.searchsorted(key)), int(keys.searchsorted(key, "right")) - 1
        return (
            int(keys[before]) if before >= 0 else None,
            int(keys[after]) if after < len(keys) else None,
        )


EMPTY = JoinValueRows()


class OrderedRows:
    """The rows of one side of a join."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self._by_value: dict[Hashable, JoinValueRows] = {}

    @property
    def rows_a_value(self) -> float:
        """The mean number of rows of a join value, over the values that occur."""
        return sum(len(rows_of_value.images) for rows_of_value in self._by_value.values()) / max(
            1, len(self._by_value)
        )

    def at(self, image: Image) -> int:
        """The order key by which a row is sorted; if ranges select by no column, all rows are at 0."""
        return 0 if self.side.selection is None else image.keys[self.side.selection]

    def put(self, image: Image) -> None:
        if (value := self.value(image, self.side.join)) is not None:
            self._by_value.setdefault(value, JoinValueRows()).put(self.at(image), image)

    def take(self, image: Image) -> None:
        if (value := self.value(image, self.side.join)) is not None:
            rows_of_value = self._by_value[value]
            rows_of_value.take(self.at(image), image)
            if not rows_of_value.images:
                del self._by_value[value]

    def joining(self, image: Image, columns: tuple[int, ...]) -> JoinValueRows:
        """The rows that join a row of the other side, whose join columns are given."""
        value = self.value(image, columns)
        return EMPTY if value is None else self._by_value.get(value, EMPTY)

    @staticmethod
    def value(image: Image, columns: tuple[int, ...]) -> Hashable | None:
        """The join value of a row: None if a part of it is NULL."""
        values = tuple(image.row[column] for column in columns)
        return None if None in values else values
