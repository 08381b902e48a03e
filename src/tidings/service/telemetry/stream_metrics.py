"""Updates the metrics from the mailbox and the log.

A micro-batch is counted once, when it appears in the mailbox; latency is measured from the acceptance of an event
to that moment. The same thread passes samples of recent events to the vocabulary that completion uses.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from tidings.errors import TidingsError
from tidings.service.ingest.log_writer import LogWriter
from tidings.service.store.mailbox import Mailbox
from tidings.service.subscriptions.completion import EventVocabulary
from tidings.service.telemetry.metrics import Metrics
from tidings.storage.event_log import Offset

log = logging.getLogger(__name__)

EVERY = 0.5  # seconds
_BATCHES = 100
_LEARNT_FROM = 20  # events at a time


class StreamMetrics:
    """A thread that updates the metrics twice a second."""

    def __init__(
        self,
        mailbox: Mailbox,
        log_writer: LogWriter,
        vocabulary: EventVocabulary,
        metrics: Metrics,
        *,
        answered: Callable[[], Offset],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._mailbox, self._log_writer, self._vocabulary, self._metrics = (
            mailbox,
            log_writer,
            vocabulary,
            metrics,
        )
        self._answered, self._clock = answered, clock
        self._seen: dict[str, int] = {}  # query -> its last batch that was counted
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stream-metrics", daemon=True)

    def start(self) -> None:
        """Starts the thread; batches that are already in the mailbox are not counted."""
        self._vocabulary.observe(self._log_writer.recent.events())
        for batch in self._mailbox.batches(_BATCHES):
            self._seen[batch.query] = max(batch.batch, self._seen.get(batch.query, -1))
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def _run(self) -> None:
        newest = ""
        while not self._stopping.wait(EVERY):
            try:
                self.update()
                events = self._log_writer.recent.events()[:_LEARNT_FROM]
                if events and events[0].id != newest:
                    newest = events[0].id
                    self._vocabulary.observe(events)
            except (TidingsError, OSError):  # an unreachable store is logged by the parts that need it
                log.debug("the metrics of the stream could not be updated", exc_info=True)
            except Exception:
                log.exception("the metrics of the stream could not be updated")

    def update(self) -> None:
        """Counts the batches that are new in the mailbox, and the latencies of their events."""
        batches = self._mailbox.batches(_BATCHES)
        answered = self._answered()
        for batch in reversed(batches):
            if batch.batch > self._seen.get(batch.query, -1):
                self._seen[batch.query] = batch.batch
                self._metrics.batch(batch)
                self._latencies(min(Offset(batch.segment, batch.byte), answered), batch.ended)
        # A query may have answered without a micro-batch, where no table changed.
        self._latencies(answered, self._clock())

    def _latencies(self, reached: Offset, at: float) -> None:
        for seconds in self._log_writer.take_latencies(reached, at):
            self._metrics.latency(seconds)
