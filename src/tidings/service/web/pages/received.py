"""/notifications: search in what was received, stars and what is undecided, over all subscriptions of the visitor; and
the forms that mark notifications as read or with a star.
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from tidings.service.web.api.cursors import Number, read_number
from tidings.service.web.api.received import WATCHED, Filter, Searched, set_star
from tidings.service.web.api.subscriptions import Id
from tidings.service.web.pages.login import own_address
from tidings.service.web.pages.news import listing
from tidings.service.web.pages.rendering import render, sent_to
from tidings.service.web.pages.visitor import Form, Visiting, text_of

pages = APIRouter()

PAGE = 25


@pages.get("/notifications")
def show(
    request: Request,
    visiting: Visiting,
    q: Searched = "",
    starred: bool = False,
    undecided: bool = False,
    before: Number = None,
) -> Response:
    titles = visiting.service.lifecycle.titles(visiting.principal, limit=WATCHED)
    wanted = Filter(" ".join(q.replace("\0", " ").split()), starred, undecided)
    data = {**listing(visiting, titles, wanted, before=before, lines=PAGE), **wanted._asdict()}
    return render(request, "received.html", data, visitor=visiting.principal, before=before)


@pages.post("/notifications/read")
async def mark_all_read(visiting: Visiting, form: Form) -> Response:
    def mark() -> None:
        mine = visiting.service.lifecycle.titles(visiting.principal, limit=WATCHED)
        number = read_number(text_of(form, "number")) or 0
        visiting.service.marks.move(visiting.principal.token, dict.fromkeys(mine, number))

    await run_in_threadpool(mark)
    return sent_to(own_address(text_of(form, "back")))


@pages.post("/subscriptions/{id}/read")
async def mark_read(visiting: Visiting, id: Id, form: Form) -> Response:
    def mark() -> None:
        visiting.service.lifecycle.find(visiting.principal, id)
        visiting.service.marks.move(visiting.principal.token, {id: read_number(text_of(form, "number")) or 0})

    await run_in_threadpool(mark)
    return sent_to(f"/subscriptions/{id}")


@pages.post("/subscriptions/{id}/notifications/{notification}/star")
async def star(visiting: Visiting, id: Id, notification: str, form: Form) -> Response:
    starred = text_of(form, "starred") == "yes"
    await run_in_threadpool(set_star, visiting, id, notification, starred)
    return sent_to(own_address(text_of(form, "back")))
