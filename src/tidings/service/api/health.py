"""How the service fares: for whoever restarts it, for whoever measures it, and for people.

`/health` says that the process answers; `/ready` that what is published now will be matched.
"""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

import tidings
from tidings.feeds.write.channel import iso as moment
from tidings.service.api.callers import Asking, Caller, problems, router
from tidings.service.api.models import Driver, Health, Status
from tidings.service.problems import Problem

api = router("service")
open_api = APIRouter(tags=["service"])


@open_api.head("/health", include_in_schema=False)
@open_api.get("/health", operation_id="get_health", summary="Does it answer?")
async def get_health() -> Health:
    return Health(status="ok")


@open_api.head("/ready", include_in_schema=False)
@open_api.get(
    "/ready", operation_id="get_ready", summary="Is what is published matched?", responses=problems(503)
)
def get_ready(request: Request) -> Health:
    service = request.app.state.service
    if not service.ready:
        state = service.supervisor.state
        raise Problem(
            503,
            f"the stream is {state.status}{': ' + state.message if state.message else ''}; events are accepted and wait",
            headers={"Retry-After": "2"},
        )
    return Health(status="ok")


@open_api.get(
    "/metrics",
    operation_id="get_metrics",
    summary="Metrics in Prometheus' text form",
    response_class=Response,
    responses={
        200: {"description": "The metrics.", "content": {"text/plain": {"schema": {"type": "string"}}}}
    },
)
def get_metrics(request: Request) -> Response:
    metrics = request.app.state.service.metrics
    return Response(metrics.text(), headers={"Content-Type": metrics.media_type})


@api.get("/status", operation_id="get_status", summary="Rates, lag, and the state of the stream")
def get_status(asking: Asking) -> Status:
    return status_of(asking)


def status_of(asking: Caller) -> Status:
    raise NotImplementedError
