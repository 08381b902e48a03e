"""Checks arrays from a folder; every check of a saved index uses these functions.

Compiled loops check nothing while they run: they trust that a `first` is a position in its list and that every
open-addressed table has a free slot, where a lookup ends. This is checked once, when a folder is opened.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidings.arrays.characters import OPEN_ANGLE, QUOTE
from tidings.arrays.compiled import compiled
from tidings.arrays.vocabulary import thaw_texts
from tidings.errors import IndexFileError


def refuse_unless(folder: Path, checks: Iterable[tuple[str, bool]]) -> None:
    """Raises an `IndexFileError` for the first check, a name of an array and a truth, that failed."""
    for name, right in checks:
        if not right:
            raise IndexFileError(
                f"{folder} is damaged: {name}.npy has values that cannot be right; build the index anew"
            )


def are_texts(blob: np.ndarray, start: np.ndarray) -> bool:
    """Whether the concatenated texts can be decoded."""
    column = pa.Array.from_buffers(
        pa.large_string(), len(start) - 1, [None, pa.py_buffer(start), pa.py_buffer(blob)]
    )
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:  # half a surrogate, which Arrow does not take, is one of Python's texts
        try:
            thaw_texts({"blob": blob, "start": start})
        except UnicodeDecodeError:
            return False
    return True


@compiled
def ascends(first, size):  # type: ignore[no-untyped-def]
    """Whether `first` divides a list of that size into consecutive pieces."""
    count = first.shape[0] - 1
    if count < 0 or first[0] != 0 or first[count] != size:
        return False
    falls = 0
    for i in range(count):
        falls += first[i] > first[i + 1]
    return falls == 0


@compiled
def within(numbers, low, high):  # type: ignore[no-untyped-def]
    """Whether low <= number < high for all of them."""
    outside = 0
    for i in range(numbers.shape[0]):
        outside += (numbers[i] < low) | (numbers[i] >= high)
    return outside == 0


@compiled
def slots_fit(slots, count):  # type: ignore[no-untyped-def]
    """Whether a table of spans leads to existing spans only, and has a free slot."""
    free, outside = 0, 0
    for i in range(slots.shape[0]):
        free += slots[i] < 0
        outside += slots[i] >= count
    return free > 0 and outside == 0


@compiled
def constants_fit(blob, start):  # type: ignore[no-untyped-def]
    """Whether every constant begins like an IRI, or like a literal that has its closing quote."""
    for i in range(start.shape[0] - 1):
        low, close = start[i], start[i + 1] - 1
        if close < low or (blob[low] != OPEN_ANGLE and blob[low] != QUOTE):
            return False
        while blob[low] == QUOTE and blob[close] != QUOTE:
            close -= 1
        if blob[low] == QUOTE and close == low:
            return False
    return True
