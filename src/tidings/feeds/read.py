"""Reads a feed of any format into events, one for each item, all in the terms of RSS 1.0.

So one subscription, `(?i, rss:title, ?t), (?i, dc:subject, ?s)`, matches RSS 0.9x, 1.0 and 2.0, Atom and JSON Feed
alike. Reading is lenient: readable parts are kept, and an unreadable item does not affect the others; a document that
is no feed is an `EventError` with the feed's name.

lxml reads the elements rather than a feed library, since those keep a fixed set of fields and drop the others:
second authors, extension modules, permanent ids.
"""

from __future__ import annotations

import html.entities
import re
from itertools import islice

from lxml import etree

from tidings.errors import EventError
from tidings.feeds import atom, jsonfeed, rss, rss1
from tidings.feeds.elements import Element, descendants, qualified
from tidings.formats.documents import MAX_BYTES, safe_text, safe_xml
from tidings.formats.namespaces import RDF
from tidings.model.event import Event

_FORBIDDEN = bytes(set(range(32)) - set(b"\t\n\r"))  # in XML; some feeds hold them all the same
_STRAY = re.compile(rb"&(?!(?:[A-Za-z][A-Za-z0-9.-]{0,63}|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});)")
_ITEM = re.compile(rb"<(?:[\w.-]+:)?(?:item|entry)[\s>/]")
_END_OF_ITEM = re.compile(rb"</(?:[\w.-]+:)?(?:item|entry)\s*>")


def read_feed(
    data: bytes,
    source: str = "",
    content_type: str | None = None,
    max_bytes: int = MAX_BYTES,
    max_items: int | None = None,
) -> list[Event]:
    """The items of a feed as events. `source` names the feed, by its address if it has one. With `max_items`, a feed
    of more is refused before any of them is read."""
    try:
        if _is_json(data, content_type):
            return jsonfeed.items(safe_text(data, max_bytes), source)
        document = safe_xml(data, max_bytes, _charset(content_type), _html_character)
        if (
            max_items is not None
            and sum(1 for _ in islice(_ITEM.finditer(document), max_items + 1)) > max_items
        ):
            raise EventError(f"it has more than {max_items:,} items; send it in parts")
        return _xml_items(_escape_ampersands(document.translate(None, _FORBIDDEN)), source)
    except EventError as error:
        raise EventError(f"{source or 'the feed'}: {error}") from None


def _is_json(data: bytes, content_type: str | None) -> bool:
    start = data[:64].lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n")[:1]
    return start == b"{" or ("json" in (content_type or "") and start != b"<")


def _charset(content_type: str | None) -> str | None:
    for parameter in (content_type or "").split(";")[1:]:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "charset":
            return value.strip(" \t\"'") or None
    return None


def _html_character(name: str) -> str | None:
    """HTML's named characters, which people use in feeds without declaring them."""
    characters = html.entities.html5.get(f"{name};")
    if characters is None or name in ("amp", "lt", "gt", "quot", "apos"):
        return None
    return "".join(f"&#{ord(character)};" for character in characters)


def _xml_items(document: bytes, source: str) -> list[Event]:
    parser = etree.XMLParser(
        recover=True, resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(document, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise EventError(f"not readable as XML: {error}") from None
    if root is None:
        raise EventError("not readable as a feed: neither XML nor JSON")
    broken = next((entry for entry in parser.error_log if entry.level_name == "FATAL"), None)
    if broken is not None:
        _drop_half_an_item(root, document)
    space, kind = qualified(root)
    if kind == "RDF" and space == RDF:
        events = rss1.items(document, root, source)
    elif kind in ("rss", "channel"):
        events = rss.items(root, source)
    elif kind in ("feed", "entry") and space in atom.NAMESPACES:
        events = atom.items(root, source)
    else:
        raise EventError(f"the document is <{kind}>, not a feed; RSS, Atom and JSON Feed are read")
    if broken is not None and not events:
        raise EventError(f"not readable as XML: {broken.message} at {broken.line}:{broken.column}")
    return events


def _drop_half_an_item(root: Element, document: bytes) -> None:
    """Removes the last item of a truncated document; a later fetch will have all of it."""
    found = descendants(root, "item", "entry")
    if len(_END_OF_ITEM.findall(document)) < len(found) and found[-1] is not root:
        found[-1].getparent().remove(found[-1])


def _escape_ampersands(document: bytes) -> bytes:
    """Replaces `&` by `&amp;` where that was meant, most often in addresses; the parser would drop what follows."""
    if _STRAY.search(document) is None:
        return document
    first, *others = document.split(b"<![CDATA[")
    parts = [_STRAY.sub(b"&amp;", first)]
    for other in others:
        section, end, rest = other.partition(b"]]>")
        parts.append(section + end + _STRAY.sub(b"&amp;", rest))
    return b"<![CDATA[".join(parts)
