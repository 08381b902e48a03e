"""Counts what the service does, for Prometheus, and holds the rates of the last minutes and hours, for the page.

Counters start at 0 with the process. States (subscriptions, the driver, the log) are read when the metrics are
collected, never stored. Requests are counted by the template of their route, so that no id or secret becomes a
label.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from tidings.service.ingest.log_writer import Backlog
from tidings.service.model import BatchRecord
from tidings.service.telemetry.channel_metrics import ChannelMetrics
from tidings.service.telemetry.link_metrics import LinkMetrics
from tidings.service.telemetry.rates import Rates
from tidings.service.telemetry.websub_metrics import WebSubMetrics
from tidings.service.web.middleware import App, Message, Receive, Scope, Send
from tidings.storage.part_visits import PartVisits, no_visits, total

if TYPE_CHECKING:
    from tidings.service.matching.supervisor import DriverState

DRIVER_STATES = ("starting", "running", "failed", "stopped")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_TO_MAILBOX = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0)
_REQUEST = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_OF_PARTS = {
    "forwards": "Events that visited the part of a divided index",
    "false_positives": "Those that match nothing there",
    "matches": "Notifications of the part",
    "opened": "How often a process has opened the part",
}


class Metrics:
    """The metrics of one service, with a Prometheus registry of its own."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self.rates = Rates(clock=clock)
        self._events = self._counter("events_accepted", "Events that are in the log")
        self._duplicates = self._counter("events_duplicate", "Events that were in the log already")
        self._rejected = self._counter("events_rejected", "Events that could not be read")
        self._notifications = self._counter("notifications", "Notifications that are in the mailbox")
        self._batches = self._counter("batches", "Micro-batches that are in the mailbox")
        self._rebuilds = self._counter("index_rebuilds", "Rebuilds of an index that was lost or damaged")
        self._batch = Histogram(
            "tidings_batch_seconds", "From the beginning of a micro-batch to its end", registry=self.registry
        )
        self._latency = Histogram(
            "tidings_publish_to_mailbox_seconds",
            "From the acceptance of an event until its notifications are in the mailbox",
            buckets=_TO_MAILBOX,
            registry=self.registry,
        )
        self.links = LinkMetrics(self.registry)
        self.websub = WebSubMetrics(self.registry)
        self.channels = ChannelMetrics(self.registry)
        self._attempts = Counter(
            "tidings_webhook_attempts",
            "Deliveries to webhooks that were tried",
            ["outcome"],
            registry=self.registry,
        )
        self._requests = Counter(
            "tidings_http_requests", "Requests", ["method", "route", "status"], registry=self.registry
        )
        self._request = Histogram(
            "tidings_http_request_seconds",
            "From a request to the end of its answer; of a stream, to its beginning",
            ["method", "route"],
            buckets=_REQUEST,
            registry=self.registry,
        )
        self._visits, self._parts = PartVisits(), lambda: 0
        self._visiting = threading.Lock()
        self.registry.register(_PartCollector(self))
        self.listeners = Gauge(
            "tidings_sse_listeners", "Streams of server-sent events that are open", registry=self.registry
        )

    def _counter(self, name: str, about: str) -> Counter:
        return Counter(f"tidings_{name}", about, registry=self.registry)

    def accepted(self, events: int, *, duplicates: int = 0) -> None:
        self._events.inc(events)
        self._duplicates.inc(duplicates)
        self.rates.add(events=events)

    def rejected(self, events: int) -> None:
        self._rejected.inc(events)

    def batch(self, record: BatchRecord) -> None:
        """Counts a micro-batch that is in the mailbox."""
        self._batches.inc()
        self._batch.observe(max(0.0, record.ended - record.began))
        self._notifications.inc(record.notifications)
        self.rates.add(notifications=record.notifications)

    def visited(self, visits: PartVisits) -> None:
        """Counts what parts of a divided index were visited for."""
        with self._visiting:
            self._visits = total([self._visits, visits])

    @property
    def visits(self) -> PartVisits:
        """Those of all parts that the index has, 0 before any visit, and of those that it had."""
        return total([self._visits, no_visits(_value_or_none(self._parts) or 0)])

    def index_rebuilt(self) -> None:
        """Counts a rebuild of an index that was lost or damaged."""
        self._rebuilds.inc()

    def latency(self, seconds: float) -> None:
        """Records the seconds from the acceptance of an event, or of a request, to the mailbox."""
        self._latency.observe(seconds)
        self.rates.add(latency=seconds)

    def attempt(self, outcome: str) -> None:
        """Counts an attempt to call a webhook: "delivered", "failed", "gone"."""
        self._attempts.labels(outcome).inc()

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        method = method if method in _METHODS else "other"
        self._requests.labels(method, route, str(status)).inc()
        self._request.labels(method, route).observe(seconds)

    def watch(
        self,
        *,
        subscriptions: Callable[[], Mapping[Any, int]] | None = None,
        driver: Callable[[], DriverState] | None = None,
        lag: Callable[[], Backlog] | None = None,
        log_bytes: Callable[[], int] | None = None,
        parts: Callable[[], int] = lambda: 0,
    ) -> None:
        """Registers what is read at each collection: counts by state, the driver's state, how far the stream is behind,
        the size of the log, the number of parts that the index is divided into."""
        self._parts = parts
        self.registry.register(_StateCollector(subscriptions, driver, lag, log_bytes))

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.registry)


