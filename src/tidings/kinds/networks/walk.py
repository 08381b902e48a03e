"""Walks an event through a snapshot of a network, by a compiled loop that can be left and entered again.

The loop stops when it has found enough results, and when it has reached entities that are newer than the index: those
are evaluated here, and the loop continues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np

from tidings.kinds.filters.kernels.layout import AttributePairs
from tidings.kinds.networks.kernels.layout import (
    ASKING,
    ASKS,
    AT_ONCE,
    DONE,
    FOUND,
    LOOKED,
    RETRIEVED,
    VERIFIED,
    Space,
)
from tidings.kinds.networks.kernels.walks import adaptive
from tidings.kinds.networks.snapshot import NetworkSnapshot

Loop = Callable[..., int]
Accept = Callable[[int, Space], None]


def append(entity: int, space: Space) -> None:
    """Records an entity as a result."""
    space.found[space.registers[FOUND]] = entity
    space.registers[FOUND] += 1


class Walk:
    """`retrieved` counts what the index gave, `verified` the expressions that were run without it, `looked` the edges."""

    def __init__(
        self,
        snapshot: NetworkSnapshot,
        source: int,
        event: Mapping[str, Any],
        loop: Loop,
        *more: Any,
        accept: Accept = append,
        read: tuple[AttributePairs, int] | None = None,
    ) -> None:
        """`read` is the event as the snapshot's index knows it, one of a batch, if it was read already."""
        self.done = True  # until it has begun
        self.retrieved = self.verified = self.looked = self._given = 0
        self._seconds = 0.0
        self.snapshot, self._event, self._loop, self._more, self._accept = snapshot, event, loop, more, accept
        pairs, row = read or (snapshot.expression_index.read([event]), 0)
        self._space, self._entered = snapshot.begin(source, pairs, row, loop is adaptive)
        self.done = False

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Ends it; a network that is changed while a walk is under way keeps two states."""
        if not self.done:
            self.done = True
            self.snapshot.end(self._space, self._entered)

    def advance(self, more: int) -> np.ndarray:
        """Continues until at least `more` further results are found, or to the end; the entities found."""
        snapshot, space = self.snapshot, self._space
        if self.done:
            return space.found[:0]
        registers, begun = space.registers, perf_counter()
        while True:
            status = self._loop(
                self._given + more, snapshot.graph, snapshot.filters, self._entered, space, *self._more
            )
            if status != ASKING:
                break
            asked = space.asked[: registers[ASKS]].tolist()
            for entity in snapshot.accepting(self._event, asked):
                self._accept(entity, space)
            registers[ASKS] = 0
        found = space.found[self._given : registers[FOUND]].copy()
        self._given = int(registers[FOUND])
        self.retrieved, self.verified, self.looked = registers[[RETRIEVED, VERIFIED, LOOKED]].tolist()
        self._seconds += perf_counter() - begun
        if status == DONE:
            if self._loop is adaptive:
                snapshot.choice.learn(bool(registers[AT_ONCE]), self.looked, self._seconds)
            self.close()
        return found
