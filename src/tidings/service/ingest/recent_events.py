"""Holds the most recently accepted events, newest first, on which new subscriptions are tried.

The number and the size of the events are bounded; the service fills them from the end of the log when it starts.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from tidings.dissemination.live.carriers import is_carrier
from tidings.errors import EventError
from tidings.model.event import Event
from tidings.storage.event_log import START, EventLog, Frame, Offset

KEPT = 1_000
MAX_BYTES = 32 << 20
SNAPSHOT = "tidings.snapshot"


class Arrival(NamedTuple):
    """An event, its size, and when it was accepted; None if that was before the service started."""

    event: Event
    size: int
    at: float | None


class RecentEvents:
    """The last accepted events; thread-safe."""

    def __init__(self, kept: int = KEPT, max_bytes: int = MAX_BYTES) -> None:
        self._kept, self._max_bytes = kept, max_bytes
        self._events: deque[Arrival] = deque()
        self._bytes = 0
        self._lock = threading.Lock()

    def add(self, events: Sequence[tuple[Event, int]], at: float | None = None) -> None:
        """Adds events in the order of their acceptance, with their sizes; not requests for snapshots, nor what carries rows and
        messages to a relay, which no subscription matches."""
        with self._lock:
            for event, size in events[-self._kept :]:
                if event.type == SNAPSHOT or is_carrier(event):
                    continue
                self._events.append(Arrival(event, size, at))
                self._bytes += size
            while self._events and (len(self._events) > self._kept or self._bytes > self._max_bytes):
                self._bytes -= self._events.popleft().size

    def events(self, limit: int | None = None) -> list[Event]:
        """Newest first, at most `limit` of them."""
        return [arrival.event for arrival in self.arrivals()[:limit]]

    def arrivals(self) -> list[Arrival]:
        """Newest first."""
        with self._lock:
            return list(reversed(self._events))

    def fill(self, log: EventLog) -> None:
        """Reads the end of the log; of earlier parts it reads at most the heads of some frames."""
        for batch in log.read(self._start(log)):
            found = []
            for row in batch.slice(max(0, batch.num_rows - self._kept)).to_pylist():
                try:
                    found.append((event_of(row), size_of(row)))
                except EventError:
                    continue  # the stream reports it
            self.add(found)

    def _start(self, log: EventLog) -> Offset | None:
        """The offset after which the log has about as many events as are kept."""
        first, end, rows, size = log.start(), log.end(), 0, 0
        start = end
        for segment in range(end.segment, first.segment - 1, -1):
            frames: list[Frame] = list(
                log.frames(Offset(segment, START), min(end, Offset(segment + 1, START)))
            )
            for frame in reversed(frames):
                if rows >= self._kept or size > self._max_bytes:
                    return start
                start, rows = frame.start, rows + frame.rows
                size += frame.end.byte - frame.start.byte
        return start


def size_of(row: dict[str, Any]) -> int:
    """The bytes of an event's content."""
    return len(row["data"] or b"") + len(row["attributes"] or "")


def event_of(row: dict[str, Any]) -> Event:
    """An event from its row in the log. `EventError` if its attributes are no JSON object."""
    try:
        attributes = json.loads(row["attributes"] or "{}")
    except (ValueError, RecursionError):
        raise EventError("the event's attributes are not JSON") from None
    return Event(
        source=row["source"] or "",
        attributes=attributes,
        id=row["id"] or "",
        type=row["type"] or "",
        time=row["time"],
        datacontenttype=row["datacontenttype"] or "",
        data=row["data"] or b"",
    )
