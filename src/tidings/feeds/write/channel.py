"""The content of a feed, independent of the format it is written in.

Ids are URNs and never change; the caller has sanitised the HTML. Times are seconds since 1970.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime

_FORBIDDEN = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Property:
    """One more thing that a graph says of its item: a text, or the address of a resource."""

    predicate: str
    value: str
    resource: bool = False
    datatype: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One item. `summary_html` is short or all there is; `content_html` is the whole where there is more."""

    id: str
    title: str
    link: str
    updated: float
    published: float | None = None
    summary_html: str = ""
    summary_text: str = ""
    content_html: str = ""
    author: str | None = None
    categories: tuple[str, ...] = ()
    properties: tuple[Property, ...] = ()


@dataclass(frozen=True, slots=True)
class Channel:
    """A page of a feed. `url` is its own address, `link` the page for people; RFC 5005 has the pages beside it."""

    id: str
    url: str
    link: str
    title: str
    description: str
    updated: float
    entries: tuple[Entry, ...] = ()
    author: str = "Tidings"
    next_url: str | None = None
    previous_url: str | None = None
    hub: str | None = None  # which pushes it (WebSub)

    @property
    def pages(self) -> dict[str, str]:
        """The addresses of this page and those beside it, by relation."""
        beside = {"self": self.url, "next": self.next_url, "previous": self.previous_url}
        return {relation: address for relation, address in beside.items() if address}

    @property
    def links(self) -> dict[str, str]:
        """The same, and the hub."""
        return self.pages | ({"hub": self.hub} if self.hub else {})


def printable(text: str) -> str:
    """`text` without what XML forbids and UTF-8 has no bytes for: controls, halves of characters."""
    return _FORBIDDEN.sub("\ufffd", text)


def moment(at: float) -> str:
    """Seconds since 1970 as "2026-11-16T10:06:50.123Z"."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def rfc822(at: float) -> str:
    """Seconds since 1970 as "Mon, 16 Nov 2026 10:06:50 GMT"."""
    return format_datetime(datetime.fromtimestamp(at // 1, UTC), usegmt=True)
