"""Pages by cursor: a page names the cursor of the next one, in the body and as a Link header.

A cursor is opaque to clients: its form may change. It holds a position, not a page number, so that nothing is
repeated or left out when items come or go in between.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query

from tidings.service.settings import Settings
from tidings.service.web.problems import Problem

MOST = 200

Limit = Annotated[int, Query(ge=1, le=MOST, description="How many at most.")]
Cursor = Annotated[
    str | None,
    Query(max_length=100, description="`next` of the page before. Other parameters stay as they were."),
]
PlaceCursor = Annotated[str | None, Query(max_length=4_000, description="`next` of the page before.")]
Number = Annotated[int | None, Query(ge=0, le=2**62)]

_PLACE = re.compile(r"([ab])([0-9]{1,18})")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def read_number(text: str) -> int | None:
    """The number that a text is, if it is one that the store can hold."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def number_cursor(direction: str, number: int) -> str:
    """The cursor after ("a") or before ("b") the notification with this number."""
    return f"{direction}{number}"


def read_number_cursor(cursor: str) -> tuple[str, int]:
    found = _PLACE.fullmatch(cursor)
    if found is None:
        raise _wrong(cursor)
    return found[1], int(found[2])


def read_id_cursor(cursor: str | None) -> str | None:
    if cursor is not None and _ID.fullmatch(cursor) is None:
        raise _wrong(cursor)
    return cursor


def place_cursor(at: float, name: str) -> str:
    """The cursor after what has this time and this name, whether it is still there or not."""
    return urlsafe_b64encode(f"{at!r} {name}".encode()).decode()


def read_place_cursor(cursor: str) -> tuple[float, str]:
    try:
        at, _, name = urlsafe_b64decode(cursor.encode()).decode().partition(" ")
        return float(at), name
    except ValueError:
        raise _wrong(cursor) from None


def link(settings: Settings, path: str, next: str | None, parameters: Mapping[str, object]) -> dict[str, str]:
    """The Link header of the next page, if there is one."""
    if next is None:
        return {}
    kept = {name: value for name, value in parameters.items() if value not in (None, "")}
    return {"Link": f'<{settings.address}{path}?{urlencode({**kept, "cursor": next})}>; rel="next"'}


def _wrong(cursor: str) -> Problem:
    return Problem(
        422, f"the cursor {cursor[:40]!r} is none of ours; take `next` of the page before as it is"
    )
