"""Why an event matches or does not, in words that agree with what was told to subscribers."""

from __future__ import annotations

import random
from datetime import date

import pytest

from tests.contract.kinds import PATTERNS
from tidings import Engine, Event, Taxonomy
from tidings.explanation import Clause


def event(text: str, **rest: object) -> Event:
    return Event.from_rdf(f"@prefix : <urn:tidings:> . {text}", "turtle", **rest)  # type: ignore[arg-type]


def engine_of(text: str, taxonomy: Taxonomy | None = None) -> Engine:
    engine = Engine(taxonomy=taxonomy)
    engine.subscribe("s", text)
    return engine


def test_a_match_shows_every_clause_and_what_it_was_bound_to() -> None:
    engine = engine_of("SELECT ?y WHERE (?x, p, ?y), (?y, year, ?z) AND ?z > 2003")
    told = engine.explain("s", event(":a :p :b . :b :year '2005' ."))
    assert (told.verdict, told.bindings) == ("match", {"y": "urn:tidings:b"})
    assert [clause.held for clause in told.clauses] == [True, True, True]
    assert str(told).splitlines() == [
        "s: match",
        "  ✓ (?x, <urn:tidings:p>, ?y)   ?x = urn:tidings:a, ?y = urn:tidings:b",
        "  ✓ (?y, <urn:tidings:year>, ?z)   ?z = 2005",
        "  ✓ ?z > 2003",
    ]


def test_the_first_clause_without_support_and_the_longest_prefix() -> None:
    engine = engine_of("WHERE (?x, p, ?y), (?y, year, ?z), (?y, q, ?w) AND ?z > 2003")
    told = engine.explain("s", event(":a :p :b . :a :p :c . :c :year 2005 ."))
    assert told.verdict == "no match"
    assert [clause.held for clause in told.clauses] == [True, True, False, None]
    assert told.clauses[2] == Clause(
        "(?y, <urn:tidings:q>, ?w)", False, "no such triple with ?y = urn:tidings:c"
    )
    assert "✗" in str(told)
    assert told.bindings == {}
    told = engine.explain("s", event(":a :p :c . :c :year 2001 ; :q 1 ."))
    assert told.clauses[-1] == Clause("?z > 2003", False, "does not hold for ?z = 2001")


def test_clauses_hold_jointly() -> None:
    """Each clause has support alone; together they have none."""
    told = engine_of("WHERE (?x, p, ?y), (?x, q, ?z)").explain("s", event(":a :p 1 . :b :q 2 ."))
    assert [clause.held for clause in told.clauses] == [True, False]


def test_the_alternative_that_went_furthest() -> None:
    engine = engine_of("WHERE ((?x, p, ?y) AND (?x, q, ?z) AND (?x, r, ?w)) OR (?x, other, ?y)")
    told = engine.explain("s", event(":a :p 1 ; :q 2 ."))
    assert told.verdict == "no match"
    assert [clause.held for clause in engine.explain("s", event(":a :other 1 .")).clauses] == [True]


def test_attributes_are_those_of_the_published_event() -> None:
    engine = engine_of(
        "WHERE price = 0.1 AND day > 2004-01-31 AND datacontenttype = 'x/y' AND tags = 'b' AND source = 'me'"
    )
    one = Event(
        attributes={"price": 0.1, "day": date(2005, 1, 1), "tags": ["a", "b"]},
        source="me",
        datacontenttype="x/y",
    )
    assert [n.verdict for n in engine.publish(one)] == ["match"]
    assert engine.explain("s", one).verdict == "match"
    other = Event(attributes={"price": 0.2})
    assert engine.explain("s", other).clauses[0] == Clause("price = 0.1", False, "price is 0.2")


def test_a_filter_is_shown_as_a_tree() -> None:
    engine = engine_of("WHERE topic = 'finance' AND (age BETWEEN 20 AND 30 OR geo IN ('CA', 'NY'))")
    told = engine.explain("s", Event(attributes={"topic": "finance", "age": 31}))
    assert str(told).splitlines() == [
        "s: no match",
        "  ✓ topic = 'finance'   topic is 'finance'",
        "  ✗ any of",
        "    ✗ age BETWEEN 20 AND 30   age is 31   ←",
        "    ✗ geo IN ('CA', 'NY')   geo is missing   ←",
    ]
    told = engine.explain("s", Event(attributes={"topic": "finance", "age": 25}))
    assert told.verdict == "match"
    assert [clause.decides for clause in told.clauses] == [True, False, True, False]


def test_a_pattern_shows_the_attributes_it_looked_at() -> None:
    engine = engine_of("WHERE (?x, p, ?y) AND topic = 'a' AND size > 3")
    told = engine.explain("s", event(":a :p 1 .", attributes={"topic": "a", "size": [1, 2]}))
    assert [clause.evidence for clause in told.clauses] == [
        "?x = urn:tidings:a, ?y = 1",
        "topic is 'a'",
        "does not hold, size is 1, 2",
    ]


def test_more_bindings_than_anyone_looks_through() -> None:
    """The one binding that holds may be left out: then nothing is claimed, and a match is never denied."""
    engine = engine_of("WHERE (?x, p, ?y), (?y, q, ?z)")
    many = " ".join(f":a :p :n{i} ." for i in range(1500))
    assert [n.verdict for n in engine.publish(event(f"{many} :n7 :q 1 ."))] == ["match"]
    assert engine.explain("s", event(f"{many} :n7 :q 1 .")).verdict in ("match", "undecided")
    told = engine.explain("s", event(many))
    assert told.verdict == "undecided"
    assert "1,000" in str(told)


def test_an_unreadable_event() -> None:
    told = engine_of("WHERE (?x, p, ?y)").explain("s", Event(datacontenttype="text/turtle", data=b"broken"))
    assert told.verdict == "error"
    assert "not readable as Turtle" in str(told)


@pytest.mark.filterwarnings("ignore::tidings.engine.BroadSubscription")
@pytest.mark.parametrize("seed", range(5))
def test_explanations_agree_with_notifications(seed: int) -> None:
    rng = random.Random(100 + seed)
    engine = Engine(taxonomy=PATTERNS.taxonomy(rng))
    for i in range(30):
        engine.subscribe(f"s{i}", PATTERNS.text(rng))
    for _ in range(3):
        one = PATTERNS.event(rng)
        told = {n.subscription for n in engine.publish(one)}
        for i in range(30):
            explanation = engine.explain(f"s{i}", one)
            assert (explanation.verdict == "match") == (f"s{i}" in told), (
                f"{engine.text(f's{i}')}\n{explanation}"
            )
            if not any(clause.text.startswith("(") for clause in explanation.clauses):
                continue  # a filter: clauses after one that failed are shown too
            held = [clause.held for clause in explanation.clauses]
            assert held == sorted(held, key=[True, False, None].index)
            assert held.count(False) == (0 if explanation.verdict == "match" else 1)
