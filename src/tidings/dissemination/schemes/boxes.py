"""The scheme for several selection attributes a table: subscriptions are boxes, rows are points. Select-joins, Appendix C.

A subscription is a box over the attributes of R and one over those of S. The skyline envelope generalises the two
neighbours of a value to many dimensions: it has the points such that no other point lies between them and a given one.
A row of R is sent with the envelopes of the clusters' anchors among the joining rows of S; an exposed row with the
envelope of the changed row among the rows of its own table. Boxes are scanned one by one: descriptions grow and clusters
shrink with every dimension; `attributes.py` scales better.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from tidings.dissemination.schemes.message import GAINED, LOST, Image, Longs
from tidings.dissemination.schemes.pair_index import Flags
from tidings.dissemination.schemes.server import Change
from tidings.dissemination.schemes.sizes import points_size, size_of_all
from tidings.errors import EventError
from tidings.kinds.joins.index.stabbing import cluster
from tidings.kinds.joins.schema.order_keys import key_of
from tidings.kinds.joins.schema.table import Row, Table


class BoxSide(NamedTuple):
    """A table of a binary join: its name, the equated columns, and the columns that ranges select by."""

    table: Table
    join: tuple[int, ...]
    selections: tuple[int, ...]

    def image(self, row: Row) -> Image:
        keys = tuple(key_of(self.table.types[column], row[column]) for column in self.selections)
        return Image(self.table.name, row, keys, size_of_all(row))

    def value(self, row: Row) -> Row | None:
        """The join value, None if a part of it is NULL: several columns are one composite attribute."""
        value = tuple(row[column] for column in self.join)
        return None if None in value else value


class BoxMessage(NamedTuple):
    """A row for those whose box on its table holds it and whose box on the other table is as described.

    With `at`, an exposed row: the other box holds `at`, where the changed row is, and none of `points`. Without, the
    changed row itself: the other box holds some of `points`. Points are lines of order keys.
    """

    side: int
    image: Image
    sign: str
    points: Longs
    at: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        return self.image.size + points_size(self.points) + points_size(np.array([self.at or ()]))


class Box(NamedTuple):
    """A subscription as the filter knows it: low and high ends for each side."""

    low: tuple[Longs, Longs]
    high: tuple[Longs, Longs]


def envelope(points: Longs, centre: Longs) -> Longs:
    """The skyline envelope: distinct points y such that no *other* point lies in the least box around y and centre."""
    points = np.unique(points, axis=0)
    # The nearest by steps between values is one of them, and so is the nearest of those that have none of these between.
    places = [
        np.unique(np.append(column, at), return_inverse=True)[1]
        for column, at in zip(points.T, centre, strict=True)
    ]
    away = [place[:-1] - place[-1] for place in places]
    steps = np.abs(np.stack(away)).sum(axis=0) if away else np.zeros(len(points), dtype=np.int64)
    left, found = np.argsort(steps, kind="stable"), []
    while len(left):
        found.append(nearest := int(left[0]))
        between = np.ones(len(left), dtype=np.bool_)
        for offset in away:
            own = offset[nearest]
            between &= (own == 0) | (
                (np.sign(own) == np.sign(offset[left])) & (abs(own) <= np.abs(offset[left]))
            )
        left = left[~between]
    return points[np.sort(found)] if found else points


def anchors(low: Longs, high: Longs) -> Longs:
    """Points such that every box holds one: the first attribute is stabbed, then the next within each cluster."""
    if not len(low) or not low.shape[1]:
        return np.empty((min(1, len(low)), low.shape[1]), dtype=np.int64)
    of, stabs, _ = cluster(low[:, 0].copy(), high[:, 0].copy())
    found = []
    for index, stab in enumerate(stabs):
        rest = anchors(low[of == index, 1:], high[of == index, 1:])
        found.append(np.column_stack([np.full(len(rest), stab), rest]))
    return np.concatenate(found)


def accepts(message: BoxMessage, box: Box) -> bool:
    """The stateless filter."""
    own, other = message.side, 1 - message.side
    if not holds(box.low[own], box.high[own], np.array(message.image.keys)):
        return False
    low, high = box.low[other], box.high[other]
    among = any(holds(low, high, point) for point in message.points)
    return among if message.at is None else holds(low, high, np.array(message.at)) and not among


def holds(low: Longs, high: Longs, point: Longs) -> bool:
    return bool(((low <= point) & (point <= high)).all())


class BoxServer:
    """Rows, subscriptions and messages of a binary join with any number of selection attributes."""

    def __init__(self, left: BoxSide, right: BoxSide) -> None:
        self.sides = (left, right)
        self._rows: tuple[defaultdict[Row | None, list[Image]], ...] = (defaultdict(list), defaultdict(list))
        self._low = [np.empty((0, len(side.selections)), dtype=np.int64) for side in self.sides]
        self._high = [low.copy() for low in self._low]
        self._anchors: list[Longs | None] = [None, None]

    def subscribe(self, low: tuple[Longs, Longs], high: tuple[Longs, Longs]) -> range:
        """Boxes: for each side a line for each subscription, a column for each selection attribute."""
        first = len(self._low[0])
        for side in (0, 1):
            for known, new in ((self._low, low), (self._high, high)):
                known[side] = np.concatenate([known[side], new[side].astype(np.int64)])
        self._anchors = [None, None]
        return range(first, len(self._low[0]))

    def box(self, number: int) -> Box:
        low, high = ((ends[0][number], ends[1][number]) for ends in (self._low, self._high))
        return Box(low, high)

    def messages(self, change: Change) -> list[BoxMessage]:
        """Applies a change; as everywhere, an update is an insert and then a delete, each seen without its row."""
        side = [side.table.name for side in self.sides].index(change.table)
        if change.old is not None and not self._find(side, change.old):
            text = self.sides[side].table.text(change.old)
            raise EventError(f"table '{change.table}' has no row {text}; delete or update one that is there")
        found: list[BoxMessage] = []
        if change.new is not None:
            image = self.sides[side].image(change.new)
            found.extend(self._step(side, image, GAINED))
            self._rows[side][self.sides[side].value(change.new)].append(image)
        if change.old is not None:
            rows_of_value, index = self._find(side, change.old)[0]
            found.extend(self._step(side, rows_of_value.pop(index), LOST))
        return found

    def _find(self, side: int, row: Row) -> list[tuple[list[Image], int]]:
        rows_of_value = self._rows[side][self.sides[side].value(row)]
        return [(rows_of_value, index) for index, image in enumerate(rows_of_value) if image.row == row][:1]

    def _step(self, side: int, image: Image, sign: str) -> Iterator[BoxMessage]:
        value = self.sides[side].value(image.row)
        joining = self._rows[1 - side][value] if value is not None else []
        if not joining:
            return
        at = np.array(image.keys)
        holding = self._holding(side, at)
        points = self._described(1 - side, np.array([other.keys for other in joining]), holding)
        if len(points):
            yield BoxMessage(side, image, sign, points)
        others = np.array([other.keys for other in self._rows[side][value]]).reshape(-1, len(at))
        near = envelope(others, at)
        for point in near:
            holding = holding & ~self._holding(side, point)
        for other in joining:
            if (holding & self._holding(1 - side, np.array(other.keys))).any():
                yield BoxMessage(1 - side, other, sign, near, image.keys)

    def _described(self, side: int, rows: Longs, selected: Flags) -> Longs:
        """The envelopes of all anchors among the rows, without the points that no selected box holds."""
        found = self._anchors[side]
        if found is None:
            full = (self._low[side] <= self._high[side]).all(axis=1)
            found = self._anchors[side] = anchors(self._low[side][full], self._high[side][full])
        near = _distinct((envelope(rows, anchor) for anchor in found), rows.shape[1])
        return near[[bool((selected & self._holding(side, point)).any()) for point in near]]

    def _holding(self, side: int, point: Longs) -> Flags:
        return np.asarray(((self._low[side] <= point) & (point <= self._high[side])).all(axis=1))


def _distinct(parts: Iterable[Longs], width: int) -> Longs:
    return np.unique(np.concatenate([np.empty((0, width), dtype=np.int64), *parts]), axis=0)
