"""Reports the state of the service, for process managers, monitoring and people.

`/health` says that the process answers; `/ready` that events published now are matched now.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

import tidings
from tidings.errors import TidingsError
from tidings.feeds.write.channel import moment
from tidings.service.model import READERS
from tidings.service.relay.upstream import ParentState
from tidings.service.telemetry.metrics import Metrics
from tidings.service.telemetry.rates import Window
from tidings.service.web.api.callers import Caller, CurrentCaller, caller, problems, router
from tidings.service.web.api.models import Driver, Health, Rates, Readiness, Status, UpstreamState
from tidings.service.web.problems import Problem
from tidings.storage import versions

api = router("service")
open_api = APIRouter(tags=["service"])


@open_api.head("/health", include_in_schema=False)
@open_api.get("/health", operation_id="get_health", summary="Check that the service answers")
async def get_health() -> Health:
    return Health(status="ok")


@open_api.head("/ready", include_in_schema=False)
@open_api.get(
    "/ready",
    operation_id="get_ready",
    summary="Check that published events are matched",
    responses=problems(503),
    response_model_exclude_none=True,
)
def get_ready(request: Request) -> Readiness:
    """The stream runs and matches, it is not far behind, and the stores answer. A relay is ready also while its upstream service
    is gone or refuses it, since it serves what it has: `upstream` says so."""
    service = request.app.state.service
    lag = service.stream_health.lag()
    service.registry.last_change()
    if fault := service.stream_health.fault(lag):
        raise Problem(503, fault, headers={"Retry-After": "2"})
    return Readiness(
        status="ok",
        waiting_events=lag.events,
        lag_seconds=round(lag.seconds, 3),
        upstream=None if service.upstream is None else _upstream(service.upstream.states),
    )


def _upstream(parents: Sequence[ParentState]) -> UpstreamState:
    """The best of the upstream services. Everyone may read it, so it names neither addresses nor tokens."""
    states = {parent.status for parent in parents}
    if "connected" in states:
        return UpstreamState(status="connected")
    if "refuses" in states:
        message = (
            "the upstream service refuses this relay, so no events come from it; /status and the log say why"
        )
        return UpstreamState(status="refuses", message=message)
    message = (
        "the upstream service does not answer, so no events come from it now; /status and the log say why"
    )
    return UpstreamState(status="away", message=message)


@open_api.get(
    "/metrics",
    operation_id="get_metrics",
    summary="Get the metrics in the text form of Prometheus",
    response_class=Response,
    responses={
        200: {"description": "The metrics.", "content": {"text/plain": {"schema": {"type": "string"}}}},
        **problems(401),
    },
)
async def get_metrics(request: Request) -> Response:
    """They need a token, of any role, if the service was started so."""
    service = request.app.state.service
    if service.settings.protect_metrics:
        await caller(request)
    return await run_in_threadpool(_metrics, service.metrics)


def _metrics(metrics: Metrics) -> Response:
    return Response(metrics.text(), headers={"Content-Type": metrics.media_type})


@api.get("/status", operation_id="get_status", summary="Get rates, lag and the state of the stream")
def get_status(
    caller: CurrentCaller,
    window: Annotated[Window, Query(description="The time that `rates` cover.")] = "5m",
) -> Status:
    return status_of(caller, window)


def status_of(caller: Caller, window: Window = "5m") -> Status:
    """The status. Subscriptions are counted as far as the caller may see them."""
    service = caller.service
    driver, totals = service.supervisor.state, service.mailbox.totals()
    waiting = service.stream_health.lag()
    fault = service.stream_health.fault(waiting)
    rates = service.metrics.rates.snapshot(window)
    now = rates["now"]
    counts = {} if caller.principal.role not in READERS else service.lifecycle.counts(caller.principal)
    try:
        version = str(versions.current(service.settings.data / "index"))
    except TidingsError:
        version = None
    return Status(
        version=tidings.__version__,
        ready=fault is None,
        reason=fault,
        driver=Driver(
            status=driver.status, message=driver.message, since=moment(driver.since), restarts=driver.restarts
        ),
        subscriptions={state.value: count for state, count in counts.items()},
        events=totals.get("events", 0),
        notifications=totals.get("notifications", 0),
        events_per_second=now["events_per_second"],
        notifications_per_second=now["notifications_per_second"],
        waiting_events=waiting.events,
        lag_seconds=round(waiting.seconds, 3),
        latency_seconds=now["latency_median"],
        latency_p95_seconds=now["latency_p95"],
        rates=Rates.model_validate(rates),
        last_number=service.mailbox.last(),
        index_version=version,
    )
