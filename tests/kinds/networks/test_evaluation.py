"""Every algorithm gives what a plain graph search gives, result by result while it evaluates."""

from __future__ import annotations

import random

import pytest

from tests.examples import seeds
from tests.kinds.networks.networks import Twin, random_event, random_twin
from tidings.kinds.networks import naive
from tidings.kinds.networks.evaluation import ALGORITHMS

ANY_GRAPH = [name for name in ALGORITHMS if not name.startswith("dag")]


def check(twin: Twin, source: str, event: dict, algorithms: list[str]) -> None:
    expected = naive.reached(twin.nodes, twin.edges, source, event)
    for algorithm in algorithms:
        found = list(twin.network.evaluate(source, event, algorithm))
        assert len(found) == len(set(found)), algorithm
        assert set(found) == expected, (algorithm, source, event, twin.nodes, twin.edges)


@pytest.mark.parametrize("seed", seeds(3, 8))
def test_cyclic_networks(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(80):
        twin = random_twin(rng, rng.randrange(1, 14), rng.choice((0.7, 1.5, 2.5)))
        twin.network.rebuild()
        for _ in range(4):
            check(twin, rng.choice(list(twin.nodes)), random_event(rng), ANY_GRAPH)


@pytest.mark.parametrize("seed", seeds(2, 4))
def test_networks_without_cycles(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(80):
        twin = random_twin(rng, rng.randrange(1, 14), rng.choice((0.7, 1.5, 2.5)), acyclic=True)
        twin.network.rebuild()
        for _ in range(4):
            check(twin, rng.choice(list(twin.nodes)), random_event(rng), list(ALGORITHMS))
