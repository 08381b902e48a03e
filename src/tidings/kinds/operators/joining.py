"""Bindings joined and conditions on them checked, while some answers are not there yet.

The same as the definition (naive.py), except that an evaluation may not have been asked for: then other ways, and other
parts of the same way, are tried first, and only what nothing else settles asks for it. Sub-Order 2.2.
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
from tidings.kinds.operators.predicates import Question
from tidings.language.query import And, Condition, Or, has_calls


class Unasked(Exception):
    """What is needed and was not asked yet: an operator and its inputs."""

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.question = question


class _Way(NamedTuple):
    """Parts that have to hold, the first answer that others wait for, and what holds so far."""

    parts: tuple[Condition, ...]
    late: Unasked | None
    so_far: Solution


class Joiner(Solver):
    """Its `answer` may raise `Unasked`."""

    def solve(self, condition: Condition, binding: Binding) -> Iterator[Solution]:
        """The solutions of the definition in another order; `Unasked` comes after those that can be told without."""
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
            place = turns.index(min(turns))
            part, rest = parts[place], parts[:place] + parts[place + 1 :]
            if isinstance(part, And):
                ways.append(_Way((*sorted(part.parts, key=has_calls), *rest), late, so_far))
            elif isinstance(part, Or) and has_calls(part):
                ways += [_Way((one, *rest), late, so_far) for one in reversed(part.parts)]
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
