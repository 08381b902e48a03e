"""Decides all predicates at once that compare one bound number with a constant.

`count(?n) AND ?n > 10`, with another number in each of ten thousand subscriptions, is one evaluation and ten thousand
predicates: columns are compared instead of a loop. Only where doubles represent both numbers exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tidings.arrays.growing import Growing
from tidings.kinds.operators.kernels.layout import FALSE, TRUE
from tidings.model.terms import Iri, Literal
from tidings.model.values import NUMBER, constant_view

_MOST_ROWS = 16
_EXACT = 1 << 53
_NEW, _OTHER, _ANY, _FIRST = 0, 1, 2, 3
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_OPERATORS = list(_COMPARE)


class Thresholds:
    """The kind of each predicate, determined when it is first evaluated."""

    def __init__(self) -> None:
        self._kind = Growing(np.int8)
        self._position = Growing(np.int16)
        self._bound = Growing(np.float64)

    def grow(self, count: int) -> None:
        """Makes room for `count` predicates."""
        new = count - len(self._kind)
        if new > 0:
            for column in (self._kind, self._position, self._bound):
                column.extend(np.zeros(new))

    def unknown(self, predicates: np.ndarray) -> np.ndarray:
        """The predicates among these whose kind is not known yet."""
        return predicates[self._kind.all[predicates] == _NEW]

    def note(self, predicate: int, tests: Sequence[tuple[int, str, Iri | Literal]] | None) -> None:
        """Records what a predicate requires: comparisons of Out arguments with constants, nothing, or (None) anything else."""
        self._kind.all[predicate] = _OTHER
        if tests is not None and not tests:
            self._kind.all[predicate] = _ANY
        elif tests is not None and len(tests) == 1:
            ((position, op, constant),) = tests
            view = constant_view(constant)
            if view is not None and view[0] == NUMBER and _is_exact(view[1]):
                self._kind.all[predicate] = _FIRST + _OPERATORS.index(op)
                self._position.all[predicate] = position
                self._bound.all[predicate] = float(view[1])

    def truths(self, predicates: np.ndarray, rows: Sequence[tuple[Any, ...]]) -> np.ndarray:
        """The truths of predicates for the rows of an answer; 0 for those that must be decided one by one."""
        kind = self._kind.all[predicates]
        truths = np.where(kind == _ANY, TRUE, 0).astype(np.uint8)
        if len(rows) > _MOST_ROWS:
            return truths
        position, bound = self._position.all[predicates], self._bound.all[predicates]
        for at in range(len(rows[0])):
            column = [row[at] for row in rows]
            if not all(_is_plain(value) for value in column):
                continue
            for number, compare in enumerate(_COMPARE.values()):
                matching = np.flatnonzero((kind == _FIRST + number) & (position == at))
                if len(matching):
                    held = np.logical_or.reduce([compare(float(value), bound[matching]) for value in column])
                    truths[matching] = np.where(held, TRUE, FALSE)
        return truths


def _is_plain(value: object) -> bool:
    """Whether a value is only a number, and a double represents it."""
    return type(value) is float or (type(value) is int and abs(value) <= _EXACT)


def _is_exact(number: Fraction) -> bool:
    """Whether a number is what its double is written as, which is what a double counts for (values.py)."""
    try:
        return Fraction(repr(float(number))) == number
    except OverflowError:
        return False
