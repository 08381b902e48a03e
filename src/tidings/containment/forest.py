"""The forest of containment of an index: for each subscription one that contains it. RSS cluster, 4.2.

Candidates come by matching: whatever contains B matches a witness of B, an event made to match B, so an index finds all
candidates at once. Patterns are matched and verified in columns (pattern_rows.py), all others by `witness` and `contains`. The most
general candidate, which has the fewest candidates itself, is looked at first.

Of equal subscriptions the first one is the parent of the others, which are not looked at: copies are found by their rows
or texts. Of two that are written differently and contain each other, the one that *precedes* is the parent.

Where everything contains nearly everything (`price > 1`, `price > 2`, …), there would be too many candidates. A sample
of the subscriptions is looked through first. What has a container there is settled, and what has none has few others.
Members of a sample precede the rest, then lower numbers do.

Only subscriptions that a division can move have parents, and only they are parents: their filters and patterns see every
event.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from tidings.containment.contains import contains
from tidings.containment.pattern_rows import PatternRows
from tidings.containment.witness import witness
from tidings.engine.engine import Engine
from tidings.engine.pipeline import candidates
from tidings.engine.plan import RESIDUALS
from tidings.engine.segment import OwnedFinder
from tidings.kinds.patterns.kind import PatternFinder
from tidings.language.query import Query
from tidings.model.batch import Batch
from tidings.model.event import Event, to_table

NONE = -1
_EVENTS_AT_ONCE = 1 << 8  # each may have every subscription as a candidate
_REMEMBERED = 100_000
_FEW = 0.9  # of the subscriptions: if fewer are distinct, an index of these alone is made
_SAMPLE, _GROWTH = 1 << 8, 16
_MANY = 64  # containers that a subscription is expected to have, which make samples worth while


def parents(engine: Engine) -> np.ndarray:
    """For each live subscription of the index, in their order, the position of one that contains it, or -1. It folds the
    index, so that positions are numbers."""
    engine.index.fold()
    return without_circles(parents_of(engine, np.arange(len(engine.index.subscriptions))))


def parents_of(engine: Engine, numbers: np.ndarray) -> np.ndarray:
    """The same for some of the numbers of an index that was folded; those of all together go through `without_circles`."""
    divisible = engine.index.divisible()[numbers]
    equal = _first_equal(engine)
    forest = _Forest(engine, np.unique(equal[equal >= 0]))
    wanted = np.unique(equal[numbers[divisible]])
    found = np.full(len(equal), NONE, dtype=np.int64)
    found[wanted] = forest.parents(wanted)
    chosen = np.where(divisible, found[equal[numbers]], NONE)
    return np.where((chosen < 0) & (equal[numbers] != numbers), equal[numbers], chosen)


def without_circles(parents: np.ndarray) -> np.ndarray:
    """Parents of which none is below its own child. `contains` may know that A contains B and B contains C, all three being equal, and that
    C contains A, and not the rest: then the lowest of them becomes a root."""
    found = parents.copy()
    above = np.append(found, NONE)  # what is above a root is NONE
    for _ in range(max(1, len(found)).bit_length()):
        above = above[above]
    for number in np.unique(above[above >= 0]).tolist():
        circle = [number]
        while found[circle[-1]] >= 0 and found[circle[-1]] not in circle:
            circle.append(int(found[circle[-1]]))
        if found[circle[-1]] >= 0:
            found[min(circle[circle.index(int(found[circle[-1]])) :])] = NONE
    return found


def _first_equal(engine: Engine) -> np.ndarray:
    """Of each subscription that may have parents the first one that is the same: by its one row of patterns, or by its text."""
    index, patterns = engine.index, _patterns(engine)
    rows = _single_rows(engine)
    in_columns = None if patterns is None else PatternRows(_finder(patterns).index, engine.taxonomy)
    known: dict[bytes | str, int] = {}
    found = np.full(len(index.subscriptions), NONE)
    for number in np.flatnonzero(index.divisible()).tolist():
        row = int(rows[number])
        key = in_columns.key(row) if row >= 0 and in_columns else index.subscriptions.text(number)
        found[number] = known.setdefault(key, number)
    return found


def _patterns(engine: Engine) -> OwnedFinder | None:
    return engine.index.base.finders.get("patterns")


def _finder(owned: OwnedFinder) -> PatternFinder:
    assert isinstance(owned.finder, PatternFinder)
    return owned.finder


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


class _Level(NamedTuple):
    """An engine in which containers are looked for, and the place of each of its subscriptions; -1 for those that have none."""

    engine: Engine
    place: np.ndarray


class _Candidates(NamedTuple):
    """`container[i]` matches the witness of `child[i]`; it is certain or open whether it contains it."""

    child: np.ndarray
    container: np.ndarray
    is_proven: np.ndarray


class _Forest:
    """The distinct subscriptions of an index, by their places among them; `names` are their numbers."""

    def __init__(self, engine: Engine, names: np.ndarray) -> None:
        self._names = names
        whole = len(names) > _FEW * len(engine.index.subscriptions)
        self._engine = engine if whole else _part(engine, names)
        self._number = names if whole else np.arange(len(names))  # in that engine
        self._owned = _patterns(self._engine)
        self._rows = _single_rows(self._engine)[self._number]
        self._level = np.full(len(names), 1 << 10)  # of the first sample that has it
        self._query = lru_cache(_REMEMBERED)(self._read)

    def parents(self, wanted: np.ndarray) -> np.ndarray:
        """The parents of some, all given by their numbers in the whole."""
        at = np.searchsorted(self._names, wanted)
        found = np.full(len(self._names), NONE)
        for level in self._levels:
            left = at[found[at] < 0]
            candidates = self._candidates(left, level)
            others = np.setdiff1d(candidates.container, left)
            more = self._candidates(others, level)
            everything = _Candidates(*map(np.concatenate, zip(candidates, more, strict=True)))
            is_left = np.zeros(len(self._names), dtype=np.bool_)
            is_left[left] = True
            self._choose(everything, is_left, found)
        return np.where(found[at] >= 0, self._names[found[at]], NONE)

    @cached_property
    def _patterns(self) -> PatternRows | None:
        return None if self._owned is None else PatternRows(_finder(self._owned).index, self._engine.taxonomy)

    @cached_property
    def _levels(self) -> list[_Level]:
        """Samples, each much larger than the one before, if there are many containers; then all."""
        count, size = len(self._names), _SAMPLE
        place = np.full(len(self._engine.index.subscriptions), NONE)
        place[self._number] = np.arange(count)
        levels: list[_Level] = []
        order = np.random.default_rng(count).permutation(count)
        while 8 * size <= count:
            sample = np.sort(order[:size])
            levels.append(_Level(_part(self._engine, self._number[sample]), sample))
            if len(levels) == 1:
                pairs = len(self._candidates(sample, levels[0]).child)
                if pairs / size * count / size < _MANY:
                    levels.clear()
                    break
            self._level[sample] = np.minimum(self._level[sample], len(levels))
            size *= _GROWTH
        return [*levels, _Level(self._engine, place)]

    # ------------------------------------------------------------------ the choice

    def _choose(self, candidates: _Candidates, is_left: np.ndarray, found: np.ndarray) -> None:
        """Notes a parent for each that is left and has a container."""
        count = len(self._names)
        child, container, is_proven = candidates
        sizes = np.bincount(child, minlength=count)
        keys = child * count + container
        is_mutual = np.isin(container * count + child, keys)
        precedes = np.lexsort((np.arange(count), self._level)).argsort()
        is_above = ~is_mutual | (precedes[container] < precedes[child])
        triples = np.where(is_mutual, 0, self._triples[container])  # of equal ones the first counts
        order = np.lexsort((precedes[container], triples, sizes[container], child))
        order = order[is_left[child[order]]]
        sure = order[(is_proven & is_above)[order]]
        first = np.unique(child[sure], return_index=True)[1]
        found[child[sure[first]]] = container[sure[first]]
        for pair in order[found[child[order]] < 0].tolist():
            a, b = int(container[pair]), int(child[pair])
            if found[b] >= 0 or not (is_proven[pair] or self._contains(a, b)):
                continue
            if is_above[pair] or not self._contains(b, a):
                found[b] = a

    @cached_property
    def _triples(self) -> np.ndarray:
        if self._owned is None or self._patterns is None:
            return np.zeros(len(self._names))
        count = len(self._engine.index.subscriptions)
        return np.bincount(self._owned.subscription, self._patterns.triples, minlength=count)[self._number]

    def _contains(self, a: int, b: int) -> bool:
        return contains(self._query(a), self._query(b), self._engine.taxonomy).holds

    def _read(self, place: int) -> Query:
        return self._engine.tree(self._engine.index.subscriptions.text(int(self._number[place])))

    # ------------------------------------------------------------------ candidates

    def _candidates(self, at: np.ndarray, level: _Level) -> _Candidates:
        """Which of a level match the witnesses of these."""
        rows = self._rows[at]
        in_columns = rows >= 0
        if self._patterns is not None:
            in_columns[in_columns] = self._patterns.have_witnesses(rows[in_columns])
        nothing = np.zeros(0, dtype=np.int64)
        parts = [_Candidates(nothing, nothing, nothing.astype(np.bool_))]
        parts += self._of_patterns(rows[in_columns], level)
        parts += self._of_others(at[~in_columns], level)
        child, container, is_proven = map(np.concatenate, zip(*parts, strict=True))
        keep = (container >= 0) & (child != container)
        keys, first = np.unique(child[keep] * len(self._names) + container[keep], return_inverse=True)
        proven = np.zeros(len(keys), dtype=np.bool_)
        np.logical_or.at(proven, first, is_proven[keep])
        return _Candidates(*np.divmod(keys, max(1, len(self._names))), proven)

    def _of_patterns(self, rows: np.ndarray, level: _Level) -> Iterator[_Candidates]:
        """Those of rows of patterns that have witnesses."""
        owned = _patterns(level.engine)
        if owned is None or self._owned is None or self._patterns is None or not len(rows):
            return
        residual = level.engine.index.way_rows[RESIDUALS].has(len(level.place))
        place = np.full(len(self._engine.index.subscriptions), NONE)
        place[self._number] = np.arange(len(self._names))
        # The rows of a part are in the order that they have in the whole.
        is_there = np.isin(self._owned.subscription, self._number[level.place[level.place >= 0]])
        row_of = np.flatnonzero(is_there) if level.engine is not self._engine else np.arange(len(is_there))
        for found in self._patterns.containers(rows, _finder(owned).index, row_of):
            subscription = owned.subscription[found.container]
            yield _Candidates(
                place[self._owned.subscription[found.row]],
                level.place[subscription],
                found.is_proven & ~residual[subscription],
            )

    def _of_others(self, at: np.ndarray, level: _Level) -> Iterator[_Candidates]:
        """Those of any others, by events."""
        for first in range(0, len(at), _EVENTS_AT_ONCE):
            made = [(place, self._witness(place)) for place in at[first : first + _EVENTS_AT_ONCE].tolist()]
            events = [event for _, event in made if event is not None]
            places = np.array([place for place, event in made if event is not None], dtype=np.int64)
            index, batch = level.engine.index_snapshot(), Batch(to_table(events))
            pairs = candidates(batch, index)
            child, container = places[pairs.event], level.place[pairs.subscription]
            yield _Candidates(child, container, np.zeros(len(child), dtype=np.bool_))

    def _witness(self, place: int) -> Event | None:
        return witness(self._query(place), self._engine.taxonomy)
