"""Describes the calls of the service without sending them: the request, and how to read the answer.

A call that may be repeated without harm is `repeatable`; publishing is, because an event is identified by its
source and id. The pauses between retries are computed here too.
"""

from __future__ import annotations

import base64
import json
import random
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar
from urllib.parse import quote

from tidings.client.responses import (
    BacktestState,
    BulkItem,
    Channel,
    Checked,
    Definition,
    Explanation,
    Matches,
    Notification,
    Receipt,
    ServiceError,
    Source,
    Status,
    Subscription,
    Trial,
)
from tidings.errors import EventError, SubscriptionError

if TYPE_CHECKING:
    from tidings.kinds.joins.schema.table import Table
    from tidings.kinds.networks.network import Network
    from tidings.model.event import Event

T = TypeVar("T")
Validity = float | timedelta | Literal["never"] | None
Published = "Event | Mapping[str, Any] | str | bytes | Iterable[Event | Mapping[str, Any]]"

BATCH_EVENTS, BATCH_BYTES = 500, 2 << 20
TRIES = 5
REOPENED = 60  # tries to open a stream that was open: minutes, in which a service is started again
LONGEST_PAUSE = 30.0
BACKTEST_PAUSE = 0.25  # seconds between two looks at how far a backtest is
MEDIA_TYPES = {  # of the short names; those of RDF are the ones that formats/rdf.py reads
    "nt": "application/n-triples",
    "ntriples": "application/n-triples",
    "turtle": "text/turtle",
    "ttl": "text/turtle",
    "rdfxml": "application/rdf+xml",
    "rdf": "application/rdf+xml",
    "owl": "application/rdf+xml",
    "xml": "application/rdf+xml",
    "jsonld": "application/ld+json",
    "nq": "application/n-quads",
    "nquads": "application/n-quads",
    "trig": "application/trig",
    "n3": "text/n3",
    "rss": "application/rss+xml",
    "atom": "application/atom+xml",
    "jsonfeed": "application/feed+json",
    "json": "application/json",
    "ndjson": "application/x-ndjson",
    "cloudevent": "application/cloudevents+json",
}
_ENVELOPE = (
    "specversion",
    "id",
    "source",
    "type",
    "time",
    "datacontenttype",
    "data",
    "data_base64",
    "dataschema",
)


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request. `read` converts the JSON of the answer."""

    method: str
    path: str
    read: Callable[[Any], T]
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    repeatable: bool = False
    is_lines: bool = False  # the answer has a JSON object on each line, and `read` gets a list of them


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    items: list[T]
    next: str | None


def pause(attempt: int, retry_after: float | None) -> float:
    """Seconds until the next try: as the service says, or growing exponentially with a random part."""
    if retry_after is not None:
        return min(retry_after, LONGEST_PAUSE) + random.uniform(0, 0.1)
    return min(0.1 * 2**attempt, LONGEST_PAUSE) * random.uniform(0.5, 1.5)


def reopening(failures: int, opened: bool, error: ServiceError) -> float | None:
    """Seconds until a stream is opened again; None if the client gives up."""
    if not may_pass(error) or failures > (REOPENED if opened else TRIES):
        return None
    return pause(min(failures, TRIES), error.retry_after)


def may_pass(error: ServiceError) -> bool:
    """Whether the same call may succeed later."""
    return error.status in (None, 429, 502, 503, 504)


def id_of(given: Subscription | Channel | str) -> str:
    return given if isinstance(given, str) else given.id


# Subscriptions


def subscribe(text: str, valid_for: Validity, members: Mapping[str, Any]) -> Call[Subscription]:
    """Tags are sent only if there are some: an older service refuses members that it does not know."""
    named = {name: value for name, value in members.items() if value not in (None, [])}
    asked = {"text": text, **named, **_validity(valid_for)}
    return json_call("POST", "/api/subscriptions", asked, Subscription.read)


def edit(id: str, changes: Mapping[str, Any], revision: int | None, ticket: str | None) -> Call[Subscription]:
    """Changes what is not None."""
    valid_for = _validity(changes.get("valid_for"))
    named = {name: value for name, value in changes.items() if value is not None} | valid_for
    call = json_call("PATCH", _path(id), named, Subscription.read, ticket=ticket)
    return call if revision is None else replace(call, headers={**call.headers, "If-Match": f'"{revision}"'})


def subscribe_many(subscriptions: Iterable[str | Mapping[str, Any]]) -> Iterator[Call[list[BulkItem]]]:
    """One call for each batch."""
    first = 0
    for batch in _batches(map(_new_subscription, subscriptions)):
        body = b"[" + b",".join(batch) + b"]"
        headers = {"Content-Type": "application/json"}
        read = partial(_bulk_items, first)
        yield Call("POST", "/api/subscriptions/bulk", read, headers=headers, content=body)
        first += len(batch)


def _new_subscription(given: str | Mapping[str, Any]) -> bytes:
    new: dict[str, Any] = {"text": given} if isinstance(given, str) else dict(given)
    if isinstance(new.get("valid_for"), timedelta):
        new |= _validity(new["valid_for"])
    try:
        return json.dumps(new).encode()
    except (TypeError, ValueError) as error:
        raise SubscriptionError(
            f"a subscription is a text, or a dict with text, title, valid_for, public, webhook and tags: {error}"
        ) from None


def _bulk_items(first: int, answer: Any) -> list[BulkItem]:
    items = (BulkItem.read(item) for item in answer["items"])
    return [replace(item, place=f"item {number}") for number, item in enumerate(items, first + 1)]


def export() -> Call[list[dict[str, Any]]]:
    return Call("GET", "/api/subscriptions.ndjson", list, repeatable=True, is_lines=True)


def subscriptions(
    state: str | None, search: str, tag: str, user: str | None, cursor: str | None
) -> Call[Page[Subscription]]:
    params = {"state": state, "search": search or None, "tag": tag or None, "user": user}
    return get_call(
        "/api/subscriptions", page_of(Subscription.read), {**params, "cursor": cursor, "limit": 200}
    )


def subscription(id: str) -> Call[Subscription]:
    return get_call(_path(id), Subscription.read)


def renew(id: str, valid_for: Validity, ticket: str | None) -> Call[Subscription]:
    return json_call("POST", f"{_path(id)}/renew", _validity(valid_for), Subscription.read, ticket=ticket)


def change(id: str, word: Literal["pause", "resume"], ticket: str | None) -> Call[Subscription]:
    return json_call("POST", f"{_path(id)}/{word}", {}, Subscription.read, ticket=ticket, repeatable=True)


def cancel(id: str, ticket: str | None) -> Call[Subscription]:
    return Call("DELETE", _path(id), Subscription.read, headers=_ticket(ticket))


def set_webhook(id: str, url: str, ticket: str | None) -> Call[str]:
    return json_call(
        "PUT", f"{_path(id)}/webhook", {"url": url}, lambda answer: str(answer["secret"]), ticket=ticket
    )


def remove_webhook(id: str, ticket: str | None) -> Call[None]:
    return Call("DELETE", f"{_path(id)}/webhook", nothing, headers=_ticket(ticket), repeatable=True)


# Notifications


def notifications(id: str, after: int | None, limit: int, cursor: str | None) -> Call[Page[Notification]]:
    params = {"after": after if cursor is None else None, "limit": limit, "cursor": cursor}
    return get_call(f"{_path(id)}/notifications", page_of(Notification.read), params)


def explain(notification: Notification) -> Call[Explanation]:
    id = quote(notification.id, safe="")
    return get_call(f"{_path(notification.subscription)}/notifications/{id}/why", Explanation.read)


def stream(ids: list[str] | None, last: int | None, payload: str = "always") -> Call[None]:
    """The request of a stream, which `stream.Parser` reads."""
    once = {} if payload == "always" else {"payload": payload}
    headers = {"Accept": "text/event-stream"}
    if last is not None:
        headers["Last-Event-ID"] = str(last)
    if ids is not None and len(ids) == 1:
        return Call("GET", f"{_path(ids[0])}/stream", nothing, once, headers, repeatable=True)
    params = once if ids is None else {"subscription": ids, **once}
    return Call("GET", "/api/stream", nothing, params, headers, repeatable=True)


# Events


def publish(events: Any, format: str | None, source: str) -> Iterator[Call[Receipt]]:
    """One call for each batch: events and dicts are split, a document is sent unchanged."""
    params = {"source": source} if source else {}
    if isinstance(events, str | bytes):
        if format is None:
            raise EventError(
                f"a text needs its format; give one of {', '.join(MEDIA_TYPES)}, or a media type"
            )
        body = events.encode(errors="surrogatepass") if isinstance(events, str) else events
        kind = MEDIA_TYPES.get(format.lower(), format)
        if "/" not in kind:
            raise EventError(
                f"there is no format {format!r}; give one of {', '.join(MEDIA_TYPES)}, or a media type"
            )
        yield _publish(body, kind, params)
        return
    if isinstance(events, Mapping) or not isinstance(events, Iterable):
        events = [events]
    for batch in _batches(map(_line, events)):
        yield _publish(b"[" + b",".join(batch) + b"]", "application/json", params)


def _publish(body: bytes, kind: str, params: Mapping[str, Any]) -> Call[Receipt]:
    return Call("POST", "/api/events", Receipt.read, params, {"Content-Type": kind}, body, repeatable=True)


def _batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for line in lines:
        if batch and (len(batch) >= BATCH_EVENTS or size + len(line) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line)
    if batch:
        yield batch


def _line(event: Any) -> bytes:
    given = event if isinstance(event, Mapping) else to_cloudevent(event)
    try:
        return json.dumps(given, default=str, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise EventError(f"the event cannot be written as JSON: {error}; give plain values") from None


def to_cloudevent(event: Event) -> dict[str, Any]:
    """The JSON form of CloudEvents."""
    for name in ("source", "attributes", "data"):
        if not hasattr(event, name):
            raise EventError(f"an event is an Event or a dict, not {type(event).__name__}")
    id = uuid.uuid4().hex if _is_unnamed_change(event) else event.id
    envelope: dict[str, Any] = {"specversion": "1.0", "id": id, "source": event.source, "type": event.type}
    if event.time is not None:
        envelope["time"] = event.time
    if event.datacontenttype:
        envelope["datacontenttype"] = event.datacontenttype
    hidden = [name for name in event.attributes if name in _ENVELOPE]
    if event.data:
        if hidden:
            raise EventError(f"the attribute {hidden[0]!r} has the name of the envelope's; name it otherwise")
        envelope["data_base64"] = base64.b64encode(event.data).decode()
    elif hidden:
        return {**envelope, "data": dict(event.attributes)}
    return {**envelope, **event.attributes}


def _is_unnamed_change(event: Event) -> bool:
    """Whether it is a change of a row, or a request for a snapshot, without an id: a row that is inserted, deleted
    and inserted again is three changes, though two of them have the same content."""
    from tidings.model.event import content_id

    row = event.row() if event.type.startswith("tidings.") else None
    return row is not None and event.id == content_id(row["datacontenttype"], row["data"], row["attributes"])


def match(event: Any, format: str | None, source: str) -> Call[Matches]:
    """The event is sent as by `publish`, alone."""
    if not isinstance(event, str | bytes | Mapping):
        event = to_cloudevent(event)
    (call,) = publish(event, format, source)
    return replace(call, path="/api/match", read=Matches.read)  # type: ignore[arg-type, return-value]


# Tables


def tables() -> Call[list[Table]]:
    return get_call("/api/tables", lambda answer: [_table(item) for item in answer["items"]])


def _table(item: Mapping[str, Any]) -> Table:
    from tidings.kinds.joins.schema.table import Table

    return Table(item["name"], item["columns"], item["key"], item["payload"])


def rows(table: str, cursor: str | None) -> Call[Page[dict[str, Any]]]:
    path = f"/api/tables/{quote(table, safe='')}/rows"
    return get_call(path, page_of(dict), {"cursor": cursor, "limit": 200})


def snapshot(id: str, ticket: str | None) -> Call[str]:
    return json_call("POST", f"{_path(id)}/snapshot", {}, lambda answer: str(answer["event"]), ticket=ticket)


# Texts of subscriptions, sources, the service


def check(text: str) -> Call[Checked]:
    return json_call("POST", "/api/check", {"text": text}, Checked.read, repeatable=True)


def try_(text: str) -> Call[Trial]:
    return json_call("POST", "/api/try", {"text": text}, Trial.read, repeatable=True)


def begin_backtest(text: str, days: int, schedule: Mapping[str, Any] | None) -> Call[BacktestState]:
    asked = {"text": text, "days": days, **({} if schedule is None else {"schedule": dict(schedule)})}
    return json_call("POST", "/api/backtests", asked, BacktestState.read)


def backtest(id: str) -> Call[BacktestState]:
    return get_call(f"/api/backtests/{quote(id, safe='')}", BacktestState.read)


def cancel_backtest(id: str) -> Call[BacktestState]:
    return Call("DELETE", f"/api/backtests/{quote(id, safe='')}", BacktestState.read, repeatable=True)


def follow(url: str, title: str, interval: float | None) -> Call[Source]:
    own = {} if interval is None else {"interval": interval}
    return json_call(
        "POST", "/api/sources", {"url": url, "title": title, **own}, Source.read, repeatable=True
    )


def change_source(url: str, title: str | None, interval: float | Literal["default"] | None) -> Call[Source]:
    changes: dict[str, Any] = {} if title is None else {"title": title}
    if interval is not None:
        changes["interval"] = None if interval == "default" else interval
    call = json_call("PATCH", "/api/sources", changes, Source.read, repeatable=True)
    return replace(call, params={"url": url})


def follow_opml(document: str | bytes) -> Call[Mapping[str, Any]]:
    body = document.encode() if isinstance(document, str) else document
    return Call(
        "POST",
        "/api/sources/opml",
        dict,
        headers={"Content-Type": "text/x-opml"},
        content=body,
        repeatable=True,
    )


def unfollow(url: str) -> Call[None]:
    return Call("DELETE", "/api/sources", nothing, {"url": url})


def sources(cursor: str | None) -> Call[Page[Source]]:
    return get_call("/api/sources", page_of(Source.read), {"cursor": cursor, "limit": 200})


# Definitions


def definitions() -> Call[list[Definition]]:
    return get_call("/api/definitions", lambda answer: [Definition.read(item) for item in answer["items"]])


def set_taxonomy(document: str | bytes, format: str, replaces: int | None) -> Call[Definition]:
    body = document.encode() if isinstance(document, str) else document
    headers = {"Content-Type": MEDIA_TYPES.get(format, format), **_if_match(replaces)}
    return Call("PUT", "/api/taxonomy", Definition.read, headers=headers, content=body)


def set_prefixes(prefixes: Mapping[str, str], replaces: int | None) -> Call[Definition]:
    return _defining("PUT", "/api/prefixes", dict(prefixes), replaces)


def set_network(name: str, network: Network | Mapping[str, Any], replaces: int | None) -> Call[Definition]:
    rows = network if isinstance(network, Mapping) else network.rows()
    return _defining("PUT", f"/api/networks/{quote(name, safe='')}", rows, replaces)


def change_network(
    name: str, changes: Iterable[tuple[str, Iterable[Any]]], replaces: int | None
) -> Call[Definition]:
    asked = [{"action": action, "arguments": list(arguments)} for action, arguments in changes]
    return _defining("PATCH", f"/api/networks/{quote(name, safe='')}", {"changes": asked}, replaces)


def _defining(method: str, path: str, asked: Mapping[str, Any], replaces: int | None) -> Call[Definition]:
    headers = {"Content-Type": "application/json", **_if_match(replaces)}
    return Call(method, path, Definition.read, headers=headers, content=json.dumps(asked).encode())


def _if_match(replaces: int | None) -> dict[str, str]:
    return {} if replaces is None else {"If-Match": f'"{replaces}"'}


def status() -> Call[Status]:
    return get_call("/api/status", Status.read)


def get_call(path: str, read: Callable[[Any], T], params: Mapping[str, Any] | None = None) -> Call[T]:
    given = {name: value for name, value in (params or {}).items() if value is not None}
    return Call("GET", path, read, given, repeatable=True)


def json_call(
    method: str,
    path: str,
    asked: Mapping[str, Any],
    read: Callable[[Any], T],
    *,
    ticket: str | None = None,
    repeatable: bool = False,
) -> Call[T]:
    headers = {"Content-Type": "application/json", **_ticket(ticket)}
    return Call(
        method, path, read, headers=headers, content=json.dumps(asked).encode(), repeatable=repeatable
    )


def _ticket(ticket: str | None) -> dict[str, str]:
    return {"Tidings-Ticket": ticket} if ticket else {}


def _validity(valid_for: Validity) -> dict[str, Any]:
    if valid_for is None:
        return {}
    return {"valid_for": valid_for.total_seconds() if isinstance(valid_for, timedelta) else valid_for}


def page_of(read: Callable[[Any], T]) -> Callable[[Any], Page[T]]:
    return lambda answer: Page([read(item) for item in answer["items"]], answer.get("next"))


def _path(id: str) -> str:
    return f"/api/subscriptions/{quote(id, safe='')}"


def nothing(answer: Any) -> None:
    return None
