"""The tokens of JSON in bytes: names, strings, numbers, lines.

Strings are searched eight bytes at a time: in `specials` of a word, the lowest bit that is set belongs to the first
byte that is not plain: a quote, a backslash, a control, or a byte above ASCII. Nothing here reads behind the blob,
but a scan may read behind its object, where another may follow: its caller compares the end of the token with the
object's end.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.characters import (
    BACKSLASH,
    CASE_BIT,
    DIGIT_0,
    DIGIT_9,
    DOT,
    MINUS,
    NEWLINE,
    PLUS,
    QUOTE,
    RETURN,
    SMALL_E,
    SMALL_U,
    SPACE,
    TAB,
)
from tidings.arrays.compiled import compiled, inlined

_1, _2, _3, _4, _5, _6, _7 = map(np.uint64, range(1, 8))
_8, _16, _24, _32, _40, _48, _56 = map(np.uint64, range(8, 64, 8))
_ONES = np.uint64(0x0101010101010101)
_TOPS = np.uint64(0x8080808080808080)
_QUOTES = np.uint64(0x2222222222222222)
_BACKSLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)
_SPACES = np.uint64(0x2020202020202020)
_NEWLINES = np.uint64(0x0A0A0A0A0A0A0A0A)
_ZERO = np.uint64(0)

# Longer numbers and larger exponents are left to Python, which knows what is beyond a float.
_MAX_DIGITS, _MAX_EXPONENT = 200, 2

_HEX = np.full(256, -1, dtype=np.int64)
for _digits in (b"0123456789abcdef", b"0123456789ABCDEF"):
    _HEX[list(_digits)] = range(16)
# What a letter behind a backslash stands for; 0 where none may stand.
_ESCAPES = np.zeros(256, dtype=np.uint8)
_ESCAPES[list(b'"\\/bfnrt')] = list(b'"\\/\b\f\n\r\t')


@inlined
def byte(blob, i):  # type: ignore[no-untyped-def]
    """An unsigned index cannot count from the end, which spares a comparison."""
    return blob[np.uint64(i)]


@inlined
def full_word(blob, i):  # type: ignore[no-untyped-def]
    """The eight bytes from i on as one number; LLVM makes one load of it."""
    k = np.uint64(i)
    return (
        np.uint64(blob[k])
        | (np.uint64(blob[k + _1]) << _8)
        | (np.uint64(blob[k + _2]) << _16)
        | (np.uint64(blob[k + _3]) << _24)
        | (np.uint64(blob[k + _4]) << _32)
        | (np.uint64(blob[k + _5]) << _40)
        | (np.uint64(blob[k + _6]) << _48)
        | (np.uint64(blob[k + _7]) << _56)
    )


@compiled
def _last_word(blob, i):  # type: ignore[no-untyped-def]
    w = _ZERO
    for k in range(blob.shape[0] - i):
        w |= np.uint64(blob[i + k]) << np.uint64(8 * k)
    return w


@inlined
def word(blob, i):  # type: ignore[no-untyped-def]
    """As `full_word`; behind the blob come zeros, which no string may hold."""
    if i + 8 <= blob.shape[0]:
        return full_word(blob, i)
    return _last_word(blob, i)


@inlined
def specials(w):  # type: ignore[no-untyped-def]
    quote, backslash = w ^ _QUOTES, w ^ _BACKSLASHES
    return (
        ((quote - _ONES) & ~quote) | ((backslash - _ONES) & ~backslash) | ((w - _SPACES) & ~w) | w
    ) & _TOPS


@inlined
def below(mask):  # type: ignore[no-untyped-def]
    """All bits of the bytes in front of the first that is marked in `mask`."""
    return ((mask & (~mask + _1)) - _1) >> _7


@inlined
def bytes_in(mask):  # type: ignore[no-untyped-def]
    """How many bytes `below` covers."""
    return np.int64(((mask & _ONES) * _ONES) >> _56)


@inlined
def string_end(blob, i, last):  # type: ignore[no-untyped-def]
    """The position of the quote that ends the string whose text starts at i; negative if the text has escapes; 0 if
    no valid string ends before `last`."""
    w = word(blob, i)
    mask = specials(w)
    while mask == _ZERO:
        i += 8
        w = word(blob, i)
        mask = specials(w)
    i += bytes_in(below(mask))
    if i >= last:
        return 0
    if byte(blob, i) == QUOTE:
        return i
    return odd_string_end(blob, i, last)


@compiled
def odd_string_end(blob, i, last):  # type: ignore[no-untyped-def]
    """As `string_end`, from a byte that is not plain on."""
    escaped = False
    while i < last:
        mask = specials(word(blob, i))
        if mask == _ZERO:
            i += 8
            continue
        i += bytes_in(below(mask))
        if i >= last:
            return 0
        c = byte(blob, i)
        if c == QUOTE:
            return -i if escaped else i
        if c == BACKSLASH:
            escaped = True
            if i + 1 >= last:
                return 0
            c = byte(blob, i + 1)
            if c == SMALL_U:
                if i + 5 >= last or _code(blob, i + 2) < 0:
                    return 0
                i += 6
            elif _ESCAPES[c] != 0:
                i += 2
            else:
                return 0
        else:
            size = _character(blob, i, last)
            if size == 0:
                return 0
            i += size
    return 0


@inlined
def _code(blob, i):  # type: ignore[no-untyped-def]
    """The number that four hexadecimal digits write; negative if they do not."""
    return (
        (_HEX[byte(blob, i)] << 12)
        | (_HEX[byte(blob, i + 1)] << 8)
        | (_HEX[byte(blob, i + 2)] << 4)
        | _HEX[byte(blob, i + 3)]
    )


@inlined
def _continues(c):  # type: ignore[no-untyped-def]
    return c & 0xC0 == 0x80


@inlined
def _character(blob, i, last):  # type: ignore[no-untyped-def]
    """The bytes of the character above ASCII at i; 0 if it is not UTF-8, half a surrogate pair, or a control."""
    a = byte(blob, i)
    if a < 0xC2 or a > 0xF4 or i + 1 >= last:
        return 0
    b = byte(blob, i + 1)
    if not _continues(b):
        return 0
    if a < 0xE0:
        return 2
    if i + 2 >= last or not _continues(byte(blob, i + 2)):
        return 0
    if a < 0xF0:
        return 0 if (a == 0xE0 and b < 0xA0) or (a == 0xED and b > 0x9F) else 3
    if i + 3 >= last or not _continues(byte(blob, i + 3)):
        return 0
    return 0 if (a == 0xF0 and b < 0x90) or (a == 0xF4 and b > 0x8F) else 4


@inlined
def _digits_end(blob, i):  # type: ignore[no-untyped-def]
    while DIGIT_0 <= byte(blob, i) <= DIGIT_9:
        i += 1
    return i


@inlined
def number_end(blob, low):  # type: ignore[no-untyped-def]
    """Just behind the number at `low`, or 0; something that is no part of a number has to follow somewhere."""
    i = low
    if byte(blob, i) == MINUS:
        i += 1
    begin = i
    i = _digits_end(blob, i)
    if i == begin or (byte(blob, begin) == DIGIT_0 and i > begin + 1):
        return 0
    if byte(blob, i) == DOT:
        begin = i + 1
        i = _digits_end(blob, begin)
        if i == begin:
            return 0
    if byte(blob, i) | CASE_BIT == SMALL_E:
        i += 1
        if byte(blob, i) == PLUS or byte(blob, i) == MINUS:
            i += 1
        begin = i
        i = _digits_end(blob, i)
        if i == begin or i - begin > _MAX_EXPONENT:
            return 0
    return i if i - low <= _MAX_DIGITS else 0


@compiled
def unescape(blob, occurrences, low, high, at, out):  # type: ignore[no-untyped-def]
    """Writes the texts of `occurrences`, without their escapes, to `out`, which lies at `at`, and moves them there.

    Two escapes for the halves of a surrogate pair are one character; a half alone is written as if it were one.
    Returns how many bytes were written, at most as many as the texts have.
    """
    o = 0
    for k in occurrences:
        i, end = low[k], high[k]
        low[k] = at + o
        while i < end:
            c = blob[i]
            if c != BACKSLASH:
                out[o] = c
                i += 1
                o += 1
                continue
            c = blob[i + 1]
            if c != SMALL_U:
                out[o] = _ESCAPES[c]
                i += 2
                o += 1
                continue
            code = _code(blob, i + 2)
            i += 6
            if 0xD800 <= code < 0xDC00 and i + 5 < end and blob[i] == BACKSLASH and blob[i + 1] == SMALL_U:
                second = _code(blob, i + 2)
                if 0xDC00 <= second < 0xE000:
                    code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00)
                    i += 6
            if code < 0x80:
                out[o] = code
                o += 1
                continue
            if code < 0x800:
                out[o] = 0xC0 | (code >> 6)
                o += 1
            else:
                if code < 0x10000:
                    out[o] = 0xE0 | (code >> 12)
                    o += 1
                else:
                    out[o] = 0xF0 | (code >> 18)
                    out[o + 1] = 0x80 | ((code >> 12) & 63)
                    o += 2
                out[o] = 0x80 | ((code >> 6) & 63)
                o += 1
            out[o] = 0x80 | (code & 63)
            o += 1
        high[k] = at + o
    return o


@inlined
def is_blank(c):  # type: ignore[no-untyped-def]
    return c == SPACE or c == NEWLINE or c == RETURN or c == TAB


@compiled
def find_lines(blob, begin, start, stop):  # type: ignore[no-untyped-def]
    """Spans of the lines from `begin` on that are not blank; returns how many there are, and where it stopped for
    want of room, or the blob's end."""
    size, room, count, low = blob.shape[0], start.shape[0], 0, begin
    while low < size:
        if count == room:
            return count, low
        i = low
        while i + 8 <= size:
            other = full_word(blob, i) ^ _NEWLINES
            mask = (other - _ONES) & ~other & _TOPS
            if mask != _ZERO:
                i += bytes_in(below(mask))
                break
            i += 8
        while i < size and byte(blob, i) != NEWLINE:
            i += 1
        high, following = i, i + 1
        while low < high and is_blank(byte(blob, low)):
            low += 1
        while low < high and is_blank(byte(blob, high - 1)):
            high -= 1
        if low < high:
            start[count], stop[count] = low, high
            count += 1
        low = following
    return count, size
