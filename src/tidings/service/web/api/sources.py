"""Operations on followed feeds, one by one or as an OPML file, with their fetch states."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Query, Request, Response
from starlette.concurrency import run_in_threadpool

from tidings.errors import TidingsError
from tidings.feeds.addresses import check_url
from tidings.feeds.opml import Outline, read_opml, write_opml
from tidings.feeds.write.channel import moment
from tidings.service import model
from tidings.service.ingest.feed_poller import SourceHealth
from tidings.service.model import Role
from tidings.service.store.transactions import StoreError
from tidings.service.subscriptions.access_control import OverQuota
from tidings.service.subscriptions.lifecycle import check_title
from tidings.service.web.api import responses
from tidings.service.web.api.callers import Caller, CurrentCaller, problems, router
from tidings.service.web.api.cursors import Limit, PlaceCursor, link, place_cursor, read_place_cursor
from tidings.service.web.api.models import (
    MAX_URL,
    Imported,
    NewSource,
    Rejected,
    Source,
    SourceChange,
    SourcePage,
)
from tidings.service.web.problems import Problem, problem_of
from tidings.service.websub.subscriber import PushHealth

api = router("sources")
MOST = 10_000  # feeds in one file


@api.get("/sources", operation_id="list_sources", summary="List the followed feeds with their fetch states")
def list_sources(
    caller: CurrentCaller, response: Response, cursor: PlaceCursor = None, limit: Limit = 50
) -> SourcePage:
    """Oldest first."""
    page = source_page(caller, cursor, limit)
    response.headers.update(link(caller.service.settings, "/api/sources", page.next, {"limit": limit}))
    return page


def source_page(caller: Caller, cursor: str | None, limit: int) -> SourcePage:
    after = None if cursor is None else read_place_cursor(cursor)
    found = caller.service.registry.sources(after, limit + 1)
    page, last = found[:limit], found[limit - 1] if len(found) > limit else None
    return SourcePage(
        items=_source_models(caller, page),
        next=None if last is None else place_cursor(last.added, last.url),
    )


@api.post(
    "/sources",
    operation_id="follow",
    summary="Follow a feed",
    status_code=201,
    responses={200: {"description": "It is followed already.", "model": Source}, **problems(403, 422)},
)
def follow(caller: CurrentCaller, new: NewSource, response: Response) -> Source:
    """Its items are events from now on. Addresses inside a network are refused unless they are allowed."""
    caller.need(Role.PUBLISHER)
    service, source = caller.service, _source(caller, new.url, new.title, new.interval)
    known = service.registry.source(source.url)
    if known is None and service.access.sources_left(caller.principal) == 0:
        raise _over_quota(caller)
    if service.registry.add_source(source):
        service.feed_poller.wake()
    else:
        response.status_code = 200
    return _source_models(caller, [known or source])[0]


@api.patch(
    "/sources",
    operation_id="change_source",
    summary="Change the title or the interval of a followed feed",
    responses=problems(403, 404, 422),
)
def change_source(
    caller: CurrentCaller,
    url: Annotated[str, Query(min_length=1, max_length=MAX_URL)],
    change: SourceChange,
) -> Source:
    """A shorter interval counts from the last fetch, a longer one from the next."""
    caller.need(Role.PUBLISHER)
    found, named = _own(caller, url), change.model_dump(include=change.model_fields_set)
    if "title" in named:
        named["title"] = check_title(named["title"])
    changed = replace(found, **named)
    if not caller.service.registry.change_source(changed):
        raise _not_followed()  # it was removed meanwhile
    caller.service.feed_poller.wake()
    return _source_models(caller, [changed])[0]


@api.delete(
    "/sources",
    operation_id="unfollow",
    summary="Stop following a feed",
    status_code=204,
    responses=problems(403, 404),
)
def unfollow(caller: CurrentCaller, url: Annotated[str, Query(min_length=1, max_length=MAX_URL)]) -> None:
    caller.need(Role.PUBLISHER)
    _own(caller, url)
    caller.service.registry.remove_source(url)
    caller.service.feed_poller.wake()
    caller.service.websub_subscriber.wake()


@api.post(
    "/sources/fetch",
    operation_id="fetch_source",
    summary="Fetch a feed now",
    status_code=202,
    responses=problems(403, 404, 429),
)
def fetch_source(
    caller: CurrentCaller, url: Annotated[str, Query(min_length=1, max_length=MAX_URL)]
) -> Source:
    """It is fetched in the background, at most twice a minute: `fetched` or `error` of the source change then."""
    caller.need(Role.PUBLISHER)
    source = _followed(caller, url)
    caller.service.access.count_fetch(url)
    caller.service.feed_poller.fetch_now(url)
    return _source_models(caller, [source])[0]


@api.post(
    "/sources/opml",
    operation_id="follow_opml",
    summary="Follow all feeds of an OPML file",
    responses=problems(400, 403, 413),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {kind: {"schema": {"type": "string"}} for kind in ("text/x-opml", "application/xml")},
        }
    },
)
async def follow_opml(request: Request, caller: CurrentCaller) -> Imported:
    caller.need(Role.PUBLISHER)
    body = await request.body()
    return await run_in_threadpool(import_opml, caller, body)


@api.get(
    "/sources.opml",
    operation_id="export_opml",
    summary="Export the followed feeds as an OPML file",
    response_class=Response,
    responses={200: {"description": "OPML 2.0", "content": {"text/x-opml": {"schema": {"type": "string"}}}}},
)
def export_opml(caller: CurrentCaller) -> Response:
    outlines = [Outline(followed.url, followed.title) for followed in caller.service.registry.sources()]
    return Response(
        write_opml(outlines),
        media_type="text/x-opml",
        headers={"Content-Disposition": 'attachment; filename="tidings.opml"'},
    )


def import_opml(caller: Caller, body: bytes) -> Imported:
    """Every feed of the file that may be followed; the others with the reason why not."""
    outlines = read_opml(body)
    if len(outlines) > MOST:
        raise Problem(422, f"the file has {len(outlines):,} feeds, and one takes at most {MOST:,}; split it")
    added, known = 0, 0
    refused = responses.rejected(outlines.rejected)
    registry, left = caller.service.registry, caller.service.access.sources_left(caller.principal)
    for outline in outlines:
        try:
            source = _source(caller, outline.url, outline.title[:200])
            if added == left and registry.source(source.url) is None:
                raise _over_quota(caller)
            if registry.add_source(source):
                added += 1
            else:
                known += 1
        except StoreError:
            raise
        except (TidingsError, Problem) as error:
            refused.append(Rejected(place=outline.url[:MAX_URL], message=problem_of(error).detail))
    if added:
        caller.service.feed_poller.wake()
    return Imported(added=added, known=known, refused=refused)


def _followed(caller: Caller, url: str) -> model.Source:
    found = caller.service.registry.source(url)
    if found is None:
        raise _not_followed()
    return found


def _not_followed() -> Problem:
    return Problem(404, "no feed is followed at this address; look at the list for those that are")


def _own(caller: Caller, url: str) -> model.Source:
    """A source that the caller may change."""
    found = _followed(caller, url)
    if caller.principal.role is not Role.ADMIN and found.owner != caller.principal.token:
        raise Problem(403, "this feed is followed for somebody else; ask them, or an admin")
    return found


def _over_quota(caller: Caller) -> OverQuota:
    return OverQuota(
        f"the token {caller.principal.name!r} follows as many feeds as it may; leave some, or ask an admin for more"
    )


def _source(caller: Caller, url: str, title: str, interval: float | None = None) -> model.Source:
    check_url(url, caller.service.settings.allowed)
    if "@" in urlsplit(url).netloc:
        raise Problem(422, "the address has a password in it, which everybody here would see; leave it out")
    return model.Source(url, check_title(title), caller.principal.token, time.time(), interval)


def _source_models(caller: Caller, sources: Sequence[model.Source]) -> list[Source]:
    service = caller.service
    pushes = service.websub_subscriber.health([source.url for source in sources])
    return [
        _source_model(health, pushes[health.source.url]) for health in service.feed_poller.health(sources)
    ]


def _source_model(health: SourceHealth, push: PushHealth) -> Source:
    source = health.source
    return Source(
        url=source.url,
        title=source.title,
        feed_title=health.counts.title,
        items=health.counts.taken,
        new_items=health.counts.latest,
        added=moment(source.added),
        fetched=_moment(health.fetched),
        error=health.error,
        due=_moment(health.due),
        failures=health.failures,
        gone=health.gone,
        interval=source.interval,
        hub=push.hub,
        pushed_until=_moment(push.until),
        pushed=_moment(push.pushed),
        push_note=push.note,
    )


def _moment(at: float | None) -> str | None:
    return None if at is None else moment(at)
