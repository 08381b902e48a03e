"""Finds which subscriptions an event would match. Nothing is published, and nobody is notified."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import Query, Request
from starlette.concurrency import run_in_threadpool

from tidings.model.event import Event
from tidings.service.ingest.request_bodies import read_events
from tidings.service.model import Role, State
from tidings.service.web.api.callers import Caller, CurrentCaller, problems, router
from tidings.service.web.api.events import ONE_BODY
from tidings.service.web.api.models import EventMatches, MatchedSubscription
from tidings.service.web.problems import Problem

api = router("events")


@api.post(
    "/match",
    operation_id="match",
    summary="Match an event without publishing it",
    responses=problems(400, 403, 413, 415, 422, 503),
    openapi_extra=ONE_BODY,
)
async def match(
    request: Request,
    caller: CurrentCaller,
    limit: Annotated[int, Query(ge=1, le=1_000, description="How many at most.")] = 100,
) -> EventMatches:
    """Of those that the caller may see, with what their variables were bound to. The event is sent as to `publish`, and
    is not published. Subscriptions over tables take no part."""
    caller.need(Role.SUBSCRIBER)
    body = await request.body()
    return await run_in_threadpool(_match, caller, request, body, limit)


def _match(caller: Caller, request: Request, body: bytes, limit: int) -> EventMatches:
    event = read_one(body, request.headers.get("content-type", ""), request.headers, caller)
    found = caller.service.event_preview.match(event, visible=active_of(caller), limit=limit)
    types = caller.service.binding_types
    items = [
        MatchedSubscription(
            subscription=notification.subscription or "",
            kind="undecided" if notification.verdict == "undecided" else "match",
            bindings=dict(types.convert(notification.subscription or "", notification.bindings)),
            message=notification.message,
        )
        for notification in found.notifications
    ]
    return EventMatches(version=found.version, matched=found.matched, items=items)


def read_one(body: bytes, kind: str, headers: Mapping[str, str], caller: Caller) -> Event:
    """The only event of a body."""
    read = read_events(body, kind, headers, caller.principal.name)
    if len(read.events) + len(read.rejected) != 1:
        count = len(read.events) + len(read.rejected)
        raise Problem(422, f"the body has {count:,} events; one at a time is tried")
    if read.rejected:
        raise Problem(400, read.rejected[0][1], kind="event")
    return read.events[0]


def active_of(caller: Caller) -> set[str] | None:
    """The ids of the caller's active subscriptions; None if the caller may see all."""
    if caller.principal.role is Role.ADMIN:
        return None
    return {
        subscription.id
        for portion in caller.service.registry.standing(caller.principal.token)
        for subscription in portion
        if subscription.state is State.ACTIVE
    }
