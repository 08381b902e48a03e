"""Accessors of lxml elements that the readers of RSS and Atom share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidings.feeds.facts import CONTENT, DC, DCTERMS, Facts, iri
from tidings.formats.namespaces import RDF

Element = Any  # lxml has no types

XML = "{http://www.w3.org/XML/1998/namespace}"
_ADDRESSES = ("url", "href", f"{{{RDF}}}resource", "resource")
_PREFIXES = {"dc": DC, "dcterms": DCTERMS, "content": CONTENT}  # used by some feeds without being declared


def qualified(element: Element) -> tuple[str, str]:
    """The element's namespace and local name."""
    uri, brace, name = element.tag.rpartition("}")
    if brace:
        return uri[1:], name
    prefix, _, rest = name.partition(":")
    return (_PREFIXES.get(prefix, ""), rest) if rest else ("", name)


def local(element: Element) -> str:
    return qualified(element)[1]


def children(element: Element) -> Iterator[Element]:
    """The child elements, without undeclared entities, which lxml also gives as children."""
    return (child for child in element if isinstance(child.tag, str))


def descendants(element: Element, *names: str) -> list[Element]:
    return [e for e in element.iter() if isinstance(e.tag, str) and local(e) in names]


def text(element: Element) -> str:
    """All text in the element, without the markup inside it."""
    return "".join(element.itertext()).strip()


def language_of(element: Element) -> str | None:
    while element is not None:
        if (language := element.get(XML + "lang")) is not None:
            return language or None
        element = element.getparent()
    return None


def add_extension(facts: Facts, element: Element, base: str) -> None:
    """An element of another vocabulary, as RDF/XML would say it: a simple text, or the resource it points to."""
    predicate = iri("".join(qualified(element)))
    if predicate is None or any(True for _ in children(element)):
        return
    if words := text(element):
        facts.text(predicate.value, words)
    else:
        address = next(filter(None, map(element.get, _ADDRESSES)), None)
        facts.link(predicate.value, address, base)
