"""Where patterns end: steps, bindings, edges, alternatives, conditions."""

from __future__ import annotations

import random

import pytest

from tests.formats.kernels.strategies import document
from tidings import Engine, Event, SubscriptionError
from tidings.formats.rdf import NTRIPLES
from tidings.kinds.patterns.index import BINDING_LIMIT
from tidings.kinds.patterns.shape import MAX_COMPARISONS, MAX_EDGES
from tidings.language.alternatives import MAX_ALTERNATIVES
from tidings.model.terms import Iri, Literal, Triple

HOSTILE = "WHERE (?a, ?p, ?b), (?b, ?q, ?c), (?c, ?r, ?d), (?d, ?s, ?e) AND ?e = 'nowhere'"


def event(graph: list[Triple], id: str = "") -> Event:
    return Event(id=id, datacontenttype=NTRIPLES, data=document(graph))


def name(text: str) -> Iri:
    return Iri(f"urn:tidings:{text}")


def dense(triples: int, nodes: int) -> list[Triple]:
    rng = random.Random(7)
    return [
        (name(f"n{rng.randrange(nodes)}"), name(f"p{rng.randrange(5)}"), name(f"n{rng.randrange(nodes)}"))
        for _ in range(triples)
    ]


@pytest.mark.filterwarnings("ignore::tidings.engine.engine.BroadSubscription")
def test_a_hostile_pattern_is_undecided_and_the_rest_is_answered() -> None:
    """Four variable edges on 90 triples: more joint bindings than anyone will wait for."""
    engine = Engine()
    engine.subscribe("hostile", "WHERE (?a, ?p, ?b), (?c, ?q, ?d), (?e, ?r, ?f), (?g, ?s, ?h)"
                     " AND (?b = 'x' OR ?d = 'x' OR ?f = 'x' OR ?h = 'x')")  # fmt: skip
    engine.subscribe("also hostile", HOSTILE.replace("?e = 'nowhere'", "?a != ?e AND ?e = 'nowhere'"))
    engine.subscribe("plain", "SELECT ?y WHERE (here, p, ?y)")
    engine.subscribe("other", "WHERE (?x, ?p, ?y)")
    big = [*dense(89, 6), (name("here"), name("p"), Literal("found"))]
    small: list[Triple] = [(name("here"), name("p"), Literal("too"))]
    rows = engine.publish_many([event(small, "1"), event(big, "2"), event(small, "3")]).to_pylist()
    found = {(row["subscription"], row["event"]): row for row in rows}
    assert found["hostile", "2"]["verdict"] == "undecided"
    assert "too many partial matches" in found["hostile", "2"]["message"]
    assert found["hostile", "2"]["bindings"] == []
    assert ("hostile", "1") not in found
    for i in "123":
        assert found["plain", i]["verdict"] == found["other", i]["verdict"] == "match"
    assert dict(found["plain", "2"]["bindings"]) == {"y": "found"}


def test_unconnected_edges_cost_their_sum() -> None:
    """Four variable edges that share nothing are four questions, not 65 million."""
    engine = Engine()
    engine.subscribe("s", "WHERE (?a, p1, ?b), (?c, p2, ?d), (?e, p3, ?f), (?g, p4, ?h) AND ?h = 'nowhere'")
    engine.subscribe("t", "WHERE (?a, p1, ?b), (?c, p2, ?d), (?e, p3, ?f), (?g, p4, ?h)")
    found = engine.publish(event(dense(500, 50)))
    assert [(n.subscription, n.verdict) for n in found] == [("t", "match")]


def test_all_bindings_are_told_up_to_a_limit() -> None:
    engine = Engine()
    engine.subscribe("s", "WHERE (?x, p, ?y)")
    few = [(name(f"n{i}"), name("p"), Literal(str(i))) for i in range(BINDING_LIMIT - 1)]
    notifications = engine.publish(event(few), all_bindings=True)
    assert {n.verdict for n in notifications} == {"match"}
    assert {n.bindings["y"] for n in notifications} == {str(i) for i in range(BINDING_LIMIT - 1)}
    assert len(engine.publish(event(few))) == 1
    many = [(name(f"n{i}"), name("p"), Literal(str(i))) for i in range(BINDING_LIMIT + 500)]
    notifications = engine.publish(event(many), all_bindings=True)
    assert sum(n.verdict == "match" for n in notifications) == BINDING_LIMIT
    assert [n.verdict for n in notifications].count("undecided") == 1  # that there are more is said


