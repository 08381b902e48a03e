"""/: the visitor's subscriptions in groups, the latest activity first, and their latest notifications."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tidings.service.model import LIVING, READERS, State, Subscription
from tidings.service.web.api.callers import Caller
from tidings.service.web.api.cursors import read_id_cursor, read_number
from tidings.service.web.api.notifications import MOST_OF_MINE
from tidings.service.web.api.received import EVERYTHING, WATCHED
from tidings.service.web.pages.cards import subscription_cards
from tidings.service.web.pages.figures import figures_of
from tidings.service.web.pages.news import arrivals, listing, undecided_causes
from tidings.service.web.pages.rendering import render, sent_to
from tidings.service.web.pages.visitor import Visiting

pages = APIRouter()

LATEST = 20
_MORE = 100  # rows of a group, when it is asked for by itself
_MOST = 200  # when all of it are asked for: what is unread is counted of each
# In this order, with how many rows of each are shown at first.
_GROUPS: Mapping[str, tuple[str, int]] = {
    "unanswerable": ("Unanswerable", 5),
    "active": ("Active", 15),
    "paused": ("Paused", 5),
    "public": ("Public", 5),
    "ended": ("Ended", 3),
}
_STATES: Mapping[str, Sequence[State]] = {
    "unanswerable": [State.UNANSWERABLE],
    "active": [State.ACTIVE],
    "paused": [State.PAUSED],
    "public": [State.ACTIVE],  # counted with those that are not public, so both are complete or neither
    "ended": [known for known in State if known not in LIVING],
}


@pages.get("/")
def home(
    request: Request,
    visiting: Visiting,
    *,
    state: Annotated[str, Query(max_length=20)] = "",
    search: Annotated[str, Query(max_length=200)] = "",
    tag: Annotated[str, Query(max_length=200)] = "",
    after: Annotated[str, Query(max_length=100)] = "",
    shown: Annotated[int, Query(ge=1, le=_MOST)] = _MORE,
    part: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    service, visitor = visiting.service, visiting.principal
    if visitor.role not in READERS:
        return sent_to("/sources")  # a publisher has no subscriptions
    if part == "strip":
        return render(request, "strip.html", {"figures": figures_of(service)}, visitor=visitor)
    if part == "news":
        number = read_number(after)
        number = service.mailbox.last() if number is None else number
        return render(
            request, "news.html", arrivals(visiting, _titles(visiting), number), visitor=visitor, named=True
        )
    search, tag = " ".join(search.replace("\0", " ").split()), tag.replace("\0", " ")
    chosen = state if state in _GROUPS or state in {known.value for known in State} else ""
    last = (
        service.mailbox.last()
    )  # the lists end there: what comes after it is added by the page's script, once
    titles = _titles(visiting)
    counts = service.lifecycle.counts(visitor)
    data: dict[str, Any] = {
        **_listed(visiting, chosen, (search, tag), (read_id_cursor(after or None), shown), counts),
        "state": chosen,
        "search": search,
        "tag": tag,
        "counts": {"all": sum(counts.values()), **{known.value: counts.get(known, 0) for known in State}},
        "notifications": listing(visiting, titles, EVERYTHING, before=last + 1, lines=LATEST)[
            "notifications"
        ],
        "causes": undecided_causes(visiting, titles, until=last),
        "live": sum(counts.get(known, 0) for known in LIVING) <= MOST_OF_MINE,
        "figures": figures_of(service),
    }
    return render(request, "home.html", data, visitor=visitor, last=last, after=after)


def _titles(visiting: Caller) -> dict[str, str]:
    """The visitor's newest subscriptions, whose notifications stand together."""
    return visiting.service.lifecycle.titles(visiting.principal, limit=WATCHED)


def _listed(
    visiting: Caller,
    chosen: str,
    wanted: tuple[str, str],
    paging: tuple[str | None, int],
    counts: Mapping[State, int],
) -> dict[str, Any]:
    """The groups of subscriptions, with `more` where others are on other pages, and the id after which older ones follow. Only those on one page are in order of
    their activity: to know it of all would take a search for each."""
    service, (search, tag), (after, shown) = visiting.service, wanted, paging
    state = next((known for known in State if known.value == chosen), None)
    found = service.lifecycle.page(
        visiting.principal, state=state, search=search, tag=tag, after=after, limit=WATCHED + 1
    )
    latest = service.received.latest([subscription.id for subscription in found[:WATCHED]])
    further = len(found) > WATCHED
    seen = Counter(subscription.state for subscription in found[:WATCHED])
    by_group: dict[str, list[Subscription]] = {name: [] for name in _GROUPS}
    for subscription in _by_activity(found[:WATCHED], latest):
        by_group[group_of(subscription)].append(subscription)
    groups = []
    for name, (title, first) in _GROUPS.items():
        members = by_group[name] if state is not None or chosen in ("", name) else []
        if members:
            rows = members[: shown if chosen or search or tag else first]
            cards = subscription_cards(rows, service, visiting.principal.token, latest)
            more = (further or after is not None) and any(
                seen[known] < counts[known] for known in _STATES[name]
            )
            groups.append(
                {"name": name, "title": title, "count": len(members), "more": more, "subscriptions": cards}
            )
    return {"groups": groups, "next": found[WATCHED - 1].id if further else None}


def group_of(subscription: Subscription) -> str:
    """The group that a subscription is listed in."""
    if subscription.state not in LIVING:
        return "ended"
    return (
        "public" if subscription.public and subscription.state is State.ACTIVE else subscription.state.value
    )


def _by_activity(found: Sequence[Subscription], latest: Mapping[str, int]) -> list[Subscription]:
    """Those with the latest notification first; those without one follow, the newest first."""
    return sorted(found, key=lambda subscription: -latest.get(subscription.id, 0))
