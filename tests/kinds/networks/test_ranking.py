"""The cheapest nodes first, each at the cost of its best valid way."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from tests.examples import seeds
from tests.kinds.networks.networks import random_event, random_twin
from tests.kinds.networks.test_updates import change
from tidings import Network
from tidings.kinds.networks import naive


@pytest.mark.parametrize("seed", seeds(3, 6))
def test_costs_are_those_of_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        twin = random_twin(rng, rng.randrange(1, 12), rng.choice((0.7, 1.5, 2.5)), costly=True)
        if rng.random() < 0.8:
            twin.network.rebuild()
        for _ in range(rng.randrange(3)):
            change(twin, rng)
        if not twin.nodes:
            continue
        source, event = rng.choice(list(twin.nodes)), random_event(rng)
        expected = naive.cheapest(twin.nodes, twin.edges, twin.costs, source, event)
        found = list(twin.network.top(source, event))
        assert dict(found) == expected
        assert len(found) == len(expected)
        assert [cost for _, cost in found] == sorted(expected.values())
        assert list(twin.network.top(source, event, 2)) == found[:2]


def test_only_what_is_asked_for_is_settled() -> None:
    """Of two thousand nodes in a row, the first three."""
    network = Network()
    network.add_node("n0")
    for i in range(1, 2000):
        network.add_node(f"n{i}", cost=1)
        network.add_edge(f"n{i - 1}", f"n{i}")
    ranking = network.top("n0", {})
    assert list(islice(ranking, 3)) == [("n1", 1.0), ("n2", 2.0), ("n3", 3.0)]
