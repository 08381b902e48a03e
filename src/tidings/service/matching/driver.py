"""The driver process: Spark matches the event log and each micro-batch is written to the mailbox.

    python -m tidings.service.matching.driver    with the settings on the first line of its standard input, and "go" on the second

Spark starts while the service still makes the index; matching begins at "go".

Before Spark records a micro-batch as done, its notifications and their events are in the mailbox, in one
transaction under the key (query, batch). If the driver is killed at any moment, the batch is repeated, and the
mailbox ignores it if it is already there. If the mailbox cannot be written, the batch and the driver fail, and
supervisor.py starts another driver.

On SIGTERM, or when its standard input ends because the service is gone, the driver ends after the micro-batch
under way. It reports its states as lines of JSON on its original standard output; everything else that is printed
goes to standard error.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tidings.errors import TidingsError
from tidings.model.event import EVENT_SCHEMA
from tidings.service.matching import driver_settings, process_session
from tidings.service.model import BatchRecord
from tidings.service.settings import Settings
from tidings.service.store.database import open_mailbox
from tidings.storage.event_log import EventLog

if TYPE_CHECKING:
    from tidings.service.store.mailbox import Mailbox
    from tidings.spark import Batch, Stream

FINISH_SECONDS = 10.0  # for the micro-batch under way
END_SECONDS = 20.0  # until what does not end by itself is killed
_WAIT_FOR_OTHER = 30.0  # for a driver whose service was killed, and that finishes
_POLL_SECONDS = 0.25


class Recorder:
    """Writes micro-batches to the mailbox; `tidings.spark.run` calls it for each batch."""

    def __init__(self, data: Path, mailbox: Mailbox, clock: Callable[[], float] = time.time) -> None:
        self._log, self._mailbox, self._clock = EventLog(data / "log"), mailbox, clock
        self._checkpoints = (data / "checkpoint", data / "checkpoint" / "joins")

    def __call__(self, batch: Batch) -> None:
        from tidings.spark.offsets import batch_range

        reached = batch_range(self._checkpoint(batch.query), batch.id)
        notifications = batch.table()
        events = EVENT_SCHEMA.empty_table()
        if len(notifications):
            wanted = _keys(notifications["source"], notifications["event"])
            parts = self._log.read(reached.start, reached.end)
            found = [
                part.filter(pc.is_in(_keys(part["source"], part["id"]), value_set=wanted)) for part in parts
            ]
            events = pa.Table.from_batches(found, EVENT_SCHEMA)
        record = BatchRecord(
            batch.query,
            batch.id,
            batch.version,
            reached.end.segment,
            reached.end.byte,
            batch.events,
            batch.notifications,
            batch.errors,
            reached.began,
            self._clock(),
        )
        self._mailbox.record(record, notifications, events)
        # It is in the mailbox; a replay would write it once more.
        shutil.rmtree(batch.folder, ignore_errors=True)

    def _checkpoint(self, query: str) -> Path:
        from tidings.spark.offsets import query_id

        for checkpoint in self._checkpoints:
            with suppress(FileNotFoundError):
                if query_id(checkpoint) == query:
                    return checkpoint
        raise AssertionError(f"no query {query} is under {self._checkpoints[0]}")


def _keys(sources: Any, ids: Any) -> pa.Array:
    """Source and id joined as one text. Two pairs may give the same text; the mailbox tells them apart."""
    joined = pc.binary_join_element_wise(sources, ids, "\0")
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


class Driver:
    """One run of the stream. `say` receives its states as dictionaries."""

    def __init__(self, settings: Settings, say: Callable[..., None]) -> None:
        self._settings, self._say = settings, say
        self._stopping, self._going = threading.Event(), threading.Event()

    def go(self) -> None:
        """Allows matching to begin: the index exists."""
        self._going.set()

    def stop(self) -> None:
        """Ends the stream after the micro-batch under way."""
        self._stopping.set()
        self._going.set()

    def run(self) -> None:
        from tidings.spark.startup import start_spark

        settings, data = self._settings, self._settings.data
        self._say(status="starting", pid=os.getpid())
        with ExitStack() as stack:
            mailbox = open_mailbox(settings)
            stack.callback(mailbox.close)
            spark = start_spark(settings.spark, data / "index", settings.spark_settings)
            stack.callback(_quietly, spark.stop)
            self._going.wait()
            if self._stopping.is_set():
                return
            stream = self._start(spark, Recorder(data, mailbox))
            stack.callback(_quietly, stream.stop)
            self._say(status="running", queries=[query.id for query in stream.queries])
            while stream.is_active and not self._stopping.wait(_POLL_SECONDS):
                pass
            if self._stopping.is_set():
                stream.finish(FINISH_SECONDS)
            else:
                stream.wait(_WAIT_FOR_OTHER)  # raises what made it end
                raise TidingsError("the stream ended by itself")

    def _start(self, spark: Any, recorder: Recorder) -> Stream:
        """Starts the stream, once the driver of a killed service is gone."""
        from tidings.spark import run
        from tidings.spark.join_stream import leave_other_tables
        from tidings.spark.lock import StreamBusy

        data = self._settings.data
        deadline = time.monotonic() + _WAIT_FOR_OTHER
        while True:
            try:
                leave_other_tables(data / "index", data / "checkpoint")
                return run(
                    spark,
                    data / "log",
                    data / "index",
                    data / "output",
                    data / "checkpoint",
                    operators=self._settings.operators,
                    on_batch=recorder,
                )
            except StreamBusy:
                if time.monotonic() > deadline or self._stopping.wait(_POLL_SECONDS):
                    raise


def _quietly(step: Callable[[], object]) -> None:
    """Suppresses errors while something is ended that may be dead already."""
    with suppress(Exception):
        step()


def main() -> None:
    # What is printed from here on, also by Java, must not go to the pipe of states.
    states = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    # Errors are raised here; the bridge to Java would print them as well, with a traceback.
    logging.basicConfig(level=logging.CRITICAL)

    def say(**state: object) -> None:
        with suppress(OSError, ValueError):  # the service may be gone
            states.write(json.dumps(state) + "\n")

    driver = Driver(driver_settings.from_line(sys.stdin.buffer.readline()), say)

    def terminate(number: int, frame: FrameType | None) -> None:
        driver.stop()

    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the service, which ends this one in its turn
    threading.Thread(target=_end_with_input, args=(driver,), daemon=True).start()
    try:
        driver.run()
        say(status="stopped")
    except BaseException as error:
        say(status="failed", message=_reason(error))
        _end_now()  # no waiting for what may not answer any more


def _reason(error: BaseException) -> str:
    """The error in one line."""
    from tidings.service.store.transactions import StoreAway, StoreError
    from tidings.spark.startup import java_has_ended

    if not isinstance(error, TidingsError) and java_has_ended():
        return "Spark's Java process has ended"
    what = " ".join(str(error).split())
    if isinstance(error, StoreError) and not isinstance(error, StoreAway):
        # It names the database's host, and the reason is shown to whoever asks whether the service is ready.
        print(what, file=sys.stderr)
        return "the store cannot be opened; the log says why"
    return what if isinstance(error, TidingsError) else f"{type(error).__name__}: {what}"


def _end_with_input(driver: Driver) -> None:
    """Stops the driver when standard input ends: the service asked for it, or is gone."""
    for line in sys.stdin.buffer:
        if line == driver_settings.GO:
            driver.go()
    driver.stop()
    time.sleep(END_SECONDS)
    _end_now()


def _end_now() -> None:
    """Ends this process, with the JVM and the workers if the session is the driver's own."""
    with suppress(OSError):  # the reader may be gone
        sys.stderr.flush()
    if os.getsid(0) == os.getpid():
        process_session.kill(os.getpid(), but=os.getpid())
    os._exit(1)


if __name__ == "__main__":
    main()
