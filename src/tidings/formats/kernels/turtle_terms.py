"""Where each plain term of Turtle ends, and which bytes may stand in it.

Every scan goes on while the bytes are right and stops at the zeros behind the document, so none needs to know its
size. What is accepted is what the RDF parser accepts and writes in N-Triples as it stands; -1 is anything else.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled, inlined

TYPE, INTEGER, DECIMAL, DOUBLE, BOOLEAN = range(5)  # what Turtle has a short form for


def _bytes_of(*texts: str) -> np.ndarray:
    among = np.zeros(256, dtype=np.bool_)
    among[list("".join(texts).encode())] = True
    return among


_DIGITS = "0123456789"
_LOWER = "abcdefghijklmnopqrstuvwxyz"
_LETTERS = _LOWER + _LOWER.upper()
SPACE = _bytes_of(" \t\r\n")
_DIGIT = _bytes_of(_DIGITS)
_HEXADECIMAL = _bytes_of(_DIGITS, "abcdefABCDEF")
_SMALL = _bytes_of(_LOWER)
LETTER = _bytes_of(_LETTERS)
NAME = _bytes_of(_LETTERS, _DIGITS, "_-")
BEHIND_NAME = _bytes_of(" \t\r\n;,.")  # more could follow; a dot is looked at again
BEHIND_DOT = _bytes_of(" \t\r\n#\0")  # else it might belong to the name or the number
_SCHEME = _bytes_of(_LETTERS, _DIGITS, "+-.")
_HOST = _bytes_of(_LETTERS, _DIGITS, "-._~")
_IRI = _bytes_of(_LETTERS, _DIGITS, "-._~!$&'()*+,;=:@/?")
_STRING = ~_bytes_of('"\\\x7f', "".join(map(chr, range(32))))  # as they are, in both syntaxes
_STRING[0xEF] = False  # U+FFFE and U+FFFF have an escape
_ESCAPE = _bytes_of('tbnrf"\\')
_COMMENT = ~_bytes_of("".join(map(chr, range(32))))
_COMMENT[9] = True


@inlined
def gap_end(data, i):  # type: ignore[no-untyped-def]
    """Behind the white space and comments at i."""
    while True:
        while SPACE[data[i]]:
            i += 1
        if data[i] != 35:
            return i
        while _COMMENT[data[i]]:
            i += 1


@compiled
def iri_end(data, i):  # type: ignore[no-untyped-def]
    """Behind the '>' of the IRI at i, or -1; it must be absolute, in ASCII and right in each of its parts."""
    i += 1
    if not LETTER[data[i]]:
        return -1
    while _SCHEME[data[i]]:
        i += 1
    if data[i] != 58:
        return -1
    i += 1
    if data[i] == 47 and data[i + 1] == 47:
        i += 2
        while _HOST[data[i]]:
            i += 1
        if data[i] == 58:
            i += 1
            while _DIGIT[data[i]]:
                i += 1
        c = data[i]
        if c != 47 and c != 63 and c != 35 and c != 62:
            return -1
    in_fragment = False
    while True:
        while _IRI[data[i]]:
            i += 1
        c = data[i]
        if c == 62:
            return i + 1
        if c == 37:
            if not (_HEXADECIMAL[data[i + 1]] and _HEXADECIMAL[data[i + 2]]):
                return -1
            i += 3
        elif c == 35 and not in_fragment:
            in_fragment = True
            i += 1
        else:
            return -1


@compiled
def takes_names(data, low, high):  # type: ignore[no-untyped-def]
    """Whether the IRI data[low:high] stays one with any name behind it: its host and port have an end."""
    while data[low] != 58:
        low += 1
    if data[low + 1] != 47 or data[low + 2] != 47:
        return True
    for i in range(low + 3, high):
        if data[i] == 47 or data[i] == 63 or data[i] == 35:
            return True
    return False


@compiled
def string_end(data, i):  # type: ignore[no-untyped-def]
    """Behind the closing quote of the string at i, or -1 if it would be written in another way."""
    i += 1
    if data[i] == 34 and data[i + 1] == 34:
        return -1
    while True:
        while _STRING[data[i]]:
            i += 1
        c = data[i]
        if c == 34:
            return i + 1
        if c == 92 and _ESCAPE[data[i + 1]]:
            i += 2
        elif c == 0xEF and (data[i + 1] != 0xBF or data[i + 2] < 0xBE):
            i += 3
        else:
            return -1


@compiled
def language_end(data, i):  # type: ignore[no-untyped-def]
    """Behind the language tag at i, or -1: a language, perhaps a script, perhaps a country, in small letters."""
    low = i
    while _SMALL[data[i]]:
        i += 1
    if i - low < 2 or i - low > 3:
        return -1
    allowed = 4
    while data[i] == 45:
        low = i + 1
        i = low
        while _SMALL[data[i]]:
            i += 1
        if i - low == 4 and allowed == 4:
            allowed = 2
        elif i - low == 2 and allowed > 0:
            allowed = 0
        else:
            return -1
    return i if BEHIND_NAME[data[i]] else -1


@compiled
def number_end(data, i):  # type: ignore[no-untyped-def]
    """Behind the number at i, or -1, and its type."""
    kind = INTEGER
    if data[i] == 43 or data[i] == 45:
        i += 1
    if not _DIGIT[data[i]]:
        return -1, kind
    while _DIGIT[data[i]]:
        i += 1
    if data[i] == 46 and _DIGIT[data[i + 1]]:
        kind = DECIMAL
        i += 1
        while _DIGIT[data[i]]:
            i += 1
    if data[i] | 32 == 101:
        kind = DOUBLE
        i += 1
        if data[i] == 43 or data[i] == 45:
            i += 1
        if not _DIGIT[data[i]]:
            return -1, kind
        while _DIGIT[data[i]]:
            i += 1
    return (i if BEHIND_NAME[data[i]] else -1), kind
