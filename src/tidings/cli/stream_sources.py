"""The sources of a running stream: appends the items of followed feeds and the files of watched folders to the log.

Each source runs in a thread of its own, so that a slow host delays no file. What cannot be read is reported in
one sentence, and is not tried again until it changes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.cli import events as event_files

if TYPE_CHECKING:
    from tidings.cli.stream_config import StreamConfig
    from tidings.model.event import Event
    from tidings.storage.event_log import EventLog

LOOK = 1.0  # seconds from one look at the folders to the next

Report = Callable[[str], None]


class WatchedFolders:
    """Reads files that appear in folders, or change there. A file is recorded after its events are in the log, so a
    crash in between repeats it, with the same event ids, and loses none."""

    def __init__(self, folders: Sequence[Path], state: Path, report: Report) -> None:
        self._folders, self._state, self._report = folders, state, report
        self._known = set(state.read_text().splitlines()) if state.exists() else set()

    def ingest(self, log: EventLog) -> int:
        """Appends new events; returns their number."""
        count = 0
        for path, mark in self._new():
            for portion in event_files.read(path, self._report):
                log.append(portion)
                count += len(portion)
            self._known.add(mark)
            self._state.parent.mkdir(parents=True, exist_ok=True)
            with self._state.open("a") as file:
                file.write(mark + "\n")
        return count

    def _new(self) -> Iterator[tuple[str, str]]:
        for path in event_files.files(str(folder) for folder in self._folders):
            facts = Path(path).stat()
            mark = f"{facts.st_mtime_ns} {facts.st_size} {path}"
            if mark not in self._known:
                yield path, mark


class StreamSources:
    """All sources of a configuration, appending to one log until `stop`."""

    def __init__(self, config: StreamConfig, log: EventLog, report: Report) -> None:
        self._config, self._log, self._report = config, log, report
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self.failure: Exception | None = None

    def once(self) -> None:
        """Reads everything that is due, once."""
        if self._config.folders:
            self._folders().ingest(self._log)
        if self._config.feeds:
            self._fetch(once=True)

    def start(self) -> None:
        for wanted, work in ((self._config.folders, self._watch), (self._config.feeds, self._fetch)):
            if wanted:
                thread = threading.Thread(target=self._guarded, args=(work,), daemon=True)
                thread.start()
                self._threads.append(thread)

    def stop(self) -> None:
        """Stops the threads; waits a moment for an append under way."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(timeout=5)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # for the main thread to raise
            self.failure = error

    def _folders(self) -> WatchedFolders:
        return WatchedFolders(self._config.folders, self._config.states / "ingested.txt", self._report)

    def _watch(self) -> None:
        folders = self._folders()
        while not self._stopping.is_set():
            folders.ingest(self._log)
            self._stopping.wait(LOOK)

    def _fetch(self, once: bool = False) -> None:
        from tidings.feeds.fetch import Fetcher

        def append(events: list[Event]) -> None:
            self._log.append(events)

        with Fetcher(append, self._config.states / "feeds.db", interval=float(self._config.every)) as fetcher:
            fetcher.follow(self._config.feeds)
            while not self._stopping.is_set():
                for result in fetcher.fetch_due():
                    if result.error:
                        self._report(f"{result.url}: {result.error.removeprefix(f'{result.url}: ')}")
                if once:
                    return
                self._stopping.wait(min(fetcher.due_in() or 60.0, 60.0))
