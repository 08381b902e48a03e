"""JSON objects in bytes -> what stands at known paths, in one pass without an object of Python.

Every byte is checked, also of members that no path names, so nothing is ever found in what is no JSON. What the loop
is not sure of it leaves to Python: anything invalid, a name twice in one object, escapes in names, surrogates,
numbers beyond all measure, and what is nested deeper than the stack.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.characters import (
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COLON,
    COMMA,
    OPEN_BRACE,
    OPEN_BRACKET,
    QUOTE,
    SMALL_F,
    SMALL_N,
    SMALL_T,
)
from tidings.arrays.compiled import compiled, inlined
from tidings.formats.kernels.json_paths import find_edge, hash_begin, hash_name, hash_word
from tidings.formats.kernels.json_tokens import (
    below,
    byte,
    bytes_in,
    is_blank,
    number_end,
    odd_string_end,
    specials,
    string_end,
    word,
)

# What stands at a path. A list stands for what is in it, also in lists in it; it is reported once, before its elements.
NULL, FALSE, TRUE, NUMBER, TEXT, LIST, DICT = range(7)
ESCAPED = 7  # a text that is still to be unescaped
_INVALID = -1

MAX_DEPTH = 64
_0, _1, _2, _3, _32 = map(np.uint64, (0, 1, 2, 3, 32))
_LOW = np.uint64(0xFFFFFFFF)
_TRUE, _ALSE, _NULL = (np.uint64(int.from_bytes(rest, "little")) for rest in (b"true", b"alse", b"null"))


@inlined
def _next_byte(blob, i):  # type: ignore[no-untyped-def]
    """Where the first byte from i on is that is not blank, and the byte."""
    c = byte(blob, i)
    while is_blank(c):
        i += 1
        c = byte(blob, i)
    return i, c


@inlined
def _read_name(blob, name, last, state):  # type: ignore[no-untyped-def]
    """(the end, the hash, the first eight bytes) of the member's name that starts at `name`; the end is 0 if no valid
    name ends before `last`, or if it has escapes and is asked for."""
    i = name
    w = word(blob, i)
    mask = specials(w)
    head = w
    h = hash_begin(state)
    while mask == _0:
        h = hash_word(h, w)
        i += 8
        w = word(blob, i)
        mask = specials(w)
    inside = below(mask)
    if i == name:
        head = w & inside
    h = hash_word(h, w & inside)
    i += bytes_in(inside)
    if i >= last:
        return 0, h, head
    if byte(blob, i) != QUOTE:
        i = odd_string_end(blob, i, last)
        if i <= 0:
            if i == 0 or state >= 0:
                return 0, h, head
            i = -i
        h = hash_name(blob, name, i, state)
        head = word(blob, name)
        if i - name < 8:
            head &= (_1 << np.uint64(8 * (i - name))) - _1
    return i, h, head


@inlined
def _read_value(blob, i, c, last):  # type: ignore[no-untyped-def]
    """(the kind, the beginning, the end, where to go on) of the value at i, whose first byte is c; of a dict or a list
    only that is read. The kind is _INVALID if it is none."""
    if c == QUOTE:
        end = string_end(blob, i + 1, last)
        if end > 0:
            return TEXT, i + 1, end, end + 1
        return (ESCAPED if end else _INVALID), i + 1, -end, 1 - end
    if c == OPEN_BRACE:
        return DICT, i, i + 1, i + 1
    if c == OPEN_BRACKET:
        return LIST, i, i + 1, i + 1
    if c == SMALL_T:
        return (TRUE if word(blob, i) & _LOW == _TRUE else _INVALID), i, i + 4, i + 4
    if c == SMALL_F:
        return (FALSE if word(blob, i + 1) & _LOW == _ALSE else _INVALID), i, i + 5, i + 5
    if c == SMALL_N:
        return (NULL if word(blob, i) & _LOW == _NULL else _INVALID), i, i + 4, i + 4
    end = number_end(blob, i)
    return (NUMBER if end else _INVALID), i, end, end


@inlined
def _read_object(blob, i, last, edges, stamps, stack, path, kind, low, high, count, opened):  # type: ignore[no-untyped-def]
    """Reads the object blob[i:last], from its first brace to its last; (whether it is sure, occurrences, dicts and
    lists that were opened) so far.

    The brace at the end stops whatever goes on, so it is enough to look for the end behind a string and a brace. The
    object is read as the one element of a list that holds the place of state 0.
    """
    rows, texts, shift = edges.rows, edges.texts, edges.shift
    listed, state, item = True, np.int64(0), np.int64(-1)
    depth, c = 0, byte(blob, i)
    serial = opened
    while True:
        if listed:
            to, p = state, item
        else:
            if c != QUOTE:
                break
            name = i + 1
            i, h, head = _read_name(blob, name, last, state)
            if i == 0:
                break
            to = p = np.int64(-1)
            if state >= 0:
                at = find_edge(rows, texts, shift, h, head, blob, name, i - name, state)
                if at >= 0:
                    if stamps[np.uint64(at)] == serial:
                        break
                    stamps[np.uint64(at)] = serial
                    target = rows[np.uint64(at), _3]
                    to, p = np.int64(target >> _32), np.int64(target & _LOW) - 1
            i, c = _next_byte(blob, i + 1)
            if c != COLON:
                break
            i, c = _next_byte(blob, i + 1)
        k, a, b, i = _read_value(blob, i, c, last)
        if k == _INVALID:
            break
        o = np.uint64(count)
        path[o], kind[o], low[o], high[o] = p, k, a, b
        if p >= 0 and (k != LIST or not listed):
            count += 1

        if k == LIST or k == DICT:
            if depth == MAX_DEPTH:
                break
            frame = np.uint64(depth)
            stack[frame, _0], stack[frame, _1], stack[frame, _2] = state, item, serial
            stack[frame, _3] = listed
            depth += 1
            state, item = to, p
            listed = k == LIST
            opened += 1
            serial = opened
            i, c = _next_byte(blob, i)
            if c != (CLOSE_BRACKET if listed else CLOSE_BRACE):
                continue
        else:
            i, c = _next_byte(blob, i)

        while c == (CLOSE_BRACKET if listed else CLOSE_BRACE):
            i += 1
            depth -= 1
            if depth == 0 or i >= last:
                break
            frame = np.uint64(depth)
            state, item, serial = stack[frame, _0], stack[frame, _1], stack[frame, _2]
            listed = stack[frame, _3] != 0
            i, c = _next_byte(blob, i)
        if depth == 0:
            return i == last, count, opened
        if c != COMMA or i >= last:
            break
        i, c = _next_byte(blob, i + 1)
    return False, count, opened


@compiled
def read(blob, start, stop, begin, edges, stamps, stack, first, path, kind, span, odd):  # type: ignore[no-untyped-def]
    """Reads object e = blob[start[e]:stop[e]] for all e from `begin` on, where first[begin] occurrences are known.

    Returns the object for which there was no room, or the number of objects. `odd[e]` is set, and object e left
    without occurrences, where Python has to read it. `stamps` are the table's, `stack` is room for MAX_DEPTH frames.
    What stands at path[o] is of kind[o] and lies in blob[span[0, o]:span[1, o]].
    """
    last_number, room = edges.rows.shape[0], path.shape[0]
    low, high = span[0], span[1]
    count = first[begin]
    opened = stamps[last_number]  # counts what was opened, so that each dict has a number of its own
    for e in range(begin, start.shape[0]):
        i, last = start[e], stop[e]
        first[e] = count
        # An occurrence takes two bytes at least; one more may be written in vain.
        if count + ((last - i) >> 1) + 2 > room:
            stamps[last_number] = opened
            return e
        while i < last and is_blank(byte(blob, i)):
            i += 1
        while i < last and is_blank(byte(blob, last - 1)):
            last -= 1
        if i >= last:
            continue
        if byte(blob, i) != OPEN_BRACE or byte(blob, last - 1) != CLOSE_BRACE:
            odd[e] = last - i != 4 or word(blob, i) & _LOW != _NULL
            continue

        sure, count, opened = _read_object(
            blob, i, last, edges, stamps, stack, path, kind, low, high, count, opened
        )
        if not sure:
            odd[e] = True
            count = first[e]
    first[start.shape[0]] = count
    stamps[last_number] = opened
    return start.shape[0]
