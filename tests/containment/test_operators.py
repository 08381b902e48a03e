"""Containment of subscriptions with operators is sound: by the definition of operators, whatever they answer."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds.operators.cases import NUMBERS, Case, verdict_of
from tidings.containment.contains import contains
from tidings.containment.implication import replaced
from tidings.errors import SubscriptionError
from tidings.formats.namespaces import XSD
from tidings.kinds.operators.naive import check_inputs
from tidings.language.alternatives import alternatives
from tidings.language.printer import condition_text
from tidings.language.query import (
    And,
    Comparison,
    Condition,
    Query,
    Variable,
    conjuncts,
    has_calls,
    variables,
)
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Literal

EVENTS = 12


def wider(rng: random.Random, condition: Condition) -> Condition:
    """A copy with fewer parts, weaker comparisons and other names."""
    parts = [part for part in conjuncts(condition) if rng.random() < 0.85]
    for at, part in enumerate(parts):
        if isinstance(part, Comparison) and isinstance(part.right, Literal) and rng.random() < 0.5:
            constant = Literal(str(rng.choice(NUMBERS)), XSD + "integer")
            parts[at] = Comparison(part.left, rng.choice((part.op, "!=", ">=", "<=")), constant)
    if rng.random() < 0.2:
        rng.shuffle(parts)
    names = {Variable(name): Variable(rng.choice((name, f"{name}1", "y"))) for name in "xyzws"}
    return replaced(And(tuple(parts)), names)


def verdict(case: Case, condition: Condition, n: int) -> str | None:
    ways = alternatives(Query(condition))
    solutions = (
        solution
        for way in ways
        for binding in case.bindings(way.edges, n)
        for solution in case.solved(And(way.tests), binding, n)
    )
    return verdict_of(solutions)


def check(seed: int) -> Counter[str]:
    rng = random.Random(seed)
    case = Case(rng, subscriptions=1, events=EVENTS, depth=2, triples=0.4)
    narrow = case.conditions[0]
    wide = wider(rng, narrow)
    seen = Counter(pairs=1)
    try:
        bound = frozenset(v.name for part in conjuncts(wide) if not has_calls(part) for v in variables(part))
        check_inputs(wide, bound, case.operators.__getitem__)
        holds = contains(Query(wide), Query(narrow), Taxonomy()).holds
    except SubscriptionError:
        return seen
    if not holds:
        return seen
    seen["yes"] += 1
    for n in range(EVENTS):
        if verdict(case, narrow, n) == "match":
            seen["matches"] += 1
            seen["with calls"] += has_calls(wide)
            assert verdict(case, wide, n) == "match", (condition_text(wide), condition_text(narrow), n)
    return seen


@settings(max_examples=150)
@given(st.integers(0, 2**64))
def test_what_matches_the_contained_one_matches_the_other(seed):
    check(seed)


def test_enough_of_the_cases_say_something():
    seen: Counter[str] = Counter()
    for seed in range(500):
        seen += check(seed)
    assert seen["yes"] > 50, seen
    assert seen["with calls"] > 100, seen
