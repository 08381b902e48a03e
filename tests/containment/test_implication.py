"""Implications between conditions hold for every value: all pairs of a pool of conditions, over a pool of values."""

from __future__ import annotations

import random
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.containment.test_contains import TAXONOMY
from tidings.containment.implication import IT, Known
from tidings.formats.namespaces import XSD
from tidings.language import conditions
from tidings.language.query import Between, Comparison, Condition, Folded, IsA, OneOf, TextTest
from tidings.model.terms import Blank, Iri, Literal

EX = "http://example.org/"
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
CONSTANTS = [
    Literal("5", XSD + "integer"),
    Literal("5.0", XSD + "decimal"),
    Literal("7", XSD + "integer"),
    Literal("5"),
    Literal("red"),
    Literal("Red"),
    Literal("red", None, "en"),
    Literal("2004-01-31", XSD + "date"),
    Literal("2004-01-31"),
    Literal("true", XSD + "boolean"),
    Literal("red", "urn:colour"),
    Iri(EX + "Ball"),
    Literal("straße"),
]
PATTERNS = ["r", "re", "RE", "ed", "red", "", "STRASSE", "http"]
NETWORKS = ["10.0.0.0/8", "10.1.0.0/16", "::ffff:10.0.0.0/104"]
VALUES: list[Any] = [
    *CONSTANTS,
    *(
        Literal(text)
        for text in ("05", "5e0", "6", "7", "RED", "r", "re", "dark red", "2004-01-31T00:00:00Z", "STRASSE")
    ),
    *(Literal(text, XSD + "double") for text in ("5e0", "6.5", "1e1")),
    *(Literal(text, None, "de") for text in ("red", "5", "RED")),
    Literal("5", None, "en"),
    Literal("red", XSD + "string"),
    Literal("no number", XSD + "integer"),
    Literal("blue", "urn:colour"),
    Literal("2004-02-01T01:00:00+01:00", XSD + "dateTime"),
    Literal("false", XSD + "boolean"),
    *(Literal(text) for text in ("10.1.2.3", "10.2.0.0", "::ffff:10.1.0.1", "Ball", "Sport", "Football", "")),
    *(Iri(EX + name) for name in ("Sport", "Football", "Meta", "cup", "red")),
    Iri("red"),
    Blank("b"),
    *(5, 5.0, 5.5, 7, Decimal("5"), True, "5", "red", "Red", "5.00", date(2004, 1, 31), datetime(2004, 2, 1)),
    *({"a": 5}, float("nan"), "\ud800red"),
]


def make_pool() -> list[Condition]:
    """Conditions of every form."""
    rng = random.Random(4)
    pool: list[Condition] = []
    for operand in (IT, Folded(IT)):
        pool += [Comparison(operand, op, constant) for op in OPERATORS for constant in CONSTANTS]
        pool += [TextTest(operand, op, Literal(p)) for op in ("STARTS", "ENDS", "CONTAINS") for p in PATTERNS]
        pool += [
            TextTest(operand, "LIKE", Literal(p))
            for p in ("r%", "%d", "%e%", "r_d", "red", "r%d", "%", "R%D")
        ]
        for _ in range(12):
            pool.append(Between(operand, rng.choice(CONSTANTS), rng.choice(CONSTANTS)))
        pool += [Between(operand, CONSTANTS[0], CONSTANTS[2]), Between(operand, Literal("a"), Literal("s"))]
        for negated in (False, True):
            for size in (1, 1, 2, 2, 2, 3, 3, 4) * 2:
                pool.append(OneOf(operand, tuple(rng.sample(CONSTANTS, size)), negated))
    pool += [TextTest(IT, "MATCHES", Literal(p)) for p in ("^r", "(?i)red", "ed$")]
    pool += [TextTest(IT, "CIDR", Literal(p)) for p in NETWORKS]
    pool += [
        TextTest(IT, "SEARCH", Literal(p)) for p in ("red", "red OR 5", "red 5", '"5 00"', "red -5", "5 -00")
    ]
    pool += [TextTest(IT, "SEARCH english", Literal(p)) for p in ("reds", "red OR 5")]
    classes = [Iri(EX + name) for name in ("Sport", "Ball", "Football", "Meta", "Unknown")]
    pool += [IsA(IT, op, cls) for op in ("<=", ">=", "=") for cls in classes]
    return list(dict.fromkeys(pool))


