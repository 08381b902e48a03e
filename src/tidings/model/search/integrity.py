"""Says which arrays of searches from a file are damaged."""

from __future__ import annotations

from collections.abc import Iterator

from tidings.arrays.bounds import are_texts, ascends, slots_fit
from tidings.model.search.kernels.bounds import entries_fit, phrases_fit
from tidings.model.search.kernels.layout import SearchArrays


def search_checks(arrays: SearchArrays, searches: int) -> Iterator[tuple[str, bool]]:
    """For the arrays of so many searches, checks by the names of the arrays; each relies on those before it."""
    words = len(arrays.start) - 1
    yield "start", ascends(arrays.start, len(arrays.blob))
    yield "blob", are_texts(arrays.blob, arrays.start)
    yield "slots", len(arrays.slots).bit_count() == 1 and slots_fit(arrays.slots, words)
    yield "first", len(arrays.first) == words + 1 and ascends(arrays.first, len(arrays.entries))
    yield "phrase_first", ascends(arrays.phrase_first, len(arrays.phrases))
    yield "phrases", phrases_fit(arrays, words)
    yield "entries", entries_fit(arrays, words, searches)
