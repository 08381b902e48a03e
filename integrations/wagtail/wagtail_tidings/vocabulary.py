"""The names of pages, tags and properties in RDF. They are stable: subscriptions refer to them.

A page is named by its number, because its address changes when it is moved or renamed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from urllib.parse import quote

from wagtail_tidings.connection import site_address

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RSS = "http://purl.org/rss/1.0/"
DC = "http://purl.org/dc/elements/1.1/"
XSD = "http://www.w3.org/2001/XMLSchema#"
WAGTAIL = "urn:wagtail:"

_EVENT_ID = re.compile(r"page-(\d{1,18})-[0-9a-f]+")


def page_iri(number: int | str) -> str:
    return f"{site_address()}/tidings/id/page/{number}"


def tag_iri(slug: str) -> str:
    return f"{site_address()}/tidings/id/tag/{quote(slug, safe='')}"


def all_tags_iri() -> str:
    return f"{site_address()}/tidings/id/tag"


def event_id(page: int, unique: str) -> str:
    return f"page-{page}-{unique}"


def page_of_event(id: str | None) -> int | None:
    """The number of the page that an event is about; None for events of others and for notices."""
    found = _EVENT_ID.fullmatch(id or "")
    return int(found[1]) if found else None


def iri(text: str) -> str:
    return f"<{text}>"


def literal(text: str, datatype: str | None = None) -> str:
    """A literal of Turtle, whose escapes are those of JSON."""
    written = json.dumps(text, ensure_ascii=False)
    return f"{written}^^<{datatype}>" if datatype else written


def turtle(subject: str, properties: Iterable[tuple[str, str]]) -> str:
    """The triples of one subject: properties with terms that are already written."""
    lines = [f"<{name}> {term}" for name, term in properties]
    return f"<{subject}> " + " ;\n    ".join(lines) + " .\n"
