"""Fetches feeds politely when they are due, and appends the new items.

The state of each feed is in a `FeedStates` file, so that a restart requests no more often and delivers nothing twice.
Items are appended before they are recorded: a crash in between repeats some, with the same ids, and loses none. An error
of one feed affects no other.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from urllib.parse import urlsplit

import httpx

from tidings.errors import EventError, TidingsError
from tidings.feeds.facts import channel_title
from tidings.feeds.http import FeedResponse, get
from tidings.feeds.hubs import NamedHubs, named_hubs
from tidings.feeds.read import read_feed
from tidings.feeds.states import Feed, FeedCounts, FeedStates
from tidings.formats.documents import MAX_BYTES
from tidings.model.event import Event

INTERVAL = 15 * 60.0  # seconds from one fetch of a feed to the next
HOST_INTERVAL = 2.0  # from one request to a host to the next
LONGEST = 24 * 60 * 60.0
PUSHED = 24  # times as long, of a feed that its hub pushes: six hours in place of a quarter
HOSTS_AT_ONCE = 8
_TITLE = 200  # characters


def is_address(url: str) -> bool:
    """Whether `url` may be the address of a feed."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def paced(feed: Feed, interval: float) -> Feed:
    """A feed whose next fetch is within its interval, which may have become shorter since the last one. One that fails
    waits as long as its server, or the back-off, says."""
    if feed.fetched is None or feed.failures or feed.due <= feed.fetched + interval:
        return feed
    return replace(feed, due=feed.fetched + interval)


@dataclass(frozen=True, slots=True)
class FeedResult:
    """The result of fetching a feed: status is "ok", "unchanged", "error" or "gone"."""

    url: str
    status: str
    events: int = 0  # the new ones
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _FetchedFeed:
    feed: Feed
    answer: FeedResponse
    events: list[Event]
    named: NamedHubs | None = None


def pushed_interval(interval: float) -> float:
    """That of a feed that its hub pushes: what the hub loses is found all the same."""
    return max(interval, min(interval * PUSHED, LONGEST))


def take_new(
    states: FeedStates, append: Callable[[list[Event]], None], url: str, events: Sequence[Event]
) -> tuple[list[Event], FeedCounts]:
    """Appends the items of a feed that are new, and returns them."""
    known = states.known(url, [event.id for event in events])
    new = list({event.id: event for event in events if event.id not in known}.values())
    if new:
        append(new)
    title = channel_title(events[0])[:_TITLE] if events else ""
    return new, FeedCounts(title, len(new), len(new))


