"""The stateless filter: decides from a message alone whether it is for a subscription.

`accepts` is the definition, for one subscription; `audience` is the same for all subscriptions of a server at once.
Select-joins, 2.3 and 3.2, with the bounds of an exposed row taken as exclusive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidings.dissemination.schemes.message import (
    Bounds,
    Image,
    Longs,
    Message,
    Remainder,
    Remainders,
    SelectionForm,
    Skyline,
)
from tidings.dissemination.schemes.pair_index import Flags
from tidings.dissemination.schemes.signature import LongSemijoin, Semijoin, Signature

if TYPE_CHECKING:
    from tidings.dissemination.schemes.population import Population
    from tidings.dissemination.schemes.server import Server


class Subscription(NamedTuple):
    """A subscription as the filter knows it: ranges (low, high) for each table of the signature, and the chosen semijoins."""

    number: int
    signature: Signature
    ranges: tuple[tuple[int, int], ...]
    semijoins: tuple[Semijoin, ...]

    def holds(self, image: Image) -> bool:
        """Whether the range on the row's table holds it."""
        slot = self.signature.tables.index(image.table)
        low, high = self.ranges[slot]
        return low <= position(image, self.signature.selections[slot]) <= high


def position(image: Image, selection: int | None) -> int:
    """The order key of a row in the column that ranges select by; 0 if there is none."""
    return 0 if selection is None else image.keys[selection]


def accepts(message: Message, subscription: Subscription) -> bool:
    if message.targets is not None:
        return subscription.number in message.targets
    if isinstance(message.form, SelectionForm):
        return message.form.table in subscription.signature.tables and subscription.holds(message.rows[0])
    if isinstance(message.form, Signature):
        return message.form == subscription.signature and all(map(subscription.holds, message.rows))
    if isinstance(message.form, LongSemijoin):
        return (
            message.form.signature == subscription.signature
            and subscription.holds(message.rows[0])
            and isinstance(message.description, Remainders)
            and all(_fits(part, subscription) for part in message.description.parts)
        )
    if message.form not in subscription.semijoins or not subscription.holds(message.rows[0]):
        return False
    low, high = subscription.ranges[subscription.signature.tables.index(message.form.filtering.table)]
    if isinstance(message.description, Skyline):
        # A point may have X > Y; only ranges that hold something are meant.
        return low <= high and any(low <= x and y <= high for x, y in message.description.points.tolist())
    assert isinstance(message.description, Bounds)
    at, below, above = message.description
    return low <= at <= high and (below is None or below < low) and (above is None or high < above)


def _fits(part: Remainder, subscription: Subscription) -> bool:
    ranges = [subscription.ranges[slot] for slot in part.slots]
    is_held, is_excluded = (
        any(
            all(low <= at <= high for at, (low, high) in zip(point, ranges, strict=True))
            for point in points.tolist()
        )
        for points in (part.points, part.without)
    )
    return is_held and not is_excluded


def held(low: Longs, high: Longs, points: Longs) -> Flags:
    """For boxes and points, a line for each, whether the box holds the point: a line for each box."""
    found = np.ones((len(low), len(points)), dtype=np.bool_)
    for axis in range(points.shape[1]):
        found &= (low[:, axis, None] <= points[:, axis]) & (points[:, axis] <= high[:, axis, None])
    return found


def audience(message: Message, server: Server) -> Longs:
    """The numbers of the subscriptions that accept a message, rising."""
    if message.targets is not None:
        found = [message.targets]
    else:
        found = [population.numbers[_accepting(message, population)] for population in server.populations]
    numbers: Longs = np.sort(np.concatenate([*found, np.empty(0, dtype=np.int64)]))
    return numbers[~np.isin(numbers, list(server.gone))] if server.gone else numbers


def _accepting(message: Message, population: Population) -> Flags:
    none_accept = np.zeros(len(population), dtype=np.bool_)
    tables = population.signature.tables
    if isinstance(message.form, SelectionForm):
        return _holding(message.rows[0], population) if message.form.table in tables else none_accept
    if isinstance(message.form, Signature):
        if message.form != population.signature:
            return none_accept
        accepting = ~none_accept
        for image in message.rows:
            accepting &= _holding(image, population)
        return accepting
    if isinstance(message.form, LongSemijoin):
        if message.form.signature != population.signature or not isinstance(message.description, Remainders):
            return none_accept
        accepting = _holding(message.rows[0], population)
        for part in message.description.parts:
            low, high = (
                np.column_stack([*map(ends, part.slots)]) for ends in (population.low, population.high)
            )
            accepting &= held(low, high, part.points).any(axis=1)
            accepting &= ~held(low, high, part.without).any(axis=1)
        return accepting
    if message.form not in population.semijoins:
        return none_accept
    slot = tables.index(message.form.filtering.table)
    described = _described(message.description, population.low(slot), population.high(slot))
    return _holding(message.rows[0], population) & described


def _described(description: Skyline | Bounds | Remainders | None, low: Longs, high: Longs) -> Flags:
    if isinstance(description, Skyline):
        x, y = description.points[:, :1], description.points[:, 1:]
        covered: Flags = ((low <= x) & (y <= high)).any(axis=0) & (low <= high)
        return covered
    assert isinstance(description, Bounds)
    at, below, above = description
    found = (low <= at) & (at <= high)
    if below is not None:
        found &= below < low
    return found & (high < above) if above is not None else found


def _holding(image: Image, population: Population) -> Flags:
    slot = population.signature.tables.index(image.table)
    at = position(image, population.signature.selections[slot])
    return (population.low(slot) <= at) & (at <= population.high(slot))
