"""Turtle as most people write it -> canonical N-Triples bytes, in one pass without a parser.

Only the plain part of Turtle is read here: prefixes, absolute IRIs, names without dots or escapes, labelled blank
nodes, strings in one pair of double quotes, numbers, booleans. Anything else, valid or not, is left to the RDF
parser, so what is written here is byte for byte what the parser would have written.

A line `S P O .` begins at `line`, its P at `predicate` and its O at `object`: `;` copies it up to P, `,` up to O.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.characters import (
    AT_SIGN,
    CARET,
    CASE_BIT,
    CLOSE_ANGLE,
    COLON,
    COMMA,
    DOT,
    MINUS,
    NEWLINE,
    OPEN_ANGLE,
    QUOTE,
    SEMICOLON,
    SMALL_A,
    SPACE,
    UNDERSCORE,
)
from tidings.arrays.compiled import compiled, inlined
from tidings.arrays.hashing import same_bytes
from tidings.formats.documents import MAX_BYTES
from tidings.formats.kernels.turtle_terms import (
    BEHIND_DOT,
    BEHIND_NAME,
    BOOLEAN,
    LETTER,
    NAME,
    TYPE,
    WHITE_SPACE,
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
    if data[i] != COLON:
        return -1, count
    high = i
    i = gap_end(data, i + 1)
    if data[i] != OPEN_ANGLE:
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
        if data[low + k] | CASE_BIT != _KEYWORD[k]:
            return False
    return True


@compiled
def _is_special(out, low, high):  # type: ignore[no-untyped-def]
    for k in range(_SPECIAL_AT.shape[0] - 1):
        if same_bytes(out, low, high, _SPECIAL, _SPECIAL_AT[k], _SPECIAL_AT[k + 1]):
            return True
    return False


@inlined
def _is_boolean(data, low, high):  # type: ignore[no-untyped-def]
    return same_bytes(data, low, high, _TRUE, 0, 4) or same_bytes(data, low, high, _FALSE, 0, 5)


# Each of these writes the term at i to `out` from o on. It returns where the term ends in the document and in `out`;
# instead of the first, _NOT_PLAIN or _NO_ROOM.


@inlined
def _write_span(data, low, high, out, o, room):  # type: ignore[no-untyped-def]
    if o + high - low > room:
        return _NO_ROOM, o
    return high, _copy(data, low, high, out, o)


@inlined
def _write_iri(data, i, out, o, room):  # type: ignore[no-untyped-def]
    end = iri_end(data, i)
    if end < 0:
        return _NOT_PLAIN, o
    return _write_span(data, i, end, out, o, room)


@inlined
def _write_name(data, low, i, prefixes, count, out, o, room):  # type: ignore[no-untyped-def]
    """The name whose prefix is data[low:i]."""
    k = _find_prefix(data, low, i, prefixes, count)
    i += 1
    if k < 0 or data[i] == MINUS:
        return _NOT_PLAIN, o
    low = i
    while NAME[data[i]]:
        i += 1
    if not BEHIND_NAME[data[i]]:
        return _NOT_PLAIN, o
    if o + prefixes[k, 3] - prefixes[k, 2] + i - low > room:
        return _NO_ROOM, o
    o = _copy(data, prefixes[k, 2], prefixes[k, 3], out, o)
    o = _copy(data, low, i, out, o)
    out[o] = CLOSE_ANGLE
    return i, o + 1


@inlined
def _write_word(data, low, i, state, prefixes, count, out, o, room):  # type: ignore[no-untyped-def]
    """What begins with the letters data[low:i]: a name, `a`, `true` or `false`."""
    if data[i] == COLON:
        return _write_name(data, low, i, prefixes, count, out, o, room)
    if state == _PREDICATE and data[low] == SMALL_A and i - low == 1 and WHITE_SPACE[data[i]]:
        if o > room:
            return _NO_ROOM, o
        return i, _copy(_FIXED, _FIXED_AT[TYPE], _FIXED_AT[TYPE + 1], out, o)
    if state == _OBJECT and BEHIND_NAME[data[i]] and _is_boolean(data, low, i):
        return _write_typed(data, low, i, BOOLEAN, out, o, room)
    return _NOT_PLAIN, o


@inlined
def _write_blank_node(data, i, out, o, room):  # type: ignore[no-untyped-def]
    low = i
    if data[i + 1] != COLON or data[i + 2] == MINUS:
        return _NOT_PLAIN, o
    i += 2
    while NAME[data[i]]:
        i += 1
    if i == low + 2 or not BEHIND_NAME[data[i]]:
        return _NOT_PLAIN, o
    return _write_span(data, low, i, out, o, room)


@inlined
def _write_string(data, i, out, o, room):  # type: ignore[no-untyped-def]
    """The string with its language, or with the carets in front of its datatype."""
    end = string_end(data, i)
    if end > 0 and data[end] == AT_SIGN:
        end = language_end(data, end + 1)
    if end < 0:
        return _NOT_PLAIN, o
    if data[end] == CARET:
        if data[end + 1] != CARET:
            return _NOT_PLAIN, o
        end += 2
    return _write_span(data, i, end, out, o, room)


@inlined
def _write_typed(data, low, high, kind, out, o, room):  # type: ignore[no-untyped-def]
    """The number or the boolean data[low:high] with the datatype of its kind."""
    if o + high - low > room:
        return _NO_ROOM, o
    out[o] = QUOTE
    o = _copy(data, low, high, out, o + 1)
    return high, _copy(_FIXED, _FIXED_AT[kind], _FIXED_AT[kind + 1], out, o)


@inlined
def _write_number(data, i, out, o, room):  # type: ignore[no-untyped-def]
    end, kind = number_end(data, i)
    if end < 0:
        return _NOT_PLAIN, o
    return _write_typed(data, i, end, kind, out, o, room)


@inlined
def _at_declaration(data, i, prefixes, count):  # type: ignore[no-untyped-def]
    """Reads `@prefix name: <iri> .` at i; as `_declaration`."""
    if not (same_bytes(data, i + 1, i + 7, _KEYWORD, 0, 6) and WHITE_SPACE[data[i + 7]]):
        return -1, count
    i, count = _declaration(data, i + 7, prefixes, count)
    if i < 0:
        return -1, count
    i = gap_end(data, i)
    return (i + 1 if data[i] == DOT else -1), count


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
    while i >= 0:
        i = gap_end(data, i)
        c = data[i]
        if state == _END:
            if c == SEMICOLON:
                state, repeated = _PREDICATE, True
            elif c == COMMA:
                if o + o - line > room:
                    return _NO_ROOM
                start = o
                o = _copy(out, line, object, out, o)
                predicate, object, line = start + predicate - line, o, start
                state = _OBJECT
            elif c == DOT and BEHIND_DOT[data[i + 1]]:
                state = _SUBJECT
            else:
                return _NOT_PLAIN
            i += 1
            continue

        if state == _SUBJECT:
            if i >= last:
                return o if i == last else _NOT_PLAIN
            if c == AT_SIGN:
                i, count = _at_declaration(data, i, prefixes, count)
                continue
            line = o
        elif state == _PREDICATE and repeated:
            if c == SEMICOLON:
                i += 1
                continue
            if c == DOT and BEHIND_DOT[data[i + 1]]:
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
        if c == OPEN_ANGLE:
            i, o = _write_iri(data, i, out, o, room)
        elif c == COLON or LETTER[c]:
            low = i
            while NAME[data[i]]:
                i += 1
            if state == _SUBJECT and WHITE_SPACE[data[i]] and _is_keyword(data, low, i):
                i, count = _declaration(data, i, prefixes, count)
                continue
            i, o = _write_word(data, low, i, state, prefixes, count, out, o, room)
        elif c == UNDERSCORE and (state == _SUBJECT or state == _OBJECT):
            i, o = _write_blank_node(data, i, out, o, room)
        elif state == _OBJECT and c == QUOTE:
            i, o = _write_string(data, i, out, o, room)
            if i > 0 and data[i - 1] == CARET:
                state = _DATATYPE
                continue
        elif state == _OBJECT:
            i, o = _write_number(data, i, out, o, room)
        else:
            return _NOT_PLAIN
        if i < 0:
            break

        out[o] = SPACE
        o += 1
        if state == _SUBJECT:
            predicate, state = o, _PREDICATE
        elif state == _PREDICATE:
            object, state = o, _OBJECT
        else:
            if state == _DATATYPE and _is_special(out, begin, o - 1):
                return _NOT_PLAIN
            out[o], out[o + 1] = DOT, NEWLINE
            o += 2
            state = _END
    return i
