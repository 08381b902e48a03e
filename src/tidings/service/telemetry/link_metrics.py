"""Counts what crosses the links between services, by the id of the other end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

UP, DOWN = "up", "down"


class LinkMetrics:
    """Counters of links: those to relays below (`down`), and the one to the service above (`up`)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ["direction", "link"]
        self._messages = Counter(
            "tidings_link_messages", "Events that crossed a link", labels, registry=registry
        )
        self._bytes = Counter(
            "tidings_link_bytes", "Bytes of packets that crossed a link", labels, registry=registry
        )
        self._stripped = Counter(
            "tidings_link_payloads_stripped",
            "Payloads that were left out because the other end has them",
            labels,
            registry=registry,
        )
        self._copies = Counter(
            "tidings_link_copies", "Notifications that relays made of them below", labels, registry=registry
        )
        self._copied = Counter(
            "tidings_link_copied_bytes",
            "Bytes of these notifications if each had crossed the link by itself",
            labels,
            registry=registry,
        )
        self._duplicates = Counter(
            "tidings_link_duplicates", "Events that came again over a link", ["link"], registry=registry
        )
        self._refused = Counter(
            "tidings_link_refused", "What was refused of the other end of a link", ["what"], registry=registry
        )
        self._lag: Callable[[], Mapping[str, float]] = dict
        registry.register(_Lag(self))

    def sent(self, link: str, messages: int, size: int, stripped: int) -> None:
        self._crossed(DOWN, link, messages, size, stripped)

    def received(self, link: str, messages: int, size: int, *, stripped: int, duplicates: int) -> None:
        self._crossed(UP, link, messages, size, stripped)
        if duplicates:
            self._duplicates.labels(link).inc(duplicates)

    def copied(self, direction: str, link: str, count: int, size: int) -> None:
        """Counts what would have crossed a link without relays."""
        self._copies.labels(direction, link).inc(count)
        self._copied.labels(direction, link).inc(size)

    def refused(self, count: int, what: str) -> None:
        """Counts "filter", "packet", "link"."""
        if count:
            self._refused.labels(what).inc(count)

    def watch(self, lag: Callable[[], Mapping[str, float]]) -> None:
        """Registers what is read at each collection: how far this relay is behind each upstream service."""
        self._lag = lag

    def _crossed(self, direction: str, link: str, messages: int, size: int, stripped: int) -> None:
        if messages or size:
            self._messages.labels(direction, link).inc(messages)
            self._bytes.labels(direction, link).inc(size)
            self._stripped.labels(direction, link).inc(stripped)


class _Lag(Collector):
    def __init__(self, metrics: LinkMetrics) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        if lag := self._metrics._lag():
            family = GaugeMetricFamily(
                "tidings_link_lag_seconds",
                "How long ago this relay had everything that upstream has",
                labels=["link"],
            )
            for link, seconds in lag.items():
                family.add_metric([link], seconds)
            yield family
