"""A network at one moment, for walks: the wiring, the index of its expressions, and scratch arrays."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from tidings.kinds.filters.kernels.layout import ABSENT, AttributePairs, Lists
from tidings.kinds.networks.algorithm_choice import AlgorithmChoice
from tidings.kinds.networks.expressions import Expressions
from tidings.kinds.networks.index.filing import ExpressionIndex
from tidings.kinds.networks.index.names import NodeNames
from tidings.kinds.networks.index.tail import Tail
from tidings.kinds.networks.index.wiring import Wiring
from tidings.kinds.networks.kernels.batches import reset
from tidings.kinds.networks.kernels.cursor import Entered
from tidings.kinds.networks.kernels.layout import REGISTERS, Graph, Space


class NetworkSnapshot:
    def __init__(
        self,
        wiring: Wiring,
        expression_index: ExpressionIndex,
        tail: Tail,
        choice: AlgorithmChoice,
        names: NodeNames,
        expressions: Expressions,
    ) -> None:
        self.wiring, self.expression_index, self._tail, self.choice = wiring, expression_index, tail, choice
        self._names, self._expressions = names, expressions
        self.size = wiring.size
        self.walking: set[int] = set()
        self.filters = expression_index.index.index
        self._free: list[tuple[Space, Entered]] = []
        self.graph = Graph(
            wiring.first,
            wiring.child,
            wiring.head,
            wiring.link_next,
            wiring.link_child,
            wiring.kind,
            wiring.group,
            wiring.indexed,
            wiring.row_of,
        )

    @property
    def is_dag(self) -> bool:
        """Whether ids are in topological order, each a group of its own."""
        wiring = self.wiring
        return bool((wiring.group[: wiring.base] == np.arange(wiring.base)).all())

    @cached_property
    def has_costs(self) -> bool:
        """Whether a path may cost anything."""
        wiring = self.wiring
        costs = wiring.weight[: wiring.size], wiring.cost, wiring.link_cost[: wiring.links]
        return any(bool(column.any()) for column in costs)

    def name(self, number: int) -> str:
        return self._names[number]

    def where_text(self, entity: int) -> str | None:
        return self._expressions.text(int(self.wiring.where[entity]))

    def node_numbers(self, entities: np.ndarray) -> np.ndarray:
        """The numbers of the nodes among entities."""
        owners = self.wiring.owner[entities]
        return owners[owners >= 0]

    def accepting(self, event: Mapping[str, Any], entities: list[int]) -> list[int]:
        """The entities, among some that are newer than the index, that accept an event."""
        where = self.wiring.where[entities].tolist()
        return [
            entity
            for entity, accepts in zip(entities, self._tail.accepts(event, where), strict=True)
            if accepts
        ]

    # ------------------------------------------------------------------ walking

    def begin(
        self, source: int, pairs: AttributePairs, event: int, choose: bool, single_event: bool = True
    ) -> tuple[Space, Entered]:
        """Scratch for a walk of one event of a batch, or of those from that one on; whether it has to choose its way."""
        space, entered = self._free.pop() if self._free else self._make_scratch()
        self.walking.add(id(space))
        first = pairs.first
        most = int(first[event + 1] - first[event] if single_event else np.diff(first[event:]).max())
        lists = entered.lists
        if most * self.expression_index.depth >= len(lists.low):
            lists = _make_lists(2 * most * self.expression_index.depth + 1)
        entered = Entered(pairs, entered.slots, lists)
        reset(source, event, int(choose and self.choice.breadth_first()), space, entered)
        return space, entered

    def end(self, space: Space, entered: Entered) -> None:
        entered.slots.fill(ABSENT)
        space.marks.fill(0)
        self.walking.discard(id(space))
        self._free.append((space, entered))

    def _make_scratch(self) -> tuple[Space, Entered]:
        size, nothing = self.size, np.zeros(0, dtype=np.int32)
        space = Space(
            np.zeros(REGISTERS, dtype=np.int64),
            np.zeros(size, dtype=np.int32),
            np.empty(size, dtype=np.int32),
            np.empty(size, dtype=np.int32),
            np.zeros((size >> 6) + 1, dtype=np.uint64),
        )
        slots = np.full(len(self.filters.access.base), ABSENT, dtype=np.int32)
        return space, Entered(
            AttributePairs(np.zeros(1, dtype=np.int64), nothing, nothing), slots, _make_lists(64)
        )


def _make_lists(room: int) -> Lists:
    return Lists(*(np.empty(room, dtype=np.int64) for _ in Lists._fields))
