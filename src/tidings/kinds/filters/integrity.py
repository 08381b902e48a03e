"""Refuses damaged arrays of filters, whose values would lead a compiled loop out of bounds or into an endless loop.

The manifest has checked types and shapes (arrays/folders.py); here lengths are checked against each other, then values
(kernels/bounds.py). Every check relies on those before it. Arrays that pass form a valid index, if perhaps another one:
a changed text, position or operator gives other answers and nothing worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tidings.arrays.bounds import are_texts, ascends, constants_fit, refuse_unless, slots_fit, within
from tidings.kinds.filters.kernels import bounds
from tidings.kinds.filters.kernels.layout import Index, Scales
from tidings.model.search.integrity import search_checks
from tidings.model.text_tests import is_search

Arrays = Mapping[str, np.ndarray]

_LISTS = {
    "scale_number_first": "scale_mantissa",
    "scale_instant_first": "scale_instants",
    "scale_text_first": "scale_texts",
    "scale_start": "scale_blob",
}
_LARGEST_EXPONENT = 250  # of the numbers that are read without exact arithmetic (formats/kernels/lexical.py)


def refuse_damage(
    folder: Path, index: Index, scales: Scales, arrays: Arrays, facts: Mapping[str, Any]
) -> None:
    """An `IndexFileError` names the array that is wrong, or does not fit the others."""
    refuse_unless(folder, _lengths(arrays, facts))
    refuse_unless(folder, _values(index, scales, arrays, facts))


def refuse_damaged_table(folder: Path, arrays: Arrays, keys: Sequence[Any]) -> None:
    """The same for a table of filters, which an index is built from."""
    refuse_unless(folder, _of_table(arrays, len(keys)))


def _lengths(arrays: Arrays, facts: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    attributes = len(facts["keys"])
    numbers = len(arrays["scale_mantissa"])
    firsts = ("scale_number_first", "scale_instant_first", "scale_text_first")
    each = ("scale_ordered", "access_base", "access_height", "access_levels", "access_shift")
    for expected, names in (
        (attributes + 1, firsts),
        (attributes, each),
        (numbers, ("scale_exponent", "scale_approximation")),
    ):
        for name in names:
            yield name, arrays[name].shape == (expected,)
    yield "scale_ends", arrays["scale_ends"].shape == (attributes, 4)
    yield "scale_slots", len(arrays["scale_slots"]).bit_count() == 1
    yield "access_entries", len(arrays["access_entries"]) % 3 == 0
    paths = {path for _, path in facts["keys"]}
    yield "path_start", len(arrays["path_start"]) - 1 == len(paths)


def _values(
    index: Index, scales: Scales, arrays: Arrays, facts: Mapping[str, Any]
) -> Iterator[tuple[str, bool]]:
    attributes, texts = len(facts["keys"]), len(scales.start) - 1
    for first, items in _LISTS.items():
        yield first, ascends(arrays[first], len(arrays[items]))
    yield "scale_ends", bounds.scales_fit(scales)
    yield "scale_texts", within(scales.texts, 0, texts)
    yield "scale_slots", slots_fit(scales.slots, len(scales.texts))
    yield "scale_blob", are_texts(scales.blob, scales.start)
    exponent = scales.exponent
    long = np.flatnonzero((exponent < -_LARGEST_EXPONENT) | (exponent > _LARGEST_EXPONENT))
    yield "scale_exponent", long.tolist() == sorted(map(int, facts["long_numbers"]))
    yield "access_height", bounds.nodes_fit(index.access, scales.ends)
    yield "access_first", ascends(index.access.first, len(index.access.entries) // 3)
    code = index.code
    narrow_start, wide_start = _bits(code.narrow), _bits(code.wide)
    narrow = bounds.narrow_fits(code, attributes, narrow_start, _bits(code.narrow))
    yield "code_narrow", narrow >= 0
    wide = bounds.wide_fits(code, attributes, wide_start, _bits(code.wide))
    yield "code_wide", wide >= 0
    yield "code_at", narrow + wide == len(code.at)
    sizes = np.diff(scales.text_first).tolist()
    searches = [size for (look, _), size in zip(facts["keys"], sizes, strict=True) if is_search(look)]
    yield from search_checks(arrays, searches)
    entries = index.access.entries
    yield "access_entries", bounds.entries_fit(entries, attributes, narrow_start, wide_start)


def _of_table(arrays: Arrays, attributes: int) -> Iterator[tuple[str, bool]]:
    trees, tree_first, shapes = arrays["trees"], arrays["tree_first"], arrays["row_shape"]
    constants, rows = len(arrays["constant_start"]) - 1, len(shapes)
    yield "slot_first", len(arrays["slot_first"]) == rows + 1
    for first, items in (
        ("tree_first", "trees"),
        ("slot_first", "slots"),
        ("constant_start", "constant_blob"),
    ):
        yield first, ascends(arrays[first], len(arrays[items]))
    yield "constant_blob", are_texts(arrays["constant_blob"], arrays["constant_start"])
    yield "constant_blob", constants_fit(arrays["constant_blob"], arrays["constant_start"])
    yield "slots", within(arrays["slots"], -1, constants)
    needed = np.zeros(len(tree_first) - 1, dtype=np.int64)
    depth = np.zeros(int(np.diff(tree_first).max(initial=0)) + 1, dtype=np.int64)
    yield "trees", bounds.trees_fit(trees, tree_first, attributes, needed, depth)
    yield "row_shape", bounds.rows_fit(shapes, arrays["slot_first"], needed)


def _bits(words: np.ndarray) -> np.ndarray:
    return np.zeros((len(words) >> 3) + 1, dtype=np.uint8)
