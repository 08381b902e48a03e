"""What a run of a scenario reports for each scheme, or for each network of events."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tidings.dissemination.network.can import SERVER
from tidings.dissemination.simulator.simulation import Totals


@dataclass(frozen=True, slots=True)
class Result:
    """What a change, or an event, costs on average under one scheme; stress is bytes sent."""

    scheme: str
    value: Any
    """Of the setting that is swept."""
    messages: float
    traffic: float
    hops: float
    server_stress: float
    node_stress: float
    """The busiest node beside the server."""
    latency_hops: float
    latency_ms: float
    last_hop: float
    fetches: float


@dataclass(frozen=True, slots=True)
class EventResult(Result):
    """With the forwarding tables of a network of events, after the last one."""

    filters: float
    """In the table of a node, on average over all nodes; those of its own subscribers are not counted."""
    largest: int
    """In the largest table."""
    registrations: float
    """Filters that nodes register or withdraw at others for a subscription that comes or goes."""


def result_of(scheme: str, value: Any, totals: Totals) -> Result:
    others = totals.stress[SERVER + 1 :]
    return Result(
        scheme,
        value,
        totals.each(totals.messages),
        totals.each(totals.traffic),
        totals.each(totals.hops),
        totals.each(float(totals.stress[SERVER])),
        totals.each(float(others.max(initial=0))),
        totals.mean_depth,
        totals.mean_delay,
        totals.each(totals.last_hop),
        totals.each(totals.fetches),
    )


def event_result_of(
    kind: str, value: Any, totals: Totals, filters: list[int], registrations: float
) -> EventResult:
    shared = asdict(result_of(kind, value, totals))
    return EventResult(
        **shared, filters=sum(filters) / len(filters), largest=max(filters), registrations=registrations
    )
