"""Reads RSS 0.9x and 2.0, and RSS 1.0 that is not valid RDF: converts elements to facts."""

from __future__ import annotations

import re

from tidings.feeds.elements import (
    Element,
    add_extension,
    children,
    descendants,
    language_of,
    local,
    qualified,
    text,
)
from tidings.feeds.facts import CONTENT, DC, DCTERMS, RSS, Facts, iri, limit_size, make_event, make_node_name
from tidings.formats.namespaces import RDF
from tidings.model.event import Event

ATOM = "http://www.w3.org/2005/Atom"
CORE = frozenset(
    {
        "",
        RSS,
        "http://my.netscape.com/rdf/simple/0.9/",
        "http://channel.netscape.com/rdf/simple/0.9/",
        "http://backend.userland.com/rss2",
        "http://blogs.law.harvard.edu/tech/rss",
    }
)
_TERMS = {
    "title": RSS + "title",
    "link": RSS + "link",
    "description": RSS + "description",
    "category": DC + "subject",
    "pubDate": DC + "date",
    "guid": DC + "identifier",
    "language": DC + "language",
    "copyright": DC + "rights",
    "comments": RSS + "comments",
}
_CHANNEL = frozenset({"title", "link", "description", "language", "copyright", "category"})
_MAILBOX = re.compile(r"\S+@\S+\s*\((.+)\)|(.+?)\s*<\S+@\S+>")


def items(root: Element, source: str) -> list[Event]:
    channels = descendants(root, "channel")
    channel = _channel(channels[0] if channels else root, source)
    base = channel.first(RSS + "link") or source
    language = channel.first(DC + "language")
    return limit_size(
        make_event(*read, source or channel.node.value)
        for element in descendants(root, "item")
        if qualified(element)[0] in CORE and (read := _item(element, channel, base, language)) is not None
    )


def _channel(element: Element, source: str) -> Facts:
    direct = {local(child): text(child) for child in children(element) if qualified(child)[0] in CORE}
    own = [
        c.get("href") for c in children(element) if qualified(c) == (ATOM, "link") and c.get("rel") == "self"
    ]
    addresses = (element.get(f"{{{RDF}}}about"), *own, source, direct.get("link"))
    node = next(filter(None, map(iri, addresses)), None) or make_node_name("channel", direct.get("title", ""))
    facts = Facts(node, "channel")
    for child in children(element):
        space, word = qualified(child)
        if space in CORE and word in _CHANNEL:
            facts.text(_TERMS[word], text(child))
        elif space == DC:
            facts.text(DC + word, text(child))
    if not facts.values(DC + "language"):
        facts.text(DC + "language", language_of(element))
    return facts


def _item(
    element: Element, channel: Facts, base: str, language: str | None
) -> tuple[Facts, Facts, str] | None:
    """An item's facts, its channel and what identifies it; None if it says nothing."""
    core = {local(child): text(child) for child in children(element) if qualified(child)[0] in CORE}
    base = element.base or base
    guid = core.get("guid", "")
    link = core.get("link") or _linked(element) or element.get(f"{{{RDF}}}about") or ""
    identity = guid or link or core.get("title") or core.get("description", "")
    if not identity:
        return None
    node = next((n for n in (iri(link, base), iri(guid)) if n is not None and n != channel.node), None)
    facts = Facts(node or make_node_name("item", channel.node.value, identity), "item")
    address = iri(link, base)
    facts.text(RSS + "link", address.value if address else link)
    for child in children(element):
        space, word = qualified(child)
        if space not in CORE:
            _add_extension(facts, child, base)
        elif word == "enclosure":
            facts.enclosure(child.get("url"), child.get("type"), child.get("length"), base)
        elif word == "author":
            facts.text(DC + "creator", _person(text(child)))
        elif word != "link":
            facts.text(_TERMS.get(word, RSS + word), text(child))
    if not facts.values(DC + "language"):
        facts.text(DC + "language", language_of(element) or language)
    return facts, channel, identity


def _add_extension(facts: Facts, element: Element, base: str) -> None:
    space, word = qualified(element)
    if space == CONTENT and word == "encoded":
        facts.text(CONTENT + "encoded", text(element))
    elif space == ATOM and word == "updated":
        facts.text(DCTERMS + "modified", text(element))
    elif space == ATOM and word == "author":
        names = [text(child) for child in children(element) if local(child) == "name"]
        facts.text(DC + "creator", names[0] if names else text(element))
    elif space != ATOM:
        add_extension(facts, element, base)


def _linked(element: Element) -> str | None:
    """The address of an Atom link, which some feeds have instead of their own."""
    links = [
        c for c in children(element) if qualified(c) == (ATOM, "link") and c.get("rel") in (None, "alternate")
    ]
    return links[0].get("href") if links else None


def _person(words: str) -> str:
    """The name in `mail@example.org (A Name)`."""
    found = _MAILBOX.fullmatch(words)
    return (found[1] or found[2]) if found else words
