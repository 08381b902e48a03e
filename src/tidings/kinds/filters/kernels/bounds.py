"""Checks that the numbers in an index of filters, or in a table of them, lead only into its own arrays.

The loops of matching check nothing: they trust that code has an attribute in every leaf and an end, that a jump lands
on a leaf behind it, and that an entry is an address where code begins. Those that write code trust the trees. These loops
check it once, when a folder is opened, each in one pass in the order of memory.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.kinds.filters.kernels.layout import (
    BETWEEN,
    CHECK_BITS,
    EQ,
    EXISTS,
    IN,
    INNER_SIZE,
    INSTANTS,
    JUMP_SHIFT,
    LAST_BIT,
    LEAF_SIZE,
    NEGATED,
    NEVER,
    NOT_IN,
    NUMBERS,
    OR,
    REPEATS,
    STARTS,
    TEST_MASK,
    TEXTS,
    TRUTHS,
)
from tidings.kinds.filters.kernels.running import operands

_LEAST = np.array([0, 0, 1, 2, 1, 2, 1, 1], dtype=np.int64)  # operands of each test
MAX_HEIGHT = 30  # of the nodes of an attribute: positions are smaller than AGAIN


@compiled
def scales_fit(scales):  # type: ignore[no-untyped-def]
    """Whether the kinds of each attribute have as many positions as it has constants."""
    for a in range(scales.ends.shape[0]):
        numbers = scales.number_first[a + 1] - scales.number_first[a]
        instants = scales.instant_first[a + 1] - scales.instant_first[a]
        texts = scales.text_first[a + 1] - scales.text_first[a]
        end = 2 * numbers + 1
        if scales.ends[a, NUMBERS] != end:
            return False
        end += 2 * instants + 1
        if scales.ends[a, INSTANTS] != end or scales.ends[a, TRUTHS] != end + 2:
            return False
        if scales.ends[a, TEXTS] != end + 2 + 2 * texts + 1:
            return False
    return True


@compiled
def nodes_fit(access, ends):  # type: ignore[no-untyped-def]
    """Whether the nodes of attributes lie end to end, each with room for the positions of its attribute."""
    base = np.int64(0)
    for a in range(ends.shape[0]):
        height = np.int64(access.height[a])
        if not (0 <= height <= MAX_HEIGHT) or access.base[a] != base or ends[a, TEXTS] >= 1 << height:
            return False
        if not (0 <= access.levels[a] < 1 << (height + 1)) or access.shift[a] != max(height - CHECK_BITS, 0):
            return False
        base += np.int64(1) << (height + 1)
    return access.first.shape[0] - 1 == max(base, 1)


@inlined
def _mark(bits, at):  # type: ignore[no-untyped-def]
    bits[at >> 3] |= np.uint8(1 << (at & 7))


@inlined
def _marked(bits, at):  # type: ignore[no-untyped-def]
    return (bits[at >> 3] >> (at & 7)) & 1 == 1


@inlined
def _expression_end(code, at, attributes, is_leaf):  # type: ignore[no-untyped-def]
    """Where an expression ends whose first leaf is at `at`; -1 if it does not, or leaves the code on its way."""
    first, size = at, code.shape[0]
    while True:
        if at + 2 > size or code[at] >= attributes:
            return -1
        control = np.int64(code[at + 1])
        # The first operands say how many there are, and may lie behind the end themselves.
        test = control & TEST_MASK
        if at + 2 + _LEAST[test] > size:
            return -1
        _mark(is_leaf, at)
        at += 2 + operands(code, at + 2, test)
        if at > size:
            return -1
        if control & LAST_BIT:
            break
    end = at
    at = first
    while at < end:
        control = np.int64(code[at + 1])
        jump = control >> JUMP_SHIFT
        if not (control & LAST_BIT) and jump and (at + jump >= end or not _marked(is_leaf, at + jump)):
            return -1
        at += 2 + operands(code, at + 2, control & TEST_MASK)
    return end


@compiled
def narrow_fits(code, attributes, is_start, is_leaf):  # type: ignore[no-untyped-def]
    """How many expressions the narrow code is, end to end, and -1 if it is none; bits are set where each starts."""
    narrow, addresses = code.narrow, code.at
    at, count = 0, 0
    while at < narrow.shape[0]:
        if at + 2 > narrow.shape[0]:
            return -1
        row = (np.int64(narrow[at]) | np.int64(narrow[at + 1]) << 16) & (REPEATS - 1)
        if row >= addresses.shape[0] or addresses[row] != 2 * at:
            return -1
        _mark(is_start, at)
        at = _expression_end(narrow, at + 2, attributes, is_leaf)
        if at < 0:
            return -1
        count += 1
    return count


@compiled
def wide_fits(code, attributes, is_start, is_leaf):  # type: ignore[no-untyped-def]
    """The same of the wide code."""
    wide, addresses = code.wide, code.at
    at, count = 0, 0
    while at < wide.shape[0]:
        row = np.int64(wide[at]) & (REPEATS - 1)
        if row >= addresses.shape[0] or addresses[row] != 2 * at + 1:
            return -1
        _mark(is_start, at)
        at = _expression_end(wide, at + 1, attributes, is_leaf)
        if at < 0:
            return -1
        count += 1
    return count


@compiled
def entries_fit(entries, attributes, narrow_start, wide_start):  # type: ignore[no-untyped-def]
    """Whether entries lead to where expressions start, and their checks to attributes."""
    for i in range(0, entries.shape[0], 3):
        at = np.int64(entries[i]) >> 1
        starts = wide_start if entries[i] & 1 else narrow_start
        if at >= 8 * starts.shape[0] or not _marked(starts, at):
            return False
        if entries[i + 1] >> 16 > attributes or entries[i + 2] >> 16 > attributes:
            return False
    return True


@compiled
def trees_fit(trees, tree_first, attributes, needed, ends):  # type: ignore[no-untyped-def]
    """Whether every shape is a tree. `needed` gets how many slots a row of each has; `ends` is scratch."""
    for shape in range(tree_first.shape[0] - 1):
        word, end = tree_first[shape], tree_first[shape + 1]
        if word == end:
            return False
        depth, most, roots = 0, 0, 0
        while word < end:
            while depth > 0 and word == ends[depth - 1]:
                depth -= 1
            roots += depth == 0
            limit = ends[depth - 1] if depth else end
            op = trees[word]
            if op < 1 or roots > 1:
                return False
            if op <= OR:
                if (
                    word + INNER_SIZE > limit
                    or trees[word + 1] <= INNER_SIZE
                    or word + trees[word + 1] > limit
                ):
                    return False
                ends[depth] = word + trees[word + 1]
                depth += 1
                word += INNER_SIZE
                continue
            if word + LEAF_SIZE > limit:
                return False
            test, first, count = op & ~NEGATED, trees[word + 2], trees[word + 3]
            if not (EQ <= test <= NEVER) or not (0 <= trees[word + 1] < attributes) or first < 0:
                return False
            if test == BETWEEN or test == STARTS:
                fits = count == 2
            elif test == IN or test == NOT_IN:
                fits = count >= 0
            else:
                fits = count == (0 if test >= EXISTS else 1)
            if not fits:
                return False
            most = max(most, np.int64(first) + count)
            word += LEAF_SIZE
        if word != end:
            return False
        needed[shape] = most
    return True


@compiled
def rows_fit(shapes, slot_first, needed):  # type: ignore[no-untyped-def]
    """Whether every row has as many slots as its shape needs."""
    for row in range(shapes.shape[0]):
        if not (0 <= shapes[row] < needed.shape[0]):
            return False
        if slot_first[row + 1] - slot_first[row] != needed[shapes[row]]:
            return False
    return True