class _StateCollector(Collector):
    def __init__(
        self,
        subscriptions: Callable[[], Mapping[Any, int]] | None,
        driver: Callable[[], DriverState] | None,
        lag: Callable[[], Backlog] | None,
        log_bytes: Callable[[], int] | None,
    ) -> None:
        self._subscriptions = subscriptions
        self._driver = driver
        self._lag = lag
        self._log_bytes = log_bytes

    def describe(self) -> Iterable[Metric]:
        return ()  # registering must not read the stores

    def collect(self) -> Iterable[Metric]:
        # An unreachable store loses its own numbers, not the others.
        if self._subscriptions is not None:
            family = GaugeMetricFamily("tidings_subscriptions", "Subscriptions by state", labels=["state"])
            for state, count in (_value_or_none(self._subscriptions) or {}).items():
                family.add_metric([str(state)], count)
            yield family
        if self._driver is not None:
            family = GaugeMetricFamily("tidings_driver_state", "1 for the driver's state", labels=["state"])
            now = self._driver()
            for state in DRIVER_STATES:
                family.add_metric([state], float(state == now.status))
            yield family
            yield CounterMetricFamily(
                "tidings_driver_restarts", "Starts of the driver after the first", value=now.restarts
            )
        if self._lag is not None:
            events, seconds = _value_or_none(self._lag) or (float("nan"), float("nan"))
            yield GaugeMetricFamily(
                "tidings_waiting_events", "Events that are accepted and not matched yet", value=events
            )
            yield GaugeMetricFamily(
                "tidings_lag_seconds", "How long the oldest of them has waited", value=seconds
            )
        if self._log_bytes is not None:
            size = _value_or_none(self._log_bytes)
            yield GaugeMetricFamily(
                "tidings_log_bytes", "Size of the event log", value=float("nan") if size is None else size
            )


class _PartCollector(Collector):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        visits = self._metrics.visits
        for name, about in _OF_PARTS.items() if visits.parts else ():
            family = CounterMetricFamily(f"tidings_part_{name}", about, labels=["part"])
            for part, count in enumerate(visits[name]):
                family.add_metric([str(part)], count)
            yield family


def _value_or_none(what: Callable[[], Any]) -> Any:
    try:
        return what()
    except Exception:
        return None


class RequestMetrics:
    """An ASGI middleware that counts requests and measures their time."""

    def __init__(self, app: App, metrics: Metrics, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._app = app
        self._metrics = metrics
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = self._clock()
        status = 500

        async def forward(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, forward)
        finally:
            self._metrics.request(scope["method"], route_of(scope), status, self._clock() - began)


def route_of(scope: Scope) -> str:
    """The template of the route of a request: "/api/subscriptions/{id}"; "static" for a mounted folder, and "none"
    where no route was found, so that a scanner's paths are counted as one."""
    path = getattr(scope.get("route"), "path", None)
    if isinstance(path, str):
        return path
    endpoint = scope.get("endpoint")
    if endpoint is None:
        return "none"
    # A mount leaves its prefix; a plain route of Starlette has no parameters here, so that its path is its template.
    mount = scope.get("root_path", "").removeprefix(scope.get("app_root_path", ""))
    return mount or ("none" if scope.get("path_params") else str(scope.get("path", "")))
