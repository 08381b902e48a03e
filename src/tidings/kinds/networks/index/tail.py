"""Evaluates expressions that are newer than the index, when an event reaches them.

A second, small index covers most of them and is rebuilt when their number has grown by half; the newest are evaluated
one by one. An event is read for this index only when it reaches such an expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.kinds.filters.naive import matches
from tidings.kinds.networks.expressions import Expressions
from tidings.kinds.networks.index.filing import ExpressionIndex, choose_rows

if TYPE_CHECKING:
    from threading import RLock

_FEW = 64


class Tail:
    """Expressions by number: those evaluated so far, and which of them the small index covers."""

    def __init__(self, expressions: Expressions, lock: RLock) -> None:
        self._expressions, self._lock = expressions, lock
        self._known: dict[int, None] = {}
        self._expression_index: ExpressionIndex | None = None
        self._covered: frozenset[int] = frozenset()

    def accepts(self, event: Mapping[str, Any], wheres: list[int]) -> list[bool]:
        """Whether each expression, given by its number, accepts an event."""
        with self._lock:
            self._known.update(dict.fromkeys(wheres))
            if len(self._known) > _FEW + 1.5 * len(self._covered):
                numbers = np.fromiter(self._known, dtype=np.int32)
                self._expression_index = ExpressionIndex(
                    choose_rows(self._expressions.table, numbers), numbers
                )
                self._covered = frozenset(self._known)
            held: set[int] = set()
            if self._expression_index is not None and not self._covered.isdisjoint(wheres):
                held = set(self._expression_index.matching(event).tolist())
            covered = self._covered
        condition = self._expressions.condition
        return [where in held if where in covered else matches(condition(where), event) for where in wheres]
