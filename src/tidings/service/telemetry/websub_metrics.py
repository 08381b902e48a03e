"""Counts what WebSub does: requests to the hub, feeds that it pushes, and feeds that other hubs push to this service."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class WebSubMetrics:
    """Counters by outcome, and how many are subscribed now."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._verifications = Counter(
            "tidings_websub_verifications",
            "Requests to the hub: verified, unverified (the callback did not confirm) or denied",
            ["outcome"],
            registry=registry,
        )
        self._distributions = Counter(
            "tidings_websub_distributions",
            "Feeds that the hub has pushed to callbacks: delivered, failed or gone",
            ["outcome"],
            registry=registry,
        )
        self._pushes = Counter(
            "tidings_websub_pushes",
            "Feeds that other hubs have pushed: taken, unsigned (dropped), unreadable or refused",
            ["outcome"],
            registry=registry,
        )

    def watch(self, subscribers: Callable[[], int], feeds: Callable[[], int]) -> None:
        """Registers what is read at each collection: subscribers of the hub, and followed feeds that hubs push."""
        self._registry.register(_Subscribed(subscribers, feeds))

    def verified(self, outcome: str) -> None:
        self._verifications.labels(outcome).inc()

    def distributed(self, outcome: str) -> None:
        self._distributions.labels(outcome).inc()

    def pushed(self, outcome: str) -> None:
        self._pushes.labels(outcome).inc()


class _Subscribed(Collector):
    def __init__(self, subscribers: Callable[[], int], feeds: Callable[[], int]) -> None:
        self._read = (
            ("tidings_websub_subscribers", "Callbacks that the hub pushes a feed to", subscribers),
            ("tidings_websub_pushed_feeds", "Followed feeds that a hub pushes", feeds),
        )

    def describe(self) -> Iterable[Metric]:
        return ()  # registering must not read the stores

    def collect(self) -> Iterable[Metric]:
        for name, about, read in self._read:
            try:
                yield GaugeMetricFamily(name, about, value=read())
            except Exception:  # an unreachable store loses its own number
                continue
