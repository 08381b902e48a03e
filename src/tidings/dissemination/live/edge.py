"""Makes the notifications of join subscriptions at the edge of a network from messages for all.

A subscription begins with its rows, which arrive for its text, part by part. From then on it accepts messages of its
population, and each record that changes its result is a notification: the rows gained and lost, as the stream at the centre would
have written it, with a sequence of its own. The same records in the same order give the same notifications. If rows arrive
again, because records may be missing, the difference to what the subscription had is a notification.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tidings.dissemination.live.carriers import MemberRows
from tidings.dissemination.live.membership import Membership, membership
from tidings.dissemination.live.records import MessageRecord, row_changes
from tidings.dissemination.packet import WireError, pack, unpack
from tidings.dissemination.schemes.filters import audience
from tidings.dissemination.schemes.message import GAINED
from tidings.dissemination.schemes.server import Server
from tidings.errors import EventError
from tidings.kinds.joins import naive
from tidings.kinds.joins.schema.ranges import Range
from tidings.kinds.joins.schema.shape import JoinShape, read
from tidings.kinds.joins.schema.table import Row, Table, by_name
from tidings.language.query import Query
from tidings.model.notification import RowChange

_ROWS = 1 << 31  # in a state: as many as there are


class EdgeChange(NamedTuple):
    """What a subscription gains and loses in one part."""

    subscription: str
    part: str
    sequence: int
    gained: naive.Form
    lost: naive.Form


class EdgeRows(NamedTuple):
    """All rows of a subscription in one part: those of its result, and those that it has from messages."""

    part: str
    sequence: int
    result: naive.Form
    record: int
    held: naive.Form


@dataclass(slots=True)
class _Part:
    since: int
    """The record that its rows are of; the centre counts records."""
    held: naive.Form
    sequence: int = 0


@dataclass(slots=True)
class _Member:
    id: str
    text: str
    shape: JoinShape
    ranges: tuple[Range, ...]
    scheme: Membership
    number: int = -1
    first: int = 0
    """What its sequences start after."""
    is_anew: bool = False
    """Whether it had rows before, which were lost."""
    parts: dict[str, _Part] = field(default_factory=dict)

    @property
    def is_exact(self) -> bool:
        """Whether the rows from messages are those of the result: the scheme knows all conditions."""
        plain = all(not found.options and found.low_text is found.high_text is None for found in self.ranges)
        used = sum(at is not None for at in self.scheme.selections)
        is_split = self.scheme.parts is not None
        return plain and not is_split and len(self.shape.tables) <= 2 and used == len(self.ranges)

    @property
    def is_complete(self) -> bool:
        """Whether the rows of all parts have arrived."""
        return bool(self.parts) and len(self.parts) == _total(next(iter(self.parts)))

    def result(self, held: naive.Form) -> naive.Form:
        """The rows that take part in the result, of those from messages."""
        if self.is_exact:
            return Counter(held)
        rows: dict[str, Counter[Row]] = {name: Counter() for name in self.scheme.tables}
        for (name, row), copies in held.items():
            rows[name][row] = copies
        return naive.semijoin(self.shape, self.ranges, self.scheme.merged(rows))


class EdgeJoins:
    """The join subscriptions of one node. No text is read here: `add` takes a query, and the text that names it."""

    def __init__(self, tables: Iterable[Table]) -> None:
        self._tables = by_name(tables)
        self._members: dict[str, _Member] = {}
        self._servers: dict[str, tuple[Server, dict[int, _Member]]] = {}
        self._last: dict[tuple[str, str], int] = {}
        """Of each population and part the last record."""

    def __contains__(self, id: str) -> bool:
        return id in self._members

    @property
    def ids(self) -> set[str]:
        return set(self._members)

    def text(self, id: str) -> str | None:
        """The text that names a subscription; None if there is none with this id."""
        return self._members[id].text if id in self._members else None

    def without_rows(self) -> set[str]:
        """The texts whose rows have not arrived."""
        return {member.text for member in self._members.values() if not member.is_complete}

    def population(self, id: str) -> str:
        """Whose records a subscription needs."""
        return self._members[id].scheme.population

    def add(self, id: str, text: str, query: Query) -> None:
        """Adds a subscription, or replaces it. One of the same text that has its rows lends them; else they have to
        arrive."""
        self.remove(id)
        shape, ranges = read(query, self._tables)
        member = _Member(id, text, shape, ranges, membership(shape, self._tables))
        twin = next((other for other in self._members.values() if other.text == text and other.parts), None)
        if twin is not None:
            member.parts = {
                name: _Part(self._reached(twin, name), Counter(part.held))
                for name, part in twin.parts.items()
            }
        if member.scheme.population not in self._servers:
            tables = member.scheme.tables if member.scheme.parts else self._tables
            self._servers[member.scheme.population] = Server(tables.values()), {}
        ends = [(found.low, found.high) for found in ranges]
        seen = [(np.array([low]), np.array([high])) for low, high in member.scheme.subscription(ends).ranges]
        server, members = self._servers[member.scheme.population]
        (member.number,) = server.subscribe(member.scheme.signature, seen, member.scheme.semijoins)
        members[member.number] = self._members[id] = member

    def remove(self, id: str) -> None:
        member = self._members.pop(id, None)
        if member is not None:
            server, members = self._servers[member.scheme.population]
            server.unsubscribe(member.number)
            del members[member.number]
            if not members:
                del self._servers[member.scheme.population]

    def start_after(self, sequence: int) -> None:
        """Has the sequences of the subscriptions without rows start after a number that is higher than any before: a replica that
        gets a change before the snapshot (`begun_anew`) sees a gap."""
        for member in self._members.values():
            if not member.is_complete:
                member.first, member.is_anew = sequence, sequence > 0

    def begun_anew(self) -> list[str]:
        """The subscriptions whose rows were lost and have all come again, each once."""
        found = [member for member in self._members.values() if member.is_anew and member.is_complete]
        for member in found:
            member.is_anew = False
        return [member.id for member in found]

    def take_rows(self, found: MemberRows) -> list[EdgeChange]:
        """Has the subscriptions of a text begin with these rows. One that has begun is notified of the difference. WireError if
        the rows are of other tables."""
        changes: list[EdgeChange] = []
        for member in self._members.values():
            if member.text != found.text:
                continue
            held = _held(found, member.scheme.tables)
            if _total(found.part) != _total(next(iter(member.parts), found.part)):
                member.parts.clear()  # the stream has another number of parts: its sequences are others, too
            part = member.parts.get(found.part)
            if part is None:
                member.parts[found.part] = _Part(found.sequence, held, member.first)
            elif found.sequence >= self._reached(member, found.part):
                part.since = found.sequence
                changes += self._changed(member, found.part, held)
        return changes

    def take_record(self, record: MessageRecord) -> list[EdgeChange]:
        """What a record changes; nothing if it came before. WireError if it is of other tables: it is lost then."""
        stream = record.population, record.part
        if record.population not in self._servers or record.sequence <= self._last.get(stream, -1):
            return []
        self._last[stream] = record.sequence
        server, members = self._servers[record.population]
        scheme = next(iter(members.values())).scheme
        tables = scheme.tables if scheme.parts else self._tables
        net: defaultdict[int, naive.Form] = defaultdict(Counter)
        for message in record.messages():
            image = message.rows[0]
            if image.table not in tables:  # nobody here reads it
                continue
            if len(image.row) != len(tables[image.table].names):
                raise _other_tables(f"a row of table {image.table!r} has {len(image.row)} columns")
            for number in audience(message, server).tolist():
                net[number][image.table, image.row] += 1 if message.sign == GAINED else -1
        changes: list[EdgeChange] = []
        for number, more in net.items():
            part = members[number].parts.get(record.part)
            if part is not None and record.sequence > part.since:
                held = Counter(part.held)
                held.update(more)
                changes += self._changed(members[number], record.part, +held)
        return changes

    def _reached(self, member: _Member, part: str) -> int:
        """The last record that the rows of a subscription are of."""
        return max(member.parts[part].since, self._last.get((member.scheme.population, part), 0))

    def _changed(self, member: _Member, name: str, held: naive.Form) -> Iterator[EdgeChange]:
        part = member.parts[name]
        before, after = member.result(part.held), member.result(held)
        part.held = held
        gained, lost = naive.delta(before, after)
        if gained or lost:
            part.sequence += 1
            yield EdgeChange(member.id, name, part.sequence, gained, lost)

    def rows(self, id: str) -> list[EdgeRows] | None:
        """All rows of a subscription; None if those of some part have not arrived."""
        member = self._members.get(id)
        if member is None or not member.is_complete:
            return None
        return [
            EdgeRows(name, part.sequence, member.result(part.held), self._reached(member, name), part.held)
            for name, part in sorted(member.parts.items())
        ]

    def result_changes(self, form: naive.Form, change: str = "+") -> tuple[RowChange, ...]:
        """Rows of a result as notifications have them."""
        return row_changes(form.elements(), self._tables, change)

    def member_rows(self, id: str, found: EdgeRows) -> MemberRows:
        """What a node below begins with, for the text of a subscription."""
        member = self._members[id]
        rows = row_changes(found.held.elements(), member.scheme.tables)
        return MemberRows(member.text, found.part, found.record, rows)

    def state(self) -> bytes:
        """Everything but the subscriptions themselves, for `restore`."""
        members = [
            [
                member.id,
                member.text,
                member.first,
                [_packed(name, part) for name, part in member.parts.items()],
            ]
            for member in self._members.values()
        ]
        return pack([[[*stream, last] for stream, last in self._last.items()], members])

    def restore(self, state: bytes) -> None:
        """Takes over a state, for the subscriptions that are there under the same id and text."""
        lasts, members = unpack(state, _ROWS)
        self._last = {(population, part): last for population, part, last in lasts}
        for id, text, first, parts in members:
            member = self._members.get(id)
            if member is not None and member.text == text:
                member.first = first
                member.parts = {name: _unpacked(*facts) for name, *facts in parts}


def _held(found: MemberRows, tables: Mapping[str, Table]) -> naive.Form:
    try:
        return Counter((change.table, tables[change.table].read(change.row)) for change in found.rows)
    except EventError as error:
        raise _other_tables(str(error)) from None
    except LookupError as error:
        raise _other_tables(f"there is no table {error}") from None


def _other_tables(what: str) -> WireError:
    return WireError(f"the rows are of other tables than those here: {what}; start the relay again")


def _total(part: str) -> int:
    return int(part.partition("/")[2])


def _packed(name: str, part: _Part) -> list[Any]:
    return [
        name,
        part.since,
        part.sequence,
        [[table, list(row), copies] for (table, row), copies in part.held.items()],
    ]


def _unpacked(since: int, sequence: int, rows: list[Any]) -> _Part:
    return _Part(since, Counter({(table, tuple(row)): copies for table, row, copies in rows}), sequence)
