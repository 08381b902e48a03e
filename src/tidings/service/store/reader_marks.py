"""Stores what readers mark: how far they have read each subscription, and which notifications have a star.

A position only moves on. Marks are deleted with the notifications that they are of (`Mailbox.forget`), so their number
is bounded by what the mailbox keeps, and stars by a limit for each reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import delete, func, select

from tidings.errors import TidingsError
from tidings.service.model import StoredNotification
from tidings.service.store import tables
from tidings.service.store.mailbox import Mailbox, stored_notifications
from tidings.service.store.received import Page
from tidings.service.store.tables import clean
from tidings.service.store.transactions import insert_columns

MOST_STARS: Final = 10_000
_NAMED = 1_000  # subscriptions or numbers in one statement
_ONWARD = "ON CONFLICT (reader, subscription) DO UPDATE SET number = excluded.number WHERE excluded.number > read_positions.number"
_ONCE = "ON CONFLICT (reader, number) DO NOTHING"


class TooManyStars(TidingsError):
    """The reader has as many stars as are kept."""

    status = 422


class ReaderMarks:
    """The marks of all readers; thread-safe."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._database = mailbox.database

    def positions(self, reader: str, subscriptions: Sequence[str]) -> dict[str, int]:
        """The number of the last notification that was read of each subscription; 0 before the first."""
        kept, found = tables.read_positions.c, dict.fromkeys(subscriptions, 0)
        with self._database.reading() as connection:
            for begin in range(0, len(subscriptions), _NAMED):
                some = [clean(id) for id in subscriptions[begin : begin + _NAMED]]
                query = select(kept.subscription, kept.number)
                query = query.where(kept.reader == reader, kept.subscription.in_(some))
                found.update(dict(connection.execute(query).all()))
        return found

    def move(self, reader: str, positions: Mapping[str, int]) -> None:
        """Notes what was read. A number that is not given to a notification yet counts as the last one."""
        counter = tables.counters.c
        with self._database.writing() as connection:
            query = select(counter.value).where(counter.name == "number")
            last = int(connection.execute(query).scalar_one())
            columns: dict[str, Sequence[Any]] = {
                "reader": [clean(reader)] * len(positions),
                "subscription": [clean(id) for id in positions],
                "number": [min(number, last) for number in positions.values()],
            }
            insert_columns(connection, tables.read_positions, columns, _ONWARD)

    def star(self, reader: str, notification: StoredNotification) -> None:
        kept = tables.stars
        with self._database.writing() as connection:
            others = kept.c.reader == reader, kept.c.number != notification.number
            query = select(func.count()).select_from(kept).where(*others)
            if connection.execute(query).scalar_one() >= MOST_STARS:
                raise TooManyStars(f"{MOST_STARS:,} notifications have a star; take some stars away first")
            columns: dict[str, Sequence[Any]] = {
                "reader": [clean(reader)],
                "number": [notification.number],
                "subscription": [clean(notification.subscription)],
            }
            insert_columns(connection, kept, columns, _ONCE)

    def unstar(self, reader: str, number: int) -> None:
        kept = tables.stars
        with self._database.writing() as connection:
            connection.execute(delete(kept).where(kept.c.reader == reader, kept.c.number == number))

    def starred(self, reader: str, numbers: Sequence[int]) -> set[int]:
        """Those of these notifications that have a star."""
        kept = tables.stars.c
        query = select(kept.number).where(kept.reader == reader, kept.number.in_(numbers))
        with self._database.reading() as connection:
            return set(connection.execute(query).scalars())

    def starred_page(
        self, reader: str, subscription: str | None, *, before: int | None = None, limit: int = 50
    ) -> Page:
        """The notifications with a star, of one subscription or of all, newest first."""
        kept = tables.stars.c
        query = select(kept.number).where(kept.reader == reader).order_by(kept.number.desc()).limit(limit)
        if subscription is not None:
            query = query.where(kept.subscription == subscription)
        if before is not None:
            query = query.where(kept.number < before)
        with self._database.reading() as connection:
            numbers = list(connection.execute(query).scalars())
            found = stored_notifications(connection, numbers)[::-1]
        return Page(found, numbers[-1] if len(numbers) == limit else None)
