"""/: the visitor's subscriptions, their latest notifications, and the current rates."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tidings.service.model import LIVING, Role, State
from tidings.service.web.api.callers import Caller
from tidings.service.web.api.cursors import read_id_cursor
from tidings.service.web.api.notifications import MOST_OF_MINE
from tidings.service.web.pages.cards import notification_card, subscription_cards
from tidings.service.web.pages.figures import figures_of
from tidings.service.web.pages.rendering import render, sent_to
from tidings.service.web.pages.visitor import Visiting

pages = APIRouter()

LISTED = 25
LATEST = 20
WATCHED = 1_000  # subscriptions whose notifications stand together


@pages.get("/")
def home(
    request: Request,
    visiting: Visiting,
    *,
    state: Annotated[str, Query(max_length=20)] = "",
    search: Annotated[str, Query(max_length=200)] = "",
    tag: Annotated[str, Query(max_length=200)] = "",
    after: Annotated[str, Query(max_length=100)] = "",
    part: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    service, visitor = visiting.service, visiting.principal
    if visitor.role is Role.PUBLISHER:
        return sent_to("/sources")  # a publisher has no subscriptions
    if part == "strip":
        return render(request, "strip.html", {"figures": figures_of(service)}, visitor=visitor)
    if part == "news":
        number = (
            int(after)
            if after.isascii() and after.isdecimal() and len(after) < 19
            else service.mailbox.last()
        )
        return render(
            request, "news.html", {"notifications": _news(visiting, number)}, visitor=visitor, named=True
        )
    search = " ".join(search.replace("\0", " ").split())
    chosen = next((known for known in State if known.value == state), None)
    last = service.mailbox.last()  # before the page: what comes in between is sent again, not missed
    found = service.lifecycle.page(
        visitor,
        state=chosen,
        search=search,
        tag=tag.replace("\0", " "),
        after=read_id_cursor(after or None),
        limit=LISTED + 1,
    )
    counts = service.lifecycle.counts(visitor)
    data: dict[str, Any] = {
        "subscriptions": subscription_cards(found[:LISTED], service),
        "next": found[LISTED - 1].id if len(found) > LISTED else None,
        "state": chosen.value if chosen else "",
        "search": search,
        "tag": tag,
        "counts": {"all": sum(counts.values()), **{known.value: counts.get(known, 0) for known in State}},
        "notifications": _news(visiting, None),
        "live": sum(counts.get(known, 0) for known in LIVING) <= MOST_OF_MINE,
        "figures": figures_of(service),
    }
    return render(request, "home.html", data, visitor=visitor, last=last)


def _news(visiting: Caller, after: int | None) -> list[dict[str, Any]]:
    """The latest notifications of the visitor's subscriptions, newest first; or those after a number, oldest first."""
    service = visiting.service
    mine = {
        subscription.id: subscription.title
        for subscription in service.lifecycle.page(visiting.principal, limit=WATCHED)
    }
    if not mine:
        return []
    notifications = service.mailbox.page(list(mine), after=after, limit=LATEST)
    return [
        notification_card(notification, service.settings, mine[notification.subscription])
        for notification in notifications
    ]
