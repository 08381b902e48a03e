"""Operations on followed feeds, one by one or as an OPML file, with their fetch states."""

from __future__ import annotations

import time
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
from tidings.service.subscriptions.lifecycle import check_title
from tidings.service.web.api import responses
from tidings.service.web.api.callers import Caller, CurrentCaller, problems, router
from tidings.service.web.api.models import MAX_URL, Imported, NewSource, Rejected, Source, Sources
from tidings.service.web.problems import Problem, problem_of

api = router("sources")
MOST = 10_000  # feeds in one file


@api.get("/sources", operation_id="list_sources", summary="The feeds that are followed, and how they fare")
def list_sources(caller: CurrentCaller) -> Sources:
    return Sources(items=[_source_model(health) for health in caller.service.feed_poller.health()])


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
    source = _source(caller, new.url, new.title)
    if caller.service.registry.add_source(source):
        caller.service.feed_poller.wake()
    else:
        response.status_code = 200
    for health in caller.service.feed_poller.health():
        if health.source.url == new.url:
            return _source_model(health)
    return Source(url=source.url, title=source.title, added=moment(source.added))


@api.delete(
    "/sources",
    operation_id="unfollow",
    summary="Follow a feed no more",
    status_code=204,
    responses=problems(403, 404),
)
def unfollow(caller: CurrentCaller, url: Annotated[str, Query(min_length=1, max_length=MAX_URL)]) -> None:
    caller.need(Role.PUBLISHER)
    found = next((followed for followed in caller.service.registry.sources() if followed.url == url), None)
    if found is None:
        raise Problem(404, "no feed is followed at this address; look at the list for those that are")
    if caller.principal.role is not Role.ADMIN and found.owner != caller.principal.token:
        raise Problem(403, "this feed is followed for somebody else; ask them, or an admin")
    caller.service.registry.remove_source(url)
    caller.service.feed_poller.wake()


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
    summary="The feeds that are followed, as an OPML file",
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
    for outline in outlines:
        try:
            if caller.service.registry.add_source(_source(caller, outline.url, outline.title[:200])):
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


def _source(caller: Caller, url: str, title: str) -> model.Source:
    check_url(url, caller.service.settings.allowed)
    if "@" in urlsplit(url).netloc:
        raise Problem(422, "the address has a password in it, which everybody here would see; leave it out")
    return model.Source(url, check_title(title), caller.principal.token, time.time())


def _source_model(health: SourceHealth) -> Source:
    source = health.source
    return Source(
        url=source.url,
        title=source.title,
        added=moment(source.added),
        fetched=_moment(health.fetched),
        error=health.error,
        due=_moment(health.due),
        failures=health.failures,
        gone=health.gone,
    )


def _moment(at: float | None) -> str | None:
    return None if at is None else moment(at)
