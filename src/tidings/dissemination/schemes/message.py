"""Messages that a server injects into a content-driven network for one change. Select-joins, 2.3 and 3.2.

A message carries rows gained (+) or lost (-) and the data by which a stateless filter decides whether to accept them: the
target subscriptions if it is sent to each individually, else a description of them. Numbers in a description are order
keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.dissemination.schemes.signature import LongSemijoin, Semijoin, Signature
from tidings.dissemination.schemes.sizes import BOUNDS, points_size, skyline_size
from tidings.kinds.joins.schema.table import Row

Longs = npt.NDArray[np.int64]

GAINED, LOST = "+", "-"


class Image(NamedTuple):
    """A row of a table, its values as order keys, and its size in bytes."""

    table: str
    row: Row
    keys: tuple[int, ...]
    size: int


class SelectionForm(NamedTuple):
    """The form of a message whose row was selected only by the ranges on its own table."""

    table: str


@dataclass(frozen=True, slots=True, eq=False)
class Skyline:
    """A descriptive skyline, Theorem 2: a point (X, Y) covers every range with low <= X and Y <= high.

    Of the subscriptions whose range on the base table holds the row, those covered by some point are affected, the
    others are not. X may exceed Y: such a point stands for a run of joining rows (Ref-SJ-Clu+).
    """

    points: Longs
    """One row for each point: X, Y."""

    @property
    def size(self) -> int:
        return skyline_size(self.points)


class Bounds(NamedTuple):
    """Beside an exposed row: where the changed row lies, and the nearest rows on both sides, themselves outside.

    A subscription misses the exposed row iff its range on the changed table holds `at` and neither neighbour. None: no
    row on that side.
    """

    at: int
    below: int | None
    above: int | None

    @property
    def size(self) -> int:
        return BOUNDS


class Remainder(NamedTuple):
    """Of a remainder graph of a longer semijoin what tables of it a row joins, Appendix F: points that have a coordinate for
    each table, a line for each. A subscription fits if its ranges there hold some of `points` and none of `without`."""

    slots: tuple[int, ...]
    points: Longs
    without: Longs


@dataclass(frozen=True, slots=True, eq=False)
class Remainders:
    """A subscription has to fit every one of them."""

    parts: tuple[Remainder, ...]

    @property
    def size(self) -> int:
        return sum(points_size(part.points) + points_size(part.without) for part in self.parts)


Form = SelectionForm | Signature | Semijoin | LongSemijoin


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    form: Form
    rows: tuple[Image, ...]
    """One row; of a join one for each table, in the order of the signature."""
    sign: str
    size: int
    """Bytes of one copy."""
    targets: Longs | None = None
    """The subscriptions, each of which is sent a copy; None: the network finds them by their filters."""
    description: Skyline | Bounds | Remainders | None = None

    @property
    def bytes(self) -> int:
        """The bytes that leave the server: one copy for the network, or one for each target."""
        return self.size if self.targets is None else self.size * len(self.targets)
