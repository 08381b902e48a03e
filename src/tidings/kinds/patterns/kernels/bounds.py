"""Checks that the numbers in an index lead only into its own arrays.

The loops of matching check nothing: they trust that a slot is a term or an atom, a jump an earlier instruction, a key
one of a row or a list. These loops check it once, when an index is opened, each in one pass in the order of memory.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.kinds.patterns.kernels.layout import CLASS, ISA, POINT, REJECT, REPEATED, SP, TAGGED, TEST

MAX_WIDTH = 1 << 15  # slots are numbered in 16 bits
_ROWS = 256  # their slots stay in the cache


@compiled
def programs_fit(programs, variables, term_counts, modes, met):  # type: ignore[no-untyped-def]
    """Whether steps, code and options stay in their shape. `met`, zeros at first, has room for its variables.

    Code is emitted back to front, so a jump that goes back ends.
    """
    steps, code, options = programs.steps, programs.code, programs.options
    for shape in range(programs.width.shape[0]):
        terms, width, known = term_counts[shape], programs.width[shape], variables[shape]
        begin, count = programs.step_first[shape], programs.step_first[shape + 1] - programs.step_first[shape]
        tests = programs.code_first[shape + 1] - programs.code_first[shape]
        if not (0 <= terms <= width < MAX_WIDTH and 0 <= known <= 3 * count):
            return False
        bound = 0
        for i in range(count):
            for part in range(3):
                ref = np.int64(steps[begin + i, part])
                if ref >= terms or ~ref >= known:
                    return False
                if ref < 0 and met[~ref] != shape + 1:
                    met[~ref] = shape + 1
                    bound += 1
            mode, entry, end = steps[begin + i, 3], steps[begin + i, 4], steps[begin + i, 5]
            if not (0 <= mode < 2 * REPEATED and modes[mode & 7] and REJECT <= entry < tests):
                return False
            if not (i < end <= count) or (end > i + 1 and steps[begin + i + 1, 5] != end):
                return False
        if bound != known:
            return False
        for i in range(tests):
            test = code[programs.code_first[shape] + i]
            if not (0 <= test[0] < known and terms <= test[1] < width):
                return False
            if not (REJECT <= test[2] < i and REJECT <= test[3] < i):
                return False
        for i in range(programs.option_first[shape], programs.option_first[shape + 1]):
            option = options[i]
            if not (POINT <= option[1] <= ISA and 0 <= option[2] < terms and terms <= option[3] < width):
                return False
    return True


@compiled
def atoms_fit(atoms, classes, tests, tagged, modes):  # type: ignore[no-untyped-def]
    """Whether atoms look only at what a batch will have: classes and text tests by number, suffixes if `tagged`."""
    for a in range(atoms.space.shape[0]):
        what, low, high = atoms.space[a], atoms.low[a], atoms.high[a]
        if what < -1 or what > TAGGED or (what == TAGGED and not tagged):
            return False
        if what == TEST and not (0 <= low < tests):
            return False
        if what == CLASS and not (0 <= low < classes and 0 <= high <= 2 and modes[SP]):
            return False
    return True


@compiled
def rows_fit(rows, widths, term_counts, terms, atoms, is_start):  # type: ignore[no-untyped-def]
    """Whether the slots are the rows end to end, each behind its number and shape, filled with terms and atoms.

    The bits of `is_start`, zeros at first, are set where a row starts. No row is met twice, because it has one start.
    """
    slots, start, shapes = rows.slots, rows.start, rows.shape
    at, count, end = 0, 0, slots.shape[0]
    while at + 2 <= end:
        # Some rows' numbers first, then their slots: what a number leads to lies anywhere, and without the slots
        # between them the processor waits for many at once. A third of the time at a million rows.
        begin = at
        for _ in range(_ROWS):
            if at + 2 > end:
                break
            row, shape = slots[at], slots[at + 1]
            at += 2
            if not (0 <= row < shapes.shape[0] and 0 <= shape < widths.shape[0]):
                return False
            if shapes[row] != shape or start[row] != at or at + widths[shape] > end:
                return False
            is_start[at >> 3] |= np.uint8(1 << (at & 7))
            at += widths[shape]
            count += 1
        outside = np.int64(
            0
        )  # negative as soon as a number is not below its bound; one below zero is a large one
        while begin < at:
            shape = slots[begin + 1]
            begin += 2
            behind_terms, behind = begin + term_counts[shape], begin + widths[shape]
            for i in range(begin, behind_terms):
                outside |= terms - 1 - np.uint32(slots[i])
            for i in range(behind_terms, behind):
                outside |= atoms - 1 - np.uint32(slots[i])
            begin = behind
        if outside < 0:
            return False
    return at == end and count == shapes.shape[0]


@inlined
def _starts(at, is_start):  # type: ignore[no-untyped-def]
    return 0 <= at < 8 * is_start.shape[0] and (is_start[at >> 3] >> (at & 7)) & 1 == 1


@compiled
def starts_fit(starts, is_start):  # type: ignore[no-untyped-def]
    """Whether all of them are starts of rows."""
    outside = 0
    for i in range(starts.shape[0]):
        outside += not _starts(starts[i], is_start)
    return outside == 0


@compiled
def keys_fit(table, first, rows, is_start):  # type: ignore[no-untyped-def]
    """Whether every key leads to a row or to a list that fits among the candidates, and the table has a free row."""
    free, lists = False, first.shape[0] - 1
    for i in range(lists):
        if first[i + 1] - first[i] > rows:
            return False
    for i in range(table.shape[0]):
        where = np.int64(table[i, 1])
        if table[i, 0] == 0:
            free = True
        elif not _starts(where, is_start) and not (0 <= ~where < lists):
            return False
    return free
