"""Finds the numbers of a subscription's notifications, one block of numbers after the other.

The index begins with the block of a number: what is recorded goes into a few pages, those of the last block, however
large the mailbox is. An index that begins with the subscription is written all over: at three million notifications
it took three times as long to record as with blocks, and longer with each more.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Text,
    asc,
    cast,
    desc,
    func,
    select,
    text,
    true,
)

from tidings.service.store import tables
from tidings.service.store.tables import block, block_of, numbers_in

_GROWTH = 4
_MOST = 64  # blocks in one statement; with some more SQLite reads all notifications instead of the index
_PORTION = 10_000  # blocks of subscriptions in one statement
_columns: Final = tables.notifications.c


class Span(NamedTuple):
    """Numbers from `first` to `last`, both included."""

    first: int
    last: int


class Blocks:
    """The blocks that have notifications, as a transaction sees them. Numbers may have large gaps, such as after the
    restoration of a backup."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._found: dict[tuple[bool, int], int | None] = {}

    def groups(self, span: Span, *, newest: bool = False) -> Iterator[list[int]]:
        """The blocks of a span in groups that become larger: most searches end in the first."""
        begin, end = block(span.first), block(span.last)
        width = 1
        while begin <= end and (next_one := self._next(end if newest else begin, newest)) is not None:
            if newest:
                some = range(max(begin, next_one - width + 1), next_one + 1)
                end = some.start - 1
            else:
                some = range(next_one, min(end, next_one + width - 1) + 1)
                begin = some.stop
            if some:
                yield list(some)
            width = min(width * _GROWTH, _MOST)

    def _next(self, start: int, newest: bool) -> int | None:
        """The first block with notifications from a block on, or down to the oldest; None if there is none."""
        if (newest, start) not in self._found:
            first, last = numbers_in(start)
            if newest:
                query = select(func.max(_columns.number)).where(_columns.number <= last)
            else:
                query = select(func.min(_columns.number)).where(_columns.number >= first)
            number = self._connection.execute(query).scalar()
            self._found[newest, start] = None if number is None else block(number)
        return self._found[newest, start]


class Among(Enum):
    """Which notifications are searched."""

    ALL = "all"
    DECIDED = "decided"
    UNDECIDED = "undecided"


def numbers_of(
    connection: Connection,
    ids: Sequence[str],
    span: Span,
    limit: int,
    *,
    newest: bool,
    among: Among = Among.ALL,
) -> list[int]:
    """The first or the newest numbers of some subscriptions together, in this order."""
    order = desc if newest else asc
    found: list[int] = []
    for blocks in Blocks(connection).groups(span, newest=newest):
        if len(found) >= limit:
            break
        found += _numbers_in(connection, ids, span, blocks, (order, limit - len(found), among))
    return found


def newest_decided(
    connection: Connection, ids: Sequence[str], span: Span, limit: int, most: int
) -> tuple[list[int], int | None]:
    """The newest numbers of some subscriptions that are not undecided, in about `most` blocks; and the number to go on
    before, None if there is nothing more. Thousands of undecided ones may lie between two others."""
    found: list[int] = []
    looked = 0
    for blocks in Blocks(connection).groups(span, newest=True):
        if looked >= most:
            return found, numbers_in(blocks[-1])[1] + 1
        found += _numbers_in(connection, ids, span, blocks, (desc, limit - len(found), Among.DECIDED))
        looked += len(blocks)
        if len(found) >= limit:
            return found, found[-1]
    return found, None


def newest_of_each(connection: Connection, ids: Sequence[str], span: Span, most: int) -> dict[str, int]:
    """The newest number of each subscription in about the last `most` blocks; those without any are left out."""
    found: dict[str, int] = {}
    looked = 0
    for blocks in Blocks(connection).groups(span, newest=True):
        rest = [id for id in ids if id not in found]
        if looked >= most or not rest:
            break
        looked += len(blocks)
        asked = [(id, number) for number in blocks for id in rest]
        for begin in range(0, len(asked), _PORTION):
            for id, number in connection.execute(_newest(connection, asked[begin : begin + _PORTION])):
                if number is not None:
                    found[id] = max(number, found.get(id, 0))
    return found


def _numbers_in(
    connection: Connection, ids: Sequence[str], span: Span, blocks: list[int], how: tuple[Any, int, Among]
) -> list[int]:
    order, limit, among = how
    of_several = _of_several_postgresql if _on_postgresql(connection) else _of_several_sqlite
    numbers = select(_columns.number).where(_columns.number.between(*span))
    numbers = numbers.order_by(order(_columns.number)).limit(limit)
    if among is Among.UNDECIDED:
        numbers = _undecided(numbers)
    elif among is Among.DECIDED and _on_postgresql(connection):
        numbers = numbers.where(_columns.kind != "undecided")
    elif among is Among.DECIDED:
        # By both indexes, so that of those that are not undecided, which mostly are all, no row is read.
        inner = of_several(_undecided(select(_columns.number)), ids, blocks, order)
        numbers = numbers.where(_columns.number.not_in(inner.correlate(None)))
    return list(connection.execute(of_several(numbers, ids, blocks, order)).scalars())


def _undecided(numbers: Select[int]) -> Select[int]:
    # Written as the index has it: with a parameter in its place the index is not used.
    return numbers.where(text("kind = 'undecided'"))


