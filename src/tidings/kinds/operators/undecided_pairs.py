"""Holds the undecided pairs of one event, and makes the bindings of those that operators found true.

A pair is the event with a way of a subscription; the evaluator names it by its position among the pairs of the event.
Pairs that differ only in what triples have bound are one position with several bindings.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from tidings.model.terms import Triple, value_text

if TYPE_CHECKING:
    from tidings.kinds.operators.kind import OperatorChecker

_UNBOUND: tuple[Binding, ...] = ({},)


class EventCase:
    """One event and its undecided pairs, as the evaluator takes them (`Case`)."""

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
        """The positions of each subscription that has several."""
        subscription = self._pairs.subscription
        if np.all(subscription[1:] > subscription[:-1]):  # as ways come that every event is a candidate for
            return []
        _, inverse, counts = np.unique(subscription, return_inverse=True, return_counts=True)
        positions: dict[int, list[int]] = {}
        for position in np.flatnonzero(counts[inverse] > 1).tolist():
            positions.setdefault(int(inverse[position]), []).append(position)
        return list(positions.values())

    def owner(self, position: int) -> tuple[int, int]:
        """The subscription and the way at a position."""
        return int(self._pairs.subscription[position]), int(self._pairs.way[position])

    def program(self, position: int) -> Program:
        return self._checker.table.program(int(self.rows[position]))

    def bindings(self, position: int) -> Sequence[Binding]:
        """What triples have bound, in one way or several."""
        found = self._bindings.get(position)
        if found is None:
            number = int(self._pairs.binding[position])
            if number < 0:
                found = _UNBOUND
            else:
                numbers = self._more.get(position, [number])
                found = [self._batch.bindings.terms(number) for number in numbers]
            self._bindings[position] = found
        return found

    def solutions(self, decided: Decided, position: int) -> list[dict[str, str]]:
        """The bindings that a true pair reports to its subscription: the first, or all of them."""
        found = self.bindings(position)
        found = decided.solutions.get(position, found if self._batch.every else found[:1])
        names = None
        if found is not _UNBOUND and position not in decided.selected:
            select = self._checker.table.conditions.template_of(int(self.rows[position])).select
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
    numbers of all their bindings by the position of the first."""
    bound = np.flatnonzero(pairs.binding >= 0)
    if not len(bound):
        return None, {}
    key = pairs.subscription[bound].astype(np.int64) << 16 | pairs.way[bound]
    _, first, group, counts = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    more: dict[int, list[int]] = {}
    for i in np.flatnonzero(counts[group] > 1).tolist():
        more.setdefault(int(group[i]), []).append(int(pairs.binding[bound[i]]))
    return np.concatenate([bound[first], np.flatnonzero(pairs.binding < 0)]), more


class Solutions:
    """The bindings that matches report, with the variables that calls have bound."""

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
