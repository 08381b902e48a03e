"""The forest of containment of an index: for each subscription one that contains it. RSS cluster, 4.2.

Candidates come by matching. A witness of B is an event made to match B, so whatever contains B matches it too: an index finds
all candidates at once. Each is then verified, patterns in columns (pattern_rows.py), all others by `contains`.

Containers are ordered by how many containers they have themselves, so that a root comes first, then by their
numbers. A parent always comes before its child in this order: no circle arises, and of equal subscriptions the one
with the lowest number is the parent of the others. The order of a subscription depends on its own containers alone, so
ranges of an index can be done apart (`parents_of`).

Only subscriptions that a division can move have parents, and only they are parents: they are found by their filters and
patterns, which see every event.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from tidings.containment.contains import contains
from tidings.containment.pattern_rows import PatternRows
from tidings.containment.witness import witness
from tidings.engine.engine import Engine
from tidings.engine.pipeline import find
from tidings.engine.plan import RESIDUALS
from tidings.kinds.patterns.kind import PatternFinder
from tidings.language.query import Query
from tidings.model.batch import Batch
from tidings.model.event import Event, to_table

NONE = -1
_EVENTS_AT_ONCE = 1 << 10
_REMEMBERED = 100_000
_FEW = 0.9  # of the subscriptions: if fewer are distinct, an index of these alone is made


def parents(engine: Engine) -> np.ndarray:
    """For each live subscription of the index, in their order, the position of one that contains it, or -1. It folds the
    index, so that positions are numbers."""
    engine.index.fold()
    return parents_of(engine, np.arange(len(engine.index.subscriptions)))


def parents_of(engine: Engine, numbers: np.ndarray) -> np.ndarray:
    """The same for some of the numbers of an index that was folded."""
    equal = _first_equal(engine)
    divisible = engine.index.divisible()
    distinct = np.flatnonzero(divisible & (equal == np.arange(len(equal))))
    forest = _Forest(engine if len(distinct) > _FEW * len(equal) else _part(engine, distinct), distinct)
    wanted = np.unique(equal[numbers[divisible[numbers]]])
    found = np.full(len(equal), NONE, dtype=np.int64)
    found[wanted] = forest.parents(wanted)
    chosen = found[numbers]
    is_copy = divisible[numbers] & (equal[numbers] != numbers)
    chosen[is_copy] = equal[numbers[is_copy]]
    return chosen


def _first_equal(engine: Engine) -> np.ndarray:
    """Of each subscription the first one that is the same: by its one row of patterns, or by its text."""
    index = engine.index
    rows = _single_rows(engine)
    patterns = _pattern_rows(engine)
    known: dict[bytes | str, int] = {}
    found = np.arange(len(index.subscriptions))
    for number in np.flatnonzero(index.divisible()).tolist():
        row = int(rows[number])
        key = patterns.key(row) if row >= 0 and patterns else index.subscriptions.text(number)
        found[number] = known.setdefault(key, number)
    return found


def _pattern_rows(engine: Engine) -> PatternRows | None:
    owned = engine.index.base.finders.get("patterns")
    if owned is None:
        return None
    assert isinstance(owned.finder, PatternFinder)
    return PatternRows(owned.finder.index, engine.taxonomy)


def _single_rows(engine: Engine) -> np.ndarray:
    """Of each subscription the row of patterns that is all of it, or -1."""
    index = engine.index
    count = len(index.subscriptions)
    ways, row_of = np.zeros(count, dtype=np.int64), np.full(count, NONE)
    for name, owners in index.base.owners.items():
        owner = owners.arrays()[0]
        ways += np.bincount(owner, minlength=count)
        if name == "patterns":
            row_of[owner] = np.arange(len(owner))
    return np.where((ways == 1) & ~index.way_rows[RESIDUALS].has(count), row_of, NONE)


def _part(engine: Engine, numbers: np.ndarray) -> Engine:
    """An engine with some of the subscriptions."""
    chosen = np.zeros(len(engine.index.subscriptions), dtype=np.bool_)
    chosen[numbers] = True
    part = Engine(taxonomy=engine.taxonomy, prefixes=engine.prefixes, kinds=engine.own_kinds)
    part.index.take_over(engine.index, chosen)
    part.index.fold()
    return part


class _Forest:
    """The distinct subscriptions of an index: `names` are their numbers in the whole. The engine has them alone, or all."""

    def __init__(self, engine: Engine, names: np.ndarray) -> None:
        self._engine, self._names = engine, names
        count = len(engine.index.subscriptions)
        is_part = count == len(names)
        self._number = np.arange(len(names)) if is_part else names  # in the engine
        self._place = np.full(count, NONE)
        self._place[self._number] = np.arange(len(names))
        self._patterns = _pattern_rows(engine)
        self._rows = _single_rows(engine)
        self._query = lru_cache(_REMEMBERED)(self._read)

    def parents(self, wanted: np.ndarray) -> np.ndarray:
        """The parents of some, all given by their numbers in the whole."""
        at = np.searchsorted(self._names, wanted)
        child, container = self._containers(at)
        others = np.setdiff1d(container, at)
        if len(others):
            more = self._containers(others)
            counts = np.bincount(np.concatenate([child, more[0]]), minlength=len(self._names))
        else:
            counts = np.bincount(child, minlength=len(self._names))
        order = np.lexsort((container, self._triples[container], counts[container], child))
        child, container = child[order], container[order]
        rank = counts * len(self._names) + np.arange(len(self._names))
        above = rank[container] < rank[child]
        child, container = child[above], container[above]
        found = np.full(len(self._names), NONE)
        first = np.unique(child, return_index=True)[1]
        found[child[first]] = self._names[container[first]]
        return found[at]

    @cached_property
    def _triples(self) -> np.ndarray:
        owned = self._engine.index.base.finders.get("patterns")
        if owned is None or self._patterns is None:
            return np.zeros(len(self._names), dtype=np.int64)
        counts = np.bincount(owned.subscription, self._patterns.triples, minlength=len(self._place))
        return counts[self._number]

    def _containers(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All pairs of one of these and another that contains it, as places among the distinct ones."""
        rows = self._rows[self._number[at]]
        in_columns = rows >= 0
        if self._patterns is not None:
            in_columns[in_columns] = self._patterns.has_witness[rows[in_columns]]
        found = [np.zeros((0, 2), dtype=np.int64)]
        found += self._of_patterns(rows[in_columns])
        found += self._of_others(at[~in_columns])
        pairs = np.unique(np.concatenate(found), axis=0)
        return pairs[:, 0], pairs[:, 1]

    def _of_patterns(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Those of rows of patterns that have witnesses."""
        owned = self._engine.index.base.finders.get("patterns")
        if owned is None or self._patterns is None or not len(rows):
            return
        residual = self._engine.index.way_rows[RESIDUALS].has(len(self._place))
        for found in self._patterns.containers(rows):
            child, container = (owned.subscription[each] for each in (found.row, found.container))
            keep = (child != container) & (self._place[container] >= 0)
            is_proven = (found.is_proven & ~residual[container])[keep]
            pairs = self._place[np.column_stack([child[keep], container[keep]])]
            proven = pairs[is_proven]
            rest = np.unique(pairs[~is_proven], axis=0)
            holds = [self._contains(container, child) for child, container in rest.tolist()]
            yield np.concatenate([proven, rest[np.array(holds, dtype=np.bool_)]])

    def _of_others(self, at: np.ndarray) -> Iterator[np.ndarray]:
        """Those of any others, by events."""
        events, places = list[Event](), list[int]()
        for place in at.tolist():
            event = witness(self._query(place), self._engine.taxonomy)
            if event is not None:
                events.append(event)
                places.append(place)
            if len(events) == _EVENTS_AT_ONCE:
                yield self._verified(to_table(events), np.array(places))
                events, places = [], []
        if events:
            yield self._verified(to_table(events), np.array(places))

    def _verified(self, events: pa.Table, at: np.ndarray) -> np.ndarray:
        """The containers of subscriptions whose witnesses these are."""
        index, batch = self._engine.index_snapshot(), Batch(events)
        pairs = find(batch, index)
        pairs = pairs.take(self._place[pairs.subscription] >= 0)
        for checker in index.checkers:
            if checker.name == RESIDUALS:
                pairs = checker.check(batch, pairs)
        found = np.unique(np.column_stack([at[pairs.event], self._place[pairs.subscription]]), axis=0)
        holds = [
            child != container and self._contains(container, child) for child, container in found.tolist()
        ]
        return found[np.array(holds, dtype=np.bool_)]

    def _contains(self, a: int, b: int) -> bool:
        return contains(self._query(a), self._query(b), self._engine.taxonomy).holds

    def _read(self, place: int) -> Query:
        return self._engine.tree(self._engine.index.subscriptions.text(int(self._number[place])))
