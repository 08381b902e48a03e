"""Makes the messages of one population: of all subscriptions whose rows are partitioned alike (`index/partition.py`).

The subscriptions of a population share groups of semijoins with each other and with nobody else, so its messages name it,
and nobody else accepts them. Rows that join are in one bucket of the population, so each bucket has a server with rows of its
own; the subscriptions are the same for all buckets and are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from tidings.dissemination.live.membership import membership, parts_of
from tidings.dissemination.payload import Payloads
from tidings.dissemination.schemes import naive
from tidings.dissemination.schemes.message import Message
from tidings.dissemination.schemes.scheme import Scheme
from tidings.dissemination.schemes.server import Change, Server
from tidings.kinds.joins.index.subscriptions import Subscriptions
from tidings.kinds.joins.schema.table import Row, Table, by_name


class RowStep(NamedTuple):
    """A row comes (sign 1) or goes (-1) by an event."""

    event: int
    table: str
    row: Row
    sign: int


class PopulationServer:
    """The subscriptions of a population; `bucket` gives a server of one bucket's rows."""

    def __init__(self, name: str, tables: Iterable[Table], scheme: type[Scheme]) -> None:
        self.name, self._whole = name, by_name(tables)
        self._parts = parts_of(self._whole[name]) if name in self._whole else None
        split = self._parts.tables if self._parts else self._whole.values()
        self._server, self._scheme = Server(split), scheme
        self._read: set[str] = set()
        self._numbers: dict[int, int] = {}  # of subscriptions, and what the server calls them
        self._reached = 0, 0

    @property
    def tables(self) -> Mapping[str, Table]:
        """Those that messages have rows of."""
        return self._server.tables

    @property
    def reads(self) -> frozenset[str]:
        """The names of the tables whose changes have messages."""
        return frozenset(self._read)

    def follow(self, subscriptions: Subscriptions, prefix: str = "") -> None:
        """Takes in the subscriptions of this population that came or ended since the last call: of those whose ids begin
        with `prefix`."""
        count = len(subscriptions)
        if (count, subscriptions.ended) == self._reached:
            return
        known = self.members
        for number in known[~subscriptions.are_live(known)].tolist():
            self._server.unsubscribe(self._numbers.pop(number))
        new = np.arange(self._reached[0], count)
        new = new[subscriptions.live[new] & begins(subscriptions, self._reached[0], prefix)]
        shape_of = subscriptions.shape_of.all[new]
        for which in np.unique(shape_of).tolist():
            shape, mine = subscriptions.shapes[which], new[shape_of == which]
            found = membership(shape, self._whole)
            if found.population == self.name:
                self._read.update(shape.tables)
                bounds = subscriptions.bounds_of(mine, len(shape.selections))
                given = self._server.subscribe(found.signature, found.ranges(bounds), found.semijoins)
                self._numbers.update(zip(mine.tolist(), given, strict=True))
        self._reached = count, subscriptions.ended
        self._server.build()

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def members(self) -> np.ndarray:
        """The numbers of its subscriptions."""
        return np.fromiter(self._numbers, dtype=np.int64, count=len(self._numbers))

    def bucket(self, rows: Mapping[str, Iterable[Row]]) -> BucketServer:
        """A server of these rows, by the names of their tables."""
        return BucketServer(self._whole, self._scheme(self._server.emptied()), self._parts, rows)


class BucketServer:
    """The rows of a bucket, and the messages for their changes."""

    def __init__(
        self,
        tables: Mapping[str, Table],
        scheme: Scheme,
        parts: Payloads | None,
        rows: Mapping[str, Iterable[Row]],
    ) -> None:
        self._tables, self._scheme, self._parts = tables, scheme, parts
        for name, found in rows.items():
            for row in found:
                for part in self._split(Change(name, new=row)):
                    assert part.new is not None
                    scheme.server.load(part.table, [part.new])

    def apply(self, steps: Iterable[RowStep]) -> Iterator[tuple[int, list[Message]]]:
        """Applies changes in their order; for each event that has messages its number and these."""
        for event, of_event in groupby(steps, key=lambda step: step.event):
            found = [
                message
                for change in _changes(list(of_event), self._tables)
                for part in self._split(change)
                for message in self._scheme.messages(part)
            ]
            if found:
                yield event, found

    def snapshot(self, subscriptions: Subscriptions, number: int) -> list[tuple[str, Row]]:
        """All rows that a subscription would have from messages: those of its semijoins."""
        server = self._scheme.server
        shape = subscriptions.shapes[subscriptions.shape_of.all[number]]
        bounds = subscriptions.bounds_of(np.array([number]), len(shape.selections))[0]
        ends = list(zip(bounds["low"].tolist(), bounds["high"].tolist(), strict=True))
        member = membership(shape, self._tables).subscription(ends)
        rows = server.contents()
        if not member.semijoins:
            (name,) = shape.tables
            return [(name, row) for row in naive.selected(server.tables[name], member, rows)]
        return [
            (form.base.table, row)
            for form in member.semijoins
            for row in naive.semijoin(form, member, server.tables, rows).elements()
        ]

    def _split(self, change: Change) -> list[Change]:
        return [change] if self._parts is None else self._parts.changes(change)


def begins(subscriptions: Subscriptions, first: int, prefix: str) -> np.ndarray:
    """Of subscriptions from a number on: whether their ids begin so."""
    found = pc.starts_with(subscriptions.id_column.slice(first), prefix)
    return np.asarray(found.to_numpy(zero_copy_only=False))


def _changes(steps: Sequence[RowStep], tables: Mapping[str, Table]) -> Iterator[Change]:
    """The steps of an event as changes: a row that comes and one that goes at once are an update."""
    if (
        len(steps) == 2
        and (steps[0].sign, steps[1].sign) == (1, -1)
        and steps[0].table == steps[1].table
        and tables[steps[0].table].key
    ):
        yield Change(steps[0].table, steps[0].row, steps[1].row)
        return
    for step in steps:
        yield Change(step.table, step.row) if step.sign > 0 else Change(step.table, old=step.row)
