"""A simulated network of events: every subscriber gets exactly what its subscription matches, over exactly the links that lead there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tidings.dissemination.network.can import SERVER
from tidings.dissemination.packet import Packet, event_of
from tidings.dissemination.simulator.event_network import COVERING, EVERY, FLOODING, NETWORKS, EventNetwork
from tidings.dissemination.simulator.event_workload import DrawnEvents, Events
from tidings.dissemination.simulator.networks import Tree
from tidings.dissemination.simulator.results import EventResult
from tidings.dissemination.simulator.runs import run
from tidings.dissemination.simulator.scenario import ScenarioError, scenario_of
from tidings.kinds.patterns import naive
from tidings.language.parser import parse
from tidings.language.query import Query
from tidings.model.event import Event
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import read_graph


def is_match(query: Query, event: Event) -> bool:
    """By the definition."""
    graph = naive.expand(read_graph(event.graph()), Taxonomy())
    return next(naive.solve(query.where, graph, Taxonomy(), event.attributes), None) is not None


class World:
    """All three networks, over equal trees, and the subscriptions that live."""

    def __init__(self, nodes: int, seed: int) -> None:
        self.trees = {kind: Tree(nodes, seed) for kind in NETWORKS}
        self.tree = self.trees[COVERING]
        self.received: dict[str, Counter[int]] = {kind: Counter() for kind in NETWORKS}
        self.networks = {
            kind: EventNetwork(kind, tree, deliver=self.deliver(kind)) for kind, tree in self.trees.items()
        }
        self.live: dict[int, tuple[int, Query]] = {}
        self.count = 0
        self.event = Event(id="0")
        drawn = DrawnEvents(Events(topics=2, patterns=0.5, payload=0, seed=seed))
        self.texts, self.events = drawn.texts(), drawn.events()

    def deliver(self, kind: str) -> Callable[[Packet, int], None]:
        def take(packet: Packet, number: int) -> None:
            assert event_of(packet) == self.event
            self.received[kind][number] += 1

        return take

    def change(self, places: list[int], gone: set[int]) -> None:
        """Subscriptions come, each at the node of a place, and others go; each number is one of those that live."""
        ended = {sorted(self.live)[place % len(self.live)] for place in gone} if self.live else set()
        texts = islice(self.texts, len(places))
        come = {
            self.count + at: (self.tree.nodes[place % len(self.tree.nodes)], text)
            for at, (place, text) in enumerate(zip(places, texts, strict=True))
        }
        self.count += len(come)
        self.live = {number: found for number, found in self.live.items() if number not in ended}
        self.live |= {number: (node, parse(text)) for number, (node, text) in come.items()}
        for network in self.networks.values():
            network.update(come, ended)

    def churn(self, place: int) -> None:
        if others := [node for node in self.tree.nodes if node != SERVER]:
            left = others[place % len(others)]
            above = self.tree.parents[left]
            self.live = {
                number: (above if node == left else node, query)
                for number, (node, query) in self.live.items()
            }
            for network in self.networks.values():
                network.leave(left)
        assert len({network.join() for network in self.networks.values()}) == 1

    def publish(self) -> None:
        self.event = next(self.events)
        wanting = {number: node for number, (node, query) in self.live.items() if is_match(query, self.event)}
        visited = set()
        for node in wanting.values():
            while node in self.tree.parents:
                visited.add(node)
                node = self.tree.parents[node]
        for kind, network in self.networks.items():
            before = network.totals.hops
            self.received[kind].clear()
            network.publish(self.event)
            assert self.received[kind] == Counter(wanting.keys()), kind
            # Each node that leads to a subscriber is visited once: a link carries an event at most once.
            expected = len(self.tree.parents) if kind == FLOODING else len(visited)
            assert network.totals.hops - before == expected, kind


PLACES = st.integers(0, 1_000)
STEPS = st.one_of(
    st.tuples(st.lists(PLACES, max_size=8), st.sets(PLACES, max_size=8)), PLACES, st.just("publish")
)


@examples(10)
@given(st.integers(1, 12), PLACES, st.lists(STEPS, min_size=1, max_size=15))
def test_subscribers_get_what_they_match(nodes: int, seed: int, steps: list[object]) -> None:
    world = World(nodes, seed)
    world.change(list(range(10)), set())
    for step in (*steps, "publish"):
        if isinstance(step, tuple):
            world.change(*step)
        elif isinstance(step, int):
            world.churn(step)
        world.publish()
        every, covering = (world.networks[kind].filters() for kind in (EVERY, COVERING))
        assert all(few <= many for few, many in zip(covering, every, strict=True))
    for network in world.networks.values():
        network.update({}, world.live)
        assert [len(table) for table in network.tables.values()] == [0] * len(world.tree.nodes)


def test_a_scenario_of_events() -> None:
    content = {
        "network": {"kind": "tree", "nodes": 8, "routers": 30},
        "events": {"subscriptions": 60, "topics": 5, "events": 10, "payload": 100},
    }
    found = {one.scheme: one for one in run(scenario_of(content)) if isinstance(one, EventResult)}
    flooding, every, covering = (found[kind] for kind in NETWORKS)
    assert flooding.traffic > every.traffic == covering.traffic > 0
    assert flooding.filters == 0 < covering.filters < every.filters
    assert covering.largest < every.largest
    assert 0 < covering.registrations < every.registrations
    assert covering.latency_ms == every.latency_ms > 0
    content["network"]["churn"] = 2
    churned = {one.scheme: one for one in run(scenario_of(content)) if isinstance(one, EventResult)}
    assert churned[COVERING].traffic == churned[EVERY].traffic > 0
    assert churned[COVERING].traffic != covering.traffic
    swept = scenario_of({**content, "sweep": {"events.topics": [1, 2]}}).runs()
    assert [one.events.topics for _, one in swept if one.events] == [1, 2]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"network": {}}, "'network.kind' is 'can'; events need the kind \"tree\""),
        ({"schemes": ["Ref-J"]}, r"'schemes' is for joins; leave it out where there are \[events\]"),
        ({"workload": {}}, "'workload' is for joins"),
        ({"caches": {}}, "'caches' is for joins"),
        ({"loss": {"packet": 0.1}}, "'loss' is for joins"),
        ({"events": {"subscriptions": 0}}, "'events.subscriptions' is 0; it needs a number from 1"),
        ({"events": {"patterns": 2}}, "'events.patterns' is 2; it needs a number from 0 to 1"),
    ],
)
def test_mistakes(content: dict[str, object], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        scenario_of({"network": {"kind": "tree"}, "events": {}, **content})


def test_a_sweep_of_events_needs_a_tree() -> None:
    with pytest.raises(ScenarioError, match="events need the kind"):
        scenario_of({"sweep": {"events.topics": [5]}}).runs()
