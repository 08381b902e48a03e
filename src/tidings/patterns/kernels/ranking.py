"""Terms as small integers: their number in the vocabulary, and their rank among the constants of tests."""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled
from tidings.arrays.hashing import find_span, hash_span
from tidings.arrays.lexical import LONG, YES, read_instant, read_number
from tidings.patterns.kernels.layout import LONG_EXPONENT


@compiled
def number_terms(blob, low, high, hashes, known_blob, known_start, known_slots, out):  # type: ignore[no-untyped-def]
    """out[t] = the vocabulary's number of term t, or one above the vocabulary that is the term's own."""
    known = known_start.shape[0] - 1
    for t in range(low.shape[0]):
        found = find_span(hashes[t], blob, low[t], high[t], known_blob, known_start, known_slots)
        out[t] = found if found >= 0 else known + t


@compiled
def number_suffixes(blob, low, high, known_blob, known_start, known_slots, out):  # type: ignore[no-untyped-def]
    """out[t] = the vocabulary's number of the language or datatype of term t, or -1."""
    for t in range(low.shape[0]):
        out[t] = -1
        close = high[t] - 1
        if blob[low[t]] == 34 and blob[close] != 34:
            while blob[close] != 34:
                close -= 1
            h = hash_span(blob, close + 1, high[t])
            out[t] = find_span(h, blob, close + 1, high[t], known_blob, known_start, known_slots)


@compiled
def number_rank(mantissa, exponent, approximation, c):  # type: ignore[no-untyped-def]
    """The rank of a number among the constants, or -2 when only exact arithmetic can tell."""
    slack = abs(approximation) * 1e-14
    low, high = 0, c.approximation.shape[0]
    while low < high:
        middle = (low + high) // 2
        if c.approximation[middle] < approximation - slack:
            low = middle + 1
        else:
            high = middle
    i = low
    unsure = False
    while i < c.approximation.shape[0] and c.approximation[i] <= approximation + slack:
        if c.mantissa[i] == mantissa and c.exponent[i] == exponent:
            return 2 * i + 1
        unsure = True
        i += 1
    return -2 if unsure else 2 * low


@compiled
def _plain_order(blob, low, high, c, i):  # type: ignore[no-untyped-def]
    """Whether blob[low:high] comes before (-1), is (0) or comes after (1) the text constant i."""
    at, end = c.plain_start[i], c.plain_start[i + 1]
    while low < high and at < end:
        if blob[low] != c.plain_blob[at]:
            return -1 if blob[low] < c.plain_blob[at] else 1
        low += 1
        at += 1
    if low < high:
        return 1
    return -1 if at < end else 0


@compiled
def rank_terms(blob, low, high, c, value, words, is_iri, unsure):  # type: ignore[no-untyped-def]
    """Ranks of a batch's terms: in `value` among numbers, instants and truth values, in `words` among texts.

    -1 stands for none. Terms that need more than 18 digits or an unescaped text are flagged `unsure`.
    """
    numbers = c.approximation.shape[0]
    instants = c.instants.shape[0]
    first_instant = 2 * numbers + 1
    first_truth = first_instant + 2 * instants + 1
    for t in range(low.shape[0]):
        value[t], words[t] = -1, -1
        is_iri[t] = blob[low[t]] == 60
        if blob[low[t]] != 34:
            continue
        begin, end = low[t] + 1, high[t]
        close = end - 1
        if blob[close] != 34:
            while blob[close] != 34:
                close -= 1
        tagged = close + 1 < end and blob[close + 1] == 64
        typed = close + 1 < end and not tagged
        if not typed:
            at = find_span(
                hash_span(blob, begin, close), blob, begin, close, c.text_blob, c.text_start, c.text_slots
            )
            if at >= 0:
                words[t] = 2 * at + 1
            elif not c.texts_ordered:
                words[t] = 0
            else:
                for i in range(begin, close):
                    if blob[i] == 92:
                        unsure[t] = True
                lower, upper = 0, c.plain_start.shape[0] - 1
                while lower < upper:
                    middle = (lower + upper) // 2
                    if _plain_order(blob, begin, close, c, middle) > 0:
                        lower = middle + 1
                    else:
                        upper = middle
                words[t] = 2 * lower
        if tagged or begin == close:
            continue
        kind = 0  # 0: untyped, 1: a number, 2: an instant, 3: a truth value, 4: anything else
        if typed:
            kind = _datatype(blob, close + 4, end - 1)
        if kind == 0 or kind == 1:
            status, mantissa, exponent, approximation = read_number(blob, begin, close)
            if status == LONG:
                unsure[t] = True
            elif status == YES:
                rank = number_rank(mantissa, exponent, approximation, c)
                if rank == -2:
                    unsure[t] = True
                value[t] = rank
                continue
        if kind == 0 or kind == 2:
            ok, micros = read_instant(blob, begin, close)
            if ok:
                i = np.searchsorted(c.instants, micros)
                hit = i < instants and c.instants[i] == micros
                value[t] = first_instant + 2 * i + (1 if hit else 0)
        if kind == 3:
            if close - begin == 1 and (blob[begin] == 48 or blob[begin] == 49):
                value[t] = first_truth + (blob[begin] - 48)
            elif (
                close - begin == 4
                and blob[begin] == 116
                and blob[begin + 1] == 114
                and blob[begin + 2] == 117
            ):
                value[t] = first_truth + (1 if blob[begin + 3] == 101 else -first_truth - 1)
            elif (
                close - begin == 5 and blob[begin] == 102 and blob[begin + 1] == 97 and blob[begin + 2] == 108
            ):
                value[t] = first_truth if blob[begin + 3] == 115 and blob[begin + 4] == 101 else -1


