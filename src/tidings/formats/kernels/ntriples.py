"""N-Triples bytes -> numbered terms and triples of numbers, in one pass.

Only the canonical form (what `tidings.model.terms` and pyoxigraph write) is read here. Anything else, valid or not,
sets the document's flag, and its bytes go through the RDF parser first. So canonical graphs cost no parser at
all, and none is ever misread.

    terms     numbered by first appearance in the batch; term i is blob[term_low[i]:term_high[i]]
    triples   three columns of term numbers; document d owns rows first[d] to first[d + 1]
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled
from tidings.arrays.hashing import hash_span, same_bytes

# Bytes at which a scan has to stop and look: what ends an IRI or may not stand in one, and in a literal.
_STOPS_IRI = np.zeros(256, dtype=np.bool_)
_STOPS_IRI[:33] = True
_STOPS_IRI[list(b'"<>\\^`{|}')] = True
_STOPS_LITERAL = np.zeros(256, dtype=np.bool_)
_STOPS_LITERAL[:32] = True
_STOPS_LITERAL[[34, 92, 127]] = True
_STRING = np.frombuffer(b"<http://www.w3.org/2001/XMLSchema#string>", dtype=np.uint8).copy()


@compiled
def _iri_end(blob, i, high):  # type: ignore[no-untyped-def]
    """Just behind the '>' of the IRI that starts at i, or -1; it must be absolute."""
    i += 1
    begin = i
    while i < high and blob[i] != 58 and not _STOPS_IRI[blob[i]]:
        i += 1
    if i >= high or i == begin or blob[i] != 58:
        return -1
    while i < high and not _STOPS_IRI[blob[i]]:
        i += 1
    return i + 1 if i < high and blob[i] == 62 else -1


@compiled
def _blank_end(blob, i, high):  # type: ignore[no-untyped-def]
    if i + 1 >= high or blob[i + 1] != 58:
        return -1
    i += 2
    begin = i
    while i < high:
        c = blob[i]
        if not (
            48 <= c <= 57 or 65 <= c <= 90 or 97 <= c <= 122 or c == 95 or c == 45 or c == 46 or c >= 128
        ):
            break
        i += 1
    return i if i > begin else -1


@compiled
def _canonical_escape(blob, i, high):  # type: ignore[no-untyped-def]
    """Whether uXXXX at i is how the canonical form writes that character: controls without a short escape."""
    if i + 4 >= high:
        return False
    a, b, c, d = blob[i + 1], blob[i + 2], blob[i + 3], blob[i + 4]
    hexadecimal = 48 <= d <= 57 or 65 <= d <= 70
    if a == 70 and b == 70 and c == 70:
        return d == 69 or d == 70
    if a != 48 or b != 48:
        return False
    if c == 48:
        return hexadecimal and d != 56 and d != 57 and d != 65 and d != 67 and d != 68
    return (c == 49 and hexadecimal) or (c == 55 and d == 70)


@compiled
def _literal_end(blob, i, high):  # type: ignore[no-untyped-def]
    i += 1
    while i < high:
        c = blob[i]
        if not _STOPS_LITERAL[c]:
            i += 1
            continue
        if c == 34:
            break
        if c != 92 or i + 1 >= high:
            return -1
        c = blob[i + 1]
        if c == 117:
            if not _canonical_escape(blob, i + 1, high):
                return -1
        elif c != 98 and c != 116 and c != 110 and c != 102 and c != 114 and c != 34 and c != 92:
            return -1
        i += 2
    if i >= high:
        return -1
    i += 1
    if i < high and blob[i] == 64:
        i += 1
        begin = i
        while i < high:
            c = blob[i]
            if not (48 <= c <= 57 or 97 <= c <= 122 or c == 45):
                break
            i += 1
        return i if i > begin else -1
    if i + 2 < high and blob[i] == 94 and blob[i + 1] == 94 and blob[i + 2] == 60:
        begin = i + 2
        i = _iri_end(blob, begin, high)
        # "…"^^<http://www.w3.org/2001/XMLSchema#string> is written without its datatype.
        if i > 0 and same_bytes(blob, begin, i, _STRING, 0, _STRING.shape[0]):
            return -1
    return i


@compiled
def read_ntriples(blob, document, columns, first, term_low, term_high, term_hash, slots, odd, place):  # type: ignore[no-untyped-def]
    """Reads document d = blob[document[d]:document[d + 1]] for all d; returns the number of distinct terms.

    `slots` must be free and at least twice the number of terms; `odd[d]` is set, and document d left without
    triples, when it is not canonical. `place` is scratch for the three terms of a line.
    """
    mask = np.uint64(slots.shape[0] - 1)
    count, terms = 0, 0
    for d in range(document.shape[0] - 1):
        first[d] = count
        i, high = document[d], document[d + 1]
        begin_count = count
        while i < high:
            if blob[i] == 10:
                i += 1
                continue
            ok = True
            for part in range(3):
                place[part, 0] = i
                c = blob[i] if i < high else 0
                if c == 60:
                    end = _iri_end(blob, i, high)
                elif c == 95 and part != 1:
                    end = _blank_end(blob, i, high)
                elif c == 34 and part == 2:
                    end = _literal_end(blob, i, high)
                else:
                    end = -1
                if end < 0 or end >= high or blob[end] != 32:
                    ok = False
                    break
                place[part, 1] = end
                i = end + 1
            if not ok or i >= high or blob[i] != 46 or (i + 1 < high and blob[i + 1] != 10):
                odd[d] = True
                break
            i += 2
            for part in range(3):
                low, end = place[part, 0], place[part, 1]
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