def _newest(connection: Connection, asked: list[tuple[str, int]]) -> Select[Any]:
    """The largest number of each subscription in a block."""
    rows: FromClause
    id: ColumnElement[Any]
    number: ColumnElement[Any]
    if _on_postgresql(connection):
        ids, blocks = zip(*asked, strict=True)
        rows = _rows("asked", id=(ids, Text), block=(blocks, BigInteger))
        id, number = rows.c.id, rows.c.block
    else:
        rows = func.json_each(json.dumps(asked)).table_valued("value")
        id, number = (func.json_extract(rows.c.value, f"$[{column}]") for column in range(2))
    largest = select(func.max(_columns.number)).where(
        block_of(tables.notifications) == number, _columns.subscription == id
    )
    return select(id, largest.correlate(rows).scalar_subquery()).select_from(rows)


def numbers_of_each(
    connection: Connection, after: Mapping[str, int], kept: Span, limit: int, among: Among = Among.ALL
) -> dict[str, list[int]]:
    """The first numbers of each subscription after a number of its own, of all or of those that are decided; those without
    any are left out."""
    of_each = _of_each_postgresql if _on_postgresql(connection) else _of_each_sqlite
    found: defaultdict[str, list[int]] = defaultdict(list)
    blocks = Blocks(connection)
    searched = {
        id: blocks.groups(Span(max(number + 1, kept.first), kept.last)) for id, number in after.items()
    }
    while searched:
        asked = []
        for id, groups in list(searched.items()):
            group = next(groups, None) if len(found[id]) < limit else None
            if group is None:
                del searched[id]
            else:
                asked += [(id, number, after[id]) for number in group]
        for begin in range(0, len(asked), _PORTION):
            portion = asked[begin : begin + _PORTION]
            for id, number in connection.execute(of_each(portion, kept.last, limit, among)):
                found[id].append(number)
    return {id: sorted(numbers)[:limit] for id, numbers in found.items() if numbers}


def _of_several_sqlite(
    numbers: Select[int], ids: Sequence[str], blocks: list[int], _order: Any
) -> Select[int]:
    """Restricts the query to some subscriptions, given as one parameter, because databases limit their number."""
    asked = func.json_each(json.dumps(list(ids))).table_valued("value")
    return numbers.where(
        block_of(tables.notifications).in_(blocks), _columns.subscription.in_(select(asked.c.value))
    )


def _of_several_postgresql(
    numbers: Select[int], ids: Sequence[str], blocks: list[int], order: Any
) -> Select[int]:
    """Restricts the query to some subscriptions, by an index scan for each and each block. Left to choose, PostgreSQL
    scans all notifications when these subscriptions have few."""
    asked = _rows("asked", id=(ids, Text))
    among = _rows("among", block=(blocks, BigInteger))
    each = numbers.where(
        block_of(tables.notifications) == among.c.block, _columns.subscription == asked.c.id
    ).lateral()
    chosen = select(each.c.number).select_from(asked.join(among, true()).join(each, true()))
    return chosen.order_by(order(each.c.number)).limit(numbers._limit)


def _of_each_sqlite(
    asked: list[tuple[str, int, int]], last: int, limit: int, among: Among
) -> Select[str, int]:
    """The first numbers in each block of a subscription after a number. SQLite has no lateral joins."""
    rows = func.json_each(json.dumps(asked)).table_valued("value")
    id, number, after = (func.json_extract(rows.c.value, f"$[{column}]") for column in range(3))
    inner = tables.notifications.alias("inner_notifications")
    first = select(inner.c.number).where(block_of(inner) == number, inner.c.subscription == id)
    first = first.where(inner.c.number > after, inner.c.number <= last)
    if among is Among.DECIDED:
        first = first.where(inner.c.kind != "undecided")
    first = first.order_by(inner.c.number).limit(limit).correlate(rows)
    each = tables.notifications.alias("each")
    return select(each.c.subscription, each.c.number).select_from(rows).join(each, each.c.number.in_(first))


def _of_each_postgresql(
    asked: list[tuple[str, int, int]], last: int, limit: int, among: Among
) -> Select[str, int]:
    ids, blocks, afters = zip(*asked, strict=True)
    rows = _rows("asked", id=(ids, Text), block=(blocks, BigInteger), after=(afters, BigInteger))
    inner = tables.notifications.alias("inner_notifications")
    first = select(inner.c.number).where(block_of(inner) == rows.c.block, inner.c.subscription == rows.c.id)
    first = first.where(inner.c.number > rows.c.after, inner.c.number <= last)
    if among is Among.DECIDED:
        first = first.where(inner.c.kind != "undecided")
    each = first.order_by(inner.c.number).limit(limit).lateral()
    return select(rows.c.id, each.c.number).select_from(rows).join(each, true())


def _rows(name: str, **columns: tuple[Sequence[Any], Any]) -> FromClause:
    """Columns of values as a table of PostgreSQL."""
    given = [cast(list(values), ARRAY(type)) for values, type in columns.values()]
    return func.unnest(*given).table_valued(*columns).render_derived(name=name)


def _on_postgresql(connection: Connection) -> bool:
    return connection.dialect.name == "postgresql"
