"""The handle of a running stream: one or several Spark queries, started and ended together."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType

from pyspark import SparkContext, StatusTracker
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from tidings.errors import TidingsError
from tidings.spark.lock import StreamLock

_POLL_SECONDS = 0.1  # seconds


class StreamError(TidingsError):
    """The stream ended because something in it failed."""


@dataclass(slots=True)
class Running:
    """A Spark query, the lock that it holds during a micro-batch, and the number of micro-batches done."""

    query: StreamingQuery
    busy: threading.Lock
    done: Callable[[], int]


class Stream:
    """A running stream. `queries` are Spark's own handles, with their progress; the first one matches, the second
    one, if any, keeps joins."""

    def __init__(self, running: Sequence[Running], lock: StreamLock) -> None:
        self.queries = tuple(handle.query for handle in running)
        self._running = tuple(running)
        self._busy = [handle.busy for handle in running]
        self._lock = lock

    @property
    def is_active(self) -> bool:
        """Whether every query runs: one that has ended early has failed."""
        return all(query.isActive for query in self.queries)

    @property
    def is_busy(self) -> bool:
        """Whether a micro-batch is under way."""
        return any(query.status["isTriggerActive"] for query in self.queries)

    @property
    def is_behind(self) -> bool:
        """Whether there are events that Spark has not recorded as done."""
        return any(query.status["isDataAvailable"] for query in self.queries)

    def tasks(self) -> dict[str, list[int]]:
        """By query, the number of its last Spark job and how many tasks of it are done: they rise while it works."""
        tracker = SparkContext._active_spark_context.statusTracker()  # type: ignore[union-attr]
        return {query.id: _tasks_done(tracker, query.runId) for query in self.queries}

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until the stream ends, or for some seconds; returns whether it has ended. Raises the error of a
        failed query."""
        deadline = None if seconds is None else time.monotonic() + seconds
        try:
            while not self._ended(deadline):
                if deadline is not None and time.monotonic() >= deadline:
                    return False
        except StreamingQueryException as error:
            self.stop()
            raise StreamError(f"the stream stopped: {_reason(error)}") from error
        self._lock.release()
        return True

    def drain(self) -> None:
        """Waits until everything that is in the log now has been matched."""
        try:
            for query in self.queries:
                query.processAllAvailable()
        except StreamingQueryException as error:
            raise StreamError(f"the stream stopped: {_reason(error)}") from error

    def finish(self, seconds: float | None = None) -> None:
        """Waits until the micro-batches under way are done, or for some seconds. With a backlog the next one follows
        at once: one is enough."""
        deadline = None if seconds is None else time.monotonic() + seconds
        before = [handle.done() for handle in self._running]

        def under_way() -> bool:
            return any(
                handle.done() == count and handle.query.status["isTriggerActive"]
                for handle, count in zip(self._running, before, strict=True)
            )

        while self.is_active and under_way() and (deadline is None or time.monotonic() < deadline):
            time.sleep(_POLL_SECONDS / 10)
        # Spark notes that a micro-batch is done a moment after we know; otherwise the next run would do it again.
        patience = time.monotonic() + 1
        done = [handle.done() for handle in self._running] != before
        while done and self.is_behind and time.monotonic() < patience:
            time.sleep(_POLL_SECONDS / 10)

    def stop(self) -> None:
        """Ends the stream; a micro-batch under way is given up and replayed at the next start."""
        for query in self.queries:
            query.stop()
        # Spark does not wait for our side of a micro-batch that it has given up.
        for busy in self._busy:
            busy.acquire()
        self._lock.release()
        for busy in self._busy:
            busy.release()

    def _ended(self, deadline: float | None) -> bool:
        """Checks each query; whether all have ended."""
        left = (
            _POLL_SECONDS if deadline is None else min(_POLL_SECONDS, max(0.001, deadline - time.monotonic()))
        )
        ended = [query.awaitTermination(left) for query in self.queries]  # type: ignore[arg-type]  # it takes a float
        return all(ended)

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _tasks_done(tracker: StatusTracker, run: str) -> list[int]:
    last = max(tracker.getJobIdsForGroup(run), default=-1)  # Spark groups the jobs of a query by its run
    job = tracker.getJobInfo(last) if last >= 0 else None
    stages = [] if job is None else [tracker.getStageInfo(stage) for stage in job.stageIds]
    return [last, sum(stage.numCompletedTasks for stage in stages if stage is not None)]


# The line that ends a Python traceback. Spark wraps such tracebacks in others; the last is where it began.
_RAISED = re.compile(r"^((?:\w+\.)*)(\w+): (.*[^:\s])$", re.MULTILINE)


def _reason(error: StreamingQueryException) -> str:
    """The error in one line: Tidings' own errors as they are, others with their name."""
    text = re.sub(r" SQLSTATE: \w+", "", str(error).partition("=== Streaming Query ===")[0])
    raised = _RAISED.findall(text)
    if not raised:
        return text.strip().splitlines()[0]
    module, name, message = raised[-1]
    return message if module.startswith("tidings.") else f"{name}: {message}"