class Fetcher:
    """Follows feeds; call `fetch_due` whenever `due_in` says so. One thread may use a fetcher at a time."""

    def __init__(
        self,
        append: Callable[[list[Event]], None],
        state_path: str | Path,
        client: httpx.Client | None = None,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        interval: float = INTERVAL,
        host_interval: float = HOST_INTERVAL,
        max_bytes: int = MAX_BYTES,
        pushed: Callable[[], Collection[str]] = frozenset,
        recording: threading.Lock | None = None,
        seed: int | None = None,
    ) -> None:
        self._append = append
        self._states = FeedStates(state_path)
        self._client = client or httpx.Client(timeout=20)
        self._clock = clock
        self._sleep = sleep
        self._interval = interval
        self._host_interval = host_interval
        self._max_bytes = max_bytes
        self._pushed = pushed
        self._recording = recording or threading.Lock()  # held by those who also record what hubs push
        self._pushed_now: Collection[str] = frozenset()
        self._random = random.Random(seed)
        self._intervals: Mapping[str, float] = {}
        self._asked: dict[str, float] = {}  # host -> when its last request was sent

    def follow(self, urls: Iterable[str], intervals: Mapping[str, float] | None = None) -> None:
        """Follows exactly these feeds from now on, those in `intervals` at intervals of their own. The state of other feeds
        is kept for when they are followed again."""
        urls, self._intervals = list(dict.fromkeys(urls)), dict(intervals or {})
        for url in urls:
            if not is_address(url):
                raise TidingsError(
                    f"{url!r} is not the address of a feed; it starts with http:// or https://"
                )
        self._states.follow(urls, self._clock())

    def hasten(self, url: str) -> None:
        """Makes a followed feed due now."""
        self._states.hasten(url, self._clock())

    def feeds(self) -> list[Feed]:
        """The followed feeds and their states."""
        self._pushed_now = self._pushed()
        return [paced(feed, self._interval_of(feed)) for feed in self._states.followed()]

    def due_in(self) -> float | None:
        """Seconds until a feed is due, 0 if one is; None if there is none to wait for."""
        due = [feed.due for feed in self.feeds() if not feed.gone]
        return max(0.0, min(due) - self._clock()) if due else None

    def fetch_due(self, per_host: int | None = None) -> list[FeedResult]:
        """Fetches every feed that is due: hosts in parallel, the feeds of one host one after the other.

        With `per_host`, further feeds of a host stay due: a host with very many delays no other's.
        """
        now = self._clock()
        hosts: dict[str, list[Feed]] = {}
        for feed in self.feeds():
            if not feed.gone and feed.due <= now:
                waiting = hosts.setdefault(urlsplit(feed.address).netloc, [])
                if per_host is None or len(waiting) < per_host:
                    waiting.append(feed)
        fetched: SimpleQueue[_FetchedFeed | BaseException] = SimpleQueue()
        gate = threading.Semaphore(HOSTS_AT_ONCE)
        for feeds in hosts.values():
            threading.Thread(target=self._fetch_host, args=(feeds, fetched, gate), daemon=True).start()
        results = []
        for _ in range(sum(map(len, hosts.values()))):
            result = fetched.get()
            if isinstance(result, BaseException):
                raise result
            with self._recording:
                results.append(self._record(result))
        return results

    def close(self) -> None:
        self._states.close()
        self._client.close()

    def __enter__(self) -> Fetcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fetch_host(
        self, feeds: list[Feed], fetched: SimpleQueue[_FetchedFeed | BaseException], gate: threading.Semaphore
    ) -> None:
        """Runs in its own thread, for one host: fetches and parses; `_record` does the rest."""
        host = urlsplit(feeds[0].address).netloc
        with gate:
            for feed in feeds:
                try:
                    wait = self._asked.get(host, -LONGEST) + self._host_interval - self._clock()
                    if wait > 0:
                        self._sleep(wait)
                    self._asked[host] = self._clock()
                    fetched.put(self._fetch(feed))
                except BaseException as error:  # the caller waits for a result, so every error is passed on
                    fetched.put(error)
                    return

    def _fetch(self, feed: Feed) -> _FetchedFeed:
        answer = get(self._client, feed.address, feed.etag, feed.modified, self._max_bytes)
        if answer.status != "ok":
            return _FetchedFeed(feed, answer, [])
        try:
            events = read_feed(answer.body, feed.url, answer.content_type, self._max_bytes)
            named = named_hubs(answer.links, answer.body, answer.base, self._max_bytes)
            return _FetchedFeed(feed, answer, events, named)
        except EventError as error:
            return _FetchedFeed(feed, replace(answer, status="error", error=str(error)), [])
        except Exception as error:  # an unexpected error of this feed must not affect the others
            what = f"{feed.url}: cannot be read: {type(error).__name__}: {error}"
            return _FetchedFeed(feed, replace(answer, status="error", error=what[:500]), [])

    def _record(self, result: _FetchedFeed) -> FeedResult:
        """Appends the new items, then saves the state of the feed."""
        feed, answer, now = result.feed, result.answer, self._clock()
        new: list[Event] = []
        read: FeedCounts | None = None
        if answer.status in ("ok", "unchanged"):
            new, read = take_new(self._states, self._append, feed.url, result.events)
            due = now + self._interval_of(feed)
            feed = replace(feed, address=answer.address, due=due, failures=0, error=None, fetched=now)
            if answer.status == "ok":
                feed = replace(feed, etag=answer.etag, modified=answer.modified)
                self._states.name_hubs(feed.url, result.named)
        else:
            failures = feed.failures + 1
            feed = replace(feed, failures=failures, error=answer.error, gone=answer.status == "gone")
            wait = answer.retry_after or self._back_off(failures, self._interval_of(feed))
            feed = replace(feed, due=now + wait)
        self._states.save(feed, [event.id for event in result.events], now, read)
        return FeedResult(feed.url, answer.status, len(new), answer.error)

    def _interval_of(self, feed: Feed) -> float:
        interval = self._intervals.get(feed.url, self._interval)
        return pushed_interval(interval) if feed.url in self._pushed_now else interval

    def _back_off(self, failures: int, interval: float) -> float:
        """Twice as long after every failure, up to a day or the interval, and never all feeds at the same moment."""
        delay = min(interval * 2.0 ** min(failures, 32), max(LONGEST, interval))
        return delay * self._random.uniform(0.75, 1.0)
