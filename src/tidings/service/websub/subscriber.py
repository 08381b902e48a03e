"""Subscribes at the hubs that followed feeds name, renews before a lease ends, and unsubscribes, in a thread of its own.

`push_plan.py` decides what is to be done. A subscription is stored before its hub is asked: the hub may verify it
at once. Feeds are polled all the same, less often while a hub pushes them.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import NamedTuple

import httpx

from tidings.errors import TidingsError
from tidings.feeds.addresses import guarded_client
from tidings.feeds.push_states import Push, PushState, PushStates
from tidings.feeds.states import FeedStates
from tidings.service.ingest.feed_poller import Sources
from tidings.service.settings import Settings
from tidings.service.websub.hub_asking import UNSUBSCRIBED, ask
from tidings.service.websub.push_plan import IN_A_ROUND, Plan, can_call, plan

LEASE = 7 * 86_400  # seconds that are asked for
CHECK = 60.0  # seconds for the feed to be fetched before a renewal
FIRST_RETRY, LAST_RETRY = 300.0, 86_400.0
LONGEST_WAIT = 30.0
AT_ONCE = 4  # requests to hubs
CALLBACKS = "/websub/callbacks/"
_SHORTEST_WAIT = 0.05

log = logging.getLogger(__name__)


class PushHealth(NamedTuple):
    """How a feed comes: pushed by `hub` until a time, or polled, with a note if it could be otherwise."""

    hub: str | None = None
    until: float | None = None
    pushed: float | None = None  # the last time
    note: str | None = None


class Subscriber:
    """The thread; call `wake` after a feed was fetched, added or removed."""

    def __init__(
        self,
        registry: Sources,
        settings: Settings,
        fetch_now: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._registry, self._settings, self._fetch_now, self._clock = registry, settings, fetch_now, clock
        self.path = settings.data / "feeds.db"
        self._wake, self._stopping = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name="websub", daemon=True)
        with self.states() as states:
            states.create()

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def states(self) -> PushStates:
        """The states of all subscriptions, for the thread that calls."""
        return PushStates(self.path)

    def pushed(self) -> set[str]:
        """The addresses of the feeds that hubs push; none if their file cannot be read now."""
        try:
            with self.states() as states:
                return states.active(self._clock())
        except sqlite3.Error as error:
            log.warning("the subscriptions at hubs cannot be read: %s", error)
            return set()

    def health(self, urls: Sequence[str]) -> dict[str, PushHealth]:
        """How each of these feeds comes; callable from any thread."""
        now, found = self._clock(), dict.fromkeys(urls, PushHealth())
        try:
            with self.states() as states, closing(FeedStates(self.path, read_only=True)) as feeds:
                pushes = states.of(urls)
                named = {url: hubs for url in urls for hubs in feeds.named_hubs(url).values()}
        except (TidingsError, sqlite3.Error) as error:
            log.warning("the subscriptions at hubs cannot be read: %s", error)
            return found
        of: dict[str, list[Push]] = {url: [] for url in urls}
        for push in pushes:
            if push.state is not PushState.ENDING:
                of[push.url].append(push)
        for url, mine in of.items():
            active = [push for push in mine if push.state is PushState.ACTIVE and push.until > now]
            if active:
                found[url] = PushHealth(active[-1].hub, active[-1].until, active[-1].pushed)
            elif mine:
                waiting = f"the hub {mine[-1].hub} was asked to push it"
                found[url] = PushHealth(note=mine[-1].error or waiting)
            elif url in named and not any(can_call(self._settings, hub) for hub in named[url].hubs):
                reason = "cannot call this service; start it with --url"
                found[url] = PushHealth(note=f"the hub {named[url].hubs[0]} {reason}")
        return found

    def _run(self) -> None:
        with guarded_client(self._settings.allowed) as client, ThreadPoolExecutor(AT_ONCE) as pool:
            while not self._stopping:
                self._wake.clear()
                try:
                    wait = self._round(client, pool)
                except Exception as error:  # of a store
                    log.warning("hubs are looked at again in %d seconds: %s", LONGEST_WAIT, error)
                    wait = LONGEST_WAIT
                self._wake.wait(wait)
                if not self._stopping:
                    time.sleep(_SHORTEST_WAIT)  # several fetches in a row are one round

    def _round(self, client: httpx.Client, pool: ThreadPoolExecutor) -> float:
        """Does what is due. Returns the seconds until there may be more."""
        now = self._clock()
        followed = {source.url for source in self._registry.sources()}
        with closing(FeedStates(self.path, read_only=True)) as feeds:
            named = feeds.named_hubs()
        with self.states() as states:
            work = plan(states.all(), named, followed, self._settings, now)
            _prepare(states, work, now)
            asking = work.ask + work.end
            asked = pool.map(lambda push: ask(client, push, self._callback(push), LEASE), asking)
            for push, failure in zip(asking, asked, strict=True):
                _note(states, push, failure, now)
            times = [at for push in states.all() for at in (push.due, push.until) if at > now]
        ended = [push.url for push in work.drop if push.state is PushState.ACTIVE and push.url in followed]
        for url in dict.fromkeys([*(push.url for push in work.fetch), *ended]):
            self._fetch_now(url)
        if len(asking) >= IN_A_ROUND:
            return 0.0
        return min(max(min(times, default=now + LONGEST_WAIT) - self._clock(), 0.0), LONGEST_WAIT)

    def _callback(self, push: Push) -> str:
        return f"{self._settings.address}{CALLBACKS}{push.key}"


def _prepare(states: PushStates, work: Plan, now: float) -> None:
    """Stores what is to be done before any hub is asked."""
    for push in work.drop:
        states.remove(push.key)
    for push in work.fail:
        error = f"the hub {push.hub} did not verify it"
        states.change(
            push.key, [PushState.ASKED], state=PushState.FAILED, error=error, due=now + _pause(push)
        )
    for push in work.fetch:
        states.change(push.key, [PushState.ACTIVE], checked=1, due=now + CHECK)
    for push in work.ask:
        states.add(push)
    for push in work.end:
        states.change(push.key, list(PushState), state=PushState.ENDING, failures=push.failures)


def _note(states: PushStates, push: Push, failure: str | None, now: float) -> None:
    """Stores what a hub has answered, unless it has verified or denied already."""
    due = now + _pause(push)
    if push.state is PushState.ENDING:
        if failure == UNSUBSCRIBED:
            states.remove(push.key)
        else:
            states.change(push.key, [PushState.ENDING], failures=push.failures + 1, due=due, error=failure)
    elif failure is not None:
        log.info("a hub did not take a subscription: %s", failure)
        states.change(push.key, [PushState.ASKED], state=PushState.FAILED, error=failure, due=due)


def _pause(push: Push) -> float:
    return float(min(FIRST_RETRY * 2.0 ** min(push.failures, 20), LAST_RETRY))
