"""Says which arrays of searches from a file are damaged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tidings.arrays.bounds import are_texts, ascends, slots_fit
from tidings.model.search.joined import BOUNDS, part_of
from tidings.model.search.kernels.bounds import entries_fit, phrases_fit
from tidings.model.search.kernels.layout import SearchArrays


def search_checks(arrays: Mapping[str, np.ndarray], counts: Sequence[int]) -> Iterator[tuple[str, bool]]:
    """For joined indexes of so many searches each, checks by the names of the arrays; each relies on those before it."""
    if not counts:
        return
    bounds = arrays[BOUNDS]
    yield BOUNDS, bounds.shape == (len(counts) + 1, len(SearchArrays._fields))
    for column, name in enumerate(SearchArrays._fields):
        yield BOUNDS, ascends(bounds[:, column].copy(), len(arrays[f"search_{name}"]))
    for number, count in enumerate(counts):
        yield from ((f"search_{name}", right) for name, right in _checks(part_of(arrays, number), count))


def _checks(arrays: SearchArrays, searches: int) -> Iterator[tuple[str, bool]]:
    words = len(arrays.start) - 1
    yield "start", words >= 0 and ascends(arrays.start, len(arrays.blob))
    yield "blob", are_texts(arrays.blob, arrays.start)
    yield "slots", len(arrays.slots).bit_count() == 1 and slots_fit(arrays.slots, words)
    yield "first", len(arrays.first) == words + 1 and ascends(arrays.first, len(arrays.entries))
    yield "phrase_first", ascends(arrays.phrase_first, len(arrays.phrases))
    yield "phrases", phrases_fit(arrays, words)
    yield "entries", entries_fit(arrays, words, searches)
