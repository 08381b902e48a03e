"""Computes rates over the last five minutes, hour and day: events and notifications per second, median and 95th
percentile latency.

The data is in memory and not persisted: a ring of 60 buckets for each window, of 5 seconds, a minute and 24 minutes. A
bucket holds at most 256 latencies, a uniform sample, so that memory and time are bounded.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

BUCKETS = 60
Window = Literal["5m", "1h", "24h"]
_SECONDS: dict[Window, float] = {"5m": 5.0, "1h": 60.0, "24h": 1_440.0}  # of a bucket
_LAST_MINUTE = 12  # buckets of the finest ring
_SAMPLE = 256


@dataclass(slots=True)
class _Bucket:
    number: int  # counts spans of its length since 1970
    events: int = 0
    notifications: int = 0
    seen: int = 0
    latencies: list[float] = field(default_factory=list)


class _Ring:
    """The newest buckets of one length; the caller holds the lock."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._buckets = [_Bucket(-1) for _ in range(BUCKETS + 1)]  # one more: the one that fills

    def at(self, now: float) -> _Bucket:
        number = int(now // self.seconds)
        place = number % len(self._buckets)
        if self._buckets[place].number != number:
            self._buckets[place] = _Bucket(number)
        return self._buckets[place]

    def last(self, now: float, *, filling: bool = False) -> list[_Bucket]:
        """Oldest first, with or without the one that is being filled."""
        end = int(now // self.seconds) + filling
        by_number = {bucket.number: bucket for bucket in self._buckets}
        return [by_number.get(number) or _Bucket(number) for number in range(end - BUCKETS, end)]


class Rates:
    """Thread-safe counters; `snapshot` is for JSON and charts."""

    def __init__(self, *, clock: Callable[[], float] = time.time, seed: int | None = None) -> None:
        self._clock = clock
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._rings = {window: _Ring(seconds) for window, seconds in _SECONDS.items()}
        self.began = clock()

    def add(self, *, events: int = 0, notifications: int = 0, latency: float | None = None) -> None:
        with self._lock:
            now = self._clock()
            for ring in self._rings.values():
                bucket = ring.at(now)
                bucket.events += events
                bucket.notifications += notifications
                if latency is None:
                    continue
                bucket.seen += 1
                if len(bucket.latencies) < _SAMPLE:
                    bucket.latencies.append(latency)
                elif (place := self._random.randrange(bucket.seen)) < _SAMPLE:
                    bucket.latencies[place] = latency

    def snapshot(self, window: Window = "5m") -> dict[str, Any]:
        """Lists of 60 values, oldest first. A latency of None means that there was no notification in that time. "now"
        has the last minute in one number each. The bucket that is being filled is shown in the longer windows, where it
        may be 24 minutes old; its rates are over the time since it began."""
        with self._lock:
            now, ring = self._clock(), self._rings[window]
            buckets = ring.last(now, filling=window != "5m")
            latencies = [sorted(bucket.latencies) for bucket in buckets]
            last = self._rings["5m"].last(now)[-_LAST_MINUTE:]
            minute = sorted(latency for bucket in last for latency in bucket.latencies)
        seconds = _SECONDS["5m"] * len(last)
        spans = [
            min(ring.seconds, max(1.0, now - bucket.number * ring.seconds)) for bucket in buckets
        ]  # shorter only for the one that is being filled
        return {
            "bucket_seconds": ring.seconds,
            "from": buckets[0].number * ring.seconds,
            "events_per_second": [bucket.events / span for bucket, span in zip(buckets, spans, strict=True)],
            "notifications_per_second": [
                bucket.notifications / span for bucket, span in zip(buckets, spans, strict=True)
            ],
            "latency_median": [_percentile(part, 0.5) for part in latencies],
            "latency_p95": [_percentile(part, 0.95) for part in latencies],
            "now": {
                "events_per_second": sum(bucket.events for bucket in last) / seconds,
                "notifications_per_second": sum(bucket.notifications for bucket in last) / seconds,
                "latency_median": _percentile(minute, 0.5),
                "latency_p95": _percentile(minute, 0.95),
            },
        }


def _percentile(ordered: list[float], share: float) -> float | None:
    """The smallest value that this share of all does not exceed."""
    if not ordered:
        return None
    return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)], 4)
