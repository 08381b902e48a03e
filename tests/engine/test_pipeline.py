"""The steps of matching, called one by one: what each leaves is what its name says."""

from __future__ import annotations

import pyarrow as pa

from tidings import Engine, Event, Network
from tidings.engine import pipeline
from tidings.engine.snapshot import Snapshot
from tidings.model.batch import Batch
from tidings.model.event import to_table
from tidings.model.pairs import Pairs


def engine() -> Engine:
    network = Network()
    for name, where in (("hall", None), ("door", "topic = 'news'"), ("yard", None)):
        network.add_node(name, where)
    network.add_edge("hall", "door")
    network.add_edge("door", "yard")
    made = Engine(networks={"net": network})
    made.subscribe("filter", "WHERE topic = 'news' AND price < 10")
    made.subscribe("pattern", "SELECT ?t WHERE (?i, <urn:title>, ?t) AND price < 10")
    made.subscribe("via", "WHERE price < 10 VIA net AT yard")
    made.subscribe("ended", "WHERE price < 10", valid_until="2020-01-01")
    made.subscribe("gone", "WHERE price < 10")
    made.unsubscribe("gone")
    return made


def events() -> list[Event]:
    graph = '<urn:i> <urn:title> "T" .'
    return [
        Event.from_rdf(graph, "turtle", source="hall", id="e0", attributes={"topic": "news", "price": 5}),
        Event.from_rdf(graph, "turtle", source="hall", id="e1", attributes={"topic": "sport", "price": 50}),
        Event("hall", {"topic": "sport", "price": 5}, id="e2"),
    ]


def named(index: Snapshot, pairs: Pairs) -> set[tuple[str, str]]:
    ids = index.subscriptions.ids(pairs.subscription).to_pylist()
    return {(f"e{event}", id) for event, id in zip(pairs.event.tolist(), ids, strict=True)}


def test_every_step_alone() -> None:
    made = engine()
    index, batch = made.index_snapshot(), Batch(to_table(events()))
    pairs = pipeline.find(batch, index)
    found = {("e0", "filter"), ("e0", "pattern"), ("e1", "pattern"), ("e0", "via"), ("e2", "via")}
    dead = {(event, id) for event in ("e0", "e2") for id in ("ended", "gone")}
    assert named(index, pairs) == found | dead
    pairs = pipeline.live_and_valid(batch, index, pairs)
    assert named(index, pairs) == found
    residuals, networks = index.checkers
    assert (residuals.name, networks.name) == ("residuals", "networks")
    pairs = residuals.check(batch, pairs)
    assert named(index, pairs) == found - {("e1", "pattern")}
    pairs = networks.check(batch, pairs)
    assert named(index, pairs) == found - {("e1", "pattern"), ("e2", "via")}
    pairs = pipeline.one_answer_each(batch, index, pairs)
    told = pa.concat_tables(pipeline.notifications(batch, index, pairs)).to_pylist()
    assert sorted((row["event"], row["subscription"], row["bindings"]) for row in told) == [
        ("e0", "filter", []),
        ("e0", "pattern", [("t", "T")]),
        ("e0", "via", []),
    ]


def test_the_steps_together_are_the_match() -> None:
    made = engine()
    whole = pipeline.match(to_table(events()), made.index_snapshot())
    assert whole.num_rows == 3
    assert whole.equals(made.publish_many(events()))
