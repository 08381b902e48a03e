"""/events: what came in lately, and which of the visitor's subscriptions an event would match, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from tidings.errors import TidingsError
from tidings.formats.rdf import NTRIPLES, is_rdf
from tidings.model.event import Event
from tidings.service.delivery.notification_json import moment
from tidings.service.delivery.presentation import describe
from tidings.service.ingest.recent_events import Arrival
from tidings.service.model import Role
from tidings.service.web.api.callers import Caller
from tidings.service.web.api.match import active_of, read_one
from tidings.service.web.pages.cards import reason_card
from tidings.service.web.pages.examples import like_this
from tidings.service.web.pages.rendering import render
from tidings.service.web.pages.sources import KINDS
from tidings.service.web.pages.visitor import Form, Visiting, text_of
from tidings.service.web.problems import Problem, problem_of

pages = APIRouter()

LISTED = 50
EXPLAINED = 20  # matches that are shown with their reasons
_SAMPLE = '{"topic": "finance", "title": "Markets rise", "price": 120}'

Text = Annotated[str, Query(max_length=2_000)]


@pages.get("/events")
def show(
    request: Request,
    visiting: Visiting,
    page: Annotated[int, Query(alias="from", ge=0, le=10_000)] = 0,
    counts: bool = False,
) -> Response:
    """Matches are counted only on request: the index is searched for it, in this process."""
    visiting.need(Role.SUBSCRIBER)
    arrivals = visiting.service.recent_arrivals(visiting.principal)
    shown = arrivals[page : page + LISTED]
    found = None
    if counts:
        events = [arrival.event for arrival in shown]
        found = visiting.service.event_preview.counts(events, visible=active_of(visiting))
    data = {
        "events": [_card(arrival, found) for arrival in shown],
        "next": page + LISTED if len(arrivals) > page + LISTED else None,
        "first": page == 0,
    }
    return render(
        request,
        "events.html",
        data,
        visitor=visiting.principal,
        page=page,
        asked=counts,
        counted=found is not None,
    )


@pages.get("/events/match")
def ask(request: Request, visiting: Visiting, source: Text = "", id: Text = "") -> Response:
    visiting.need(Role.SUBSCRIBER)
    if not (source or id):
        return _show(request, visiting, kind="", body="")
    for arrival in visiting.service.recent_arrivals(visiting.principal):
        if (arrival.event.source, arrival.event.id) == (source, id):
            kind, body = _written(arrival.event)
            return _show(request, visiting, kind=kind, body=body, event=arrival.event)
    problem = "this event is no longer among the last 1,000; paste it, or choose another"
    return _show(request, visiting, kind="", body="", status=404, problem=problem)


@pages.post("/events/match")
async def match(request: Request, visiting: Visiting, form: Form) -> Response:
    visiting.need(Role.SUBSCRIBER)
    kind, body = text_of(form, "kind"), text_of(form, "body")

    def step() -> Response:
        try:
            event = read_one(body.encode(errors="surrogatepass"), kind, {}, visiting)
            return _show(request, visiting, kind=kind, body=body, event=event)
        except (TidingsError, Problem) as error:
            found = problem_of(error)
            status, problem = found.status_code, str(found.detail)
            return _show(request, visiting, kind=kind, body=body, status=status, problem=problem)

    return await run_in_threadpool(step)


def _card(arrival: Arrival, counts: Mapping[tuple[str, str], int] | None) -> dict[str, Any]:
    event = arrival.event
    item = describe(event)
    at = item.published if arrival.at is None else arrival.at
    return {
        "title": item.title,
        "source": event.source,
        "id": event.id,
        "type": event.type,
        "time": None if at is None else moment(at),
        "matches": None if counts is None else counts.get((event.source, event.id), 0),
    }


def _written(event: Event) -> tuple[str, str]:
    """An event as the form takes it: the media type, and the text."""
    if is_rdf(event.datacontenttype) and not event.attributes:
        kind = "text/turtle" if event.datacontenttype == NTRIPLES else event.datacontenttype
        return kind, event.data.decode(errors="replace")
    named = {name: getattr(event, name) for name in ("id", "source", "type", "time")}
    named = {name: value for name, value in named.items() if value}
    return "application/json", json.dumps(
        {**named, **event.attributes}, indent=2, ensure_ascii=False, default=str
    )


def _matches(visiting: Caller, event: Event) -> dict[str, Any]:
    service = visiting.service
    found = service.event_preview.match(event, visible=active_of(visiting), limit=EXPLAINED)
    items = []
    for notification in found.notifications:
        subscription = service.registry.find(notification.subscription or "")
        if subscription is None:
            continue  # it was deleted meanwhile
        explained = service.preview.explain(subscription.text, event)
        items.append(
            {
                "id": subscription.id,
                "title": subscription.title,
                "text": subscription.text,
                "tags": list(subscription.tags),
                "kind": notification.verdict,
                "reason": reason_card(explained, service.class_search),
            }
        )
    title, like = describe(event).title, like_this(event, service.preview)
    return {"event": title, "matched": found.matched, "items": items, "like": like}


def _show(
    request: Request,
    visiting: Caller,
    *,
    kind: str,
    body: str,
    event: Event | None = None,
    status: int = 200,
    problem: str = "",
) -> Response:
    result = None
    if event is not None:
        result = _matches(visiting, event)
    recent = [_card(arrival, None) for arrival in visiting.service.recent_arrivals(visiting.principal)[:8]]
    return render(
        request,
        "match.html",
        {
            "kind": kind,
            "body": body or ("" if problem or event else _SAMPLE),
            "result": result,
            "recent": recent,
        },
        visitor=visiting.principal,
        status=status,
        problem=problem,
        kinds=KINDS,
    )
