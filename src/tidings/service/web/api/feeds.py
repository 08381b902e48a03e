"""Serves the feed of a subscription, at an address that is its secret; for a public subscription also at its id.

A reader that has the page already gets 304. The feed names the hub that pushes it. The feed of a cancelled subscription is gone for good (410).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request, Response

from tidings.feeds.write.channel import rfc822
from tidings.service.delivery.feed_documents import Topic
from tidings.service.delivery.subscription_feeds import FORMATS, is_unchanged
from tidings.service.model import State
from tidings.service.web.api.callers import problems
from tidings.service.web.api.cursors import Number
from tidings.service.web.problems import Problem

api = APIRouter(tags=["feeds"])

_FEED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The feed.",
        "content": {kind.partition(";")[0]: {"schema": {"type": "string"}} for kind, _ in FORMATS.values()},
    },
    304: {"description": "It is as it was."},
}


@api.head("/feeds/{key}.{format}", include_in_schema=False)
@api.get(
    "/feeds/{key}.{format}",
    operation_id="get_feed",
    summary="Read a subscription as a feed",
    response_class=Response,
    responses={**_FEED, **problems(404, 410)},
)
def get_feed(
    request: Request,
    key: Annotated[
        str, Path(pattern=r"^[A-Za-z0-9_-]{1,100}$", description="The secret, or the id of a public one.")
    ],
    format: Annotated[
        Literal["rdf", "rss", "atom", "json"], Path(description="RSS 1.0, RSS 2.0, Atom, JSON Feed.")
    ],
    before: Number = None,
) -> Response:
    """Newest first, 50 on a page; the next page is linked as RFC 5005 says. No token is needed."""
    service = request.app.state.service
    subscription, topic = service.feed_documents.found(key), Topic(key, format)
    if subscription is None:
        raise Problem(404, "no feed is at this address; look at the subscription for the one it has")
    if subscription.state is State.CANCELLED:
        raise Problem(410, "the subscription of this feed was cancelled; take it off your list")
    feed = service.feed_documents.page(subscription, topic, before)
    headers = {
        **feed.headers,
        "Cache-Control": "public, no-cache" if subscription.public else "private, no-cache",
    }
    now = service.clock()
    date = service.feed_changes.date(feed.links["self"], feed.etag, now)
    if date <= now:
        headers["Last-Modified"] = rfc822(date)
    if is_unchanged(feed.etag, date, request.headers, now):
        return Response(status_code=304, headers=headers)
    return Response(feed.body, media_type=feed.media_type, headers=headers)
