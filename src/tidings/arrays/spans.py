"""Texts gathered out of a buffer into an Arrow column, as a reader wants them: without the marks of N-Triples."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidings.arrays.compiled import compiled


@compiled
def _gather(blob, low, high, terms, offsets, out):  # type: ignore[no-untyped-def]
    """Writes the plain text of each term (an IRI's address, a literal's text); with an empty `out` it only sizes."""
    at = 0
    write = out.shape[0] > 0
    for k in range(terms.shape[0]):
        offsets[k] = at
        t = terms[k]
        i, end = low[t], high[t]
        first = blob[i]
        if first == 60 or first == 34:
            i += 1
            end -= 1
            while first == 34 and blob[end] != 34:
                end -= 1
        while i < end:
            c = blob[i]
            i += 1
            if c == 92 and first == 34:
                c = blob[i]
                i += 1
                if c == 117:
                    code = 0
                    for j in range(i, i + 4):
                        digit = blob[j]
                        code = code * 16 + (digit - 48 if digit <= 57 else digit - 55)
                    i += 4
                    if code > 127:  # only U+FFFE and U+FFFF are written so
                        if write:
                            out[at], out[at + 1] = 239, 191
                        at += 2
                        code = 128 | (code & 63)
                    c = np.uint8(code)
                elif c == 110:
                    c = np.uint8(10)
                elif c == 116:
                    c = np.uint8(9)
                elif c == 114:
                    c = np.uint8(13)
                elif c == 98:
                    c = np.uint8(8)
                elif c == 102:
                    c = np.uint8(12)
            if write:
                out[at] = c
            at += 1
    offsets[terms.shape[0]] = at
    return at


def plain_texts(blob: np.ndarray, low: np.ndarray, high: np.ndarray, terms: np.ndarray) -> pa.Array:
    """The plain texts of `terms`, whose N-Triples texts are blob[low[t]:high[t]]."""
    offsets = np.zeros(len(terms) + 1, dtype=np.int32)  # a chunk's texts stay far below 2 GiB
    size = _gather(blob, low, high, terms, offsets, np.zeros(0, dtype=np.uint8))
    out = np.empty(size, dtype=np.uint8)
    if size:
        _gather(blob, low, high, terms, offsets, out)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.string(), len(terms), buffers)
