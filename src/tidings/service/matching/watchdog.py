"""Decides whether a driver hangs. There are two signs:

- It is silent. A driver that lives reports every few seconds, after a call to Spark's Java process: silence means
  that one of the two is stopped or blocked.
- It makes no progress while events wait. A query makes progress when it records a slice or when one of its Spark tasks
  is done. Tasks end within minutes, however slow the operators are (spark/slices.py), so much more than that is a hang:
  of a Python worker, of the query's thread, of the process that plans.

Time is counted in ticks of the watchdog: neither a service that was stopped for a while nor a machine that slept
suspects its driver.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Any

SILENCE_SECONDS = 60.0
TICK_SECONDS = 5.0


class Watchdog:
    """Watches one driver after the other. `waiting` gives the queries that have events to answer. A driver may make
    no progress for `stall_seconds`."""

    def __init__(
        self,
        waiting: Callable[[], Collection[str]],
        stall_seconds: float,
        *,
        silence_seconds: float = SILENCE_SECONDS,
        tick_seconds: float = TICK_SECONDS,
    ) -> None:
        self._waiting, self._stall_seconds = waiting, stall_seconds
        self._silence_seconds, self.tick_seconds = silence_seconds, tick_seconds
        self._lock = threading.Lock()
        self.restart()

    def restart(self) -> None:
        """Forgets the last driver."""
        with self._lock:
            self._silent = 0.0
            self._stalled: dict[str, float] = {}  # by query, for how many seconds
            self._tasks: dict[str, Any] = {}  # by query, what the driver said of them

    def heard(self, said: object) -> None:
        """Takes a line of the driver."""
        with self._lock:
            self._silent = 0.0
            match said:
                case {"recorded": _, "query": str(query)}:
                    self._stalled.pop(query, None)
                case {"tasks": dict(tasks)}:
                    for query in tasks:
                        if tasks[query] != self._tasks.get(query):
                            self._stalled.pop(query, None)
                    self._tasks = tasks
                case {"status": _}:
                    self._stalled.clear()

    def tick(self, *, may_match: bool) -> str | None:
        """Counts a tick; why the driver hangs, if it does. Before it may match, it makes no progress."""
        waiting = self._who_waits() if may_match else ()
        with self._lock:
            self._silent += self.tick_seconds
            if self._silent >= self._silence_seconds:
                return f"it gave no sign of life for {self._silent:.0f} s"
            self._stalled = {query: self._stalled.get(query, 0.0) + self.tick_seconds for query in waiting}
            longest = max(self._stalled.values(), default=0.0)
            if longest >= self._stall_seconds:
                return f"it made no progress for {longest:.0f} s while events wait"
        return None

    def _who_waits(self) -> Collection[str]:
        try:
            return self._waiting()
        except Exception:  # a store that is away is no fault of the driver, which waits for it as well
            return ()
