"""Literals by their datatype: what a constant in N-Triples form is compared as, and its value."""

from __future__ import annotations

import numpy as np

from tidings.arrays.characters import AT_SIGN, DIGIT_1, OPEN_ANGLE, QUOTE, SMALL_T
from tidings.arrays.compiled import compiled
from tidings.formats.kernels.lexical import NO, YES, read_instant, read_number

LONG_EXPONENT = 1 << 20  # marks a constant that needs exact arithmetic
NOTHING, NUMBER, INSTANT, TRUTH, TEXT, RESOURCE, OTHER = range(7)  # kinds of constants

_XSD = np.frombuffer(b"http://www.w3.org/2001/XMLSchema#", dtype=np.uint8).copy()
_KINDS = {
    NUMBER: (
        "integer", "decimal", "float", "double", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger",
        "nonPositiveInteger", "negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte", "gYear",
    ),
    INSTANT: ("date", "dateTime", "dateTimeStamp"),
    TRUTH: ("boolean",),
    TEXT: ("string",),
}  # fmt: skip
_TYPES = [(name, kind) for kind, names in _KINDS.items() for name in names]
_TYPE_BLOB = np.frombuffer("".join(name for name, _ in _TYPES).encode(), dtype=np.uint8).copy()
_TYPE_START = np.cumsum([0] + [len(name) for name, _ in _TYPES])
_TYPE_KIND = np.array([kind for _, kind in _TYPES], dtype=np.int64)


@compiled
def datatype_kind(blob, low, high):  # type: ignore[no-untyped-def]
    """What a literal of the datatype blob[low:high] is compared as: TEXT, NUMBER, INSTANT, TRUTH, or OTHER, which is
    only as itself."""
    if high - low <= _XSD.shape[0]:
        return OTHER
    for i in range(_XSD.shape[0]):
        if blob[low + i] != _XSD[i]:
            return OTHER
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
    return OTHER


@compiled
def read_constants(blob, start, kind, mantissa, exponent, approximation):  # type: ignore[no-untyped-def]
    """Constants by what they are compared as; OTHER is a literal of another datatype or a language. Instants and
    truth values are left in `mantissa`."""
    for i in range(start.shape[0] - 1):
        low, high = start[i], start[i + 1]
        if blob[low] == OPEN_ANGLE:
            kind[i] = RESOURCE
            continue
        close = high - 1
        while blob[close] != QUOTE:
            close -= 1
        if close == high - 1:
            kind[i] = TEXT
            continue
        kind[i] = OTHER
        if blob[close + 1] == AT_SIGN:
            continue
        datatype = datatype_kind(blob, close + 4, high - 1)
        if datatype == NUMBER:
            status, m, e, f = read_number(blob, low + 1, close)
            kind[i] = NUMBER if status != NO else NOTHING
            mantissa[i], exponent[i], approximation[i] = m, e if status == YES else LONG_EXPONENT, f
        elif datatype == INSTANT:
            ok, micros = read_instant(blob, low + 1, close)
            kind[i] = INSTANT if ok else NOTHING
            mantissa[i] = micros
        elif datatype == TRUTH:
            kind[i] = TRUTH
            mantissa[i] = 1 if blob[low + 1] == SMALL_T or blob[low + 1] == DIGIT_1 else 0
