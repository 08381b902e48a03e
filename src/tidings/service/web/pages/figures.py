"""Formats the current rates and those of the last minutes for the pages."""

from __future__ import annotations

from typing import Any

from tidings.service.service import Service


def figures_of(service: Service) -> dict[str, Any]:
    rates = service.metrics.rates.snapshot()
    state = service.supervisor.state
    return {
        "events_per_second": rates["now"]["events_per_second"],
        "notifications_per_second": rates["now"]["notifications_per_second"],
        "latency": rates["now"]["latency_median"],
        "slowest": rates["now"]["latency_p95"],
        "waiting": service.stream_health.lag().events,
        "driver": {"status": state.status, "message": state.message, "restarts": state.restarts},
        "window": rates["bucket_seconds"] * len(rates["events_per_second"]),
        "series": {
            "events": rates["events_per_second"],
            "notifications": rates["notifications_per_second"],
            "latency": rates["latency_median"],
            "slowest": rates["latency_p95"],
        },
    }