POOL = make_pool()
# A value in an event, and the classes that the event gives it.
CASES = [
    (value, types) for value in VALUES for types in ((), (EX + "Football",), (EX + "Unknown", EX + "Sport"))
]


def holds(condition: Condition, value: Any, types: tuple[str, ...]) -> bool:
    def is_a(leaf: IsA) -> bool:
        assert isinstance(leaf.cls, Iri)
        return TAXONOMY.is_a(value, leaf.op, leaf.cls.value, types)

    return conditions.holds(condition, {}, {IT.name: value}, is_a)


def satisfying(condition: Condition) -> frozenset[int]:
    cases = CASES if isinstance(condition, IsA) else CASES[::3]
    step = 1 if isinstance(condition, IsA) else 3
    found = {at * step for at, case in enumerate(cases) if holds(condition, *case)}
    return frozenset(found if step == 1 else {at + more for at in found for more in range(3)})


SATISFYING = {condition: satisfying(condition) for condition in POOL}


def test_what_one_condition_implies_holds_for_every_value_that_satisfies_it():
    yes = useful = 0
    for b in POOL:
        known = Known.of((b,))
        for a in POOL:
            if known.implies(a, TAXONOMY) and not known.is_contradictory:
                yes += 1
                useful += a != b and bool(SATISFYING[b])
                assert SATISFYING[b] <= SATISFYING[a], (
                    a,
                    b,
                    [CASES[i] for i in SATISFYING[b] - SATISFYING[a]],
                )
    assert yes > 3_000, yes
    assert useful > 2_500, useful


def test_a_contradiction_is_one():
    contradictory = [b for b in POOL if Known.of((b,)).is_contradictory]
    assert len(contradictory) > 20
    assert all(not SATISFYING[b] for b in contradictory)


def test_what_several_conditions_imply_together_holds_for_every_value_that_satisfies_them():
    rng = random.Random(7)
    yes = together = contradictory = 0
    for _ in range(4_000):
        known_of = rng.sample(POOL, rng.choice((2, 2, 3)))
        known = Known.of(known_of)
        both = frozenset.intersection(*(SATISFYING[b] for b in known_of))
        if known.is_contradictory:
            contradictory += 1
            assert not both, known_of
            continue
        for a in rng.sample(POOL, 12):
            if known.implies(a, TAXONOMY):
                yes += bool(both)
                together += not any(Known.of((b,)).implies(a, TAXONOMY) for b in known_of)
                assert both <= SATISFYING[a], (a, known_of, [CASES[i] for i in both - SATISFYING[a]])
    assert yes > 500, yes
    assert contradictory > 1_000, contradictory
    assert together > 3, together


texts = st.text("abAß 5.é", max_size=5)
literals = st.one_of(
    st.builds(Literal, texts),
    st.builds(Literal, texts, st.none(), st.sampled_from(["en", "de"])),
    st.integers(-3, 9).map(lambda n: Literal(str(n), XSD + "integer")),
    st.decimals(-1, 3, places=1).map(lambda d: Literal(str(d), XSD + "decimal")),
    st.dates(date(2004, 1, 30), date(2004, 2, 2)).map(lambda d: Literal(d.isoformat(), XSD + "date")),
)
values = st.one_of(
    literals,
    st.builds(
        lambda n, form: Literal(form.format(n)), st.integers(-3, 9), st.sampled_from(["{}", "{}.0", "{}e0"])
    ),
    texts,
    st.integers(-3, 9),
)
its = st.sampled_from([IT, Folded(IT)])
leaf = st.one_of(
    st.builds(Comparison, its, st.sampled_from(OPERATORS), literals),
    st.builds(Between, its, literals, literals),
    st.builds(OneOf, its, st.lists(literals, min_size=1, max_size=3).map(tuple), st.booleans()),
    st.builds(
        TextTest, its, st.sampled_from(["LIKE", "STARTS", "ENDS", "CONTAINS"]), st.builds(Literal, texts)
    ),
)


@settings(max_examples=400)
@given(st.lists(leaf, min_size=1, max_size=3), leaf, st.lists(values, min_size=1, max_size=8))
def test_implications_between_random_conditions(known_of, wanted, tried):
    known = Known.of(known_of)
    satisfied = [v for v in tried if all(conditions.holds(b, {}, {IT.name: v}) for b in known_of)]
    assert not (known.is_contradictory and satisfied)
    if known.implies(wanted, TAXONOMY):
        assert all(conditions.holds(wanted, {}, {IT.name: v}) for v in satisfied)
