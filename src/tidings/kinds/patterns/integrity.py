"""Refuses damaged arrays of patterns, whose values would lead a compiled loop out of bounds or into an endless loop.

The manifest has checked types and shapes (arrays/folders.py); here lengths are checked against each other, then values
(kernels/bounds.py). Every check relies on those before it. Arrays that pass form a valid index, if perhaps another one:
a changed text or rank gives other answers and nothing worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tidings.arrays.bounds import are_texts, ascends, constants_fit, refuse_unless, slots_fit, within
from tidings.kinds.patterns.kernels import bounds
from tidings.kinds.patterns.kernels.layout import BLOCK, ISA, KINDS, SP, SPO, Index
from tidings.kinds.patterns.table import OPS

Arrays = Mapping[str, np.ndarray]

_LISTS = {
    "program_step_first": "program_steps",
    "program_code_first": "program_code",
    "program_option_first": "program_options",
    "access_first": "access_postings",
    "access_range_first": "access_range_low",
    "class_typed_first": "class_typed",
    "class_label_first": "class_label",
    "class_interval_first": "class_interval_low",
    "class_parent_first": "class_parents",
    "vocabulary_start": "vocabulary_blob",
    "table_constant_start": "table_constant_blob",
    "constants_text_start": "constants_text_blob",
    "constants_plain_start": "constants_plain_blob",
}
_WIDTHS = {
    "program_steps": 6,
    "program_code": 4,
    "program_options": 4,
    "access_table": 2,
    "table_atoms": 3,
}
_LARGEST_EXPONENT = 250  # of the numbers that are read without exact arithmetic (formats/kernels/lexical.py)


def refuse_damage(folder: Path, index: Index, arrays: Arrays, facts: Mapping[str, Any]) -> None:
    """An `IndexFileError` names the array that is wrong, or does not fit the others."""
    refuse_unless(folder, _lengths(arrays, facts))
    refuse_unless(folder, _values(index, arrays, facts))


def _lengths(arrays: Arrays, facts: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    size = {name: len(array) for name, array in arrays.items()}
    shapes, rows, terms = size["program_width"], size["row_shape"], size["vocabulary_start"] - 1
    texts, ranges = size["constants_text_start"] - 1, size["access_range_low"]
    for expected, names in (
        (shapes, ("every", "variables", "table_terms")),
        (shapes + 1, ("program_step_first", "program_code_first", "program_option_first")),
        (rows, ("row_start",)),
        (size["atom_space"], ("atom_low", "atom_high", "atom_hole", "table_atoms")),
        (terms, ("text_properties",)),
        (size["class_number"] + 1, ("class_typed_first",)),
        (texts + 1, ("class_label_first",)),
        (texts + 1 if facts["texts_ordered"] else 1, ("constants_plain_start",)),
        (size["class_interval_first"], ("class_parent_first",)),
        (size["class_interval_low"], ("class_interval_high",)),
        (size["constants_mantissa"], ("constants_exponent", "constants_approximation")),
        (ranges, ("access_range_high", "access_range_row")),
        (-(-ranges >> BLOCK), ("access_range_block",)),
        (KINDS, ("access_used",)),
        (4, ("access_points",)),
        (8, ("modes",)),
    ):
        for name in names:
            yield name, size[name] == expected
    for name, width in _WIDTHS.items():
        yield name, arrays[name].shape[1:] == (width,)
    for name in ("vocabulary_slots", "constants_text_slots", "access_table"):
        yield name, size[name].bit_count() == 1
    yield "class_number", size["class_number"] in (0, terms)  # none when no subscription has ISA
    yield "access_range_of", size["access_range_of"] in (0, 2 * terms)  # none when no row is filed under one
    yield "access_always", size["access_always"] <= rows
    named = np.fromiter(map(len, facts["variables"]), dtype=np.int32)
    yield "variables", len(facts["select"]) == shapes and np.array_equal(arrays["variables"], named)


def _values(index: Index, arrays: Arrays, facts: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    programs, rows, access, classes = index.programs, index.rows, index.access, index.classes
    terms, atoms, texts = (len(arrays[n]) for n in ("text_properties", "atom_space", "class_label_first"))
    term_counts, class_count = arrays["table_terms"], len(classes.interval_first) - 1
    for first, items in _LISTS.items():
        yield first, ascends(arrays[first], len(arrays[items]))
    for name in ("vocabulary", "table_constant", "constants_text", "constants_plain"):
        yield f"{name}_blob", are_texts(arrays[f"{name}_blob"], arrays[f"{name}_start"])
    met = np.zeros(3 * int(np.diff(programs.step_first).max(initial=0)) + 1, dtype=np.int32)
    yield "program_steps", bounds.programs_fit(programs, index.variables, term_counts, index.modes, met)
    yield "modes", bool(index.modes[SPO] and (index.modes[SP] or not access.used[ISA]))
    tests, tagged = len(facts["tests"]), bool(facts["tagged"])
    yield "atom_space", bounds.atoms_fit(index.atoms, class_count, tests, tagged, index.modes)
    is_start = np.zeros((len(rows.slots) >> 3) + 1, dtype=np.uint8)
    yield "row_slots", bounds.rows_fit(rows, programs.width, term_counts, terms, atoms, is_start)
    yield "access_table", bounds.keys_fit(access.table, access.first, len(rows.start), is_start)
    for name in ("access_postings", "access_range_row", "access_always"):
        yield name, bounds.starts_fit(arrays[name], is_start)
    yield "access_range_of", within(access.range_of, -1, len(access.range_first) - 1)
    yield "class_number", within(classes.number, -1, class_count)
    for name in ("class_typed", "class_label", "class_parents"):
        yield name, within(arrays[name], 0, class_count)
    yield "vocabulary_slots", slots_fit(arrays["vocabulary_slots"], terms)
    yield "constants_text_slots", slots_fit(arrays["constants_text_slots"], texts - 1)
    exponent = arrays["constants_exponent"]
    long = np.flatnonzero((exponent < -_LARGEST_EXPONENT) | (exponent > _LARGEST_EXPONENT))
    yield "constants_exponent", long.tolist() == sorted(map(int, facts["long_numbers"]))
    # What follows is read when the index is taken apart again, to be folded with changes.
    constants = len(arrays["table_constant_start"]) - 1
    yield (
        "table_atoms",
        bool(
            (arrays["table_atoms"] >= 0).all()
            and (arrays["table_atoms"] < (len(OPS), constants, constants)).all()
        ),
    )
    yield (
        "table_constant_blob",
        constants_fit(arrays["table_constant_blob"], arrays["table_constant_start"]),
    )
