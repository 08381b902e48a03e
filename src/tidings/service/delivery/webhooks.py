"""Delivers notifications to webhooks, in order, until the receiver has accepted them.

Each subscription has a lane. A lane attempts one notification at a time, and the next only after it was accepted;
lanes run in parallel, and slow receivers have workers of their own, so that quick ones do not wait for them. The
cursor is stored after the receiver has answered: after a crash some notifications are repeated, with the same
webhook-id, and none is lost. A failing receiver is retried with growing pauses, as long as there is something to
deliver.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import random
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tidings.service.delivery.hub import Hub
from tidings.service.delivery.notification_json import moment
from tidings.service.delivery.receivers import Receivers
from tidings.service.delivery.retries import pause
from tidings.service.delivery.webhook_attempts import DELIVERED, GONE, TIMEOUT, Outcome, attempt, attempt_test
from tidings.service.delivery.webhook_reads import WebhookMailbox, WebhookReads, WebhookRegistry
from tidings.service.model import Delivery, Notice, NotificationKind, StoredNotification

log = logging.getLogger(__name__)

AT_ONCE = 100  # of the quick receivers, and as many of the slow ones
AT_HOST = 20  # of one host, however many of them it receives
PAGE = 20  # that a lane delivers before the next one's turn
TURN = 2.0  # seconds of it
SLOW = 1.0  # seconds of an answer
LATE = 3_600.0  # after failing for longer, the subscriber gets a notice of the delay
TICK = 0.25  # seconds between two looks at what is due and what is to be noted
TESTS = 8  # test deliveries at once; more wait
GRACE = 5.0  # for tries under way when the service stops


@dataclass(slots=True)
class _Lane:
    queued: bool = False  # or being visited
    woken: bool = False  # there is news since it was queued
    stale: bool = False  # its webhook was changed since it was queued
    slow: bool = False
    due: float = 0.0  # not before
    timed: float = 0.0  # the last time that was set for it


class Webhooks:
    """Delivers to all webhooks, in an event loop; `poke` may be called from any thread."""

    def __init__(
        self,
        registry: WebhookRegistry,
        mailbox: WebhookMailbox,
        hub: Hub,
        receivers: Receivers,
        to_json: Callable[[StoredNotification], Mapping[str, object]],
        *,
        count: Callable[[str], None] = lambda outcome: None,
        clock: Callable[[], float] = time.time,
        tick: float = TICK,
        timeout: float = TIMEOUT,
        seed: int | None = None,
    ) -> None:
        self._registry = registry
        self._mailbox = mailbox
        self._hub = hub
        self._receivers = receivers
        self._reads = WebhookReads(registry, mailbox, PAGE, clock)
        self._to_json = to_json
        self._count = count
        self._clock = clock
        self._tick = tick
        self._timeout = timeout
        self._random = random.Random(seed)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = False
        self._lanes: dict[str, _Lane] = {}
        self._due: list[tuple[float, str]] = []
        self._moved: dict[str, Delivery] = {}  # not yet in the registry
        self._complained = False
        self._at_host: Counter[str] = Counter()
        self._parked: dict[
            str, deque[str]
        ] = {}  # host -> subscriptions that wait until it has fewer attempts
        self._quick: asyncio.Queue[str] = asyncio.Queue()
        self._slow: asyncio.Queue[str] = asyncio.Queue()
        self._tests = asyncio.Semaphore(TESTS)

    def poke(self, subscription: str) -> None:
        """Looks at a webhook again: it is new, was changed or removed, or shall be tried now."""
        self._call(self._changed, subscription)

    async def test(self, delivery: Delivery) -> Outcome:
        """Sends a test delivery now, past the queue; the cursor and the retries stay as they are. Only in the event loop
        that `run` runs in."""
        id = f"test_{secrets.token_hex(12)}"
        async with self._tests:
            return await attempt_test(self._receivers, delivery, id, self._clock(), self._timeout)

    async def run(self, stop: asyncio.Event) -> None:
        """Delivers until `stop` is set, and lets attempts under way end."""
        self._loop = asyncio.get_running_loop()
        self._hub.on_news(lambda news: self._call(self._news, news))
        ticking = asyncio.create_task(self._ticks())
        workers = [
            asyncio.create_task(self._work(queue))
            for queue in (self._quick, self._slow)
            for _ in range(AT_ONCE)
        ]
        try:
            await self._begin(stop)
            await stop.wait()
        finally:
            self._stopping, self._loop = True, None
            busy = [worker for worker in workers if not worker.done()]
            for queue in (self._quick, self._slow):
                for _ in range(AT_ONCE):
                    queue.put_nowait("")
            await asyncio.wait(busy, timeout=GRACE)
            for task in (*workers, ticking):
                task.cancel()
            await asyncio.gather(*workers, ticking, return_exceptions=True)
            await self._note()
            self._receivers.close()

    async def _begin(self, stop: asyncio.Event) -> None:
        """Queues the subscriptions that have undelivered notifications, found by one query for all webhooks."""
        while not stop.is_set():
            try:
                deliveries = await asyncio.to_thread(self._registry.deliveries)
                for delivery in deliveries:
                    lane = self._lanes.setdefault(delivery.subscription, _Lane())
                    lane.slow = delivery.failures > 0
                oldest = min((delivery.cursor for delivery in deliveries), default=0)
                _, news = await asyncio.to_thread(self._mailbox.news, oldest) if deliveries else (0, {})
            except Exception as error:
                self._complain(error)
                await asyncio.sleep(self._tick)
                continue
            for delivery in deliveries:
                if news.get(delivery.subscription, 0) > delivery.cursor:
                    self._changed(delivery.subscription)
            return

    # --- the queue of subscriptions, all in the loop's thread

    def _call(self, what: Callable[[Any], None], argument: Any) -> None:
        loop = self._loop
        if loop is not None:
            try:
                loop.call_soon_threadsafe(what, argument)
            except RuntimeError:  # it ended just now; a start looks at everything
                pass

    def _news(self, news: Mapping[str, int]) -> None:
        # Iterates the smaller one: there may be thousands of notified subscriptions, or of webhooks.
        few, many = (news, self._lanes) if len(news) < len(self._lanes) else (self._lanes, news)
        for subscription in [subscription for subscription in few if subscription in many]:
            lane = self._lanes[subscription]
            lane.woken = True
            self._queue(subscription, lane)

    def _changed(self, subscription: str) -> None:
        lane = self._lanes.setdefault(subscription, _Lane())
        lane.stale, lane.due = True, 0.0
        self._queue(subscription, lane)

    def _queue(self, subscription: str, lane: _Lane) -> None:
        if lane.queued or self._stopping:
            return
        if lane.due > self._clock():
            if lane.timed != lane.due:
                lane.timed = lane.due
                heapq.heappush(self._due, (lane.due, subscription))
            return
        lane.queued = True
        self._hand_over(subscription, lane)

    def _hand_over(self, subscription: str, lane: _Lane) -> None:
        (self._slow if lane.slow else self._quick).put_nowait(subscription)

    async def _ticks(self) -> None:
        # The clock is looked at again and again, because it may be set, or stand still while a machine sleeps.
        while True:
            await asyncio.sleep(self._tick)
            now = self._clock()
            while self._due and self._due[0][0] <= now:
                _, subscription = heapq.heappop(self._due)
                lane = self._lanes.get(subscription)
                if lane is not None and lane.due <= now:
                    self._queue(subscription, lane)
            await self._note()

    async def _note(self) -> None:
        """Stores the cursors and states of deliveries, many in one transaction."""
        moved = dict(self._moved)
        if not moved:
            return
        try:
            await asyncio.to_thread(self._registry.move_deliveries, list(moved.values()))
        except Exception as error:  # it is tried again with the next tick
            self._complain(error)
            return
        self._complained = False
        for subscription, delivery in moved.items():
            if self._moved.get(subscription) is delivery:
                del self._moved[subscription]

    def _complain(self, error: Exception) -> None:
        if not self._complained:
            log.warning("webhooks cannot go on, trying again: %s", error)
        self._complained = True

    # --- visits

    async def _work(self, queue: asyncio.Queue[str]) -> None:
        while not self._stopping:
            subscription = await queue.get()
            lane = self._lanes.get(subscription)
            if lane is None:
                continue
            lane.woken = lane.stale = False
            try:
                more = await self._visit(subscription, lane)
            except Exception as error:  # a store's trouble; a receiver's is an outcome
                self._complain(error)
                lane.due, more = self._clock() + 1.0, True
            if more is None:
                continue
            lane.queued = False
            if lane.stale:
                lane.due = 0.0
            if self._lanes.get(subscription) is lane and (more or lane.woken or lane.stale):
                self._queue(subscription, lane)

    async def _visit(self, subscription: str, lane: _Lane) -> bool | None:
        """Delivers the next few notifications. Returns whether there may be more; None if its host is busy, and then
        queues the lane again when the host is free."""
        # Taken before the registry is read: whatever is noted meanwhile, this is not older than what is found there.
        moved = self._moved.get(subscription)
        delivery, page = await self._reads.read(subscription, moved)
        if delivery is None:
            if not lane.stale:
                del self._lanes[subscription]
            return False
        if delivery.next_try > self._clock():
            lane.due = delivery.next_try
            return True
        host = delivery.url.partition("://")[2].partition("/")[0]
        if self._at_host[host] >= AT_HOST:
            self._parked.setdefault(host, deque()).append(subscription)
            return None
        self._at_host[host] += 1
        try:
            return await self._deliver(lane, delivery, page)
        finally:
            self._leave(host)

    def _leave(self, host: str) -> None:
        self._at_host[host] -= 1
        if not self._at_host[host]:
            del self._at_host[host]
        if waiting := self._parked.get(host):
            subscription = waiting.popleft()
            self._hand_over(subscription, self._lanes[subscription])
            if not waiting:
                del self._parked[host]

    async def _deliver(self, lane: _Lane, delivery: Delivery, page: list[StoredNotification]) -> bool:
        subscription = delivery.subscription
        began = time.monotonic()
        for notification in page:
            if self._stopping or lane.stale or time.monotonic() - began > TURN:
                return True
            before = time.monotonic()
            outcome = await attempt(
                self._receivers, delivery, notification, self._to_json, self._clock(), self._timeout
            )
            self._count(outcome.result)
            lane.slow = outcome.result != DELIVERED or time.monotonic() - before > SLOW
            late = _late(delivery, outcome, self._clock())
            if late:
                # Before the failure is cleared: after a crash in between it is sent again, as the same notice.
                last = await asyncio.to_thread(self._mailbox.last)
                await asyncio.to_thread(
                    self._mailbox.notify, [_delayed(delivery, notification, last, self._clock())]
                )
            delivery = self._moved[subscription] = self._next(delivery, notification, outcome)
            if outcome.result == GONE:
                log.info("a webhook is gone for good", extra={"fields": {"subscription": subscription}})
                if not lane.stale:
                    del self._lanes[subscription]
                return False
            if outcome.result != DELIVERED:
                lane.due = delivery.next_try
                return True
        return len(page) == PAGE

    def _next(self, delivery: Delivery, notification: StoredNotification, outcome: Outcome) -> Delivery:
        """The delivery after an attempt."""
        if outcome.result == DELIVERED:
            return replace(
                delivery, cursor=notification.number, failures=0, next_try=0.0, failing_since=None, error=None
            )
        now = self._clock()
        failures = delivery.failures + 1
        since = delivery.failing_since if delivery.failing_since is not None else now
        failed = replace(delivery, failures=failures, failing_since=since, error=outcome.error)
        if outcome.result == GONE:
            return replace(failed, disabled=outcome.error)
        return replace(failed, next_try=now + pause(self._random, failures, outcome.retry_after))


def _late(delivery: Delivery, outcome: Outcome, now: float) -> bool:
    since = delivery.failing_since
    return outcome.result == DELIVERED and since is not None and now - since > LATE


def _delayed(delivery: Delivery, notification: StoredNotification, last: int, now: float) -> Notice:
    assert delivery.failing_since is not None
    since = delivery.failing_since
    return Notice(
        delivery.subscription,
        NotificationKind.MISSED,
        f"delayed {since:.3f}",
        now,
        f"the webhook could not be reached from {moment(since)} to {moment(now)}:"
        f" what is numbered {notification.number} to {last} comes late",
    )
