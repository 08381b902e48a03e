"""The web pages, rendered by the server: everything that people do with the service.

Reading and every form work without scripts; scripts add new notifications to an open page and help in writing
subscriptions. Each page also answers as JSON, with the same data. A form is checked against its visitor's cookie
before anything else, and answered with a redirect, so that reloading a page never repeats an action.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from tidings.service.web.pages import (
    edit,
    editor,
    events,
    home,
    login,
    received,
    sources,
    status,
    subscription,
    taxonomy,
)
from tidings.service.web.pages.admin import api_reference, definitions, tokens
from tidings.service.web.pages.channels import holders, owners
from tidings.service.web.pages.rendering import problem_page

__all__ = ["problem_page", "register"]


class _Static(StaticFiles):
    """Static files, cached by browsers but revalidated each time, so that a new version is used at once."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


def register(app: FastAPI) -> None:
    """Adds the pages to an app whose state has the service. Errors are rendered by `problem_page`."""
    app.mount("/static", _Static(directory=Path(__file__).with_name("static")), name="static")
    # The editors' addresses and those of marks come before the one of any subscription, and before the steps of its life; the
    # links out of messages come before what is done with a channel.
    admin = (definitions, tokens, api_reference)
    channels = (holders, owners)
    parts = (
        home,
        editor,
        edit,
        received,
        subscription,
        *channels,
        events,
        sources,
        taxonomy,
        status,
        login,
        *admin,
    )
    for part in parts:
        app.include_router(part.pages, include_in_schema=False)
