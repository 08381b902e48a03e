"""Terms as small integers: their number in the vocabulary, and their rank among the constants of tests."""

from __future__ import annotations

import numpy as np

from tidings.arrays.characters import AT_SIGN, BACKSLASH, DIGIT_0, DIGIT_1, OPEN_ANGLE, QUOTE
from tidings.arrays.compiled import compiled
from tidings.arrays.hashing import find_span, hash_span, same_bytes
from tidings.formats.kernels.lexical import LONG, YES, read_instant, read_number
from tidings.formats.kernels.literals import INSTANT, NUMBER, TEXT, TRUTH, datatype_kind

_TRUE = np.frombuffer(b"true", dtype=np.uint8).copy()
_FALSE = np.frombuffer(b"false", dtype=np.uint8).copy()


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
        if blob[low[t]] == QUOTE and blob[close] != QUOTE:
            while blob[close] != QUOTE:
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
        is_iri[t] = blob[low[t]] == OPEN_ANGLE
        if blob[low[t]] != QUOTE:
            continue
        begin, end = low[t] + 1, high[t]
        close = end - 1
        if blob[close] != QUOTE:
            while blob[close] != QUOTE:
                close -= 1
        tagged = close + 1 < end and blob[close + 1] == AT_SIGN
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
                    if blob[i] == BACKSLASH:
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
        kind = TEXT
        if typed:
            kind = datatype_kind(blob, close + 4, end - 1)
        if kind == TEXT or kind == NUMBER:
            status, mantissa, exponent, approximation = read_number(blob, begin, close)
            if status == LONG:
                unsure[t] = True
            elif status == YES:
                rank = number_rank(mantissa, exponent, approximation, c)
                if rank == -2:
                    unsure[t] = True
                value[t] = rank
                continue
        if kind == TEXT or kind == INSTANT:
            ok, micros = read_instant(blob, begin, close)
            if ok:
                i = np.searchsorted(c.instants, micros)
                hit = i < instants and c.instants[i] == micros
                value[t] = first_instant + 2 * i + (1 if hit else 0)
        if kind == TRUTH:
            if close - begin == 1 and (blob[begin] == DIGIT_0 or blob[begin] == DIGIT_1):
                value[t] = first_truth + (blob[begin] - DIGIT_0)
            elif same_bytes(blob, begin, close, _TRUE, 0, _TRUE.shape[0]):
                value[t] = first_truth + 1
            elif same_bytes(blob, begin, close, _FALSE, 0, _FALSE.shape[0]):
                value[t] = first_truth
