"""While nodes, edges and expressions come and go, every answer is right at every moment."""

from __future__ import annotations

import random

import pytest

from tests.network.networks import Twin, random_event, random_text, random_twin
from tidings.network import naive

ALGORITHMS = ("auto", "general", "scc-skip", "bfs", "index")


def change(twin: Twin, rng: random.Random) -> None:
    """One random change; edges against the order of ids and into publishers among them."""
    nodes, edges = list(twin.nodes), list(twin.edges)
    where = random_text(rng) if rng.random() < 0.5 else None
    kind = rng.random()
    if kind < 0.45 and nodes:
        edge = rng.choice(nodes), rng.choice(nodes)
        if edge not in twin.edges:
            twin.add_edge(*edge, where)
    elif kind < 0.6:
        name = f"n{rng.randrange(2 * len(nodes) + 2)}"
        if name not in twin.nodes:
            twin.add_node(name, where)
    elif kind < 0.67 and nodes:
        twin.remove_node(rng.choice(nodes))
    elif kind < 0.8 and edges:
        twin.remove_edge(*rng.choice(edges))
    elif kind < 0.9 and nodes:
        twin.set_where(rng.choice(nodes), where)
    elif edges:
        twin.set_where(rng.choice(edges), where)


def check(twin: Twin, rng: random.Random) -> None:
    if not twin.nodes:
        return
    source, event = rng.choice(list(twin.nodes)), random_event(rng)
    expected = naive.reached(twin.nodes, twin.edges, source, event)
    for algorithm in ALGORITHMS:
        found = list(twin.network.evaluate(source, event, algorithm))
        assert len(found) == len(set(found)), algorithm
        assert set(found) == expected, (algorithm, source, event, twin.nodes, twin.edges)


@pytest.mark.parametrize("seed", range(10))
def test_random_interleavings(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(12):
        twin = random_twin(rng, rng.randrange(1, 14), rng.choice((0.5, 1.0, 2.0)))
        twin.network.rebuild()
        for _ in range(25):
            change(twin, rng)
            check(twin, rng)
            if rng.random() < 0.03:
                twin.network.rebuild()
        assert dict(twin.network.nodes()).keys() == twin.nodes.keys()
        assert {(a, b) for a, b, _ in twin.network.edges()} == twin.edges.keys()
