"""Renders data as an HTML page for people, or as JSON for programs. Templates escape everything; only the results of
`safe_html` and our own drawings are inserted as markup.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

import tidings
from tidings.service.delivery.markup import safe_html
from tidings.service.model import Principal
from tidings.service.web.csrf import (
    FIELD,
    SESSION_COOKIE,
    VISIT_COOKIE,
    csrf_token,
    new_visit,
    set_cookie,
    visit_of,
)
from tidings.service.web.pages import charts, wording
from tidings.service.web.problems import Problem, dumps, for_people

DONE = {
    "renewed": "Renewed.",
    "edited": "Saved. Events that are published from now on are matched with it.",
    "saved": "Saved.",
    "public": "Saved. The feeds are public, at new addresses; the old ones still work. In the list it is under Public while"
    " it is active.",
    "not-public": "Saved. The feeds are not public any more; their secret addresses work.",
    "paused": "Paused. No event is matched until you resume it.",
    "resumed": "Resumed. Events that are published from now on are matched.",
    "cancelled": "Ended. No event is matched any more.",
    "webhook": "The webhook is set.",
    "no-webhook": "The webhook is removed.",
    "channel-added": "The channel is added. It begins with the next notification.",
    "channel-ended": "The channel has ended. Nothing more is sent there.",
    "followed": "The feed is followed. It is fetched now, and then regularly.",
    "unfollowed": "The feed was removed: it is not fetched any more.",
    "interval": "The interval was set.",
    "known": "That feed was followed already.",
    "revoked": "The token is revoked: whoever uses it is refused from now on.",
    "fetching": "The feed is being fetched; load the page again in a moment.",
    "logged-out": "You are logged out.",
}
_WEB = re.compile(r"https?://[^\s<>\"]+", re.IGNORECASE)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tidings.service.web.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "ago": wording.ago,
        "clock_time": wording.clock_time,
        "coloured": wording.coloured,
        "date": wording.date,
        "duration": wording.duration,
        "figure": wording.figure,
        "query": lambda values: urlencode({name: value for name, value in values.items() if value}),
        "safe_html": lambda html: Markup(safe_html(html)),
        "sentence": sentence,
        "spark": charts.spark,
    }
    environment.globals |= {
        "chart": charts.chart,
        "day_bars": charts.day_bars,
        "moments": charts.moments,
        "version": tidings.__version__,
    }
    environment.tests["web_address"] = lambda text: bool(_WEB.fullmatch(text))
    return environment


def sentence(text: str) -> str:
    """The text with a capital letter and a full stop."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


_templates = _environment()


def render(
    request: Request,
    template: str,
    data: Mapping[str, Any],
    *,
    visitor: Principal | None = None,
    status: int = 200,
    problem: str = "",
    **unsaid: Any,
) -> Response:
    """The response for `data`. `unsaid` is for the page alone, such as choices of a form; `problem` is shown above
    it."""
    if not for_people(request) and "json" in request.headers.get("accept", ""):
        shown = {**data, "problem": problem} if problem else data
        return Response(dumps(shown), status, media_type="application/json", headers={"Vary": "Accept"})
    service = request.app.state.service
    visit = visit_of(request) or new_visit()
    token = csrf_token(service.access, visit)
    page = _templates.get_template(template).render(
        {
            "here": request.url.path,
            "back": _address_of(request),
            "visitor": visitor,
            "is_open": service.settings.open,
            "form_token": token,
            "form_field": Markup('<input type="hidden" name="{}" value="{}">').format(FIELD, token),
            "done": DONE.get(request.query_params.get("done", ""), ""),
            "problem": sentence(problem) if problem else "",
            **data,
            **unsaid,
        }
    )
    response = Response(page, status, media_type="text/html; charset=utf-8", headers={"Vary": "Accept"})
    if visit_of(request) is None:
        set_cookie(response, service.settings, VISIT_COOKIE, visit)
    return response


def _address_of(request: Request) -> str:
    """Where a small form, such as that of a star, comes back to."""
    if request.method != "GET":
        return "/"
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def sent_to(address: str, done: str = "") -> RedirectResponse:
    """Redirects to a page after a form; the page confirms the action."""
    return RedirectResponse(f"{address}?{urlencode({'done': done})}" if done else address, 303)


def problem_page(request: Request, problem: Problem) -> Response:
    """An error in the style of the other pages. A visitor who has to log in first is redirected to the login."""
    if problem.status_code == 401 and request.method == "GET" and SESSION_COOKIE not in request.cookies:
        wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/login?next={quote(wanted, safe='')}", 303)
    body = problem.body()
    if "/openapi.json" in body["detail"]:  # which is for programs
        body["detail"] = "No page is at this address; begin with your subscriptions."
    response = render(
        request,
        "error.html",
        {"status": body["status"], "title": body["title"], "detail": body["detail"]},
        status=problem.status_code,
        back=request.url.path if request.method == "GET" and problem.status_code in (429, 503) else "",
    )
    for name, value in (problem.headers or {}).items():
        response.headers[name] = value
    return response
