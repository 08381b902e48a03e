"""Runs one driver process at a time: starts it, reads its states, restarts it when it fails or hangs (watchdog.py),
ends it with the service.

The driver has a session of its own, so that Ctrl-C reaches the service alone, and so that its JVM and Python
workers can be found: before another driver starts, and when the service ends, no process of the last one is left.
Its standard input stays open as long as the service lives; its end means for the driver that the service is gone.
"""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import IO, Any, Literal

from tidings.service.matching import driver_settings, process_session
from tidings.service.matching.driver_settings import GO
from tidings.service.matching.watchdog import Watchdog
from tidings.service.settings import Settings
from tidings.storage.part_visits import PartVisits

PAUSES = (1.0, 2.0, 5.0, 15.0, 60.0)  # seconds before a next start, the more often it failed
_WELL_AFTER = 60.0  # seconds of running after which a failure counts as the first
_STOP_SECONDS = 30.0
_JVM_SECONDS = 5.0  # what a JVM has to end by itself after its driver

logger = logging.getLogger(__name__)
Status = Literal["starting", "running", "failed", "stopped"]
DRIVER = (sys.executable, "-m", "tidings.service.matching.driver")


@dataclass(frozen=True, slots=True)
class DriverState:
    """The driver's status. `since` is when it was reached, in seconds since 1970; `restarts` counts starts after the
    first. It is `matching` as soon as it has recorded something."""

    status: Status = "stopped"
    message: str = ""
    since: float = 0.0
    restarts: int = 0
    pid: int | None = None
    matching: bool = False


