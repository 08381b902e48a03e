"""The constants that each attribute is compared with, in order: every comparison is one of positions on a scale.

Constant i of its kind has the position (start of the kind) + 2 i + 1, a value between two constants the even one
between. A scale is exact for numbers of any size, and values of different kinds never meet on it. What a loop
cannot read for sure, such as a number of 30 digits, gets its position from the definition.

    0 … 2N numbers | 2I + 1 instants | false, true | 2T + 1 texts | one for everything else
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from tidings.arrays.hashing import table_size
from tidings.arrays.vocabulary import StoredTexts, freeze_texts, join_texts
from tidings.formats.kernels.literals import INSTANT, LONG_EXPONENT, NUMBER, TEXT, TRUTH, read_constants
from tidings.kinds.filters.kernels import layout, ranking, resolving
from tidings.kinds.filters.kernels.layout import CHECK_BITS, INSTANTS, NUMBERS, TEXTS, TRUTHS, Scales
from tidings.kinds.filters.table import FilterTable
from tidings.model import values
from tidings.model.ranks import rank_of, sort_numbers
from tidings.model.terms import unescape

_KINDS = {NUMBER: NUMBERS, INSTANT: INSTANTS, TRUTH: TRUTHS, TEXT: TEXTS}


class Known(NamedTuple):
    """What the loops that write code know of constants: see kernels/resolving.py.

    Of a constant its kind and its order among all (-1: no attribute compares with it); of (attribute, constant), found
    in the hashed `keys`, how often it is mentioned and its position; of an attribute where its kinds begin among the
    sorted pairs, whose running total of mentions is `total`.
    """

    order: np.ndarray
    kinds: np.ndarray
    keys: np.ndarray
    counts: np.ndarray
    position: np.ndarray
    ends: np.ndarray
    group_first: np.ndarray
    total: np.ndarray
    mentions: np.ndarray
    all_mentions: float
    base: np.ndarray
    height: np.ndarray
    shift: np.ndarray


class _Constants(NamedTuple):
    """All constants of a table: of each its kind on a scale (-1: it compares with nothing), its rank among those of
    its kind, and the number that it is or the instant that its mantissa is. Of each rank, which number, instant or text
    it has."""

    texts: list[str]
    kind: np.ndarray
    rank: np.ndarray
    mantissa: np.ndarray
    exponent: np.ndarray
    approximation: np.ndarray
    numbers: np.ndarray
    instants: np.ndarray
    plain_texts: list[str]


class _Mentions(NamedTuple):
    """(attribute, constant) pairs that are mentioned, in order: of each its slot among the hashed keys, its parts, and
    how often it is mentioned. Kind k of attribute a has the pairs first[4 a + k] to first[4 a + k + 1]."""

    slot: np.ndarray
    attribute: np.ndarray
    kind: np.ndarray
    rank: np.ndarray
    times: np.ndarray
    first: np.ndarray


def rank_constants(table: FilterTable) -> tuple[dict[str, np.ndarray], dict[str, str], Known]:
    """The scales of a table's attributes as arrays, the numbers that need exact arithmetic, and what code needs."""
    constants = _read_constants(list(table.constants.numbers))
    order, distinct = _order_among_all(constants)
    keys, counts, ordered = _count_mentions(table, order, constants.kind)
    mentions = _sort_mentions(keys, counts, distinct, len(table.keys))
    ends = _ends(mentions.first)
    known = _known(mentions, keys, counts, ends, order=order, kinds=constants.kind)
    is_number, numbers = mentions.kind == NUMBERS, constants.numbers
    of_number = numbers[mentions.rank[is_number]] if len(numbers) else np.zeros(0, dtype=np.int64)
    arrays = _scales(constants, mentions, of_number, ends, ordered)
    ranking.fill_slots(Scales(**arrays), arrays["slots"])
    long_numbers = {
        str(i): str(values.number(text[1 : text.rindex('"')]))
        for i in np.flatnonzero(arrays["exponent"] == LONG_EXPONENT).tolist()
        for text in (constants.texts[of_number[i]],)
    }
    return arrays, long_numbers, known


