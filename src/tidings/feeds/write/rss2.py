"""Writes RSS 2.0, with authors in Dublin Core (its own element needs an e-mail address) and pages in Atom's link."""

from __future__ import annotations

from lxml import etree

from tidings.feeds.elements import Element
from tidings.feeds.facts import CONTENT, DC, DCTERMS
from tidings.feeds.rss import ATOM
from tidings.feeds.write.channel import Channel, Entry, rfc822
from tidings.feeds.write.elements import PREFIXES, add, add_property, document

MEDIA_TYPE = "application/rss+xml"


def write(channel: Channel) -> bytes:
    root = etree.Element("rss", {"version": "2.0"}, nsmap={**PREFIXES, "atom": ATOM})
    about = add(root, "channel")
    add(about, "title", channel.title)
    add(about, "link", channel.link)
    add(about, "description", channel.description)
    add(about, "lastBuildDate", rfc822(channel.updated))
    add(about, "generator", "Tidings")
    for relation, address in channel.pages.items():
        add(about, f"{{{ATOM}}}link", rel=relation, href=address, type=MEDIA_TYPE)
    if channel.hub:
        add(about, f"{{{ATOM}}}link", rel="hub", href=channel.hub)
    for entry in channel.entries:
        _add_item(about, entry)
    return document(root)


def _add_item(about: Element, entry: Entry) -> None:
    item = add(about, "item")
    add(item, "title", entry.title)
    add(item, "link", entry.link)
    if entry.summary_html:
        add(item, "description", entry.summary_html)
    if entry.content_html:
        add(item, f"{{{CONTENT}}}encoded", entry.content_html)
    if entry.author:
        add(item, f"{{{DC}}}creator", entry.author)
    for category in entry.categories:
        add(item, "category", category)
    add(item, "guid", entry.id, isPermaLink="false")
    add(item, "pubDate", rfc822(entry.updated if entry.published is None else entry.published))
    for property_ in entry.properties:
        if not property_.predicate.startswith(
            (DC, DCTERMS)
        ):  # a reader has one title, one date, one id of an item
            add_property(item, property_, typed=False)
