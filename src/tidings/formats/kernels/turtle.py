"""Turtle as most people write it -> canonical N-Triples bytes, in one pass without a parser.

Only the plain part of Turtle is read here: prefixes, absolute IRIs, names without dots or escapes, labelled blank
nodes, strings in one pair of double quotes, numbers, booleans. Anything else, valid or not, is left to the RDF
parser, so what is written here is byte for byte what the parser would have written.

A line `S P O .` begins at `line`, its P at `predicate` and its O at `object`: `;` copies it up to P, `,` up to O.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.arrays.hashing import same_bytes
from tidings.formats.documents import MAX_BYTES
from tidings.formats.kernels.turtle_terms import (
    BEHIND_DOT,
    BEHIND_NAME,
    BOOLEAN,
    LETTER,
    NAME,
    SPACE,
    TYPE,
    gap_end,
    iri_end,
    language_end,
    number_end,
    string_end,
    takes_names,
)
from tidings.formats.namespaces import RDF, XSD

_NOT_PLAIN, _NO_ROOM = -1, -2
_SUBJECT, _PREDICATE, _OBJECT, _DATATYPE, _END = range(5)  # what has to come next

_MAX_PREFIXES = 64
_MARGIN = 128  # what a step may write beyond the spans it has asked room for
_1, _2, _3, _4, _5, _6, _7, _8 = map(np.uint64, range(1, 9))
_ZEROS = bytes(8)  # behind the document: the first stops every scan, the others may be copied along


def _texts(*texts: str) -> tuple[np.ndarray, np.ndarray]:
    """Texts in one array, and where each begins."""
    begins = np.cumsum([0, *map(len, texts)])
    return np.frombuffer("".join(texts).encode() + _ZEROS, dtype=np.uint8).copy(), begins


_FIXED, _FIXED_AT = _texts(
    f"<{RDF}type>", *(f'"^^<{XSD}{name}>' for name in ("integer", "decimal", "double", "boolean"))
)
# The parser drops the first and refuses the others.
_SPECIAL, _SPECIAL_AT = _texts(f"<{XSD}string>", f"<{RDF}langString>", f"<{RDF}dirLangString>")
_KEYWORD = np.frombuffer(b"prefix", dtype=np.uint8).copy()
_TRUE = np.frombuffer(b"true", dtype=np.uint8).copy()
_FALSE = np.frombuffer(b"false", dtype=np.uint8).copy()


def plain_turtle(data: bytes) -> bytes | None:
    """The graph in `data` as canonical N-Triples; None leaves it to the parser to say what it is."""
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return None
    document = np.frombuffer(data + _ZEROS, dtype=np.uint8)
    prefixes = np.empty((_MAX_PREFIXES, 4), dtype=np.int64)
    for room in (8 * len(data) + 1024, MAX_BYTES):  # few prefixes are longer than eight names
        out = np.empty(min(room, MAX_BYTES), dtype=np.uint8)
        size = _transcode(document, prefixes, out)
        if size >= 0:
            return out[:size].tobytes()
        if size == _NOT_PLAIN:
            break
    return None


@inlined
def _copy(source, low, high, out, o):  # type: ignore[no-untyped-def]
    """Copies eight bytes at a time, so up to seven too many; returns where the next byte goes.

    Indexes without a sign cannot count from the end, so LLVM sees neighbours and makes one load and one store.
    """
    i, k = np.uint64(low), np.uint64(o)
    for _ in range((high - low + 7) >> 3):
        a, b, c, d = source[i], source[i + _1], source[i + _2], source[i + _3]
        e, f, g, h = source[i + _4], source[i + _5], source[i + _6], source[i + _7]
        out[k], out[k + _1], out[k + _2], out[k + _3] = a, b, c, d
        out[k + _4], out[k + _5], out[k + _6], out[k + _7] = e, f, g, h
        i += _8
        k += _8
    return o + high - low


@inlined
def _find_prefix(data, low, high, prefixes, count):  # type: ignore[no-untyped-def]
    """The number of the prefix with the name data[low:high], or -1."""
    for k in range(count):
        at = prefixes[k, 0]
        if prefixes[k, 1] - at == high - low:
            i = low
            while i < high and data[i] == data[at]:
                i += 1
                at += 1
            if i == high:
                return k
    return -1


@compiled
def _declaration(data, i, prefixes, count):  # type: ignore[no-untyped-def]
    """Reads `name: <iri>` at i into the table of prefixes; returns the end, or -1, and the number of prefixes."""
    i = gap_end(data, i)
    low = i
    if LETTER[data[i]]:
        while NAME[data[i]]:
            i += 1
    if data[i] != 58:
        return -1, count
    high = i
    i = gap_end(data, i + 1)
    if data[i] != 60:
        return -1, count
    end = iri_end(data, i)
    if end < 0 or not takes_names(data, i + 1, end - 1):
        return -1, count
    k = _find_prefix(data, low, high, prefixes, count)
    if k < 0:
        if count == prefixes.shape[0]:
            return -1, count
        k = count
        count += 1
    prefixes[k, 0], prefixes[k, 1], prefixes[k, 2], prefixes[k, 3] = low, high, i, end - 1
    return end, count


@compiled
def _is_keyword(data, low, high):  # type: ignore[no-untyped-def]
    """Whether data[low:high] is PREFIX in any case."""
    if high - low != 6:
        return False
    for k in range(6):
        if data[low + k] | 32 != _KEYWORD[k]:
            return False
    return True


@compiled
def _is_special(out, low, high):  # type: ignore[no-untyped-def]
    for k in range(_SPECIAL_AT.shape[0] - 1):
        if same_bytes(out, low, high, _SPECIAL, _SPECIAL_AT[k], _SPECIAL_AT[k + 1]):
            return True
    return False


@compiled
def _transcode(data, prefixes, out):  # type: ignore[no-untyped-def]
    """Writes the lines of the document to `out`; returns their size, _NOT_PLAIN or _NO_ROOM.

    `data` ends with eight zeros and `prefixes` is scratch: where a prefix's name and its IRI, with the '<', lie.
    """
    last, room = data.shape[0] - 8, out.shape[0] - _MARGIN
    count = 0
    state, repeated = _SUBJECT, False  # repeated: behind a ';'
    i, o = 0, 0
    line, predicate, object = 0, 0, 0
    while True:
        i = gap_end(data, i)
        c = data[i]
        if state == _END:
            if c == 59:
                state, repeated = _PREDICATE, True
            elif c == 44:
                if o + o - line > room:
                    return _NO_ROOM
                start = o
                o = _copy(out, line, object, out, o)
                predicate, object, line = start + predicate - line, o, start
                state = _OBJECT
            elif c == 46 and BEHIND_DOT[data[i + 1]]:
                state = _SUBJECT
            else:
                return _NOT_PLAIN
            i += 1
            continue

        if state == _SUBJECT:
            if i >= last:
                return o if i == last else _NOT_PLAIN
            if c == 64:
                if not (same_bytes(data, i + 1, i + 7, _KEYWORD, 0, 6) and SPACE[data[i + 7]]):
                    return _NOT_PLAIN
                i, count = _declaration(data, i + 7, prefixes, count)
                if i < 0:
                    return _NOT_PLAIN
                i = gap_end(data, i)
                if data[i] != 46:
                    return _NOT_PLAIN
                i += 1
                continue
            line = o
        elif state == _PREDICATE and repeated:
            if c == 59:
                i += 1
                continue
            if c == 46 and BEHIND_DOT[data[i + 1]]:
                i += 1
                state, repeated = _SUBJECT, False
                continue
            if o + o - line > room:
                return _NO_ROOM
            start = o
            o = _copy(out, line, predicate, out, o)
            predicate, line = o, start
            repeated = False

        begin = o
        if c == 60:
            end = iri_end(data, i)
            if end < 0:
                return _NOT_PLAIN
            if o + end - i > room:
                return _NO_ROOM
            o = _copy(data, i, end, out, o)
            i = end
        elif c == 58 or LETTER[c]:
            low = i
            while NAME[data[i]]:
                i += 1
            if data[i] == 58:
                k = _find_prefix(data, low, i, prefixes, count)
                i += 1
                if k < 0 or data[i] == 45:
                    return _NOT_PLAIN
                low = i
                while NAME[data[i]]:
                    i += 1
                if not BEHIND_NAME[data[i]]:
                    return _NOT_PLAIN
                if o + prefixes[k, 3] - prefixes[k, 2] + i - low > room:
                    return _NO_ROOM
                o = _copy(data, prefixes[k, 2], prefixes[k, 3], out, o)
                o = _copy(data, low, i, out, o)
                out[o] = 62
                o += 1
            elif state == _PREDICATE and c == 97 and i - low == 1 and SPACE[data[i]]:
                if o > room:
                    return _NO_ROOM
                o = _copy(_FIXED, _FIXED_AT[TYPE], _FIXED_AT[TYPE + 1], out, o)
            elif state == _SUBJECT and _is_keyword(data, low, i) and SPACE[data[i]]:
                i, count = _declaration(data, i, prefixes, count)
                if i < 0:
                    return _NOT_PLAIN
                continue
            elif (
                state == _OBJECT
                and BEHIND_NAME[data[i]]
                and (same_bytes(data, low, i, _TRUE, 0, 4) or same_bytes(data, low, i, _FALSE, 0, 5))
            ):
                if o > room:
                    return _NO_ROOM
                out[o] = 34
                o = _copy(data, low, i, out, o + 1)
                o = _copy(_FIXED, _FIXED_AT[BOOLEAN], _FIXED_AT[BOOLEAN + 1], out, o)
            else:
                return _NOT_PLAIN
        elif c == 95 and (state == _SUBJECT or state == _OBJECT):
            low = i
            if data[i + 1] != 58 or data[i + 2] == 45:
                return _NOT_PLAIN
            i += 2
            while NAME[data[i]]:
                i += 1
            if i == low + 2 or not BEHIND_NAME[data[i]]:
                return _NOT_PLAIN
            if o + i - low > room:
                return _NO_ROOM
            o = _copy(data, low, i, out, o)
        elif state == _OBJECT and c == 34:
            low = i
            i = string_end(data, i)
            if i > 0 and data[i] == 64:
                i = language_end(data, i + 1)
            if i < 0:
                return _NOT_PLAIN
            if o + i - low > room:
                return _NO_ROOM
            o = _copy(data, low, i, out, o)
            if data[i] == 94:
                if data[i + 1] != 94:
                    return _NOT_PLAIN
                out[o], out[o + 1] = 94, 94
                o += 2
                i += 2
                state = _DATATYPE
                continue
        elif state == _OBJECT:
            low = i
            i, kind = number_end(data, i)
            if i < 0:
                return _NOT_PLAIN
            if o + i - low > room:
                return _NO_ROOM
            out[o] = 34
            o = _copy(data, low, i, out, o + 1)
            o = _copy(_FIXED, _FIXED_AT[kind], _FIXED_AT[kind + 1], out, o)
        else:
            return _NOT_PLAIN

        out[o] = 32
        o += 1
        if state == _SUBJECT:
            predicate = o
            state = _PREDICATE
        elif state == _PREDICATE:
            object = o
            state = _OBJECT
        else:
            if state == _DATATYPE and _is_special(out, begin, o - 1):
                return _NOT_PLAIN
            out[o], out[o + 1] = 46, 10
            o += 2
            state = _END
