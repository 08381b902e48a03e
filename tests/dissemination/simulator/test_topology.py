"""The topology: numbers of links follow a power law, delays are those of shortest paths."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from tidings.dissemination.simulator.topology import Topology
from tidings.errors import TidingsError


def shortest(topology: Topology, start: int) -> list[float]:
    """Dijkstra's algorithm over Python's heap."""
    far = [float("inf")] * len(topology)
    far[start], heap = 0.0, [(0.0, start)]
    while heap:
        distance, router = heapq.heappop(heap)
        if distance > far[router]:
            continue
        for at in range(topology._first[router], topology._first[router + 1]):
            other, there = int(topology._beside[at]), distance + float(topology._delay[at])
            if there < far[other]:
                far[other] = there
                heapq.heappush(heap, (there, other))
    return far


@pytest.mark.parametrize("seed", range(5))
def test_delays_are_those_of_shortest_paths(seed: int) -> None:
    topology = Topology(80, seed)
    for start in (0, 17, 79):
        assert topology.delays(start) == pytest.approx(shortest(topology, start))
    between = topology.overlay(10)
    assert between == pytest.approx(between.T)
    assert (np.diag(between) == 0).all()


def test_few_routers_have_many_links() -> None:
    topology = Topology(20_000, 1)
    links = np.sort(topology.links)[::-1]
    assert links[-1] >= 1
    assert links.mean() < 4.1
    assert links[0] > 100
    # On double logarithmic axes the share of routers with at least k links falls as a line, by about k ** -2.
    at_least = [(topology.links >= k).mean() for k in (4, 8, 16, 32)]
    slopes = np.diff(np.log(at_least)) / np.log(2)
    assert (slopes < -1.4).all()
    assert (slopes > -2.6).all()


def test_too_few_routers() -> None:
    with pytest.raises(TidingsError, match="a topology of 2 routers"):
        Topology(2, 1)
