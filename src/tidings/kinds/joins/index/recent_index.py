"""The index of the newest subscriptions: a plain list that is scanned, so that adding one only appends a few numbers."""

from __future__ import annotations

import numpy as np

from tidings.kinds.joins.index.index import JoinIndex
from tidings.kinds.joins.index.subscriptions import Subscriptions
from tidings.kinds.joins.kernels.layout import NONE
from tidings.kinds.joins.schema.order_keys import HIGHEST, LOWEST


class RecentIndex:
    """`index` covers `numbers`, in the order in which they came."""

    def __init__(self, subscriptions: Subscriptions, numbers: list[int]) -> None:
        self.numbers = numbers
        self._subscriptions, self._room = subscriptions, max(32, len(numbers))
        every = np.array(numbers, dtype=np.int64)
        self.index = JoinIndex.build(subscriptions, every, few=len(numbers) + 1, room=self._room)
        # The loops read the arrays that are written here, through views that are read-only.
        self._written = {
            name: self.index.arrays[name].copy() for name in ("sides", "c_low", "c_high", "a", "number")
        }
        for name, array in self._written.items():
            seen = array.view()
            seen.setflags(write=False)
            self.index.arrays[name] = seen
        sides = self._written["sides"]
        self._last = sides["loose"] + sides["loose_count"] + self._room

    def add(self, number: int) -> bool:
        """Adds a subscription; False if there is no room for it."""
        subscriptions, written = self._subscriptions, self._written
        shape = subscriptions.shapes[subscriptions.shape_of.all[number]]
        indexed_sides = self.index.indexed_sides.get(shape, ())
        sides = written["sides"]
        if not indexed_sides or any(
            sides[indexed.side]["loose"] + sides[indexed.side]["loose_count"] >= self._last[indexed.side]
            for indexed in indexed_sides
        ):
            return False
        self.numbers.append(number)
        bounds = subscriptions.bounds_of(np.array([number]), len(shape.selections))[0]
        if (bounds["low"] > bounds["high"]).any():
            return True
        signed = number if bounds["plain"].all() else ~number
        for side, c, a in indexed_sides:
            at = sides[side]["loose"] + sides[side]["loose_count"]
            written["c_low"][at], written["c_high"][at] = _ends(bounds, c)
            written["a"][at] = _ends(bounds, a)
            written["number"][at] = signed
            sides[side]["loose_count"] += 1
        return True


def _ends(bounds: np.ndarray, selection: int) -> tuple[int, int]:
    return (
        (LOWEST, HIGHEST)
        if selection == NONE
        else (int(bounds[selection]["low"]), int(bounds[selection]["high"]))
    )
