"""Groups of patterns that have triples in common, for one merger each. RSS cluster, 4.3.

A triple of a pattern gives four keys: itself, and what is left of it if its subject, its object or both are anything:

    (n1, p, n2)     (n1, p, *)     (*, p, n2)     (*, p, *)

Patterns with a key in common can be merged: first those with equal triples, then with more and more general keys. A group should be
neither much larger than wanted, which would make its merger weak, nor so small that too many are left.
"""

from __future__ import annotations

import numpy as np

from tidings.containment.pattern_rows import PatternRows

NONE = -1
ANY = -1
_SMALLEST = 2
_LARGER = 1.5  # the next size that is tried
_FULL = 2  # times the wanted size


class TripleKeys:
    """The keys of some rows: `row[i]`, a position among them, has `key[i]`, by its triple `triple[i]`. Sorted by row and key."""

    def __init__(self, patterns: PatternRows, rows: np.ndarray) -> None:
        self.count = len(rows)
        of, self.terms = patterns.triples_of(rows)
        codes = _codes(patterns, rows, of, self.terms)
        subject, object = codes[:, 0], codes[:, 2]
        anything = np.full(len(codes), ANY)
        sides = [(subject, object), (subject, anything), (anything, object), (anything, anything)]
        variants = np.stack([np.column_stack((s, codes[:, 1], o)) for s, o in sides], axis=1).reshape(-1, 3)
        self.codes, number = _numbered(variants)
        self.of_triple = number.reshape(-1, len(sides))
        """The keys of each triple, the most specific first."""
        self.constants = (self.codes[:, [0, 2]] != ANY).sum(axis=1)
        """Of each key how many of subject and object it has."""
        pairs, first = np.unique(np.repeat(of, len(sides)) * len(self.codes) + number, return_index=True)
        self.row, self.key = np.divmod(pairs, max(1, len(self.codes)))
        self.triple = first // len(sides)
        self.pairs = pairs
        self.first_triple = np.searchsorted(of, np.arange(len(rows) + 1))

    def find(self, rows: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """For each row and each key the triple of the row that has it, or -1."""
        wanted = rows[:, None] * len(self.codes) + keys
        at = np.minimum(np.searchsorted(self.pairs, wanted), len(self.pairs) - 1)
        found: np.ndarray = np.where(self.pairs[at] == wanted, self.triple[at], NONE)
        return found


def _codes(patterns: PatternRows, rows: np.ndarray, of: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """The terms of triples with a number for a variable that has to equal a constant, as literals have, and ANY for the others."""
    row, variable, atom = patterns.tests.of_rows(rows)
    equal = patterns.tests.is_equality(atom)
    width = 1 + int(max(variable.max(initial=0), (~terms).max(initial=0)))
    tested, first = np.unique(row[equal] * width + variable[equal], return_index=True)
    atoms = np.append(atom[equal][first], 0)
    wanted = np.where(terms < 0, of[:, None] * width + ~terms, -1)
    at = np.searchsorted(tested, wanted)
    is_tested = np.append(tested, -2)[at] == wanted
    beyond = 1 + int(terms.max(initial=0))
    return np.where(terms >= 0, terms, np.where(is_tested, beyond + atoms[at], ANY))


def _numbered(triples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct triples, and the number of each: exact, because a merger is made of what is equal."""
    shifted = triples.astype(np.int64) + 1
    most = shifted.max(axis=0, initial=0) + 1
    pairs, pair = np.unique(shifted[:, 0] * most[1] + shifted[:, 1], return_inverse=True)
    whole, number = np.unique(pair * most[2] + shifted[:, 2], return_inverse=True)
    pair, last = np.divmod(whole, most[2])
    return np.column_stack((*np.divmod(pairs[pair], most[1]), last)) - 1, number


def grouped(keys: TripleKeys, target: int) -> np.ndarray:
    """The group of each row, or -1, so that groups and rows without one are at most `target`, if that can be."""
    wanted, best = float(_SMALLEST), np.full(keys.count, NONE)
    while _left(best) > target and wanted <= keys.count:
        best = min(best, _grouped(keys, wanted, target), key=_left)
        wanted *= _LARGER
    return best


def _left(group: np.ndarray) -> int:
    return int((group < 0).sum()) + int(group.max(initial=NONE)) + 1


def _grouped(keys: TripleKeys, wanted: float, target: int) -> np.ndarray:
    """Groups of about the wanted size; of the more general keys no more than are needed."""
    group = np.full(keys.count, NONE)
    specific = keys.constants[keys.key]
    for constants in (2, 1, 0):
        use = specific >= constants
        least, full = max(_SMALLEST, wanted / 2), wanted * _FULL
        label = _gather(keys.row[use], keys.key[use], group < 0, least, full)
        has = label >= 0
        group[has] = int(group.max(initial=NONE)) + 1 + np.unique(label[has], return_inverse=True)[1]
        if _left(group) <= target:
            break
    return group


def _gather(row: np.ndarray, key: np.ndarray, free: np.ndarray, least: float, full: float) -> np.ndarray:
    """For each free row the key that it shares with at least `least` others that have chosen it too, or -1. Among keys that more
    rows have than a group needs, the one with the fewest is best: its rows have more in common."""
    label = np.full(len(free), NONE)
    _, key = np.unique(key, return_inverse=True)
    keep = free[row]
    while keep.any():
        row, key = row[keep], key[keep]
        size = np.bincount(key)
        order = np.lexsort((key, size[key], -np.minimum(size[key], full), row))
        first = np.unique(row[order], return_index=True)[1]
        chooser, chosen = row[order[first]], key[order[first]]
        is_enough = np.bincount(chosen, minlength=len(size))[chosen] >= least
        if not is_enough.any():
            break
        label[chooser[is_enough]] = chosen[is_enough]
        keep = label[row] < 0
    return label
