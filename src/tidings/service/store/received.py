"""Reads the mailbox as people do: newest first without what is undecided, and that by its causes, with counts.

A request looks at a bounded number of notifications, however many there are, and says where the next one goes on. A
failing operator may have written a million undecided ones between two matches.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sqlalchemy import func, select

from tidings.service.model import StoredNotification
from tidings.service.store import tables
from tidings.service.store.mailbox import Mailbox, kept_numbers, stored_notifications
from tidings.service.store.notification_search import (
    Among,
    Span,
    newest_decided,
    newest_of_each,
    numbers_of,
    numbers_of_each,
)
from tidings.service.store.tables import block, clean, numbers_in

CAUSES_FROM: Final = 2_000  # undecided notifications that are looked at to count their causes
UNREAD: Final = 100  # notifications after the last that was read, of each subscription, that are counted
_BLOCKS: Final = 8  # half a million numbers
_ACTIVE_BLOCKS: Final = 16  # a subscription without notifications in these has no latest one, and none unread
_NAMED: Final = 1_000  # numbers in one statement
_OF_ERROR = re.compile(r"\S+ failed: \w+")
_VARIES = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")

_columns = tables.notifications.c


class Page(NamedTuple):
    """Notifications, newest first, and the number before which the next page begins; None on the last one."""

    notifications: list[StoredNotification]
    further: int | None


@dataclass(slots=True)
class Cause:
    """Undecided notifications that have the same operator and error. `message` is that of the last one."""

    name: str
    message: str
    last: int
    at: float
    count: int = 0
    subscriptions: set[str] = field(default_factory=set)


class Causes(NamedTuple):
    """Causes, the latest first; `more` if there are undecided notifications that were not looked at."""

    causes: list[Cause]
    more: bool


class Unread(NamedTuple):
    """How many notifications of a subscription are unread; `more` if there are more than were counted."""

    unread: int
    undecided: int
    more: bool


NOTHING_UNREAD: Final = Unread(0, 0, False)


class Received:
    """The notifications of subscriptions, for people; thread-safe."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._database = mailbox.database

    def page(self, subscriptions: Sequence[str], *, before: int | None = None, limit: int = 50) -> Page:
        """Those that are not undecided. A page may be short although it is not the last."""
        numbers, further = self.numbers(subscriptions, before=before, limit=limit)
        return Page(self.read(numbers), further)

    def numbers(
        self, subscriptions: Sequence[str], *, before: int | None, limit: int
    ) -> tuple[list[int], int | None]:
        """The numbers of such a page, newest first, and where the next one begins."""
        with self._database.reading() as connection:
            span = _before(kept_numbers(connection), before)
            return newest_decided(connection, _ids(subscriptions), span, limit, _BLOCKS)

    def read(self, numbers: Sequence[int]) -> list[StoredNotification]:
        """The notifications with these numbers that are still kept, newest first."""
        with self._database.reading() as connection:
            return stored_notifications(connection, numbers)[::-1]

    def news(self, subscriptions: Sequence[str], after: int, limit: int) -> list[StoredNotification]:
        """Those after a number that are not undecided, oldest first."""
        ids = _ids(subscriptions)
        with self._database.reading() as connection:
            kept = kept_numbers(connection)
            span = Span(max(kept.first, after + 1), kept.last)
            numbers = numbers_of(connection, ids, span, limit, newest=False, among=Among.DECIDED)
            return stored_notifications(connection, numbers)

    def undecided(self, subscriptions: Sequence[str], *, before: int | None = None, limit: int = 50) -> Page:
        ids = _ids(subscriptions)
        with self._database.reading() as connection:
            span = _before(kept_numbers(connection), before)
            numbers = numbers_of(connection, ids, span, limit, newest=True, among=Among.UNDECIDED)
            found = stored_notifications(connection, numbers)[::-1]
        return Page(found, numbers[-1] if len(numbers) == limit else None)

    def causes(self, subscriptions: Sequence[str], *, after: int = 0, until: int | None = None) -> Causes:
        """Why notifications with numbers above `after`, up to `until`, are undecided."""
        ids = _ids(subscriptions)
        found: dict[str, Cause] = {}
        with self._database.reading() as connection:
            kept = kept_numbers(connection)
            span = Span(max(kept.first, after + 1), kept.last if until is None else min(kept.last, until))
            numbers = numbers_of(connection, ids, span, CAUSES_FROM + 1, newest=True, among=Among.UNDECIDED)
            chosen = (_columns.number, _columns.subscription, _columns.message, _columns.at)
            query = select(*chosen).where(_columns.number.in_(numbers[:CAUSES_FROM]))
            for row in connection.execute(query.order_by(_columns.number.desc())):
                message = row.message or "no reason is recorded"
                name = cause_of(message)
                cause = found.setdefault(name, Cause(name, message, row.number, row.at))
                cause.count += 1
                cause.subscriptions.add(row.subscription)
        return Causes(list(found.values()), len(numbers) > CAUSES_FROM)

    def latest(self, subscriptions: Sequence[str]) -> dict[str, int]:
        """The number of the latest notification of each subscription; those without one lately are left out."""
        with self._database.reading() as connection:
            return newest_of_each(connection, _ids(subscriptions), kept_numbers(connection), _ACTIVE_BLOCKS)

    def times(self, numbers: Sequence[int]) -> dict[int, float]:
        """When these notifications came."""
        query = select(_columns.number, _columns.at).where(_columns.number.in_(numbers))
        with self._database.reading() as connection:
            return dict(connection.execute(query).all())

    def unread(self, positions: Mapping[str, int]) -> dict[str, Unread]:
        """What each subscription has after the number that was read last, in the last blocks of numbers; those without
        any are left out."""
        cursors = {clean(id): number for id, number in positions.items()}
        with self._database.reading() as connection:
            kept = kept_numbers(connection)
            newest = connection.execute(select(func.max(_columns.number))).scalar() or 0
            first, _ = numbers_in(block(newest) - _ACTIVE_BLOCKS + 1)
            span = Span(max(kept.first, first), kept.last)
            numbers = numbers_of_each(connection, cursors, span, UNREAD + 1)
            counted = {id: given[:UNREAD] for id, given in numbers.items()}
            wanted = [number for given in counted.values() for number in given]
            query = select(_columns.number).where(_columns.kind == "undecided")
            undecided: set[int] = set()
            for begin in range(0, len(wanted), _NAMED):
                portion = _columns.number.in_(wanted[begin : begin + _NAMED])
                undecided.update(connection.execute(query.where(portion)).scalars())
        found = {}
        for id, given in counted.items():
            doubtful = sum(number in undecided for number in given)
            found[id] = Unread(len(given) - doubtful, doubtful, len(numbers[id]) > UNREAD)
        return found


def cause_of(message: str) -> str:
    """The operator and the kind of its error; of another message what does not vary from event to event."""
    found = _OF_ERROR.match(message)
    return found[0] if found else _VARIES.sub("…", message)[:200]


def _ids(subscriptions: Sequence[str]) -> list[str]:
    return sorted({clean(id) for id in subscriptions})


def _before(kept: Span, before: int | None) -> Span:
    return kept if before is None else Span(kept.first, min(kept.last, before - 1))
