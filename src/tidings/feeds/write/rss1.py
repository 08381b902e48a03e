"""Writes RSS 1.0: RDF, with all triples of the item's graph. Links to other pages use XHTML's vocabulary, and
those to itself and its hub IANA's, since Atom's link has attributes that RDF/XML does not allow."""

from __future__ import annotations

from lxml import etree

from tidings.feeds.elements import Element
from tidings.feeds.facts import CONTENT, DC, DCTERMS, RSS
from tidings.feeds.hubs import RELATION
from tidings.feeds.write.channel import Channel, Entry, moment
from tidings.feeds.write.elements import PREFIXES, add, add_property, document
from tidings.formats.namespaces import RDF

MEDIA_TYPE = "application/rdf+xml"
_PAGES = "http://www.w3.org/1999/xhtml/vocab#"

_ABOUT, _RESOURCE = f"{{{RDF}}}about", f"{{{RDF}}}resource"


def write(channel: Channel) -> bytes:
    relations = {"relation": RELATION} if channel.hub else {}
    root = etree.Element(f"{{{RDF}}}RDF", nsmap={None: RSS, "xhv": _PAGES} | relations | PREFIXES)
    about = add(root, f"{{{RSS}}}channel", **{_ABOUT: channel.url})
    add(about, f"{{{RSS}}}title", channel.title)
    add(about, f"{{{RSS}}}link", channel.link)
    add(about, f"{{{RSS}}}description", channel.description)
    add(about, f"{{{DC}}}date", moment(channel.updated))
    for relation, address in channel.pages.items():
        if relation != "self":
            add(about, f"{{{_PAGES}}}{relation.replace('previous', 'prev')}", **{_RESOURCE: address})
    if channel.hub:
        add(about, f"{{{RELATION}}}self", **{_RESOURCE: channel.url})
        add(about, f"{{{RELATION}}}hub", **{_RESOURCE: channel.hub})
    members = add(add(about, f"{{{RSS}}}items"), f"{{{RDF}}}Seq")
    for entry in channel.entries:
        add(members, f"{{{RDF}}}li", **{_RESOURCE: entry.id})
        _add_item(root, entry)
    return document(root)


def _add_item(root: Element, entry: Entry) -> None:
    item = add(root, f"{{{RSS}}}item", **{_ABOUT: entry.id})
    add(item, f"{{{RSS}}}title", entry.title)
    add(item, f"{{{RSS}}}link", entry.link)
    if entry.summary_html:
        add(item, f"{{{RSS}}}description", entry.summary_html)
    if entry.content_html:
        add(item, f"{{{CONTENT}}}encoded", entry.content_html)
    if entry.author:
        add(item, f"{{{DC}}}creator", entry.author)
    for category in entry.categories:
        add(item, f"{{{DC}}}subject", category)
    add(item, f"{{{DC}}}date", moment(entry.updated if entry.published is None else entry.published))
    add(item, f"{{{DCTERMS}}}modified", moment(entry.updated))
    for property_ in entry.properties:
        if property_.predicate != DCTERMS + "modified":
            add_property(item, property_, typed=True)
