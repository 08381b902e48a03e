"""Records which attributes events have and what their values can be compared as, and which properties their graphs have.

Names and values are bounded: of an event, of a name and in all. Once there are more than are kept, an unknown name says nothing
(`is_full`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice

from tidings.errors import TidingsError
from tidings.formats.rdf import NTRIPLES, is_rdf
from tidings.model.attributes import flatten
from tidings.model.batch import ENVELOPE, attributes_of
from tidings.model.event import Event
from tidings.model.terms import unescape
from tidings.model.values import views

_NAMES = 5_000
_OF_ONE_EVENT = 1_000
_VALUES = 50  # of a name and of a Python type, whose kinds are looked at
# The property of a line of N-Triples, also of one that is not canonical.
_PROPERTY = re.compile(rb"^[ \t]*+(?:<[^>\n]*+>|_:[^\s<]++)[ \t]*+<([^>\n]*+)>", re.MULTILINE)


class ObservedAttributes:
    """The attributes of events, by their paths, and the properties of graphs, by their IRIs. `events_are` names these events
    in sentences: "recent event"."""

    def __init__(self, events_are: str) -> None:
        self.events_are = events_are
        self.is_full = False
        self._kinds: dict[str, set[str]] = {}
        self._looked: Counter[tuple[str, type]] = Counter()
        self.properties_are_full = False
        self.properties: Counter[str] = Counter()
        """How many graphs have each property."""
        self._events = self._graphs = 0

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def __contains__(self, path: str) -> bool:
        return path in self._kinds or path in ENVELOPE

    @property
    def are_mostly_graphs(self) -> bool:
        return 2 * self._graphs > self._events

    def names(self) -> list[str]:
        return list(self._kinds)

    def kinds(self, path: str) -> frozenset[str]:
        """What the values at a path can be compared as; empty if none was seen."""
        return frozenset(self._kinds.get(path, ()))

    def add(self, path: str) -> set[str]:
        """Adds a name; returns the kinds of its values, for more of them."""
        if path not in self._kinds and len(self._kinds) >= _NAMES:
            self.is_full = True
            return set()
        return self._kinds.setdefault(path, set())

    def observe(self, events: Iterable[Event]) -> None:
        for event in events:
            found = flatten(attributes_of(event))
            for path, value in islice(found, _OF_ONE_EVENT):
                kinds = self.add(path)
                if self._looked[path, type(value)] < _VALUES:
                    self._looked[path, type(value)] += 1
                    kinds.update(kind for kind, _ in views(value))
            if next(found, None) is not None:
                self.is_full = True
            self._observe_graph(event)

    def _observe_graph(self, event: Event) -> None:
        self._events += 1
        if not is_rdf(event.datacontenttype):
            return
        self._graphs += 1
        try:
            graph = event.data if event.datacontenttype == NTRIPLES else event.graph()
        except TidingsError:  # no subscription matches it
            return
        found = (match[1] for match in _PROPERTY.finditer(graph))
        for name in {unescape(name.decode(errors="replace")) for name in islice(found, _OF_ONE_EVENT)}:
            if name in self.properties or len(self.properties) < _NAMES:
                self.properties[name] += 1
            else:
                self.properties_are_full = True
        if next(found, None) is not None:
            self.properties_are_full = True
