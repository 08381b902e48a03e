"""Of patterns without literals, containers and conditions, `contains` says yes exactly where the definition does."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.containment.contains import contains
from tidings.containment.naive import homomorphisms, matches
from tidings.containment.witness import witness
from tidings.language.query import And, Query, TriplePattern, Variable
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Iri

NODES = [Iri(f"urn:n{i}") for i in range(3)]
PROPERTIES = [Iri(f"urn:p{i}") for i in range(3)]


def taxonomy() -> Taxonomy:
    found = Taxonomy()
    found.add_property(PROPERTIES[0].value, [PROPERTIES[1].value])
    return found


TAXONOMY = taxonomy()


def pattern(rng: random.Random, names: str, sizes: tuple[int, ...]) -> list[TriplePattern]:
    variables = [Variable(name) for name in names]

    def node() -> Any:
        return rng.choice(variables if rng.random() < 0.8 else NODES)

    def place() -> Any:
        return rng.choice(PROPERTIES if rng.random() < 0.9 else variables)

    return [TriplePattern(node(), place(), node()) for _ in range(rng.choice(sizes))]


def part(rng: random.Random, of: list[TriplePattern]) -> list[TriplePattern]:
    """Some triples of a pattern, in which a term may be a variable, the same for all of its places or for some."""
    names = {}

    def renamed(node: Any) -> Any:
        if isinstance(node, Iri) and rng.random() < 0.7:
            return node
        if rng.random() < 0.2:
            return Variable(rng.choice("xyz"))
        return names.setdefault(node, Variable("xyz"[len(names) % 3]))

    chosen = rng.sample(of, rng.randint(1, min(len(of), 3)))
    return [TriplePattern(renamed(t.subject), t.property, renamed(t.object)) for t in chosen]


def check(rng: random.Random) -> bool:
    b = pattern(rng, "abcd", (2, 3, 4, 5, 6))
    a = part(rng, b) if rng.random() < 0.6 else pattern(rng, "xyz", (1, 2, 2, 3, 4))
    expected = next(homomorphisms(a, b, TAXONOMY), None) is not None
    wide, narrow = Query(And(tuple(a))), Query(And(tuple(b)))
    found = contains(wide, narrow, TAXONOMY)
    assert found.holds == expected, (a, b)
    # Without literals and conditions a witness decides, too: it is B with its variables frozen.
    event = witness(narrow, TAXONOMY)
    assert event is not None
    assert matches(wide, event, TAXONOMY) == expected
    return expected


@settings(max_examples=100)
@given(st.integers(0, 2**64))
def test_contains_is_the_existence_of_a_homomorphism(seed):
    check(random.Random(seed))


def run(pairs: int) -> Counter[bool]:
    rng = random.Random(21)
    return Counter(check(rng) for _ in range(pairs))


def test_both_answers_are_frequent():
    seen = run(300)
    assert min(seen[True], seen[False]) > 80, seen


@pytest.mark.slow
def test_five_thousand_pairs():
    seen = run(5_000)
    assert min(seen[True], seen[False]) > 1_500, seen
