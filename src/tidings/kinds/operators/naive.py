"""Defines what a condition with operators means: slow, obvious, complete.

A condition is solved by evaluating its calls: each row of an outcome binds the variables in the call's Out arguments,
and a solution is a binding that satisfies the condition. A call that fails is unknown: solutions that need it are
*in doubt*, and the values of its variables are unknown. AND, OR and NOT over the unknown are Kleene's. Sub-Order 2.2,
with OR, NOT and operators that fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tidings.errors import SubscriptionError
from tidings.kinds.operators.functions.operator import Operator
from tidings.kinds.operators.functions.outcome import Outcome
from tidings.language.printer import condition_text
from tidings.language.query import (
    And,
    Call,
    Condition,
    Constant,
    Leaf,
    Not,
    Or,
    Parameter,
    Variable,
    has_calls,
    variables,
)
from tidings.model import values

MAX_STEPS = 20_000
OUT_OF_STEPS = "its operators bind too many values that do not go together; make the condition more specific"
Binding = Mapping[str, Any]
Find = Callable[[str], Operator]
Answer = Callable[[Call, tuple[Any, ...]], Outcome]
"""The outcome of a call whose inputs are these: its constants, and what its variables are bound to."""
Holds = Callable[[Leaf, Binding], bool]
"""Whether a leaf that is no call holds under a binding."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The value of a variable that a failed call should have bound."""

    error: str


_NOTHING = Unknown("")


class Solution(NamedTuple):
    """`doubt` is the error that leaves it uncertain, None if it is certain; only then is nothing in it unknown."""

    binding: Binding
    doubt: str | None = None


class Verdict(NamedTuple):
    """`verdict` is "match" with the first certain binding, "undecided" with an error, or None: no match."""

    verdict: str | None
    binding: Binding | None = None
    message: str | None = None


def verdict(condition: Condition, binding: Binding, find: Find, answer: Answer, holds: Holds) -> Verdict:
    """The verdict on an event: a match if there is a certain solution, undecided if all solutions are in doubt."""
    return Solver(find, answer, holds).verdict(condition, binding)


def solve(
    condition: Condition, binding: Binding, find: Find, answer: Answer, holds: Holds
) -> Iterator[Solution]:
    """The extensions of `binding` under which `condition` holds; repeated if found in several ways.

    After MAX_STEPS the last one is in doubt, whatever more there may be.
    """
    return Solver(find, answer, holds).solve(condition, binding)


class Solver:
    """Solves conditions; counts its steps, so that no event keeps it busy for ever."""

    def __init__(self, find: Find, answer: Answer, holds: Holds) -> None:
        self.find, self.answer, self.holds = find, answer, holds
        self.steps = 0

    def verdict(self, condition: Condition, binding: Binding) -> Verdict:
        doubt: str | None = None
        for solution in self.solve(condition, binding):
            if solution.doubt is None:
                return Verdict("match", solution.binding)
            doubt = first_of(doubt, solution.doubt)
        return Verdict(None) if doubt is None else Verdict("undecided", message=doubt)

    def solve(self, condition: Condition, binding: Binding) -> Iterator[Solution]:
        ways: list[tuple[tuple[Condition, ...], Solution]] = [((condition,), Solution(binding))]
        while ways:
            parts, so_far = ways.pop()
            if not parts:
                yield so_far
                continue
            self.steps += 1
            if self.steps > MAX_STEPS:
                yield Solution(binding, OUT_OF_STEPS)
                return
            position = self._next(parts, so_far.binding)
            part, rest = parts[position], parts[:position] + parts[position + 1 :]
            if isinstance(part, And):
                ways.append(((*sorted(part.parts, key=has_calls), *rest), so_far))
            elif isinstance(part, Or) and has_calls(part):
                ways += [((alternative, *rest), so_far) for alternative in reversed(part.parts)]
            else:
                found = list(self.alone(part, so_far.binding))
                ways += [
                    (rest, Solution(s.binding, first_of(so_far.doubt, s.doubt))) for s in reversed(found)
                ]

    def _next(self, parts: tuple[Condition, ...], binding: Binding) -> int:
        """The position of the part of a conjunction that is evaluated next.

        The meaning needs no more than calls before tests and calls after those that bind their inputs. A test that
        can be decided is decided at once, because it may spare a call; tests stand before calls for that.
        """
        best, position = 9, 0
        for i, part in enumerate(parts):
            when = self.turn(part, binding)
            if when == 0:
                return i
            if when < best:
                best, position = when, i
        return position

    def turn(self, part: Condition, binding: Binding) -> int:
        """The rank of a part in the order of evaluation: decidable tests, choices, calls with unknown inputs, the rest."""
        if isinstance(part, And):
            return 0
        if isinstance(part, Call):
            inputs = self.find(part.name).inputs_of(part)
            values = [binding.get(i.name, ...) for i in inputs if isinstance(i, Variable)]
            if ... in values:
                return 3
            return 2 if any(isinstance(value, Unknown) for value in values) else 0
        if has_calls(part):
            return 1 if isinstance(part, Or) else 4
        known = all(not isinstance(binding.get(v.name, _NOTHING), Unknown) for v in variables(part))
        return 0 if known else 4

    def alone(self, part: Condition, binding: Binding) -> Iterator[Solution]:
        """The solutions of one part of a conjunction: a call, a NOT over calls, or a test."""
        if isinstance(part, Call):
            yield from self.called(part, binding)
        elif isinstance(part, Not) and has_calls(part):
            against = self.verdict(part.part, binding)
            if against.verdict != "match":
                yield Solution(binding, against.message)
        else:
            truth = truth_of(part, binding, self.holds)
            if truth is not False:
                yield Solution(binding, truth if isinstance(truth, str) else None)

    def called(self, call: Call, binding: Binding) -> Iterator[Solution]:
        operator = self.find(call.name)
        inputs = tuple(binding[i.name] if isinstance(i, Variable) else i for i in operator.inputs_of(call))
        outs = operator.outs_of(call)
        errors = [value.error for value in inputs if isinstance(value, Unknown)]
        outcome = Outcome((), errors[0]) if errors else self.answer(call, inputs)
        if outcome.error is not None:
            unknown = {out.name: Unknown(outcome.error) for out in outs if isinstance(out, Variable)}
            yield Solution({**unknown, **binding}, outcome.error)
            return
        for row in outcome.rows:
            if (joined := join(outs, row, binding)) is not None:
                yield joined


