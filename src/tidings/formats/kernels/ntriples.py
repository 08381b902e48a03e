"""N-Triples bytes -> numbered terms and triples of numbers, in one pass.

Only the canonical form (what `tidings.model.terms` and pyoxigraph write) is read here. Anything else, valid or not,
sets the document's flag, and its bytes go through the RDF parser first. So canonical graphs cost no parser at
all, and none is ever misread.

    terms     numbered by first appearance in the batch; term i is blob[term_low[i]:term_high[i]]
    triples   three columns of term numbers; document d owns rows first[d] to first[d + 1]
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.characters import (
    AT_SIGN,
    BACKSLASH,
    BEYOND_ASCII,
    CAPITAL_E,
    CAPITAL_F,
    CARET,
    CLOSE_ANGLE,
    COLON,
    CONTROLS,
    DIGIT_0,
    DIGIT_1,
    DIGIT_7,
    DIGITS,
    DOT,
    LETTERS,
    NEWLINE,
    OPEN_ANGLE,
    QUOTE,
    SMALL_LETTERS,
    SMALL_U,
    SPACE,
    UNDERSCORE,
    bytes_of,
)
from tidings.arrays.compiled import compiled
from tidings.arrays.hashing import hash_span, same_bytes

# Bytes at which a scan has to stop and look: what ends an IRI or may not stand in one, and in a literal.
_STOPS_IRI = bytes_of(CONTROLS, ' "<>\\^`{|}')
_STOPS_LITERAL = bytes_of(CONTROLS, '"\\\x7f')
_LABEL = bytes_of(LETTERS, DIGITS, "_-.")  # of a blank node
_LABEL[BEYOND_ASCII:] = True
_LANGUAGE = bytes_of(SMALL_LETTERS, DIGITS, "-")
_ESCAPE = bytes_of('tbnrf"\\')
_HEXADECIMAL = bytes_of(DIGITS, "ABCDEF")
_WITHOUT_SHORT_ESCAPE = bytes_of("01234567BEF")  # the last digits of those controls from 00 to 0F
_STRING = np.frombuffer(b"<http://www.w3.org/2001/XMLSchema#string>", dtype=np.uint8).copy()


@compiled
def _iri_end(blob, i, high):  # type: ignore[no-untyped-def]
    """Just behind the '>' of the IRI that starts at i, or -1; it must be absolute."""
    i += 1
    begin = i
    while i < high and blob[i] != COLON and not _STOPS_IRI[blob[i]]:
        i += 1
    if i >= high or i == begin or blob[i] != COLON:
        return -1
    while i < high and not _STOPS_IRI[blob[i]]:
        i += 1
    return i + 1 if i < high and blob[i] == CLOSE_ANGLE else -1


@compiled
def _blank_end(blob, i, high):  # type: ignore[no-untyped-def]
    if i + 1 >= high or blob[i + 1] != COLON:
        return -1
    i += 2
    begin = i
    while i < high and _LABEL[blob[i]]:
        i += 1
    return i if i > begin else -1


@compiled
def _canonical_escape(blob, i, high):  # type: ignore[no-untyped-def]
    """Whether uXXXX at i is how the canonical form writes that character: controls without a short escape."""
    if i + 4 >= high:
        return False
    a, b, c, d = blob[i + 1], blob[i + 2], blob[i + 3], blob[i + 4]
    if a == CAPITAL_F and b == CAPITAL_F and c == CAPITAL_F:
        return d == CAPITAL_E or d == CAPITAL_F
    if a != DIGIT_0 or b != DIGIT_0:
        return False
    if c == DIGIT_0:
        return _WITHOUT_SHORT_ESCAPE[d]
    return (c == DIGIT_1 and _HEXADECIMAL[d]) or (c == DIGIT_7 and d == CAPITAL_F)


@compiled
def _literal_end(blob, i, high):  # type: ignore[no-untyped-def]
    i += 1
    while i < high:
        c = blob[i]
        if not _STOPS_LITERAL[c]:
            i += 1
            continue
        if c == QUOTE:
            break
        if c != BACKSLASH or i + 1 >= high:
            return -1
        c = blob[i + 1]
        if c == SMALL_U:
            if not _canonical_escape(blob, i + 1, high):
                return -1
        elif not _ESCAPE[c]:
            return -1
        i += 2
    if i >= high:
        return -1
    i += 1
    if i < high and blob[i] == AT_SIGN:
        i += 1
        begin = i
        while i < high and _LANGUAGE[blob[i]]:
            i += 1
        return i if i > begin else -1
    if i + 2 < high and blob[i] == CARET and blob[i + 1] == CARET and blob[i + 2] == OPEN_ANGLE:
        begin = i + 2
        i = _iri_end(blob, begin, high)
        # "…"^^<http://www.w3.org/2001/XMLSchema#string> is written without its datatype.
        if i > 0 and same_bytes(blob, begin, i, _STRING, 0, _STRING.shape[0]):
            return -1
    return i


@compiled
def read_ntriples(blob, document, columns, first, term_low, term_high, term_hash, slots, odd, spans):  # type: ignore[no-untyped-def]
    """Reads document d = blob[document[d]:document[d + 1]] for all d; returns the number of distinct terms.

    `slots` must be free and at least twice the number of terms; `odd[d]` is set, and document d left without
    triples, when it is not canonical. `spans` is scratch: where the three terms of a line begin and end.
    """
    mask = np.uint64(slots.shape[0] - 1)
    count, terms = 0, 0
    for d in range(document.shape[0] - 1):
        first[d] = count
        i, high = document[d], document[d + 1]
        begin_count = count
        while i < high:
            if blob[i] == NEWLINE:
                i += 1
                continue
            ok = True
            for part in range(3):
                spans[part, 0] = i
                c = blob[i] if i < high else 0
                if c == OPEN_ANGLE:
                    end = _iri_end(blob, i, high)
                elif c == UNDERSCORE and part != 1:
                    end = _blank_end(blob, i, high)
                elif c == QUOTE and part == 2:
                    end = _literal_end(blob, i, high)
                else:
                    end = -1
                if end < 0 or end >= high or blob[end] != SPACE:
                    ok = False
                    break
                spans[part, 1] = end
                i = end + 1
            if not ok or i >= high or blob[i] != DOT or (i + 1 < high and blob[i + 1] != NEWLINE):
                odd[d] = True
                break
            i += 2
            for part in range(3):
                low, end = spans[part, 0], spans[part, 1]
                # A subject mostly goes on from one line to the next.
                if part == 0 and count > begin_count:
                    t = columns[0][count - 1]
                    if same_bytes(blob, low, end, blob, term_low[t], term_high[t]):
                        columns[0][count] = t
                        continue
                h = hash_span(blob, low, end)
                at = h & mask
                found = -1
                while slots[at] >= 0:
                    t = slots[at]
                    if term_hash[t] == h and same_bytes(blob, low, end, blob, term_low[t], term_high[t]):
                        found = t
                        break
                    at = (at + np.uint64(1)) & mask
                if found < 0:
                    found = terms
                    slots[at] = terms
                    term_low[terms], term_high[terms], term_hash[terms] = low, end, h
                    terms += 1
                columns[part][count] = found
            count += 1
        if odd[d]:
            count = begin_count
    first[document.shape[0] - 1] = count
    return terms
