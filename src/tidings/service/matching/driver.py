"""The driver process: Spark matches the event log and each micro-batch is written to the mailbox.

    python -m tidings.service.matching.driver    with the settings on the first line of its standard input, and "go" on the second

Spark starts while the service still makes the index; matching begins at "go".

Before Spark records a micro-batch as done, its notifications and their events are in the mailbox, in one or several
transactions under the key (query, batch). If the driver is killed at any moment, the batch is repeated: from the end of
what the mailbox has of it, or not at all if it is complete there. If the mailbox cannot be written, the batch and the
driver fail, and supervisor.py starts another driver.

On SIGTERM, or when its standard input ends because the service is gone, the driver ends after the micro-batch
under way. It reports its states as lines of JSON on its original standard output, and every few seconds how many of its
Spark tasks are done: without that, watchdog.py takes it for hung. Everything else that is printed goes to standard error.
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
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from tidings.errors import TidingsError
from tidings.service.matching import driver_settings, process_session
from tidings.service.matching.driver_backtests import DriverBacktests
from tidings.service.model import MEMBERS, BatchRecord
from tidings.service.settings import Settings
from tidings.service.store.database import open_mailbox
from tidings.storage.event_log import EventLog, Offset, Position

if TYPE_CHECKING:
    from tidings.service.store.mailbox import Mailbox
    from tidings.spark import Batch, Stream
    from tidings.spark.slices import MicroBatch, Slice
    from tidings.storage.part_visits import PartVisits

FINISH_SECONDS = 10.0  # for the micro-batch under way
END_SECONDS = 20.0  # until what does not end by itself is killed
_JAVA_SECONDS = 5.0  # in which Java removes its files
_WAIT_FOR_OTHER = 30.0  # for a driver whose service was killed, and that finishes
_POLL_SECONDS = 0.25
_NICE = 2  # enough for a whole core of two
_LIFE_SECONDS = 3.0  # between two signs of life
_FAIR = {"spark.scheduler.mode": "FAIR"}  # the tasks of a backtest do not go before those of the stream


class Recorder:
    """Writes micro-batches to the mailbox, in slices; `tidings.spark.stream.deliver` calls it. `on_record` is given
    the query of each, and the number of its notifications; `on_visits` what parts of a divided index were visited for."""

    def __init__(
        self,
        data: Path,
        mailbox: Mailbox,
        clock: Callable[[], float] = time.time,
        on_record: Callable[[str, int], None] = lambda query, count: None,
        on_visits: Callable[[PartVisits], None] = lambda visits: None,
    ) -> None:
        self.mailbox, self._log = mailbox, EventLog(data / "log")
        self._clock, self._on_record, self._on_visits = clock, on_record, on_visits
        # Up to where earlier queries have answered, those that match and those that keep joins.
        self.positions: tuple[Offset | None, Offset | None] = (None, None)
        self._joins = data / "checkpoint" / "joins"
        self._quiet = QuietJoins(data, self._log, mailbox, on_record)

    def resume(self, batch: MicroBatch) -> Position | None:
        until = self.mailbox.recorded(batch.query, batch.number).until
        return until if until >= Position(0, 0) else None

    def record(self, batch: MicroBatch, part: Slice) -> None:
        self._write(batch, part)
        if part.reached >= Position(*batch.range.end):
            self._quiet.matched(batch.range.end)

    def start(self) -> None:
        """The stream has started, and goes on after what was answered before."""
        if (matched := self.positions[0]) is not None:  # there may be nothing to match for a long time
            self._quiet.matched(matched)

    def record_joins(self, batch: Batch) -> None:
        """Records a micro-batch of joins from its files, in the log's order."""
        from tidings.service.matching.join_slices import join_slices
        from tidings.spark.offsets import batch_range
        from tidings.spark.slices import SLICE, MicroBatch

        described = MicroBatch(batch.query, batch.id, batch.version, batch_range(self._joins, batch.id))
        start, end, _ = described.range
        notified = self.positions[1]
        if notified is not None and end <= notified:  # read again for the rows alone
            shutil.rmtree(batch.folder, ignore_errors=True)
            batch = replace(batch, notifications=0, errors=0)
        start = max(start or Offset(0, 0), self._log.start())
        # The answers are the same in every replay, so their number says how far it is.
        done = max(0, self.mailbox.recorded(batch.query, batch.id).until.row)
        for part in join_slices(batch, self._log, start, end, done=done, size=SLICE):
            self._write(described, part)
        self._quiet.joined(end)
        # It is in the mailbox; a replay would write it once more.
        shutil.rmtree(batch.folder, ignore_errors=True)

    def _write(self, batch: MicroBatch, part: Slice) -> None:
        end = batch.range.end
        until = part.reached if part.reached < Position(*end) else None
        record = BatchRecord(
            batch.query,
            batch.number,
            batch.version,
            end.segment,
            end.byte,
            part.events,
            part.notifications.num_rows - part.errors,
            part.errors,
            batch.range.began,
            self._clock(),
        )
        from tidings.dissemination.live.carriers import carried

        notifications, events = carried(part.notifications, part.notified, MEMBERS)
        self.mailbox.record(record, notifications, events, until=until)
        self._on_record(batch.query, len(notifications))
        if part.visits:
            self._on_visits(part.visits)


