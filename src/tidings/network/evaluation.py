"""One event on its way through a network: results one after the other, while it is evaluated.

The compiled loops (kernels/walks.py) are left and entered again: for the first result, then for ever more at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.network.faults import NetworkError
from tidings.network.kernels import walks
from tidings.network.kernels.layout import (
    ALLOWED,
    ASKING,
    ASKS,
    AT_ONCE,
    DONE,
    EPOCH,
    FOLLOWED,
    FOUND,
    LOOKED,
    REGISTERS,
    RETRIEVED,
    SKIP,
    SOURCE,
    STEP,
    VERIFIED,
    Space,
)

if TYPE_CHECKING:
    from tidings.network.snapshot import Snapshot

ALGORITHMS: dict[str, Callable[..., int]] = {
    "auto": walks.adaptive,
    "dag": walks.dag,
    "dag-skip": walks.dag_skipping,
    "general": walks.general,
    "scc-skip": walks.general_skipping,
    "bfs": walks.breadth_first,
    "index": walks.index_first,
}
_LAST_EPOCH = 1 << 30
_MORE = 8  # times as many results in the next portion


class Evaluation(Iterator[str]):
    """The names of the nodes that an event reaches. `retrieved` counts what the index gave, `verified` the expressions
    that were run without it, `looked` the edges."""

    def __init__(self, snapshot: Snapshot, source: int, event: Any, algorithm: str) -> None:
        self._status = DONE  # until it has begun
        if algorithm not in ALGORITHMS:
            raise NetworkError(f"there is no algorithm {algorithm!r}; give one of {', '.join(ALGORITHMS)}")
        if algorithm.startswith("dag") and not snapshot.is_dag:
            raise NetworkError(
                f"the algorithm {algorithm!r} needs a network without cycles whose ids are in order; take 'auto'"
            )
        self.algorithm = algorithm
        self._walk = ALGORITHMS[algorithm]
        self._snapshot, self._event = snapshot, event
        self._space = snapshot.take_space(source)
        self._slots = snapshot.enter(event, self._space)
        self._given = 0
        self._status = -1
        self._ready: Iterator[int] = iter(())
        self.retrieved = self.verified = self.looked = 0

    def __del__(self) -> None:
        if self._status != DONE:
            self._snapshot.give_back(self._space)

    def __next__(self) -> str:
        for number in self._ready:
            return self._snapshot.name(number)
        limit = 1
        while self._status != DONE:
            numbers = self._advance(limit)
            limit = max(_MORE * limit, _MORE * self._given)
            if len(numbers):
                self._ready = iter(numbers.tolist())
                return self.__next__()
        raise StopIteration

    def numbers(self) -> np.ndarray:
        """The numbers of all nodes that are left to give."""
        pieces = [np.fromiter(self._ready, dtype=np.int32)]
        while self._status != DONE:
            pieces.append(self._advance(self._snapshot.size))
        return np.concatenate(pieces)

    def _advance(self, more: int) -> np.ndarray:
        """Goes on until there are some more results; the numbers of those that are nodes."""
        snapshot, space = self._snapshot, self._space
        registers = space.registers
        limit = self._given + more
        while True:
            self._status = self._walk(limit, snapshot.graph, snapshot.filters, self._slots, space)
            if self._status != ASKING:
                break
            for entity in space.asked[: registers[ASKS]].tolist():
                if snapshot.asks(entity, self._event):
                    space.found[registers[FOUND]] = entity
                    registers[FOUND] += 1
            registers[ASKS] = 0
        found = space.found[self._given : registers[FOUND]]
        self._given = int(registers[FOUND])
        self.retrieved, self.verified, self.looked = registers[[RETRIEVED, VERIFIED, LOOKED]].tolist()
        if self._status == DONE:
            snapshot.give_back(space)
        return snapshot.node_numbers(found)


def make_space(size: int) -> Space:
    return Space(
        np.zeros(REGISTERS, dtype=np.int64),
        np.zeros(size, dtype=np.int32),
        np.empty(size, dtype=np.int32),
        np.empty(size, dtype=np.int32),
        np.zeros((size >> 6) + 1, dtype=np.uint64),
    )


def begin(space: Space, source: int, skip: int, allowed: int) -> None:
    """A space for another evaluation."""
    registers = space.registers
    epoch = int(registers[EPOCH]) + STEP
    if epoch >= _LAST_EPOCH:
        space.state.fill(0)
        epoch = STEP
    registers.fill(0)
    space.marks.fill(0)
    registers[EPOCH], registers[SOURCE], registers[SKIP], registers[ALLOWED] = epoch, source, skip, allowed
    registers[FOLLOWED], registers[AT_ONCE] = -1, 1
