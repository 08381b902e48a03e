"""One event with the pairs that operators have to decide for it, and the bindings that their answers give."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tidings.kinds.operators.evaluator import Decided
from tidings.kinds.operators.naive import Binding
from tidings.kinds.operators.program import Program
from tidings.language import conditions
from tidings.language.query import IsA, Leaf, Parameter
from tidings.model.batch import Batch
from tidings.model.notification import BINDINGS
from tidings.model.pairs import Pairs
from tidings.model.terms import Blank, Iri, Literal, Triple, plain

if TYPE_CHECKING:
    from tidings.kinds.operators.kind import OperatorChecker

_UNBOUND: tuple[Binding, ...] = ({},)


class EventCase:
    """One event and all that it may match: a place is a way of a subscription, with all that triples have bound."""

    def __init__(self, checker: OperatorChecker, batch: Batch, pairs: Pairs, rows: np.ndarray) -> None:
        self._checker, self._batch, self.number = checker, batch, int(pairs.event[0])
        self.event = batch.event(self.number)
        first, self._more = _grouped(pairs)
        self._pairs = pairs if first is None else pairs.take(first)
        self.rows = (rows if first is None else rows[first]).astype(np.int32)
        self.twins = [] if batch.every else self._twins()
        self._graph: list[Triple] | None = None
        self._bindings: dict[int, Sequence[Binding]] = {}

    def _twins(self) -> list[list[int]]:
        """The places of subscriptions that have several here."""
        subscription = self._pairs.subscription
        if np.all(subscription[1:] > subscription[:-1]):  # as ways come that every event is a candidate for
            return []
        _, inverse, counts = np.unique(subscription, return_inverse=True, return_counts=True)
        places: dict[int, list[int]] = {}
        for place in np.flatnonzero(counts[inverse] > 1).tolist():
            places.setdefault(int(inverse[place]), []).append(place)
        return list(places.values())

    def owner(self, place: int) -> tuple[int, int]:
        """The subscription and the way of a place."""
        return int(self._pairs.subscription[place]), int(self._pairs.way[place])

    def program(self, place: int) -> Program:
        return self._checker.table.program(int(self.rows[place]))

    def bindings(self, place: int) -> Sequence[Binding]:
        """What triples have bound, in one way or several."""
        found = self._bindings.get(place)
        if found is None:
            number = int(self._pairs.binding[place])
            if number < 0:
                found = _UNBOUND
            else:
                numbers = self._more.get(place, [number])
                found = [self._batch.bindings.terms(number) for number in numbers]
            self._bindings[place] = found
        return found

    def solutions(self, decided: Decided, place: int) -> list[dict[str, str]]:
        """What the subscription of a true place is told of its variables: once, or once for every binding."""
        found = self.bindings(place)
        found = decided.solutions.get(place, found if self._batch.every else found[:1])
        names = None
        if found is not _UNBOUND and place not in decided.told:
            select = self._checker.table.conditions.template_of(int(self.rows[place])).select
            names = None if select is None else {variable.name for variable in select}
        return [
            {name: value_text(value) for name, value in binding.items() if names is None or name in names}
            for binding in found
        ]

    def holds(self, leaf: Leaf, binding: Binding) -> bool:
        """Decides conditions without calls."""
        attributes = self._batch.attributes(self.number) or {}
        return conditions.holds(leaf, attributes, binding, lambda asked: self._is_a(asked, binding))

    def _is_a(self, leaf: IsA, binding: Binding) -> bool:
        term = binding.get(leaf.operand.name)
        if term is None or isinstance(leaf.cls, Parameter):
            return False
        if self._graph is None:
            has_patterns = bool(np.any(self._pairs.binding >= 0))
            self._graph = list(self._batch.triples(self.number)) if has_patterns else []
        return self._checker.taxonomy.is_a_in(self._graph, term, leaf.op, leaf.cls.value)


def _grouped(pairs: Pairs) -> tuple[np.ndarray | None, dict[int, list[int]]]:
    """The first pair of every subscription and way, None if that is all of them; and, where there are several, the
    numbers of all their bindings by the place of the first."""
    bound = np.flatnonzero(pairs.binding >= 0)
    if not len(bound):
        return None, {}
    key = pairs.subscription[bound].astype(np.int64) << 16 | pairs.way[bound]
    _, first, place, counts = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    more: dict[int, list[int]] = {}
    for i in np.flatnonzero(counts[place] > 1).tolist():
        more.setdefault(int(place[i]), []).append(int(pairs.binding[bound[i]]))
    return np.concatenate([bound[first], np.flatnonzero(pairs.binding < 0)]), more


class Solutions:
    """What subscriptions are told of variables that calls have bound."""

    def __init__(self) -> None:
        self._texts: list[dict[str, str]] = []

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, texts: dict[str, str]) -> int:
        self._texts.append(texts)
        return len(self._texts) - 1

    def terms(self, number: int) -> dict[str, Any]:
        raise LookupError("what operators have bound is text already")

    def texts(self, numbers: np.ndarray) -> pa.MapArray:
        return pa.array([list(self._texts[i].items()) for i in numbers.tolist()], BINDINGS)


def value_text(value: object) -> str:
    """What a variable is bound to, for people to read."""
    if isinstance(value, Iri | Literal | Blank):
        return plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, date) else str(value)
