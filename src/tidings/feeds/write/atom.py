"""Writes Atom 1.0 (RFC 4287), in pages (RFC 5005)."""

from __future__ import annotations

from lxml import etree

from tidings.feeds.elements import Element
from tidings.feeds.facts import DC, DCTERMS
from tidings.feeds.rss import ATOM
from tidings.feeds.write.channel import Channel, Entry, moment
from tidings.feeds.write.elements import add, add_property, document

MEDIA_TYPE = "application/atom+xml"


def write(channel: Channel) -> bytes:
    root = etree.Element(f"{{{ATOM}}}feed", nsmap={None: ATOM})
    _add(root, "id", channel.id)
    _add(root, "title", channel.title)
    _add(root, "subtitle", channel.description)
    _add(root, "updated", moment(channel.updated))
    _add(_add(root, "author"), "name", channel.author)
    _add(root, "link", rel="alternate", href=channel.link, type="text/html")
    for relation, address in channel.pages.items():
        _add(root, "link", rel=relation, href=address, type=MEDIA_TYPE)
    if channel.hub:
        _add(root, "link", rel="hub", href=channel.hub)
    _add(root, "generator", "Tidings")
    for entry in channel.entries:
        _add_entry(root, entry)
    return document(root)


def _add_entry(root: Element, entry: Entry) -> None:
    element = _add(root, "entry")
    _add(element, "id", entry.id)
    _add(element, "title", entry.title)
    _add(element, "updated", moment(entry.updated))
    _add(element, "published", moment(entry.updated if entry.published is None else entry.published))
    _add(element, "link", rel="alternate", href=entry.link)
    if entry.author:
        _add(_add(element, "author"), "name", entry.author)
    for category in entry.categories:
        _add(element, "category", term=category)
    if entry.summary_html:
        _add(element, "summary", entry.summary_html, type="html")
    if entry.content_html:
        _add(element, "content", entry.content_html, type="html")
    for property_ in entry.properties:
        if not property_.predicate.startswith(
            (DC, DCTERMS)
        ):  # a reader has one title, one date, one id of an item
            add_property(element, property_, typed=False)


def _add(parent: Element, name: str, text: str | None = None, **attributes: str) -> Element:
    return add(parent, f"{{{ATOM}}}{name}", text, **attributes)
