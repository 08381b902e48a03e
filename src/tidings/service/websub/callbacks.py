"""Answers hubs at the callbacks of followed feeds: verifications, denials, and pushed feeds (WebSub, 5.2, 5.3, 7).

A hub's challenge is echoed only for what this service has asked for: this callback, this topic, subscribe or unsubscribe. A
pushed feed is answered when it is in the queue, whatever its signature: what is not signed with the secret is dropped. A
thread takes the items of pushed feeds, as those of fetched ones: what is known already is no event again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from queue import SimpleQueue
from typing import NamedTuple

from tidings.errors import EventError
from tidings.feeds.fetch import take_new
from tidings.feeds.push_states import Push, PushState
from tidings.feeds.read import read_feed
from tidings.feeds.states import FeedStates
from tidings.service.ingest.feed_poller import FeedPoller
from tidings.service.websub.signatures import is_signed
from tidings.service.websub.subscriber import LEASE, Subscriber

LONGEST_LEASE = 30 * 86_400.0  # however long a hub grants
RENEW = 0.8  # of a lease, after which it is renewed
SOONEST = 60.0  # a renewal after the verification, however short a lease is
MOST_WAITING = 64 << 20  # bytes of pushed feeds in the queue
LONGEST_CHALLENGE = 1_000
_LIVE = (PushState.ASKED, PushState.ACTIVE)
_REASON = 200

log = logging.getLogger(__name__)


class _Document(NamedTuple):
    url: str
    content_type: str | None
    body: bytes


class Callbacks:
    """The callbacks of all feeds; `verify`, `known` and `take` may be called from any thread."""

    def __init__(
        self,
        subscriber: Subscriber,
        poller: FeedPoller,
        max_bytes: int,
        *,
        count: Callable[[str], None] = lambda outcome: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._subscriber, self._append = subscriber, poller.append
        self._fetch_now, self._recording = poller.fetch_now, poller.recording
        self._max_bytes, self._count, self._clock = max_bytes, count, clock
        self._queue: SimpleQueue[_Document | None] = SimpleQueue()
        self._lock, self._waiting = threading.Lock(), 0
        self._thread = threading.Thread(target=self._run, name="pushed feeds", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Feeds that still wait are fetched at the next start."""
        self._queue.put(None)
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    # --- verification

    def verify(self, key: str, given: Mapping[str, str]) -> bytes | None:
        """The body of the answer to a hub's GET; None if this service did not ask for that (404)."""
        mode, topic, challenge = (given.get(f"hub.{name}", "") for name in ("mode", "topic", "challenge"))
        with self._subscriber.states() as states:
            push = states.find(key)
        if push is None or push.topic != topic:
            return None
        if mode == "denied":
            return self._deny(push, given.get("hub.reason", ""))
        if not challenge or len(challenge) > LONGEST_CHALLENGE or not challenge.isprintable():
            return None
        if mode == "subscribe" and push.state in _LIVE:
            return challenge.encode() if self._activate(push, given.get("hub.lease_seconds", "")) else None
        if mode == "unsubscribe" and push.state is PushState.ENDING:
            with self._subscriber.states() as states:
                states.remove(key)
            return challenge.encode()
        return None

    def _activate(self, push: Push, lease: str) -> bool:
        """Notes the lease. The feed is fetched once more: an item since the last fetch was not pushed."""
        now = self._clock()
        granted = float(lease[:20]) if lease.isascii() and lease.isdecimal() else LEASE
        seconds = min(granted, LONGEST_LEASE)
        values = {
            "until": now + seconds,
            "due": now + max(seconds * RENEW, SOONEST),
            "failures": 0,
            "error": None,
        }
        with self._subscriber.states() as states:
            if not states.change(push.key, _LIVE, state=PushState.ACTIVE, checked=0, **values):
                return False
            states.replace_others(push, now)
        if push.state is PushState.ASKED:
            self._fetch_now(push.url)
        self._subscriber.wake()
        return True

    def _deny(self, push: Push, reason: str) -> bytes:
        said = "".join(letter if letter.isprintable() else " " for letter in reason[:_REASON]).strip()
        error = f"the hub {push.hub} denied it" + (f": {said}" if said else "")
        with self._subscriber.states() as states:
            if states.change(push.key, _LIVE, state=PushState.DENIED, error=error, until=0.0):
                self._fetch_now(push.url)
        self._subscriber.wake()
        return b""

    # --- pushed feeds

    def known(self, key: str) -> Push | None:
        """The subscription of a callback; None if a push there is of one that has ended (410)."""
        with self._subscriber.states() as states:
            push = states.find(key)
        return push if push is not None and push.state in _LIVE else None

    def take(self, push: Push, headers: Mapping[str, str], body: bytes) -> bool:
        """Queues a pushed feed, or drops it if it is not signed; whether there was room."""
        if not is_signed(headers.get("x-hub-signature"), push.secret, body):
            self._count("unsigned")
            return True
        with self._lock:
            if self._waiting and self._waiting + len(body) > MOST_WAITING:
                self._count("refused")
                return False
            self._waiting += len(body)
        self._queue.put(_Document(push.url, headers.get("content-type"), body))
        with self._subscriber.states() as states:
            states.change(push.key, _LIVE, pushed=self._clock())
        return True

    def _run(self) -> None:
        while (document := self._queue.get()) is not None:
            try:
                self._read(document)
                self._count("taken")
            except EventError as error:
                log.info("a pushed feed could not be read: %s", error)
                self._count("unreadable")
            except Exception as error:  # the log's, or a store's: what was pushed is fetched later
                log.warning("a pushed feed could not be taken, it will be fetched: %s", error)
                self._count("refused")
                self._fetch_now(document.url)
            finally:
                with self._lock:
                    self._waiting -= len(document.body)

    def _read(self, document: _Document) -> None:
        events = read_feed(document.body, document.url, document.content_type, self._max_bytes)
        with self._recording, closing(FeedStates(self._subscriber.path)) as states:
            _, counts = take_new(states, self._append, document.url, events)
            states.take(document.url, [event.id for event in events], self._clock(), counts)
