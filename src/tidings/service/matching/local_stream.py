"""The stream without Spark: matches the log in this process, a micro-batch at a time, as soon as events are in it.

A relay runs it, and so do tests of what surrounds the stream. A micro-batch goes from where the last one in the mailbox
ended to the end of the log, and it is recorded there in one transaction with its own end: after a kill at any moment the
stream goes on after the last whole batch. The engine stays open, and follows the versions of the index.

Its checkpoint has only the name of its query: how far it is, the mailbox knows. Subscriptions over tables have their rows in the
memory of this process.
"""

from __future__ import annotations

import json
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tidings.engine.engine import Engine
from tidings.errors import TidingsError
from tidings.kinds.operators.functions.operator import Operator
from tidings.model.event import EVENT_SCHEMA
from tidings.service.matching.supervisor import PAUSES, DriverState, Status
from tidings.service.model import IN_PROCESS, MATCH, BatchRecord
from tidings.service.relay.member_messages import MemberMessages
from tidings.service.store.mailbox import Mailbox
from tidings.storage import versions
from tidings.storage.event_log import EventLog, Offset

MOST = 2_000  # events of a micro-batch, about
LONGEST_PAUSE = 0.1  # seconds between two micro-batches when there is more
_LOOK_SECONDS = 1.0  # between two looks at the log when nothing wakes it

logger = logging.getLogger(__name__)


