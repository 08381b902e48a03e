"""The public JSON of a notification: in the API, in server-sent events and in webhooks.

It is JSON that every reader accepts: no NaN, no lone surrogates, bounded nesting, and a bounded size of an
event's attributes. Members are added over time, never renamed.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, TypedDict
from urllib.parse import quote

from tidings.feeds.write.channel import moment, printable
from tidings.kinds.joins.payload_once import once
from tidings.kinds.joins.schema.table import Table
from tidings.model.event import Event
from tidings.model.notification import RowChange
from tidings.service.delivery.markup import one_line
from tidings.service.delivery.presentation import describe, plain_text
from tidings.service.model import NotificationKind, StoredNotification
from tidings.service.settings import Settings

__all__ = [
    "ChangeJson",
    "EventJson",
    "NotificationJson",
    "NotificationTexts",
    "event_to_json",
    "moment",
    "notification_to_json",
    "notification_url",
    "with_payload_once",
]

_ROOM = 64 << 10  # characters of attributes, about
_DEPTH = 32
_SUMMARY = 300
_PLAIN = re.compile("[A-Za-z0-9-]*")  # nothing to quote
_TEXTS = 64  # events whose JSON is kept


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


class NotificationTexts:
    """The public JSON of notifications as text. The JSON of an event is made once for all its notifications that come at
    about the same time. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._events: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._lock = threading.Lock()
        self._moment = (0.0, moment(0.0))

    def text(self, notification: StoredNotification) -> str:
        event = notification.event
        if event is None or notification.bindings or notification.changes or notification.message is not None:
            return _dumps(notification_to_json(notification, self._settings))
        # Nearly all are of this form. A dict of them, made and written, took three times as long.
        if notification.at != self._moment[0]:
            self._moment = notification.at, moment(notification.at)
        return (
            f'{{"id":{_quoted(printable(notification.id))},"number":{notification.number},'
            f'"subscription":{_quoted(printable(notification.subscription))},"kind":"{notification.kind.value}",'
            f'"time":"{self._moment[1]}","url":{_quoted(notification_url(notification, self._settings))},'
            f'"event":{self._event(event)},"bindings":{{}},"changes":[],"part":{_dumps(notification.part)},'
            f'"sequence":{_dumps(notification.sequence)},"message":null}}'
        )

    def _event(self, event: Event) -> str:
        key = (event.source, event.id)
        with self._lock:
            found = self._events.get(key)
        if found is None:
            found = _dumps(event_to_json(event))
            with self._lock:
                self._events[key] = found
                if len(self._events) > _TEXTS:
                    self._events.popitem(last=False)
        return found


def _dumps(value: Any) -> str:
    return "null" if value is None else json.dumps(value, separators=(",", ":"))


_quoted = json.encoder.encode_basestring_ascii


def with_payload_once(notification: StoredNotification, tables: Mapping[str, Table]) -> StoredNotification:
    """A notification without the payload columns that its subscriber has (`payload="once"`). Rows are in its changes alone:
    the event that changed them has none."""
    if not notification.changes or any(one["table"] not in tables for one in notification.changes):
        return notification
    given = [RowChange(one["table"], one["change"], one["row"]) for one in notification.changes]
    event = notification.event
    if event is not None and event.attributes.keys() & {"row", "before"}:
        rest = {name: value for name, value in event.attributes.items() if name not in ("row", "before")}
        event = replace(event, attributes=rest)
    changes = given if notification.kind is NotificationKind.SNAPSHOT else once(given, tables)
    return replace(notification, event=event, changes=tuple(map(asdict, changes)))


def notification_url(notification: StoredNotification, settings: Settings) -> str:
    """The address of the page that shows a notification."""
    subscription, id = notification.subscription, notification.id
    if not _PLAIN.fullmatch(subscription + id):
        subscription, id = quote(subscription, safe=""), quote(id, safe="")
    return f"{settings.address}/subscriptions/{subscription}#{id}"


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
