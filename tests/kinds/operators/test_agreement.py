"""Whoever decides a condition with operators decides as the definition does, and asks for each evaluation once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples, seeds
from tests.kinds.operators import cases
from tests.kinds.operators.cases import Case, split, verdict_of
from tidings.kinds.operators.binding_join import Joiner, Unasked
from tidings.kinds.operators.evaluator import Decided, Evaluator
from tidings.kinds.operators.functions.caller import Caller
from tidings.kinds.operators.functions.outcome import Outcome
from tidings.kinds.operators.kernels.layout import FALSE, TRUE, UNKNOWN
from tidings.kinds.operators.naive import Binding, Solution, Verdict
from tidings.kinds.operators.program import Program, compile_program
from tidings.kinds.operators.scheduling.schedulers import Adaptive, Naive, Scheduler, Sequential, SubOrder
from tidings.kinds.operators.table import OperatorTable
from tidings.language.parser import parse
from tidings.language.printer import to_text
from tidings.language.query import Call, Condition, Leaf, Query, leaves, variables
from tidings.model.event import Event

SCHEDULERS: list[Callable[[], Scheduler]] = [Adaptive, SubOrder, Sequential, Naive]
# Ten subscriptions and two events a case.
SEEDS = seeds(1, 8)
CASES = 15
FEWER_CASES = 10
EXAMPLES = 25
_TRUTH = {"match": 1.0, "undecided": 0.5, None: 0.0}


def test_random_conditions_can_be_written() -> None:
    """What `cases` makes up is in reach of the language, so that it may be given to an engine as texts."""
    for seed in range(CASES):
        case = Case(random.Random(seed), triples=0.3)
        before = [case.verdict(i, 0) for i in range(len(case.conditions))]
        # An AND in an AND is read as one.
        case.conditions = [parse(text).where for text in case.texts]
        assert [parse(text).where for text in case.texts] == case.conditions
        assert [case.verdict(i, 0) for i in range(len(case.conditions))] == before


@pytest.mark.parametrize("seed", SEEDS)
def test_gates_and_their_confirmations_say_what_the_definition_says(seed: int) -> None:
    for number in range(FEWER_CASES):
        case = Case(random.Random(f"{seed} {number}"), failing=[0, 0.1, 0.4][number % 3], triples=0.4)
        for condition, n in product(case.conditions, range(len(case.attributes))):
            for triples, rest in split(condition):
                bindings = case.bindings(triples, n)
                solutions = [found for binding in bindings for found in case.solved(rest, binding, n)]
                outer = frozenset().union(*map(variables, triples))
                program = compile_program(rest, outer, case.operators.__getitem__)
                truth = _by_gates(program, case, n, bindings)
                assert not bindings or truth == _TRUTH[verdict_of(solutions)], to_text(Query(condition))


@pytest.mark.parametrize(
    "calls",
    [
        "(meet(?w, Bronx, ?z) AND way(a, ?z, ?x) AND size(?y, 1)) OR busy()",
        "(meet(?w, Bronx, ?z) AND NOT count(?z)) OR busy()",
        "(meet(?w, Bronx, ?z) AND (near(?z) OR NOT people(?z))) OR busy()",
    ],
)
def test_parts_that_hang_on_triples_or_on_a_sibling_leave_no_empty_gate(calls: str) -> None:
    """What looks at `?z` does not look at what triples bind, and yet cannot be asked before `meet`."""
    case = Case(random.Random(0), subscriptions=0)
    ((triples, rest),) = split(parse(f"WHERE (?s, p, ?w), (?s, p, ?y) AND ({calls})").where)
    program = compile_program(rest, frozenset().union(*map(variables, triples)), case.operators.__getitem__)
    assert all(gate.size or gate.confirmed for gate in program.gates)


def _by_gates(program: Program, case: Case, n: int, bindings: list[dict[str, Any]]) -> float:
    """The truth of a program's root, by those of its leaves: 0, 1 or, if it is unknown, a half.

    What triples bind is seen by the confirmation of the root alone.
    """

    def known(condition: Condition, bindings: Iterable[dict[str, Any]] = ({},)) -> float:
        solutions = (found for binding in bindings for found in case.solved(condition, binding, n))
        return _TRUTH[verdict_of(solutions)]

    def gate(number: int) -> float:
        own = program.gates[number]
        children = [
            abs(leaf.negated - known(_read(leaf.predicate.filled({}))))
            for leaf in program.leaves
            if leaf.gate == number
        ]
        children += [
            abs(other.negated - gate(i)) for i, other in enumerate(program.gates) if other.parent == number
        ]
        assert len(children) == own.size
        assert children or own.confirmed, "a gate that nothing would decide"
        if own.is_or:
            return max(children)
        least = min(children, default=1.0)
        if not own.confirmed or not least:
            return least
        return known(own.condition, bindings if number == 0 else ({},))

    return gate(0)


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_that_come_one_by_one_end_in_the_same_verdict(seed: int) -> None:
    for number in range(FEWER_CASES):
        case = Case(random.Random(f"{seed} {number}"), failing=[0, 0.1, 0.4][number % 3], triples=0.3)
        for condition, n in product(case.conditions, range(len(case.attributes))):
            for triples, rest in split(condition):
                for binding in case.bindings(triples, n):
                    found = _one_by_one(case, rest, binding, n)
                    solutions = list(case.solved(rest, binding, n))
                    assert found.verdict == verdict_of(solutions), to_text(Query(condition))
                    certain = [solution.binding for solution in solutions if solution.doubt is None]
                    assert found.verdict != "match" or found.binding in certain, to_text(Query(condition))


def _one_by_one(case: Case, condition: Condition, binding: dict[str, Any], n: int) -> Verdict:
    known: dict[Any, Outcome] = {}

    def answer(call: Call, inputs: tuple[Any, ...]) -> Outcome:
        if (call.name, inputs) not in known:
            raise Unasked((call, inputs))
        return known[call.name, inputs]

    while True:
        try:
            return Joiner(case.operators.__getitem__, answer, case.holds(n)).verdict(condition, binding)
        except Unasked as missing:
            call, inputs = missing.bound_call
            assert (call.name, inputs) not in known
            known[call.name, inputs] = case.answer(n)(call, inputs)


@pytest.mark.parametrize("seed", SEEDS)
def test_schedulers_agree_with_the_definition(seed: int) -> None:
    for number in range(CASES):
        case = Case(
            random.Random(f"{seed} {number}"),
            subscriptions=10,
            failing=[0, 0.1, 0.4][number % 3],
            triples=0.3,
            mixed=number % 4 == 0,
        )
        solved: Solved = {}
        for scheduler in SCHEDULERS:
            assert_agrees(case, scheduler(), number % 2 == 0, solved)


@examples(EXAMPLES)
@given(cases.CASES, st.sampled_from(SCHEDULERS), st.booleans())
def test_schedulers_agree_with_the_definition_on_anything(
    case: Case, scheduler: Callable[[], Scheduler], every: bool
) -> None:
    assert_agrees(case, scheduler(), every, {})


Solved = dict[tuple[int, int], list[Solution]]


def assert_agrees(case: Case, scheduler: Scheduler, every: bool, solved: Solved) -> None:
    """Each way has the verdict of the definition, one or all of its bindings, one of its errors.

    Nothing was asked twice. `solved` keeps what the definition says, by row and event, for the next scheduler.
    """
    case.asked.clear()
    words = {TRUE: "match", UNKNOWN: "undecided", FALSE: None}
    for decided in decide(case, scheduler, every):
        asked = decided.case
        assert isinstance(asked, Asked)
        for position, row in enumerate(asked.rows.tolist()):
            condition, bindings = asked.programs[row].condition, asked.bindings(position)
            what = f"{to_text(Query(condition))} on event {asked.n} under {bindings}"
            if (row, asked.n) not in solved:
                solved[row, asked.n] = [s for one in bindings for s in case.solved(condition, one, asked.n)]
            solutions = solved[row, asked.n]
            verdict = words[int(decided.truth[position])]
            assert verdict == verdict_of(solutions), what
            if verdict == "undecided":
                # Which one of several that failed is not said.
                names = [leaf.name for leaf in leaves(condition) if isinstance(leaf, Call)]
                assert any(f"{name} is down" in decided.messages[position] for name in names), what
            elif verdict == "match" and variables(condition):
                found = decided.solutions[position]
                certain = [s.binding for s in solutions if s.doubt is None]
                assert all(binding in certain for binding in found), what
                assert all(binding in found for binding in certain) if every else len(found) == 1, what
    once = {1, 2} if case.mixed else {1}  # a batch that fails is asked one by one
    assert set(case.asked.values()) <= once


@dataclass(frozen=True)
class Asked:
    """An event, and the ways of subscriptions whose triples it has."""

    case: Case
    n: int
    programs: list[Program]
    bound: dict[int, list[dict[str, Any]]]

    @property
    def event(self) -> Event:
        return self.case.event(self.n)

    twins = ()

    @property
    def rows(self) -> np.ndarray:
        return np.array(list(self.bound), dtype=np.int32)

    def holds(self, leaf: Leaf, binding: Binding) -> bool:
        return self.case.holds(self.n)(leaf, binding)

    def program(self, position: int) -> Program:
        return self.programs[int(self.rows[position])]

    def bindings(self, position: int) -> list[dict[str, Any]]:
        return self.bound[int(self.rows[position])]


def decide(case: Case, scheduler: Scheduler, every: bool) -> list[Decided]:
    """Decides everything of a case with the parts that an engine uses."""
    find = case.operators.__getitem__
    table, programs = OperatorTable(find), []
    asked: list[Asked] = [Asked(case, n, programs, {}) for n in range(len(case.attributes))]
    for triples, rest in (way for condition in case.conditions for way in split(condition)):
        programs.append(compile_program(rest, frozenset().union(*map(variables, triples)), find))
        row = table.add(programs[-1], table.read(programs[-1], {}))
        for one in asked:
            if bindings := case.bindings(triples, one.n):
                one.bound[row] = bindings
    caller = Caller()
    try:
        decided = list(Evaluator(table, scheduler, caller).check(asked, every))
    finally:
        caller.close()
    assert len(decided) == len(asked)
    return decided


@cache
def _read(text: str) -> Condition:
    return parse(f"WHERE {text}").where
