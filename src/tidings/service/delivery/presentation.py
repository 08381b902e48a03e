"""Presents an event or a notification to people: title, address, summary, author and date.

Events have any shape: a graph in the terms of RSS 1.0 or another vocabulary, attributes with common names, a
text, or nothing. `describe` never fails, never leaves a title empty, and reads a bounded part of the event. Its
HTML is unchanged from the event: pass it through `safe_html` before showing it.
"""

from __future__ import annotations

import html as characters
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

from tidings.errors import TidingsError
from tidings.feeds.dates import utc
from tidings.feeds.facts import CONTENT, DC, DCTERMS, RSS, iri
from tidings.feeds.write import Property
from tidings.formats.namespaces import RDF, RDFS
from tidings.formats.rdf import NTRIPLES, is_rdf
from tidings.model.event import Event
from tidings.model.terms import unescape
from tidings.service.delivery.markup import MAX_HTML, as_html, one_line, plain_text, safe_html
from tidings.service.model import NotificationKind, StoredNotification

__all__ = ["Item", "content_of", "describe", "facts_of", "plain_text", "safe_html", "texts_of"]

TITLE = 200  # characters
_WORD = 100  # of one value in a line of several
_READ = 256 << 10  # bytes of a graph or a text that are looked at
_TRIPLES = 2_000
_PROPERTIES, _PROPERTY = 50, 2_000  # how many, and characters of each
_ROWS = 50
_ROWS_IN_TITLE, _VALUES_IN_TITLE = 3, 3

_FOAF, _SKOS, _SCHEMA = (
    "http://xmlns.com/foaf/0.1/",
    "http://www.w3.org/2004/02/skos/core#",
    "http://schema.org/",
)
_TYPE = RDF + "type"
_TITLES = (
    RSS + "title", DC + "title", DCTERMS + "title", RDFS + "label", _SKOS + "prefLabel", _FOAF + "name",
    _SCHEMA + "headline", _SCHEMA + "name",
)  # fmt: skip
_LINKS = (RSS + "link", _SCHEMA + "url", _FOAF + "page", _FOAF + "homepage")
_SUMMARIES = (
    RSS + "description", DC + "description", DCTERMS + "description", RDFS + "comment", _SCHEMA + "description",
)  # fmt: skip
_AUTHORS = (DC + "creator", DCTERMS + "creator", _SCHEMA + "author")
_SUBJECTS = (DC + "subject", DCTERMS + "subject")
_DATES = (
    DC + "date",
    DCTERMS + "issued",
    DCTERMS + "created",
    DCTERMS + "modified",
    _SCHEMA + "datePublished",
)
_SAID = frozenset(
    (*_TITLES[:1], *_LINKS[:1], *_SUMMARIES[:1], *_AUTHORS[:1], *_SUBJECTS[:1], *_DATES[:1])
) | {CONTENT + "encoded", DC + "identifier"}  # fmt: skip

