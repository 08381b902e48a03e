"""What programs are made of a condition: texts of predicates, gates that are confirmed, calls that are no leaves."""

from __future__ import annotations

import pytest

from tidings.kinds.operators.functions.operator import Operator, Out, operator
from tidings.kinds.operators.program import Program, compile_program
from tidings.language.parser import parse
from tidings.language.query import Variable
from tidings.model.event import Event


@operator
def locIn(event: Event, place): ...
@operator
def size(event: Event, place, n: Out): ...
@operator
def pair(event: Event, one: Out, other: Out): ...
@operator
def count(event: Event, n: Out): ...
@operator
def way(event: Event, start: Out, via, end: Out): ...


OPERATORS: dict[str, Operator] = {one.name: one for one in (locIn, size, pair, count, way)}


def program(text: str, *outer: str, select: list[str] | None = None) -> Program:
    bound = frozenset(map(Variable, outer))
    selected = None if select is None else list(map(Variable, select))
    return compile_program(parse(f"WHERE {text}").where, bound, OPERATORS.__getitem__, selected)


def texts(text: str, *outer: str, **values: str) -> list[tuple[str, str | None]]:
    return [
        (leaf.predicate.filled(values), leaf.evaluation.filled(values) if leaf.evaluation else None)
        for leaf in program(text, *outer).leaves
    ]


def gates(text: str, *outer: str) -> list[str]:
    """Each gate as AND or OR, a ! before it if negated, a ? behind it if confirmed, and its size."""
    return [
        f"{'!' * gate.negated}{'OR' if gate.is_or else 'AND'}{'?' * gate.confirmed}{gate.size}"
        for gate in program(text, *outer).gates
    ]


@pytest.mark.parametrize(
    ("text", "predicate", "evaluation"),
    [
        ("locIn(Bronx)", "locIn('Bronx')", "locIn('Bronx')"),
        ("pair(?x, ?y)", "pair(?1, ?2)", "pair(?1, ?2)"),
        ("pair(?b, ?a)", "pair(?1, ?2)", "pair(?1, ?2)"),
        ("pair(?x, ?x)", "pair(?1, ?1)", "pair(?1, ?2)"),
        ("pair(7, ?x)", "pair(7, ?1)", "pair(?1, ?2)"),
        ("size(Bronx, ?n)", "size('Bronx', ?1)", "size('Bronx', ?1)"),
        ("size(Bronx, 5)", "size('Bronx', 5)", "size('Bronx', ?1)"),
        ("way(?a, Main, ?b)", "way(?1, 'Main', ?2)", "way(?1, 'Main', ?2)"),
        ("count(?n) AND ?n > 50", "count(?1) AND ?1 > 50", "count(?1)"),
        ("?m < 9 AND count(?m) AND ?m > 5", "count(?1) AND ?1 < 9 AND ?1 > 5", "count(?1)"),
        ("pair(?x, ?y) AND ?y > 2 * ?x", "pair(?1, ?2) AND ?2 > 2 * ?1", "pair(?1, ?2)"),
    ],
)
def test_texts_of_predicates(text: str, predicate: str, evaluation: str) -> None:
    assert texts(text) == [(predicate, evaluation)]
    assert not program(text).gates[0].confirmed


def test_parameters_are_filled_in() -> None:
    values = {"place": '"it\'s"', "least": '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'}
    assert texts("size($place, ?n) AND ?n > $least", **values) == [
        ("size('it''s', ?1) AND ?1 > 5", "size('it''s', ?1)")
    ]


def test_a_text_is_read_as_what_it_was_written_from() -> None:
    for predicate, evaluation in texts("size('a $x ?y', ?n) AND ?n != 1.5 AND way(?a, <urn:b>, 2004-01-31)"):
        for text in (predicate, evaluation):
            assert texts(str(text))[0][0] == text