def test_a_residual_that_cannot_see_all_bindings_is_undecided() -> None:
    """`?p < ?q` is settled after the index; the pair that satisfies it is past the limit of bindings."""
    engine = Engine()
    engine.subscribe("s", "WHERE (?a, price, ?p), (?b, price, ?q) AND ?p < ?q")
    graph: list[Triple] = [(name(f"n{i}"), name("price"), Literal("1")) for i in range(60)]
    found = engine.publish(event(graph))
    assert [n.verdict for n in found] == ["undecided"]
    found = engine.publish(event([*graph[:5], (name("z"), name("price"), Literal("2"))]))
    assert [(n.verdict, n.bindings["p"], n.bindings["q"]) for n in found] == [("match", "1", "2")]


def test_a_triple_stated_twice_is_one() -> None:
    engine = Engine()
    engine.subscribe("s", "WHERE (?x, p, ?y)")
    engine.subscribe("pair", "WHERE (?x, p, ?y), (?z, p, ?y)")
    twice = event([(name("a"), name("p"), Literal("1"))] * 3)
    assert sorted(n.subscription or "" for n in engine.publish(twice, all_bindings=True)) == ["pair", "s"]


def test_a_pattern_of_a_thousand_edges() -> None:
    star: list[Triple] = [(name("a"), name(f"p{i}"), Literal(str(i))) for i in range(MAX_EDGES)]
    chain: list[Triple] = [(name(f"n{i}"), name("next"), name(f"n{i + 1}")) for i in range(MAX_EDGES)]
    engine = Engine()
    engine.subscribe("star", "SELECT ?y7 WHERE " + ", ".join(f"(?x, p{i}, ?y{i})" for i in range(MAX_EDGES)))
    links = ", ".join(f"(?n{i}, next, ?n{i + 1})" for i in range(1, MAX_EDGES))
    engine.subscribe("chain", f"SELECT ?n1000 WHERE (n0, next, ?n1), {links}")
    assert [(n.subscription, n.bindings) for n in engine.publish(event(star))] == [("star", {"y7": "7"})]
    assert engine.publish(event(star[1:])) == []
    assert [(n.subscription, n.bindings["n1000"]) for n in engine.publish(event(chain))] == [
        ("chain", "urn:tidings:n1000")
    ]
    with pytest.raises(SubscriptionError, match="1,001 triples, over 1,000; split"):
        engine.subscribe("more", "WHERE " + ", ".join(f"(?x, p{i}, ?y)" for i in range(MAX_EDGES + 1)))


def test_too_many_alternatives() -> None:
    def ways(count: int) -> str:
        return " AND ".join(f"((?x, a{i}, ?y) OR (?x, b{i}, ?y))" for i in range(count))

    engine = Engine()
    engine.subscribe("s", f"WHERE {ways(8)}")
    graph: list[Triple] = [(name("n"), name(f"{'ab'[i % 2]}{i}"), Literal("1")) for i in range(8)]
    assert [n.subscription for n in engine.publish(event(graph))] == ["s"]
    assert engine.publish(event(graph[1:])) == []
    with pytest.raises(SubscriptionError, match=f"more than {MAX_ALTERNATIVES} combinations"):
        engine.subscribe("s", f"WHERE {ways(9)}")
    assert [n.subscription for n in engine.publish(event(graph))] == ["s"]  # the old one stays


def test_many_conditions() -> None:
    engine = Engine()
    options = ", ".join(str(i) for i in range(5000))
    engine.subscribe("in", f"WHERE (?x, p, ?y) AND ?y IN ({options})")
    engine.subscribe("not in", f"WHERE (?x, p, ?y) AND ?y NOT IN ({options})")
    edges = ", ".join(f"(?x{i}, p, ?y)" for i in range(900))  # each could be filed by each test
    engine.subscribe("tests", f"WHERE {edges} AND " + " AND ".join(f"?y > {-i}" for i in range(1, 41)))
    for value, expected in (("4999", {"in", "tests"}), ("5000", {"not in", "tests"}), ("-5", {"not in"})):
        found = engine.publish(event([(name("a"), name("p"), Literal(value))]))
        assert {n.subscription for n in found} == expected
    with pytest.raises(SubscriptionError, match="comparisons; split"):
        engine.subscribe(
            "more", f"WHERE (?x, p, ?y) AND ?y IN ({', '.join(map(str, range(MAX_COMPARISONS + 1)))})"
        )


def test_triples_cannot_stand_under_not() -> None:
    with pytest.raises(SubscriptionError, match="NOT"):
        Engine().subscribe("s", "WHERE (?x, p, ?y) AND NOT (?x, q, ?y)")
