"""All parts of the service, put together: what each is given, in which order they begin, and in which they end.

Nothing here decides anything. What comes in ends first, then what matches, then what tells; the stores last.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from typing import Any

from tidings.feeds.addresses import guarded_async_client
from tidings.service.delivery.hub import Hub
from tidings.service.delivery.notification_json import told_to_json
from tidings.service.delivery.webhooks import Webhooks
from tidings.service.ingest.deduplication import Arrivals
from tidings.service.ingest.feed_poller import Following
from tidings.service.ingest.log_writer import Intake
from tidings.service.matching.engine_settings import load_engine
from tidings.service.matching.index_writer import Indexing
from tidings.service.matching.supervisor import Supervisor
from tidings.service.model import Told
from tidings.service.settings import Settings
from tidings.service.store.database import open_stores
from tidings.service.subscriptions.access_control import Access
from tidings.service.subscriptions.class_search import Classes
from tidings.service.subscriptions.completion import Completer, Words
from tidings.service.subscriptions.expiry import Sweeper
from tidings.service.subscriptions.lifecycle import Life
from tidings.service.subscriptions.preview import Questions
from tidings.service.telemetry.metrics import Metrics
from tidings.service.telemetry.stream_metrics import Pulse
from tidings.storage.event_log import EventLog

log = logging.getLogger(__name__)


class Service:
    """The parts, by their names. `start` and `stop` are called once, in this order, by whoever serves it."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self.settings, self.clock = settings, clock
        self._stack = ExitStack()
        try:
            self._put_together()
        except BaseException:
            self._stack.close()
            raise

    def _put_together(self) -> None:
        settings, clock, later = self.settings, self.clock, self._stack.callback
        settings.data.mkdir(parents=True, exist_ok=True)
        self.metrics = Metrics(clock=clock)
        engine = load_engine(settings)
        self.questions = Questions(engine)
        self.classes = Classes(engine.taxonomy, engine.prefixes)
        self.words = Words()
        self.completer = Completer(engine, self.classes, self.words)

        self.registry, self.mailbox = open_stores(settings)
        later(self.registry.close)
        later(self.mailbox.close)
        self.log = EventLog(settings.data / "log")
        later(self.log.close)
        self.arrivals = Arrivals(settings.data / "arrivals.db", self.log)
        later(self.arrivals.close)

        self.indexing = Indexing(settings, self.registry)
        self.access = Access(self.registry, settings, clock)
        self.life = Life(
            self.registry, self.mailbox, self.indexing, self.questions, self.access, settings, clock
        )
        self.supervisor = Supervisor(settings)
        self.hub = Hub(self.mailbox)
        self.webhooks = Webhooks(
            self.registry,
            self.mailbox,
            self.hub,
            guarded_async_client(settings.allowed),
            self.form,
            count=self.metrics.attempt,
            clock=clock,
        )
        self.sweeper = Sweeper(
            self.registry, self.mailbox, self.log, self.arrivals, self.indexing, settings, clock
        )
        self.intake = Intake(self.log, self.arrivals, on_accept=self._accepted, clock=clock)
        later(self.intake.close)
        self.following = Following(self.registry, self.intake, settings)
        self.pulse = Pulse(self.mailbox, self.intake, self.words, self.metrics, clock)
        self.metrics.watch(
            subscriptions=lambda: self.registry.counts(None),
            driver=lambda: self.supervisor.state.status,
            log_bytes=lambda: sum(path.stat().st_size for path in self.log.folder.glob("*.log")),
        )

    def start(self, *, driver: bool = True) -> None:
        """Begins everything but the requests. Without a driver somebody else has to answer the log."""
        if driver:  # Spark takes its time, and needs the index only then
            self.supervisor.start()
            self._stack.callback(self.supervisor.stop)
        for id, message in self.indexing.prepare(self.questions.engine):
            log.warning("a subscription cannot be asked: %s", message, extra={"fields": {"subscription": id}})
        self.supervisor.go()
        for part in (self.indexing, self.hub, self.pulse, self.sweeper, self.following):
            part.start()
            self._stack.callback(part.stop)

    @asynccontextmanager
    async def lifespan(self, app: object) -> AsyncIterator[None]:
        """What lives in the event loop: webhooks, and the word to those that stream."""
        self._loop, self.stopping = asyncio.get_running_loop(), asyncio.Event()
        delivering = asyncio.create_task(self.webhooks.run(self.stopping))
        try:
            yield
        finally:
            self.stopping.set()
            await delivering

    def begin_to_stop(self) -> None:
        """Ends what would go on for ever; from any thread, or a signal's handler."""
        self._loop.call_soon_threadsafe(self.stopping.set)

    def stop(self) -> None:
        """Ends everything, the latest begun first."""
        self._stack.close()

    def form(self, told: Told) -> Mapping[str, Any]:
        """The public form of a notification."""
        return told_to_json(told, self.settings)

    def _accepted(self, events: int, duplicates: int) -> None:
        self.metrics.accepted(events, duplicates=duplicates)
