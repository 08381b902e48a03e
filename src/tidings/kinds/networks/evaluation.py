"""Evaluates an event: iterates over the nodes that it reaches, by one of the paper's algorithms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tidings.kinds.networks.faults import NetworkError
from tidings.kinds.networks.kernels import walks
from tidings.kinds.networks.snapshot import NetworkSnapshot
from tidings.kinds.networks.walk import Walk

ALGORITHMS: dict[str, Callable[..., int]] = {
    "auto": walks.adaptive,
    "dag": walks.dag,
    "dag-skip": walks.dag_skipping,
    "general": walks.general,
    "scc-skip": walks.general_skipping,
    "bfs": walks.breadth_first,
    "index": walks.index_first,
}
_MORE = 8  # times as many results in the next portion


class Evaluation(Iterator[str]):
    """An iterator of names, in the order of their finding. `retrieved` counts what the index gave, `verified` the
    expressions that were run without it, `looked` the edges: so far."""

    def __init__(self, snapshot: NetworkSnapshot, source: int, event: Any, algorithm: str) -> None:
        if algorithm not in ALGORITHMS:
            raise NetworkError(f"there is no algorithm {algorithm!r}; give one of {', '.join(ALGORITHMS)}")
        if algorithm.startswith("dag") and not snapshot.is_dag:
            raise NetworkError(
                f"the algorithm {algorithm!r} needs a network without cycles whose ids are in order; take 'auto'"
            )
        self.algorithm = algorithm
        self._walk = Walk(snapshot, source, event, ALGORITHMS[algorithm])
        self._portion = 1
        self._ready: Iterator[int] = iter(())

    def __next__(self) -> str:
        while True:
            for number in self._ready:
                return self._walk.snapshot.name(number)
            if self._walk.done:
                raise StopIteration
            self._ready = iter(self._next_numbers(self._portion).tolist())
            self._portion *= _MORE

    def numbers(self) -> np.ndarray:
        """The numbers of all remaining nodes; `Network.name` gives their names."""
        return np.concatenate(
            [np.fromiter(self._ready, dtype=np.int32), self._next_numbers(self._walk.snapshot.size)]
        )

    def close(self) -> None:
        self._walk.close()

    @property
    def retrieved(self) -> int:
        return self._walk.retrieved

    @property
    def verified(self) -> int:
        return self._walk.verified

    @property
    def looked(self) -> int:
        return self._walk.looked

    def _next_numbers(self, more: int) -> np.ndarray:
        return self._walk.snapshot.node_numbers(self._walk.advance(more))