_TRIPLE = re.compile(
    r'^(<[^<>\s]*>|_:\S+) <([^<>\s]*)> (?:<([^<>\s]*)>|_:\S+|"((?:[^"\\\n]|\\.)*)"(?:@([A-Za-z0-9-]+)|\^\^<([^<>\s]*)>)?) \.$',
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Item:
    """The presentation of an event. `summary_html` and `content_html` are not sanitised; `content_html` is the whole
    text where there is one besides the summary. `link` is an http or https address. `published` is in seconds."""

    title: str
    link: str | None = None
    summary_html: str = ""
    author: str | None = None
    categories: tuple[str, ...] = ()
    published: float | None = None
    content_html: str = ""
    properties: tuple[Property, ...] = ()


def describe(event: Event) -> Item:
    """The presentation of an event."""
    item = _of_graph(event) or _of_attributes(event)
    published = item.published if item.published is not None else _seconds(event.time)
    return replace(item, published=published)


def content_of(notification: StoredNotification) -> Item:
    """The presentation of a notification: its event, the rows gained and lost, or the notice."""
    if notification.changes:
        item = Item(_changes_title(notification), summary_html=_changes_table(notification.changes))
    elif notification.event is not None:
        item = describe(notification.event)
        if notification.kind is NotificationKind.SNAPSHOT:
            item = Item("A snapshot without rows", published=item.published)
    else:
        message = notification.message or _NOTICES.get(notification.kind, "")
        item = Item(
            one_line(message, TITLE) or notification.kind.value, summary_html=characters.escape(message)
        )
    if notification.kind is NotificationKind.UNDECIDED:
        reason = characters.escape(
            one_line(notification.message or "It could not be decided whether this answers.", 500)
        )
        item = replace(
            item,
            title=one_line(f"Undecided: {item.title}", TITLE),
            summary_html=f"<p>{reason}</p>{item.summary_html}",
        )
    return item if item.published is not None else replace(item, published=notification.at)


def texts_of(event: Event) -> Iterator[str]:
    """The texts that an event consists of, without names of properties and attributes, which many events share."""
    triples = list(_triples(event))
    if triples:
        yield from map(_value, triples)
        return
    if not event.attributes or event.datacontenttype.startswith("text/"):
        yield _data(event)
    rest: list[Any] = [event.attributes]
    while rest:
        value = rest.pop()
        if isinstance(value, Mapping | list | tuple):
            rest += value.values() if isinstance(value, Mapping) else value
        elif value is not None:
            yield value[:MAX_HTML] if isinstance(value, str) else _shown(value)


_NOTICES = {
    NotificationKind.EXPIRES_SOON: "The subscription expires soon",
    NotificationKind.EXPIRED: "The subscription has expired",
    NotificationKind.MISSED: "Something was missed",
    NotificationKind.UNANSWERABLE: "The subscription cannot be matched",
    NotificationKind.ANSWERABLE: "The subscription is matched again",
}


# -- graphs


def facts_of(event: Event) -> dict[str, list[str]]:
    """The values of the node that the event's graph is about, by predicate; empty without a graph."""
    return _by_predicate(_about(event))


def _of_graph(event: Event) -> Item | None:
    about = _about(event)
    said = _by_predicate(about)
    if not said:
        return None
    node = about[0][0]
    properties = [value for triple in about for value in _property(triple)]
    summary, content = _first(said, _SUMMARIES), _first(said, (CONTENT + "encoded",))
    title = one_line(_first(said, _TITLES), TITLE) or plain_text(summary or content, TITLE)
    links = [value for name in _LINKS for value in said.get(name, ())]
    return Item(
        title=title or _line((_local(name), value) for name, value in _flat(said)) or _fallback(event),
        link=next(filter(None, map(_address, [*links, node[1:-1]])), None),
        summary_html=as_html(summary or content)[:MAX_HTML],
        author=one_line(_first(said, _AUTHORS), _WORD) or None,
        categories=_categories(value for name in _SUBJECTS for value in said.get(name, ())),
        published=next(filter(None, (_seconds(v) for name in _DATES for v in said.get(name, ()))), None),
        content_html=content[:MAX_HTML] if summary else "",
        properties=tuple(properties[:_PROPERTIES]),
    )


def _about(event: Event) -> list[tuple[str, ...]]:
    triples = list(_triples(event))
    node = _subject(triples) if triples else ""
    return [triple for triple in triples if triple[0] == node]


def _by_predicate(about: list[tuple[str, ...]]) -> dict[str, list[str]]:
    said: dict[str, list[str]] = {}
    for triple in about:
        if value := _value(triple):
            said.setdefault(triple[1], []).append(value)
    return said


def _triples(event: Event) -> Iterator[tuple[str, ...]]:
    """The first triples of the event's graph, as subject, predicate, IRI, text, language, datatype."""
    if not is_rdf(event.datacontenttype):
        return iter(())
    data = event.data
    if event.datacontenttype != NTRIPLES:
        if len(data) > _READ:
            return iter(())  # a parser would have to read the whole
        try:
            data = event.graph()
        except TidingsError:
            return iter(())
    text = data[:_READ].decode(errors="replace")
    return (found.groups(default="") for found in islice(_TRIPLE.finditer(text), _TRIPLES))


def _subject(triples: list[tuple[str, ...]]) -> str:
    """The node that the graph is about: an item, or a node with a title, or the first one; a channel comes last."""
    channels = {t[0] for t in triples if t[1] == _TYPE and t[2] == RSS + "channel"}
    items = (t[0] for t in triples if t[1] == _TYPE and t[2] == RSS + "item")
    titled = (t[0] for t in triples if t[1] in _TITLES and t[0] not in channels)
    others = (t[0] for t in triples if t[0] not in channels)
    return next(items, None) or next(titled, None) or next(others, None) or triples[0][0]


def _value(triple: tuple[str, ...]) -> str:
    return triple[2] or unescape(triple[3])


def _property(triple: tuple[str, ...]) -> list[Property]:
    """A property that feeds have no element for, as text; nothing for blank nodes and for whole articles."""
    _, predicate, resource, text, language, datatype = triple
    if predicate in _SAID or (predicate == _TYPE and resource == RSS + "item") or not (resource or text):
        return []
    value = _value(triple)
    if len(value) > _PROPERTY:
        return []
    return [Property(predicate, value, bool(resource), datatype or None, language or None)]


def _first(said: Mapping[str, list[str]], names: tuple[str, ...]) -> str:
    return next((value for name in names for value in said.get(name, ()) if value.strip()), "")


def _flat(said: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    return ((name, _local(value)) for name, values in said.items() for value in values)


def _local(address: str) -> str:
    """The last part of an IRI; a text unchanged."""
    if "://" not in address and not address.startswith("urn:"):
        return address
    return re.split(r"[#/:]", address.rstrip("#/:"))[-1] or address


# -- attributes


def _of_attributes(event: Event) -> Item:
    named = {name.lower(): value for name, value in islice(event.attributes.items(), 1_000)}
    summary = as_html(_text(named, "summary", "description", "text", "content", "message", "body"))
    if not summary and (not event.attributes or event.datacontenttype.startswith("text/")):
        summary = _data(event)
    title = one_line(_text(named, "title", "name", "headline", "subject"), TITLE)
    line = _line(_pairs(event.attributes))
    link = _text(named, "url", "link", "href")
    said = {title, link, _text(named, "author", "creator", "by")}
    others = {
        name: value
        for name, value in event.attributes.items()
        if value is not None and _shown(value) not in said
    }
    tags = named.get("tags", named.get("categories", named.get("category", ())))
    return Item(
        title=title or plain_text(summary, TITLE) or line or _fallback(event),
        link=next(filter(None, (_address(_text(named, name)) for name in ("url", "link", "href"))), None),
        summary_html=summary or characters.escape(_line(_pairs(others)) if title else line),
        author=one_line(_text(named, "author", "creator", "by"), _WORD) or None,
        categories=_categories(
            [tags] if isinstance(tags, str) else tags if isinstance(tags, list | tuple) else ()
        ),
        published=next(
            filter(None, (_seconds(named.get(name)) for name in ("published", "time", "date"))), None
        ),
    )


def _text(named: Mapping[str, Any], *names: str) -> str:
    for name in names:
        value = named.get(name)
        if isinstance(value, str) and value.strip():
            return value[:MAX_HTML]
    return ""


def _data(event: Event) -> str:
    """The content of an event if it is a text and not too long to be read."""
    kind = event.datacontenttype.partition(";")[0].strip().lower()
    if not event.data or is_rdf(kind) or not (kind.startswith("text/") or kind.endswith("json") or not kind):
        return ""
    text = event.data[: min(_READ, MAX_HTML)].decode(errors="ignore")
    if "\0" in text:
        return ""
    return text if kind == "text/html" else characters.escape(text, quote=False)


def _pairs(value: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    for name, inner in islice(value.items(), 50):
        path = f"{prefix}{name}"
        if isinstance(inner, Mapping) and inner and depth < 3:
            yield from _pairs(inner, f"{path}.", depth + 1)
        else:
            yield path, _shown(inner)


def _shown(value: object) -> str:
    """A value in few characters."""
    if isinstance(value, str):
        return one_line(value, _WORD)
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        try:
            return str(value)
        except ValueError:  # an integer of thousands of digits
            return "a large number"
    if isinstance(value, list | tuple):
        return one_line(
            ", ".join(_shown(item) if not isinstance(item, list) else "…" for item in value[:5]), _WORD
        )
    if isinstance(value, Mapping):
        return "…" if value else ""
    return one_line(str(value), _WORD)


def _line(pairs: Iterator[tuple[str, str]]) -> str:
    """ "topic: sport, age: 24"."""
    shown = (
        f"{one_line(name, _WORD)}: {one_line(value, _WORD)}" for name, value in islice(pairs, 20) if name
    )
    return one_line(", ".join(shown), TITLE)


def _fallback(event: Event) -> str:
    return one_line(event.type, TITLE) or one_line(f"Event {event.id}", TITLE)


# -- rows


def _changes_title(notification: StoredNotification) -> str:
    """ "+ stocks: ACME, 60; - stocks: ACME, 50"; of a snapshot, how many rows each table has."""
    if notification.kind is not NotificationKind.SNAPSHOT:
        rows = [_row_title(change) for change in notification.changes[:_ROWS_IN_TITLE]]
        more = len(notification.changes) - len(rows)
        return one_line("; ".join([*rows, f"and {more:,} more"] if more else rows), TITLE)
    counts = Counter(one_line(str(change.get("table", "")), _WORD) for change in notification.changes)
    parts = [f"{table or 'a table'} {count:,}" for table, count in counts.items()]
    return one_line(f"Snapshot: {', '.join(parts)} row{'s' * (counts.total() != 1)}", TITLE)


def _row_title(change: Mapping[str, Any]) -> str:
    row = change.get("row")
    values = row.values() if isinstance(row, Mapping) else (row,)
    first = (one_line(_shown(value), _WORD // 2) for value in islice(values, _VALUES_IN_TITLE))
    table = one_line(str(change.get("table", "")), _WORD) or "a table"
    return f"{'-' if change.get('change') == '-' else '+'} {table}: {', '.join(first)}"


def _changes_table(changes: tuple[Mapping[str, Any], ...]) -> str:
    rows = []
    for change in changes[:_ROWS]:
        row = change.get("row")
        cells = row if isinstance(row, Mapping) else {"row": row}
        words = _line((str(name), _shown(value)) for name, value in cells.items())
        sign = "gained" if change.get("change", "+") == "+" else "lost"
        cell = "".join(
            f"<td>{characters.escape(text)}</td>"
            for text in (one_line(str(change.get("table", "")), _WORD), sign, words)
        )
        rows.append(f"<tr>{cell}</tr>")
    more = f"<p>… and {len(changes) - _ROWS:,} more</p>" if len(changes) > _ROWS else ""
    head = "<thead><tr><th>table</th><th>change</th><th>row</th></tr></thead>"
    return f"<table>{head}<tbody>{''.join(rows)}</tbody></table>{more}"


# -- parts of any shape


def _categories(values: Any) -> tuple[str, ...]:
    lines = (one_line(value, _WORD) for value in islice(values, 50) if isinstance(value, str))
    return tuple(dict.fromkeys(filter(None, lines)))


def _address(text: str) -> str | None:
    """An http or https address; None for everything else."""
    if not text[:8].strip().lower().startswith(("http://", "https://")) or len(text) > 2_000:
        return None
    node = iri(text)
    if node is None or "://" not in node.value or not node.value.partition("://")[2].strip("/"):
        return None
    return str(node.value)


def _seconds(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if 0 < value < 32_503_680_000 else None  # the year 3000
    moment = utc(value[:64]) if isinstance(value, str) else None
    if moment is None:
        return None
    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return None
