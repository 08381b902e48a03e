"""Mergers: patterns that contain several others, so that one entry of the front stands for all of them. RSS cluster, 4.3.

A merger has the triples that all members have, each as general as it must be. Two places of it have the same variable if every member has
the same term at both; a variable is tested by what all members test there, or by the weakest of their tests. So every member maps to
it term by term, which is containment (contains.py). A merger has a constant property, subject or object; it matches more than its members do, and is never reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tidings.containment.forest import finder_of, patterns_of, single_rows
from tidings.containment.pattern_rows import PatternRows
from tidings.containment.similar_patterns import ANY, NONE, TripleKeys, grouped
from tidings.engine.engine import Engine
from tidings.language.query import And, Condition, Query, TriplePattern, Variable

_STARTS = 1.25  # times the front that is wanted: a smaller one is left as it is, so that a new subscription starts no merging


class Merging(NamedTuple):
    """Mergers, and the merger of each subscription, or -1."""

    mergers: list[Query]
    merger: np.ndarray


def merge(engine: Engine, roots: np.ndarray, target: int) -> Merging:
    """Merges some of the roots, a mask of the subscriptions of a folded index, so that at most `target` of roots and mergers are
    left, if that can be."""
    merger = np.full(len(roots), NONE)
    owned = patterns_of(engine)
    row_of = single_rows(engine)
    numbers = np.flatnonzero(roots & (row_of >= 0))
    if owned is None or not len(numbers) or roots.sum() <= _STARTS * target:
        return Merging([], merger)
    patterns = PatternRows(finder_of(owned).index, engine.taxonomy)
    rows = row_of[numbers]
    keys = TripleKeys(patterns, rows)
    others = int(roots.sum()) - len(numbers)
    group = grouped(keys, max(1, target - others))
    made = [(members, _Merger(patterns, keys, rows, members)) for members in _members(group)]
    left = int(roots.sum()) - sum(len(members) - 1 for members, _ in made)
    found: list[Query] = []
    for members, each in sorted(made, key=lambda pair: pair[1].constants):
        left += len(members) - 1
        if left <= target:
            continue  # one of the weakest, and there is room for its members
        left -= len(members) - 1
        if (query := each.query()) is not None:
            merger[numbers[members]] = len(found)
            found.append(query)
    return Merging(found, merger)


def _members(group: np.ndarray) -> Iterator[np.ndarray]:
    order = np.argsort(group, kind="stable")
    first = np.flatnonzero(np.diff(group[order], prepend=NONE))
    return iter(np.split(order, first)[1:])


class _Merger:
    """What the members of one group have in common."""

    def __init__(
        self, patterns: PatternRows, keys: TripleKeys, rows: np.ndarray, members: np.ndarray
    ) -> None:
        self._patterns, self._keys = patterns, keys
        self._members, self._rows = members, rows[members]
        key, triples = self._common()
        self._code = keys.codes[key]
        terms = keys.terms[triples]  # member, triple, subject or property or object
        columns, self._place = np.unique(terms.reshape(len(members), -1), axis=1, return_inverse=True)
        self._place = self._place.reshape(self._code.shape)
        """Of each place the variable that it would have."""
        self._columns = columns
        self.constants = int(keys.constants[key].sum())
        """How many of its subjects and objects are known: with few, it matches much."""

    def _common(self) -> tuple[np.ndarray, np.ndarray]:
        """For each triple of the first member the most specific key that all have, where there is one; and by member and key the triple."""
        keys = self._keys
        first, last = keys.first_triple[self._members[0] : self._members[0] + 2]
        offered = keys.of_triple[first:last]
        triples = keys.find(self._members, offered.ravel()).reshape(len(self._members), *offered.shape)
        is_common: np.ndarray = np.all(triples >= 0, axis=0)
        has = is_common.any(axis=1)
        best = is_common.argmax(axis=1)
        chosen = np.arange(len(offered))[has], best[has]
        key, at = np.unique(offered[chosen], return_index=True)
        return key, triples[:, chosen[0][at], chosen[1][at]]

    def query(self) -> Query | None:
        """The merger; None if there is nothing that all have."""
        code, patterns = self._code, self._patterns
        is_constant = (code >= 0) & (self._columns[0][self._place] >= 0)
        uses = np.bincount(self._place[~is_constant], minlength=self._columns.shape[1])
        joined = (~is_constant & (uses[self._place] > 1)).any(axis=1)
        named = (code[:, [0, 2]] != ANY).any(axis=1)
        use = named | joined
        use = use if use.any() else np.ones(len(code), dtype=np.bool_)
        use &= is_constant[:, 1] | named
        if not use.any():
            return None
        nodes = [
            [
                patterns.term(int(code[triple, i]))
                if is_constant[triple, i]
                else Variable(f"v{self._place[triple, i]}")
                for i in range(3)
            ]
            for triple in np.flatnonzero(use).tolist()
        ]
        parts: list[Condition] = [TriplePattern(*each) for each in nodes]  # type: ignore[arg-type]
        parts += self._tests(np.unique(self._place[use][~is_constant[use]]))
        return Query(And(tuple(dict.fromkeys(parts))) if len(parts) > 1 else parts[0])

    def _tests(self, places: np.ndarray) -> Iterator[Condition]:
        """What all members test of the variables of some places."""
        of, variable, atom = self._patterns.tests.of_rows(self._rows)
        for place in places.tolist():
            is_tested = variable == ~self._columns[of, place]
            members, atoms = np.unique(np.stack((of[is_tested], atom[is_tested])), axis=1)
            if len(np.unique(members)) < len(self._rows):
                continue
            values, count = np.unique(atoms, return_counts=True)
            chosen = values[count == len(self._rows)].tolist()
            if not chosen and len(members) == len(self._rows):
                weakest = self._patterns.tests.weakest(values)
                chosen = [] if weakest == NONE else [weakest]
            for each in chosen:
                yield self._patterns.tests.condition(each, Variable(f"v{place}"))