def _read_constants(texts: list[str]) -> _Constants:
    frozen, n = freeze_texts(texts), len(texts)
    kind, mantissa = np.zeros(n, dtype=np.int8), np.zeros(n, dtype=np.int64)
    exponent, approximation = np.zeros(n, dtype=np.int32), np.zeros(n)
    read_constants(frozen["blob"], frozen["start"], kind, mantissa, exponent, approximation)
    rank = np.full(n, -1, dtype=np.int64)
    numbers, _ = sort_numbers(texts, np.flatnonzero(kind == NUMBER), mantissa, exponent, approximation, rank)
    rank[kind == NUMBER] >>= 1
    instants, which = np.unique(mantissa[kind == INSTANT], return_inverse=True)
    rank[kind == INSTANT] = which
    rank[kind == TRUTH] = mantissa[kind == TRUTH]
    plain = {int(i): unescape(texts[i][1:-1]) for i in np.flatnonzero(kind == TEXT)}
    plain_texts = sorted(set(plain.values()))
    text_rank = {text: i for i, text in enumerate(plain_texts)}
    for i, text in plain.items():
        rank[i] = text_rank[text]
    own = np.full(n, -1, dtype=np.int8)
    for literal_kind, of_scale in _KINDS.items():
        own[kind == literal_kind] = of_scale
    return _Constants(texts, own, rank, mantissa, exponent, approximation, numbers, instants, plain_texts)


def _order_among_all(constants: _Constants) -> tuple[np.ndarray, np.ndarray]:
    """Of each constant its order among the distinct ones, -1 if it compares with nothing; and kind << 40 | rank of each
    distinct one."""
    usable = np.flatnonzero(constants.kind >= 0)
    combined = constants.kind[usable].astype(np.int64) << 40 | constants.rank[usable]
    distinct, which = np.unique(combined, return_inverse=True)
    order = np.full(len(constants.kind), -1, dtype=np.int32)
    order[usable] = which
    return order, distinct


