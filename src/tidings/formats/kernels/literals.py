"""Literals by their datatype: what a constant in N-Triples form is compared as, and its value."""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled
from tidings.formats.kernels.lexical import YES, read_instant, read_number

LONG_EXPONENT = 1 << 20  # marks a constant that needs exact arithmetic
NOTHING, NUMBER, INSTANT, TRUTH, TEXT, RESOURCE, OTHER = range(7)  # kinds of constants

_XSD = np.frombuffer(b"http://www.w3.org/2001/XMLSchema#", dtype=np.uint8).copy()
_TYPES = [
    ("integer", 1), ("decimal", 1), ("float", 1), ("double", 1), ("long", 1), ("int", 1), ("short", 1), ("byte", 1),
    ("nonNegativeInteger", 1), ("positiveInteger", 1), ("nonPositiveInteger", 1), ("negativeInteger", 1),
    ("unsignedLong", 1), ("unsignedInt", 1), ("unsignedShort", 1), ("unsignedByte", 1), ("gYear", 1),
    ("date", 2), ("dateTime", 2), ("dateTimeStamp", 2), ("boolean", 3), ("string", 0),
]  # fmt: skip
_TYPE_BLOB = np.frombuffer("".join(name for name, _ in _TYPES).encode(), dtype=np.uint8).copy()
_TYPE_START = np.cumsum([0] + [len(name) for name, _ in _TYPES])
_TYPE_KIND = np.array([kind for _, kind in _TYPES], dtype=np.int64)


@compiled
def datatype_kind(blob, low, high):  # type: ignore[no-untyped-def]
    """What a literal of the datatype blob[low:high] is compared as: 0 a plain text, 1 a number, 2 an instant,
    3 a truth value, 4 only as itself."""
    if high - low <= _XSD.shape[0]:
        return 4
    for i in range(_XSD.shape[0]):
        if blob[low + i] != _XSD[i]:
            return 4
    begin = low + _XSD.shape[0]
    for k in range(_TYPE_KIND.shape[0]):
        if _TYPE_START[k + 1] - _TYPE_START[k] == high - begin:
            same = True
            for i in range(high - begin):
                if blob[begin + i] != _TYPE_BLOB[_TYPE_START[k] + i]:
                    same = False
                    break
            if same:
                return _TYPE_KIND[k]
    return 4


@compiled
def read_constants(blob, start, kind, mantissa, exponent, approximation):  # type: ignore[no-untyped-def]
    """Constants by what they are compared as: 0 nothing, 1 number, 2 instant, 3 truth value, 4 text, 5 IRI,
    6 a literal of another datatype or a language. Instants and truth values are left in `mantissa`."""
    for i in range(start.shape[0] - 1):
        low, high = start[i], start[i + 1]
        if blob[low] == 60:
            kind[i] = 5
            continue
        close = high - 1
        while blob[close] != 34:
            close -= 1
        if close == high - 1:
            kind[i] = 4
            continue
        kind[i] = 6
        if blob[close + 1] == 64:
            continue
        datatype = datatype_kind(blob, close + 4, high - 1)
        if datatype == 1:
            status, m, e, f = read_number(blob, low + 1, close)
            kind[i] = 1 if status != 0 else 0
            mantissa[i], exponent[i], approximation[i] = m, e if status == YES else LONG_EXPONENT, f
        elif datatype == 2:
            ok, micros = read_instant(blob, low + 1, close)
            kind[i] = 2 if ok else 0
            mantissa[i] = micros
        elif datatype == 3:
            kind[i] = 3
            mantissa[i] = 1 if blob[low + 1] == 116 or blob[low + 1] == 49 else 0
