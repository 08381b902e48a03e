"""Assembles the parts of the service and starts and stops them in order.

No decisions are made here. Stopping reverses the order of starting: first the input, then matching, then
delivery, and the stores last.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, Protocol

from tidings.engine.engine import Engine
from tidings.feeds.addresses import AsyncGuard
from tidings.model.event import Event
from tidings.service.delivery import sse
from tidings.service.delivery.binding_types import BindingTypes
from tidings.service.delivery.channels.channels import Channels
from tidings.service.delivery.channels.composing import Composer, Links
from tidings.service.delivery.channels.sending import Sender
from tidings.service.delivery.channels.transports import Transports
from tidings.service.delivery.feed_documents import FeedDocuments
from tidings.service.delivery.hub import Hub
from tidings.service.delivery.notification_json import (
    NotificationTexts,
    notification_to_json,
    with_payload_once,
)
from tidings.service.delivery.receivers import Receivers
from tidings.service.delivery.stream_reads import StreamReads
from tidings.service.delivery.subscription_feeds import FeedChanges
from tidings.service.delivery.webhooks import Webhooks
from tidings.service.ingest.deduplication import Deduplication
from tidings.service.ingest.feed_poller import FeedPoller
from tidings.service.ingest.log_writer import LogWriter
from tidings.service.ingest.lost_events import notify_of_gap, notify_of_lost_events
from tidings.service.ingest.recent_events import Arrival
from tidings.service.matching.backtests import Backtests, LocalRunner
from tidings.service.matching.driver_backtests import DriverRunner
from tidings.service.matching.event_preview import EventPreview
from tidings.service.matching.index_writer import IndexWriter
from tidings.service.matching.local_stream import LocalStream
from tidings.service.matching.stream_health import StreamHealth
from tidings.service.matching.supervisor import Supervisor
from tidings.service.matching.table_rows import TableRows
from tidings.service.matching.watchdog import Watchdog
from tidings.service.model import SERVICE, Principal, StoredNotification
from tidings.service.open_files import max_streams
from tidings.service.relay.copies import Copies, copies_of
from tidings.service.relay.downstream import Downstream
from tidings.service.relay.edge_stream import EdgeStream
from tidings.service.relay.identity import service_id
from tidings.service.relay.link_filters import LinkFilters
from tidings.service.relay.own_filters import OwnFilters
from tidings.service.relay.parent import Parent
from tidings.service.relay.upstream import Upstream
from tidings.service.relay.upstream_definitions import UpstreamDefinitions
from tidings.service.settings import Settings
from tidings.service.store.channel_messages import ChannelMessages
from tidings.service.store.channels import ChannelStore
from tidings.service.store.database import open_stores
from tidings.service.store.hub_subscriptions import HubSubscriptions
from tidings.service.store.mailbox import Mailbox
from tidings.service.store.reader_marks import ReaderMarks
from tidings.service.store.received import Received
from tidings.service.store.registry import Registry
from tidings.service.store.transactions import StoreUnreachable
from tidings.service.subscriptions import tickets
from tidings.service.subscriptions.access_control import AccessControl
from tidings.service.subscriptions.answerability import Answerability
from tidings.service.subscriptions.class_search import ClassSearch
from tidings.service.subscriptions.completion import Completer, EventVocabulary
from tidings.service.subscriptions.coverage import CoverageSearch
from tidings.service.subscriptions.definitions import Definitions
from tidings.service.subscriptions.expiry import Expiry
from tidings.service.subscriptions.flood import DailyEvents
from tidings.service.subscriptions.lifecycle import Lifecycle
from tidings.service.subscriptions.preview import Preview
from tidings.service.subscriptions.scopes import Scopes
from tidings.service.telemetry.link_metrics import DOWN
from tidings.service.telemetry.metrics import Metrics
from tidings.service.telemetry.stream_metrics import StreamMetrics
from tidings.service.websub.callbacks import Callbacks
from tidings.service.websub.distribution import Distribution
from tidings.service.websub.hub import WebSubHub
from tidings.service.websub.subscriber import Subscriber
from tidings.storage import versions
from tidings.storage.event_log import EventLog

_STORE_SECONDS = 60.0
_STORE_PAUSE = 2.0

logger = logging.getLogger(__name__)


class Part(Protocol):
    """What runs in threads of its own."""

    def start(self) -> None: ...
    def stop(self) -> None: ...


class Service:
    """All parts as attributes. The server calls `begin`, `prepare` in a thread, and then `stop`."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self.settings, self.clock = settings, clock
        self._stack = ExitStack()
        self._changing, self._is_stopped = threading.Lock(), False
        try:
            self._assemble()
        except BaseException:
            self._stack.close()
            raise

    def _assemble(self) -> None:
        settings, clock, later = self.settings, self.clock, self._stack.callback
        settings.data.mkdir(parents=True, exist_ok=True)
        self.metrics = Metrics(clock=clock)
        self._open_stores()
        self._assemble_subscriptions()
        self._assemble_delivery()
        self.expiry = Expiry(
            self.registry,
            self.mailbox,
            self.log,
            self.deduplication,
            self.index_writer,
            settings,
            clock=clock,
        )
        self.log_writer = LogWriter(self.log, self.deduplication, on_accept=self._accepted, clock=clock)
        later(self.log_writer.close)
        if isinstance(self.supervisor, LocalStream):
            self.log_writer.on_append = self.supervisor.wake
        self.backtests = Backtests(
            self.log, self._backtest_runner(), lambda: self.preview.engine, clock=clock
        )
        self.event_preview = EventPreview(settings.data / "index", self.preview, settings.memory)
        self.coverage = CoverageSearch(self.registry, self.preview, self.event_preview)
        later(self.coverage.close)
        self.table_rows = TableRows(
            self.registry, self.mailbox, self.index_writer, self.log_writer, clock=clock
        )
        self.stream_health = StreamHealth(self.supervisor, self.mailbox, self.log, self.log_writer, settings)
        self._assemble_feeds()
        self.stream_metrics = StreamMetrics(
            self.mailbox,
            self.log_writer,
            self.vocabulary,
            self.metrics,
            answered=self.stream_health.answered,
            clock=clock,
        )
        self._assemble_links()
        self._watch_states()

    def _assemble_feeds(self) -> None:
        """Those who fetch followed feeds, and have them pushed."""
        settings, clock = self.settings, self.clock
        self.feed_poller = FeedPoller(
            self.registry,
            self.log_writer,
            settings,
            on_look=lambda results: self.websub_subscriber.wake(),
            pushed=lambda: self.websub_subscriber.pushed(),
        )
        self.websub_subscriber: Subscriber = Subscriber(
            self.registry, settings, self.feed_poller.fetch_now, clock=clock
        )
        self.websub_callbacks = Callbacks(
            self.websub_subscriber,
            self.feed_poller,
            settings.max_body,
            count=self.metrics.websub.pushed,
            clock=clock,
        )
        self.metrics.websub.watch(
            lambda: self.hub_subscriptions.count(clock()), lambda: len(self.websub_subscriber.pushed())
        )

    def _assemble_subscriptions(self) -> None:
        """What subscriptions mean, the index of them, and their changes."""
        settings, clock = self.settings, self.clock
        self.own_filters: OwnFilters | None = None  # of a relay
        self.definitions = Definitions(self.registry, settings, clock=clock)
        self.preview = Preview(
            self.definitions.engine,
            lambda: self.log_writer.recent.events(),
            daily=DailyEvents(self.log, clock).count,
        )
        self.vocabulary = EventVocabulary()
        self._use_definitions(self.definitions.engine)
        self.answerability = Answerability(self.registry, self.mailbox, clock=clock)
        self.index_writer = IndexWriter(
            settings,
            self.registry,
            on_refused=self.answerability.refused,
            on_rebuilt=self.metrics.index_rebuilt,
            on_definitions=self.answerability.retry,
        )
        self.definitions.connect(self.index_writer, self._use_definitions)
        self.access = AccessControl(self.registry, settings, clock, max_streams=max_streams())
        self.scopes = Scopes(self.access, lambda: self.preview.engine)
        self.lifecycle = Lifecycle(
            self.registry, self.mailbox, self.index_writer, self.preview, self.access, settings, clock=clock
        )

    def _assemble_delivery(self) -> None:
        """The stream that answers, and those who deliver its answers."""
        settings = self.settings
        self.hub = Hub(self.mailbox)
        self.binding_types = BindingTypes(lambda: self.preview.engine, self._text_of)
        self.mailbox.on_commit(self.hub.wake)
        self._texts = NotificationTexts(settings)
        self.stream_reads = StreamReads(self.mailbox, self._to_event, sse.PAGE)
        self.short_stream_reads = StreamReads(self.mailbox, self._to_short_event, sse.PAGE)
        self.supervisor = self._stream()
        self.feed_changes = FeedChanges()
        self.webhooks = Webhooks(
            self.registry,
            self.mailbox,
            self.hub,
            Receivers(AsyncGuard(settings.allowed)),
            self.to_json,
            count=self.metrics.attempt,
            clock=self.clock,
        )
        self._assemble_websub_hub()
        self._assemble_channels()

    def _assemble_websub_hub(self) -> None:
        """The hub that pushes the feeds of subscriptions."""
        metrics, receivers = self.metrics.websub, Receivers(AsyncGuard(self.settings.allowed))
        self.feed_documents = FeedDocuments(self.registry, self.mailbox, self.settings)
        store = self.hub_subscriptions = HubSubscriptions(self.registry)
        self.websub_hub = WebSubHub(
            store,
            self.feed_documents,
            self.mailbox,
            self.hub,
            receivers,
            distribution=Distribution(
                store,
                self.feed_documents,
                receivers,
                self.mailbox.last,
                count=metrics.distributed,
                clock=self.clock,
            ),
            count=metrics.verified,
            clock=self.clock,
        )

    def _assemble_channels(self) -> None:
        """Messages of several subscriptions to one address."""
        settings, clock = self.settings, self.clock
        store = ChannelStore(self.mailbox)
        self.channel_messages = ChannelMessages(self.mailbox)
        transports, links = Transports(settings), Links(settings, self.access.sign)
        composer = Composer(self.channel_messages, self.registry, settings, links)
        self.sender = Sender(
            self.channel_messages, composer, transports, self.hub, counts=self.metrics.channels, clock=clock
        )
        self.channels = Channels(
            store,
            self.channel_messages,
            self.registry,
            self.access,
            transports,
            links,
            sender=self.sender,
            clock=clock,
        )

    def _assemble_links(self) -> None:
        """The links to relays below, and of a relay to the services above."""
        settings, clock = self.settings, self.clock
        self.id = service_id(settings.data)
        filters = LinkFilters(
            self.registry,
            self.lifecycle,
            self.access,
            settings,
            clock,
            request_rows=self._request_rows,
            notify=self.mailbox.notify,
        )
        self.downstream = Downstream(
            self.registry,
            self.mailbox,
            self.hub,
            filters,
            count=self.metrics.links.sent,
            tables=lambda: self.definitions.engine.joins.tables,
            clock=clock,
        )
        self.downstream.on_copies = self._copied_below
        self.upstream: Upstream | None = None
        if settings.upstream:
            parents = [Parent(url, settings.upstream_token, self.id) for url in settings.upstream]
            own = self.own_filters = OwnFilters(
                parents, self.registry.active, lambda: self.definitions.engine, self._refused_upstream
            )
            above = self.upstream = Upstream(
                parents,
                own,
                self.log_writer,
                self.metrics.links,
                settings.data,
                name=settings.name,
                address=settings.address,
                on_welcome=UpstreamDefinitions(self.definitions, settings.data).follow,
                on_gap=lambda id, number: notify_of_gap(self.registry, self.mailbox, id, number, clock()),
                clock=clock,
            )
            self.metrics.links.watch(self.upstream.lag)
            self.index_writer.on_appended = own.changed
            self.lifecycle.on_indexed = own.await_upstream
            self._edge.on_missing = own.need_rows
            assert isinstance(self.supervisor, LocalStream)
            self.supervisor.on_recorded = lambda *answered: above.add_copies(copies_of(*answered))

    def _copied_below(self, relay: str, copies: Copies) -> None:
        """A relay below has made notifications, which would have come from above without relays."""
        self.metrics.links.copied(DOWN, relay, copies.notifications, copies.bytes)
        if self.upstream is not None:
            self.upstream.add_copies(copies)

    def _request_rows(self, ids: Sequence[str]) -> None:
        """Has the stream send all rows of some members to the relays that they are of."""
        events = [Event.snapshot(id, source=SERVICE, id=tickets.new_id("e")) for id in ids]
        self.log_writer.accept(events)

    def _refused_upstream(self, reasons: Mapping[str, str]) -> None:
        """Subscriptions that an upstream service refuses cannot be answered here."""
        refuses = "the upstream service refuses it: "  # said once, however many services are above
        refused = [(id, refuses + reason.removeprefix(refuses)) for id, reason in reasons.items()]
        self.answerability.refused(refused, self.registry.last_change())

    def recent_events(self, principal: Principal) -> list[Event]:
        """The latest events, as far as a principal may see them."""
        return list(self.scopes.visible(principal, self.log_writer.recent.events(), lambda event: event))

    def recent_arrivals(self, principal: Principal) -> list[Arrival]:
        """The same, with their sizes and when they came."""
        arrivals = self.log_writer.recent.arrivals()
        return list(self.scopes.visible(principal, arrivals, lambda arrival: arrival.event))

    def path(self) -> list[str]:
        """The ids of this service and of those that it gets events from, up to the centre."""
        return [self.id, *(() if self.upstream is None else self.upstream.path())]

    def _stream(self) -> Supervisor | LocalStream:
        """What matches: a driver of Spark, or this process."""
        settings = self.settings
        if settings.matching == "process":
            operators = self.definitions.engine.operators
            self._edge = EdgeStream(settings.data, self.mailbox.last)
            return LocalStream(
                settings.data,
                self.mailbox,
                operators,
                memory=settings.memory,
                answers=self._edge if settings.upstream else None,
                clock=self.clock,
            )
        watchdog = Watchdog(lambda: self.stream_health.waiting(), settings.stall_after)
        return Supervisor(
            settings, on_record=self.hub.wake, on_visits=self.metrics.visited, watchdog=watchdog
        )

    def _backtest_runner(self) -> LocalRunner | DriverRunner:
        if isinstance(self.supervisor, LocalStream):
            return LocalRunner(self.log)
        return DriverRunner(self.settings.data, self.supervisor)

    def _watch_states(self) -> None:
        self.metrics.watch(
            subscriptions=lambda: self.registry.counts(None),
            driver=lambda: self.supervisor.state,
            lag=self.stream_health.lag,
            log_bytes=lambda: sum(path.stat().st_size for path in self.log.folder.glob("*.log")),
            parts=lambda: versions.number_of_parts(self.index_writer.root),
        )
        self.metrics.channels.watch(self.channel_messages.count)

    def _open_stores(self) -> None:
        data, later = self.settings.data, self._stack.callback
        self.registry, self.mailbox = _opened_stores(self.settings)
        later(self.registry.close)
        later(self.mailbox.close)
        self.received, self.marks = Received(self.mailbox), ReaderMarks(self.mailbox)
        self.log = EventLog(data / "log", clock=self.clock)
        later(self.log.close)
        self.deduplication = Deduplication(data / "arrivals.db", self.log)
        later(self.deduplication.close)

    def start(self, *, driver: bool = True) -> None:
        """Starts every part except the HTTP server. Without a driver, the caller has to match the log."""
        self.begin(driver=driver)
        self.prepare()

    def begin(self, *, driver: bool = True) -> None:
        """Starts what requests need, and Spark, which takes its time."""
        if driver:
            self.supervisor.start()
            self._stack.callback(self.supervisor.stop)
        self._start_parts(self.hub, self.stream_metrics, self.backtests)

    def prepare(self) -> None:
        """Opens or builds the index, and has events matched from then on. Requests may be answered meanwhile."""
        self.index_writer.prepare(self.definitions.engine, self.definitions.hash)
        with self._changing:
            if self._is_stopped:
                return
            self._start_parts(self.index_writer)
            notify_of_lost_events(self.log, self.registry, self.mailbox, self.clock())
            self.supervisor.go()
            self._start_parts(self.expiry, self.feed_poller, self.websub_subscriber, self.websub_callbacks)
            if self.upstream is not None and self.own_filters is not None:
                self._start_parts(self.own_filters, self.upstream)

    def _start_parts(self, *parts: Part) -> None:
        for part in parts:
            part.start()
            self._stack.callback(part.stop)

    @asynccontextmanager
    async def lifespan(self, app: object) -> AsyncIterator[None]:
        """Runs what needs the event loop: webhooks, channels, the hub of feeds, and the signal that ends open streams."""
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        parts = (self.webhooks, self.sender, self.websub_hub)
        delivering = [asyncio.create_task(part.run(self._stopping)) for part in parts]
        try:
            yield
        finally:
            self._end_deliveries()
            await asyncio.gather(*delivering)

    def begin_to_stop(self) -> None:
        """Ends open streams and webhooks; callable from any thread and from signal handlers."""
        self._loop.call_soon_threadsafe(self._end_deliveries)

    def _end_deliveries(self) -> None:
        self._stopping.set()
        self.hub.end_waits()
        self.downstream.end_waits()

    def stop(self) -> None:
        """Stops every part, in the reverse order of starting."""
        with self._changing:
            self._is_stopped = True
        self._stack.close()

    def to_json(self, notification: StoredNotification, *, payload_once: bool = False) -> Mapping[str, Any]:
        """The public JSON of a notification."""
        if payload_once:
            notification = with_payload_once(notification, self.preview.engine.joins.tables)
        return notification_to_json(self._typed(notification), self.settings)

    def _to_short_event(self, notification: StoredNotification) -> bytes:
        """The same as an event of a stream of a subscriber who keeps payloads."""
        return sse.encode(notification, json.dumps(self.to_json(notification, payload_once=True)))

    def _to_event(self, notification: StoredNotification) -> bytes:
        """A notification as an event of a stream."""
        return sse.encode(notification, self._texts.text(self._typed(notification)))

    def _typed(self, notification: StoredNotification) -> StoredNotification:
        typed = self.binding_types.convert(notification.subscription, notification.bindings)
        return notification if typed is notification.bindings else replace(notification, bindings=typed)

    def _text_of(self, id: str) -> str | None:
        found = self.registry.find(id)
        return None if found is None else found.text

    def _use_definitions(self, engine: Engine) -> None:
        """Texts are checked, tried, completed and explained by these from now on."""
        self.preview.engine = engine
        self.class_search = ClassSearch(engine.taxonomy, engine.prefixes)
        self.completer = Completer(engine, self.class_search, self.vocabulary)
        if self.own_filters is not None:
            self.own_filters.reload()

    def _accepted(self, events: int, duplicates: int) -> None:
        self.metrics.accepted(events, duplicates=duplicates)


def _opened_stores(settings: Settings) -> tuple[Registry, Mailbox]:
    """The stores. A database that does not answer is waited for: it may be starting at the same time."""
    deadline = time.monotonic() + _STORE_SECONDS
    while True:
        try:
            return open_stores(settings)
        except StoreUnreachable as error:
            if time.monotonic() > deadline:
                raise
            logger.warning("%s; trying again for a minute", error)
            time.sleep(_STORE_PAUSE)
