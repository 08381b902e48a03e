"""/sources: followed feeds with their fetch states, events that could not be read, and publishing by hand."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from tidings.errors import TidingsError
from tidings.service.delivery.notification_json import moment
from tidings.service.ingest.request_bodies import read_events
from tidings.service.model import PUBLISHERS, Role
from tidings.service.settings import DAY
from tidings.service.subscriptions.access_control import Unauthorized
from tidings.service.web.api import sources as api
from tidings.service.web.api.callers import Caller
from tidings.service.web.api.cursors import PlaceCursor
from tidings.service.web.api.models import NewSource, SourceChange
from tidings.service.web.pages.rendering import render, sent_to, sentence
from tidings.service.web.pages.visitor import Form, Visiting, text_of
from tidings.service.web.problems import Problem, problem_of

pages = APIRouter()

KINDS = (
    ("application/json", "JSON: attributes, or a CloudEvent"),
    ("text/turtle", "RDF: Turtle, N-Triples"),
    ("application/rdf+xml", "RDF/XML, RSS 1.0"),
    ("application/ld+json", "JSON-LD"),
    ("application/rss+xml", "RSS or Atom feed"),
    ("application/feed+json", "JSON Feed"),
)
LISTED = 100
_INTERVALS = {  # seconds from one fetch of a feed to the next, for people to choose from
    300.0: "5 minutes",
    900.0: "15 minutes",
    3_600.0: "1 hour",
    6 * 3_600.0: "6 hours",
    DAY: "1 day",
    7 * DAY: "1 week",
}
_SAMPLE = '{"source": "me", "topic": "finance", "title": "Markets rise", "price": 120}'


@pages.get("/sources")
def show(
    request: Request,
    visiting: Visiting,
    after: PlaceCursor = None,
    removed: Annotated[str, Query(max_length=5_000)] = "",
    signed: Annotated[str, Query(max_length=100)] = "",
    part: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    if part == "feeds":
        data = {"sources": _cards(visiting, after or None)[0]}
        return render(
            request,
            "feeds.html",
            data,
            visitor=visiting.principal,
            may_follow=_may_follow(visiting),
            intervals=_INTERVALS,
        )
    # Signed, so that no link of somebody else shows a button that follows their feed.
    good = hmac.compare_digest(signed.encode(), visiting.service.access.sign("removed", removed).encode())
    url, interval, title = removed.split(" ", 2) if good else ("", "", "")
    undo = {"url": url, "interval": interval, "title": title}
    return _show(request, visiting, after=after or None, undo=undo if good else None)


@pages.post("/sources")
async def follow(request: Request, visiting: Visiting, form: Form) -> Response:
    url = text_of(form, "url").strip()

    def step() -> Response:
        answer = Response(status_code=201)  # 200 if it is followed already
        try:
            new = NewSource(url=url, title=text_of(form, "title"), interval=_interval(form))
        except ValidationError as error:
            raise RequestValidationError(error.errors()) from None
        api.follow(visiting, new, answer)
        return sent_to("/sources", "known" if answer.status_code == 200 else "followed")

    return await run_in_threadpool(_done, request, visiting, step, url=url)


@pages.post("/sources/remove")
async def unfollow(request: Request, visiting: Visiting, form: Form) -> Response:
    def step() -> Response:
        url = text_of(form, "url")
        source = visiting.service.registry.source(url)
        api.unfollow(visiting, url)
        if source is None or source.owner != visiting.principal.token:
            return sent_to("/sources", "unfollowed")  # an undo would not give it back to its owner
        removed = f"{url} {source.interval or ''} {source.title}"
        signed = visiting.service.access.sign("removed", removed)
        return sent_to(f"/sources?{urlencode({'removed': removed, 'signed': signed})}")

    return await run_in_threadpool(_done, request, visiting, step)


@pages.post("/sources/interval")
async def set_interval(request: Request, visiting: Visiting, form: Form) -> Response:
    def step() -> Response:
        try:
            change = SourceChange(interval=_interval(form))
        except ValidationError as error:
            raise RequestValidationError(error.errors()) from None
        api.change_source(visiting, text_of(form, "url"), change)
        return sent_to("/sources", "interval")

    return await run_in_threadpool(_done, request, visiting, step)


@pages.post("/sources/fetch")
async def fetch_now(request: Request, visiting: Visiting, form: Form) -> Response:
    def step() -> Response:
        api.fetch_source(visiting, text_of(form, "url"))
        return sent_to("/sources", "fetching")

    return await run_in_threadpool(_done, request, visiting, step)


@pages.post("/sources/opml")
async def follow_all(request: Request, visiting: Visiting, form: Form) -> Response:
    visiting.need(Role.PUBLISHER)
    file = form.get("file")
    body = await file.read() if isinstance(file, UploadFile) else b""

    def step() -> Response:
        found = api.import_opml(visiting, body)
        feeds = "feed was" if found.added == 1 else "feeds were"
        said = f"{found.added:,} {feeds} added, {found.known:,} followed already"
        refused = f"; refused: {'; '.join(f'{one.place}: {one.message}' for one in found.refused[:20])}"
        return _show(request, visiting, done=said + (refused if found.refused else "") + ".")

    return await run_in_threadpool(_done, request, visiting, step)


@pages.post("/publish")
async def publish(request: Request, visiting: Visiting, form: Form) -> Response:
    visiting.need(Role.PUBLISHER)
    kind, body = text_of(form, "kind"), text_of(form, "body")
    return await run_in_threadpool(
        _done, request, visiting, lambda: _publish(request, visiting, kind, body), kind=kind, body=body
    )


def _publish(request: Request, visiting: Caller, kind: str, body: str) -> Response:
    service, visitor = visiting.service, visiting.principal
    read = read_events(body.encode("utf-8", "replace"), kind, {}, visitor.name or "page")
    if read.rejected and not read.events:
        place, message = read.rejected[0]
        raise Problem(400, f"{place}: {message}")
    if visitor.token:
        service.access.count_events(visitor, len(read.events))
    receipt = service.log_writer.accept(read.events)
    said = f"{receipt.accepted:,} event{'s' * (receipt.accepted != 1)} accepted"
    if receipt.duplicates:
        said += f", {receipt.duplicates:,} known already: an event is known by its source and id"
    if read.rejected:
        said += f"; {len(read.rejected):,} could not be read: {read.rejected[0][1]}"
    return _show(request, visiting, done=f"{said}.", kind=kind, body=body)


def _done(request: Request, visiting: Caller, step: Callable[[], Response], **typed: Any) -> Response:
    """The response after a change; if it was refused, the page with the reason above it and the typed values."""
    try:
        return step()
    except Unauthorized:
        raise
    except (TidingsError, Problem, RequestValidationError) as error:
        problem = problem_of(error)
        return _show(request, visiting, status=problem.status_code, problem=str(problem.detail), **typed)


def _show(
    request: Request,
    visiting: Caller,
    *,
    status: int = 200,
    problem: str = "",
    done: str | None = None,
    kind: str = "",
    body: str = _SAMPLE,
    url: str = "",
    after: str | None = None,
    undo: Mapping[str, str] | None = None,
) -> Response:
    service = visiting.service
    sources, next = _cards(visiting, after)
    data: dict[str, Any] = {
        "sources": sources,
        "next": next,
        "faults": [
            {"source": item.source, "event": item.event, "message": item.message, "time": moment(item.at)}
            for item in service.mailbox.faults()
        ],
    }
    unsaid: Mapping[str, Any] = {} if done is None else {"done": done}
    return render(
        request,
        "sources.html",
        data,
        visitor=visiting.principal,
        status=status,
        problem=problem,
        kinds=KINDS,
        kind=kind,
        body=body,
        url=url,
        first=after is None,
        after=after,
        waiting=any(not (one["fetched"] or one["error"] or one["gone"]) for one in sources),
        undo=undo,
        may_follow=_may_follow(visiting),
        intervals=_INTERVALS,
        **unsaid,
    )


def _interval(form: Mapping[str, str | UploadFile]) -> float | None:
    """The seconds of a form; None: those of the service."""
    given = text_of(form, "interval")
    try:
        return float(given) if given else None
    except ValueError:
        raise Problem(422, f"an interval is a number of seconds, not {given[:40]!r}; choose one") from None


def _may_follow(visiting: Caller) -> bool:
    return visiting.principal.role in PUBLISHERS


def _cards(visiting: Caller, after: str | None) -> tuple[list[dict[str, Any]], str | None]:
    """The cards of a page of sources, and the cursor of the next one."""
    page = api.source_page(visiting, after, LISTED)
    return [_card(item.model_dump(mode="json")) for item in page.items], page.next


def _card(source: dict[str, Any]) -> dict[str, Any]:
    """The card of a source, with the title that is shown, and an error that does not repeat the address."""
    error = (source["error"] or "").removeprefix(f"{source['url']}: ")
    shown = source["title"] or source["feed_title"]
    every = source["interval"]
    named = None if every is None else _INTERVALS.get(every, f"{every:,.0f} seconds")
    return {**source, "shown": shown, "error": sentence(error) if error else None, "every": named}
