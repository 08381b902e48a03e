"""Counts the messages of channels: by kind and outcome, how late they are, and how many wait."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_LATE = (0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 300.0, 1_800.0, 3_600.0, 21_600.0, 86_400.0)


class ChannelMetrics:
    """The metrics of channels, in the registry of all."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._messages = Counter(
            "tidings_channel_messages",
            "Messages to channels that were tried",
            ["kind", "outcome"],
            registry=registry,
        )
        self._late = Histogram(
            "tidings_channel_late_seconds",
            "From when a message was due until it was delivered",
            buckets=_LATE,
            registry=registry,
        )
        self._waiting = Gauge(
            "tidings_channel_waiting_messages",
            "Messages that are not sent yet, those that collect until they are due included",
            registry=registry,
        )

    def message(self, kind: str, outcome: str, late: float) -> None:
        """Counts an attempt: "delivered", "failed", "refused", "gone"; `late` in seconds."""
        self._messages.labels(kind, outcome).inc()
        if outcome == "delivered":
            self._late.observe(max(0.0, late))

    def watch(self, waiting: Callable[[], int]) -> None:
        """Registers what is read at each collection."""

        def value() -> float:
            try:
                return waiting()
            except Exception:  # an unreachable store loses its own number, not the others
                return float("nan")

        self._waiting.set_function(value)
