"""Keeps what is asked for upstream small: of all subscriptions those that contain the others, each text once.

Invariant: every subscription is contained in one that is registered. Whatever contains a subscription matches the events made
to match it (containment/witness.py), so an engine of the registered ones finds all candidates, and `contains` decides; a
"no" of it that means "not sure" costs one filter more, never an event. Select-joins, 2.1; RSS cluster, 4.2.

Upstream knows neither operators nor networks, so a filter is registered without them: it is wider, and whoever asked for it
decides in full.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from tidings.containment.contains import contains
from tidings.containment.forest import parents, without_circles
from tidings.containment.witness import witnesses
from tidings.engine.engine import Engine
from tidings.language.printer import to_text
from tidings.language.query import (
    And,
    Attribute,
    Call,
    Condition,
    Exists,
    KindCondition,
    Not,
    Or,
    Query,
    TriplePattern,
    Variable,
    leaves,
    variables,
)
from tidings.model.event import Event, to_table
from tidings.model.taxonomy import Taxonomy

_WITNESSES = 4  # events by which candidates are found
_MANY = 64  # new filters, from which on they are first compared with each other, all at once
_COMPARED = 64  # candidates that are compared with a subscription
EVERYTHING = Exists(Attribute("id"))
"""What every event satisfies: each has an id."""


class Changed(NamedTuple):
    """The texts to register upstream first, and those to withdraw then."""

    register: list[str]
    withdraw: list[str]


@dataclass(eq=False, slots=True)
class _Filter:
    """A text that somebody asks for. `cover` is the text of a registered one that contains it, None if it is registered
    itself; `covered` are the texts that it is the cover of."""

    text: str
    query: Query
    witnesses: list[Event]
    ids: set[str] = field(default_factory=set)
    cover: str | None = None
    covered: set[str] = field(default_factory=set)


class Covering:
    """The subscriptions of one node, and the few that cover them."""

    def __init__(self, taxonomy: Taxonomy | None = None) -> None:
        self._taxonomy = Taxonomy() if taxonomy is None else taxonomy
        self._filters: dict[str, _Filter] = {}
        self._texts: dict[str, str] = {}  # by id
        self._roots = Engine(taxonomy=self._taxonomy)  # of those that are registered
        self._registered: dict[str, _Filter] = {}

    @property
    def registered(self) -> set[str]:
        """The texts that are registered upstream."""
        return set(self._registered)

    def __len__(self) -> int:
        return len(self._texts)

    def cover_of(self, id: str) -> str | None:
        """The text that is registered for a subscription."""
        text = self._texts.get(id)
        return None if text is None else self._filters[text].cover or text

    def ids_of(self, text: str) -> list[str]:
        """The subscriptions that are registered as this text, without those that it merely covers."""
        return sorted(self._filters[text].ids) if text in self._filters else []

    def update(self, added: Mapping[str, Query], removed: Iterable[str]) -> Changed:
        """Adds subscriptions, in place of those with the same ids, and removes others. The covers of those that lose
        theirs are found after all were added."""
        journal, homeless = self._touched(), dict[str, None]()
        for id in removed:
            self._leave(id, homeless)
        # Short texts first: most are wider, and then nothing has to be moved below them later.
        widened = {id: widest(query) for id, query in added.items()}
        named = sorted(((to_text(query), id, query) for id, query in widened.items()), key=_by_length)
        for text, id, query in named:
            if self._texts.get(id) == text:
                continue
            self._leave(id, homeless)
            self._texts[id] = text
            if (known := self._filters.get(text)) is None:
                known = self._filters[text] = self._made(text, query)
                homeless[text] = None
            known.ids.add(id)
        waiting = [self._filters[text] for text in sorted(homeless, key=len) if text in self._filters]
        if len(waiting) > _MANY:
            others = list(self._registered.values())  # none of the group contains another of it
            for filter in self._group(waiting):
                self._find_place(filter, others)
        else:
            for filter in waiting:
                self._find_place(filter, self._registered.values())
        return journal.changed()

    def _group(self, waiting: Sequence[_Filter]) -> list[_Filter]:
        """Puts many filters below others of them, all at once; returns those that nothing among them contains."""
        engine = Engine(taxonomy=self._taxonomy)
        for filter in waiting:
            _subscribe(engine, filter.text, filter.query)
        above = without_circles(parents(engine)).tolist()
        for at, filter in enumerate(waiting):
            top = at
            while above[top] >= 0:
                top = above[top]
            if top != at:
                filter.cover = waiting[top].text
                waiting[top].covered.add(filter.text)
        return [filter for at, filter in enumerate(waiting) if above[at] < 0]

    def _touched(self) -> _Journal:
        self._journal = _Journal()
        return self._journal

    def _made(self, text: str, query: Query) -> _Filter:
        made = [] if query.where == EVERYTHING else list(islice(witnesses(query, self._taxonomy), _WITNESSES))
        return _Filter(text, query, made)

    def _leave(self, id: str, homeless: dict[str, None]) -> None:
        """Takes a subscription away; what its filter has covered is without a cover then."""
        if (text := self._texts.pop(id, None)) is None:
            return
        filter = self._filters[text]
        filter.ids.discard(id)
        if filter.ids:
            return
        del self._filters[text]
        if text in homeless:  # its cover has left before, in the same update
            del homeless[text]
            return
        if filter.cover is not None:
            self._filters[filter.cover].covered.discard(text)
            return
        self._unregister(text)
        for covered in filter.covered:
            self._filters[covered].cover = None
            homeless[covered] = None

    def _find_place(self, filter: _Filter, known: Collection[_Filter]) -> None:
        """Puts a filter below one that contains it, or registers it, with those of the known ones below it that it contains."""
        if (known or _ALL in self._registered) and (cover := self._find_cover(filter)) is not None:
            self._put_below(filter, cover)
            return
        contained = self._contained(filter, [other for other in known if other.cover is None])
        _subscribe(self._roots, filter.text, filter.query)
        self._registered[filter.text] = filter
        self._journal.registered(filter.text)
        for below in contained:
            self._unregister(below.text)
            self._put_below(below, filter)

    def _put_below(self, filter: _Filter, cover: _Filter) -> None:
        """With all that it has covered."""
        for text in (filter.text, *filter.covered):
            self._filters[text].cover = cover.text
            cover.covered.add(text)
        filter.covered = set()

    def _find_cover(self, filter: _Filter) -> _Filter | None:
        if (everything := self._registered.get(_ALL)) is not None:
            return everything
        if not filter.witnesses:
            return None
        for text in sorted(self._roots.candidates(filter.witnesses), key=len)[:_COMPARED]:
            if contains(self._registered[text].query, filter.query, self._taxonomy):
                return self._registered[text]
        return None

    def _contained(self, filter: _Filter, known: Collection[_Filter]) -> list[_Filter]:
        """The registered filters that one contains, found by the events made to match them."""
        if filter.text == _ALL:
            return list(known)
        names = [(other, event) for other in known for event in other.witnesses[:1]]
        if not names:
            return []
        probe = Engine(taxonomy=self._taxonomy)
        _subscribe(probe, "probe", filter.query)
        made = [
            Event(str(at), event.attributes, "w", event.type, event.time, event.datacontenttype, event.data)
            for at, (_, event) in enumerate(names)
        ]
        matched = probe.match(to_table(made).combine_chunks().to_batches()[0])
        hit = {int(source) for source in matched.column("source").to_pylist()}
        return [
            other
            for at, (other, _) in enumerate(names)
            if at in hit and contains(filter.query, other.query, self._taxonomy)
        ]

    def _unregister(self, text: str) -> None:
        self._roots.unsubscribe(text)
        del self._registered[text]
        self._journal.withdrawn(text)


class _Journal:
    """What an update has registered and withdrawn; one that comes to nothing is left out."""

    def __init__(self) -> None:
        self._changes: dict[str, int] = {}

    def registered(self, text: str) -> None:
        self._changes[text] = self._changes.get(text, 0) + 1

    def withdrawn(self, text: str) -> None:
        self._changes[text] = self._changes.get(text, 0) - 1

    def changed(self) -> Changed:
        return Changed(
            [text for text, sum in self._changes.items() if sum > 0],
            [text for text, sum in self._changes.items() if sum < 0],
        )


def widest(query: Query) -> Query:
    """The subscription without what upstream cannot decide: operators, what they bind, networks, and the choice of
    columns. Every event that the subscription matches it matches, too."""
    where = query.where
    while True:
        bound = {
            name for leaf in leaves(where) if isinstance(leaf, TriplePattern) for name in variables(leaf)
        }
        if (wider := _without(where, bound)) == where:
            break
        if wider is None:
            where = EVERYTHING
            break
        where = wider
    if where == And(()):
        where = EVERYTHING
    return Query(where, stream=query.stream, joined=query.joined)


def _without(condition: Condition, bound: set[Variable]) -> Condition | None:
    """The condition without unknown parts; None if nothing is left of it. In OR one unknown part makes all of it unknown."""
    if isinstance(condition, And):
        if not condition.parts:
            return condition
        kept = [part for each in condition.parts if (part := _without(each, bound)) is not None]
        return None if not kept else kept[0] if len(kept) == 1 else And(tuple(kept))
    if isinstance(condition, Or):
        parts: Sequence[Condition | None] = [_without(each, bound) for each in condition.parts]
        return None if None in parts else Or(tuple(part for part in parts if part is not None))
    if isinstance(condition, Not):  # a wider part would make the whole narrower
        return condition if _is_known(condition.part, bound) else None
    return condition if _is_known(condition, bound) else None


def _is_known(condition: Condition, bound: set[Variable]) -> bool:
    return not any(isinstance(leaf, Call | KindCondition) for leaf in leaves(condition)) and all(
        name in bound for name in variables(condition)
    )


def _subscribe(engine: Engine, id: str, query: Query) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # whoever subscribed was told
        engine.subscribe(id, query)


def _by_length(item: tuple[str, str, Query]) -> tuple[int, str, str]:
    text, id, _ = item
    return len(text), text, id


_ALL = to_text(Query(EVERYTHING))
