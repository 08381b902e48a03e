"""The WebSub hub of this service's own feeds: verifies who wants to subscribe, keeps leases, and has feeds pushed.

A request is answered before anything is verified. Then the callback is asked whether it wants this (5.3): only its echo of a
random challenge changes a subscription. How many requests a host can be sent this way is limited, since its name may
come from somebody else. A feed that nobody may know of is denied like one that does not exist.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol
from urllib.parse import urlencode

from tidings.service.delivery.feed_documents import FeedDocuments, Topic
from tidings.service.delivery.hub import Hub
from tidings.service.delivery.receivers import Receivers
from tidings.service.delivery.webhook_attempts import Outcome, answer_or_failure
from tidings.service.model import HubSubscription, State
from tidings.service.store.hub_subscriptions import HubSubscriptions
from tidings.service.subscriptions.access_control import TooMany
from tidings.service.websub.distribution import Distribution
from tidings.service.websub.hub_requests import SUBSCRIBE, HubRequest

log = logging.getLogger(__name__)

OF_FEED = 5_000  # subscribers of a feed, in all its formats
OF_HOST = 5_000  # subscribers at a host
PENDING = 1_000  # requests that wait for their verification
TIMEOUT = 10.0  # of a verification
SWEEP = 60.0  # seconds between two looks for ended leases and feeds
TICK = 0.25
GRACE = 5.0
_HEADERS = {"User-Agent": "tidings (WebSub hub)", "Accept-Encoding": "identity"}


class Numbers(Protocol):
    """The part of a mailbox that the hub uses."""

    def last(self) -> int: ...
    def news(self, after: int) -> tuple[int, dict[str, int]]: ...


class WebSubHub:
    """The hub, in an event loop."""

    def __init__(
        self,
        store: HubSubscriptions,
        documents: FeedDocuments,
        mailbox: Numbers,
        hub: Hub,
        receivers: Receivers,
        *,
        distribution: Distribution,
        count: Callable[[str], None] = lambda outcome: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._documents, self._mailbox, self._hub = store, documents, mailbox, hub
        self._receivers, self._distribution = receivers, distribution
        self._count, self._clock = count, clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pushed: set[str] = set()  # subscriptions that have subscribers here, and may be some that had
        self._pending: dict[str, asyncio.Task[bool]] = {}  # the last request for each feed and callback
        self._tasks: set[asyncio.Task[bool]] = set()
        self._changed: set[str] = (
            set()
        )  # subscriptions whose subscribers have not been looked at since there was news

    # --- requests

    def accept(self, request: HubRequest) -> None:
        """Takes a request, to verify it soon; TooMany if too many wait. Only in the event loop of `run`."""
        if self._loop is None or len(self._tasks) >= PENDING:
            raise TooMany("the hub has too many requests to verify; try again in a minute", 60.0)
        task = self._start(self._handle(request, self._pending.get(request.id)))
        self._pending[request.id] = task
        task.add_done_callback(lambda done: self._done(request.id, done))

    def _done(self, id: str, task: asyncio.Task[bool]) -> None:
        if self._pending.get(id) is task:
            del self._pending[id]

    async def _handle(self, request: HubRequest, before: asyncio.Task[bool] | None) -> None:
        """Verifies a request after the one before for the same feed and callback, so that the last one counts."""
        if before is not None:
            await asyncio.wait([before])
        subscription = ""
        cursor = await asyncio.to_thread(
            self._mailbox.last
        )  # before the callback is asked: what comes then is pushed
        if request.mode == SUBSCRIBE:
            found = await asyncio.to_thread(self._documents.found, request.topic.key)
            if found is None or found.state is State.CANCELLED:
                await self._deny(request.host, request.callback, request.topic_url, "there is no such feed")
                return
            if reason := await asyncio.to_thread(self._refusal, request):
                await self._deny(request.host, request.callback, request.topic_url, reason)
                return
            subscription = found.id
        granted = self._clock()
        if not await self._is_wanted(request):
            self._count("unverified")
            return
        self._count("verified")
        if request.mode != SUBSCRIBE:
            await asyncio.to_thread(self._store.remove, request.id)
            return
        subscriber = HubSubscription(
            request.id,
            subscription,
            request.topic.key,
            request.topic.format,
            request.callback,
            request.host,
            request.secret,
            granted + request.lease,
            cursor,
        )
        await asyncio.to_thread(self._store.put, subscriber)
        self._pushed.add(subscription)
        self._changed.add(subscription)
        await self._wake()

    def _refusal(self, request: HubRequest) -> str | None:
        now = self._clock()
        if self._store.find(request.id, now) is not None:
            return None
        of_feed, of_host = self._store.counts(request.topic.key, request.host, now)
        if of_feed >= OF_FEED:
            return f"the feed has {OF_FEED:,} subscribers already"
        if of_host >= OF_HOST:
            return f"callbacks at this host have {OF_HOST:,} subscriptions already"
        return None

    async def _is_wanted(self, request: HubRequest) -> bool:
        """Whether the callback confirms the request: a 2xx with exactly the challenge."""
        challenge = secrets.token_urlsafe(32)
        given = {"hub.mode": request.mode, "hub.topic": request.topic_url, "hub.challenge": challenge}
        if request.mode == SUBSCRIBE:
            given["hub.lease_seconds"] = str(request.lease)
        answer = await self._get(request.host, request.callback, given)
        if answer is None:
            return False
        status, body = answer
        return 200 <= status < 300 and secrets.compare_digest(body, challenge.encode())

    async def _deny(self, host: str, callback: str, topic: str, reason: str) -> None:
        self._count("denied")
        await self._get(host, callback, {"hub.mode": "denied", "hub.topic": topic, "hub.reason": reason})

    async def _get(self, host: str, callback: str, given: Mapping[str, str]) -> tuple[int, bytes] | None:
        """Asks a callback, with parameters after those that it has; None if it did not answer."""
        url = f"{callback}{'&' if '?' in callback else '?'}{urlencode(given)}"
        async with self._distribution.slot(host, failing=True):
            answer = await answer_or_failure(self._receivers.get(url, _HEADERS), TIMEOUT)
        return None if isinstance(answer, Outcome) else (answer.status, answer.body)

    # --- news

    async def run(self, stop: asyncio.Event) -> None:
        """Verifies and pushes until `stop` is set."""
        self._loop = asyncio.get_running_loop()
        self._hub.on_news(self._call)
        ticking = asyncio.create_task(self._ticks())
        try:
            await stop.wait()
        finally:
            self._loop = None
            for task in (ticking, *self._tasks):
                task.cancel()
            await asyncio.gather(ticking, *self._tasks, return_exceptions=True)
            try:
                await self._distribution.stop(GRACE)
            except Exception as error:
                log.warning("how far subscribers of feeds are could not be stored: %s", error)
            self._receivers.close()

    def _call(self, news: Mapping[str, int]) -> None:
        """From the thread of the mailbox's hub."""
        if (loop := self._loop) is not None:
            try:
                loop.call_soon_threadsafe(self._news, news)
            except RuntimeError:  # it ended just now; a start looks at everything
                pass

    def _news(self, news: Mapping[str, int]) -> None:
        if changed := self._pushed.intersection(news):
            self._changed |= changed
            self._start(self._wake())

    async def _wake(self) -> None:
        """Has subscribers pushed to whose feeds have changed."""
        changed, self._changed = self._changed, set()
        try:
            found = await asyncio.to_thread(self._store.of, list(changed), self._clock())
        except BaseException:
            self._changed |= changed
            raise
        self._distribution.wake(found)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[bool]:
        task = asyncio.create_task(self._logged(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _logged(self, work: Coroutine[Any, Any, None]) -> bool:
        """Whether it could be done."""
        try:
            await work
            return True
        except Exception as error:  # a store's trouble; the next tick tries again
            log.warning("the WebSub hub has to try again: %s", error)
            return False

    async def _ticks(self) -> None:
        swept: float | None = None
        begun = False
        while True:
            if not begun:
                begun = await self._logged(self._begin())
            if swept is None or self._clock() - swept >= SWEEP:
                swept = self._clock()
                self._start(self._sweep())
            if self._changed:
                await self._logged(self._wake())
            await asyncio.sleep(TICK)
            await self._logged(self._distribution.note())

    async def _begin(self) -> None:
        """Has those pushed to for whom there was news before the start."""
        kept = await asyncio.to_thread(self._store.all, self._clock())
        self._pushed |= {subscriber.subscription for subscriber in kept}
        oldest = min((subscriber.cursor for subscriber in kept), default=0)
        _, news = await asyncio.to_thread(self._mailbox.news, oldest) if kept else (0, {})
        self._distribution.wake(each for each in kept if news.get(each.subscription, 0) > each.cursor)

    async def _sweep(self) -> None:
        """Ends leases, and denies feeds that are gone."""
        now = self._clock()
        await asyncio.to_thread(self._store.forget_ended, now)
        for gone in await asyncio.to_thread(self._store.without_feed, now):
            await asyncio.to_thread(self._store.remove, gone.id)
            address = self._documents.address(Topic(gone.key, gone.format))
            await self._deny(gone.host, gone.callback, address, "the feed is gone")
