"""Where each plain term of Turtle ends, and which bytes may stand in it.

Every scan goes on while the bytes are right and stops at the zeros behind the document, so none needs to know its
size. What is accepted is what the RDF parser accepts and writes in N-Triples as it stands; -1 is anything else.
"""

from __future__ import annotations

from tidings.arrays.characters import (
    BACKSLASH,
    CASE_BIT,
    CLOSE_ANGLE,
    COLON,
    CONTROLS,
    DIGITS,
    DOT,
    HASH,
    LETTERS,
    MINUS,
    PERCENT,
    PLUS,
    QUESTION,
    QUOTE,
    SLASH,
    SMALL_E,
    SMALL_LETTERS,
    TAB,
    bytes_of,
)
from tidings.arrays.compiled import compiled, inlined

TYPE, INTEGER, DECIMAL, DOUBLE, BOOLEAN = range(5)  # what Turtle has a short form for

WHITE_SPACE = bytes_of(" \t\r\n")
_DIGIT = bytes_of(DIGITS)
_HEXADECIMAL = bytes_of(DIGITS, "abcdefABCDEF")
_SMALL = bytes_of(SMALL_LETTERS)
LETTER = bytes_of(LETTERS)
NAME = bytes_of(LETTERS, DIGITS, "_-")
BEHIND_NAME = bytes_of(" \t\r\n;,.")  # more could follow; a dot is looked at again
BEHIND_DOT = bytes_of(" \t\r\n#\0")  # else it might belong to the name or the number
_SCHEME = bytes_of(LETTERS, DIGITS, "+-.")
_HOST = bytes_of(LETTERS, DIGITS, "-._~")
_IRI = bytes_of(LETTERS, DIGITS, "-._~!$&'()*+,;=:@/?")
_STRING = ~bytes_of('"\\\x7f', CONTROLS)  # as they are, in both syntaxes
_STRING[0xEF] = False  # U+FFFE and U+FFFF have an escape
_ESCAPE = bytes_of('tbnrf"\\')
_COMMENT = ~bytes_of(CONTROLS)
_COMMENT[TAB] = True


@inlined
def gap_end(data, i):  # type: ignore[no-untyped-def]
    """Behind the white space and comments at i."""
    while True:
        while WHITE_SPACE[data[i]]:
            i += 1
        if data[i] != HASH:
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
    if data[i] != COLON:
        return -1
    i += 1
    if data[i] == SLASH and data[i + 1] == SLASH:
        i += 2
        while _HOST[data[i]]:
            i += 1
        if data[i] == COLON:
            i += 1
            while _DIGIT[data[i]]:
                i += 1
        c = data[i]
        if c != SLASH and c != QUESTION and c != HASH and c != CLOSE_ANGLE:
            return -1
    in_fragment = False
    while True:
        while _IRI[data[i]]:
            i += 1
        c = data[i]
        if c == CLOSE_ANGLE:
            return i + 1
        if c == PERCENT:
            if not (_HEXADECIMAL[data[i + 1]] and _HEXADECIMAL[data[i + 2]]):
                return -1
            i += 3
        elif c == HASH and not in_fragment:
            in_fragment = True
            i += 1
        else:
            return -1


@compiled
def takes_names(data, low, high):  # type: ignore[no-untyped-def]
    """Whether the IRI data[low:high] stays one with any name behind it: its host and port have an end."""
    while data[low] != COLON:
        low += 1
    if data[low + 1] != SLASH or data[low + 2] != SLASH:
        return True
    for i in range(low + 3, high):
        if data[i] == SLASH or data[i] == QUESTION or data[i] == HASH:
            return True
    return False


@compiled
def string_end(data, i):  # type: ignore[no-untyped-def]
    """Behind the closing quote of the string at i, or -1 if it would be written in another way."""
    i += 1
    if data[i] == QUOTE and data[i + 1] == QUOTE:
        return -1
    while True:
        while _STRING[data[i]]:
            i += 1
        c = data[i]
        if c == QUOTE:
            return i + 1
        if c == BACKSLASH and _ESCAPE[data[i + 1]]:
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
    while data[i] == MINUS:
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
    if data[i] == PLUS or data[i] == MINUS:
        i += 1
    if not _DIGIT[data[i]]:
        return -1, kind
    while _DIGIT[data[i]]:
        i += 1
    if data[i] == DOT and _DIGIT[data[i + 1]]:
        kind = DECIMAL
        i += 1
        while _DIGIT[data[i]]:
            i += 1
    if data[i] | CASE_BIT == SMALL_E:
        kind = DOUBLE
        i += 1
        if data[i] == PLUS or data[i] == MINUS:
            i += 1
        if not _DIGIT[data[i]]:
            return -1, kind
        while _DIGIT[data[i]]:
            i += 1
    return (i if BEHIND_NAME[data[i]] else -1), kind
