"""Finds the nodes that an event reaches at the least cost, cheapest first, as many as are requested.

The cost of a path is the sum over its edges and nodes after the publisher. For a score that falls along the path,
a product of factors from 0 to 1, give -log(factor) as the cost: the cheapest way is the one of the highest score.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from tidings.kinds.networks.kernels.costs import Costs, cheapest, push
from tidings.kinds.networks.kernels.layout import Space
from tidings.kinds.networks.snapshot import NetworkSnapshot
from tidings.kinds.networks.walk import Walk


class Ranking(Iterator[tuple[str, float]]):
    """An iterator of names and costs."""

    def __init__(self, snapshot: NetworkSnapshot, source: int, event: Any) -> None:
        size, wiring = snapshot.size, snapshot.wiring
        self._costs = Costs(
            wiring.cost,
            wiring.link_cost,
            wiring.weight,
            np.empty(size),
            np.empty(size, dtype=np.int32),
            np.empty(size, dtype=np.int32),
        )
        self._walk = Walk(snapshot, source, event, cheapest, self._costs, accept=self._accept)

    def __next__(self) -> tuple[str, float]:
        snapshot = self._walk.snapshot
        while len(settled := self._walk.advance(1)):
            owner, cost = int(snapshot.wiring.owner[settled[0]]), float(self._costs.best[settled[0]])
            if owner >= 0:
                return snapshot.name(owner), cost
        raise StopIteration

    def until(self, wanted: Collection[str]) -> dict[str, float]:
        """The costs of those of these nodes that are reached. It ends with the last of them."""
        found: dict[str, float] = {}
        for name, cost in self:
            if name in wanted:
                found[name] = cost
                if len(found) == len(wanted):
                    break
        self._walk.close()
        return found

    def _accept(self, entity: int, space: Space) -> None:
        push(entity, self._costs, space)
