"""Operators whose first argument is one of a known set of names: of places, or of keyword sets.

An unknown name is refused when the subscription is added, not at the first event.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tidings.errors import SubscriptionError, did_you_mean
from tidings.kinds.operators.functions.operator import Operator
from tidings.language.query import Call
from tidings.model.terms import Iri, Literal

SHOWN = 10


class KnownNames:
    """The names that there are, numbered in the order given; `kind` says what they are names of."""

    def __init__(self, kind: str, names: Iterable[str]) -> None:
        self.kind = kind
        self.numbers = {name: number for number, name in enumerate(names)}

    def __getitem__(self, name: str) -> int:
        """The number of a name; a `SubscriptionError` if it is none of them."""
        number = self.numbers.get(name)
        if number is None:
            known = list(self.numbers)
            rest = ", …" if len(known) > SHOWN else ""
            advice = did_you_mean(name, known, f"there are {', '.join(known[:SHOWN])}{rest}")
            raise SubscriptionError(f"unknown {self.kind} {name!r}; {advice}")
        return number


@dataclass(frozen=True, eq=False)
class NamingOperator(Operator):
    """An operator whose first argument, where it is a constant, is one of the names."""

    names: KnownNames = field(kw_only=True, repr=False)

    def check(self, call: Call) -> None:
        super().check(call)
        first = call.arguments[0]
        if isinstance(first, Iri | Literal):
            self.names[self.parameters[0].read(first)]

    def __reduce__(self) -> tuple[Any, ...]:
        made = partial(NamingOperator, names=self.names)
        return made, (self.name, self.function, self.cost, self.timeout, self.retries, self.batch)
