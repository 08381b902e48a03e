"""The page: everything that people do with the service, drawn by the server.

Reading and every form work without a script; scripts add what arrives while one looks, and help in writing questions.
Each page also answers as JSON, with the same data, to whoever asks for that. A form is checked against its visitor's
cookie before anything else; after it the visitor is sent on, so that loading a page again never does a thing twice.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from tidings.service.web.pages import editor, home, login, sources, status, subscription, taxonomy
from tidings.service.web.pages.rendering import problem_page

__all__ = ["problem_page", "register"]


class _Static(StaticFiles):
    """Kept by browsers, but asked about each time: a new version is seen at once, and nobody gets half of it."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


def register(app: FastAPI) -> None:
    """Adds the pages to an app whose state has the service. Errors are drawn by `problem_page`."""
    app.mount("/static", _Static(directory=Path(__file__).with_name("static")), name="static")
    # The editor's address comes before the one of any subscription.
    for part in (home, editor, subscription, sources, taxonomy, status, login):
        app.include_router(part.pages, include_in_schema=False)
