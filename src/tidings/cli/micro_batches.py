"""Passes the finished micro-batches of a stream from Spark's thread to the one that prints."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from tidings.errors import TidingsError

if TYPE_CHECKING:
    from tidings.spark import Batch, Stream


class MicroBatches:
    """A queue of finished micro-batches."""

    def __init__(self) -> None:
        self._done: SimpleQueue[Batch] = SimpleQueue()

    def __call__(self, batch: Batch) -> None:
        self._done.put(batch)

    def ready(self, seconds: float) -> Iterator[Batch]:
        """The finished batches; waits for the first of them, at most so long."""
        try:
            yield self._done.get(timeout=seconds)
            while True:
                yield self._done.get_nowait()
        except Empty:
            return

    def until(self, events: int, stream: Stream) -> Iterator[Batch]:
        """The batches that answer the next `events` events; a stream that fails meanwhile raises its error."""
        while events > 0:
            for batch in self.ready(0.5):
                events -= batch.events
                yield batch
            if events > 0 and not stream.is_active:
                stream.wait(1)
                raise TidingsError("the stream ended before all events were answered")
