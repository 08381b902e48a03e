"""Names an event for people: by its title, or else by its id, or else by its source and the line of its file.

An id that is the hash of the content, because the event came without one, names nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidings.cli.terminal import brief
from tidings.errors import TidingsError
from tidings.feeds.facts import DC, DCTERMS, RSS
from tidings.formats.namespaces import RDF, RDFS
from tidings.model.event import Event
from tidings.model.terms import Iri, Literal, plain, read_graph

_ATTRIBUTES = ("title", "name", "headline")
_TITLES = (RSS + "title", DC + "title", DCTERMS + "title", RDFS + "label")
_TYPE, _CHANNEL = Iri(RDF + "type"), Iri(RSS + "channel")
_HASH = re.compile(r"[0-9a-f]{32}")
_TRIPLES = 2_000
_PLACE = 50  # characters

Key = tuple[str, str]  # source and id of an event


def key_of(event: Event) -> Key:
    return event.source, event.id


def title_of(event: Event) -> str:
    """The title of an event, from its attributes or its graph; empty if it has none."""
    for name in _ATTRIBUTES:
        if isinstance(title := event.attributes.get(name), str) and title.strip():
            return " ".join(title.split())
    try:
        triples = read_graph(event.graph())[:_TRIPLES] if event.datacontenttype else ()
    except (TidingsError, ValueError):
        return ""
    channels = {subject for subject, predicate, kind in triples if (predicate, kind) == (_TYPE, _CHANNEL)}
    titles: dict[str, str] = {}
    for subject, predicate, object_ in triples:
        if isinstance(object_, Literal) and subject not in channels:
            titles.setdefault(plain(predicate), " ".join(object_.text.split()))
    return next((titles[name] for name in _TITLES if titles.get(name)), "")


def is_named(id: str) -> bool:
    """Whether an event's id came with the event, and is not the hash of its content."""
    return not _HASH.fullmatch(id)


@dataclass(frozen=True, slots=True)
class EventNames:
    """What is known of events beside their notifications: their titles, and FILE:LINE of those that are lines."""

    titles: Mapping[Key, str] = field(default_factory=dict)
    places: Mapping[Key, str] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[Event], wanted: set[Key], places: Mapping[Key, str]) -> EventNames:
        """The names of the wanted events: to find a title, a graph is parsed."""
        return cls({key_of(event): title_of(event) for event in events if key_of(event) in wanted}, places)

    def label(self, notification: Mapping[str, Any], shown: Iterable[str] = ()) -> str:
        """The event of a notification, as its line names it; `shown` are texts that the line has already."""
        source, id = notification["source"] or "", notification["event"]
        place = self.places.get((source, id), "")
        place = place if len(place) <= _PLACE else f"…{place[-_PLACE:]}"  # its end has the line
        name = self.titles.get((source, id)) or (id if is_named(id) else "")
        if name in {" ".join(text.split()) for text in shown}:
            return brief(source) or place or id
        return ", ".join(filter(None, [brief(name), brief(source)] if name else [brief(source), place])) or id
