"""Every route that the application has, found in the application itself: one that is added later is found too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidings.service.service import Service
from tidings.service.web.app import create_app

PARAMETERS = ("id", "key", "notification", "name", "word", "format", "channel", "subscription", "secret")


def filled(path: str, otherwise: str = "x", **known: str) -> str:
    """The path with its parameters filled in."""
    return path.format_map({**dict.fromkeys(PARAMETERS, otherwise), **known})


def routes_of(service: Service) -> list[tuple[str, str]]:
    """(method, path), sorted; HEAD only where there is no GET."""
    found = {pair for route in create_app(service).routes for pair in _of(route)}
    return sorted(pair for pair in found if pair[0] != "HEAD" or ("GET", pair[1]) not in found)


def _of(route: Any) -> Iterator[tuple[str, str]]:
    inner = getattr(route, "original_router", None)
    if inner is not None:
        for one in inner.routes:
            yield from _of(one)
    elif getattr(route, "methods", None):
        for method in route.methods:
            yield method, route.path
    else:
        yield "GET", f"{route.path}/page.js"  # a mounted folder
