"""Resolves leaves of trees on the scales of their attributes: their tests, operands, and how rarely they hold.

A leaf's *weight* is how often expressions mention what it accepts, as an estimate of how often events have it.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.arrays.hashing import mix
from tidings.kinds.filters.kernels.layout import (
    BETWEEN,
    EQ,
    EXISTS,
    FALSE,
    GE,
    GT,
    IN,
    INNER_SIZE,
    LE,
    LEAF_SIZE,
    LT,
    NE,
    NEGATED,
    NEVER,
    NONE_OF,
    NOT_IN,
    ONE_OF,
    OR,
    POINT,
    PRESENT,
    RANGE,
    STARTS,
    TEXTS,
    TRUTHS,
)


@compiled
def rename_attributes(trees, numbers):  # type: ignore[no-untyped-def]
    """Gives the attributes in trees, one after the other, new numbers."""
    word = 0
    while word < trees.shape[0]:
        if trees[word] <= OR:
            word += INNER_SIZE
        else:
            trees[word + 1] = numbers[trees[word + 1]]
            word += LEAF_SIZE


@compiled
def count_mentions(rows, order, kinds, begin, keys, counts, used, ordered):  # type: ignore[no-untyped-def]
    """Counts each (attribute, constant) that rows from `begin` on mention; (rows done, slots used).

    A key is attribute << 32 | order of the constant among all; -1 is a free slot. Stops when half full. `ordered` notes
    the attributes whose texts are asked for by order.
    """
    trees, tree_first, row_shape, slot_first, slots = rows
    mask = np.uint64(keys.shape[0] - 1)
    for row in range(begin, row_shape.shape[0]):
        if used * 2 + slot_first[row + 1] - slot_first[row] >= keys.shape[0]:
            return row, used
        word, end = tree_first[row_shape[row]], tree_first[row_shape[row] + 1]
        while word < end:
            if trees[word] <= OR:
                word += INNER_SIZE
                continue
            base = slot_first[row] + trees[word + 2]
            op = trees[word] & ~NEGATED
            by_order = LT <= op <= BETWEEN or op == STARTS
            for i in range(base, base + trees[word + 3]):
                if slots[i] < 0 or order[slots[i]] < 0:
                    continue
                if by_order and kinds[slots[i]] == TEXTS:
                    ordered[trees[word + 1]] = True
                key = np.int64(trees[word + 1]) << 32 | np.int64(order[slots[i]])
                at = mix(np.uint64(0), key) & mask
                while keys[at] != key and keys[at] != -1:
                    at = (at + np.uint64(1)) & mask
                if keys[at] == -1:
                    keys[at] = key
                    used += 1
                counts[at] += 1
            word += LEAF_SIZE
    return row_shape.shape[0], used


@inlined
def _slot_of(keys, key):  # type: ignore[no-untyped-def]
    mask = np.uint64(keys.shape[0] - 1)
    at = mix(np.uint64(0), key) & mask
    while keys[at] != key:
        at = (at + np.uint64(1)) & mask
    return at


@inlined
def _start(ends, attribute, kind):  # type: ignore[no-untyped-def]
    return np.int64(ends[attribute, kind - 1]) if kind else np.int64(0)


@inlined
def _weight_of_range(known, attribute, kind, low, high):  # type: ignore[no-untyped-def]
    """How often constants from one position to another are mentioned; at least once."""
    start = _start(known.ends, attribute, kind)
    group = known.group_first[attribute, kind]
    count = known.group_first[attribute, kind + 1] - group
    from_constant = max((low - start) >> 1, 0)
    to_constant = min(((high - start - 1) >> 1) + 1, count)
    if kind == TRUTHS or to_constant <= from_constant:
        return 1.0
    return max(1.0, np.float64(known.total[group + to_constant] - known.total[group + from_constant]))


@compiled
def _sort_distinct(numbers, begin, count):  # type: ignore[no-untyped-def]
    """Sorts numbers[begin:begin + count] by a heap, in place, each once; how many are left."""
    if count < 2:
        return count
    for top in range(count // 2 - 1, -1, -1):
        _sift(numbers, begin, top, count)
    for end in range(count - 1, 0, -1):
        numbers[begin], numbers[begin + end] = numbers[begin + end], numbers[begin]
        _sift(numbers, begin, 0, end)
    kept = 1
    for i in range(1, count):
        if numbers[begin + i] != numbers[begin + kept - 1]:
            numbers[begin + kept] = numbers[begin + i]
            kept += 1
    return kept


@inlined
def _sift(numbers, begin, top, count):  # type: ignore[no-untyped-def]
    """Lets the number at `top` sink to where none below it is larger."""
    while True:
        child = 2 * top + 1
        if child >= count:
            return
        if child + 1 < count and numbers[begin + child + 1] > numbers[begin + child]:
            child += 1
        if numbers[begin + top] >= numbers[begin + child]:
            return
        numbers[begin + top], numbers[begin + child] = numbers[begin + child], numbers[begin + top]
        top = child


@inlined
def resolve(tree, word, base, slots, known, operands, filled):  # type: ignore[no-untyped-def]
    """The test of a leaf, its operands into `operands` from `filled` on; (test, operands, weight)."""
    op = tree[word] & ~NEGATED
    attribute = np.int64(tree[word + 1])
    first, count = base + tree[word + 2], tree[word + 3]
    ends, order, kinds = known.ends, known.order, known.kinds
    if op == EXISTS:
        return PRESENT, 0, np.float64(max(known.mentions[attribute], 1))
    if op == NEVER:
        return FALSE, 0, 1.0
    if op == IN or op == NOT_IN or op == EQ or op == NE:
        at = filled + (1 if op == IN else 2 if op == NOT_IN or op == NE else 0)
        listed, mask, weight = 0, 0, 0.0
        for i in range(first, first + count):
            constant = slots[i]
            if constant < 0 or order[constant] < 0:
                continue
            kind = kinds[constant]
            mask |= 1 << kind
            slot = _slot_of(known.keys, attribute << 32 | np.int64(order[constant]))
            position = np.int64(known.position[slot])
            operands[at + listed] = position
            listed += 1
            weight += known.counts[slot]
        listed = _sort_distinct(operands, at, listed)
        if listed == 0:
            return FALSE, 0, 1.0
        if op == EQ:
            return POINT, 1, weight
        if op == IN:
            operands[filled] = listed
            return ONE_OF, 1 + listed, weight
        operands[filled], operands[filled + 1] = mask, listed
        return NONE_OF, 2 + listed, np.float64(max(known.mentions[attribute] - weight, 1.0))
    # The rest are ranges of one kind.
    constant = slots[first]
    if constant < 0 or order[constant] < 0:
        return FALSE, 0, 1.0
    kind = kinds[constant]
    position = np.int64(known.position[_slot_of(known.keys, attribute << 32 | np.int64(order[constant]))])
    low, high = _start(ends, attribute, kind), np.int64(ends[attribute, kind]) - 1
    if op == LT:
        high = position - 1
    elif op == LE:
        high = position
    elif op == GT:
        low = position + 1
    elif op == GE:
        low = position
    else:
        low = position
        other = slots[first + 1]
        if other >= 0:
            if order[other] < 0 or kinds[other] != kind:
                return FALSE, 0, 1.0
            key = attribute << 32 | np.int64(order[other])
            high = np.int64(known.position[_slot_of(known.keys, key)]) - (1 if op == STARTS else 0)
        if op == STARTS and kind != TEXTS:
            return FALSE, 0, 1.0
    if kind == TRUTHS or low > high:
        return FALSE, 0, 1.0
    operands[filled], operands[filled + 1] = low, high
    return RANGE, 2, _weight_of_range(known, attribute, kind, low, high)