class Supervisor:
    """Supervises the driver. `on_change` is called with every new state, `on_record` whenever the driver has recorded
    notifications, and `on_visits` with its visits to parts of a divided index, all from threads of the supervisor."""

    def __init__(
        self,
        settings: Settings,
        on_change: Callable[[DriverState], None] = lambda state: None,
        *,
        on_record: Callable[[], None] = lambda: None,
        on_visits: Callable[[PartVisits], None] = lambda visits: None,
        watchdog: Watchdog | None = None,
        command: Sequence[str] = DRIVER,
        pauses: Sequence[float] = PAUSES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.on_change, self._on_record, self._on_visits = on_change, on_record, on_visits
        self._settings, self._command, self._pauses, self._clock = settings, tuple(command), pauses, clock
        self.on_backtest: Callable[[Mapping[str, Any]], None] = lambda said: None  # with what it says of one
        self._watchdog = watchdog or Watchdog(lambda: (), settings.stall_after)
        self._state = DriverState(since=clock())
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._handing_over, self._going = threading.Lock(), False
        self._words: deque[str] = deque(maxlen=20)  # its last ones
        self._message = ""  # the driver's own error message

    @property
    def state(self) -> DriverState:
        return self._state

    def start(self) -> None:
        """Starts a driver, which starts Spark; it matches only after `go`."""
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self._thread.start()

    def go(self) -> None:
        """Allows this driver and its successors to match: the index exists."""
        with self._handing_over:
            self._going = True
            if self._process is not None:
                _write(self._process, GO)

    def tell(self, words: bytes) -> bool:
        """Writes a line to the driver that runs; whether there is one."""
        with self._handing_over:
            process = self._process
            return process is not None and self._state.status == "running" and _write(process, words)

    def stop(self, seconds: float = _STOP_SECONDS) -> None:
        """Waits for the micro-batch under way, at most so many seconds; then no process of the driver is left."""
        self._stopping.set()
        process, deadline = self._process, time.monotonic() + seconds
        if process is not None:
            _end_input(process)
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            if process.poll() is None:
                logger.warning("the driver did not end within %.0f s, and is killed", seconds)
                process_session.kill(process.pid)
        if self._thread is not None:
            self._thread.join(_JVM_SECONDS + 10)

    def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            message = self._run_driver()
            if self._stopping.is_set():
                break
            failures = 1 if time.monotonic() - began > _WELL_AFTER else failures + 1
            pause = self._pauses[min(failures, len(self._pauses)) - 1]
            logger.error("the driver has failed and is started again in %.0f s: %s", pause, message)
            self._set_state("failed", message)
            self._stopping.wait(pause)
            self._state = replace(self._state, restarts=self._state.restarts + 1)
        self._set_state("stopped")

    def _run_driver(self) -> str:
        """Runs one driver process to its end; returns why it ended."""
        self._words.clear()
        self._set_state("starting")
        pipe = subprocess.PIPE
        with self._handing_over:  # the settings before anything else
            try:
                process = subprocess.Popen(
                    self._command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
                )
            except OSError as error:
                return f"it cannot be started: {error}"
            self._process = process
            _write(process, driver_settings.to_line(self._settings) + (GO if self._going else b""))
        assert process.stdout is not None
        assert process.stderr is not None
        self._state = replace(self._state, pid=process.pid)
        self._message = ""
        self._watchdog.restart()
        ended = threading.Event()
        threading.Thread(target=self._watch, args=(process, ended), daemon=True).start()
        # In threads of their own: processes that a dead driver left may hold the other ends.
        listeners = [
            threading.Thread(target=listen, args=(lines,), daemon=True)
            for listen, lines in ((self._take_states, process.stdout), (self._pass_on, process.stderr))
        ]
        for listener in listeners:
            listener.start()
        try:
            if self._stopping.is_set():
                _end_input(process)
            code = process.wait()
            ended.set()
            # A JVM ends a moment later than its driver.
            if not process_session.await_end(process.pid, _JVM_SECONDS):
                process_session.kill(process.pid)
            for listener in listeners:
                listener.join(1.0)
        finally:
            ended.set()
            self._process = None
            _end_input(process)
            self.on_backtest(
                {"backtest": "", "error": "the matching process has ended; try again in a moment"}
            )
        if code < 0:  # killed by a signal: its last lines do not explain it
            return self._message or f"it was killed by {signal.Signals(-code).name}"
        return self._message or (self._words[-1] if self._words else f"it ended with {code}")

    def _watch(self, process: subprocess.Popen[bytes], ended: threading.Event) -> None:
        """Kills a driver that hangs, with its JVM and its workers."""
        while not ended.wait(self._watchdog.tick_seconds) and not self._stopping.is_set():
            if why := self._watchdog.tick(may_match=self._going):
                self._message = why
                process_session.kill(process.pid)
                return

    def _take_states(self, states: IO[bytes]) -> None:
        with states:
            for line in states:
                try:
                    said = json.loads(line)
                except ValueError:
                    continue
                self._watchdog.heard(said)
                match said:
                    case {"recorded": int(count)}:
                        if not self._state.matching:
                            self._state = replace(self._state, matching=True)
                        if count:
                            self._on_record()
                    case {"visits": list(counts)}:
                        self._on_visits(PartVisits.from_lists(counts))
                    case {"backtest": str()}:
                        self.on_backtest(said)
                    case {"status": "failed"}:
                        self._message = str(said.get("message", ""))
                    case {"status": "running"}:
                        self._set_state("running")

    def _pass_on(self, words: IO[bytes]) -> None:
        """Copies the driver's standard error to the log of the service."""
        with words:
            for line in words:
                if text := line.decode(errors="replace").rstrip():
                    self._words.append(text)
                    logger.warning("driver: %s", text)

    def _set_state(self, status: Status, message: str = "") -> None:
        self._state = replace(self._state, status=status, message=message, since=self._clock())
        if status != "running":
            self._state = replace(self._state, pid=None, matching=False)
        try:
            self.on_change(self._state)
        except Exception:
            logger.exception("a listener of the driver's state has failed")


def _write(process: subprocess.Popen[bytes], words: bytes) -> bool:
    """Whether it could be written: the process may have ended already, or `stop` was quicker."""
    try:
        assert process.stdin is not None
        process.stdin.write(words)
        process.stdin.flush()
    except (OSError, ValueError):
        return False
    return True


def _end_input(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
