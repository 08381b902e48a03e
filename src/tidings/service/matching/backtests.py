"""Backtests that callers of the service ask for: one runs at a time, a few wait, and results are kept for some minutes.

A backtest is given up when its caller cancels it, does not ask for its state any more, or when it takes too long. It runs
in Spark beside the stream (driver_backtests.py), or in a service without Spark in a thread of this process. Nothing is
stored: after a restart there are none.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from tidings.engine.backtest import Tally, backtest_engine, tally
from tidings.engine.engine import Engine
from tidings.errors import TidingsError
from tidings.service.delivery.channels.schedule import Schedule
from tidings.service.model import Principal
from tidings.service.subscriptions import tickets
from tidings.service.subscriptions.access_control import NotFound, TooMany
from tidings.service.subscriptions.backtest_report import DAY, Report, report
from tidings.storage.event_log import EventLog
from tidings.storage.log_times import LogTimes

DAYS, MOST_DAYS = 30, 366
MOST_WAITING = 8  # of all callers
MOST_EACH = 2  # of one caller, under way
LEFT_AFTER = 30.0  # seconds after which a caller that does not ask is gone
LIMIT = 300.0  # seconds that a backtest may run
KEPT, KEPT_SECONDS = 50, 600.0  # results

_FIRST_PIECE, _LARGEST_PIECE = 200, 10_000  # events that are matched at once in this process
_PIECE_SECONDS = 0.2

logger = logging.getLogger(__name__)
Status = Literal["waiting", "running", "done", "failed", "cancelled"]
Progress = Callable[[float], None]
"""Called with the part that is done, from 0 to 1; raises `GivenUp` if nobody waits for the rest."""


class GivenUp(Exception):
    """Nobody waits for the backtest any more, or it took too long."""


class Span(NamedTuple):
    """The arrivals that count: from `since` on and before `until`, in seconds since 1970."""

    since: float
    until: float


class Runner(Protocol):
    def run(self, id: str, engine: Engine, span: Span, progress: Progress) -> Tally:
        """Matches the log by an engine that `backtest_engine` made."""


@dataclass(slots=True)
class Backtest:
    """One backtest. `asked` is when its caller last asked for it."""

    id: str
    owner: str
    text: str
    engine: Engine
    span: Span
    schedule: Schedule
    asked: float
    status: Status = "waiting"
    progress: float = 0.0
    message: str = ""
    report: Report | None = None
    began: float = 0.0
    cancelled: bool = field(default=False, repr=False)


class Backtests:
    """All backtests, in the order in which they were asked for; a thread runs one after the other. Thread-safe."""

    def __init__(
        self,
        log: EventLog,
        runner: Runner,
        definitions: Callable[[], Engine],
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log, self._runner, self._definitions = log, runner, definitions
        self._clock, self._monotonic = clock, monotonic
        self._all: dict[str, Backtest] = {}
        self._work, self._stopping = threading.Condition(), False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="backtests", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        with self._work:
            self._stopping = True
            self._work.notify_all()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def begin(
        self, principal: Principal, text: str, schedule: Schedule, *, days: int = DAYS, scope: str = ""
    ) -> Backtest:
        """Puts a backtest of the last days into the queue. The text is valid; one over tables is refused."""
        engine, now = backtest_engine(self._definitions(), text, scope), self._clock()
        new = Backtest(
            tickets.new_id("b"),
            principal.token,
            text,
            engine,
            Span(now - days * DAY, now),
            schedule,
            self._monotonic(),
        )
        with self._work:
            self._forget()
            open_ = [each for each in self._all.values() if each.status in ("waiting", "running")]
            mine = sum(each.owner == new.owner for each in open_)
            if mine >= MOST_EACH:
                raise TooMany(
                    f"{mine} backtests of this caller are under way; wait for them, or cancel one", 2.0
                )
            if sum(each.status == "waiting" for each in open_) >= MOST_WAITING:
                raise TooMany(f"{MOST_WAITING} backtests wait already; try again in a moment", 10.0)
            self._all[new.id] = new
            self._work.notify_all()
        return new

    def find(self, principal: Principal, id: str) -> Backtest:
        """The backtest of a caller, which counts as asking for it."""
        with self._work:
            self._forget()
            found = self._all.get(id)
            if found is None or found.owner != principal.token:
                raise NotFound(
                    f"there is no backtest {id[:40]!r}; results are kept for {KEPT_SECONDS / 60:.0f} minutes, ask anew"
                )
            found.asked = self._monotonic()
            return found

    def cancel(self, principal: Principal, id: str) -> Backtest:
        found = self.find(principal, id)
        found.cancelled = True
        if found.status == "waiting":
            found.status = "cancelled"
        return found

    def _run(self) -> None:
        while True:
            with self._work:
                while not self._stopping and (next_ := self._next()) is None:
                    self._work.wait(LEFT_AFTER)
                if self._stopping or next_ is None:
                    return
                next_.status, next_.began = "running", self._monotonic()
            self._do(next_)

    def _next(self) -> Backtest | None:
        for each in self._all.values():
            if each.status == "waiting":
                if self._is_left(each):
                    each.status = "cancelled"
                else:
                    return each
        return None

    def _do(self, it: Backtest) -> None:
        def progress(done: float) -> None:
            it.progress = done
            if it.cancelled or self._stopping or self._is_left(it):
                raise GivenUp
            if self._monotonic() - it.began > LIMIT:
                it.message = f"it took longer than {LIMIT / 60:.0f} minutes; ask for fewer days"
                raise GivenUp

        try:
            found = self._runner.run(it.id, it.engine, it.span, progress)
            since = LogTimes(self._log).known_from(*it.span)
            it.report = report(found, since, it.span.until, it.schedule)
            it.status, it.progress = "done", 1.0
        except GivenUp:
            it.status = "failed" if it.message else "cancelled"
        except TidingsError as error:
            it.status, it.message = "failed", str(error)
        except Exception as error:
            logger.exception("a backtest has failed")
            it.status, it.message = "failed", f"{type(error).__name__}; the log of the service says more"

    def _is_left(self, it: Backtest) -> bool:
        return self._monotonic() - it.asked > LEFT_AFTER

    def _forget(self) -> None:
        """Drops old results."""
        ended = [each for each in self._all.values() if each.status not in ("waiting", "running")]
        now = self._monotonic()
        for number, each in enumerate(reversed(ended)):
            if number >= KEPT or now - each.asked > KEPT_SECONDS:
                del self._all[each.id]


class LocalRunner:
    """Runs backtests in this process, a few thousand events at a time."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    def run(self, id: str, engine: Engine, span: Span, progress: Progress) -> Tally:
        times = LogTimes(self._log)
        start, end = times.offset(span.since), times.offset(span.until)
        rows = sum(frame.rows for frame in self._log.frames(start, end))
        total, looked = Tally(), 0
        progress(0.0)
        piece = _FIRST_PIECE
        for events, arrivals in times.read(start, end):
            first = 0
            while first < events.num_rows:
                part, began = events.slice(first, piece), time.monotonic()
                total += tally(engine, part, arrivals[first : first + piece])
                first, looked = first + part.num_rows, looked + part.num_rows
                progress(looked / rows)
                # Operators may take a second an event: whoever leaves is noticed soon.
                piece = (
                    min(2 * piece, _LARGEST_PIECE)
                    if time.monotonic() - began < _PIECE_SECONDS
                    else max(1, piece // 2)
                )
        return total
