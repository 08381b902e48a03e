"""/taxonomy: browses the classes, and offers to subscribe to one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tidings.service.web.api.preview import get_taxonomy
from tidings.service.web.pages.rendering import render
from tidings.service.web.pages.visitor import Visiting

pages = APIRouter()


@pages.get("/taxonomy")
def show(
    request: Request,
    visiting: Visiting,
    iri: Annotated[str | None, Query(alias="class", max_length=2_000)] = None,
    search: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    search = " ".join(search.split())
    found = get_taxonomy(visiting, Response(), iri or None, search).model_dump(mode="json")
    about = found["about"]
    data: dict[str, Any] = {
        "size": found["classes"],
        "search": search,
        "about": about,
        "roots": [] if search or about else found["items"],
        "found": found["items"] if search and not about else [],
        "subscription_text": items_of_class(about["written"]) if about else None,
    }
    return render(request, "taxonomy.html", data, visitor=visiting.principal)


def items_of_class(written: str) -> str:
    """The text of a subscription to all feed items of a class."""
    return f"SELECT ?title\nWHERE (?item, rss:title, ?title), (?item, dc:subject, ?about)\n  AND ?about ISA {written}"
