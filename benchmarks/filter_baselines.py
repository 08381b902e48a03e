"""What the filters are compared with: the interval algorithm over posting lists, and one-by-one evaluation.

Both work on the integer form of a workload and are compiled the way our own loops are. The posting lists are by
attribute and value, so a range is in as many lists as it has values; a negated predicate holds whenever its attribute
is there and is cancelled by the values it names.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from benchmarks import interval_kernels as kernels
from benchmarks.expression_kernels import MISSING, Trees
from benchmarks.filter_workloads import Compiled, Events, Ints, Workload
from benchmarks.interval_kernels import Lines, Postings


class Contender(Protocol):
    """What can be timed: `prepare` brings the first events into the form that `match` takes."""

    def prepare(self, workload: Workload, count: int) -> Any: ...

    def match(self, prepared: Any) -> Ints:
        """Pairs (event, expression)."""


class _OnIntegers:
    def prepare(self, workload: Workload, count: int) -> Events:
        return workload.events[:count]


class OneByOne(_OnIntegers):
    """Every expression's short-circuit code for every event."""

    def __init__(self, workload: Workload) -> None:
        self._code = Compiled.of(workload)
        self._out = np.empty((0, 2), np.int32)

    def match(self, prepared: Events) -> Ints:
        found = self._code.matches(prepared, out=self._out)
        if len(found) > len(self._out):
            self._out = np.empty((len(found), 2), np.int32)
        return found


class Code(NamedTuple):
    """Short-circuit code, for expressions with more leaves than a mask has bits."""

    trees: Trees
    leaf: npt.NDArray[np.int64]
    on_true: Ints
    on_false: Ints


class Interval(_OnIntegers):
    """Counting with intervals: the k-index of conjunctions, extended to any expression."""

    def __init__(self, workload: Workload) -> None:
        code, trees = Compiled.of(workload), workload.expressions.trees
        count, dimensions = len(workload.expressions), len(workload.names.attributes)
        self._cardinality = max(len(values) for values in workload.names.values)
        lines = Lines(
            code.first,
            np.zeros(len(code.leaf), np.int16),
            np.zeros(len(code.leaf), np.int16),
            np.zeros(count, np.int16),
        )
        stack = np.zeros((1 + int(trees.size[workload.expressions.first[:-1]].max()), 7), np.int64)
        kernels.draw_lines(workload.expressions.first, trees, lines, stack)
        keys = (dimensions * self._cardinality, dimensions * self._cardinality, dimensions)
        lists = [
            Postings(np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint8)) for n in keys
        ]
        kernels.post(code.leaf, code.first, trees, self._cardinality, *lists, False)
        lists = [_allocated(lengths.first) for lengths in lists]
        kernels.post(code.leaf, code.first, trees, self._cardinality, *lists, True)
        for each in lists:  # filling has moved every list's beginning to its end
            each.first[1:] = each.first[:-1].copy()
            each.first[0] = 0
        self._index = (*lists, lines, Code(trees, code.leaf, code.on_true, code.on_false))
        self._scratch = (
            np.zeros(count, np.uint64),
            np.zeros(count, np.int32),
            np.full(dimensions, MISSING, np.int16),
        )
        self._out = np.empty((0, 2), np.int32)

    def match(self, prepared: Events) -> Ints:
        while True:
            found = kernels.match(
                prepared.attribute, prepared.value, self._cardinality, *self._index, *self._scratch, self._out
            )
            if found <= len(self._out):
                return self._out[:found]
            self._out = np.empty((found, 2), np.int32)


def _allocated(lengths: npt.NDArray[np.int64]) -> Postings:
    """Lists of these lengths: `first` holds each one's beginning."""
    first = np.concatenate([[0], np.cumsum(lengths[:-1])])
    total = int(first[-1])
    return Postings(first, np.zeros(total, np.int32), np.zeros(total, np.uint8))
