"""Learns from the last micro-batches how many answers events have and what matching costs, and sizes the next ones.

The micro-batch's end is chosen by Spark's process that plans, so the number of events goes there through a file.
"""

from __future__ import annotations

import os
from pathlib import Path

ANSWERS = 100_000  # of a micro-batch, about what is recorded in four seconds
_CHUNK = 256  # events that are matched at once: more gain nothing
_CHUNK_SECONDS = 10.0
_WEIGHT = 0.2  # of the newest in an average
_JOB_SECONDS = 0.15  # of a Spark job that does nothing, until one was run
_EVENT_SECONDS = 1e-4


class ChunkSize:
    """How many events to match at once, so that they have at most about so many answers and take a few seconds."""

    def __init__(self, answers: int) -> None:
        self._answers, self._rows = answers, 32

    def rows(self) -> int:
        return self._rows

    def matched(self, events: int, answers: int, seconds: float = 0.0) -> None:
        fitting = self._answers * events // max(answers, 1)
        fitting = min(fitting, int(_CHUNK_SECONDS * events / max(seconds, 1e-3)))
        self._rows = max(1, min(fitting, 4 * self._rows, _CHUNK))


class BatchSize:
    """How large a micro-batch should be, and which ones are worth a Spark job. `small` is the largest number of events
    that are matched without one: None if that is to be learnt, 0 for never."""

    def __init__(self, file: Path, tasks: int, small: int | None = None) -> None:
        self._file, self._small = file, small
        self._gain = 1 - 1 / max(2, tasks)  # of what tasks do side by side
        self._answers, self._event_seconds, self._job_seconds = 0.0, _EVENT_SECONDS, _JOB_SECONDS
        self._written = 0

    def is_small(self, events: int) -> bool:
        """Whether matching in the driver takes no longer than a job."""
        if self._small is not None:
            return events <= self._small
        return events * self._event_seconds * self._gain <= self._job_seconds

    def fitting(self, answers: int) -> int:
        """The number of events that may have so many answers."""
        return max(1, int(answers / max(self._answers, 1e-3)))

    def matched_here(self, events: int, answers: int, seconds: float) -> None:
        if events:
            self._event_seconds += _WEIGHT * (seconds / events - self._event_seconds)
            self.learn(events, answers)

    def matched_in_tasks(self, events: int, answers: int, seconds: float) -> None:
        if events:
            idle = max(0.01, seconds - events * self._event_seconds * (1 - self._gain))
            self._job_seconds += _WEIGHT * (idle - self._job_seconds)
            self.learn(events, answers)

    def learn(self, events: int, answers: int) -> None:
        """Notes how many answers events had."""
        rate = answers / events
        # A rise counts at once, a fall slowly: too small a micro-batch costs less than one too large.
        self._answers = max(rate, self._answers + _WEIGHT * (rate - self._answers))
        limit = self.fitting(ANSWERS)
        if not 0.8 * self._written <= limit <= 1.25 * self._written:
            write_limit(self._file, limit)
            self._written = limit


def write_limit(file: Path, events: int) -> None:
    aside = file.with_suffix(".writing")
    aside.write_text(str(events))
    os.replace(aside, file)


def read_limit(file: str) -> int | None:
    """The number of events that the next micro-batch should have at most, if one is known."""
    try:
        return int(Path(file).read_text())
    except (OSError, ValueError):
        return None