class Answers(Protocol):
    """How events are answered: by `MemberMessages`, or at a relay by `EdgeStream`."""

    def catch_up(self, engine: Engine, log: EventLog, reached: Offset) -> None:
        """Called before the first micro-batch, which begins at `reached`."""

    def answer(self, engine: Engine, events: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The notifications of events, and all events that they may be of."""

    def recorded(self, end: Offset) -> None:
        """The answers up to there are in the mailbox."""

    def stop(self) -> None:
        """No event comes any more."""


class _Answered(NamedTuple):
    """A micro-batch with its answers."""

    record: BatchRecord
    notifications: pa.Table
    events: pa.Table


class LocalStream:
    """`step` does one micro-batch; `start` does them in a thread as they come, once `go` was called. `wake` says that
    there may be something in the log. It has the states of a driver."""

    def __init__(
        self,
        data: Path,
        mailbox: Mailbox,
        operators: Iterable[Operator] = (),
        *,
        memory: int | None = None,
        answers: Answers | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._answers: Answers = MemberMessages() if answers is None else answers
        self._is_caught_up = False
        self._unrecorded: _Answered | None = (
            None  # answering changes state: it is done once, recording repeated
        )
        self.on_change: Callable[[DriverState], None] = lambda state: None
        self.on_recorded: Callable[[pa.Table, pa.Table], None] | None = None  # with notifications and events
        self._operators, self._memory, self._clock = tuple(operators), memory, clock
        self._index, self._mailbox, self._log = data / "index", mailbox, EventLog(data / "log")
        self._state = DriverState(since=clock())
        self._stopping, self._awake = threading.Event(), threading.Event()
        self._going = threading.Event()
        self._thread = threading.Thread(target=self._run, name="local-stream", daemon=True)
        self._checkpoint = data / "checkpoint" / "spark"
        self._batch, self._reached = self._take_over()
        self._began = 0.0  # the last micro-batch

    @property
    def state(self) -> DriverState:
        return self._state

    def start(self) -> None:
        """Starts the thread; it matches only after `go`."""
        self._set_state("starting")
        self._thread.start()

    def go(self) -> None:
        """Allows matching: the index exists."""
        self._going.set()
        self.wake()

    def wake(self) -> None:
        """Has the log looked at. Callable from any thread."""
        self._awake.set()

    def stop(self) -> None:
        """Waits for the micro-batch under way."""
        self._stopping.set()
        self._going.set()
        self.wake()
        if self._thread.ident is not None:
            self._thread.join()
            self._answers.stop()
            self._set_state("stopped")

    def step(self) -> int:
        """Answers what is in the log, at most so many events; how many notifications that gave."""
        if self._unrecorded is None:
            self._unrecorded = self._answered()
        if self._unrecorded is None:
            return 0
        record, notifications, events = self._unrecorded
        end = Offset(record.segment, record.byte)
        self._mailbox.record(record, notifications, events)  # changes nothing if it is there already
        self._batch, self._reached, self._unrecorded = record.batch, end, None
        self._answers.recorded(end)
        if self.on_recorded is not None:
            self.on_recorded(notifications, events)
        return record.notifications

    def _answered(self) -> _Answered | None:
        """The answers to the next events of the log; None if there are no events."""
        start = self._reached
        end = self._end_of_batch(start)
        if end <= start and self._is_caught_up:
            return None
        began = self._clock()
        version, engine = self._open()
        if not self._is_caught_up:
            self._answers.catch_up(engine, self._log, start)
            self._is_caught_up = True
        if end <= start:
            return None
        events = pa.Table.from_batches(self._log.read(start, end), EVENT_SCHEMA)
        notifications, events = self._answers.answer(engine, events)
        wanted = pc.is_in(_keys(events), value_set=_keys(notifications, "event"))
        batch, found = self._batch + 1, len(notifications)
        record = BatchRecord(
            IN_PROCESS,
            batch,
            str(version),
            end.segment,
            end.byte,
            len(events),
            found,
            0,
            began,
            self._clock(),
        )
        return _Answered(record, notifications, events.filter(wanted))

    def _end_of_batch(self, start: Offset) -> Offset:
        rows, end = 0, start
        for frame in self._log.frames(max(start, self._log.start()), self._log.end()):
            if rows and rows + frame.rows > MOST:
                break
            rows, end = rows + frame.rows, frame.end
        return end

    def _open(self) -> tuple[versions.Version, Engine]:
        """The engine of the current version. The one of before is kept open, and what came since is added to it."""
        for _ in range(2):
            version = versions.current(self._index)
            with suppress(FileNotFoundError):  # folded at this moment, and its base dropped
                return version, versions.open(
                    self._index, version, operators=self._operators, memory=self._memory
                )
        return version, versions.open(self._index, version, operators=self._operators, memory=self._memory)

    def _run(self) -> None:
        self._going.wait()
        failures = 0
        if not self._stopping.is_set():
            self._set_state("running")
        while not self._stopping.is_set():
            self._awake.clear()  # before the log is looked at: what comes meanwhile is looked for again
            try:
                while self._answer() and not self._stopping.is_set():
                    self._stopping.wait(self._pause())
                failures = 0
            except Exception as error:  # as a driver that is started again
                pause = PAUSES[min(failures, len(PAUSES) - 1)]
                failures += 1
                if not isinstance(error, TidingsError):
                    logger.exception("the stream has failed, and tries again in %.0f s", pause)
                else:
                    logger.error("the stream has failed, and tries again in %.0f s: %s", pause, error)
                self._set_state("failed", str(error))
                self._stopping.wait(pause)
                self._state = replace(self._state, restarts=self._state.restarts + 1)
                continue
            self._awake.wait(_LOOK_SECONDS)

    def _answer(self) -> bool:
        """One micro-batch; whether there was one."""
        before, self._began = self._batch, time.monotonic()
        self.step()
        if self._state.status != "running":
            self._set_state("running")
        if self._batch > before and not self._state.matching:
            self._state = replace(self._state, matching=True)
        return self._batch > before

    def _pause(self) -> float:
        """Seconds until the next micro-batch. Events that come faster are answered together, which costs far less; an
        event that comes later is answered at once."""
        return min(2 * (time.monotonic() - self._began), LONGEST_PAUSE)

    def _take_over(self) -> tuple[int, Offset]:
        """Goes on where this stream ended, or where one of Spark in the same folder did; the number of the last batch, and
        its end."""
        metadata = self._checkpoint / "metadata"
        if not metadata.exists() or json.loads(metadata.read_text()).get("id") != IN_PROCESS:
            reached = self._mailbox.reached_by(MATCH) or self._log.start()
            shutil.rmtree(self._checkpoint, ignore_errors=True)
            self._checkpoint.mkdir(parents=True)
            self._mailbox.know(IN_PROCESS, MATCH, reached)
            self._mailbox.advance(IN_PROCESS, reached)
            metadata.write_text(json.dumps({"id": IN_PROCESS}))
        end = self._mailbox.reached().get(IN_PROCESS) or self._log.start()
        return self._mailbox.last_batch(IN_PROCESS) or 0, end

    def _set_state(self, status: Status, message: str = "") -> None:
        matching = self._state.matching and status == "running"
        self._state = replace(
            self._state, status=status, message=message, since=self._clock(), matching=matching
        )
        self.on_change(self._state)


def _keys(table: pa.Table, id: str = "id") -> pa.ChunkedArray:
    return pc.binary_join_element_wise(table["source"], table[id], "\0")
