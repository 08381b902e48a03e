"""A path is valid and leads there; a frontier is exactly what has to give way."""

from __future__ import annotations

import random

import pytest

from tests.examples import seeds
from tests.kinds.networks.networks import condition, random_event, random_twin
from tests.kinds.networks.test_updates import change
from tidings import Network
from tidings.kinds.networks import naive


def ways(edges: list[tuple[str, str]], source: str, node: str) -> bool:
    """Whether edges lead from one to the other."""
    met, stack = {source}, [source]
    while stack:
        here = stack.pop()
        for a, b in edges:
            if a == here and b == node:
                return True
            if a == here and b not in met:
                met.add(b)
                stack.append(b)
    return False


@pytest.mark.parametrize("seed", seeds(3, 6))
def test_paths_and_frontiers(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        twin = random_twin(rng, rng.randrange(2, 10), rng.choice((0.7, 1.5, 2.5)))
        twin.network.rebuild()
        for _ in range(rng.randrange(3)):
            change(twin, rng)
        if not twin.nodes:
            continue
        source, node, event = rng.choice(list(twin.nodes)), rng.choice(list(twin.nodes)), random_event(rng)
        path = twin.network.path(source, event, node)
        cuts = twin.network.frontier(source, event, node)
        if node in naive.reached(twin.nodes, twin.edges, source, event):
            assert path is not None
            assert cuts == []
            here = source
            for step in path:
                assert condition(step.edge_where) == twin.edges[here, step.node]
                assert condition(step.node_where) == twin.nodes[step.node]
                assert naive.accepts(twin.edges[here, step.node], event)
                assert naive.accepts(twin.nodes[step.node], event)
                here = step.node
            assert here == node
            continue
        assert path is None
        for cut in cuts:
            asked = twin.nodes[cut.place] if isinstance(cut.place, str) else twin.edges[cut.place]
            assert asked == condition(cut.where)
            assert not naive.accepts(asked, event)
        stopped = {cut.place for cut in cuts}
        # Without what was cut nothing leads there any more, and with less there is still a way.
        left = [e for e in twin.edges if e not in stopped and e[1] not in stopped]
        assert not ways(left, source, node)
        assert bool(cuts) == ways(list(twin.edges), source, node)


def test_the_voice_of_explain() -> None:
    network = Network()
    for name, where in (("pub", None), ("net", "age > 30"), ("adv", "topic = 'sports'"), ("far", None)):
        network.add_node(name, where)
    network.add_edge("pub", "net")
    network.add_edge("net", "adv", "geo IN ('CA', 'NY')")
    event = {"age": 35, "topic": "sports", "geo": "CA"}
    path = network.path("pub", event, "adv")
    assert path is not None
    assert [(s.node, s.edge_where, s.node_where) for s in path] == [
        ("net", None, "age > 30"),
        ("adv", "geo IN ('CA', 'NY')", "topic = 'sports'"),
    ]
    cut = network.frontier("pub", {**event, "geo": "TX"}, "adv")
    assert [(c.place, c.where) for c in cut] == [(("net", "adv"), "geo IN ('CA', 'NY')")]
    assert [c.place for c in network.frontier("pub", {**event, "age": 20}, "adv")] == ["net"]
    assert network.frontier("pub", event, "far") == []
