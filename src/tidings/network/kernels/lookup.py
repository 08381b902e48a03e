"""A name -> its number."""

from __future__ import annotations

from tidings.arrays.compiled import compiled
from tidings.arrays.hashing import find_span, hash_span


@compiled
def find_text(text, blob, start, slots):  # type: ignore[no-untyped-def]
    """The number of a text among those that lie end to end, or -1."""
    return find_span(hash_span(text, 0, text.shape[0]), text, 0, text.shape[0], blob, start, slots)
