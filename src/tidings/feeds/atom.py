"""Reads Atom 1.0 and 0.3: converts elements to facts. HTML is kept, except in titles, which become plain text."""

from __future__ import annotations

import html
import re

from lxml import etree

from tidings.feeds.elements import Element, add_extension, children, descendants, language_of, qualified, text
from tidings.feeds.facts import CONTENT, DC, DCTERMS, RSS, Facts, iri, limit_size, make_event, make_node_name
from tidings.model.event import Event

NAMESPACES = frozenset({"", "http://www.w3.org/2005/Atom", "http://purl.org/atom/ns#"})
_TAG = re.compile(r"<[^<>]*>")
_TERMS = {
    "id": DC + "identifier",
    "published": DC + "date",
    "issued": DC + "date",
    "created": DC + "date",
    "updated": DCTERMS + "modified",
    "modified": DCTERMS + "modified",
    "rights": DC + "rights",
    "copyright": DC + "rights",
}


def items(root: Element, source: str) -> list[Event]:
    channel = _channel(root, source)
    entries = descendants(root, "entry")
    return limit_size(
        make_event(*read, source or channel.node.value)
        for element in entries
        if (read := _entry(element, channel, root, source)) is not None
    )


def _own(element: Element, word: str) -> list[Element]:
    return [c for c in children(element) if qualified(c)[1] == word and qualified(c)[0] in NAMESPACES]


def _first(element: Element, *words: str) -> Element | None:
    return next((found for word in words for found in _own(element, word)), None)


def _link(element: Element, relation: str, base: str) -> str | None:
    for link in _own(element, "link"):
        if (link.get("rel") or "alternate") == relation and link.get("href"):
            node = iri(link.get("href"), link.base or base)
            return node.value if node else link.get("href")
    return None


def _channel(root: Element, source: str) -> Facts:
    identifier, title = _first(root, "id"), _first(root, "title")
    alternate = _link(root, "alternate", source)
    addresses = (
        _link(root, "self", source),
        source,
        text(identifier) if identifier is not None else "",
        alternate,
    )
    node = next(filter(None, map(iri, addresses)), None)
    facts = Facts(node or make_node_name("channel", text(title) if title is not None else ""), "channel")
    facts.text(RSS + "title", _plain(title))
    facts.text(RSS + "link", alternate)
    facts.text(RSS + "description", _plain(_first(root, "subtitle", "tagline")))
    facts.text(DC + "language", language_of(root))
    for person in _people(root, "author"):
        facts.text(DC + "creator", person)
    return facts


def _entry(element: Element, channel: Facts, root: Element, source: str) -> tuple[Facts, Facts, str] | None:
    """An entry's facts, its channel and what identifies it; None if it says nothing."""
    base = element.base or source
    identifier, link = _first(element, "id"), _link(element, "alternate", base)
    summary, content = _first(element, "summary"), _first(element, "content")
    ids = text(identifier) if identifier is not None else ""
    identity = ids or link or _plain(_first(element, "title")) or _markup(content) or ""
    if not identity:
        return None
    node = next((n for n in (iri(link, base), iri(ids)) if n is not None and n != channel.node), None)
    facts = Facts(node or make_node_name("item", channel.node.value, identity), "item")
    facts.text(RSS + "title", _plain(_first(element, "title")))
    facts.text(RSS + "link", link)
    facts.text(RSS + "description", _markup(summary) or _markup(content))
    if content is not None and (content.get("type") or "text") not in ("text", "text/plain"):
        facts.text(CONTENT + "encoded", _markup(content))
    for person in _people(element, "author") or _people(root, "author"):
        facts.text(DC + "creator", person)
    for person in _people(element, "contributor"):
        facts.text(DC + "contributor", person)
    for child in children(element):
        space, word = qualified(child)
        if space not in NAMESPACES:
            add_extension(facts, child, base)
        elif word == "category":
            facts.text(DC + "subject", child.get("term") or text(child))
            facts.text(DC + "subject", child.get("label"))
        elif word == "link" and child.get("rel") == "enclosure":
            facts.enclosure(child.get("href"), child.get("type"), child.get("length"), base)
        elif word in _TERMS:
            facts.text(_TERMS[word], text(child))
    if not facts.values(DC + "date"):
        facts.text(DC + "date", facts.first(DCTERMS + "modified"))
    if not facts.values(DC + "language"):
        facts.text(DC + "language", language_of(element))
    return facts, channel, identity


def _people(element: Element, word: str) -> list[str]:
    names = [_first(person, "name", "email") for person in _own(element, word)]
    return [text(found) for found in names if found is not None]


def _markup(element: Element | None) -> str | None:
    """A text construct with its HTML, whichever way it was written."""
    if element is None:
        return None
    if element.get("type") in ("xhtml", "application/xhtml+xml") and len(element):
        inner = element[0] if len(element) == 1 else element
        pieces = [etree.tostring(child, encoding="unicode", with_tail=True) for child in inner]
        return ((inner.text or "") + "".join(pieces)).strip()
    return text(element)


def _plain(element: Element | None) -> str | None:
    """A text construct as plain text."""
    if element is None:
        return None
    if element.get("type") in ("html", "text/html"):
        return html.unescape(_TAG.sub("", text(element)))
    return text(element)