_XSD = np.frombuffer(b"http://www.w3.org/2001/XMLSchema#", dtype=np.uint8).copy()
_TYPES = [
    ("integer", 1), ("decimal", 1), ("float", 1), ("double", 1), ("long", 1), ("int", 1), ("short", 1), ("byte", 1),
    ("nonNegativeInteger", 1), ("positiveInteger", 1), ("nonPositiveInteger", 1), ("negativeInteger", 1),
    ("unsignedLong", 1), ("unsignedInt", 1), ("unsignedShort", 1), ("unsignedByte", 1), ("gYear", 1),
    ("date", 2), ("dateTime", 2), ("dateTimeStamp", 2), ("boolean", 3), ("string", 0),
]  # fmt: skip
_TYPE_BLOB = np.frombuffer("".join(name for name, _ in _TYPES).encode(), dtype=np.uint8).copy()
_TYPE_START = np.cumsum([0] + [len(name) for name, _ in _TYPES])
_TYPE_KIND = np.array([kind for _, kind in _TYPES], dtype=np.int64)


@compiled
def _datatype(blob, low, high):  # type: ignore[no-untyped-def]
    """What a literal of the datatype blob[low:high] is compared as; see `rank_terms`."""
    if high - low <= _XSD.shape[0]:
        return 4
    for i in range(_XSD.shape[0]):
        if blob[low + i] != _XSD[i]:
            return 4
    begin = low + _XSD.shape[0]
    for k in range(_TYPE_KIND.shape[0]):
        if _TYPE_START[k + 1] - _TYPE_START[k] == high - begin:
            same = True
            for i in range(high - begin):
                if blob[begin + i] != _TYPE_BLOB[_TYPE_START[k] + i]:
                    same = False
                    break
            if same:
                return _TYPE_KIND[k]
    return 4


@compiled
def read_constants(blob, start, kind, mantissa, exponent, approximation):  # type: ignore[no-untyped-def]
    """Constants by what they are compared as: 0 nothing, 1 number, 2 instant, 3 truth value, 4 text, 5 IRI,
    6 a literal of another datatype or a language. Instants and truth values are left in `mantissa`."""
    for i in range(start.shape[0] - 1):
        low, high = start[i], start[i + 1]
        if blob[low] == 60:
            kind[i] = 5
            continue
        close = high - 1
        while blob[close] != 34:
            close -= 1
        if close == high - 1:
            kind[i] = 4
            continue
        kind[i] = 6
        if blob[close + 1] == 64:
            continue
        datatype = _datatype(blob, close + 4, high - 1)
        if datatype == 1:
            status, m, e, f = read_number(blob, low + 1, close)
            kind[i] = 1 if status != 0 else 0
            mantissa[i], exponent[i], approximation[i] = m, e if status == YES else LONG_EXPONENT, f
        elif datatype == 2:
            ok, micros = read_instant(blob, low + 1, close)
            kind[i] = 2 if ok else 0
            mantissa[i] = micros
        elif datatype == 3:
            kind[i] = 3
            mantissa[i] = 1 if blob[low + 1] == 116 or blob[low + 1] == 49 else 0
