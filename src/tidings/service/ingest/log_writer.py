"""Appends published events to the log, each once, and answers only when they are on disk.

One thread writes. It takes all waiting calls, drops the duplicates, appends the rest with one fsync, and answers
all calls: the more publishers there are, the larger the groups. The waiting events are bounded; beyond the bound
a publisher has to retry. When the disk fails, the waiting calls fail, and later calls are not affected.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from tidings.errors import EventError, TidingsError
from tidings.model.event import EVENT_SCHEMA, Event
from tidings.service.ingest.deduplication import Deduplication, deduplication_key
from tidings.service.ingest.recent_events import RecentEvents, size_of
from tidings.storage.event_log import EventLog, LogError, Offset

MAX_EVENTS = 100_000  # that wait
MAX_BYTES = 64 << 20
_ENVELOPE = 200  # bytes, about, of an event beside its content
_REMEMBERED = 10_000  # groups of which the time is known until the stream has answered them

logger = logging.getLogger(__name__)


class Unavailable(TidingsError):
    """The events cannot be accepted now; nothing of them was kept, and they may be sent again."""

    status = 503

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Receipt(NamedTuple):
    """The result of one call. `ids` are those of all its events in their order; `end` is the offset after all of
    them."""

    accepted: int
    duplicates: int
    ids: list[str]
    end: Offset


class Backlog(NamedTuple):
    """Events that the stream has not matched yet: their number, and the age of the oldest in seconds."""

    events: int
    seconds: float


@dataclass(slots=True)
class _Call:
    events: Sequence[Event]
    keys: list[bytes]
    rows: list[dict[str, Any]]
    sizes: list[int]
    future: Future[Receipt]


class LogWriter:
    """The writer of the log. Any thread may publish. Closing it answers the waiting calls; the log and the
    deduplication stay open."""

    def __init__(
        self,
        log: EventLog,
        deduplication: Deduplication,
        *,
        on_accept: Callable[[int, int], None] = lambda accepted, duplicates: None,
        clock: Callable[[], float] = time.time,
        max_events: int = MAX_EVENTS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.on_append: Callable[[], None] = lambda: None  # called when events are in the log
        self._log, self._deduplication, self._on_accept, self._clock = log, deduplication, on_accept, clock
        self._max_events, self._max_bytes = max_events, max_bytes
        self.recent = RecentEvents()
        self.recent.fill(log)
        self._began = self._end = log.end()
        self._began_at = clock()
        self._calls: list[_Call] = []
        self._events = self._bytes = 0  # that wait
        self._work = threading.Condition()
        self._closed = self._behind = False
        self._unanswered: deque[tuple[Offset, float, int]] = deque()
        self._unanswered_lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="intake", daemon=True)
        self._thread.start()

    def accept(self, events: Sequence[Event]) -> Receipt:
        """Appends events to the log; they are on disk when it returns."""
        return self.accept_later(events).result()

    def accept_later(self, events: Sequence[Event]) -> Future[Receipt]:
        """Like `accept`, without waiting. Raises at once if an event is invalid, or if too many wait."""
        for event in events:
            if not isinstance(event, Event):
                raise EventError(f"an event is an Event, not {type(event).__name__}")
        rows = [event.row() for event in events]
        keys = [deduplication_key(event.source, event.id) for event in events]
        sizes = [size_of(row) for row in rows]
        size = sum(sizes) + _ENVELOPE * len(sizes)
        call = _Call(events, keys, rows, sizes, Future())
        with self._work:
            if self._closed:
                raise Unavailable("the service is being stopped; send the events again when it is back", 5.0)
            too_many = self._events + len(events) > self._max_events or self._bytes + size > self._max_bytes
            if too_many and self._calls:  # one call alone is taken, however large
                raise Unavailable(
                    f"{self._events:,} events wait to be written, more than the disk keeps up with;"
                    " send these again in a moment"
                )
            self._calls.append(call)
            self._events += len(events)
            self._bytes += size
            self._work.notify()
        return call.future

    def take_latencies(self, reached: Offset, at: float) -> list[float]:
        """The latencies of the groups of events that the stream has matched, now that it has matched up to
        `reached`."""
        done = []
        with self._unanswered_lock:
            while self._unanswered and self._unanswered[0][0] <= reached:
                done.append(at - self._unanswered.popleft()[1])
        return done

    def lag(self, reached: Offset | None) -> Backlog:
        """The events that the stream has not matched yet. Those from before this start have waited since then at
        least."""
        with self._unanswered_lock:
            later = [entry for entry in self._unanswered if reached is None or entry[0] > reached]
        events = sum(count for _, _, count in later)
        now = self._clock()
        since = later[0][1] if later else now
        if reached is None or reached < self._began:
            start = self._log.start()
            low = start if reached is None else max(reached, start)
            if older := sum(frame.rows for frame in self._log.frames(low, self._began)):
                events, since = events + older, self._began_at
        return Backlog(events, max(0.0, now - since))

    def waiting(self) -> int:
        """The number of events that wait to be written."""
        with self._work:
            return self._events

    def close(self) -> None:
        """Refuses further calls, and returns when all waiting calls have their answer."""
        with self._work:
            self._closed = True
            self._work.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._work:
                while not self._calls and not self._closed:
                    self._work.wait()
                calls, self._calls = self._calls, []
                self._events = self._bytes = 0
            if not calls:
                return
            # One that was given up meanwhile is not written.
            group = [call for call in calls if call.future.set_running_or_notify_cancel()]
            try:
                self._write(group)
            except Exception as error:
                self._behind = True
                refused = self._refusal(error)
                for call in group:
                    if not call.future.done():
                        call.future.set_exception(refused)

    def _write(self, group: list[_Call]) -> None:
        if self._behind:
            # Something failed before: the log is read for what it really has.
            self._log.append([])
            self._deduplication.catch_up()
            self._end, self._behind = self._log.end(), False
        known = self._deduplication.known([key for call in group for key in call.keys])
        rows: list[dict[str, Any]] = []
        keys: list[bytes] = []
        events: list[tuple[Event, int]] = []
        new: list[int] = []  # of each call, how many
        for call in group:
            before = len(keys)
            for event, key, row, size in zip(call.events, call.keys, call.rows, call.sizes, strict=True):
                if key not in known:
                    known.add(key)
                    keys.append(key)
                    rows.append(row)
                    events.append((event, size))
            new.append(len(keys) - before)
        if rows:
            table = {name: [row[name] for row in rows] for name in EVENT_SCHEMA.names}
            self._end = self._log.append(pa.table(table, schema=EVENT_SCHEMA))
            self._note(len(rows))
            try:
                self._deduplication.add(keys, self._end)
            except sqlite3.Error as error:
                # They are in the log, so they are accepted; the next group reads them from there first.
                logger.warning("the arrivals could not be written: %s", error)
                self._behind = True
            self.recent.add(events, self._clock())
        if rows:
            self.on_append()
        self._on_accept(len(rows), sum(len(call.events) for call in group) - len(rows))
        for call, count in zip(group, new, strict=True):
            ids = [event.id for event in call.events]
            call.future.set_result(Receipt(count, len(ids) - count, ids, self._end))

    def _note(self, count: int) -> None:
        now = self._clock()
        with self._unanswered_lock:
            if len(self._unanswered) >= _REMEMBERED:  # the stream is far behind: times become coarse
                _, now, before = self._unanswered.pop()
                count += before
            self._unanswered.append((self._end, now, count))

    def _refusal(self, error: Exception) -> TidingsError:
        logger.warning("a group of events was not accepted: %s", error)
        if isinstance(error, LogError):
            return Unavailable(str(error), 5.0)
        if isinstance(error, TidingsError):
            return error
        what = f"{type(error).__name__}: {error}"
        return Unavailable(f"the events could not be written: {what}; send them again in a moment", 5.0)
