"""Publishes events. An answer of 202 says that the events are on disk; known events count as duplicates.

This is the busiest address of the service, so a body goes directly to its reader, without a model and without a
waiting thread, and a request goes past the layers of FastAPI (`PublishFirst`). A small body of JSON is read on the event
loop, since passing it to a thread would take longer than reading it; XML never is.
"""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response, Security
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from tidings.service.ingest.request_bodies import is_quick, read_events
from tidings.service.model import Role
from tidings.service.web.api.callers import bearer, principal_of, problems
from tidings.service.web.api.models import Receipt
from tidings.service.web.problems import Problem, answer, dumps

api = APIRouter(prefix="/api", tags=["events"], dependencies=[Security(bearer)])

MOST_ERRORS = 100

_EVENT = {
    "specversion": "1.0",
    "id": "1",
    "source": "/sensors/7",
    "type": "org.example.reading",
    "data": {"topic": "sport", "price": 12},
}
_EVENT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "A CloudEvent. Members that CloudEvents does not know are attributes.",
    "properties": {
        "specversion": {"type": "string"},
        "id": {"type": "string"},
        "source": {"type": "string"},
        "type": {"type": "string"},
        "time": {"type": "string", "format": "date-time"},
        "datacontenttype": {"type": "string"},
        "data": {},
    },
    "additionalProperties": True,
}
_TEXT: dict[str, Any] = {"schema": {"type": "string"}}
ONE_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "One event, in any form that `publish` takes.",
        "content": {
            "application/cloudevents+json": {"schema": _EVENT_SCHEMA, "example": _EVENT},
            "application/json": {"schema": _EVENT_SCHEMA},
            "text/turtle": _TEXT,
        },
    }
}
_BODY = {
    "requestBody": {
        "required": True,
        "description": "One event, a batch, an RDF document or a feed. In the binary form the envelope is in `ce-` headers.",
        "content": {
            "application/cloudevents+json": {"schema": _EVENT_SCHEMA, "example": _EVENT},
            "application/cloudevents-batch+json": {"schema": {"type": "array", "items": _EVENT_SCHEMA}},
            "application/json": {
                "schema": {"anyOf": [_EVENT_SCHEMA, {"type": "array", "items": _EVENT_SCHEMA}]}
            },
            "application/x-ndjson": _TEXT,
            "text/turtle": _TEXT,
            "application/n-triples": _TEXT,
            "application/rdf+xml": _TEXT,
            "application/ld+json": {"schema": {}},
            "application/rss+xml": _TEXT,
            "application/atom+xml": _TEXT,
            "application/feed+json": {"schema": {}},
        },
    },
    "parameters": [
        {
            "name": "source",
            "in": "query",
            "required": False,
            "description": "The source of events that name none.",
            "schema": {"type": "string"},
        }
    ],
}


@api.post(
    "/events",
    operation_id="publish",
    summary="Publish events",
    status_code=202,
    response_model=Receipt,
    responses=problems(400, 413, 415, 429),
    openapi_extra=_BODY,
)
async def publish(request: Request) -> Response:
    """They are durable when the answer comes. An event is known by its source and id: sent again, it is not
    published again. Events that cannot be read are listed with their place; the others are accepted."""
    service = request.app.state.service
    principal = await principal_of(request)
    service.access.need(principal, Role.PUBLISHER)
    if principal.token:  # before anything is read on its behalf
        await run_in_threadpool(service.access.count_events, principal, 0)
    body = await _body(request.receive)
    kind = request.headers.get("content-type", "")
    source = request.query_params.get("source") or principal.name
    count = 1
    try:
        if is_quick(body, kind):  # threads that read together wait for each other longer
            read = read_events(body, kind, request.headers, source)
        else:
            read = await run_in_threadpool(read_events, body, kind, request.headers, source)
        count = max(1, len(read.events) + len(read.rejected))
    finally:
        if principal.token:  # what cannot be read has cost as much
            await run_in_threadpool(service.access.count_events, principal, count)
    if read.rejected:
        service.metrics.rejected(len(read.rejected))
        if not read.events:
            raise _none_accepted(read.rejected)
    receipt = await asyncio.wrap_future(service.log_writer.accept_later(read.events))
    content = {
        "accepted": receipt.accepted,
        "duplicates": receipt.duplicates,
        "ids": receipt.ids,
        "rejected": [{"place": str(place), "message": message} for place, message in read.rejected],
    }
    return Response(dumps(content), 202, media_type="application/json")


class PublishFirst:
    """Answers posts of events itself, and leaves every other request to the application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/api/events" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        scope["endpoint"] = publish  # what requests are counted by
        request = Request(scope, receive)
        try:
            response = await publish(request)
        except Exception as error:
            response = answer(request, error)
            if response.status_code == 500:
                await response(scope, receive, send)
                raise  # the server writes it to the log
        await response(scope, receive, send)


async def _body(receive: Receive) -> bytes:
    """The whole body; Starlette's takes several times as long for one that has come whole."""
    parts, more = [], True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


def _none_accepted(rejected: list[tuple[Any, str]]) -> Problem:
    place, message = rejected[0]
    more = f" ({len(rejected) - 1:,} more below)" if len(rejected) > 1 else ""
    return Problem(
        400,
        f"no event could be accepted; {place}: {message}{more}",
        kind="event",
        errors=[{"place": str(place), "message": message} for place, message in rejected[:MOST_ERRORS]],
    )
