"""Formats the current rates and those of the last minutes or hours for the pages."""

from __future__ import annotations

from typing import Any

from tidings.service.service import Service
from tidings.service.telemetry.rates import Window

WINDOWS: dict[Window, str] = {"5m": "5 minutes", "1h": "1 hour", "24h": "24 hours"}


def figures_of(service: Service, window: Window = "5m") -> dict[str, Any]:
    measured = service.metrics.rates
    rates = measured.snapshot(window)
    state = service.supervisor.state
    start, step = rates["from"], rates["bucket_seconds"]

    def since_start(name: str) -> list[float | None]:
        """The values, with gaps for the time before the service was started, of which nothing is known."""
        return [
            value if start + (place + 1) * step > measured.began else None
            for place, value in enumerate(rates[name])
        ]

    return {
        "events_per_second": rates["now"]["events_per_second"],
        "notifications_per_second": rates["now"]["notifications_per_second"],
        "latency": rates["now"]["latency_median"],
        "slowest": rates["now"]["latency_p95"],
        "waiting": service.stream_health.lag().events,
        "driver": {"status": state.status, "message": state.message, "restarts": state.restarts},
        "from": start,
        "window": step * len(rates["events_per_second"]),
        "series": {
            "events": since_start("events_per_second"),
            "notifications": since_start("notifications_per_second"),
            "latency": rates["latency_median"],
            "slowest": rates["latency_p95"],
        },
    }
