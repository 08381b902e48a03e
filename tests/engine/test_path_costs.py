"""A notification of a subscription in a network with costs has the cost of the cheapest valid path, by the definition."""

from __future__ import annotations

import random

import pytest

from tests.examples import seeds
from tests.kinds.networks.networks import random_event, random_twin
from tidings import Engine, Event, Network
from tidings.kinds.networks import naive
from tidings.kinds.networks.ranking import Ranking
from tidings.model.event import to_table
from tidings.model.notification import Notification


@pytest.mark.parametrize("seed", seeds(2, 6))
def test_costs_are_those_of_the_definition(seed: int) -> None:
    rng, compared = random.Random(seed), 0
    for _ in range(15):
        twin = random_twin(rng, rng.randrange(2, 10), 2.0, costly=True)
        engine = Engine(networks={"net": twin.network})
        for node in twin.nodes:
            engine.subscribe(node, f"WHERE x = 1 VIA net AT '{node}'")
        events = [
            Event(rng.choice(list(twin.nodes)), {**random_event(rng), "x": 1}, id=str(n)) for n in range(4)
        ]
        wanted = [
            naive.cheapest(twin.nodes, twin.edges, twin.costs, event.source, event.attributes)
            for event in events
        ]
        if not any(twin.costs.values()):
            continue
        for event, costs in zip(events, wanted, strict=True):
            found = engine.publish(event)
            assert {one.subscription: one.cost for one in found} == pytest.approx(costs)
            assert all(list(one.bindings) == ["net.cost"] for one in found)
            compared += len(found)
        together = Notification.from_table(engine.publish_many(to_table(events)))
        by_event: dict[str, dict[str | None, float | None]] = {event.id: {} for event in events}
        for one in together:
            by_event[one.event][one.subscription] = one.cost
        for event, costs in zip(events, wanted, strict=True):
            assert by_event[event.id] == pytest.approx(costs)
    assert compared > 20


def network(cost: float) -> Network:
    made = Network()
    made.add_node("p")
    made.add_node("cheap", "topic = 'a'", cost=cost)
    made.add_node("dear", cost=5 * cost)
    made.add_node("n", cost=cost / 2)
    for middle in ("cheap", "dear"):
        made.add_edge("p", middle)
        made.add_edge(middle, "n")
    return made


def test_the_cheapest_path_that_lets_the_event_through() -> None:
    engine = Engine(networks={"net": network(1.0)})
    engine.subscribe("s", "WHERE x = 1 VIA net AT 'n'")
    engine.subscribe("elsewhere", "WHERE x = 1")
    for topic, cost in (("a", 1.5), ("b", 5.5)):
        found = {one.subscription: one for one in engine.publish(Event("p", {"x": 1, "topic": topic}))}
        assert (found["s"].cost, found["s"].bindings) == (cost, {"net.cost": f"{cost:g}"})
        assert (found["elsewhere"].cost, found["elsewhere"].bindings) == (None, {})


def test_networks_without_costs_are_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(networks={"net": network(0.0)})
    engine.subscribe("s", "WHERE x = 1 VIA net AT 'n'")
    monkeypatch.setattr(Ranking, "__init__", lambda *_: pytest.fail("nothing is to be ranked"))
    (found,) = engine.publish(Event("p", {"x": 1, "topic": "a"}))
    assert (found.cost, found.bindings) == (None, {})
    engine.networks["net"].add_node("later", cost=1.0)
    monkeypatch.undo()
    (found,) = engine.publish(Event("p", {"x": 1, "topic": "a"}))
    assert found.cost == 0.0


def test_a_cost_stands_beside_bindings_and_makes_no_answer_of_its_own() -> None:
    turtle = b"<urn:e> <urn:topic> 'a' . <urn:e> <urn:topic> 'b' ."
    event = Event("p", data=turtle, datacontenttype="text/turtle", id="e")
    answers = {}
    for cost in (1.0, 0.0):
        engine = Engine(networks={"net": network(cost)})
        engine.subscribe("one", "SELECT ?t WHERE (?e, <urn:topic>, ?t) VIA net AT 'dear'")
        engine.subscribe("either", "WHERE (?e, <urn:topic>, 'a') OR (?e, <urn:topic>, 'b') VIA net AT 'dear'")
        found = engine.publish_many(to_table([event]), all_bindings=True)
        answers[cost] = list(Notification.from_table(found))
    costly, free = (
        sorted((one.subscription, one.bindings.get("t", "")) for one in answers[cost]) for cost in (1.0, 0.0)
    )
    assert costly == free
    assert [name for name, _ in costly].count("one") == 2
    assert {one.cost for one in answers[1.0]} == {5.0}
    assert {one.cost for one in answers[0.0]} == {None}
