"""Draws an Internet-like topology and measures how long a packet takes between any two nodes of the overlay.

Routers have positions, and new ones connect to two that are there, with a probability that grows with their numbers of links;
so numbers of links follow a power law, as in the topologies that Select-joins, 6, uses. A link's delay grows with its length.
Overlay nodes are at routers chosen at random; a packet between two of them takes the shortest path. All follows from the seed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tidings.dissemination.kernels import paths
from tidings.errors import TidingsError

LINKS = 2  # of a router that comes
_ACROSS = 40.0  # milliseconds from one side of the world to the other
_HOP = 0.5

Floats = npt.NDArray[np.float64]


class Topology:
    def __init__(self, routers: int, seed: int) -> None:
        if routers < 3:
            raise TidingsError(f"a topology of {routers} routers was asked for; give 3 or more")
        rng = np.random.default_rng(seed)
        ends = _attached(routers, rng)
        place = rng.random((routers, 2))
        delay = _HOP + _ACROSS * np.hypot(*(place[ends[:, 0]] - place[ends[:, 1]]).T)
        both = np.concatenate([ends, ends[:, ::-1]])
        order = np.argsort(both[:, 0], kind="stable")
        self._beside = both[order, 1].astype(np.int32)
        self._delay = np.concatenate([delay, delay])[order]
        self.links = np.bincount(both[:, 0], minlength=routers)
        self._first = np.concatenate([[0], np.cumsum(self.links)]).astype(np.int32)
        self._rng = rng

    def __len__(self) -> int:
        return len(self.links)

    def delays(self, router: int) -> Floats:
        """Milliseconds from a router to every router, on the shortest path."""
        found = np.empty(len(self))
        heap, key = np.empty(len(self._beside) + 1, np.int32), np.empty(len(self._beside) + 1)
        paths.shortest(self._first, self._beside, self._delay, router, heap, key, found)
        return found

    def overlay(self, nodes: int, progress: Callable[[int], None] = lambda done: None) -> Floats:
        """Milliseconds between all pairs of overlay nodes; several may be at one router, if there are more than routers."""
        at = self._rng.permutation(max(nodes, len(self)))[:nodes] % len(self)
        found = np.empty((nodes, nodes))
        for node, router in enumerate(at.tolist()):
            found[node] = self.delays(router)[at]
            progress(node + 1)
        return found


def _attached(routers: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """The links: a router's place in the list of all ends is drawn, so those with many links are drawn often."""
    ends = np.empty((3 + LINKS * (routers - 3), 2), np.int64)
    ends[:3] = [(0, 1), (1, 2), (2, 0)]
    flat, count = ends.reshape(-1), 3
    drawn = rng.random((routers, LINKS)).tolist()
    for router in range(3, routers):
        chosen = {int(flat[int(share * 2 * count)]) for share in drawn[router]}
        for other in chosen:
            ends[count] = router, other
            count += 1
    return ends[:count]
