"""Whoever decides a condition with operators decides as the definition does, and asks for each evaluation once."""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import cache
from itertools import product
from typing import Any

import pytest

from tests.operators.cases import Case, split, verdict_of
from tidings.language.parser import parse
from tidings.language.printer import to_text
from tidings.language.query import Call, Condition, Query, variables
from tidings.operators.joining import Joiner, Unasked
from tidings.operators.naive import Verdict
from tidings.operators.outcome import Outcome
from tidings.operators.program import Program, compile_program

_TRUTH = {"match": 1.0, "undecided": 0.5, None: 0.0}


def test_random_conditions_can_be_written() -> None:
    """What `cases` makes up is in reach of the language, so that it may be given to an engine as texts."""
    for seed in range(60):
        case = Case(random.Random(seed), triples=0.3)
        before = [case.verdict(i, 0) for i in range(len(case.conditions))]
        # An AND in an AND is read as one.
        case.conditions = [parse(text).where for text in case.texts]
        assert [parse(text).where for text in case.texts] == case.conditions
        assert [case.verdict(i, 0) for i in range(len(case.conditions))] == before


@pytest.mark.parametrize("seed", range(10))
def test_gates_and_their_confirmations_say_what_the_definition_says(seed: int) -> None:
    for number in range(30):
        case = Case(random.Random(f"{seed} {number}"), failing=[0, 0.1, 0.4][number % 3], triples=0.2)
        for condition, n in product(case.conditions, range(len(case.attributes))):
            for triples, rest in split(condition):
                bindings = case.bindings(triples, n)
                solutions = [found for binding in bindings for found in case.solved(rest, binding, n)]
                outer = frozenset().union(*map(variables, triples))
                program = compile_program(rest, outer, case.operators.__getitem__)
                truth = _by_gates(program, case, n, bindings)
                assert not bindings or truth == _TRUTH[verdict_of(solutions)], to_text(Query(condition))


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
        if own.is_or:
            return max(children)
        least = min(children, default=1.0)
        if not own.confirmed or not least:
            return least
        return known(own.condition, bindings if number == 0 else ({},))

    return gate(0)


@pytest.mark.parametrize("seed", range(5))
def test_answers_that_come_one_by_one_end_in_the_same_verdict(seed: int) -> None:
    for number in range(30):
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
            call, inputs = missing.question
            assert (call.name, inputs) not in known
            known[call.name, inputs] = case.answer(n)(call, inputs)


@cache
def _read(text: str) -> Condition:
    return parse(f"WHERE {text}").where
