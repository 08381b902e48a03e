"""Computes rates over the last five minutes: events and notifications per second, median and 95th percentile
latency.

The data is a ring of 60 buckets of 5 seconds in memory, and is not persisted. A bucket holds at most 256
latencies, a uniform sample, so that memory and time are bounded.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SECONDS = 5.0  # of a bucket
BUCKETS = 60
_SAMPLE = 256


@dataclass(slots=True)
class _Bucket:
    number: int  # which five seconds since 1970
    events: int = 0
    notifications: int = 0
    seen: int = 0
    latencies: list[float] = field(default_factory=list)


class Rates:
    """Thread-safe counters; `snapshot` is for JSON and sparklines."""

    def __init__(self, *, clock: Callable[[], float] = time.time, seed: int | None = None) -> None:
        self._clock = clock
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._buckets = [_Bucket(-1) for _ in range(BUCKETS + 1)]  # one more: the one that fills

    def add(self, *, events: int = 0, notifications: int = 0, latency: float | None = None) -> None:
        with self._lock:
            number = int(self._clock() // SECONDS)
            bucket = self._buckets[number % len(self._buckets)]
            if bucket.number != number:
                bucket = self._buckets[number % len(self._buckets)] = _Bucket(number)
            bucket.events += events
            bucket.notifications += notifications
            if latency is None:
                return
            bucket.seen += 1
            if len(bucket.latencies) < _SAMPLE:
                bucket.latencies.append(latency)
            elif (place := self._random.randrange(bucket.seen)) < _SAMPLE:
                bucket.latencies[place] = latency

    def snapshot(self) -> dict[str, Any]:
        """Lists of 60 values, oldest first, without the bucket that is being filled. A latency of None means that
        there was no notification in that time. "now" has the last minute in one number each."""
        with self._lock:
            current = int(self._clock() // SECONDS)
            by_number = {bucket.number: bucket for bucket in self._buckets}
            buckets = [
                by_number.get(number) or _Bucket(number) for number in range(current - BUCKETS, current)
            ]
            latencies = [sorted(bucket.latencies) for bucket in buckets]
            minute = sorted(latency for part in latencies[-12:] for latency in part)
            last = buckets[-12:]
        seconds = SECONDS * len(last)
        return {
            "bucket_seconds": SECONDS,
            "from": (current - BUCKETS) * SECONDS,
            "events_per_second": [bucket.events / SECONDS for bucket in buckets],
            "notifications_per_second": [bucket.notifications / SECONDS for bucket in buckets],
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
