"""Finds which subscriptions an event would match, without publishing it: the event is matched with the current version of the
index, in this process.

Subscriptions over tables take no part, because what they gain depends on the rows. Only a few callers are let in at once, so that
operators that are slow cannot take all threads of the service.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tidings.errors import EventError, IndexFileError, TidingsError
from tidings.model.event import Event, to_table
from tidings.model.notification import Notification
from tidings.storage import versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.engine.engine import Engine
    from tidings.service.subscriptions.preview import Preview

_CALLERS = 4  # at once; all but one wait
_TRIES = 3
_Result = TypeVar("_Result")


class Busy(TidingsError):
    """The event cannot be matched now."""

    status = 503
    retry_after = 1.0


class EventMatches(NamedTuple):
    """What an event would match with a version of the index. `matched` counts all, `notifications` has the first."""

    version: str
    matched: int
    notifications: list[Notification]


class EventPreview:
    """Matches events with the index in a folder; `preview` has the operators. Thread-safe."""

    def __init__(self, index: Path, preview: Preview, memory: int | None = None) -> None:
        self._index, self._preview, self._memory = index, preview, memory
        self._callers = threading.BoundedSemaphore(_CALLERS)
        self._lock = threading.Lock()

    def match(self, event: Event, *, visible: Collection[str] | None = None, limit: int) -> EventMatches:
        """The subscriptions that an event would match, of those in `visible`, or of all."""
        version, found = self._match([event])
        notifications = []
        for notification in Notification.from_table(found):
            if notification.verdict == "error":
                raise EventError(notification.message or "the event cannot be read")
            if visible is None or notification.subscription in visible:
                notifications.append(notification)
        return EventMatches(str(version), len(notifications), notifications[:limit])

    def counts(
        self, events: Sequence[Event], *, visible: Collection[str] | None = None
    ) -> dict[tuple[str, str], int] | None:
        """How many subscriptions each of these events would match, by source and id. None where that is not found out
        quickly: operators may take long, and others may be matching."""
        if not events or list(self._preview.engine.operators):
            return None
        try:
            found = pa.Table.from_batches([self._match(events)[1]])
        except Busy:
            return None
        kept = pc.equal(found["verdict"], "match")
        if visible is not None:
            mine = pc.is_in(found["subscription"], value_set=pa.array(visible, pa.string()))
            kept = pc.and_(kept, mine)
        counted = found.filter(kept).group_by(["source", "event"]).aggregate([([], "count_all")])
        return {(row["source"], row["event"]): row["count_all"] for row in counted.to_pylist()}

    def candidates(self, events: Sequence[Event]) -> list[str]:
        """The subscriptions that each of these events would match if networks and operators let it through; these are not
        called."""
        return self._ask(lambda index: index.candidates(events))[1]

    def _match(self, events: Sequence[Event]) -> tuple[versions.Version, pa.RecordBatch]:
        batch = to_table(events).combine_chunks().to_batches()[0]
        return self._ask(lambda index: index.match(batch))

    def _ask(self, step: Callable[[Engine], _Result]) -> tuple[versions.Version, _Result]:
        with self._turn():
            for attempt in range(_TRIES):
                try:
                    version = versions.current(self._index)
                    operators = self._preview.engine.operators
                    index = versions.open(self._index, version, operators=operators, memory=self._memory)
                    return version, step(index)
                except (IndexFileError, OSError):  # it was folded, or is built anew
                    if attempt == _TRIES - 1:
                        raise Busy("the index is being built anew; try again") from None
        raise AssertionError("the last try returns or raises")

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._callers.acquire(blocking=False):
            raise Busy("too many events are being tried at once; try again in a moment")
        try:
            with self._lock:
                yield
        finally:
            self._callers.release()
