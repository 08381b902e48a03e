"""Reads what open streams need from the mailbox, for all that were woken at the same time in one turn.

A turn is one query for all streams of one subscription, and one for each stream of several. Streams that come while it runs are
read in the next one. An event is encoded once, however many notifications it is in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from tidings.service.model import StoredNotification


class MailboxPages(Protocol):
    """The part of a mailbox that streams use."""

    def page(
        self, subscriptions: Sequence[str], *, after: int | None = None, limit: int = 50
    ) -> list[StoredNotification]: ...
    def pages(self, after: Mapping[str, int], limit: int) -> dict[str, list[StoredNotification]]: ...
    def first(self) -> int: ...
    def last(self) -> int: ...


class StreamPage(NamedTuple):
    """The next notifications of a stream, and their bytes."""

    page: Sequence[StoredNotification]
    text: bytes


class _Asked(NamedTuple):
    ids: frozenset[str]
    after: int
    future: asyncio.Future[StreamPage]


NOTHING = StreamPage((), b"")


class StreamReads:
    """The reads of the streams of one event loop. `encode` makes the bytes of a notification."""

    def __init__(
        self, mailbox: MailboxPages, encode: Callable[[StoredNotification], bytes], limit: int
    ) -> None:
        self._mailbox, self._encode, self.limit = mailbox, encode, limit
        self._asked: list[_Asked] = []
        self._turns: asyncio.Task[None] | None = None

    async def read(self, ids: frozenset[str], after: int) -> StreamPage:
        """What these subscriptions have after a number, at most a page."""
        if not ids:
            return NOTHING
        future: asyncio.Future[StreamPage] = asyncio.get_running_loop().create_future()
        self._asked.append(_Asked(ids, after, future))
        if self._turns is None or self._turns.done():
            self._turns = asyncio.create_task(self._take_turns())
        return await future

    async def _take_turns(self) -> None:
        while self._asked:
            asked, self._asked = self._turn(self._asked)
            try:
                found = await asyncio.to_thread(self._read, asked)
            except Exception as error:  # each stream ends by it, or tries again
                for one in asked:
                    if not one.future.done():
                        one.future.set_exception(error)
                continue
            for one, page in zip(asked, found, strict=True):
                if not one.future.done():  # its client may have gone
                    one.future.set_result(page)

    @staticmethod
    def _turn(waiting: list[_Asked]) -> tuple[list[_Asked], list[_Asked]]:
        """Those that are read now, and those that wait: a subscription is read from one number at a time."""
        numbers: dict[str, int] = {}
        now, later = list[_Asked](), list[_Asked]()
        for one in waiting:
            single = next(iter(one.ids)) if len(one.ids) == 1 else ""
            fits = not single or numbers.setdefault(single, one.after) == one.after
            (now if fits else later).append(one)
        return now, later

    def _read(self, asked: Sequence[_Asked]) -> list[StreamPage]:
        singles = {next(iter(one.ids)): one.after for one in asked if len(one.ids) == 1}
        pages = self._mailbox.pages(singles, self.limit) if singles else {}
        texts: dict[int, bytes] = {}
        found = []
        for one in asked:
            if len(one.ids) == 1:
                page = pages.get(next(iter(one.ids)), [])
            else:
                page = self._mailbox.page(sorted(one.ids), after=one.after, limit=self.limit)
            for notification in page:
                if notification.number not in texts:
                    texts[notification.number] = self._encode(notification)
            found.append(StreamPage(page, b"".join(texts[notification.number] for notification in page)))
        return found
