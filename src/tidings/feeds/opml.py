"""Reads and writes OPML 2.0, in which feed readers exchange lists of feeds; reading is lenient, writing is strict.

Outlines may nest, and name their feed as `xmlUrl` or `url`. An outline without a valid web address does not affect the
others: it is in `rejected`, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from email.utils import formatdate
from typing import NamedTuple

from lxml import etree

from tidings.errors import EventError, TidingsError
from tidings.feeds.elements import children, local
from tidings.formats.documents import safe_xml

MAX_BYTES = 4 << 20
MAX_OUTLINES = 10_000
MAX_URL = 4096
_TITLE = 500  # characters of a title
_ADDRESS = re.compile(r"https?://[^\s/?#]++\S*+", re.IGNORECASE)
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Outline(NamedTuple):
    """A feed of a list."""

    url: str
    title: str = ""


class Outlines(list[Outline]):
    """The feeds of a list in their order, each once. `rejected` are (what was given, why not)."""

    def __init__(self) -> None:
        super().__init__()
        self.rejected: list[tuple[str, str]] = []


def read_opml(data: bytes) -> Outlines:
    """The feeds in an OPML document; `TidingsError` if it is none."""
    try:
        document = safe_xml(data, MAX_BYTES)
    except EventError as error:
        raise TidingsError(f"the OPML cannot be read: {error}") from None
    parser = etree.XMLParser(
        recover=True, resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(document, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise TidingsError(f"the OPML cannot be read as XML: {error}; export it again") from None
    if root is None or not isinstance(root.tag, str) or local(root).lower() != "opml":
        raise TidingsError("the document is not OPML; feed readers export their feeds in it")
    found, seen = Outlines(), set[str]()
    for body in children(root):
        for element in body.iter():
            if isinstance(element.tag, str) and local(element).lower() == "outline":
                _add(found, seen, {name.lower(): value for name, value in element.attrib.items()})
    return found


def _add(found: Outlines, seen: set[str], given: dict[str, str]) -> None:
    url = (given.get("xmlurl") or given.get("url") or "").strip()
    title = " ".join((given.get("title") or given.get("text") or "").split())[:_TITLE]
    if not url:
        if given.get("type", "").lower() in ("rss", "atom"):
            found.rejected.append(
                (title or "an outline", "it is called a feed but has no xmlUrl; give its address")
            )
        return  # a folder
    if url.lower().startswith("feed:"):
        url = url[5:] if _ADDRESS.match(url[5:]) else f"http:{url[5:]}"
    if url in seen:
        return
    if len(url) > MAX_URL or not _ADDRESS.fullmatch(url):
        found.rejected.append(
            (url[:200], "it is not an address on the web; one starts with http:// or https://")
        )
        return
    if len(found) >= MAX_OUTLINES:
        raise TidingsError(f"the OPML has more than {MAX_OUTLINES:,} feeds; split it")
    seen.add(url)
    found.append(Outline(url, title))


def write_opml(outlines: Iterable[Outline], title: str = "Feeds", created: float | None = None) -> bytes:
    """An OPML document of these feeds. `created` is in seconds since 1970."""
    root = etree.Element("opml", version="2.0")
    head = etree.SubElement(root, "head")
    etree.SubElement(head, "title").text = _NOT_XML.sub("\ufffd", title)
    if created is not None:
        etree.SubElement(head, "dateCreated").text = formatdate(created, usegmt=True)
    body = etree.SubElement(root, "body")
    for outline in outlines:
        url = _NOT_XML.sub("", outline.url)
        text = _NOT_XML.sub("\ufffd", outline.title) or url
        etree.SubElement(body, "outline", type="rss", text=text, title=text, xmlUrl=url)
    written: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)
    return written
