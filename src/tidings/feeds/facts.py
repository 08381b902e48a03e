"""Facts: the triples of a feed about one node, an item or a channel, in the terms of RSS 1.0.

The readers of the formats fill `Facts`; `make_event` makes an item's facts and its channel's into one event. An event's
id is the hash of its feed, the item and what is said about it, so reading the same item again gives the same
id, whatever else of the feed has changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from urllib.parse import urljoin

import pyoxigraph as ox

from tidings.errors import EventError
from tidings.feeds.dates import utc
from tidings.formats.namespaces import RDF, XSD
from tidings.formats.rdf import NTRIPLES
from tidings.model.event import Event

RSS = "http://purl.org/rss/1.0/"
DC = "http://purl.org/dc/elements/1.1/"
DCTERMS = "http://purl.org/dc/terms/"
CONTENT = "http://purl.org/rss/1.0/modules/content/"
ENC = "http://purl.oclc.org/net/rss_2.0/enc#"

DATES = frozenset(
    {DC + "date"} | {DCTERMS + name for name in "modified created issued available date".split()}
)
DATE_TIME = ox.NamedNode(XSD + "dateTime")

MAX_EVENTS_BYTES = 64 << 20  # of one document

Node = ox.NamedNode | ox.BlankNode
Value = ox.NamedNode | ox.BlankNode | ox.Literal

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]+")
_NOT_IN_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\\x7f]')
_SURROGATE = re.compile("[\ud800-\udfff]")


class Facts:
    """Triples about `node`, in the order of the feed, without repetitions."""

    def __init__(self, node: Node, kind: str) -> None:
        self.node = node
        self._triples: dict[ox.Triple, None] = {}
        self.add(RDF + "type", ox.NamedNode(RSS + kind))

    def add(self, predicate: str, value: Value) -> None:
        self._triples[ox.Triple(self.node, ox.NamedNode(predicate), value)] = None

    def text(self, predicate: str, value: str | None) -> None:
        """A text; a date where the predicate wants one; nothing if it is empty."""
        value = _SURROGATE.sub("\ufffd", value or "").strip()
        if value:
            self.add(predicate, date_literal(value) if predicate in DATES else ox.Literal(value))

    def link(self, predicate: str, address: str | None, base: str = "") -> ox.NamedNode | None:
        """A resource; a text if its address is none."""
        node = iri(address, base)
        if node is None:
            self.text(predicate, address)
        else:
            self.add(predicate, node)
        return node

    def enclosure(
        self, address: str | None, media_type: str | None, length: str | None, base: str = ""
    ) -> None:
        node = self.link(ENC + "enclosure", address, base)
        if node is not None and media_type:
            self.extend([ox.Triple(node, ox.NamedNode(ENC + "type"), ox.Literal(media_type.strip()))])
        if node is not None and length and length.strip().isdecimal():
            size = ox.Literal(length.strip(), datatype=ox.NamedNode(XSD + "integer"))
            self.extend([ox.Triple(node, ox.NamedNode(ENC + "length"), size)])

    def extend(self, triples: Iterable[ox.Triple]) -> None:
        """Triples as they are, also about other nodes."""
        self._triples.update(dict.fromkeys(triples))

    def values(self, predicate: str) -> list[str]:
        return [
            t.object.value
            for t in self._triples
            if t.subject == self.node and t.predicate.value == predicate and isinstance(t.object, ox.Literal)
        ]

    def first(self, *predicates: str) -> str | None:
        return next((value for predicate in predicates for value in self.values(predicate)), None)

    def ntriples(self) -> bytes:
        return ox.serialize(self._triples, format=ox.RdfFormat.N_TRIPLES) or b""


def make_event(item: Facts, channel: Facts, identity: str, source: str) -> Event:
    """One item with its channel's facts."""
    triples = item.ntriples()
    digest = blake2b(f"{source}\0{identity}\0".encode(errors="replace"), digest_size=16)
    digest.update(b"\n".join(sorted(triples.splitlines())))
    member = f"{channel.node} <{RSS}items> {item.node} .\n".encode()
    return Event(
        id=digest.hexdigest(),
        source=source,
        type="feed.item",
        time=next(filter(None, map(utc, item.values(DC + "date") + item.values(DCTERMS + "modified"))), None),
        datacontenttype=NTRIPLES,
        data=triples + member + channel.ntriples(),
    )


def channel_title(event: Event) -> str:
    """The title of the feed that an event is an item of; "" if it has none."""
    triples = list(ox.parse(event.data, format=ox.RdfFormat.N_TRIPLES))
    channels = {t.subject for t in triples if t.object == ox.NamedNode(RSS + "channel")}
    titles = (
        t.object.value
        for t in triples
        if t.subject in channels and t.predicate.value == RSS + "title" and isinstance(t.object, ox.Literal)
    )
    return next(titles, "")


def limit_size(events: Iterable[Event]) -> list[Event]:
    """The events of one document, limited in total size: each contains the channel, so a document with a long channel
    and many short items could grow to any size."""
    found, size = [], 0
    for event in events:
        size += len(event.data)
        if size > MAX_EVENTS_BYTES:
            raise EventError(
                f"the feed's items, each with what the feed says of itself, are more than {MAX_EVENTS_BYTES:,} bytes;"
                " shorten it"
            )
        found.append(event)
    return found


def date_literal(value: str) -> ox.Literal:
    moment = utc(value)
    return ox.Literal(value) if moment is None else ox.Literal(moment, datatype=DATE_TIME)


def iri(address: str | None, base: str = "") -> ox.NamedNode | None:
    """The resource at `address`, which may be relative to `base` and carelessly written; None if there is none."""
    address = _SURROGATE.sub("\ufffd", address or "").strip()
    if not address:
        return None
    try:
        if not _ABSOLUTE.match(address):
            address = urljoin(base, address)
        if not _ABSOLUTE.match(address):
            return None
        return ox.NamedNode(_NOT_IN_IRI.sub(lambda found: f"%{ord(found[0]):02X}", address))
    except ValueError:
        return None


def make_node_name(kind: str, *identity: str) -> ox.NamedNode:
    """A name for a node that has no address."""
    digest = blake2b("\0".join(identity).encode(errors="replace"), digest_size=16)
    return ox.NamedNode(f"urn:tidings:{kind}:{digest.hexdigest()}")
