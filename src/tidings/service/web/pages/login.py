"""/login and /logout: exchanges the secret of a token for a session cookie."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from tidings.service.subscriptions.access_control import AccessError
from tidings.service.web.csrf import SESSION_COOKIE, forget_cookie, set_cookie
from tidings.service.web.pages.rendering import render, sent_to, sentence
from tidings.service.web.pages.visitor import Form, text_of
from tidings.service.web.problems import problem_of

pages = APIRouter()


@pages.get("/login")
def show(request: Request, next: Annotated[str, Query(max_length=2_000)] = "") -> Response:
    return _show(request, next)


@pages.post("/login")
async def log_in(request: Request, form: Form) -> Response:
    service = request.app.state.service
    wanted = text_of(form, "next")
    try:
        session = await run_in_threadpool(service.access.log_in, text_of(form, "token"))
    except AccessError as error:
        return _show(request, wanted, status=problem_of(error).status_code, wrong=sentence(str(error)))
    response = sent_to(own_address(wanted))
    set_cookie(response, service.settings, SESSION_COOKIE, session)
    return response


@pages.post("/logout")
async def log_out(request: Request, form: Form) -> Response:
    access, session = request.app.state.service.access, request.cookies.get(SESSION_COOKIE)
    if session:
        await run_in_threadpool(access.log_out, session)
    response = sent_to("/login", "logged-out")
    forget_cookie(response, request.app.state.service.settings, SESSION_COOKIE)
    return response


def _show(request: Request, next: str, *, status: int = 200, wrong: str = "") -> Response:
    is_open = request.app.state.service.settings.open
    return render(
        request, "login.html", {"open": is_open}, status=status, wrong=wrong, next=own_address(next)
    )


def own_address(address: str) -> str:
    """The address if it is of this service, otherwise the home page: a login never redirects to another site."""
    if not address.startswith("/") or address.startswith(("//", "/\\", "/login")):
        return "/"
    return address if address.isprintable() and "\\" not in address else "/"
