"""The definition says what is written here by hand, what a database says, and what holds whatever was unknown."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import duckdb
import pytest
from hypothesis import given

from tests.examples import examples, seeds
from tests.kinds.operators import cases
from tests.kinds.operators.cases import Case
from tests.kinds.operators.sql import load, to_sql
from tidings.errors import SubscriptionError
from tidings.kinds.operators import naive
from tidings.kinds.operators.functions.operator import Out, operator
from tidings.kinds.operators.functions.outcome import Outcome
from tidings.kinds.operators.naive import Unknown
from tidings.language import conditions
from tidings.language.parser import parse
from tidings.language.query import And, Call, Condition, Not, Or
from tidings.model.terms import Iri, Literal

DATABASES, WORLDS, EXAMPLES = 3, 40, 50
# What the toy operators say: a list of values or of rows, True, False, or an error's text.
Says = Mapping[str, Any]


@operator
def locIn(event, place): ...
@operator
def locWithin(event, place, metres: float): ...
@operator
def chasePattern(event, chaser, chased): ...
@operator
def trafficPattern(event, kind): ...
@operator
def mobPattern(event, people: Out[int]): ...
@operator
def pedestrianCount(event, people: Out[int]): ...
@operator
def policeCarCount(event, cars: Out[int]): ...
@operator
def tourBoatCount(event, boats: Out[int]): ...
@operator
def coastGuardBoatCount(event, boats: Out[int]): ...
@operator
def distanceFrom(event, place, metres: Out[float]): ...
@operator
def pair(event, one: Out, other: Out): ...
@operator
def p(event): ...
@operator
def q(event): ...


OPERATORS = {name: found for name, found in globals().items() if type(found).__name__ == "Operator"}


def ask(text: str, says: Says, binding: Mapping[str, Any] | None = None, **attributes: Any) -> list[Any]:
    """The solutions of a text, certain ones as bindings, others as (binding, doubt)."""
    found = _solved(parse(f"WHERE {text}").where, says, binding or {}, attributes)
    return [s.binding if s.doubt is None else tuple(s) for s in found]


def verdict(text: str, says: Says, **attributes: Any) -> str | None:
    arguments = _means(says, attributes)
    return naive.verdict(parse(f"WHERE {text}").where, {}, *arguments).verdict


def _solved(
    condition: Condition, says: Says, binding: Mapping[str, Any], attributes: Any
) -> list[naive.Solution]:
    return list(naive.solve(condition, binding, *_means(says, attributes)))


def _means(says: Says, attributes: Mapping[str, Any]) -> Any:
    def answer(call: Call, inputs: tuple[Any, ...]) -> Outcome:
        found = OPERATORS[call.name]
        key = (call.name, *found.read_inputs(inputs))
        said = says.get(" ".join(map(str, key)), says.get(call.name, False))
        return Outcome(error=said) if isinstance(said, str) else Outcome.of(found, said)

    def holds(leaf: Any, binding: Mapping[str, Any]) -> bool:
        return conditions.holds(leaf, attributes, binding)

    return OPERATORS.__getitem__, answer, holds


PAPER = [
    (
        "{locIn(Bronx), chasePattern(policeCar,anyCar)}",
        {"locIn Bronx": True, "chasePattern policeCar anyCar": True},
        {"locIn Queens": True, "chasePattern policeCar anyCar": True},
        {},
    ),
    (
        "{locIn(Bronx), mobPattern(?people), (?people>50)}",
        {"locIn Bronx": True, "mobPattern": [20, 60]},
        {"locIn Bronx": True, "mobPattern": [20, 50]},
        {"people": 60},
    ),
    (
        "{locWithin(TimesSquare,5000m), trafficPattern(congestion), pedestrianCount(?ped), (?ped>250)}",
        {"locWithin TimesSquare 5000.0": True, "trafficPattern congestion": True, "pedestrianCount": [251]},
        {"locWithin TimesSquare 5000.0": True, "trafficPattern accident": True, "pedestrianCount": [251]},
        {"ped": 251},
    ),
    (
        "{locIn(Bronx), trafficPattern(congestion), trafficPattern(accident), policeCarCount(?pol), (?pol<2)}",
        {"locIn": True, "trafficPattern": True, "policeCarCount": [1]},
        {"locIn": True, "trafficPattern congestion": True, "policeCarCount": [1]},
        {"pol": 1},
    ),
    (
        "{distanceFrom(StatueOfLiberty,?x), (?x<1000m), tourBoatCount(?y), coastGuardBoatCount(?z), (?y>2*?z)}",
        {"distanceFrom": [5000.0, 700.5], "tourBoatCount": [3, 5], "coastGuardBoatCount": [2]},
        {"distanceFrom": [700.5], "tourBoatCount": [3, 5], "coastGuardBoatCount": [3]},
        {"x": 700.5, "y": 5, "z": 2},
    ),
]


@pytest.mark.parametrize(("text", "yes", "no", "binding"), PAPER)
def test_the_papers_subscriptions(text: str, yes: Says, no: Says, binding: dict[str, Any]) -> None:
    where = parse(text).where
    assert _solved(where, yes, {}, {}) == [(binding, None)]
    assert _solved(where, no, {}, {}) == []


def test_calls_join_by_value_and_all_solutions_are_found() -> None:
    assert ask("pair(?x,?y)", {"pair": [(1, 2), (3, 4)]}) == [{"x": 1, "y": 2}, {"x": 3, "y": 4}]
    assert ask("pair(?x,?x)", {"pair": [(1, 2), (3, 3)]}) == [{"x": 3}]
    assert ask("pair(2,?x)", {"pair": [(1, 2), (2, 5), ("2", 6)]}) == [{"x": 5}, {"x": 6}]
    assert ask("pair(Bronx,?x)", {"pair": [("Bronx", 1), ("Queens", 2)]}) == [{"x": 1}]
    shared = {"pair": [(1, 2), (3, 4)], "mobPattern": [4, 5]}
    assert ask("pair(?x,?y) AND mobPattern(?y)", shared) == [{"x": 3, "y": 4}]
    assert ask("pair(?x,?y) AND mobPattern(?z) AND ?z = ?x + 1", shared) == [{"x": 3, "y": 4, "z": 4}]


def test_a_variable_of_a_triple_is_an_input_or_is_joined() -> None:
    says = {"locIn urn:bronx": True, "mobPattern": [7, 8]}
    bound = {"place": Iri("urn:bronx"), "n": Literal("8")}
    assert ask("locIn(?place) AND mobPattern(?n)", says, bound) == [bound]
    assert ask("locIn(?place)", says, {"place": Iri("urn:queens")}) == []


def test_a_call_comes_after_those_that_bind_its_inputs() -> None:
    says = {"locIn 2": True, "locIn 3": True, "mobPattern": [1, 2, 3]}
    for text in ("locIn(?x) AND mobPattern(?x)", "mobPattern(?x) AND locIn(?x)"):
        assert ask(text, says) == [{"x": 2}, {"x": 3}]
    assert ask("(locIn(?x) OR a = 1) AND ?x < 3 AND mobPattern(?x)", says) == [{"x": 2}]
    assert ask("(locIn(?x) OR a = 1) AND ?x < 3 AND mobPattern(?x)", says, a=1) == [
        {"x": 1},
        {"x": 2},
        {"x": 2},
    ]


def test_a_test_in_an_or_sees_what_is_bound_beside_it() -> None:
    text = "((p() AND ?x > 1) OR q()) AND mobPattern(?x)"
    assert ask(text, {"p": True, "mobPattern": [1, 2]}) == [{"x": 2}]
    assert ask(text, {"q": True, "mobPattern": [1, 2]}) == [{"x": 1}, {"x": 2}]
    # What nothing binds satisfies nothing.
    assert ask("(mobPattern(?x) OR p()) AND ?x > 1", {"p": True, "mobPattern": [1]}) == []
    assert ask("(mobPattern(?x) OR p()) AND NOT ?x > 1", {"p": True, "mobPattern": [2]}) == [{}]


def test_not_asks_whether_there_is_no_solution() -> None:
    says = {"mobPattern": [1, 2], "policeCarCount": [2]}
    assert ask("NOT (mobPattern(?x) AND ?x > 2)", says) == [{}]
    assert ask("NOT (mobPattern(?x) AND ?x > 1)", says) == []
    assert ask("mobPattern(?x) AND NOT policeCarCount(?x)", says) == [{"x": 1}]
    assert ask("mobPattern(?x) AND NOT (policeCarCount(?y) AND ?y > ?x)", says) == [{"x": 2}]
    assert ask("NOT NOT mobPattern(?x)", says) == [{}]


def test_cheap_conditions_and_calls_in_one() -> None:
    assert ask("topic = 'x' OR locIn(Bronx)", {}, topic="x") == [{}]
    assert ask("topic = 'x' OR locIn(Bronx)", {"locIn Bronx": True}, topic="y") == [{}]
    assert ask("topic = 'x' AND locIn(Bronx)", {"locIn Bronx": True}, topic="y") == []
    assert ask("mobPattern(?x) AND ?x > least", {"mobPattern": [1, 5]}, least=3) == [{"x": 5}]


def test_what_a_failing_call_leaves_unknown() -> None:
    down = {"mobPattern": "down", "policeCarCount": [3], "q": "late", "p": True}
    assert ask("mobPattern(?x)", down) == [({"x": Unknown("down")}, "down")]
    assert ask("mobPattern(?x) AND ?x > 5", down) == [({"x": Unknown("down")}, "down")]
    # Whatever mobPattern would have said, it has to be 3.
    for text in ("mobPattern(?x) AND policeCarCount(?x)", "policeCarCount(?x) AND mobPattern(?x)"):
        assert ask(text, down) == [({"x": 3}, "down")]
        assert ask(f"{text} AND ?x > 5", down) == []
    # What an unknown input would give is unknown too.
    assert ask("mobPattern(?x) AND distanceFrom(?x,?y) AND ?y > 1", {**down, "distanceFrom": [0.5]}) == [
        ({"x": Unknown("down"), "y": Unknown("down")}, "down")
    ]
    assert ask("mobPattern(?x) AND NOT policeCarCount(?x)", down) == [({"x": Unknown("down")}, "down")]
    assert ask("mobPattern(?x) AND (?x > 5 AND a = 1)", down, a=2) == []
    assert ask("NOT (q() AND mobPattern(?x))", down) == [({}, "late")]


def test_the_error_told_is_one_that_matters() -> None:
    says = {"mobPattern": "down", "p": False, "q": "late"}
    where = parse("WHERE (mobPattern(?x) AND p()) OR q()").where
    assert naive.verdict(where, {}, *_means(says, {})) == ("undecided", None, "late")


KLEENE = [True, "down", False]


@pytest.mark.parametrize("one", KLEENE)
@pytest.mark.parametrize("other", KLEENE)
def test_kleenes_tables(one: bool | str, other: bool | str) -> None:
    order = {False: 0, "down": 1, True: 2}
    said = [None, "undecided", "match"]
    says = {"p": one, "q": other}
    assert verdict("p() AND q()", says) == said[min(order[one], order[other])]
    assert verdict("p() OR q()", says) == said[max(order[one], order[other])]
    assert verdict("NOT p()", says) == said[2 - order[one]]


def test_an_input_that_nothing_binds_is_refused() -> None:
    find = OPERATORS.__getitem__

    def check(text: str, *bound: str) -> frozenset[str]:
        return naive.check_inputs(parse(f"WHERE {text}").where, frozenset(bound), find)

    assert check("locIn(?x) AND mobPattern(?x)") == {"x"}
    assert check("distanceFrom(?y,?z) AND distanceFrom(?x,?y) AND mobPattern(?x)") == {"x", "y", "z"}
    assert check("locIn(?x)", "x") == {"x"}
    assert check("(mobPattern(?x) OR policeCarCount(?x)) AND locIn(?x)") == {"x"}
    assert check("mobPattern(?x) AND NOT (distanceFrom(?x,?y) AND locIn(?y))") == {"x"}
    for text, name in (
        ("locIn(?x)", "x"),
        ("distanceFrom(?x,?x)", "x"),
        ("distanceFrom(?x,?y) AND distanceFrom(?y,?x)", "x"),
        ("(mobPattern(?x) OR p()) AND locIn(?x)", "x"),
        ("NOT mobPattern(?y) AND locIn(?y)", "y"),
        ("mobPattern(?x) OR locIn(?x)", "x"),
    ):
        with pytest.raises(SubscriptionError, match=rf"\?{name} is an input of .*binds"):
            check(text)


def test_a_wide_condition_is_no_deep_recursion() -> None:
    wide = And(tuple(Call("p", ()) for _ in range(3_000)))
    assert _solved(wide, {"p": True}, {}, {}) == [({}, None)]


def test_a_join_that_would_never_end_is_in_doubt() -> None:
    says = {"mobPattern": list(range(300)), "policeCarCount": list(range(300))}
    where = parse("WHERE mobPattern(?x) AND policeCarCount(?y) AND ?x + ?y < 0").where
    found = naive.verdict(where, {}, *_means(says, {}))
    assert found.verdict == "undecided"
    assert "too many" in (found.message or "")
    assert verdict("NOT (mobPattern(?x) AND policeCarCount(?y) AND ?x + ?y < 0)", says) == "undecided"
    assert verdict("mobPattern(?x) AND policeCarCount(?y) AND ?x + ?y > 280", says) == "match"


@pytest.mark.parametrize("seed", seeds(1, DATABASES))
def test_the_definition_agrees_with_a_database(seed: int) -> None:
    rng = random.Random(seed)
    connection = duckdb.connect()
    found = []
    for _ in range(10):
        case = Case(rng, subscriptions=12, events=1, depth=2, failing=0)
        load(connection, case, 0)
        tests = ", ".join(to_sql(condition, case.attributes[0]) for condition in case.conditions)
        said = connection.execute(f"SELECT {tests}").fetchall()[0]
        found += said
        for i, condition in enumerate(case.conditions):
            assert (case.verdict(i, 0) == "match") == said[i], condition
    assert 0.15 < sum(found) / len(found) < 0.85


def test_the_definition_agrees_with_a_database_on_the_unknown() -> None:
    """NULL is what SQL calls unknown."""
    rng = random.Random(7)
    case = Case(rng, subscriptions=0, events=20, failing=0.3)
    case.conditions = [cases.closed(rng, rng.choice([1, 2, 3, 4])) for _ in range(50)]
    words = {True: "match", None: "undecided", False: None}
    verdicts = set()
    for n in range(len(case.attributes)):
        tests = ", ".join(f"({_truth_sql(condition, case, n)})" for condition in case.conditions)
        said = duckdb.execute(f"SELECT {tests}").fetchall()[0]
        assert [case.verdict(i, n) for i in range(50)] == [words[one] for one in said]
        verdicts.update(said)
    assert verdicts == {True, None, False}


def _truth_sql(condition: Condition, case: Case, n: int) -> str:
    if isinstance(condition, Call):
        outcome = case.answer(n)(condition, condition.arguments)
        return "NULL::BOOLEAN" if outcome.error is not None else str(bool(outcome.rows))
    if isinstance(condition, Not):
        return f"NOT ({_truth_sql(condition.part, case, n)})"
    assert isinstance(condition, And | Or)
    word = " AND " if isinstance(condition, And) else " OR "
    return word.join(f"({_truth_sql(part, case, n)})" for part in condition.parts)


@pytest.mark.parametrize("seed", seeds(15, WORLDS))
def test_what_is_certain_holds_whatever_the_failed_would_have_said(seed: int) -> None:
    known = Case(random.Random(seed), failing=0.25)
    for world in range(4):
        other = Case(random.Random(seed), failing=0.25, world=world)
        assert other.conditions == known.conditions
        for i in range(len(known.conditions)):
            for n in range(len(known.attributes)):
                _assert_stands(known, other, i, n)


def _assert_stands(known: Case, other: Case, i: int, n: int) -> None:
    then = [solution.binding for solution in other.solutions(i, n)]
    found = list(known.solutions(i, n))
    for solution in found:
        if solution.doubt is None:
            assert solution.binding in then, known.conditions[i]
    if not found:
        assert not then, known.conditions[i]


@examples(EXAMPLES)
@given(cases.CASES)
def test_the_order_of_parts_changes_no_verdict(case: Case) -> None:
    events = range(len(case.attributes))
    conditions = case.conditions
    before = [case.verdict(i, n) for i in range(len(conditions)) for n in events]
    case.conditions = [_turned(condition) for condition in conditions]
    after = [case.verdict(i, n) for i in range(len(conditions)) for n in events]
    assert before == after, conditions


def _turned(condition: Condition) -> Condition:
    if isinstance(condition, And | Or):
        return type(condition)(tuple(_turned(part) for part in reversed(condition.parts)))
    return Not(_turned(condition.part)) if isinstance(condition, Not) else condition
