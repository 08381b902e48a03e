"""Decides the conditions of one event for an explanation: with the same scheduler and operators, and a record of every call.

It starts from what was learnt, so that the calls are those of a subscription alone; what is learnt here is discarded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

import numpy as np

from tidings.errors import SubscriptionError
from tidings.kinds.operators.binding_join import Joiner, Unasked
from tidings.kinds.operators.evaluator import Decided, Evaluator, key_of
from tidings.kinds.operators.functions.caller import Answer, Caller, Request
from tidings.kinds.operators.functions.outcome import Outcome
from tidings.kinds.operators.naive import Binding, Holds
from tidings.kinds.operators.predicates import BoundCall
from tidings.kinds.operators.program import Program
from tidings.kinds.operators.table import OperatorTable
from tidings.language.query import Call, Leaf
from tidings.model.event import Event


class DryRun:
    """The results of operators for one event; nothing is called before `decide`."""

    def __init__(self, evaluator: Evaluator, event: Event, holds: Holds) -> None:
        self.find = evaluator.table.find
        self.event, self.holds = event, holds
        self._evaluator, self._notes = evaluator, _Notes(evaluator.caller)

    def decide(self, programs: Sequence[Program], bindings: Sequence[Sequence[Binding]]) -> Decided:
        """The truth of each program, under what triples have bound for it."""
        table = OperatorTable(self.find)
        rows = np.array([table.add(program, table.read(program, {})) for program in programs], dtype=np.int32)
        table.predicates.recall(self._evaluator.table.predicates)
        aside = Evaluator(table, copy(self._evaluator.scheduler), self._notes)
        (decided,) = aside.check([_Case(self, rows, programs, bindings)])
        return decided

    def answer(self, call: Call, inputs: tuple[Any, ...]) -> Answer | None:
        """What a call with these inputs was answered, and how long it took; None if it was not made."""
        operator = self.find(call.name)
        try:
            bound_call = BoundCall(operator, operator.read_inputs(inputs))
        except SubscriptionError:
            return Answer(None, Outcome(), 0.0)  # like a comparison with a value of another type
        return self._notes.answers.get(key_of(bound_call))

    def joiner(self) -> Joiner:
        """Joins what was answered; raises `Unasked` where an answer is missing."""
        return Joiner(self.find, self._outcome, self.holds)

    def _outcome(self, call: Call, inputs: tuple[Any, ...]) -> Outcome:
        answer = self.answer(call, inputs)
        if answer is None:
            operator = self.find(call.name)
            raise Unasked(BoundCall(operator, operator.read_inputs(inputs)))
        return answer.outcome


class _Case:
    def __init__(
        self,
        trial: DryRun,
        rows: np.ndarray,
        programs: Sequence[Program],
        bindings: Sequence[Sequence[Binding]],
    ) -> None:
        self.event, self.rows = trial.event, rows
        self.twins: Sequence[Sequence[int]] = ()
        self._trial, self._programs, self._bindings = trial, programs, bindings

    def holds(self, leaf: Leaf, binding: Binding) -> bool:
        return self._trial.holds(leaf, binding)

    def program(self, position: int) -> Program:
        return self._programs[position]

    def bindings(self, position: int) -> Sequence[Binding]:
        return self._bindings[position]


class _Notes(Caller):
    """Calls by another caller, whose threads and connections exist already, and records the answers."""

    def __init__(self, caller: Caller) -> None:
        super().__init__()
        self.answers: dict[object, Answer] = {}
        self._caller = caller
        self._submitted: list[Request] = []

    def run(self, requests: Sequence[Request]) -> list[Answer]:
        answers = self._caller.run(requests)
        for request, answer in zip(requests, answers, strict=True):
            self.answers[key_of(BoundCall(request.operator, request.inputs))] = answer
        return answers

    def submit(self, requests: Iterable[Request]) -> None:
        self._submitted += requests

    def collect(self) -> list[Answer]:
        submitted, self._submitted = self._submitted, []
        return self.run(submitted)
