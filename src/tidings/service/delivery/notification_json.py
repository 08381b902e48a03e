"""The public JSON of a notification: in the API, in server-sent events and in webhooks.

It is JSON that every reader accepts: no NaN, no lone surrogates, bounded nesting, and a bounded size of an
event's attributes. Members are added over time, never renamed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypedDict
from urllib.parse import quote

from tidings.feeds.write.channel import moment, printable
from tidings.model.event import Event
from tidings.service.delivery.markup import one_line
from tidings.service.delivery.presentation import describe, plain_text
from tidings.service.model import StoredNotification
from tidings.service.settings import Settings

__all__ = [
    "ChangeJson",
    "EventJson",
    "NotificationJson",
    "event_to_json",
    "moment",
    "notification_to_json",
    "notification_url",
]

_ROOM = 64 << 10  # characters of attributes, about
_DEPTH = 32
_SUMMARY = 300


class EventJson(TypedDict):
    """The event of a notification. `title` is never empty; `link` is an http or https address."""

    id: str
    source: str
    type: str
    time: str | None
    title: str
    link: str | None
    summary: str
    attributes: dict[str, Any]


class ChangeJson(TypedDict):
    """A row that the subscription gained ("+") or lost ("-")."""

    table: str
    change: str
    row: dict[str, Any]


class NotificationJson(TypedDict):
    """A notification. `number` is what cursors hold; `id` stays the same however often it is delivered; `url` is its
    page."""

    id: str
    number: int
    subscription: str
    kind: str
    time: str
    url: str
    event: EventJson | None
    bindings: dict[str, Any]
    changes: list[ChangeJson]
    part: str | None
    sequence: int | None
    message: str | None


def notification_to_json(notification: StoredNotification, settings: Settings) -> NotificationJson:
    """The public JSON of a notification."""
    return {
        "id": printable(notification.id),
        "number": notification.number,
        "subscription": printable(notification.subscription),
        "kind": notification.kind.value,
        "time": moment(notification.at),
        "url": notification_url(notification, settings),
        "event": None if notification.event is None else event_to_json(notification.event),
        "bindings": {
            printable(str(name)): printable(value) if isinstance(value, str) else _plain(value, [_ROOM], 0)
            for name, value in notification.bindings.items()
        },
        "changes": [_change(change) for change in notification.changes],
        "part": notification.part,
        "sequence": notification.sequence,
        "message": None if notification.message is None else printable(notification.message),
    }


def notification_url(notification: StoredNotification, settings: Settings) -> str:
    """The address of the page that shows a notification."""
    return f"{settings.address}/subscriptions/{quote(notification.subscription, safe='')}#{quote(notification.id, safe='')}"


def event_to_json(event: Event) -> EventJson:
    """The JSON of an event inside a notification."""
    item = describe(event)
    return {
        "id": printable(event.id),
        "source": printable(event.source),
        "type": printable(event.type),
        "time": event.time,
        "title": item.title,
        "link": item.link,
        "summary": plain_text(item.summary_html, _SUMMARY),
        "attributes": _members(event.attributes, [_ROOM], 0),
    }


def _change(change: Mapping[str, Any]) -> ChangeJson:
    # Each row has a room of its own: if one were left out, the subscriber's table would be wrong from then on.
    row = change.get("row")
    return {
        "table": printable(str(change.get("table", ""))),
        "change": "-" if change.get("change") == "-" else "+",
        "row": _members(row, [16 * _ROOM], 0) if isinstance(row, Mapping) else {},
    }


def _members(values: Mapping[str, Any], room: list[int], depth: int) -> dict[str, Any]:
    """The members that fit into the room; one that is too large is left out, and later ones are still tried."""
    kept: dict[str, Any] = {}
    for name, value in values.items():
        before = room[0]
        room[0] -= len(name) + 4
        plain = _plain(value, room, depth + 1)
        if room[0] < 0:
            room[0] = before
            if before < 64:
                break
        else:
            kept[printable(name)] = plain
    return kept


def _plain(value: object, room: list[int], depth: int) -> Any:
    if room[0] < 0:
        return None
    if isinstance(value, str):
        room[0] -= len(value) + 2
        return printable(value) if room[0] >= 0 else None
    room[0] -= 8
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        room[0] -= value.bit_length() // 3
        return value if value.bit_length() < 4_000 else "a large number"
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth > _DEPTH:
        return "…"
    if isinstance(value, Mapping):
        return _members(value, room, depth)
    if isinstance(value, list | tuple | set | frozenset):
        plain = []
        for item in value:
            if room[0] < 0:
                break
            plain.append(_plain(item, room, depth + 1))
        return plain
    return _plain(one_line(str(value), 1_000), room, depth)