def test_what_is_known_at_once_is_a_leaf_of_its_own() -> None:
    assert texts("topic = 'x' AND locIn(Bronx)") == [
        ("locIn('Bronx')", "locIn('Bronx')"),
        ("topic = 'x'", None),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("locIn(Bronx) AND locIn(Queens)", ["AND2"]),
        ("locIn(Bronx)", ["AND1"]),
        ("NOT locIn(Bronx)", ["AND1"]),
        ("locIn(a) OR locIn(b) OR topic = 'x'", ["AND1", "OR3"]),
        ("locIn(a) AND NOT (locIn(b) OR locIn(c))", ["AND2", "!OR2"]),
        ("NOT (locIn(a) AND count(?n) AND ?n > 1)", ["AND1", "!AND2"]),
        # Each binds its own: nothing to join.
        ("count(?n) AND ?n > 1 AND size(a, ?m)", ["AND2"]),
        # A variable of two calls, or a condition on two variables of different calls.
        ("count(?n) AND size(a, ?n)", ["AND?2"]),
        ("count(?n) AND size(a, ?m) AND ?n > ?m", ["AND?2"]),
        ("locIn(b) OR (count(?n) AND size(a, ?n))", ["AND1", "OR2", "AND?2"]),
        # What is asked hangs on another call.
        ("count(?n) AND locIn(?n)", ["AND?1"]),
    ],
)
def test_gates(text: str, expected: list[str]) -> None:
    assert gates(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("locIn(?x)", ["AND?0"]),
        ("count(?x)", ["AND?1"]),
        ("count(?n) AND size(a, ?x)", ["AND?2"]),
        ("locIn(Bronx) AND locIn(?x)", ["AND?1"]),
        ("locIn(Bronx) OR locIn(?x)", ["AND?0"]),
        ("locIn(Bronx)", ["AND1"]),
        ("NOT locIn(?x)", ["AND?0"]),
        # Inside, nothing that hangs on triples can be confirmed: the root does it.
        ("locIn(a) AND (locIn(b) OR (locIn(c) AND count(?x)))", ["AND?2", "OR2", "AND2"]),
    ],
)
def test_gates_beside_triples(text: str, expected: list[str]) -> None:
    assert gates(text, "x") == expected


def test_calls_that_are_no_leaves() -> None:
    made = program("count(?n) AND locIn(?n) AND (locIn(b) OR size(?n, 3))")
    # One of the OR cannot be asked beforehand: so neither truth is necessary, nor enough.
    assert [text.filled({}) for text in made.others] == ["locIn(?n)", "locIn('b')", "size(?n, 3)"]
    assert [leaf.predicate.filled({}) for leaf in made.leaves] == ["count(?1)"]
    assert program("locIn(a) OR NOT count(?n)").others == []


def test_names_of_what_is_told() -> None:
    assert [leaf.names for leaf in program("pair(?x, 5) AND locIn(a)").leaves] == [("x", ""), ()]
    assert [leaf.names for leaf in program("pair(?x, ?y)", select=["y"]).leaves] == [("", "y")]


def test_what_a_program_says_of_itself() -> None:
    made = program("locIn(a) AND locIn(b)")
    assert (made.is_plain, made.binds, made.joins) == (True, False, False)
    made = program("count(?n) AND ?n > 1", "s")
    assert (made.is_plain, made.binds, made.joins) == (True, True, False)
    made = program("locIn(?s)", "s")
    assert (made.is_plain, made.binds, made.joins) == (False, True, True)
    assert not program("locIn(a) OR locIn(b)").is_plain


def test_parents_come_before_their_children() -> None:
    made = program("locIn(a) OR (locIn(b) AND (locIn(c) OR NOT (locIn(d) AND locIn(e))))")
    assert all(gate.parent < number for number, gate in enumerate(made.gates))
    sizes = [0] * len(made.gates)
    for gate in made.gates[1:]:
        sizes[gate.parent] += 1
    for leaf in made.leaves:
        sizes[leaf.gate] += 1
    assert sizes == [gate.size for gate in made.gates]
