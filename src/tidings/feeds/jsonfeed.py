"""Reads JSON Feed 1.0 and 1.1: converts objects to facts. A member of the wrong type is ignored."""

from __future__ import annotations

import json
from typing import Any

from tidings.errors import EventError
from tidings.feeds.facts import CONTENT, DC, DCTERMS, RSS, Facts, iri, limit_size, make_event, make_node_name
from tidings.model.event import Event


def items(document: bytes, source: str) -> list[Event]:
    try:
        feed = json.loads(document)
    except ValueError as error:
        raise EventError(f"not readable as JSON: {error}") from None
    entries = feed.get("items") if isinstance(feed, dict) else None
    if not isinstance(entries, list):
        raise EventError("not a JSON Feed: an object with a list of 'items' is needed")
    channel = _channel(feed, source)
    return limit_size(
        make_event(*read, source or channel.node.value)
        for entry in entries
        if isinstance(entry, dict) and (read := _item(entry, feed, channel, source)) is not None
    )


def _word(thing: Any, *keys: str) -> str:
    """The first text under `keys`; ids may be numbers."""
    for key in keys:
        value = thing.get(key) if isinstance(thing, dict) else None
        if isinstance(value, str) and value.strip():
            return value.strip()
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
    return ""


def _list(thing: dict[str, Any], key: str) -> list[Any]:
    value = thing.get(key)
    return value if isinstance(value, list) else []


def _channel(feed: dict[str, Any], source: str) -> Facts:
    addresses = (_word(feed, "feed_url"), source, _word(feed, "home_page_url"))
    node = next(filter(None, map(iri, addresses)), None)
    facts = Facts(node or make_node_name("channel", _word(feed, "title")), "channel")
    facts.text(RSS + "title", _word(feed, "title"))
    facts.text(RSS + "link", _word(feed, "home_page_url"))
    facts.text(RSS + "description", _word(feed, "description"))
    facts.text(DC + "language", _word(feed, "language"))
    for person in _people(feed):
        facts.text(DC + "creator", person)
    return facts


def _item(
    entry: dict[str, Any], feed: dict[str, Any], channel: Facts, source: str
) -> tuple[Facts, Facts, str] | None:
    """An item's facts, its channel and what identifies it; None if it says nothing."""
    base = _word(feed, "home_page_url") or source
    link, key = iri(_word(entry, "url", "external_url"), base), _word(entry, "id")
    body = _word(entry, "content_html", "content_text")
    identity = key or (link.value if link else "") or _word(entry, "title") or body
    if not identity:
        return None
    node = next((n for n in (link, iri(key)) if n is not None and n != channel.node), None)
    facts = Facts(node or make_node_name("item", channel.node.value, identity), "item")
    facts.text(RSS + "title", _word(entry, "title"))
    facts.text(RSS + "link", link.value if link else "")
    facts.text(RSS + "description", _word(entry, "summary", "content_text", "content_html"))
    facts.text(CONTENT + "encoded", _word(entry, "content_html"))
    facts.text(DC + "identifier", key)
    facts.text(DC + "date", _word(entry, "date_published", "date_modified"))
    facts.text(DCTERMS + "modified", _word(entry, "date_modified"))
    facts.text(DC + "language", _word(entry, "language") or _word(feed, "language"))
    for person in _people(entry) or _people(feed):
        facts.text(DC + "creator", person)
    for tag in _list(entry, "tags"):
        facts.text(DC + "subject", _word({"tag": tag}, "tag"))
    for attachment in _list(entry, "attachments"):
        facts.enclosure(
            _word(attachment, "url"), _word(attachment, "mime_type"), _word(attachment, "size_in_bytes"), base
        )
    return facts, channel, identity


def _people(thing: dict[str, Any]) -> list[str]:
    """Version 1.1 has `authors`, 1.0 one `author`."""
    return [
        name for person in [*_list(thing, "authors"), thing.get("author")] if (name := _word(person, "name"))
    ]
