"""Builds XML by lxml, so that every text is escaped, and adds properties of other vocabularies."""

from __future__ import annotations

import re

import pyoxigraph as ox
from lxml import etree

from tidings.feeds.elements import XML, Element
from tidings.feeds.facts import CONTENT, DC, DCTERMS, RSS, iri
from tidings.feeds.rss import ATOM
from tidings.feeds.write.channel import Property, printable
from tidings.formats.namespaces import RDF

PREFIXES: dict[str | None, str] = {"rdf": RDF, "dc": DC, "dcterms": DCTERMS, "content": CONTENT}

_NAME = re.compile(r"(.*[/#:?=&%;,!$'()*+~@.-])([A-Za-z_][A-Za-z0-9_.-]*)", re.DOTALL)
_OWN = (RSS, ATOM, CONTENT, "http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/xmlns/", XML[1:-1])
_OF_RDF = frozenset({RDF + "type", RDF + "value"})  # the others are syntax


def add(parent: Element, name: str, text: str | None = None, **attributes: str) -> Element:
    """A child element `name`, in Clark's form where it has a namespace."""
    child = etree.SubElement(parent, name, {key: printable(value) for key, value in attributes.items()})
    if text is not None:
        child.text = printable(text)
    return child


def document(root: Element) -> bytes:
    etree.cleanup_namespaces(root, keep_ns_prefixes=["rdf"])
    return bytes(etree.tostring(root, encoding="UTF-8", xml_declaration=True, pretty_print=True))


def add_property(parent: Element, property_: Property, *, typed: bool) -> None:
    """`property_` as an element of its vocabulary; nothing if XML or RDF has no way to say it, or if readers would take
    it for a part of the feed itself. `typed`: with its datatype and language, as RDF has them."""
    space, local = _split(property_.predicate)
    if not local or space.startswith(_OWN) or (space == RDF and property_.predicate not in _OF_RDF):
        return
    attributes = {}
    if property_.resource:
        if not _absolute(property_.value):
            return
        attributes[f"{{{RDF}}}resource"] = property_.value
    elif typed and property_.language:
        attributes[f"{XML}lang"] = property_.language
    elif typed and property_.datatype:
        attributes[f"{{{RDF}}}datatype"] = property_.datatype
    try:
        if not property_.resource:
            kind = None if property_.language or not property_.datatype else ox.NamedNode(property_.datatype)
            ox.Literal(property_.value, datatype=kind, language=property_.language)
        child = etree.SubElement(parent, f"{{{space}}}{local}", attributes)
    except (ValueError, UnicodeError):
        return  # no name of an element, no tag of a language, …
    if not property_.resource:
        child.text = printable(property_.value)


def _split(predicate: str) -> tuple[str, str]:
    """Namespace and local name; the latter is "" if the predicate cannot be divided."""
    found = _NAME.fullmatch(predicate)
    return (found[1], found[2]) if found and _absolute(predicate) else ("", "")


def _absolute(address: str) -> bool:
    node = iri(address)
    return node is not None and node.value == address and printable(address) == address
