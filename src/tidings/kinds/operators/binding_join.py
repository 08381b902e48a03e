"""Joins bindings and checks conditions on them while some evaluations have not been made.

The same as the definition (naive.py), except that an evaluation may be missing: then other alternatives, and other parts
of the same one, are tried first, and the evaluation is requested only if nothing else decides. Sub-Order 2.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tidings.kinds.operators.naive import (
    MAX_STEPS,
    OUT_OF_STEPS,
    Binding,
    Solution,
    Solver,
    first_of,
)
from tidings.kinds.operators.predicates import BoundCall
from tidings.language.query import And, Condition, Or, has_calls


class Unasked(Exception):
    """An evaluation is needed that was not made yet: an operator and its inputs."""

    def __init__(self, bound_call: BoundCall) -> None:
        super().__init__()
        self.bound_call = bound_call


class _Way(NamedTuple):
    """One alternative: the parts that have to hold, the first missing evaluation, and the solutions so far."""

    parts: tuple[Condition, ...]
    late: Unasked | None
    so_far: Solution


class Joiner(Solver):
    """Its `answer` may raise `Unasked`."""

    def solve(self, condition: Condition, binding: Binding) -> Iterator[Solution]:
        """The solutions of the definition in another order; raises `Unasked` after those that need no further answer."""
        ways = [_Way((condition,), None, Solution(binding))]
        unasked: Unasked | None = None
        while ways:
            parts, late, so_far = ways.pop()
            turns = [self.turn(part, so_far.binding) for part in parts]
            # A test whose variable waits for an answer, or a call of which an input does, has to wait as well.
            if late is not None and min(turns, default=3) >= 3:
                unasked = unasked or late
                continue
            if not parts:
                yield so_far
                continue
            self.steps += 1
            if self.steps > MAX_STEPS:
                yield Solution(binding, OUT_OF_STEPS)
                return
            position = turns.index(min(turns))
            part, rest = parts[position], parts[:position] + parts[position + 1 :]
            if isinstance(part, And):
                ways.append(_Way((*sorted(part.parts, key=has_calls), *rest), late, so_far))
            elif isinstance(part, Or) and has_calls(part):
                ways += [_Way((alternative, *rest), late, so_far) for alternative in reversed(part.parts)]
            else:
                try:
                    found = list(self.alone(part, so_far.binding))
                except Unasked as missing:
                    ways.append(_Way(rest, late or missing, so_far))
                    continue
                ways += [
                    _Way(rest, late, Solution(s.binding, first_of(so_far.doubt, s.doubt)))
                    for s in reversed(found)
                ]
        if unasked is not None:
            raise unasked
