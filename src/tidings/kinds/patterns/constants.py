"""The constants that tests compare with, put in order once, so that every comparison is one of small integers.

Constant i of its kind has the odd rank 2 i + 1; a value of an event between two constants has the even rank
between theirs. Then `< c`, `= c` or `BETWEEN c AND d` is an interval of ranks, exact for numbers of any size,
and values of different kinds never meet. This is the constraint table of the RSS cluster paper (4.1), for all
operators at once.

    value   0 … 2N numbers | … 2I + 1 instants | false, true
    words   0 … 2T texts
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from tidings.arrays.vocabulary import Vocabulary, freeze_texts, thaw_texts
from tidings.formats.kernels.literals import read_constants
from tidings.kinds.patterns.kernels.layout import RESOURCE, TAGGED, TERM, VALUE, WORDS, Atoms, Constants
from tidings.kinds.patterns.table import OPS
from tidings.model import values
from tidings.model.ranks import rank_of, sort_numbers
from tidings.model.terms import escape, from_ntriples, unescape

_NONE, _NUMBER, _INSTANT, _TRUTH, _TEXT, _RESOURCE, _TERM = range(7)
_LAST = np.iinfo(np.int32).max
_ORDERS = tuple(OPS.index(op) for op in ("<", "<=", ">", ">=", "BETWEEN"))


class RankedConstants:
    """Sorted constants as arrays, and the exact arithmetic for the few values that need it."""

    def __init__(self, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
        self.arrays, self.facts = arrays, facts
        self.kernel = Constants(
            **{name: arrays[f"constants_{name}"] for name in Constants._fields[:-1]},
            texts_ordered=bool(facts["texts_ordered"]),
        )

    @classmethod
    def build(
        cls, texts: list[str], atoms: np.ndarray, labels: Iterable[str], terms: Vocabulary
    ) -> tuple[RankedConstants, Atoms, dict[str, int]]:
        """Ranks `texts`, the constants that rows of `atoms` name by number, and class labels among them.

        Also gives the atoms as intervals of ranks, and the rank of each text constant. IRIs, and literals that
        are only ever equal, are compared by their numbers in `terms`.
        """
        frozen = freeze_texts(texts)
        n = len(texts)
        kind, mantissa = np.zeros(n, dtype=np.int8), np.zeros(n, dtype=np.int64)
        exponent, approximation = np.zeros(n, dtype=np.int32), np.zeros(n)
        read_constants(frozen["blob"], frozen["start"], kind, mantissa, exponent, approximation)
        rank = np.full(n, -1, dtype=np.int64)

        numbers, long = sort_numbers(
            texts, np.flatnonzero(kind == _NUMBER), mantissa, exponent, approximation, rank
        )
        instants, which = np.unique(mantissa[kind == _INSTANT], return_inverse=True)
        rank[kind == _INSTANT] = 2 * which + 1
        rank[kind == _TRUTH] = mantissa[kind == _TRUTH]

        compared = np.zeros(n, dtype=np.bool_)
        compared[atoms[atoms[:, 0] <= OPS.index("KIND"), 1:].ravel()] = True
        own = [texts[i] for i in np.flatnonzero((kind == _TEXT) & compared)]
        escaped = {text[1:-1] for text in own} | {escape(label) for label in labels}
        ordered = sorted(escaped, key=lambda text: unescape(text).encode(errors="surrogatepass"))
        text_rank = {text: i for i, text in enumerate(ordered)}
        for i in np.flatnonzero((kind == _TEXT) & compared):
            rank[i] = 2 * text_rank[texts[i][1:-1]] + 1

        texts_ordered = bool(np.isin(atoms[kind[atoms[:, 1]] == _TEXT, 0], _ORDERS).any()) if n else False
        table = freeze_texts(ordered)
        plain = freeze_texts(unescape(t) for t in ordered) if texts_ordered else freeze_texts(())
        arrays = {
            "constants_mantissa": mantissa[numbers],
            "constants_exponent": exponent[numbers],
            "constants_approximation": approximation[numbers],
            "constants_instants": instants,
            "constants_text_blob": table["blob"],
            "constants_text_start": table["start"],
            "constants_text_slots": table["slots"],
            "constants_plain_blob": plain["blob"],
            "constants_plain_start": plain["start"],
        }
        facts = {"texts_ordered": texts_ordered, "long_numbers": long}
        first_instant = 2 * len(numbers) + 1
        first_truth = first_instant + 2 * len(instants) + 1
        resolved = _intervals(
            atoms, kind, rank, texts, terms, first_instant=first_instant, first_truth=first_truth
        )
        return cls(arrays, facts), resolved, text_rank

    @cached_property
    def _numbers(self) -> list[Fraction]:
        long = {int(i): text for i, text in self.facts["long_numbers"].items()}
        pairs = zip(self.kernel.mantissa.tolist(), self.kernel.exponent.tolist(), strict=True)
        return [
            Fraction(long[i]) if i in long else Fraction(m) * Fraction(10) ** e
            for i, (m, e) in enumerate(pairs)
        ]

    @cached_property
    def _texts(self) -> list[bytes]:
        arrays = {"blob": self.kernel.plain_blob, "start": self.kernel.plain_start}
        return [text.encode(errors="surrogatepass") for text in thaw_texts(arrays)]

    def exact_ranks(self, text: str) -> tuple[int, int]:
        """(value rank, words rank) of a term, by the definition: for the terms that a loop was not sure of."""
        value, words = -1, -1
        for kind, key in values.views(from_ntriples(text)):
            if kind == values.NUMBER:
                value = rank_of(self._numbers, key)
            elif kind == values.INSTANT:
                value = 2 * len(self.kernel.mantissa) + 1 + rank_of(self.kernel.instants.tolist(), key)
            elif kind == values.TEXT and self.kernel.texts_ordered:
                words = rank_of(self._texts, key.encode(errors="surrogatepass"))
        return value, words


def _intervals(
    atoms: np.ndarray,
    kind: np.ndarray,
    rank: np.ndarray,
    texts: list[str],
    terms: Vocabulary,
    *,
    first_instant: int,
    first_truth: int,
) -> Atoms:
    """Comparisons as intervals of ranks. Text tests and is-a are left to the caller (space -1)."""
    n = len(atoms)
    space, low = np.full(n, -1, dtype=np.int8), np.zeros(n, dtype=np.int32)
    high, hole = np.full(n, -1, dtype=np.int32), np.full(n, -1, dtype=np.int32)
    # Of each kind: its space, the bounds of its ranks and the offset of its own ranks in them.
    layout = {
        _NUMBER: (VALUE, 0, first_instant - 1, 0),
        _INSTANT: (VALUE, first_instant, first_truth - 1, first_instant),
        _TRUTH: (VALUE, first_truth, first_truth + 1, first_truth),
        _TEXT: (WORDS, 0, _LAST, 0),
        _RESOURCE: (RESOURCE, 0, _LAST, 0),
        _TERM: (TERM, 0, _LAST, 0),
    }
    op, first, last = atoms[:, 0], atoms[:, 1], atoms[:, 2]
    comparison = op <= OPS.index("KIND")
    for which, (where, bottom, top, offset) in layout.items():
        here = comparison & (kind[first] == which) & (kind[last] == which)
        if not here.any():
            continue
        space[here] = where
        if which in (_RESOURCE, _TERM):
            a = b = np.array([terms.number(texts[i]) for i in first[here]], dtype=np.int64)
        else:
            a, b = rank[first[here]] + offset, rank[last[here]] + offset
        ordered = which in (_NUMBER, _INSTANT, _TEXT)
        name = op[here]
        lower = np.select([name == 0, name == 4, (name == 5) | (name == 6)], [a, a + 1, a], bottom)
        upper = np.select([name == 0, name == 2, name == 3, name == 6], [a, a - 1, a, b], top)
        if not ordered:
            upper = np.where((name >= 2) & (name <= 6), -1, upper)
        low[here], high[here] = lower, upper
        hole[here] = np.where(name == 1, a, -1)
        if which == _TERM:  # `!=` and KIND require the same language or datatype: the part behind the quotes
            same = np.array([terms.number(suffix(texts[i])) for i in first[here]], dtype=np.int64)
            tagged = (name == 1) | (name == 7)
            space[here] = np.where(tagged, TAGGED, TERM)
            low[here] = np.where(tagged, same, lower)
            high[here] = np.where(tagged, same, upper)
    return Atoms(space, low, high, hole)


def suffix(text: str) -> str:
    """The language or datatype of a literal's N-Triples text, with its mark."""
    return text[text.rindex('"') + 1 :]
