"""Polls the followed feeds in a thread: fetches those that are due and accepts their new items as events.

The registry lists the feeds; their fetch states are in the fetcher's own file, which any thread may read. An
error of a feed, such as a refused address, is recorded for that feed. An error of the log writer (a full disk,
too many waiting events) is not the feed's: the fetch is repeated later, and no item is lost.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from queue import SimpleQueue
from typing import NamedTuple, Protocol

from tidings.errors import TidingsError
from tidings.feeds.addresses import guarded_client
from tidings.feeds.fetch import HOST_INTERVAL, FeedResult, Fetcher, is_address, paced, pushed_interval
from tidings.feeds.states import Feed, FeedCounts, FeedStates
from tidings.model.event import Event
from tidings.service.ingest.log_writer import LogWriter
from tidings.service.model import Source
from tidings.service.settings import Settings

LONGEST_WAIT = 60.0  # seconds until the sources are looked at again, woken or not
_AFTER_TROUBLE = 30.0
_PER_HOST = 5  # feeds of one host in a round; new sources and the others' feeds wait for no more
_NO_ADDRESS = "this is not an address on the web; it starts with http:// or https://"

logger = logging.getLogger(__name__)


class Sources(Protocol):
    """The part of the registry that the poller uses."""

    def sources(self) -> list[Source]: ...


class SourceHealth(NamedTuple):
    """The fetch state of a followed feed. `due` is None if it is gone for good, or was not fetched yet."""

    source: Source
    fetched: float | None
    error: str | None
    due: float | None
    failures: int
    gone: bool
    counts: FeedCounts = FeedCounts()


class FeedPoller:
    """The polling thread; call `wake` after a source was added, changed or removed."""

    def __init__(
        self,
        registry: Sources,
        log_writer: LogWriter,
        settings: Settings,
        *,
        on_look: Callable[[list[FeedResult]], None] | None = None,
        pushed: Callable[[], Collection[str]] = frozenset,
        clock: Callable[[], float] = time.time,
        host_interval: float = HOST_INTERVAL,
    ) -> None:
        self._registry, self._log_writer, self._settings = registry, log_writer, settings
        self._on_look, self._clock, self._host_interval = on_look, clock, host_interval
        self._pushed = pushed
        self.recording = (
            threading.Lock()
        )  # so that an item that is pushed and fetched at once is counted once
        self._path = settings.data / "feeds.db"
        self._wake = threading.Event()
        self._wanted: SimpleQueue[str] = SimpleQueue()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="following", daemon=True)
        FeedStates(self._path).close()  # so that there is something to look into

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Makes the thread read the list of sources again."""
        self._wake.set()

    def fetch_now(self, url: str) -> None:
        """Makes the thread fetch a feed before it is due."""
        self._wanted.put(url)
        self._wake.set()

    def stop(self) -> None:
        """Stops polling; the items of a request under way come with the next start."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def health(self, sources: Sequence[Source]) -> list[SourceHealth]:
        """Each of these sources with its fetch state; callable from any thread."""
        known, counts = self._states([source.url for source in sources])
        pushed = self._pushed()
        found = []
        for source in sources:
            if not is_address(source.url):
                found.append(SourceHealth(source, None, _NO_ADDRESS, None, 1, True))
            elif (feed := known.get(source.url)) is None:
                found.append(SourceHealth(source, None, None, None, 0, False))
            else:
                interval = source.interval or self._settings.feed_interval
                feed = paced(feed, pushed_interval(interval) if source.url in pushed else interval)
                due = None if feed.gone else feed.due
                read = counts.get(source.url, FeedCounts())
                found.append(
                    SourceHealth(source, feed.fetched, feed.error, due, feed.failures, feed.gone, read)
                )
        return found

    def _states(self, urls: Sequence[str]) -> tuple[dict[str, Feed], dict[str, FeedCounts]]:
        """The fetch states and the counts by address; none if their file cannot be read now."""
        try:
            with closing(FeedStates(self._path, read_only=True)) as states:
                return {feed.url: feed for feed in states.followed(urls)}, states.counts(urls)
        except (TidingsError, sqlite3.Error) as error:
            logger.warning("the states of feeds cannot be read: %s", error)
            return {}, {}

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._follow()
            except TidingsError as error:
                logger.warning("feeds are looked at again in %d seconds: %s", _AFTER_TROUBLE, error)
            except Exception:
                logger.exception("feeds are looked at again in %d seconds", _AFTER_TROUBLE)
            if not self._stopping:
                self._wake.wait(_AFTER_TROUBLE)

    def _follow(self) -> None:
        """Fetches due feeds until it is stopped, or an error occurs that is not of a feed."""
        client = guarded_client(self._settings.allowed)
        with Fetcher(
            self.append,
            self._path,
            client,
            clock=self._clock,
            interval=self._settings.feed_interval,
            host_interval=self._host_interval,
            pushed=self._pushed,
            recording=self.recording,
        ) as fetcher:
            while not self._stopping:
                self._wake.clear()
                sources = [source for source in self._registry.sources() if is_address(source.url)]
                own = {source.url: source.interval for source in sources if source.interval is not None}
                fetcher.follow([source.url for source in sources], own)
                while not self._wanted.empty():
                    fetcher.hasten(self._wanted.get())
                results = fetcher.fetch_due(_PER_HOST)
                for result in results:
                    if result.error:
                        logger.info("a feed could not be read: %s", result.error)
                if results and self._on_look is not None:
                    self._on_look(results)
                due = fetcher.due_in()
                self._wake.wait(LONGEST_WAIT if due is None else min(due, LONGEST_WAIT))

    def append(self, events: list[Event]) -> None:
        self._log_writer.accept(events)