class QuietJoins:
    """Notes that the query of joins has nothing to answer where no table changes: it reads no micro-batch then, and
    others would wait for it."""

    def __init__(
        self, data: Path, log: EventLog, mailbox: Mailbox, on_record: Callable[[str, int], None]
    ) -> None:
        self._data, self._log, self._mailbox, self._on_record = data, log, mailbox, on_record
        self._lock = threading.Lock()
        self._looked: Offset | None = None  # up to which changes are known
        self._changed = self._joined = Offset(0, 0)  # the end of the last change, and of what was joined

    def matched(self, end: Offset) -> None:
        """The other query has answered everything up to there."""
        from tidings.spark.joins.change_extract import end_of_changes

        tables = self._data / "checkpoint" / "joins" / "TABLES"
        if not tables.exists():
            return
        with self._lock:
            if self._looked is None:
                self._joined = self._mailbox.reached().get(self._query(), self._log.start())
                self._looked = self._changed = self._joined
            start = max(self._looked, self._log.start())
            self._changed = end_of_changes(self._log, start, end, tables.read_text()) or self._changed
            self._looked = max(end, self._looked)
            self._advance()

    def joined(self, end: Offset) -> None:
        with self._lock:
            self._joined = end
            self._advance()

    def _advance(self) -> None:
        looked = self._looked
        if looked is not None and self._changed <= self._joined < looked and (query := self._query()):
            self._joined = looked
            self._mailbox.advance(query, looked)
            self._on_record(query, 0)

    def _query(self) -> str:
        """The id of the query of joins; empty before it has begun."""
        from tidings.spark.offsets import query_id

        with suppress(FileNotFoundError):
            return query_id(self._data / "checkpoint" / "joins")
        return ""


class Driver:
    """One run of the stream. `say` receives its states as dictionaries."""

    def __init__(self, settings: Settings, say: Callable[..., None]) -> None:
        self._settings, self._say = settings, say
        self._stopping, self._going = threading.Event(), threading.Event()
        self._stream: Stream | None = None
        self._backtests = DriverBacktests(settings.data / "log", settings.operators, say)

    def take(self, line: bytes) -> None:
        """A line of the service: that matching may begin, or a backtest."""
        if line == driver_settings.GO:
            self.go()
        else:
            self._backtests.take(line)

    def go(self) -> None:
        """Allows matching to begin: the index exists."""
        self._going.set()

    def stop(self) -> None:
        """Ends the stream after the micro-batch under way."""
        self._stopping.set()
        self._going.set()

    def run(self) -> None:
        from tidings.spark.daemon import warm
        from tidings.spark.startup import start_spark

        settings, data = self._settings, self._settings.data
        self._say(status="starting", pid=os.getpid())
        threading.Thread(target=self._show_life, name="life", daemon=True).start()
        with ExitStack() as stack:
            mailbox = open_mailbox(settings)
            stack.callback(mailbox.close)
            spark = start_spark(settings.spark, data / "index", {**_FAIR, **settings.spark_settings})
            stack.callback(_quietly, spark.stop)
            self._backtests.use(spark)
            self._going.wait()
            if self._stopping.is_set():
                return
            warm(str(data / "index"))  # small micro-batches are matched here
            recorder = Recorder(
                data,
                mailbox,
                on_record=lambda query, count: self._say(recorded=count, query=query),
                on_visits=lambda visits: self._say(visits=visits.to_lists()),
            )
            self._run_stream(spark, recorder)

    def _run_stream(self, spark: Any, recorder: Recorder) -> None:
        """Until it is to stop; raises what made it end. Queries whose Python process a machine under load did not start
        in time are started again."""
        from tidings.spark.slices import NO_WORKER, PAUSES

        for pause in (*PAUSES, None):
            stream = None
            try:
                self._stream = stream = self._start(spark, recorder)
                self._say(status="running", queries=[query.id for query in stream.queries])
                while stream.is_active and not self._stopping.wait(_POLL_SECONDS):
                    pass
                if self._stopping.is_set():
                    stream.finish(FINISH_SECONDS)
                    return
                stream.wait(_WAIT_FOR_OTHER)  # raises what made it end
                raise TidingsError("the stream ended by itself")
            except Exception as error:
                if pause is None or NO_WORKER not in f"{error} {error.__cause__}":
                    raise
                print(
                    f"a Python process of Spark did not start in time; trying again in {pause:.0f} s",
                    file=sys.stderr,
                )
                if self._stopping.wait(pause):
                    return
            finally:
                if stream is not None:
                    _quietly(stream.stop)

    def _show_life(self) -> None:
        """Reports every few seconds that this process lives, and, by a call to it, Java too once the stream runs."""
        while True:
            with suppress(Exception):  # Java has ended, which the stream's own thread reports
                self._say(tasks={} if self._stream is None else self._stream.tasks())
            time.sleep(_LIFE_SECONDS)

    def _start(self, spark: Any, recorder: Recorder) -> Stream:
        """Starts the stream, once the driver of a killed service is gone."""
        from tidings.service.matching.stream_recovery import note_queries, recover
        from tidings.spark.joins.stream import leave_other_tables
        from tidings.spark.lock import StreamBusy
        from tidings.spark.stream import deliver

        data, mailbox = self._settings.data, recorder.mailbox
        deadline = time.monotonic() + _WAIT_FOR_OTHER
        while True:
            try:
                leave_other_tables(data / "index", data / "checkpoint")
                recorder.positions = positions = recover(data, mailbox)
                stream = deliver(
                    spark,
                    data / "log",
                    data / "index",
                    data / "output",
                    data / "checkpoint",
                    recorder,
                    operators=self._settings.operators,
                    small=self._settings.small_batch,
                    start=positions.match,
                    edge=positions.joins,
                    memory=self._settings.memory,
                    members=MEMBERS,
                )
                note_queries(
                    [query.id for query in stream.queries], positions, EventLog(data / "log"), mailbox
                )
                recorder.start()
                return stream
            except StreamBusy:
                if time.monotonic() > deadline or self._stopping.wait(_POLL_SECONDS):
                    raise


