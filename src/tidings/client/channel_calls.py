"""Describes the calls about channels, as `calls` does with the others."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from tidings.client.calls import Call, Page, get_call, json_call, nothing, page_of
from tidings.client.responses import Channel


def channels(user: str | None, cursor: str | None) -> Call[Page[Channel]]:
    return get_call("/api/channels", page_of(Channel.read), {"user": user, "cursor": cursor, "limit": 200})


def channel(id: str) -> Call[Channel]:
    return get_call(_path(id), Channel.read)


def add(members: Mapping[str, Any]) -> Call[Channel]:
    named = {name: value for name, value in members.items() if value not in (None, False)}
    return json_call("POST", "/api/channels", named, Channel.read)


def change(id: str, changes: Mapping[str, Any], muted_until: datetime | str | None) -> Call[Channel]:
    """Changes what is not None. Muting until "never" ends it."""
    named = {name: value for name, value in changes.items() if value is not None}
    if isinstance(muted_until, datetime):
        named["muted_until"] = muted_until.astimezone().isoformat()
    elif muted_until is not None:
        named["muted_until"] = None if muted_until == "never" else muted_until
    return json_call("PATCH", _path(id), named, Channel.read, repeatable=True)


def join(id: str, subscription: str) -> Call[Channel]:
    return Call("PUT", _member(id, subscription), Channel.read, repeatable=True)


def leave(id: str, subscription: str) -> Call[Channel]:
    return Call("DELETE", _member(id, subscription), Channel.read)


def end(id: str) -> Call[None]:
    return Call("DELETE", _path(id), nothing)


def test(id: str) -> Call[Mapping[str, Any]]:
    return json_call("POST", f"{_path(id)}/test", {}, dict)


def _path(id: str) -> str:
    return f"/api/channels/{quote(id, safe='')}"


def _member(id: str, subscription: str) -> str:
    return f"{_path(id)}/subscriptions/{quote(subscription, safe='')}"
