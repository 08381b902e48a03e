"""Counts what WebSub does: requests to the hub, feeds that it pushes, and feeds that other hubs push to this service."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter


class WebSubMetrics:
    """Counters by outcome."""

    def __init__(self, registry: CollectorRegistry) -> None:
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

    def verified(self, outcome: str) -> None:
        self._verifications.labels(outcome).inc()

    def distributed(self, outcome: str) -> None:
        self._distributions.labels(outcome).inc()

    def pushed(self, outcome: str) -> None:
        self._pushes.labels(outcome).inc()
