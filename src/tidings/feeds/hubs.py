"""Finds the hub and the topic that a document names (WebSub, 4): in its Link headers, otherwise inside it.

The headers decide if they have both. Inside, Atom's links of a feed count, IANA's relations in RSS 1.0, `hubs` of a JSON
Feed, and links in the head of an HTML page; never those of an item, which may be somebody else's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from lxml import etree

from tidings.errors import EventError
from tidings.feeds.elements import Element, children, qualified
from tidings.feeds.rss import ATOM
from tidings.formats.documents import MAX_BYTES, safe_text, safe_xml
from tidings.formats.namespaces import RDF

RELATION = "http://www.iana.org/assignments/relation/"
MOST = 10  # hubs of one feed
_LONGEST = 2_000  # characters of an address
_LINK = re.compile(
    r"\s*<([^>]*)>((?:\s*;\s*[^\s=;,]+(?:\s*=\s*(?:\"(?:[^\"\\]|\\.)*\"|[^\s;,\"]*))?)*)\s*(?:,|$)"
)
_PARAMETER = re.compile(r";\s*([^\s=;,]+)(?:\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|([^\s;,\"]*)))?")
_HTML = re.compile(rb"^\s*(?:<!doctype\s+html|<html)", re.IGNORECASE)


class NamedHubs(NamedTuple):
    """The hubs of a document in its order, and the address by which they know it."""

    topic: str
    hubs: tuple[str, ...]


def named_hubs(
    headers: Iterable[str], body: bytes, base: str, max_bytes: int = MAX_BYTES
) -> NamedHubs | None:
    """What a document names that was fetched at `base`; None without a hub or a topic. `headers` are its Link headers."""
    for links in (_of_headers(headers), _of_body(body, max_bytes)):
        found = list(links)
        topics = [
            address for relation, href in found if relation == "self" and (address := _address(base, href))
        ]
        hubs = [
            address for relation, href in found if relation == "hub" and (address := _address(base, href))
        ]
        if topics and hubs:
            return NamedHubs(topics[0], tuple(dict.fromkeys(hubs))[:MOST])
    return None


def _address(base: str, href: str) -> str | None:
    try:
        address = urljoin(base, href.strip())
        parts = urlsplit(address)
    except ValueError:
        return None
    good = parts.scheme in ("http", "https") and parts.hostname and len(address) <= _LONGEST
    return address.partition("#")[0] if good else None


def _of_headers(headers: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(relation, address) of Link headers (RFC 8288). A link with an anchor is of another document."""
    for header in headers:
        at = 0
        while found := _LINK.match(header, at):
            at = found.end()
            given: dict[str, str] = {}
            for name, quoted, plain in _PARAMETER.findall(found[2]):
                given.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted) or plain)
            if "anchor" not in given:
                for relation in given.get("rel", "").lower().split():
                    yield relation, found[1]
            if at >= len(header):
                break


def _of_body(body: bytes, max_bytes: int) -> Iterator[tuple[str, str]]:
    try:
        if body[:64].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{":
            yield from _of_json(json.loads(safe_text(body, max_bytes)))
        elif _HTML.match(body[:1_000].removeprefix(b"\xef\xbb\xbf")):
            parser = etree.HTMLParser(no_network=True)
            yield from _of_html(etree.fromstring(safe_text(body, max_bytes), parser))
        else:
            parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True)
            yield from _of_xml(etree.fromstring(safe_xml(body, max_bytes), parser))
    except (EventError, ValueError, RecursionError, etree.LxmlError):
        return  # whether it is a feed is not decided here


def _of_json(feed: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(feed, dict):
        return
    if isinstance(address := feed.get("feed_url"), str):
        yield "self", address
    hubs = feed.get("hubs")
    for hub in hubs if isinstance(hubs, list) else ():
        if (
            isinstance(hub, dict)
            and str(hub.get("type")).lower() == "websub"
            and isinstance(hub.get("url"), str)
        ):
            yield "hub", hub["url"]


def _of_html(root: Element) -> Iterator[tuple[str, str]]:
    if root is None:
        return
    for link in root.iterfind("head/link"):
        for relation in (link.get("rel") or "").lower().split():
            yield relation, link.get("href") or ""


def _of_xml(root: Element) -> Iterator[tuple[str, str]]:
    if root is None:
        return
    channels = (child for child in children(root) if qualified(child)[1] == "channel")
    for parent in (root, *channels):
        for child in children(parent):
            space, name = qualified(child)
            if space == ATOM and name == "link":
                yield (child.get("rel") or "alternate").lower(), child.get("href") or ""
            elif space == RELATION:
                yield name, child.get(f"{{{RDF}}}resource") or ""
