"""Reads the answers of a micro-batch of joins from its files in slices, each with its events from the log.

Files and log are read piece by piece, both in the log's order, so memory has a ceiling whatever the number of answers.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tidings.model.envelope import event_keys
from tidings.model.event import EVENT_SCHEMA
from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.spark.output import Batch
from tidings.spark.slices import Slice
from tidings.storage.event_log import EventLog, Offset, Position

_EVENTS = 1_000  # of the log that are read at once


def join_slices(
    batch: Batch, log: EventLog, start: Offset, end: Offset, *, done: int, size: int
) -> Iterator[Slice]:
    """The answers of a batch to the events from `start` to `end`, but for the first `done`, in slices of `size`. The
    last one reaches the end, has the counts of the batch and may be empty; the others reach so many answers."""
    events = _EventReader(log, start, end)
    rest = NOTIFICATION_SCHEMA.empty_table()
    seen = 0
    for piece in batch.pieces():
        rest = pa.concat_tables([rest, piece.slice(max(0, done - seen))])
        seen += len(piece)
        while len(rest) > size:
            part, rest = rest.slice(0, size), rest.slice(size)
            yield Slice(0, 0, part, events.of(part), Position(0, 0, seen - len(rest)))
    yield Slice(batch.events, batch.errors, rest, events.of(rest), Position(*end))


class _EventReader:
    """Finds events of a range of the log. They are requested in the log's order, so it is read once."""

    def __init__(self, log: EventLog, start: Offset, end: Offset) -> None:
        self._log, self._start, self._end = log, Position(*start), end

    def of(self, notifications: pa.Table) -> pa.Table:
        """The events that notifications are of."""
        wanted = event_keys(notifications["source"], notifications["event"]).unique()
        found = [EVENT_SCHEMA.empty_table()]
        begin = self._start
        pieces = self._log.pieces(begin, self._end, lambda: _EVENTS) if len(wanted) else ()
        for batch, reached in pieces:
            events = pa.Table.from_batches([batch])
            keys = event_keys(events["source"], events["id"])
            is_wanted = pc.is_in(keys, value_set=wanted)
            if pc.any(is_wanted).as_py():
                found.append(events.filter(is_wanted))
                wanted = wanted.filter(pc.invert(pc.is_in(wanted, value_set=keys)))
                self._start = begin  # the next ones may be of the last of these
            if not len(wanted):
                break
            begin = reached
        return pa.concat_tables(found)
