"""Chooses the faster of two algorithms by timing them on the events that are evaluated anyway.

An evaluation begins breadth-first, which is cheapest for a small one. A larger one either continues so or takes the
rest from the index, group by group (Figure 8); which of the two is faster depends on the caches as much as on the
network, so the seconds for each edge are measured. The other algorithms take at least as much from the index as
Figure 8 does, and are never chosen.
"""

from __future__ import annotations

from math import log

from tidings.kinds.networks.kernels.layout import SMALL

_ROUND = 16  # of so many larger evaluations, one uses the algorithm that is not preferred
# What was faster than expected counts for more: other work on the machine only ever makes an evaluation slower.
_FASTER, _SLOWER = 0.3, 0.1


class AlgorithmChoice:
    """known[1] is the logarithm of the seconds an edge takes breadth-first, known[0] by the index."""

    def __init__(self) -> None:
        self._known: list[float | None] = [None, None]
        self._round = 0

    def breadth_first(self) -> bool:
        """Whether the next evaluation should continue breadth-first when it is not a small one."""
        by_index, breadth_first_cost = self._known
        if by_index is None or breadth_first_cost is None:
            return breadth_first_cost is None
        return (breadth_first_cost <= by_index) != (self._round == 0)

    def learn(self, breadth_first: bool, looked: int, seconds: float) -> None:
        """Records the seconds for so many edges. One measurement of each algorithm counts in a round, because the
        minimum of more measurements would be lower."""
        if looked < 2 * SMALL or seconds <= 0:
            return
        cost, before = log(seconds / looked), self._known[breadth_first]
        if before is None:
            self._known[breadth_first] = cost
        elif self._round in (0, _ROUND // 2):
            self._known[breadth_first] = before + (_FASTER if cost < before else _SLOWER) * (cost - before)
        self._round = (self._round + 1) % _ROUND
