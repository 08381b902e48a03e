"""Folds the tail of the index into a new base, in a process of its own because it takes seconds of CPU.

    python -m tidings.service.matching.compaction 7    for base 7, with the settings on its standard input

The service goes on appending meanwhile. A compaction that is killed has changed nothing. Unused bases are dropped
before a compaction, not after it: a micro-batch may be about to pin the base that is being replaced.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from tidings.errors import TidingsError
from tidings.model.event import to_table
from tidings.service.ingest.recent_events import RecentEvents
from tidings.service.matching import driver_settings
from tidings.service.matching.engine_settings import load_operators
from tidings.service.model import State
from tidings.service.settings import Settings
from tidings.service.store.registry import Registry
from tidings.spark import version_pins
from tidings.storage import checksums, versions
from tidings.storage.event_log import EventLog

AT_LEAST, SHARE = 1_000, 0.1  # changes in a tail, or such a share of all subscriptions
_AGAIN_AFTER = 60.0  # seconds, if it failed
_PINNED_BY_THEN = 60.0  # seconds in which a micro-batch has long pinned the version that it saw
_PATIENCE = 30.0

logger = logging.getLogger(__name__)


def drop_bases(data: Path, clock: Callable[[], float] = time.time) -> list[int]:
    """Removes the bases that are neither current nor needed by a replay; returns their numbers."""
    root = data / "index"
    try:
        if clock() - (root / "CURRENT").stat().st_mtime < _PINNED_BY_THEN:
            return []
    except FileNotFoundError:
        return []
    return versions.drop(root, version_pins.of_stream(data / "checkpoint"))


def next_base(data: Path, registry: Registry) -> int:
    """A number for a new base of the index, which no base has had, also if the folder of the index was lost."""
    return registry.next_base(
        max(versions.last_base(data / "index"), version_pins.last_base(data / "checkpoint"))
    )


def sample_of_log(data: Path) -> pa.Table:
    """The last events of the log, as which others are expected."""
    recent = RecentEvents()
    recent.fill(EventLog(data / "log"))
    return to_table(recent.events())


class Compaction:
    """A thread that compacts when the tail has grown enough."""

    def __init__(self, settings: Settings, registry: Registry) -> None:
        self._settings, self._registry = settings, registry
        self._root = settings.data / "index"
        self._tail, self._most = 0, AT_LEAST
        self._due, self._stopping = threading.Event(), threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self.measure()
        self._thread = threading.Thread(target=self._run, name="compacting", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread; a compaction under way is killed."""
        self._stopping.set()
        self._due.set()
        if (process := self._process) is not None:
            process.kill()
        if self._thread is not None:
            self._thread.join(_PATIENCE)

    def appended(self, changes: int) -> None:
        """Counts changes that were appended to the tail."""
        self._tail += changes
        if self._tail > self._most:
            self._due.set()

    def measure(self) -> None:
        """Counts the changes in the tail of the current base, which is another one now."""
        version = versions.current(self._root)
        self._tail = (self._root / f"v{version.base}.tail").read_bytes().count(b"\n")
        self._most = max(AT_LEAST, int(SHARE * self._registry.counts(None)[State.ACTIVE]))
        self.appended(0)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._due.wait()
            self._due.clear()
            if self._stopping.is_set():
                return
            began = time.monotonic()
            try:
                self._fold()
                self.measure()
                checksums.start_check(self._root, versions.current(self._root).base)
            except Exception as error:
                if self._stopping.is_set():
                    return
                logger.error("the index could not be folded: %s", error)
                self._stopping.wait(_AGAIN_AFTER)
                self._due.set()
            else:
                seconds = time.monotonic() - began
                logger.info("folded the index to %s in %.1f s", versions.current(self._root), seconds)

    def _fold(self) -> None:
        number = next_base(self._settings.data, self._registry)
        command = [sys.executable, "-m", __name__, str(number)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=subprocess.DEVNULL, stderr=pipe) as process:
            self._process = process
            if self._stopping.is_set():
                process.kill()
            _, said = process.communicate(driver_settings.to_line(self._settings))
        self._process = None
        if process.returncode:
            last = said.decode(errors="replace").strip().splitlines()[-1:]
            raise TidingsError(last[0] if last else f"its process ended with {process.returncode}")


def main() -> None:
    settings = driver_settings.from_line(sys.stdin.buffer.readline())
    os.nice(5)
    drop_bases(settings.data)
    try:
        operators, number, root = load_operators(settings), int(sys.argv[1]), settings.data / "index"
        sample = sample_of_log(settings.data) if versions.is_placed(root) else None
        versions.compact(root, operators=operators, at_least=number, sample=sample)
    except TidingsError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
