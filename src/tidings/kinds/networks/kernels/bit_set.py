"""A set of ids as bits, and the next member from an id on.

An evaluation asks for rising ids, so it reads each word once: a million ids are 16K words, a few microseconds, and
need no levels above them.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import inlined

_ONE, _LOW = np.uint64(1), np.uint64(63)
# A de Bruijn sequence: its product with a power of two has another number in its upper six bits for each.
_SEQUENCE, _UPPER = np.uint64(0x03F79D71B4CB0A89), np.uint64(58)
_BIT_OF = np.zeros(64, dtype=np.int8)
for _i in range(64):
    _BIT_OF[((int(_SEQUENCE) << _i) & (2**64 - 1)) >> 58] = _i


@inlined
def mark(marks, i):  # type: ignore[no-untyped-def]
    marks[i >> 6] |= _ONE << (np.uint64(i) & _LOW)


@inlined
def is_marked(marks, i):  # type: ignore[no-untyped-def]
    return marks[i >> 6] >> (np.uint64(i) & _LOW) & _ONE != 0


@inlined
def next_marked(marks, i):  # type: ignore[no-untyped-def]
    """The first member that is at least i, or -1."""
    at = i >> 6
    if at >= marks.shape[0]:
        return np.int64(-1)
    word = marks[at] >> (np.uint64(i) & _LOW) << (np.uint64(i) & _LOW)
    while word == 0:
        at += 1
        if at == marks.shape[0]:
            return np.int64(-1)
        word = marks[at]
    lowest = word & (~word + _ONE)
    return np.int64(at << 6) + np.int64(_BIT_OF[(lowest * _SEQUENCE) >> _UPPER])
