"""Warns of a subscription that would flood its owner, before it is saved.

The estimate is the share of the latest events that the text matches, times the events that came within the last day. Nothing
is extrapolated: a service that has run for an hour has the events of that hour. Texts that call operators are not estimated,
for a call may cost money or time, and neither are subscriptions over tables.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidings.engine.backtest import backtest_engine, tally
from tidings.engine.engine import Engine
from tidings.language.query import Query, has_calls
from tidings.model.event import Event, to_table
from tidings.storage.event_log import EventLog, Offset
from tidings.storage.log_times import LogTimes

MOST = 1_000  # matches a day that a person may still want
_MOST_SHARE = 0.5
_FEW = 100  # matches a day of which nobody is warned, whatever share they are
_DAY = 86_400
_STEP = 600  # seconds of which events are counted together


class Estimate(NamedTuple):
    """How many events a day a text would match, and which share of all these are."""

    per_day: float
    share: float


def flood_warning(per_day: float, share: float) -> str | None:
    """The sentence on a flood; None if it is none."""
    if per_day <= MOST and not (share > _MOST_SHARE and per_day > _FEW):
        return None
    count = f"about {_rounded(per_day):,} events a day, {share:.0%} of all"
    return f"it would match {count}; narrow it, or take a daily digest"


def _rounded(number: float) -> int:
    """To two digits: an estimate is no more precise."""
    digits = max(0, len(str(int(number))) - 2)
    return int(round(number, -digits))


class DailyEvents:
    """How many events came within the last day, by the log. It reads the heads of frames, each once. Thread-safe."""

    def __init__(self, log: EventLog, clock: Callable[[], float] = time.time) -> None:
        self._log, self._clock = log, clock
        self._counts: dict[int, int] = {}
        self._reached: Offset | None = None
        self._lock = threading.Lock()

    def count(self) -> int:
        with self._lock:
            times, oldest = LogTimes(self._log), self._clock() - _DAY
            start = self._reached
            if start is None or start < self._log.start():
                start = times.offset(oldest)
            end = self._log.end()
            for frame in self._log.frames(start, end):
                step = int(times.arrival(frame) // _STEP)
                self._counts[step] = self._counts.get(step, 0) + frame.rows
            self._reached = end
            first = int(oldest // _STEP)
            self._counts = {step: rows for step, rows in self._counts.items() if step >= first}
            return sum(self._counts.values())


class FloodEstimate:
    """Estimates by the events that were accepted last, newest first."""

    def __init__(self, recent: Callable[[], Sequence[Event]], daily: Callable[[], int]) -> None:
        self._recent, self._daily = recent, daily
        self._newest: Event | None = None
        self._table: pa.Table | None = None

    def warning(self, definitions: Engine, query: Query, text: str, scope: str = "") -> str | None:
        """The sentence on a valid text that would flood its owner, who sees the events of a scope."""
        found = self.of(definitions, query, text, scope)
        return None if found is None else flood_warning(found.per_day, found.share)

    def of(self, definitions: Engine, query: Query, text: str, scope: str = "") -> Estimate | None:
        """How often a valid text would match; None if that is not known."""
        if has_calls(query.where) or definitions.joins.takes(query):
            return None
        table = self._events()
        if table is None:
            return None
        found = tally(backtest_engine(definitions, text, scope), table, np.zeros(table.num_rows))
        if not found.matched:
            return Estimate(0.0, 0.0)
        return Estimate(found.matched / table.num_rows * self._daily(), found.matched / found.events)

    def _events(self) -> pa.Table | None:
        """The latest events as a table, which is kept until there is a newer one."""
        events = self._recent()
        if not events:
            return None
        if self._table is None or self._newest is not events[0]:
            self._table, self._newest = to_table(events), events[0]
        return self._table
