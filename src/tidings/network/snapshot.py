"""A network at one moment, as evaluations see it: the wiring, the index of its expressions, and scratch for walks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tidings.filters.naive import matches
from tidings.network.expressions import Expressions
from tidings.network.kernels.layout import (
    ALLOWED,
    AT_ONCE,
    EPOCH,
    FOLLOWED,
    REGISTERS,
    SKIP,
    SOURCE,
    STEP,
    Graph,
    Space,
)
from tidings.network.names import Names
from tidings.network.wiring import Wiring

_LAST_EPOCH = 1 << 30


class Snapshot:
    def __init__(self, wiring: Wiring, names: Names, expressions: Expressions) -> None:
        self.wiring, self._names, self._expressions = wiring, names, expressions
        self.size = wiring.size
        self.readers = 0
        self.filters = 0
        self._spaces: list[Space] = []
        row_of = np.zeros(wiring.base + 1, dtype=np.int32)
        row_of[wiring.indexed + 1] = 1
        np.cumsum(row_of, out=row_of)
        self.graph = Graph(
            wiring.first,
            wiring.child,
            wiring.head,
            wiring.link_next,
            wiring.link_child,
            wiring.kind,
            wiring.group,
            wiring.indexed,
            row_of,
        )
        self._where = wiring.indexed_where.tolist()

    @property
    def is_dag(self) -> bool:
        """Whether ids are in topological order, each a group of its own."""
        wiring = self.wiring
        return bool((wiring.group[: wiring.base] == np.arange(wiring.base)).all())

    def name(self, number: int) -> str:
        return self._names[number]

    def where_text(self, entity: int) -> str | None:
        return self._expressions.text(int(self.wiring.where[entity]))

    def node_numbers(self, entities: np.ndarray) -> np.ndarray:
        """The numbers of the nodes among entities."""
        owners = self.wiring.owner[entities]
        return owners[owners >= 0]

    def asks(self, entity: int, event: Mapping[str, Any]) -> bool:
        """Whether an entity that is newer than the index accepts an event."""
        condition = self._expressions.condition(int(self.wiring.where[entity]))
        return condition is None or matches(condition, event)

    def enter(self, event: Mapping[str, Any], space: Space) -> Any:
        c = self._expressions.condition
        return np.array([matches(c(w), event) for w in self._where], dtype=np.uint8)

    def take_space(self, source: int) -> Space:
        space = self._spaces.pop() if self._spaces else _make_space(self.size)
        _begin(space, source, 0, self.allowed)
        self.readers += 1
        return space

    allowed = 5

    def give_back(self, space: Space) -> None:
        self.readers -= 1
        self._spaces.append(space)


def _make_space(size: int) -> Space:
    return Space(
        np.zeros(REGISTERS, dtype=np.int64),
        np.zeros(size, dtype=np.int32),
        np.empty(size, dtype=np.int32),
        np.empty(size, dtype=np.int32),
        np.zeros((size >> 6) + 1, dtype=np.uint64),
    )


def _begin(space: Space, source: int, skip: int, allowed: int) -> None:
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
