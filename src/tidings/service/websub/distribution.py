"""Pushes a feed to its subscribers when it has something new, each in order, until the callback has accepted it.

Every subscriber that is behind has a lane: it is pushed the feed as it was after the next notifications, and the next
state only after this one was accepted or given up. Subscribers that are equally far get the same bytes, rendered once.
How far each is, is stored a moment after its answer: after a crash a feed may be pushed again, with the same entries.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from tidings.service.delivery.feed_documents import FeedDocuments, FeedUpdate, Topic
from tidings.service.delivery.receivers import Receivers
from tidings.service.delivery.retries import pause
from tidings.service.delivery.webhook_attempts import DELIVERED, GONE, Outcome, request
from tidings.service.model import HubSubscription
from tidings.service.store.hub_subscriptions import HubSubscriptions
from tidings.service.websub.signatures import sign

log = logging.getLogger(__name__)

AT_ONCE = 100  # posts to callbacks that work, and as many to those that fail
AT_HOST = 20
TRIES = 12  # of one state of a feed; with their pauses about half an hour
BETWEEN = 1.0  # seconds between two pushes to a callback: what comes meanwhile is pushed together
_AFTER_TROUBLE = 5.0
_KEPT = 64  # rendered feeds
_AGENT = "tidings (WebSub hub)"


@dataclass(slots=True)
class _Host:
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_HOST))
    users: int = 0


class Distribution:
    """The lanes of all subscribers, in one event loop."""

    def __init__(
        self,
        store: HubSubscriptions,
        documents: FeedDocuments,
        receivers: Receivers,
        last: Callable[[], int],
        *,
        count: Callable[[str], None] = lambda outcome: None,
        clock: Callable[[], float] = time.time,
        between: float = BETWEEN,
    ) -> None:
        self._store, self._documents, self._receivers, self._last = store, documents, receivers, last
        self._count, self._clock, self._between = count, clock, between
        self._pause = partial(pause, random.Random())
        self._lanes: dict[str, asyncio.Task[None]] = {}
        self._woken: set[str] = set()
        self._moved: dict[str, HubSubscription] = {}  # not yet stored
        self._rendered: OrderedDict[tuple[Topic, int], asyncio.Task[FeedUpdate | None]] = OrderedDict()
        self._hosts: dict[str, _Host] = {}
        self._working, self._failing = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(AT_ONCE)
        self._stopping = asyncio.Event()

    def wake(self, subscribers: Iterable[HubSubscription]) -> None:
        """Pushes to these if there is something that they do not have. A feed that was rendered before may lack it."""
        subscribers = list(subscribers)
        changed = {Topic(subscriber.key, subscriber.format) for subscriber in subscribers}
        for topic, after in list(self._rendered):
            if topic in changed:
                del self._rendered[topic, after]
        for subscriber in subscribers:
            if self._stopping.is_set():
                return
            id = subscriber.id
            if id in self._lanes:
                self._woken.add(id)
                continue
            lane = asyncio.create_task(self._run(self._as_moved(subscriber)))
            self._lanes[id] = lane
            lane.add_done_callback(partial(self._end, id))

    def _end(self, id: str, lane: asyncio.Task[None]) -> None:
        del self._lanes[id]
        self._woken.discard(id)

    async def note(self) -> None:
        """Stores how far the subscribers are, many in one transaction."""
        moved = dict(self._moved)
        if not moved:
            return
        await asyncio.to_thread(self._store.move, list(moved.values()))
        for id, subscriber in moved.items():
            if self._moved.get(id) is subscriber:
                del self._moved[id]

    async def stop(self, grace: float) -> None:
        """Lets posts under way end."""
        self._stopping.set()
        lanes = list(self._lanes.values())
        if lanes:
            await asyncio.wait(lanes, timeout=grace)
        for lane in lanes:
            lane.cancel()
        await asyncio.gather(*lanes, return_exceptions=True)
        await self.note()

    @asynccontextmanager
    async def slot(self, host: str, *, failing: bool) -> AsyncIterator[None]:
        """One of the requests that are made at the same time: of all, and to this host."""
        at = self._hosts.setdefault(host, _Host())
        at.users += 1
        try:
            async with at.slots, self._failing if failing else self._working:
                yield
        finally:
            at.users -= 1
            if not at.users:
                del self._hosts[host]

    def _as_moved(self, read: HubSubscription) -> HubSubscription:
        """A subscriber as it was read, with how far it is now."""
        moved = self._moved.get(read.id)
        if moved is None:
            return read
        return replace(
            read, cursor=moved.cursor, failures=moved.failures, next_try=moved.next_try, error=moved.error
        )

    async def _run(self, subscriber: HubSubscription) -> None:
        is_fresh = True
        while not self._stopping.is_set():
            self._woken.discard(subscriber.id)
            try:
                subscriber, may_be_more = await self._push(subscriber, is_fresh)
                is_fresh = False
            except Exception as error:  # a store's trouble; a callback's is an outcome
                log.warning("a feed cannot be pushed now, trying again: %s", error)
                await self._wait(_AFTER_TROUBLE)
                continue
            if not may_be_more and subscriber.id not in self._woken:
                return

    async def _push(self, subscriber: HubSubscription, is_fresh: bool) -> tuple[HubSubscription, bool]:
        """Pushes what is new, and waits as long as the next push has to. Returns how far the subscriber is, and whether there
        may be more for it than there will be news of."""
        await self._wait(subscriber.next_try - self._clock())
        if subscriber.failures or not is_fresh:  # it may have ended meanwhile, or have another secret
            read = await asyncio.to_thread(self._store.find, subscriber.id, self._clock())
            if read is None:
                return subscriber, False
            subscriber = self._as_moved(read)
        if self._stopping.is_set() or subscriber.until <= self._clock():
            return subscriber, False
        async with self.slot(subscriber.host, failing=subscriber.failures > 0):
            update = await self._update(Topic(subscriber.key, subscriber.format), subscriber.cursor)
            if update is None:
                return subscriber, False
            outcome = await self._post(subscriber, update)
        self._count(outcome.result)
        if outcome.result == GONE:
            await asyncio.to_thread(self._store.remove, subscriber.id)
            return subscriber, False
        subscriber = self._moved[subscriber.id] = await self._next(subscriber, update, outcome)
        if not update.more:
            await self._wait(self._between)
        return subscriber, update.more or subscriber.failures > 0

    async def _wait(self, seconds: float) -> None:
        """Ends early if there is a stop."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._stopping.wait()

    async def _update(self, topic: Topic, after: int) -> FeedUpdate | None:
        rendering = self._rendered.get((topic, after))
        if rendering is None:
            rendering = asyncio.create_task(asyncio.to_thread(self._documents.update, topic, after))
            self._rendered[topic, after] = rendering
            if len(self._rendered) > _KEPT:
                self._rendered.popitem(last=False)
        try:
            update = await asyncio.shield(rendering)
        except Exception:
            self._rendered.pop((topic, after), None)
            raise
        if update is None:  # as long as there is nothing new
            self._rendered.pop((topic, after), None)
        return update

    async def _post(self, subscriber: HubSubscription, update: FeedUpdate) -> Outcome:
        feed = update.rendered
        links = {"hub": feed.links["hub"], "self": feed.links["self"]}
        headers = {
            "Content-Type": feed.media_type,
            "Link": ", ".join(f'<{address}>; rel="{relation}"' for relation, address in links.items()),
            "User-Agent": _AGENT,
            "Accept-Encoding": "identity",
        }
        if subscriber.secret is not None:
            headers["X-Hub-Signature"] = sign(subscriber.secret, feed.body)
        outcome, _ = await request(
            self._receivers, "POST", subscriber.callback, headers, feed.body, now=self._clock()
        )
        return outcome

    async def _next(
        self, subscriber: HubSubscription, update: FeedUpdate, outcome: Outcome
    ) -> HubSubscription:
        """The subscriber after a push. One that failed too often is given up until there is something new."""
        if outcome.result == DELIVERED:
            return replace(subscriber, cursor=update.number, failures=0, next_try=0.0, error=None)
        failures = subscriber.failures + 1
        if failures >= TRIES:
            last = await asyncio.to_thread(self._last)
            return replace(subscriber, cursor=last, failures=0, next_try=0.0, error=outcome.error)
        next_try = self._clock() + self._pause(failures, outcome.retry_after)
        return replace(subscriber, failures=failures, next_try=next_try, error=outcome.error)
