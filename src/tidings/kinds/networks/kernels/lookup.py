"""Finds the numbers of names."""

from __future__ import annotations

from tidings.arrays.compiled import compiled
from tidings.arrays.hashing import find_span, hash_span


@compiled
def find_text(text, blob, start, slots):  # type: ignore[no-untyped-def]
    """The number of a text among those that lie end to end, or -1."""
    return find_span(hash_span(text, 0, text.shape[0]), text, 0, text.shape[0], blob, start, slots)


@compiled
def find_texts(texts, low, blob, start, slots, out):  # type: ignore[no-untyped-def]
    """The numbers of the texts that lie end to end in `texts` from offsets low[i] on, -1 for those not there."""
    for i in range(out.shape[0]):
        a, b = low[i], low[i + 1]
        out[i] = find_span(hash_span(texts, a, b), texts, a, b, blob, start, slots)
