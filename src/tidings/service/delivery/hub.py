"""Wakes listeners when their subscriptions have new notifications; one thread reads the mailbox for all of them.

The mailbox is read with one small query when a commit is announced by `wake`, whether there is one listener or
thousands. It is also polled, because other processes may write to the same store without announcing it. Only listeners
whose subscriptions have new notifications are woken. A listener gives the number up to which it has seen
everything, so a notification between its last read and its wait is not missed.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

log = logging.getLogger(__name__)

INTERVAL = 0.5  # seconds between two looks, when nothing is announced
LONGEST_PAUSE = 2.0  # between two looks at a store that is away
_RECENT = 20_000  # subscriptions whose last number is remembered


class MailboxNews(Protocol):
    """The part of a mailbox that the hub uses."""

    def last(self) -> int: ...
    def news(self, after: int) -> tuple[int, dict[str, int]]: ...


class Hub:
    """Wakes listeners. They wait in any number of event loops; callbacks run in the hub's thread with {subscription:
    last number} and must be quick."""

    def __init__(self, mailbox: MailboxNews, *, interval: float = INTERVAL) -> None:
        self._mailbox = mailbox
        self._interval = interval
        self._lock = threading.Lock()
        self._last = 0
        # Complete for numbers above the floor; below it a listener is woken to read the mailbox.
        self._recent: dict[str, int] = {}
        self._floor = 0
        self._waiting: defaultdict[str, set[_Listener]] = defaultdict(set)
        self._callbacks: list[Callable[[Mapping[str, int]], None]] = []
        self._stopping, self._awake = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def last(self) -> int:
        """The largest number seen so far. A caller that reads it first and the mailbox afterwards has missed nothing
        up to it."""
        return self._last

    @property
    def listeners(self) -> int:
        """The number of waiting listeners."""
        with self._lock:
            return len({listener for listeners in self._waiting.values() for listener in listeners})

    @property
    def stopped(self) -> bool:
        return self._stopping.is_set()

    def on_news(self, callback: Callable[[Mapping[str, int]], None]) -> None:
        self._callbacks.append(callback)

    def start(self) -> None:
        self._last = self._floor = self._mailbox.last()
        self._thread = threading.Thread(target=self._run, name="tidings-hub", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Has the mailbox read at once: something was committed to it. Callable from any thread."""
        self._awake.set()

    def end_waits(self) -> None:
        """Ends polling and all waits, now and from now on."""
        self._stopping.set()
        with self._lock:
            listeners = {listener for waiting in self._waiting.values() for listener in waiting}
            self._waiting.clear()
        _wake(listeners, False)

    def stop(self) -> None:
        """Stops polling and wakes all listeners."""
        self.end_waits()
        self.wake()
        if self._thread is not None:
            self._thread.join()

    async def wait(self, subscriptions: frozenset[str], after: int, timeout: float) -> bool:
        """True as soon as one of the subscriptions may have a notification numbered above `after`; False after the
        timeout or when the hub stops. `after` is a number up to which the caller has seen everything."""
        listener = _Listener()
        with self._lock:
            if self._has_news(subscriptions, after):
                return True
            if self._stopping.is_set():
                return False
            for subscription in subscriptions:
                self._waiting[subscription].add(listener)
        ending = listener.loop.call_later(timeout, _set_results, (listener,), False)
        try:
            return await listener.woken
        finally:
            ending.cancel()
            with self._lock:
                for subscription in subscriptions:
                    self._leave(subscription, listener)

    def _has_news(self, subscriptions: frozenset[str], after: int) -> bool:
        if self._last <= after:
            return False
        if after < self._floor:
            return bool(subscriptions)
        return any(self._recent.get(subscription, 0) > after for subscription in subscriptions)

    def _leave(self, subscription: str, listener: _Listener) -> None:
        waiting = self._waiting.get(subscription)
        if waiting is not None:
            waiting.discard(listener)
            if not waiting:
                del self._waiting[subscription]

    def _run(self) -> None:
        pause = self._interval
        away = False
        while True:
            self._awake.wait(pause)
            self._awake.clear()  # before the mailbox is read: a commit during the look is looked for again
            if self._stopping.is_set():
                return
            try:
                last, news = self._mailbox.news(self._last)
            except (
                Exception
            ) as error:  # whatever a database's driver raises; polling goes on until it is stopped
                if not away:
                    log.warning("the mailbox cannot be read, trying on: %s", error)
                away, pause = True, min(2 * pause, LONGEST_PAUSE)
                continue
            if away:
                log.info("the mailbox can be read again")
            away, pause = False, self._interval
            if last > self._last:
                self._notify_listeners(last, news)

    def _notify_listeners(self, last: int, news: Mapping[str, int]) -> None:
        listeners: set[_Listener] = set()
        with self._lock:
            if len(self._recent) + len(news) > _RECENT:
                self._recent.clear()
                self._floor = self._last
            self._recent.update(news)
            self._last = last
            for subscription in news:
                listeners |= self._waiting.pop(subscription, set())
        _wake(listeners, True)
        for callback in self._callbacks if news else ():
            try:
                callback(news)
            except Exception:
                log.exception("somebody who was to hear the news did not take them")


class _Listener:
    __slots__ = ("loop", "woken")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.woken: asyncio.Future[bool] = self.loop.create_future()


def _wake(listeners: set[_Listener], has_news: bool) -> None:
    """Wakes listeners with one call into each event loop."""
    loops: defaultdict[asyncio.AbstractEventLoop, list[_Listener]] = defaultdict(list)
    for listener in listeners:
        loops[listener.loop].append(listener)
    for loop, group in loops.items():
        try:
            loop.call_soon_threadsafe(_set_results, group, has_news)
        except RuntimeError:  # the loop is closed, and with it its listeners
            pass


def _set_results(listeners: Iterable[_Listener], has_news: bool) -> None:
    for listener in listeners:
        if not listener.woken.done():
            listener.woken.set_result(has_news)
