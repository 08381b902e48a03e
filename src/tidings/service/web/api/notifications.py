"""Operations on the notifications of subscriptions: pages, one with its explanation, or a stream of server-sent
events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Annotated, Any

from fastapi import Header, Query, Request
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from tidings.kinds.joins.payload_once import Payload
from tidings.service.delivery import sse
from tidings.service.model import LIVING, Principal
from tidings.service.store.transactions import StoreAway
from tidings.service.subscriptions.access_control import AccessControl
from tidings.service.web.api import responses
from tidings.service.web.api.callers import Caller, CurrentCaller, problems, router
from tidings.service.web.api.cursors import Cursor, Limit, Number, link, number_cursor, read_number_cursor
from tidings.service.web.api.models import Explanation, NotificationPage
from tidings.service.web.api.received import Filter, Searched, Starred, find_notification, listed
from tidings.service.web.api.subscriptions import Id
from tidings.service.web.problems import Problem, dumps
from tidings.service.web.streaming import StreamResponse

api = router("notifications")
MOST_STREAMED = 1_000  # subscriptions that are named for one stream
MOST_OF_MINE = 50_000  # subscriptions in a stream of all
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: `notification`, `notice` and `missed`, each with a notification as its data"
        " and its number as its id.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}
LastEventId = Annotated[
    str | None,
    Header(alias="Last-Event-ID", description="The number of the last one that was seen: goes on after it."),
]
SentPayload = Annotated[
    Payload,
    Query(
        description="`once` leaves payload columns out of rows where the subscriber has them: of lost rows, and of rows that"
        " replace one of the same key and payload."
    ),
]


@api.get(
    "/subscriptions/{id}/notifications",
    operation_id="list_notifications",
    summary="List the notifications of a subscription",
    response_model=NotificationPage,
    responses=problems(404),
)
def list_notifications(
    caller: CurrentCaller,
    id: Id,
    *,
    after: Number = None,
    before: Number = None,
    q: Searched = "",
    starred: Starred = False,
    cursor: Cursor = None,
    limit: Limit = 50,
    payload: SentPayload = "always",
) -> Response:
    """Newest first, or with `after` (a number) what came since, oldest first."""
    if sum(cursor_given is not None for cursor_given in (after, before, cursor)) > 1:
        raise Problem(422, "a page begins at one place; give one of `after`, `before` and `cursor`")
    if cursor is not None:
        direction, number = read_number_cursor(cursor)
        after, before = (number, None) if direction == "a" else (None, number)
    service = caller.service
    service.lifecycle.find(caller.principal, id)
    if q or starred:
        given = cursor if after is None else number_cursor("a", after)
        given = given if before is None else number_cursor("b", before)
        path = f"/api/subscriptions/{id}/notifications"
        return listed(caller, path, [id], Filter(q, starred), (given, limit))
    found = service.mailbox.page([id], after=after, before=before, limit=limit + 1)
    page, next = found[:limit], None
    if len(found) > limit:
        next = number_cursor("b" if after is None else "a", page[-1].number)
    is_once = payload == "once"
    body = {"items": [service.to_json(one, payload_once=is_once) for one in page], "next": next}
    asked = {"limit": limit, **({"payload": payload} if is_once else {})}
    headers = link(service.settings, f"/api/subscriptions/{id}/notifications", next, asked)
    return Response(dumps(body), media_type="application/json", headers=headers)


@api.get(
    "/subscriptions/{id}/notifications/{notification}/why",
    operation_id="explain_notification",
    summary="Explain a notification",
    responses=problems(404),
)
def explain_notification(caller: CurrentCaller, id: Id, notification: str) -> Explanation:
    """By the text and the definitions as they are now, and the event as it was."""
    service = caller.service
    subscription, found = find_notification(caller, id, notification)
    if found.event is None:
        raise Problem(404, "this is a notice of the subscription's life; there is no event to explain")
    explained = service.preview.explain(subscription.text, found.event)
    return responses.explanation(explained, service.definitions)


@api.get(
    "/subscriptions/{id}/stream",
    operation_id="stream_subscription",
    summary="Stream the notifications of a subscription",
    response_class=StreamingResponse,
    responses={
        **_EVENTS,
        204: {"description": "The subscription has ended, and all its notifications were sent."},
        **problems(404),
    },
)
async def stream_subscription(
    request: Request,
    caller: CurrentCaller,
    id: Id,
    last_event_id: LastEventId = None,
    payload: SentPayload = "always",
) -> Response:
    """The stream ends when the subscription has ended and all its notifications were sent."""
    if await run_in_threadpool(_is_over, caller, id, last_event_id):
        return Response(status_code=204)  # EventSource does not reconnect after 204
    return _stream(caller, [id], last_event_id, payload)


def _is_over(caller: Caller, id: str, last_event_id: str | None) -> bool:
    """Whether a stream of this subscription will have no notification."""
    mailbox, subscription = caller.service.mailbox, caller.service.lifecycle.find(caller.principal, id)
    if subscription.state in LIVING:
        return False
    seen = sse.first_number(mailbox, last_event_id)
    return isinstance(seen, str) or not mailbox.page([id], after=seen, limit=1)


@api.get(
    "/stream",
    operation_id="stream_subscriptions",
    summary="Stream the notifications of several subscriptions",
    response_class=StreamingResponse,
    responses={
        **_EVENTS,
        204: {"description": "All of them have ended, and all their notifications were sent."},
        **problems(404),
    },
)
async def stream_subscriptions(
    request: Request,
    caller: CurrentCaller,
    subscription: Annotated[
        list[str] | None,
        Query(max_length=MOST_STREAMED, description="Those with these ids; all of mine without."),
    ] = None,
    last_event_id: LastEventId = None,
    payload: SentPayload = "always",
) -> Response:
    ids = subscription or None
    if ids is None:
        await run_in_threadpool(_living_of_mine, caller)  # too many are an error here
    else:
        over = await run_in_threadpool(_are_over, caller, ids, last_event_id)
        if over:
            return Response(status_code=204)
    return _stream(caller, ids, last_event_id, payload)


def _are_over(caller: Caller, ids: list[str], last_event_id: str | None) -> bool:
    """Whether this holds for all of them; each is looked up, so that one that the caller may not see is an error."""
    over = [_is_over(caller, id.replace("\0", " ")[:64], last_event_id) for id in ids]
    return all(over)


def _stream(
    caller: Caller, ids: list[str] | None, last_event_id: str | None, payload: Payload
) -> StreamResponse:
    service = caller.service
    reads = service.short_stream_reads if payload == "once" else service.stream_reads
    service.access.check_streams(caller.principal)

    def subscriptions() -> Mapping[str, bool]:
        if ids is None:
            return dict.fromkeys(_living_of_mine(caller), True)
        found = filter(None, map(service.registry.find, ids))
        return {subscription.id: subscription.state in LIVING for subscription in found}

    async def pieces() -> AsyncGenerator[bytes, None]:
        # A store that is away ends the stream, as does one subscription too many, and the client comes again.
        with (
            suppress(StoreAway, Problem),
            service.metrics.listeners.track_inprogress(),
            service.access.streaming(caller.principal),
        ):
            async for piece in sse.stream(
                service.mailbox,
                service.hub,
                subscriptions,
                reads,
                last_event_id=last_event_id,
                change=lambda: service.registry.subscription_changes,
                endless=ids is None,
            ):
                if not await _is_good(service.access, caller.principal):
                    return  # the token was ended: the stream ends
                yield piece

    return StreamResponse(pieces(), media_type=sse.MEDIA_TYPE, headers=sse.HEADERS)


async def _is_good(access: AccessControl, principal: Principal) -> bool:
    """Whether the caller would still be let in; only a token is looked up in the registry."""
    if principal.token:
        return await asyncio.to_thread(access.is_good, principal)
    return access.is_good(principal)


def _living_of_mine(caller: Caller) -> list[str]:
    found = caller.service.lifecycle.living(caller.principal, limit=MOST_OF_MINE + 1)
    if len(found) > MOST_OF_MINE:
        raise Problem(
            422,
            f"these are more than {MOST_OF_MINE:,} subscriptions, too many for one stream;"
            f" name up to {MOST_STREAMED:,} of them by ?subscription=…&subscription=…",
        )
    return found
