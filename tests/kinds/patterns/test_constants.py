"""Many constants in one index: every comparison agrees with `values.compare`, whatever stands near it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.formats.kernels.strategies import document, texts
from tidings import Engine, Event
from tidings.engine.plan import check_constant
from tidings.formats.namespaces import XSD
from tidings.formats.rdf import NTRIPLES
from tidings.kinds.patterns import naive
from tidings.language.printer import to_text
from tidings.language.query import (
    And,
    Between,
    Comparison,
    Condition,
    Not,
    OneOf,
    Query,
    TriplePattern,
    Variable,
)
from tidings.model import values
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Iri, Literal, Term, Triple, ntriples

X, Y = Variable("x"), Variable("y")
P = Iri("urn:tidings:p")

_near = st.sampled_from([2**53, 2**63, 10**15, 10**17, 10**18, 10**19, 10**25, 0, 1, 5])
_numbers = st.one_of(
    st.builds(lambda base, step: str(base + step), _near, st.integers(-2, 2)),
    st.builds(lambda base, step, zeros: f"{base}.{'0' * zeros}{step}", _near, st.integers(0, 3), st.integers(0, 22)),
    st.builds(lambda m, e: f"{m}e{e}", st.integers(-30, 30), st.sampled_from([-400, -320, -251, -18, -1, 0, 1, 17, 250, 308, 309, 400, 999])),
    st.sampled_from(["-0", "-0.0", "0e5", "00", "+1", "1.", ".5", "0.1", "0.10000000000000000001", "1e1", "10", "1E1"]),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
)  # fmt: skip
_instants = st.one_of(
    st.datetimes().map(lambda moment: moment.isoformat()),
    st.sampled_from(
        [
            "2004-01-31",
            "2004-01-31T00:00:00Z",
            "2004-01-31T01:00:00+01:00",
            "2004-01-30T23:59:59.999999Z",
            "2004-01-31T00:00:00.0000001Z",
            "0001-01-01",
            "9999-12-31T23:59:59",
        ]
    ),
)
_words = st.one_of(
    texts,
    st.sampled_from(["a", "ab", "b", "", 'a"', "a\n", "a\\", "a\x7f", "é", "\U0001f600", "\uffff", "\ue000"]),
)
_constants: st.SearchStrategy[Literal | Iri] = st.one_of(
    _numbers.map(lambda text: Literal(text, XSD + "decimal")),
    _numbers.map(lambda text: Literal(text, XSD + "integer")),
    _instants.map(lambda text: Literal(text, XSD + "dateTime")),
    _words.map(Literal),
    st.sampled_from(["true", "false", "0", "1"]).map(lambda text: Literal(text, XSD + "boolean")),
    st.builds(Literal, _words, st.none(), st.sampled_from(["en", "de"])),
    st.builds(Literal, _words, st.sampled_from(["urn:t", "urn:u", XSD + "duration"])),
    st.sampled_from([Iri("urn:a"), Iri("urn:b")]),
)
_odd_literals = st.sampled_from(
    [
        Literal("abc", XSD + "integer"),
        Literal("truth", XSD + "boolean"),
        Literal("fals", XSD + "boolean"),
        Literal("", XSD + "integer"),
        Literal("2004-13-01", XSD + "date"),
        Literal("9" * 401, XSD + "integer"),
        Literal("NaN", XSD + "double"),
    ]
)
_values: st.SearchStrategy[Term] = st.one_of(
    _constants,
    _odd_literals,
    _numbers.map(Literal),
    _instants.map(Literal),
    st.sampled_from([Iri("urn:b"), Iri("urn:c")]),
)
_ops = st.sampled_from(list(values.OPERATORS))


def _condition(draw: st.DrawFn, constants: list[Literal | Iri]) -> Condition:
    pick = st.sampled_from(constants)
    kind = draw(st.integers(0, 9))
    if kind < 7:
        return Comparison(Y, draw(_ops), draw(pick))
    if kind == 7:
        return Between(Y, draw(pick), draw(pick))
    return OneOf(Y, tuple(draw(st.lists(pick, min_size=1, max_size=4))), draw(st.booleans()))


@st.composite
def conditions(draw: st.DrawFn) -> list[Condition]:
    constants = draw(st.lists(_constants, min_size=1, max_size=25))
    found = [_condition(draw, constants) for _ in range(draw(st.integers(1, 25)))]
    return [Not(c) if draw(st.integers(0, 9)) == 0 else c for c in found]


def _publish(engine: Engine, found: list[Term]) -> set[tuple[str, int]]:
    """The pairs (subscription, value) that match; each value is the object of an event of its own."""
    graphs: list[list[Triple]] = [[(Iri("urn:s"), P, value)] for value in found]
    events = [
        Event(id=str(i), datacontenttype=NTRIPLES, data=document(graph)) for i, graph in enumerate(graphs)
    ]
    rows = engine.publish_many(events).to_pylist()
    assert {row["verdict"] for row in rows} <= {"match"}
    return {(row["subscription"], int(row["event"])) for row in rows}


@examples(50)
@given(conditions(), st.lists(_values, min_size=1, max_size=25))
def test_comparisons_agree_with_the_definition(some: list[Condition], found: list[Term]) -> None:
    engine = Engine()
    for number, condition in enumerate(some):
        engine.subscribe(str(number), to_text(Query(And((TriplePattern(X, P, Y), condition)))))
    expected = {
        (str(number), i)
        for number, condition in enumerate(some)
        for i, value in enumerate(found)
        if naive.holds(condition, {"x": Iri("urn:s"), "y": value}, (), Taxonomy(), {})
    }
    assert _publish(engine, found) == expected


@examples(30)
@given(
    st.lists(_constants.filter(lambda c: isinstance(c, Literal)), min_size=1, max_size=25),
    st.lists(_values, min_size=1, max_size=25),
)
def test_literals_in_triples_match_by_value(constants: list[Literal], found: list[Term]) -> None:
    engine = Engine()
    for number, constant in enumerate(constants):
        engine.subscribe(str(number), to_text(Query(TriplePattern(X, P, constant))))
    expected = {
        (str(number), i)
        for number, constant in enumerate(constants)
        for i, value in enumerate(found)
        if values.compare(value, "=", constant)
    }
    assert _publish(engine, found) == expected


def test_thousands_of_neighbouring_constants() -> None:
    """Longer than any block of ranges, around the limits of doubles and of 18 digits."""
    engine = Engine()
    limits = [base + i for base in (2**53, 10**18, 10**30) for i in range(-400, 400)]
    for i, limit in enumerate(limits):
        op = (">", "<", "=", ">=", "<=", "!=")[i % 6]
        engine.subscribe(f"{op}{limit}", f"WHERE (?x, p, ?y) AND ?y {op} {limit}")
    found = [2**53, 2**53 + 1, 10**18 - 1, 10**18, 10**18 + 1, 10**30 + 399, 0, -1]
    terms: list[Term] = [Literal(f"{value}.0") for value in found]
    matched = _publish(engine, terms)
    for i, value in enumerate(found):
        expected = {
            f"{op}{limit}"
            for k, limit in enumerate(limits)
            if values.OPERATORS[op := (">", "<", "=", ">=", "<=", "!=")[k % 6]](value, limit)
        }
        assert {id for id, event in matched if event == i} == expected


def test_numbers_beyond_every_float() -> None:
    engine = Engine()
    for text in ("1e308", "1e309", "1e400", "2e400", "-1e400", "1e-400", "0"):
        engine.subscribe(text, f"WHERE (?x, p, ?y) AND ?y > {text}")
    found: list[Term] = [Literal(text) for text in ("1e350", "15e399", "-2e400", "1e-399", "5")]
    matched = _publish(engine, found)
    assert {i: {id for id, event in matched if event == i} for i in range(5)} == {
        0: {"1e308", "1e309", "-1e400", "1e-400", "0"},
        1: {"1e308", "1e309", "1e400", "-1e400", "1e-400", "0"},
        2: set(),
        3: {"-1e400", "1e-400", "0"},
        4: {"-1e400", "1e-400", "0"},
    }


@pytest.mark.parametrize("bad", [Literal("abc", XSD + "integer"), Literal("2004-13-01", XSD + "date")])
def test_a_constant_that_says_nothing_is_refused(bad: Literal) -> None:
    with pytest.raises(Exception, match="correct one of them"):
        check_constant(ntriples(bad))
