"""Finds events of the log by the time of their arrival, reading one frame of a segment and then one segment.

Arrivals are taken to rise along the log: a clock that was set back puts what came then between its neighbours. A frame
of an earlier version has no arrival, and counts as arrived when its segment was last written to.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pyarrow as pa

from tidings.storage.event_log import START, EventLog, Frame, Offset


class LogTimes:
    """The arrivals of a log's events."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._written = cache(lambda segment: log.segment_path(segment).stat().st_mtime)

    def arrival(self, frame: Frame) -> float:
        """When the events of a frame arrived."""
        return float(self._written(frame.start.segment)) if frame.at is None else frame.at

    def known_from(self, since: float, until: float) -> float:
        """The part of a time of which the log knows begins then: when the oldest event that is kept arrived, or at the end
        without events."""
        frame = next(self._log.frames(), None)
        return until if frame is None else min(max(since, self.arrival(frame)), until)

    def offset(self, at: float) -> Offset:
        """The offset before the first event that arrived at this time or later; segments that are older are not read."""
        low, high = self._log.start(), self._log.end()
        first, last = low.segment, high.segment
        while first < last:  # the last segment that begins before then
            middle = (first + last + 1) // 2
            frame = next(self._log.frames(Offset(middle, START), high), None)
            if frame is not None and self.arrival(frame) < at:
                first = middle
            else:
                last = middle - 1
        start = max(low, Offset(first, START))
        for frame in self._log.frames(start, high):
            if self.arrival(frame) >= at:
                return frame.start
        return high

    def read(self, start: Offset, end: Offset) -> Iterator[tuple[pa.RecordBatch, np.ndarray]]:
        """The events between two offsets in batches, each with the arrivals of its rows."""
        for batch, frames in self._log.read_frames(start, end):
            arrivals = np.array([self.arrival(frame) for frame in frames])
            yield batch, np.repeat(arrivals, [frame.rows for frame in frames])
