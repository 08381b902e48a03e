"""JSON objects in bytes -> what stands at known paths, in one pass without an object of Python.

Every byte is checked, also of members that nobody asks for, so nothing is ever found in what is no JSON. What the loop
is not sure of it leaves to Python: anything invalid, a name twice in one object, escapes in names, surrogates,
numbers beyond all measure, and what is nested deeper than the stack.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled
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

# What stands at a path. A list stands for what is in it, also in lists in it; it is told of once, before that.
NULL, FALSE, TRUE, NUMBER, TEXT, LIST, DICT = range(7)
ESCAPED = 7  # a text that is still to be unescaped

MAX_DEPTH = 64
_0, _1, _2, _3, _32 = map(np.uint64, (0, 1, 2, 3, 32))
_LOW = np.uint64(0xFFFFFFFF)
_TRUE, _ALSE, _NULL = (np.uint64(int.from_bytes(rest, "little")) for rest in (b"true", b"alse", b"null"))


@compiled
def read(blob, start, stop, begin, edges, stamps, stack, first, path, kind, low, high, odd):  # type: ignore[no-untyped-def]
    """Reads object e = blob[start[e]:stop[e]] for all e from `begin` on, where first[begin] occurrences are known.

    Returns the object for which there was no room, or the number of objects. `odd[e]` is set, and object e left
    without occurrences, where Python has to read it. `stamps` are the table's, `stack` is room for MAX_DEPTH frames.
    """
    rows, texts, shift = edges.rows, edges.texts, edges.shift
    room = path.shape[0]
    count = first[begin]
    opened = stamps[rows.shape[0]]  # counts what was opened, so that each dict has a number of its own
    for e in range(begin, start.shape[0]):
        i, last = start[e], stop[e]
        first[e] = count
        # An occurrence takes two bytes at least; one more may be written in vain.
        if count + ((last - i) >> 1) + 2 > room:
            stamps[rows.shape[0]] = opened
            return e
        while i < last and is_blank(byte(blob, i)):
            i += 1
        while i < last and is_blank(byte(blob, last - 1)):
            last -= 1
        if i >= last:
            continue
        c = byte(blob, i)
        if c != 123 or byte(blob, last - 1) != 125:
            odd[e] = last - i != 4 or word(blob, i) & _LOW != _NULL
            continue

        # From here on the brace at the end stops whatever goes on, so it is enough to look for the end behind a
        # string and a brace. The object is read as the one element of a list that holds the place of state 0.
        listed, state, item = True, np.int64(0), np.int64(-1)
        depth = 0
        serial = opened
        sure = False
        while True:
            if listed:
                to, p = state, item
            else:
                if c != 34:
                    break
                name = i + 1
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
                    break
                known = state >= 0
                if byte(blob, i) != 34:
                    i = odd_string_end(blob, i, last)
                    if i <= 0:
                        if i == 0 or known:
                            break
                        i = -i
                    h = hash_name(blob, name, i, state)
                    head = word(blob, name)
                    if i - name < 8:
                        head &= (_1 << np.uint64(8 * (i - name))) - _1
                to = p = np.int64(-1)
                if known:
                    at = find_edge(rows, texts, shift, h, head, blob, name, i - name, state)
                    if at >= 0:
                        if stamps[np.uint64(at)] == serial:
                            break
                        stamps[np.uint64(at)] = serial
                        target = rows[np.uint64(at), _3]
                        to, p = np.int64(target >> _32), np.int64(target & _LOW) - 1
                i += 1
                c = byte(blob, i)
                while is_blank(c):
                    i += 1
                    c = byte(blob, i)
                if c != 58:
                    break
                i += 1
                c = byte(blob, i)
                while is_blank(c):
                    i += 1
                    c = byte(blob, i)

            a = i
            if c == 34:
                a = i + 1
                b = string_end(blob, a, last)
                k = TEXT
                if b <= 0:
                    if b == 0:
                        break
                    b = -b
                    k = ESCAPED
                i = b + 1
            elif c == 123:
                k, b = DICT, i + 1
            elif c == 91:
                k, b = LIST, i + 1
            elif c == 116:
                if word(blob, i) & _LOW != _TRUE:
                    break
                k, b = TRUE, i + 4
                i = b
            elif c == 102:
                if word(blob, i + 1) & _LOW != _ALSE:
                    break
                k, b = FALSE, i + 5
                i = b
            elif c == 110:
                if word(blob, i) & _LOW != _NULL:
                    break
                k, b = NULL, i + 4
                i = b
            else:
                b = number_end(blob, i)
                k = NUMBER
                if b == 0:
                    break
                i = b

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
                closing = 93 if listed else 125
                i = b
                c = byte(blob, i)
                while is_blank(c):
                    i += 1
                    c = byte(blob, i)
                if c != closing:
                    continue
            else:
                c = byte(blob, i)
                while is_blank(c):
                    i += 1
                    c = byte(blob, i)

            while c == (93 if listed else 125):
                i += 1
                depth -= 1
                if depth == 0 or i >= last:
                    break
                frame = np.uint64(depth)
                state, item, serial = stack[frame, _0], stack[frame, _1], stack[frame, _2]
                listed = stack[frame, _3] != 0
                c = byte(blob, i)
                while is_blank(c):
                    i += 1
                    c = byte(blob, i)
            if depth == 0:
                sure = i == last
                break
            if c != 44 or i >= last:
                break
            i += 1
            c = byte(blob, i)
            while is_blank(c):
                i += 1
                c = byte(blob, i)
        if not sure:
            odd[e] = True
            count = first[e]
    first[start.shape[0]] = count
    stamps[rows.shape[0]] = opened
    return start.shape[0]
