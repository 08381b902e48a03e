"""Subscriptions with a place in a network: told of what gets there, whichever way it was published."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tidings import Engine, Event, Network
from tidings.errors import SubscriptionError
from tidings.kinds.networks import naive
from tidings.language.parser import parse

TOPICS = ["sport", "finance", "art"]


def exchange() -> Network:
    network = Network()
    for name, where in (
        ("pub1", None),
        ("pub2", None),
        ("net1", "topic IN ('sport', 'finance') AND age > 30"),
        ("net2", "age > 18"),
        ("acme", None),
        ("zeta", "geo = 'CA'"),
    ):
        network.add_node(name, where)
    for source, target, where in (
        ("pub1", "net1", None),
        ("pub2", "net2", None),
        ("net1", "net2", None),
        ("net2", "net1", None),
        ("net2", "acme", "topic = 'sport'"),
        ("net2", "zeta", None),
    ):
        network.add_edge(source, target, where)
    return network


def engine_at_every_node(network: Network) -> Engine:
    engine = Engine(networks={"exchange": network})
    for name, _ in network.nodes():
        engine.subscribe(f"at {name}", f"VIA exchange AT '{name}'")
        engine.subscribe(f"cheap at {name}", f"WHERE price < 5 VIA exchange AT '{name}'")
    engine.subscribe("anywhere", "WHERE price < 5")
    return engine


def told(engine: Engine, event: Event) -> set[str | None]:
    return {notification.subscription for notification in engine.publish(event)}


def test_an_event_reaches_a_place_only_along_a_path_that_accepts_it() -> None:
    engine = engine_at_every_node(exchange())
    event = Event(source="pub1", attributes={"topic": "sport", "age": 35, "price": 9})
    assert told(engine, event) == {"at net1", "at net2", "at acme"}
    cheap = Event(source="pub2", attributes={"topic": "art", "age": 35, "price": 1, "geo": "CA"})
    assert told(engine, cheap) == {"anywhere", "at net2", "cheap at net2", "at zeta", "cheap at zeta"}
    assert told(engine, Event(source="elsewhere", attributes={"price": 1})) == {"anywhere"}


@pytest.mark.parametrize("seed", range(5))
def test_one_by_one_and_together_and_reopened_are_the_definition(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    network = exchange()
    engine = engine_at_every_node(network)
    events = [
        Event(
            id=str(number),
            source=rng.choice(["pub1", "pub2", "net1", "nowhere"]),
            attributes={
                "topic": rng.choice(TOPICS),
                "age": rng.randint(10, 50),
                "price": rng.randint(0, 9),
                "geo": rng.choice(["CA", "NY"]),
            },
        )
        for number in range(30)
    ]
    nodes = {name: where and parse(f"WHERE {where}").where for name, where in network.nodes()}
    edges = {(a, b): where and parse(f"WHERE {where}").where for a, b, where in network.edges()}
    expected = set()
    for event in events:
        known = event.source in network
        reached = naive.reached(nodes, edges, event.source, event.attributes) if known else set()
        price = event.attributes["price"]
        expected |= {(f"at {node}", event.id) for node in reached}
        expected |= {(f"cheap at {node}", event.id) for node in reached if price < 5}
        expected |= {("anywhere", event.id)} if price < 5 else set()
    one_by_one = {(n.subscription, n.event) for event in events for n in engine.publish(event)}
    assert one_by_one == expected
    engine.save(tmp_path)
    for each in (engine, Engine.load(tmp_path)):
        table = each.publish_many(events)
        assert (
            set(zip(table["subscription"].to_pylist(), table["event"].to_pylist(), strict=True)) == expected
        )


def test_a_pattern_may_have_a_place_too() -> None:
    engine = Engine(networks={"exchange": exchange()})
    engine.subscribe("s", "SELECT ?o WHERE (<urn:a>, <urn:p>, ?o) VIA exchange AT 'net2'")
    attributes = {"topic": "art", "age": 20}
    graph = "<urn:a> <urn:p> <urn:b> ."
    near = Event.from_rdf(graph, "turtle", source="pub2", attributes=attributes)
    far = Event.from_rdf(graph, "turtle", source="pub1", attributes=attributes)
    assert [n.bindings for n in engine.publish(near)] == [{"o": "urn:b"}]
    assert engine.publish(far) == []


def test_changes_of_a_network_count_at_once() -> None:
    network = exchange()
    engine = engine_at_every_node(network)
    event = Event(source="pub1", attributes={"topic": "art", "age": 35, "price": 9})
    assert told(engine, event) == set()
    network.set_where("net1", "age > 30")
    assert told(engine, event) == {"at net1", "at net2"}
    network.remove_node("net2")
    assert told(engine, event) == {"at net1"}


def test_explain_shows_the_path_or_the_frontier() -> None:
    engine = engine_at_every_node(exchange())
    event = Event(source="pub1", attributes={"topic": "sport", "age": 35, "price": 9, "geo": "NY"})
    assert str(engine.explain("at acme", event)).splitlines() == [
        "at acme: match",
        "  ✓ VIA exchange AT 'acme'   pub1 → net1 → net2 → acme",
        "    ✓ topic IN ('sport', 'finance') AND age > 30   net1",
        "    ✓ age > 18   net2",
        "    ✓ topic = 'sport'   the edge net2 → acme",
    ]
    cut = engine.explain("cheap at zeta", event)
    assert cut.verdict == "no match"
    assert [(clause.text, clause.held, clause.evidence) for clause in cut.clauses] == [
        ("price < 5", False, "price is 9"),
        ("VIA exchange AT 'zeta'", False, "every path is cut"),
        ("geo = 'CA'", False, "cut at zeta"),
    ]
    elsewhere = engine.explain("at acme", Event(source="nobody"))
    assert "is no node of this network" in str(elsewhere)
    assert "no path leads there" in str(engine.explain("at pub2", event))


def test_a_place_that_is_not_there_is_refused() -> None:
    engine = Engine(networks={"exchange": exchange()})
    with pytest.raises(SubscriptionError, match="no network 'other'; the engine's networks are: exchange"):
        engine.subscribe("s", "VIA other AT 'acme'")
    with pytest.raises(SubscriptionError, match="has no node 'acne'"):
        engine.subscribe("s", "VIA exchange AT 'acne'")
