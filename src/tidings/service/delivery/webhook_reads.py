"""Reads what webhooks need from the stores, for all that need it at the same time in one turn.

A turn is one query for the deliveries and one for the notifications. Those that come while it runs are read in the next
one: the more webhooks have something to deliver, the more each turn reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from tidings.service.model import Delivery, Notice, StoredNotification


class WebhookRegistry(Protocol):
    """The part of a registry that webhooks use."""

    def deliveries(self, *, due: float | None = None) -> list[Delivery]: ...
    def wanted_deliveries(self, subscriptions: Sequence[str]) -> list[Delivery]: ...
    def move_deliveries(self, deliveries: Sequence[Delivery]) -> int: ...


class WebhookMailbox(Protocol):
    """The part of a mailbox that webhooks use."""

    def pages(self, after: Mapping[str, int], limit: int) -> dict[str, list[StoredNotification]]: ...
    def last(self) -> int: ...
    def news(self, after: int) -> tuple[int, dict[str, int]]: ...
    def notify(self, notices: Sequence[Notice]) -> None: ...


class Found(NamedTuple):
    """A webhook as it is now, with the next notifications if it is due; None if it was removed, or nothing more is to be
    delivered."""

    delivery: Delivery | None
    page: list[StoredNotification]


class WebhookReads:
    """The reads of one event loop. A subscription that is being read already is not requested again."""

    def __init__(
        self, registry: WebhookRegistry, mailbox: WebhookMailbox, limit: int, clock: Callable[[], float]
    ) -> None:
        self._registry, self._mailbox, self._limit, self._clock = registry, mailbox, limit, clock
        self._asked: dict[str, tuple[Delivery | None, asyncio.Future[Found]]] = {}
        self._turns: asyncio.Task[None] | None = None

    async def read(self, subscription: str, moved: Delivery | None) -> Found:
        """Reads a webhook. `moved` is its delivery as it was left, which the registry may not have yet."""
        future: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
        self._asked[subscription] = moved, future
        if self._turns is None or self._turns.done():
            self._turns = asyncio.create_task(self._take_turns())
        return await future

    async def _take_turns(self) -> None:
        while self._asked:
            asked, self._asked = self._asked, {}
            try:
                found = await asyncio.to_thread(self._read, {id: moved for id, (moved, _) in asked.items()})
            except Exception as error:  # it is each one's own to try again
                for _, future in asked.values():
                    if not future.done():
                        future.set_exception(error)
                continue
            for id, (_, future) in asked.items():
                if not future.done():
                    future.set_result(found[id])

    def _read(self, asked: Mapping[str, Delivery | None]) -> dict[str, Found]:
        now = self._clock()
        wanted = {}
        for delivery in self._registry.wanted_deliveries(list(asked)):
            moved = asked[delivery.subscription]
            if moved is not None and (moved.url, moved.secret) == (delivery.url, delivery.secret):
                delivery = moved
            if delivery.disabled is None:
                wanted[delivery.subscription] = delivery
        due = {id: delivery.cursor for id, delivery in wanted.items() if delivery.next_try <= now}
        pages = self._mailbox.pages(due, self._limit) if due else {}
        return {id: Found(wanted.get(id), pages.get(id, [])) for id in asked}
