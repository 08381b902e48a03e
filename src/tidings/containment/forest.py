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
event. To find candidates and to compare pairs in full can be spread over processes that have the same index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import NamedTuple, Protocol

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

NONE = WHOLE = -1
_EVENTS_AT_ONCE = 1 << 8  # each may have every subscription as a candidate
_REMEMBERED = 100_000
_FEW = 0.9  # of the subscriptions: if fewer are distinct, an index of these alone is made
_SAMPLE, _GROWTH = 1 << 8, 16
_MANY = 64  # containers that a subscription is expected to have, which make samples worth while

Columns = tuple[np.ndarray, ...]
Task = Callable[["Forest", Columns], Columns]


class Spread(Protocol):
    """Runs a task on columns: in ranges of them, in order, on forests of the same index; returns the columns of all."""

    def __call__(self, task: Task, columns: Columns, /) -> Columns: ...


def parents(engine: Engine) -> np.ndarray:
    """For each live subscription of the index, in their order, the position of one that contains it, or -1. It folds the
    index, so that positions are numbers."""
    engine.index.fold()
    forest = Forest(engine)
    return forest.parents(lambda task, columns: task(forest, columns))


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
    index, patterns = engine.index, patterns_of(engine)
    rows, divisible = single_rows(engine), index.divisible()
    found = np.full(len(rows), NONE)
    if patterns is not None:
        numbers = np.flatnonzero(divisible & (rows >= 0))
        in_columns = PatternRows(finder_of(patterns).index, engine.taxonomy)
        found[numbers] = numbers[in_columns.first_equal(rows[numbers])]
    known: dict[str, int] = {}
    for number in np.flatnonzero(divisible & (rows < 0)).tolist():
        found[number] = known.setdefault(index.subscriptions.text(number), number)
    return found


def patterns_of(engine: Engine) -> OwnedFinder | None:
    return engine.index.base.finders.get("patterns")


def finder_of(owned: OwnedFinder) -> PatternFinder:
    assert isinstance(owned.finder, PatternFinder)
    return owned.finder


def single_rows(engine: Engine) -> np.ndarray:
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


