"""Longer semijoins for joins of many tables: a row goes to those in whose whole join it occurs. Select-joins, Appendices C and F.

Without the table R of a row, the join graph falls into parts, the remainder graphs. A row of R joins rows of each, which are points with a
coordinate for each of its tables; a subscription gets the row if its ranges hold a point of every part. A row that comes to one of these
tables exposes the rows of R that join it: to those who hold a new point and no old one.

Ref-SJ-Full describes by the clusters of all subscriptions, as the paper: the skyline envelopes of their anchors among the points, and those
of the new points among the old. Ref-SJ-Full+ looks at the subscriptions concerned, and takes few points such that each of them holds one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import ClassVar, NamedTuple

import numpy as np

from tidings.dissemination.schemes.boxes import anchors, envelope
from tidings.dissemination.schemes.filters import held, position
from tidings.dissemination.schemes.joined import joined_with
from tidings.dissemination.schemes.message import Image, Longs, Message, Remainder, Remainders
from tidings.dissemination.schemes.pair_index import Flags
from tidings.dissemination.schemes.scheme import Scheme
from tidings.dissemination.schemes.server import Server, Step
from tidings.dissemination.schemes.signature import LongSemijoin, Signature

Slots = tuple[int, ...]


class Boxes(NamedTuple):
    """Subscriptions of one signature: a line for each, a column for each table."""

    low: Longs
    high: Longs

    def at(self, slots: Slots) -> Boxes:
        """Of some tables."""
        return Boxes(self.low[:, slots], self.high[:, slots])

    def those(self, flags: Flags) -> Boxes:
        return Boxes(self.low[flags], self.high[flags])

    def holding(self, slots: Slots, points: Longs) -> Flags:
        """For each subscription whether its ranges hold some of the points."""
        found: Flags = np.asarray(held(*self.at(slots), points).any(axis=1))
        return found


class RefSJFull(Scheme):
    name: ClassVar[str] = "Ref-SJ-Full"

    def step(self, step: Step) -> list[Message]:
        found: list[Message] = []
        for signature in dict.fromkeys(population.signature for population in self.server.populations):
            if step.image.table in signature.tables:
                changed = signature.tables.index(step.image.table)
                everybody = _boxes(self.server, signature)
                wanting = everybody.those(_holds(everybody, changed, step.image, signature))
                if len(wanting.low):
                    found += self._affected(LongSemijoin(signature, changed), step, everybody, wanting)
                    for base in range(len(signature.tables)):
                        if base != changed:
                            found += self._exposed(LongSemijoin(signature, base), step, everybody, wanting)
        return found

    def _affected(
        self, form: LongSemijoin, step: Step, everybody: Boxes, wanting: Boxes
    ) -> Iterator[Message]:
        """The changed row itself, to those who hold it."""
        joining = {slots: _points(self.server, form, slots, step.image) for slots in form.remainders()}
        for slots, points in joining.items():
            wanting = wanting.those(wanting.holding(slots, points))
        if len(wanting.low):
            parts = [self._part(slots, points, everybody, wanting) for slots, points in joining.items()]
            yield _message(form, step.image, step.sign, parts)

    def _exposed(self, form: LongSemijoin, step: Step, everybody: Boxes, wanting: Boxes) -> Iterator[Message]:
        """Rows of another table, to those who hold the changed row."""
        changed = form.signature.tables.index(step.image.table)
        (own,) = (slots for slots in form.remainders() if changed in slots)
        others = [slots for slots in form.remainders() if slots != own]
        for images, new, old in _exposing(self.server, form, own, step.image):
            fresh = wanting.those(wanting.holding(own, new) & ~wanting.holding(own, old))
            if not len(fresh.low):
                continue
            for image in images:
                taking = wanting.those(_holds(wanting, form.base, image, form.signature))
                seeing = fresh.those(_holds(fresh, form.base, image, form.signature))
                joining = {slots: _points(self.server, form, slots, image) for slots in others}
                for slots, points in joining.items():
                    seeing = seeing.those(seeing.holding(slots, points))
                if not len(seeing.low):
                    continue
                parts = [self._part(slots, points, everybody, seeing) for slots, points in joining.items()]
                shown = self._part(own, new, everybody, seeing).points
                without = self.excluded(old, shown, taking.at(own))
                yield _message(form, image, step.sign, [*parts, Remainder(own, shown, without)])

    def _part(self, slots: Slots, points: Longs, everybody: Boxes, wanting: Boxes) -> Remainder:
        described = self.described(points, everybody.at(slots), wanting.at(slots))
        return Remainder(slots, described, points[:0])

    def described(self, points: Longs, everybody: Boxes, wanting: Boxes) -> Longs:
        """Points such that each subscription of those wanting holds one."""
        full = (everybody.low <= everybody.high).all(axis=1)
        near = [envelope(points, anchor) for anchor in anchors(everybody.low[full], everybody.high[full])]
        return np.unique(np.concatenate([points[:0], *near]), axis=0)

    def excluded(self, old: Longs, shown: Longs, taking: Boxes) -> Longs:
        """Old points such that each subscription that takes the row, and holds a new and an old point, holds one."""
        return np.unique(np.concatenate([old[:0], *(envelope(old, point) for point in shown)]), axis=0)


class RefSJFullPlus(RefSJFull):
    name: ClassVar[str] = "Ref-SJ-Full+"

    def described(self, points: Longs, everybody: Boxes, wanting: Boxes) -> Longs:
        return _cover(points, wanting)

    def excluded(self, old: Longs, shown: Longs, taking: Boxes) -> Longs:
        return _cover(old, taking.those(np.asarray(held(*taking, shown).any(axis=1))))


def _cover(points: Longs, boxes: Boxes) -> Longs:
    """Few points such that each box that holds any holds one of them: always the one that most boxes need."""
    holding = held(*boxes, points)
    chosen = []
    while (count := holding.sum(axis=0)).any():
        chosen.append(int(count.argmax()))
        holding = holding[~holding[:, chosen[-1]]]
    return points[chosen]


def _boxes(server: Server, signature: Signature) -> Boxes:
    low, high = [], []
    for population in server.populations:
        if population.signature == signature:
            there = ~np.isin(population.numbers, list(server.gone))
            slots = range(len(signature.tables))
            low.append(np.column_stack([population.low(slot)[there] for slot in slots]))
            high.append(np.column_stack([population.high(slot)[there] for slot in slots]))
    return Boxes(np.concatenate(low), np.concatenate(high))


def _holds(boxes: Boxes, slot: int, image: Image, signature: Signature) -> Flags:
    at = position(image, signature.selections[slot])
    return np.asarray((boxes.low[:, slot] <= at) & (at <= boxes.high[:, slot]))


def _points(server: Server, form: LongSemijoin, slots: Slots, image: Image) -> Longs:
    """The induced projected partial join of a row of the base table with a remainder, Definition 3."""
    signature = form.joined_to(slots)
    return _distinct(
        (_place(signature, rows[1:]) for rows in joined_with(server, signature, image)), len(slots)
    )


def _exposing(
    server: Server, form: LongSemijoin, own: Slots, changed: Image
) -> Iterator[tuple[list[Image], Longs, Longs]]:
    """Rows of the base table that join a changed row of a remainder: rows that join alike, their new points and their old ones."""
    signature = form.joined_to(own)
    columns = sorted(
        {column for edge in signature.edges if edge.left == 0 for column in edge.left_columns}
        | {column for edge in signature.edges if edge.right == 0 for column in edge.right_columns}
    )
    alike: dict[Hashable, tuple[dict[int, Image], set[tuple[int, ...]]]] = {}
    for base, *others in joined_with(server, signature, changed):
        value = tuple(base.row[column] for column in columns)
        images, new = alike.setdefault(value, ({}, set()))
        images[id(base)] = base
        new.add(_place(signature, tuple(others)))
    for images, new in alike.values():
        rows = list(images.values())
        yield rows, _distinct(iter(new), len(own)), _points(server, form, own, rows[0])


def _place(signature: Signature, others: tuple[Image, ...]) -> tuple[int, ...]:
    """Where joined rows of a remainder lie."""
    return tuple(map(position, others, signature.selections[1:]))


def _distinct(points: Iterator[tuple[int, ...]], width: int) -> Longs:
    return np.array(sorted(set(points)), dtype=np.int64).reshape(-1, width)


def _message(form: LongSemijoin, image: Image, sign: str, parts: list[Remainder]) -> Message:
    description = Remainders(tuple(parts))
    return Message(form, (image,), sign, image.size + description.size, description=description)