def _quietly(step: Callable[[], object]) -> None:
    """Suppresses errors while something is ended that may be dead already."""
    with suppress(Exception):
        step()


def main() -> None:
    _stand_back()
    # What is printed from here on, also by Java, must not go to the pipe of states.
    states = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    # Errors are raised here; the bridge to Java would print them as well, with a traceback.
    logging.basicConfig(level=logging.CRITICAL, format="%(message)s")
    logging.getLogger("tidings").setLevel(logging.WARNING)

    saying = threading.Lock()  # two queries may have something to say at once

    def say(**state: object) -> None:
        with saying, suppress(OSError, ValueError):  # the service may be gone
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
        _end_now(1)  # no waiting for what may not answer any more
    from tidings.spark.startup import end_java

    end_java(_JAVA_SECONDS)
    _end_now(0)  # a service that was killed cannot see to it that nothing is left


def _stand_back() -> None:
    """Lets the service go first, with all that this process starts: while more events come than are matched, they are
    accepted as fast as before. Linux compares sessions with each other, and processes within one."""
    os.nice(_NICE)
    if os.getsid(0) != os.getpid():
        return  # started by hand
    with suppress(OSError):  # another system, or one without groups of sessions
        Path("/proc/self/autogroup").write_text(str(_NICE))


def _reason(error: BaseException) -> str:
    """The error in one line."""
    from tidings.service.store.transactions import StoreAway, StoreError
    from tidings.spark.startup import java_has_ended

    if not isinstance(error, TidingsError) and java_has_ended():
        return "Spark's Java process has ended"
    lines = [line for line in str(error).splitlines() if not line.startswith("\tat ")]  # of a stack in Java
    what = " ".join(" ".join(lines).split())
    if isinstance(error, StoreError) and not isinstance(error, StoreAway):
        # It names the database's host, and the reason is shown to everyone who requests /ready.
        print(what, file=sys.stderr)
        return "the store cannot be opened; the log says why"
    return what if isinstance(error, TidingsError) else f"{type(error).__name__}: {what}"


def _end_with_input(driver: Driver) -> None:
    """Stops the driver when standard input ends: the service ends it, or is gone."""
    for line in sys.stdin.buffer:
        driver.take(line)
    driver.stop()
    time.sleep(END_SECONDS)
    _end_now(1)


def _end_now(code: int) -> NoReturn:
    """Ends this process, with the JVM and the workers if the session is the driver's own."""
    with suppress(OSError):  # the reader may be gone
        sys.stderr.flush()
    if os.getsid(0) == os.getpid():
        process_session.kill(os.getpid(), but=os.getpid())
    os._exit(code)


if __name__ == "__main__":
    main()
