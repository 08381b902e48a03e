"""Reads events from request bodies: CloudEvents in all forms, plain JSON, RDF and feeds.

The Content-Type selects the reader. Of many events in one body, the readable ones are returned, and the others
are reported with their place ("line 3", "item 2"). A body that cannot be read at all is an `EventError`; no other
exception is raised.

CloudEvents are read more leniently than the specification: an event without an id gets the hash of its content,
one without a type has none, one without a source has the publisher's name. `specversion` may be missing, but must
not be of another major version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import unquote

from tidings.dissemination.live.carriers import is_carrier
from tidings.errors import EventError
from tidings.feeds.read import read_feed
from tidings.formats.documents import in_utf8, safe_text, safe_xml
from tidings.formats.rdf import is_rdf
from tidings.formats.strict_json import StrictJson
from tidings.model.event import Event
from tidings.service.model import HIDDEN

MAX_EVENTS = 10_000  # in one body
QUICK_BYTES, QUICK_OBJECTS = 64 << 10, 500
MAX_TEXT = 4_096  # characters of an id, a source, a type

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
LINES = frozenset(
    {
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/x-jsonlines",
        "application/cloudevents+ndjson",
        "application/cloudevents-batch+ndjson",
    }
)
FEEDS = frozenset({"application/rss+xml", "application/atom+xml", "application/feed+json"})
XML = frozenset({"application/xml", "text/xml"})
_KNOWN = "CloudEvents, JSON, NDJSON, RDF (such as text/turtle) and feeds (such as application/rss+xml)"

_LINE = re.compile(rb"[^\s][^\n]*")
_VERSION = re.compile(r"1(\.[0-9]+)?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_TEXTS = ("id", "source", "type", "time")
_ENVELOPE = frozenset({*_TEXTS, "specversion", "dataschema"})
_ATTRIBUTE = re.compile(r"[a-z0-9]+")
_ESCAPED = re.compile(r"\\(.)")
_ROOT = re.compile(rb"<(?:[A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)[\s>/]")
_CHANNEL = re.compile(rb"<(?:[\w.-]+:)?channel[\s>]")
_RSS = (b"http://purl.org/rss/1.0/", b"netscape.com/rdf/simple/0.9/")


class ParsedBody(NamedTuple):
    """The events of a body, and the places of unreadable events with a sentence each."""

    events: list[Event]
    rejected: list[tuple[str, str]]


class _MediaType(NamedTuple):
    given: str
    name: str  # without parameters, in small letters
    charset: str | None  # if it is not UTF-8

    @property
    def is_json(self) -> bool:
        return self.name in ("application/json", "text/json") or (
            self.name.endswith("+json") and not is_rdf(self.name)
        )


def read_events(body: bytes, content_type: str, headers: Mapping[str, str], source: str) -> ParsedBody:
    """The events of a request. `source` is used for events that name none."""
    kind = _media_type(content_type)
    if kind.name == STRUCTURED:
        return ParsedBody([_structured(body, kind, Event.from_cloudevent, source)], [])
    if kind.name == BATCH:
        return _batch(body, kind, source)
    if kind.name in LINES:
        return _lines(body, kind, source)
    if kind.name.startswith("application/cloudevents"):
        raise _unknown(content_type, f"of CloudEvents, {STRUCTURED} and {BATCH} are read, and NDJSON")
    if attributes := _attributes(headers):
        return ParsedBody([_binary(body, kind, attributes, source)], [])
    if kind.name in FEEDS:
        return _feed(body, kind, source)
    if is_rdf(kind.name) and "/" in kind.name:
        return ParsedBody([_graph(body, kind, source)], [])
    if kind.name in XML:
        return _xml(body, kind, source)
    if kind.is_json:
        return _json(body, kind, source)
    raise _unknown(content_type, f"{_KNOWN} are read")


def is_quick(body: bytes, content_type: str) -> bool:
    """Whether a body is read within a few milliseconds: JSON of some kilobytes is, unless it has very many objects. RDF and
    feeds may take far longer, XML with entities above all."""
    if len(body) > QUICK_BYTES or body.count(b"{") > QUICK_OBJECTS or b"jsonfeed.org" in body:
        return False
    kind = _media_type(content_type)
    return kind.name in LINES or (kind.is_json and kind.name not in FEEDS)


class MediaTypeError(EventError):
    """The body has a media type that is not supported."""

    status = 415


def _unknown(content_type: str, known: str) -> MediaTypeError:
    what = f"the Content-Type is {content_type[:100]!r}" if content_type else "there is no Content-Type"
    return MediaTypeError(f"{what}; {known}: send one of them")


def _media_type(content_type: str) -> _MediaType:
    name, *parameters = content_type.split(";")
    charset = None
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "charset":
            charset = value.strip(" \t\"'").lower()
    return _MediaType(
        content_type, name.strip().lower(), None if charset in ("", "utf-8", "utf8", "us-ascii") else charset
    )


# -- JSON

Reader = Callable[[Any], Event]


def _structured(body: bytes, kind: _MediaType, reader: Reader, source: str) -> Event:
    strict = StrictJson()
    return _event(strict, strict.read(body, kind.charset), reader, source)


def _batch(body: bytes, kind: _MediaType, source: str) -> ParsedBody:
    strict = StrictJson()
    items = strict.read(body, kind.charset)
    if not isinstance(items, list):
        raise EventError(f"a batch is a JSON array of events, not {_named(items)}; send one as {STRUCTURED}")
    return _items(strict, items, Event.from_cloudevent, source)


def _json(body: bytes, kind: _MediaType, source: str) -> ParsedBody:
    strict = StrictJson()
    value = strict.read(body, kind.charset)
    if isinstance(value, list):
        return _items(strict, value, Event.from_object, source)
    if isinstance(value, dict) and str(value.get("version")).startswith("https://jsonfeed.org/version/"):
        return _feed(body, kind, source)
    return ParsedBody([_event(strict, value, Event.from_object, source)], [])


def _items(strict: StrictJson, items: list[Any], reader: Reader, source: str) -> ParsedBody:
    _check_count(len(items))
    read = ParsedBody([], [])
    for number, item in enumerate(items, 1):
        try:
            read.events.append(_event(strict, item, reader, source))
        except EventError as error:
            read.rejected.append((f"item {number}", str(error)))
    return read


def _lines(body: bytes, kind: _MediaType, source: str) -> ParsedBody:
    body = body.removeprefix(b"\xef\xbb\xbf")
    if kind.charset is not None or b"\0" in body[:4]:
        body = in_utf8(body, kind.charset)  # else a wrong byte costs its line alone
    reader = Event.from_cloudevent if kind.name.startswith("application/cloudevents") else Event.from_object
    strict, read, number, position = StrictJson(), ParsedBody([], []), 1, 0
    for count, line in enumerate(_LINE.finditer(body), 1):
        _check_count(count)
        number += body.count(b"\n", position, line.start())
        position = line.start()
        try:
            read.events.append(_event(strict, strict.read(line[0]), reader, source))
        except EventError as error:
            read.rejected.append((f"line {number}", str(error)))
    return read


def _event(strict: StrictJson, value: Any, reader: Reader, source: str) -> Event:
    if not isinstance(value, dict):
        raise EventError(f"an event is a JSON object, not {_named(value)}")
    if (fault := strict.fault(value)) is not None:
        raise EventError(fault)
    _check_version(value.get("specversion"))
    return _checked(reader(value), source)


def _named(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _check_count(count: int) -> None:
    if count > MAX_EVENTS:
        raise EventError(f"the body has more than {MAX_EVENTS:,} events; send them in several requests")


def _check_version(version: object) -> None:
    if version == "1.0" or version is None:
        return
    if not (isinstance(version, str) and _VERSION.fullmatch(version)):
        raise EventError(f"the CloudEvent's specversion is {str(version)[:40]!r}; 1.0 is read")


def _checked(event: Event, source: str) -> Event:
    """The event with its source. Its names are checked to be one line, because they go into headers and other
    formats."""
    if not event.source and source:
        event = replace(event, source=source)
    if is_carrier(event):
        raise EventError(f"an event of the type {event.type!r} is made by a stream alone; give another type")
    if event.source.startswith(HIDDEN):  # it could take the place of what a stream makes
        raise EventError(
            f"the event's source is {event.source[:80]!r}; those that begin with {HIDDEN!r} are the service's own, so give another"
        )
    together = event.envelope_text()
    if len(together) <= MAX_TEXT and together.isprintable():  # as nearly all are
        return event
    for name in (*_TEXTS, "datacontenttype"):
        text = getattr(event, name)
        if text and len(text) > MAX_TEXT:
            raise EventError(
                f"the event's {name} has {len(text):,} characters; at most {MAX_TEXT:,} are kept"
            )
        if text and not text.isprintable() and _CONTROL.search(text):
            raise EventError(f"the event's {name} has a control character in it: {text[:80]!r}; leave it out")
    return event


# -- CloudEvents in headers


def _attributes(headers: Mapping[str, str]) -> dict[str, str]:
    """The attributes of an event in binary form; none if the request is not in that form."""
    found: dict[str, str] = {}
    for header, value in headers.items():
        name = header.lower()
        if not name.startswith("ce-"):
            continue
        name = name[3:]
        if not _ATTRIBUTE.fullmatch(name) or name == "data":
            raise EventError(f"{header[:80]!r} is no attribute of a CloudEvent: letters and digits name one")
        if name in found:
            raise EventError(f"the header {header[:80]!r} is there twice; leave one out")
        if name != "datacontenttype":  # which is the Content-Type
            found[name] = _decoded(header, value)
    return found


def _decoded(header: str, value: str) -> str:
    """The value of a header with quotes and percent-encoding removed, once."""
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] == '"':
        value = _ESCAPED.sub(r"\1", value[1:-1])
    try:
        # Servers decode headers as Latin-1; a client that does not percent-encode has sent UTF-8.
        value = value.encode("latin-1").decode()
    except UnicodeError:
        pass
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise EventError(f"the header {header[:80]!r} has percents that are not UTF-8; correct it") from None


def _binary(body: bytes, kind: _MediaType, given: dict[str, str], source: str) -> Event:
    _check_version(given.get("specversion"))
    if kind.is_json and body.strip():
        strict = StrictJson()
        data = strict.read(body, kind.charset)
        if (fault := strict.fault(data)) is not None:
            raise EventError(fault)
        if isinstance(data, dict):
            whole = {**given, "datacontenttype": kind.name, "data": data}
            return _checked(Event.from_cloudevent(whole), source)
    content, media = body, kind.given.strip()
    if is_rdf(kind.name) or (kind.charset is not None and kind.name.startswith("text/")):
        content, media = _text(body, kind), kind.name
    envelope: dict[str, Any] = {name: given[name] for name in _TEXTS if name in given}
    attributes = {name: value for name, value in given.items() if name not in _ENVELOPE}
    event = Event(attributes=attributes, datacontenttype=media, data=content, **envelope)
    return _checked(event, source)


# -- RDF and feeds


def _text(body: bytes, kind: _MediaType) -> bytes:
    """The body in UTF-8."""
    if kind.name.endswith("xml"):
        return safe_xml(body, charset=kind.charset)
    return safe_text(body, charset=kind.charset)


def _graph(body: bytes, kind: _MediaType, source: str) -> Event:
    name = "application/rdf+xml" if kind.name in XML else kind.name
    return _checked(Event.from_rdf(_text(body, kind), name), source)


def _xml(body: bytes, kind: _MediaType, source: str) -> ParsedBody:
    # Characters of two or four bytes: the names looked for are ASCII.
    thin = body[:65536].replace(b"\0", b"")
    root = _ROOT.search(thin)
    is_graph = root is not None and root[1] == b"RDF"
    if is_graph and not (any(space in thin for space in _RSS) and _CHANNEL.search(thin)):
        return ParsedBody([_graph(body, kind, source)], [])
    return _feed(body, kind, source)


def _feed(body: bytes, kind: _MediaType, source: str) -> ParsedBody:
    """The items of a feed as events. Their source is the feed's own address where it names one, as if it was
    followed."""
    if kind.is_json:
        feed = StrictJson().read(body, kind.charset)
        items = feed.get("items") if isinstance(feed, dict) else None
        _check_count(len(items) if isinstance(items, list) else 0)
        body = safe_text(body, charset=kind.charset)
    read = ParsedBody([], [])
    for number, event in enumerate(read_feed(body, "", kind.given, max_items=MAX_EVENTS), 1):
        try:
            read.events.append(_checked(event, source))
        except EventError as error:
            read.rejected.append((f"item {number}", str(error)))
    return read