def join(outs: Sequence[Variable | Constant], row: Sequence[Any], binding: Binding) -> Solution | None:
    """The binding extended by a row of a call's Out arguments; None if they do not agree."""
    bound, doubt = dict(binding), None
    for out, value in zip(outs, row, strict=True):
        if isinstance(out, Variable):
            before = bound.setdefault(out.name, value)
            if isinstance(before, Unknown):
                # It may have been this very value.
                bound[out.name], doubt = value, first_of(doubt, before.error)
            elif not values.compare_values(before, "=", value):
                return None
        elif isinstance(out, Parameter) or not values.compare(value, "=", out):
            return None
    return Solution(bound, doubt)


def truth_of(test: Condition, binding: Binding, holds: Holds) -> bool | str:
    """Kleene's truth of a condition without calls: true, false, or the error because of which it is unknown."""
    if isinstance(test, Not):
        truth = truth_of(test.part, binding, holds)
        return truth if isinstance(truth, str) else not truth
    if isinstance(test, And | Or):
        settles = isinstance(test, Or)
        truths = [truth_of(part, binding, holds) for part in test.parts]
        return settles if settles in truths else next((t for t in truths if isinstance(t, str)), not settles)
    for variable in variables(test):
        if isinstance(value := binding.get(variable.name), Unknown):
            return value.error
    return holds(test, binding)


def first_of(doubt: str | None, other: str | None) -> str | None:
    return other if doubt is None else doubt


def check_inputs(condition: Condition, bound: frozenset[str], find: Find) -> frozenset[str]:
    """Refuses a call with an input that nothing binds; returns the variables that are bound by every solution."""
    if not has_calls(condition):
        return bound
    if isinstance(condition, Call):
        for variable in find(condition.name).inputs_of(condition):
            if isinstance(variable, Variable) and variable.name not in bound:
                raise SubscriptionError(
                    f"?{variable.name} is an input of {condition_text(condition)}, and nothing beside it binds "
                    f"?{variable.name} before; add a triple or a call that does, or give a constant"
                )
        return bound | {
            out.name for out in find(condition.name).outs_of(condition) if isinstance(out, Variable)
        }
    if isinstance(condition, Or):
        return frozenset.intersection(*(check_inputs(part, bound, find) for part in condition.parts))
    if isinstance(condition, Not):
        check_inputs(condition.part, bound, find)
        return bound
    waiting = list(condition.parts) if isinstance(condition, And) else []
    while waiting:
        refused: list[tuple[Condition, SubscriptionError]] = []
        for part in waiting:
            try:
                bound |= check_inputs(part, bound, find)
            except SubscriptionError as error:
                refused.append((part, error))
        if len(refused) == len(waiting):
            raise refused[0][1]
        waiting = [part for part, _ in refused]
    return bound
