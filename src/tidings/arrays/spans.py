"""Gathers values and texts into Arrow columns; texts are plain, without the quotes and brackets of N-Triples."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidings.arrays.characters import (
    BACKSLASH,
    BACKSPACE,
    BEYOND_ASCII,
    CAPITAL_A,
    DIGIT_0,
    DIGIT_9,
    FORM_FEED,
    NEWLINE,
    OPEN_ANGLE,
    QUOTE,
    RETURN,
    SMALL_B,
    SMALL_F,
    SMALL_N,
    SMALL_R,
    SMALL_T,
    SMALL_U,
    TAB,
)
from tidings.arrays.compiled import compiled


@compiled
def _gather(blob, low, high, terms, offsets, out):  # type: ignore[no-untyped-def]
    """Writes the plain text of each term (an IRI's address, a literal's text); returns the bytes it took."""
    at = 0
    for k in range(terms.shape[0]):
        offsets[k] = at
        t = terms[k]
        i, end = low[t], high[t]
        first = blob[i]
        if first == OPEN_ANGLE or first == QUOTE:
            i += 1
            end -= 1
            while first == QUOTE and blob[end] != QUOTE:
                end -= 1
        while i < end:
            c = blob[i]
            i += 1
            if c == BACKSLASH and first == QUOTE:
                c = blob[i]
                i += 1
                if c == SMALL_U:
                    code = 0
                    for j in range(i, i + 4):
                        digit = blob[j]
                        code = code * 16 + (digit - DIGIT_0 if digit <= DIGIT_9 else digit - CAPITAL_A + 10)
                    i += 4
                    if code >= BEYOND_ASCII:  # only U+FFFE and U+FFFF are written so
                        out[at], out[at + 1] = 0xEF, 0xBF
                        at += 2
                        code = 0x80 | (code & 0x3F)
                    c = np.uint8(code)
                elif c == SMALL_N:
                    c = np.uint8(NEWLINE)
                elif c == SMALL_T:
                    c = np.uint8(TAB)
                elif c == SMALL_R:
                    c = np.uint8(RETURN)
                elif c == SMALL_B:
                    c = np.uint8(BACKSPACE)
                elif c == SMALL_F:
                    c = np.uint8(FORM_FEED)
            out[at] = c
            at += 1
    offsets[terms.shape[0]] = at
    return at


@compiled
def pick(offsets, first, slots, keys, start, values, out, out_keys):  # type: ignore[no-untyped-def]
    """For each list i of offsets[i + 1] - offsets[i] items: the values that its slots, from first[i] on, point to
    behind start[i], and their keys."""
    for i in range(first.shape[0]):
        for j in range(offsets[i + 1] - offsets[i]):
            slot = first[i] + j
            out[offsets[i] + j] = values[start[i] + slots[slot]]
            out_keys[offsets[i] + j] = keys[slot]


def plain_texts(blob: np.ndarray, low: np.ndarray, high: np.ndarray, terms: np.ndarray) -> pa.Array:
    """The plain texts of `terms`, whose N-Triples texts are blob[low[t]:high[t]]."""
    offsets = np.zeros(len(terms) + 1, dtype=np.int32)  # a chunk's texts stay far below 2 GiB
    out = np.empty(
        int((high[terms] - low[terms]).sum()), dtype=np.uint8
    )  # a plain text is no longer than its term
    size = _gather(blob, low, high, terms, offsets, out)
    return pa.Array.from_buffers(
        pa.string(), len(terms), [None, pa.py_buffer(offsets), pa.py_buffer(out[:size])]
    )
