"""Subscriptions as points and messages as regions of one space. Select-joins, Appendix A.

A subscription's range on one table is two coordinates, its low and its high end. A message is for all points of a region, a
union of boxes: a row at `a` is wanted by low <= a <= high, a skyline point by low <= X and high >= Y, an exposed row by
below < low <= at <= high < above. All boxes of a region hold its anchor, the corner with the lowest low and the highest
high ends; routing rests on that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.dissemination.schemes.filters import position
from tidings.dissemination.schemes.message import Bounds, Form, Longs, Message, SelectionForm, Skyline
from tidings.dissemination.schemes.signature import Semijoin, Signature
from tidings.kinds.joins.schema.order_keys import HIGHEST, LOWEST

Axis = tuple[str, int | None]
"""A table, and the column of it that ranges look at."""


class Region(NamedTuple):
    """One line for each box: its lowest and highest coordinates."""

    low: Longs
    high: Longs
    anchor: Longs


class Space(NamedTuple):
    """Two dimensions for each axis: the low end, then the high end of a range."""

    axes: tuple[Axis, ...]

    @property
    def dimensions(self) -> int:
        return 2 * len(self.axes)

    def region(self, message: Message) -> Region | None:
        """The points that want a message; None if there cannot be any."""
        tables = [table for table, _ in self.axes]
        skyline = message.description if isinstance(message.description, Skyline) else None
        boxes = len(skyline.points) if skyline is not None else 1
        low = np.full((boxes, self.dimensions), LOWEST, np.int64)
        high = np.full((boxes, self.dimensions), HIGHEST, np.int64)
        for image in message.rows:
            slot = tables.index(image.table)
            at = position(image, self.axes[slot][1])
            high[:, 2 * slot] = low[:, 2 * slot + 1] = at
        if isinstance(message.form, Semijoin):
            slot = tables.index(message.form.filtering.table)
            if skyline is not None:
                high[:, 2 * slot] = skyline.points[:, 0]
                low[:, 2 * slot + 1] = skyline.points[:, 1]
            elif isinstance(message.description, Bounds):
                at, below, above = message.description
                high[0, 2 * slot] = low[0, 2 * slot + 1] = at
                low[0, 2 * slot] = LOWEST if below is None else below + 1
                high[0, 2 * slot + 1] = HIGHEST if above is None else above - 1
        if boxes == 0 or (low > high).any():
            kept = (low <= high).all(axis=1)
            low, high = low[kept], high[kept]
            if not len(low):
                return None
        anchor = low[0].copy()
        anchor[1::2] = high[0, 1::2]
        return Region(low, high, anchor)


def space_of(form: Semijoin | Signature) -> Space:
    """The space in which messages of a form are routed; both semijoins of a binary join, and the join, share one."""
    if isinstance(form, Semijoin):
        return Space(tuple(sorted(((side.table, side.selection) for side in form), key=str)))
    return Space(tuple(sorted(zip(form.tables, form.selections, strict=True), key=str)))


def concerns(form: Form, space: Space, registered: Semijoin | Signature) -> bool:
    """Whether messages of a form go to the points that were registered for another form in a space."""
    if isinstance(form, SelectionForm):
        return isinstance(registered, Signature) and form.table in registered.tables
    return form == registered
