"""Whenever `contains` says yes, no event matches the contained subscription alone, by the definition."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.containment import cases
from tidings.containment.contains import contains
from tidings.containment.naive import matches
from tidings.containment.witness import witnesses
from tidings.language.printer import to_text


def check(rng: random.Random, events: int = 3) -> tuple[Counter[str], set[str]]:
    """One pair and some events; what was seen, and the forms of the container if it was."""
    known = cases.taxonomy(rng)
    a, b = cases.pair(rng, known)
    seen: Counter[str] = Counter(pairs=1)
    if not contains(a, b, known).holds:
        return seen, set()
    seen["yes"] += 1
    for event in witnesses(b, known, variants=4):
        for tried in (event, *(cases.mutated(rng, event) for _ in range(events))):
            if not matches(b, tried, known):
                continue
            seen["matches"] += 1
            assert matches(a, tried, known), f"{to_text(a)} does not match what {to_text(b)} matches: {tried}"
    return seen, cases.forms(a) if seen["matches"] else set()


@settings(max_examples=150)
@given(st.integers(0, 2**64))
def test_no_event_matches_the_contained_one_alone(seed):
    check(random.Random(seed))


FORMS = {
    *(f"Comparison {op}" for op in cases.OPERATORS),
    *(f"TextTest {op}" for op in ("STARTS", "ENDS", "CONTAINS", "LIKE", "MATCHES", "CIDR", "SEARCH")),
    *(
        "IsA <=",
        "IsA >=",
        "IsA =",
        "TriplePattern",
        "Between",
        "OneOf",
        "NOT IN",
        "Exists",
        "Missing",
        "AnyElement",
    ),
}


def test_enough_of_the_cases_say_something():
    seen: Counter[str] = Counter()
    forms: set[str] = set()
    rng = random.Random(15)
    for _ in range(300):
        found, used = check(rng)
        seen += found
        forms |= used
    assert seen["yes"] > 50, seen
    assert seen["matches"] > 400, seen
    assert len(FORMS - forms) < 6, FORMS - forms


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_twenty_thousand_matches_without_a_violation():
    seen: Counter[str] = Counter()
    forms: set[str] = set()
    rng = random.Random(16)
    for _ in range(20_000):
        found, used = check(rng)
        seen += found
        forms |= used
    assert seen["yes"] >= 4_000, seen
    assert seen["matches"] >= 20_000, seen
    assert forms >= FORMS, FORMS - forms