def _count_mentions(
    table: FilterTable, order: np.ndarray, kinds: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(attribute, constant) pairs in an open-addressed table, how often each is mentioned, and which attributes are
    asked for the order of texts."""
    ordered = np.zeros(len(table.keys), dtype=np.bool_)
    keys = np.full(table_size(2 * len(order) + 16), -1, dtype=np.int64)
    while True:
        counts = np.zeros(len(keys), dtype=np.int64)
        done, _ = resolving.count_mentions(table.rows(), order, kinds, 0, keys, counts, 0, ordered)
        if done == len(table):
            return keys, counts, ordered
        keys = np.full(4 * len(keys), -1, dtype=np.int64)


def _sort_mentions(keys: np.ndarray, counts: np.ndarray, distinct: np.ndarray, attributes: int) -> _Mentions:
    slot = np.flatnonzero(keys >= 0)
    slot = slot[np.argsort(keys[slot])]
    pairs = keys[slot]
    attribute, constant = pairs >> 32, distinct[pairs & 0xFFFFFFFF]
    kind, rank = constant >> 40, constant & ((1 << 40) - 1)
    first = np.searchsorted(attribute * 4 + kind, np.arange(attributes * 4 + 1)).astype(np.int64)
    return _Mentions(slot, attribute, kind, rank, counts[slot], first)


def _ends(first: np.ndarray) -> np.ndarray:
    """Where the positions of each attribute's kinds end."""
    sizes = np.diff(first).reshape(-1, 4) * 2 + 1
    sizes[:, TRUTHS] = 2
    ends: np.ndarray = np.cumsum(sizes, axis=1)
    if len(ends) and ends[:, -1].max() >= layout.AGAIN:
        raise OverflowError("an attribute has too many constants")
    return ends


def _known(
    mentions: _Mentions,
    keys: np.ndarray,
    counts: np.ndarray,
    ends: np.ndarray,
    *,
    order: np.ndarray,
    kinds: np.ndarray,
) -> Known:
    attributes = len(ends)
    starts = np.hstack([np.zeros((attributes, 1), dtype=np.int64), ends[:, :-1]])
    inside = np.arange(len(mentions.slot)) - mentions.first[mentions.attribute * 4 + mentions.kind]
    within = np.where(mentions.kind == TRUTHS, mentions.rank, 2 * inside + 1)
    position = np.zeros(len(keys), dtype=np.int32)
    position[mentions.slot] = starts[mentions.attribute, mentions.kind] + within
    total = np.concatenate([[0], np.cumsum(mentions.times)])
    of_attribute = np.bincount(mentions.attribute, weights=mentions.times, minlength=attributes)
    height = np.ceil(np.log2(ends[:, -1] + 1)).astype(np.int8) if attributes else np.zeros(0, dtype=np.int8)
    base = np.concatenate([[0], np.cumsum(2 ** (height.astype(np.int64) + 1))])[:-1].astype(np.int64)
    four = mentions.first[:-1].reshape(attributes, 4)
    return Known(
        order=order,
        kinds=kinds,
        keys=keys,
        counts=counts,
        position=position,
        ends=ends.astype(np.int32),
        group_first=np.hstack([four, mentions.first[4::4].reshape(attributes, 1)]),
        total=total,
        mentions=of_attribute.astype(np.int64),
        all_mentions=float(total[-1]) + 1.0,
        base=base,
        height=height,
        shift=np.maximum(height - CHECK_BITS, 0).astype(np.int8),
    )


def _scales(
    constants: _Constants,
    mentions: _Mentions,
    of_number: np.ndarray,
    ends: np.ndarray,
    ordered: np.ndarray,
) -> dict[str, np.ndarray]:
    """The arrays of the scales; the slots of texts are still to be filled."""
    attributes, instants = len(ends), constants.instants
    is_number, is_instant, is_text = (mentions.kind == kind for kind in (NUMBERS, INSTANTS, TEXTS))
    blob, start = join_texts(constants.plain_texts)
    return {
        "ends": ends.astype(np.int32),
        "number_first": _firsts(mentions.attribute[is_number], attributes),
        "mantissa": constants.mantissa[of_number],
        "exponent": constants.exponent[of_number],
        "approximation": constants.approximation[of_number],
        "instant_first": _firsts(mentions.attribute[is_instant], attributes),
        "instants": instants[mentions.rank[is_instant]] if len(instants) else np.zeros(0, dtype=np.int64),
        "text_first": _firsts(mentions.attribute[is_text], attributes),
        "texts": mentions.rank[is_text].astype(np.int32),
        "ordered": ordered,
        "blob": blob,
        "start": start,
        "slots": np.full(table_size(int(is_text.sum())), -1, dtype=np.int32),
    }


def _firsts(attribute: np.ndarray, attributes: int) -> np.ndarray:
    """Where the entries of each attribute begin in a list sorted by attribute."""
    return np.searchsorted(attribute, np.arange(attributes + 1)).astype(np.int64)


class ExactScales:
    """The scales of an index for what loops leave aside: by the definition, one value at a time."""

    def __init__(self, scales: Scales, long_numbers: Mapping[str, str]) -> None:
        self.scales = scales
        self._long = {int(i): Fraction(text) for i, text in long_numbers.items()}
        self._texts = StoredTexts(scales.blob, scales.start)

    def positions(self, attribute: int, value: Any, *, fold: bool = False) -> list[int]:
        """The positions of a value's views on the scale of an attribute; for what compares with nothing the last."""
        ends = self.scales.ends[attribute]
        found = []
        for kind, key in values.views(value):
            if kind == values.NUMBER:
                found.append(rank_of(self._numbers(attribute), key))
            elif kind == values.INSTANT:
                low, high = self.scales.instant_first[attribute : attribute + 2]
                found.append(int(ends[NUMBERS]) + rank_of(self.scales.instants[low:high].tolist(), key))
            elif kind == values.BOOLEAN:
                found.append(int(ends[INSTANTS]) + int(key))
            elif kind == values.TEXT:
                found.append(int(ends[TRUTHS]) + self._text_rank(attribute, key.casefold() if fold else key))
        return found or [int(ends[TEXTS])]

    def texts(self, attribute: int) -> list[str]:
        """The text constants of an attribute, in their order."""
        low, high = self.scales.text_first[attribute : attribute + 2]
        return [self._texts[i] for i in self.scales.texts[low:high].tolist()]

    def _numbers(self, attribute: int) -> _Numbers:
        return _Numbers(self.scales, self._long, attribute)

    def _text_rank(self, attribute: int, text: str) -> int:
        low, high = self.scales.text_first[attribute : attribute + 2]
        return rank_of(_Texts(self._texts, self.scales.texts[low:high]), text)


class _Numbers:
    """The numbers of one attribute's scale, each made when it is looked at."""

    def __init__(self, scales: Scales, long: Mapping[int, Fraction], attribute: int) -> None:
        self.scales, self.long = scales, long
        self.low, self.high = (int(i) for i in scales.number_first[attribute : attribute + 2])

    def __len__(self) -> int:
        return self.high - self.low

    def __getitem__(self, i: int) -> Fraction:
        at = self.low + i
        if at in self.long:
            return self.long[at]
        return Fraction(int(self.scales.mantissa[at])) * Fraction(10) ** int(self.scales.exponent[at])


class _Texts:
    """The texts of one attribute's scale."""

    def __init__(self, texts: StoredTexts, numbers: np.ndarray) -> None:
        self.texts, self.numbers = texts, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, i: int) -> str:
        return self.texts[self.numbers[i]]
