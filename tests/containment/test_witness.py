"""Witnesses match what they were made for, and counterexamples match one subscription and not the other."""

from __future__ import annotations

import random

import pytest

from tests.containment import cases
from tests.containment.test_contains import CONTAINED, NOT_CONTAINED, PREFIXES, TAXONOMY
from tidings import Engine, SubscriptionError, contains
from tidings.containment.counterexample import counterexample
from tidings.containment.naive import matches
from tidings.containment.witness import witness, witnesses
from tidings.language.parser import parse
from tidings.language.query import Query, has_calls


def query(text: str) -> Query:
    return parse(text, PREFIXES)


def test_witnesses_match_and_are_mostly_found():
    rng, found, needed = random.Random(8), 0, 300
    for _ in range(needed):
        known = cases.taxonomy(rng)
        asked = cases.joined(rng, [cases.way(rng)])
        events = list(witnesses(asked, known, variants=2))
        assert all(matches(asked, event, known) for event in events)
        found += bool(events)
    assert found > 0.5 * needed, found  # many of the random ones contradict themselves


def test_an_iri_may_have_to_pass_a_test_of_its_text():
    event = witness(query("(?i, ?p, ?x) AND ?i CONTAINS 'example.org/' AND ?p STARTS WITH 'http'"), TAXONOMY)
    assert event is not None
    assert event.data == b"<urn:example.org/> <http:any> <urn:tidings:any:x> .\n"


def test_a_witness_is_small_and_general():
    event = witness(query("(?a, ex:p, ?b), (?b, ex:q, ?c) AND ?c > 5 AND x >= 10 AND x <= 30"), TAXONOMY)
    assert event is not None
    assert event.attributes == {"x": [11, 29]}
    assert event.data.decode().splitlines() == [
        "<urn:tidings:any:a> <http://example.org/p> <urn:tidings:any:b> .",
        '<urn:tidings:any:b> <http://example.org/q> "6"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    ]


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        ("ANY e IN x SATISFIES (e.price < 10 AND e.colour = 'red')", {"x": {"price": 9, "colour": "red"}}),
        ("x + 1 > 5 AND NOT MISSING y", {"x": 100, "y": True}),
        ("x < y", {"x": 1, "y": 2}),
        ("x LIKE 'a\\%_c%' AND y IN CIDR '10.0.0.0/8'", {"x": "a%ac", "y": "10.0.0.0"}),
        ("x SEARCH '(cold OR warm) \"wet day\" -dry'", {"x": "cold wet day"}),
        ("x SEARCH 'running' STEMMED 'english' AND x SEARCH 'far'", {"x": ["running", "far"]}),
        ("x NOT IN (1, 'a') AND user.age = 5", {"x": "any", "user.age": 5}),
        ("f(?n) AND ?n > 5 AND x = 1", {"x": 1}),  # calls are taken to hold
    ],
)
def test_witnesses_of_conditions_on_attributes(text, attributes):
    event = witness(query(text), TAXONOMY)
    assert event is not None
    assert event.attributes == attributes


@pytest.mark.parametrize("text", ["x BETWEEN 5 AND 2", "FROM a JOIN b USING (c)", "FROM a", "x = <urn:a>"])
def test_no_witness(text):
    assert witness(query(text), TAXONOMY) is None


def test_what_contains_a_subscription_matches_its_witness():
    for a, b in CONTAINED:
        wide, narrow = query(a), query(b)
        if has_calls(wide.where) or has_calls(narrow.where):
            continue
        for event in witnesses(narrow, TAXONOMY, variants=4):
            assert matches(wide, event, TAXONOMY), (a, b, event)
        assert counterexample(wide, narrow, TAXONOMY) is None


def test_the_engine_agrees_with_counterexamples():
    found = 0
    for a, b in NOT_CONTAINED:
        answer = contains(a, b, taxonomy=TAXONOMY, prefixes=PREFIXES)
        assert not answer
        if answer.counterexample is None:
            assert not answer.is_certain
            continue
        engine = Engine(taxonomy=TAXONOMY, prefixes=PREFIXES)
        engine.subscribe("a", a)
        engine.subscribe("b", b)
        assert [n.subscription for n in engine.publish(answer.counterexample)] == ["b"], (a, b)
        found += 1
    assert found > 25, found


def test_counterexamples_are_found_for_most_pairs():
    rng, certain = random.Random(9), []
    for _ in range(200):
        known = cases.taxonomy(rng)
        wide, narrow = cases.pair(rng, known)
        if witness(narrow, known) is not None:
            certain.append(contains(wide, narrow, taxonomy=known).is_certain)
    assert sum(certain) > 0.75 * len(certain) > 60, (sum(certain), len(certain))


def test_a_text_that_cannot_be_read_is_named():
    with pytest.raises(SubscriptionError, match="the first subscription: "):
        contains("x >", "x > 1")
