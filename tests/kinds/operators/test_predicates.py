"""What an engine learns of predicates, against a plain restatement: counts, means, and sights that grow old."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.kinds.operators.rows import Asked, Tree, find, table_of
from tidings.kinds.operators.functions.operator import Out, operator
from tidings.kinds.operators.functions.outcome import Outcome
from tidings.kinds.operators.kernels.choosing import COST_WEIGHT, OPERATOR_MEMORY
from tidings.kinds.operators.kernels.layout import FALSE, TRUE, UNKNOWN
from tidings.kinds.operators.kernels.opening import FIRST_GUESS, GUESS_WEIGHT, HALF_LIFE
from tidings.kinds.operators.predicates import BoundCall, Predicates
from tidings.kinds.operators.scheduling.docket import Docket
from tidings.kinds.operators.table import OperatorTable
from tidings.language.parser import parse
from tidings.model.event import Event

EVALUATIONS = [f"p({n})" for n in range(3)] + ["q(0)"]
# Two predicates on each evaluation.
ASKED = [Asked(f"{name} {truth}", name) for name in EVALUATIONS for truth in "ab"]
EVENTS = 120


@dataclass
class Ledger:
    """What is known of a predicate, an evaluation or an operator, event by event and never summed."""

    sights: list[tuple[float, bool]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    wanted: int = 0
    failures: int = 0

    def mean(self, first: float | None = None) -> float:
        """The mean of all times, in which one counts COST_WEIGHT at least; `first` is a guess before them."""
        found = first or 0.0
        for number, time in enumerate(self.times, 1):
            found += max(COST_WEIGHT, 0.0 if first else 1.0 / number) * (time - found)
        return found

    def selectivity(self, now: float, guess: float) -> float:
        weights = [2.0 ** ((then - now) / HALF_LIFE) for then, _ in self.sights]
        hits = sum(weight for weight, (_, held) in zip(weights, self.sights, strict=True) if held)
        if not weights:
            return guess
        return (hits + guess * GUESS_WEIGHT) / (sum(weights) + GUESS_WEIGHT)


def ask(table: OperatorTable, truths: dict[str, int], seconds: dict[str, float]) -> Docket:
    """An event: all rows are opened, some evaluations are settled."""
    table.predicates.events += 1.0
    docket = Docket(table, np.arange(len(table), dtype=np.int32))
    texts = table.predicates.texts
    for ev in range(docket.ev_count):
        name = table.predicates.evaluation_texts[int(docket.arrays.ev_id[ev])]
        if name not in seconds:
            continue
        preds = docket.predicates(ev)
        answered = [truths[texts[number]] for number in docket.arrays.pred_id[preds].tolist()]
        docket.arrays.pred["truth"][preds] = answered
        value = UNKNOWN if UNKNOWN in answered else 0
        docket.settle(np.array([ev], np.int32), np.array([value]), np.array([seconds[name]]))
    return docket


@pytest.mark.parametrize("seed", range(3))
def test_what_is_learnt_is_what_a_plain_count_says(seed: int) -> None:
    rng = random.Random(f"learnt {seed}")
    table = table_of([Tree(children=[one]) for one in ASKED])
    predicates = table.predicates
    ledgers = {name: Ledger() for name in [*predicates.texts, *EVALUATIONS, "p", "q"]}
    for _ in range(EVENTS):
        failed = {name for name in EVALUATIONS if rng.random() < 0.1}
        truths = {
            one.predicate: UNKNOWN if one.evaluation in failed else rng.choice([TRUE, FALSE, FALSE])
            for one in ASKED
        }
        seconds = {name: rng.uniform(1e-3, 2e-2) for name in EVALUATIONS if rng.random() < 0.7}
        docket = ask(table, truths, seconds)
        now = predicates.events
        for number, text in zip(docket.arrays.pred_id.tolist(), predicates.texts, strict=True):
            ledger, name = ledgers[text], EVALUATIONS[number // 2]
            own = ledgers[name[0]]
            held = [was for _, was in own.sights]
            guess = (sum(held) + FIRST_GUESS) / (len(held) + 1)
            assert docket.arrays.pred["p"][number] == pytest.approx(ledger.selectivity(now, guess), rel=1e-4)
            cost = ledgers[name].mean() if ledgers[name].times else own.mean(find(name[0]).cost)
            assert docket.arrays.pred["cost"][number] == pytest.approx(cost, rel=1e-4)
            ledger.wanted += 1
        for name, took in seconds.items():
            ledgers[name].times.append(took)
            ledgers[name[0]].times.append(took)
            ledgers[name].failures += name in failed
            for text in () if name in failed else (f"{name} a", f"{name} b"):
                ledgers[text].sights.append((now, truths[text] == TRUE))
                ledgers[name[0]].sights.append((now, truths[text] == TRUE))
    learnt = predicates.learnt
    of_predicates = [ledgers[text] for text in predicates.texts]
    assert learnt.wanted.tolist() == [ledger.wanted for ledger in of_predicates] == [EVENTS] * len(ASKED)
    assert learnt.told.tolist() == [len(ledger.sights) for ledger in of_predicates]
    assert learnt.held.tolist() == [sum(held for _, held in ledger.sights) for ledger in of_predicates]
    of_evaluations = [ledgers[text] for text in predicates.evaluation_texts]
    assert learnt.calls.tolist() == [len(ledger.times) for ledger in of_evaluations]
    assert learnt.failures.tolist() == [ledger.failures for ledger in of_evaluations]
    assert learnt.seconds == pytest.approx(np.array([ledger.mean() for ledger in of_evaluations]))
    assert learnt.operator_trials.tolist() == [len(ledgers[name].sights) for name in "pq"]


def estimate(table: OperatorTable, predicate: int = 0) -> float:
    return float(Docket(table, np.arange(len(table), dtype=np.int32)).arrays.pred["p"][predicate])


def test_an_estimate_follows_a_change_of_truth() -> None:
    table = table_of([Tree(children=[Asked("p(1)", "p(1)")])])
    for truth in (TRUE, FALSE):
        for _ in range(400):
            ask(table, {"p(1)": truth}, {"p(1)": 1e-3})
        assert estimate(table) == pytest.approx(1.0 if truth == TRUE else 0.0, abs=0.1)
    # Half of what it was told before counts when as many events have come by.
    for _ in range(int(HALF_LIFE)):
        ask(table, {"p(1)": TRUE}, {"p(1)": 1e-3})
    assert estimate(table) == pytest.approx(0.5, abs=0.05)


def test_an_estimate_returns_to_its_operator_when_nothing_is_told_for_long() -> None:
    table = table_of([Tree(children=[Asked(f"p({n})", f"p({n})")]) for n in range(11)])
    usual = {f"p({n})": FALSE for n in range(1, 11)}
    for _ in range(50):
        ask(table, {"p(0)": TRUE, **usual}, dict.fromkeys(["p(0)", *usual], 1e-3))
    assert estimate(table) > 0.85
    for _ in range(int(10 * HALF_LIFE)):
        ask(table, usual, {})
    assert estimate(table) == pytest.approx(1 / 11, abs=0.05)


def test_an_unknown_predicate_is_like_others_of_its_operator() -> None:
    table = table_of([Tree(children=[Asked(f"p({n})", f"p({n})")]) for n in range(5)])
    assert estimate(table) == FIRST_GUESS
    for _ in range(50):
        ask(table, {f"p({n})": TRUE for n in range(1, 5)}, {f"p({n})": 5e-3 for n in range(1, 5)})
    assert estimate(table) > 0.95
    docket = Docket(table, np.arange(5, dtype=np.int32))
    assert docket.arrays.pred["cost"][0] == pytest.approx(5e-3, rel=0.05)


def test_an_operator_forgets_by_halves() -> None:
    table = table_of([Tree(children=[Asked("p(1)", "p(1)")])])
    table.predicates.learnt.operator_trials[0] = OPERATOR_MEMORY
    table.predicates.learnt.operator_hits[0] = 10.0
    ask(table, {"p(1)": FALSE}, {"p(1)": 1e-3})
    assert table.predicates.learnt.operator_trials[0] == (OPERATOR_MEMORY + 1) / 2
    assert table.predicates.learnt.operator_hits[0] == 5.0


@operator
def near(event: Event, place: str, metres: float) -> bool:
    return True


@operator
def pair(event: Event, one: Out[int], other: Out[int]) -> list[tuple[int, int]]:
    return []


def named() -> Predicates:
    """Predicates that are read from their texts; in a table they are known by their rows."""
    made = Predicates({"near": near, "pair": pair}.__getitem__)
    made.condition_of = lambda number: parse(f"WHERE {made.texts[number]}").where
    made.call_of = lambda number: parse(f"WHERE {made.evaluation_texts[number]}").where
    return made


def test_numbers_are_given_once() -> None:
    predicates = named()
    first = predicates.number("pair(?1, ?2)", "pair(?1, ?2)")
    second = predicates.number("pair(?1, ?1)", "pair(?1, ?2)")
    third = predicates.number("topic = 'x'", None)
    assert [first, second, third, predicates.number("pair(?1, ?1)", "pair(?1, ?2)")] == [0, 1, 2, 1]
    assert predicates.pred_eval.all.tolist() == [0, 0, -1]
    assert (len(predicates), predicates.checked) == (3, {0})
    assert {len(column) for column in predicates.learnt[:6]} == {3}
    assert predicates.learnt.operator_seconds.tolist() == [pair.cost]


def test_a_question_has_the_values_that_a_function_gets() -> None:
    predicates = named()
    predicates.number("near('Bronx', 5000)", "near('Bronx', 5000)")
    assert predicates.bound_call(0) == (near, ("Bronx", 5000.0))
    assert predicates.bound_call(0) is predicates.bound_call(0)


def test_checks_of_predicates() -> None:
    predicates = named()
    evaluation = "pair(?1, ?2)"
    plain, twice, constant, test, both = (
        predicates.number(text, evaluation)
        for text in (
            evaluation,
            "pair(?1, ?1)",
            "pair(7, ?1)",
            "pair(?1, ?2) AND ?2 > 5",
            "pair(?1, ?2) AND ?2 > ?1",
        )
    )
    assert predicates.check(plain) is None
    simple = {number: predicates.check(number).simple for number in (twice, constant, test, both)}  # type: ignore[union-attr]
    assert simple[twice] is None
    assert simple[both] is None
    assert [(position, op, term.text) for position, op, term in simple[constant] or ()] == [(0, "=", "7")]  # type: ignore[union-attr]
    assert [(position, op, term.text) for position, op, term in simple[test] or ()] == [(1, ">", "5")]  # type: ignore[union-attr]
    truths = predicates.truths(np.array([plain, twice, constant, test, both]), [(7, 5), (1, 6)])
    assert truths.tolist() == [TRUE, 0, TRUE, TRUE, 0]


def test_what_has_no_number_is_counted_by_its_operator() -> None:
    predicates = named()
    for outcome, seconds in ((Outcome(((),)), 0.5), (Outcome(), 0.25), (Outcome(error="down"), 1.0)):
        predicates.count(BoundCall(near, ("a", 1.0)), outcome, seconds)
    counts = predicates.unnumbered["near"]
    assert (counts.calls, counts.hits, counts.failures, counts.seconds) == (3, 1, 1, 1.75)


def test_frozen_predicates_are_the_same_when_thawed() -> None:
    table = table_of([Tree(children=[one]) for one in ASKED])
    ask(table, {one.predicate: TRUE for one in ASKED}, dict.fromkeys(EVALUATIONS, 2e-3))
    again = Predicates.thaw(table.predicates.freeze(), find)
    assert again.texts == table.predicates.texts
    assert again.checked == table.predicates.checked
    assert again.events == table.predicates.events
    for name, column in table.predicates.learnt._asdict().items():
        assert getattr(again.learnt, name).tolist() == column.tolist()
    other = Predicates(find)
    other.number("p(1) b", "p(1)")
    other.recall(table.predicates)
    assert (other.learnt.told.tolist(), other.learnt.calls.tolist()) == ([1.0], [1.0])
