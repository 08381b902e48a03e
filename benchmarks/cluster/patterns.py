"""Subscriptions with different numbers of edges, as arrays that can grow: mergers are added behind the subscriptions.

edges of s      subject, label and object at first[s] : first[s + 1]
a node          its number; -1, -2, … a variable of s; FREE a variable that stands nowhere else
a test of s     on -1: operator[s] and bound[s]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.workloads import GREATER as GREATER
from benchmarks.workloads import LESS as LESS
from benchmarks.workloads import NO_TEST as NO_TEST
from benchmarks.workloads import Ints, Longs

EQUAL, UNEQUAL = 3, 4
OPERATORS = (GREATER, LESS, EQUAL, UNEQUAL)
FREE = -9
VARIABLES = 8

Edge = tuple[int, int, int]
"""Subject, label and object."""


class Columns(NamedTuple):
    """What the compiled loops take."""

    first: Longs
    subject: Ints
    label: Ints
    object: Ints
    operator: npt.NDArray[np.int8]
    bound: Longs


class Patterns:
    def __init__(
        self,
        first: Longs,
        subject: Ints,
        label: Ints,
        object: Ints,
        operator: npt.NDArray[np.int8],
        bound: Longs,
    ) -> None:
        self._columns = Columns(first, subject, label, object, operator, bound)
        self._count = len(operator)

    @classmethod
    def of(cls, given: list[tuple[list[Edge], int, int]]) -> Patterns:
        """Those with these edges, operators and bounds."""
        nothing = np.zeros(0, np.int32)
        made = cls(
            np.zeros(1, np.int64), nothing, nothing, nothing, nothing.astype(np.int8), np.zeros(0, np.int64)
        )
        for edges, operator, bound in given:
            made.append(edges, operator, bound)
        return made

    def __len__(self) -> int:
        return self._count

    @property
    def columns(self) -> Columns:
        """Arrays, which may be longer than the subscriptions need. They are others after an `append`."""
        return self._columns

    def edges(self, s: int) -> list[Edge]:
        start, end = self._columns.first[s : s + 2].tolist()
        subject, label, object_ = (column[start:end].tolist() for column in self._columns[1:4])
        return list(zip(subject, label, object_, strict=True))

    def append(self, edges: list[Edge], operator: int = NO_TEST, bound: int = 0) -> int:
        """Adds one, and returns its number."""
        s = self._count
        start = int(self._columns.first[s])
        self._make_room(s + 1, start + len(edges))
        columns = self._columns
        for place, edge in enumerate(edges, start):
            columns.subject[place], columns.label[place], columns.object[place] = edge
        columns.first[s + 1] = start + len(edges)
        columns.operator[s], columns.bound[s] = operator, bound
        self._count += 1
        return s

    def _make_room(self, subscriptions: int, edges: int) -> None:
        first, *rest = self._columns
        needed = (subscriptions + 1, *(edges,) * 3, *(subscriptions,) * 2)
        if all(len(column) >= size for column, size in zip(self._columns, needed, strict=True)):
            return
        self._columns = Columns(
            *(
                column if len(column) >= size else np.resize(column, size + size // 2 + 16)
                for column, size in zip((first, *rest), needed, strict=True)
            )
        )

    def take(self, rows: Longs) -> Columns:
        """Those of some subscriptions alone, numbered anew."""
        columns = self._columns
        size = columns.first[rows + 1] - columns.first[rows]
        first = np.append(0, np.cumsum(size))
        places = np.repeat(columns.first[rows] - first[:-1], size) + np.arange(first[-1])
        return Columns(
            first,
            columns.subject[places],
            columns.label[places],
            columns.object[places],
            columns.operator[rows],
            columns.bound[rows],
        )