class Forest:
    """The distinct subscriptions of an index that was folded, by their *places* among them."""

    def __init__(self, engine: Engine) -> None:
        self._equal = _first_equal(engine)
        self._names = np.unique(self._equal[self._equal >= 0])  # the numbers of all places
        whole = len(self._names) > _FEW * len(self._equal)
        self.engine = engine if whole else _part(engine, self._names)
        """Has the distinct ones, and perhaps others. A forest of this engine has the same places."""
        self._number = self._names if whole else np.arange(len(self._names))  # in that engine
        self._owned = patterns_of(self.engine)
        self._rows = single_rows(self.engine)[self._number]
        self._level = np.full(len(self._names), 1 << 10)  # of the first sample that has it
        self._query = lru_cache(_REMEMBERED)(self._read)

    def parents(self, spread: Spread) -> np.ndarray:
        """For each number one that contains it, or -1."""
        equal, count = self._equal, len(self._names)
        found = np.full(count, NONE)
        for level in (*range(len(self._samples)), WHOLE):
            left = np.flatnonzero(found < 0)
            candidates = self._spread_candidates(spread, left, level)
            others = self._spread_candidates(spread, np.setdiff1d(candidates.container, left), level)
            everything = _Candidates(*map(np.concatenate, zip(candidates, others, strict=True)))
            self._choose(everything, found, spread)
        of_names = np.full(len(equal) + 1, NONE)  # with one for what has no equal
        of_names[self._names] = np.where(found >= 0, self._names[found], NONE)
        chosen = of_names[equal]
        is_copy = (equal >= 0) & (equal != np.arange(len(equal)))
        return without_circles(np.where((chosen < 0) & is_copy, equal, chosen))

    def _spread_candidates(self, spread: Spread, places: np.ndarray, level: int) -> _Candidates:
        return _Candidates(*spread(find_candidates, (places, np.full(len(places), level))))

    @cached_property
    def _patterns(self) -> PatternRows | None:
        return (
            None if self._owned is None else PatternRows(finder_of(self._owned).index, self.engine.taxonomy)
        )

    @cached_property
    def _samples(self) -> list[_Level]:
        """Each much larger than the one before, if there are many containers; else none."""
        count, size = len(self._names), _SAMPLE
        samples: list[_Level] = []
        order = np.random.default_rng(count).permutation(count)
        while 8 * size <= count:
            sample = np.sort(order[:size])
            samples.append(_Level(_part(self.engine, self._number[sample]), sample))
            if len(samples) == 1:
                pairs = len(self._candidates(sample, samples[0]).child)
                if pairs / size * count / size < _MANY:
                    return []
            self._level[sample] = np.minimum(self._level[sample], len(samples))
            size *= _GROWTH
        return samples

    @cached_property
    def _place(self) -> np.ndarray:
        """Of each subscription of the engine; -1 for those that have none."""
        place = np.full(len(self.engine.index.subscriptions), NONE)
        place[self._number] = np.arange(len(self._number))
        return place

    # ------------------------------------------------------------------ the choice

    def _choose(self, candidates: _Candidates, found: np.ndarray, spread: Spread) -> None:
        """Notes a parent for each that has none and has a container."""
        count = len(self._names)
        child, container, is_proven = candidates
        sizes = np.bincount(child, minlength=count)
        is_mutual = np.isin(container * count + child, child * count + container)
        precedes = np.lexsort((np.arange(count), self._level)).argsort()
        is_above = ~is_mutual | (precedes[container] < precedes[child])
        triples = np.where(is_mutual, 0, self._triples[container])  # of equal ones the first counts
        left = np.flatnonzero(found[child] < 0)
        keys = (precedes[container], triples, sizes[container], child)
        order = left[np.lexsort([key[left] for key in keys])]
        sure = order[(is_proven & is_above)[order]]
        first = np.unique(child[sure], return_index=True)[1]
        found[child[sure[first]]] = container[sure[first]]
        open = order[found[child[order]] < 0]
        below, above = spread(compare_pairs, (child[open], container[open], is_proven[open], is_above[open]))
        found[below[::-1]] = above[::-1]  # one whose pairs were apart may have two, of which the first counts

    def compare(self, pairs: Columns) -> Iterator[tuple[int, int]]:
        """Of pairs of a child and a candidate the first ones of which the candidate is the parent."""
        settled = NONE
        for child, container, is_proven, is_above in zip(*(column.tolist() for column in pairs), strict=True):
            if child == settled or not (is_proven or self._contains(container, child)):
                continue
            if is_above or not self._contains(child, container):
                settled = child
                yield child, container

    @cached_property
    def _triples(self) -> np.ndarray:
        if self._owned is None or self._patterns is None:
            return np.zeros(len(self._names))
        count = len(self.engine.index.subscriptions)
        return np.bincount(self._owned.subscription, self._patterns.triples, minlength=count)[self._number]

    def _contains(self, a: int, b: int) -> bool:
        return contains(self._query(a), self._query(b), self.engine.taxonomy).holds

    def _read(self, place: int) -> Query:
        return self.engine.tree(self.engine.index.subscriptions.text(int(self._number[place])))

    # ------------------------------------------------------------------ candidates

    def candidates(self, places: np.ndarray, level: int) -> Columns:
        """Which of a sample, or of the WHOLE, match the witnesses of these."""
        whole = _Level(self.engine, self._place)
        return self._candidates(places, whole if level == WHOLE else self._samples[level])

    def _candidates(self, places: np.ndarray, level: _Level) -> _Candidates:
        rows = self._rows[places]
        in_columns = rows >= 0
        if self._patterns is not None:
            in_columns[in_columns] = self._patterns.have_witnesses(rows[in_columns])
        nothing = np.zeros(0, dtype=np.int64)
        parts = [_Candidates(nothing, nothing, nothing.astype(np.bool_))]
        parts += self._of_patterns(rows[in_columns], level)
        parts += self._of_others(places[~in_columns], level)
        child, container, is_proven = map(np.concatenate, zip(*parts, strict=True))
        keep = (container >= 0) & (child != container)
        keys, first = np.unique(child[keep] * len(self._names) + container[keep], return_inverse=True)
        proven = np.bincount(first, is_proven[keep], minlength=len(keys)) > 0
        return _Candidates(*np.divmod(keys, max(1, len(self._names))), proven)

    def _of_patterns(self, rows: np.ndarray, level: _Level) -> Iterator[_Candidates]:
        """Those of rows of patterns that have witnesses."""
        owned = patterns_of(level.engine)
        if owned is None or self._owned is None or self._patterns is None or not len(rows):
            return
        residual = level.engine.index.way_rows[RESIDUALS].has(len(level.place))
        row_of = np.arange(len(self._owned.subscription))
        if level.engine is not self.engine:  # the rows of a part are in the order that they have in the whole
            row_of = np.flatnonzero(np.isin(self._owned.subscription, self._number[level.place]))
        for found in self._patterns.containers(rows, finder_of(owned).index, row_of):
            subscription = owned.subscription[found.container]
            yield _Candidates(
                self._place[self._owned.subscription[found.row]],
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
        return witness(self._query(place), self.engine.taxonomy)


def find_candidates(forest: Forest, columns: Columns) -> Columns:
    """The task of finding candidates of places; the second column has the sample in each row, or WHOLE."""
    places, level = columns
    return forest.candidates(places, int(level[0]) if len(level) else WHOLE)


def compare_pairs(forest: Forest, columns: Columns) -> Columns:
    """The task of comparing pairs in full."""
    found = np.array(list(forest.compare(columns)), dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]
