"""Operations on what was received: search, stars, and how far a subscription was read.

Stars and read positions belong to whoever asks: to the token, or on an open service to everybody together. They change
nothing for deliveries.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, NamedTuple

from fastapi import Query, Response

from tidings.service.delivery.received_search import LONGEST, has_words, search, words_of
from tidings.service.model import StoredNotification, Subscription
from tidings.service.store.received import NOTHING_UNREAD, Page
from tidings.service.subscriptions.access_control import NotFound
from tidings.service.web.api.callers import Caller, CurrentCaller, problems, router
from tidings.service.web.api.cursors import Cursor, Limit, link, number_cursor, read_number_cursor
from tidings.service.web.api.models import NotificationPage, ReadPosition, ReadUpTo
from tidings.service.web.api.subscriptions import Id
from tidings.service.web.problems import Problem, dumps

api = router("notifications")
WATCHED = 1_000  # subscriptions whose notifications are read together, the newest

Searched = Annotated[
    str,
    Query(
        max_length=LONGEST,
        description="Only those that have all these words, in any case: in the event, what was bound, or the rows. A"
        " request looks at some thousand; with `next` it goes on further back, also where nothing was found.",
    ),
]
Starred = Annotated[bool, Query(description="Only those that the caller has given a star.")]


class Filter(NamedTuple):
    """Which notifications are wanted; without any word those that are not undecided."""

    q: str = ""
    starred: bool = False
    undecided: bool = False


EVERYTHING = Filter()


def find(
    caller: Caller, subscriptions: Sequence[str], wanted: Filter, *, before: int | None, limit: int
) -> Page:
    """The notifications of these subscriptions that are wanted, newest first."""
    service, words = caller.service, words_of(wanted.q)
    if wanted.starred:
        only = subscriptions[0] if len(subscriptions) == 1 else None
        page, further = service.marks.starred_page(caller.principal.token, only, before=before, limit=limit)
        seen = [notification for notification in page if _may_see(caller, notification, subscriptions)]
        return Page([notification for notification in seen if has_words(notification, words)], further)
    if wanted.undecided:
        return service.received.undecided(subscriptions, before=before, limit=limit)
    if words:
        return search(service.received, subscriptions, wanted.q, before=before, limit=limit)
    return service.received.page(subscriptions, before=before, limit=limit)


def find_notification(caller: Caller, id: str, notification: str) -> tuple[Subscription, StoredNotification]:
    """A subscription that the caller may see, and one of its notifications."""
    subscription = caller.service.lifecycle.find(caller.principal, id)
    found = None if "\0" in notification else caller.service.mailbox.find(id, notification)
    if found is None:
        raise Problem(
            404,
            f"subscription {id} has no notification {notification[:60]!r}, or it is no longer kept; look at the list"
            " of its notifications",
        )
    return subscription, found


def _may_see(caller: Caller, notification: StoredNotification, known: Sequence[str]) -> bool:
    if notification.subscription in known:
        return True
    with suppress(NotFound):
        caller.service.lifecycle.find(caller.principal, notification.subscription)
        return True
    return False


@api.get(
    "/notifications",
    operation_id="search_notifications",
    summary="List what my subscriptions have received, newest first",
    response_model=NotificationPage,
)
def search_notifications(
    caller: CurrentCaller,
    q: Searched = "",
    starred: Starred = False,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response:
    """Of the newest 1,000 subscriptions, without what is undecided."""
    ids = list(caller.service.lifecycle.titles(caller.principal, limit=WATCHED))
    return listed(caller, "/api/notifications", ids, Filter(q, starred), (cursor, limit))


def listed(
    caller: Caller, path: str, ids: Sequence[str], wanted: Filter, paging: tuple[str | None, int]
) -> Response:
    """A page of notifications, as JSON."""
    cursor, limit = paging
    direction, before = ("b", None) if cursor is None else read_number_cursor(cursor)
    if direction != "b":
        raise Problem(422, "a search goes back from the newest; leave `after` and its cursor out")
    page = find(caller, ids, wanted, before=before, limit=limit) if ids else Page([], None)
    next = None if page.further is None else number_cursor("b", page.further)
    body = {"items": [caller.service.to_json(item) for item in page.notifications], "next": next}
    parameters = {"q": wanted.q, "starred": "true" if wanted.starred else "", "limit": limit}
    headers = link(caller.service.settings, path, next, parameters)
    return Response(dumps(body), media_type="application/json", headers=headers)


@api.get(
    "/subscriptions/{id}/read",
    operation_id="get_read_position",
    summary="Get how far a subscription was read",
    responses=problems(404),
)
def get_read_position(caller: CurrentCaller, id: Id) -> ReadPosition:
    caller.service.lifecycle.find(caller.principal, id)
    return _position(caller, id)


@api.put(
    "/subscriptions/{id}/read",
    operation_id="set_read_position",
    summary="Set how far a subscription was read",
    responses=problems(404),
)
def set_read_position(caller: CurrentCaller, id: Id, read: ReadUpTo) -> ReadPosition:
    """Up to a number. A position never goes back."""
    caller.service.lifecycle.find(caller.principal, id)
    caller.service.marks.move(caller.principal.token, {id: read.number})
    return _position(caller, id)


def _position(caller: Caller, id: str) -> ReadPosition:
    service = caller.service
    positions = service.marks.positions(caller.principal.token, [id])
    unread = service.received.unread(positions).get(id, NOTHING_UNREAD)
    return ReadPosition(number=positions[id], **unread._asdict())


@api.put(
    "/subscriptions/{id}/notifications/{notification}/star",
    operation_id="star_notification",
    summary="Add a star to a notification",
    status_code=204,
    responses=problems(404, 422),
)
def star_notification(caller: CurrentCaller, id: Id, notification: str) -> None:
    """A star does not keep the notification longer."""
    set_star(caller, id, notification, True)


@api.delete(
    "/subscriptions/{id}/notifications/{notification}/star",
    operation_id="unstar_notification",
    summary="Remove the star of a notification",
    status_code=204,
    responses=problems(404),
)
def unstar_notification(caller: CurrentCaller, id: Id, notification: str) -> None:
    set_star(caller, id, notification, False)


def set_star(caller: Caller, id: str, notification: str, starred: bool) -> None:
    """Gives or takes the star of one notification."""
    service, (_, found) = caller.service, find_notification(caller, id, notification)
    if starred:
        service.marks.star(caller.principal.token, found)
    else:
        service.marks.unstar(caller.principal.token, found.number)
