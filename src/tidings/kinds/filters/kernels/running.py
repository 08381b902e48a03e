"""Runs the code of expressions for an event whose values are in the slots of its attributes."""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.kinds.filters.kernels.layout import (
    ABSENT,
    AGAIN,
    JUMP_SHIFT,
    LAST_BIT,
    MANY,
    NEGATED_BIT,
    NONE_OF,
    ONE_OF,
    POINT,
    PRESENT,
    RANGE,
    SENSE_BIT,
    SMALL_ONE_OF,
    SMALL_RANGE,
    TEST_MASK,
)

_LONG = 12  # options from which on halving beats looking at each


@inlined
def _listed(code, low, high, position):  # type: ignore[no-untyped-def]
    """Whether the ascending code[low:high] hold a position."""
    while high - low > _LONG:
        middle = (low + high) >> 1
        if code[middle] <= position:
            low = middle
        else:
            high = middle
    for i in range(low, high):
        if code[i] >= position:
            return code[i] == position
    return False


@inlined
def _listed_small(code, at, position):  # type: ignore[no-untyped-def]
    """Whether the positions of a SMALL_ONE_OF hold one."""
    word = np.int64(code[at])
    if word >> 8 == position:
        return True
    for i in range(at + 1, at + 1 + ((word & 0xFF) >> 1)):
        word = np.int64(code[i])
        if word & 0xFF == position or word >> 8 == position:
            return True
    return False


@inlined
def _kind(ends, attribute, position):  # type: ignore[no-untyped-def]
    kind = 0
    while kind < 4 and position >= ends[attribute, kind]:
        kind += 1
    return kind


@inlined
def operands(code, at, test):  # type: ignore[no-untyped-def]
    """How many words stand behind the control word of a leaf."""
    if test == POINT or test == SMALL_RANGE:
        return 1
    if test == SMALL_ONE_OF:
        return 1 + ((np.int64(code[at]) & 0xFF) >> 1)
    if test == RANGE:
        return 2
    if test == ONE_OF:
        return 1 + np.int64(code[at])
    if test == NONE_OF:
        return 2 + np.int64(code[at + 1])
    return 0


@inlined
def _event_end(first, pair):  # type: ignore[no-untyped-def]
    """Where the pairs of the event end that has this one; the next event may begin with the same attribute."""
    low, high = 0, first.shape[0] - 1
    while low < high:
        middle = (low + high) >> 1
        if first[middle] > pair:
            high = middle
        else:
            low = middle + 1
    return first[low]


@inlined
def _has_position(pairs, attribute, low, high, position):  # type: ignore[no-untyped-def]
    """Whether an attribute has a position, among ascending ones from pair `low` on; behind them other attributes follow."""
    attributes, positions = pairs.attribute, pairs.position
    last = high
    while low < high:
        middle = (low + high) >> 1
        if attributes[middle] == attribute and np.int64(positions[middle]) < position:
            low = middle + 1
        else:
            high = middle
    return low < last and attributes[low] == attribute and np.int64(positions[low]) == position


@compiled
def several(code, at, test, attribute, many, pairs, ends):  # type: ignore[no-untyped-def]
    """A leaf's test on an attribute of several values or views; `many` is twice the number of their first pair, and 1 more
    if their positions ascend."""
    attributes, positions = pairs.attribute, pairs.position
    i = many >> 1
    count = _event_end(pairs.first, i)
    if test == POINT and many & 1:
        return _has_position(pairs, attribute, i, count, np.int64(code[at]))
    comparable, equal = False, False
    while i < count and attributes[i] == attribute:
        position = np.int64(positions[i]) & (AGAIN - 1)
        if test == PRESENT:
            return True
        if test == POINT:
            if position == np.int64(code[at]):
                return True
        elif test == RANGE:
            if np.int64(code[at]) <= position <= np.int64(code[at + 1]):
                return True
        elif test == ONE_OF:
            if _listed(code, at + 1, at + 1 + np.int64(code[at]), position):
                return True
        elif test == SMALL_RANGE:
            if np.int64(code[at]) & 0xFF <= position <= np.int64(code[at]) >> 8:
                return True
        elif test == SMALL_ONE_OF:
            if _listed_small(code, at, position):
                return True
        elif test == NONE_OF:
            # All views of one value: comparable with an option, and equal to none.
            if not (np.int64(positions[i]) & AGAIN):
                comparable, equal = False, False
            if (np.int64(code[at]) >> _kind(ends, attribute, position)) & 1:
                comparable = True
            if _listed(code, at + 2, at + 2 + np.int64(code[at + 1]), position):
                equal = True
            last = i + 1 == count or attributes[i + 1] != attribute or not (positions[i + 1] & AGAIN)
            if last and comparable and not equal:
                return True
        i += 1
    return False


@inlined
def _outcome(code, at, test, attribute, position, ends):  # type: ignore[no-untyped-def]
    """Whether a leaf's test, whose operands are at `at`, holds for the only position of its attribute, and how many
    words the operands are: both at once, because what test it is cannot be foreseen, and every guess costs."""
    if test == POINT:
        return position == np.int64(code[at]), np.int64(1)
    if test == SMALL_ONE_OF:
        return _listed_small(code, at, position), 1 + ((np.int64(code[at]) & 0xFF) >> 1)
    if test == SMALL_RANGE:
        return np.int64(code[at]) & 0xFF <= position <= np.int64(code[at]) >> 8, np.int64(1)
    if test == RANGE:
        return np.int64(code[at]) <= position <= np.int64(code[at + 1]), np.int64(2)
    if test == ONE_OF:
        count = np.int64(code[at])
        return _listed(code, at + 1, at + 1 + count, position), 1 + count
    if test == NONE_OF:
        count = np.int64(code[at + 1])
        held = False
        if position != ABSENT and (np.int64(code[at]) >> _kind(ends, attribute, position)) & 1:
            held = not _listed(code, at + 2, at + 2 + count, position)
        return held, 2 + count
    return test == PRESENT and position != ABSENT, np.int64(0)


@inlined
def _next_leaf(at, control, held, words):  # type: ignore[no-untyped-def]
    """Where the code goes on after a leaf with so many words of operands; 0 where it ends with `held`."""
    if control & LAST_BIT:
        return np.int64(0)
    if held == (control & SENSE_BIT != 0):
        jump = control >> JUMP_SHIFT
        return at + jump if jump else np.int64(0)
    return at + 2 + words


@inlined
def holds_at(code, at, slots, pairs, ends):  # type: ignore[no-untyped-def]
    """Whether the expression whose first leaf is at `at` holds for the event in `slots`."""
    held = False
    while at:
        attribute = np.int64(code[at])
        control = np.int64(code[at + 1])
        test = control & TEST_MASK
        position = np.int64(slots[attribute])
        if position <= MANY:
            held = several(code, at + 2, test, attribute, MANY - position, pairs, ends)
            words = operands(code, at + 2, test)
        else:
            held, words = _outcome(code, at + 2, test, attribute, position, ends)
        if control & NEGATED_BIT:
            held = not held
        at = _next_leaf(at, control, held, words)
    return held


@inlined
def holds_single(code, at, slots, ends):  # type: ignore[no-untyped-def]
    """The same for an event that has one position of each attribute: a shorter loop, a third less time."""
    held = False
    while at:
        attribute = np.int64(code[at])
        control = np.int64(code[at + 1])
        position = np.int64(slots[attribute])
        held, words = _outcome(code, at + 2, control & TEST_MASK, attribute, position, ends)
        if control & NEGATED_BIT:
            held = not held
        at = _next_leaf(at, control, held, words)
    return held


@compiled
def holds_narrow(code, at, slots, pairs, ends):  # type: ignore[no-untyped-def]
    return holds_at(code, at, slots, pairs, ends)


@compiled
def holds_wide(code, at, slots, pairs, ends):  # type: ignore[no-untyped-def]
    return holds_at(code, at, slots, pairs, ends)


@inlined
def row_at(code, address):  # type: ignore[no-untyped-def]
    """The row, with its flag, whose code is at an address."""
    at = address >> 1
    if address & 1:
        return np.int64(code.wide[at])
    return np.int64(code.narrow[at]) | np.int64(code.narrow[at + 1]) << 16


@inlined
def holds(index, address, slots, pairs):  # type: ignore[no-untyped-def]
    """Whether the expression at an address in code holds for the event in `slots`."""
    at = address >> 1
    if address & 1:
        return holds_wide(index.code.wide, at + 1, slots, pairs, index.ends)
    return holds_narrow(index.code.narrow, at + 2, slots, pairs, index.ends)


@compiled
def row_holds(index, row, slots, pairs):  # type: ignore[no-untyped-def]
    return holds(index, np.int64(index.code.at[row]), slots, pairs)


@inlined
def enter_inlined(pairs, event, slots):  # type: ignore[no-untyped-def]
    """Puts an event into the slots; whether any attribute has several values."""
    attributes, positions = pairs.attribute, pairs.position
    begin, end = pairs.first[event], pairs.first[event + 1]
    several_values = False
    for i in range(begin, end):
        attribute = attributes[i]
        if i > begin and attributes[i - 1] == attribute:
            several_values = True
            if slots[attribute] > MANY:
                slots[attribute] = MANY - (2 * (i - 1) + 1)
            if (positions[i] & AGAIN or positions[i] < positions[i - 1]) and (MANY - slots[attribute]) & 1:
                slots[attribute] += 1
        else:
            slots[attribute] = positions[i]
    return several_values


@compiled
def enter(pairs, event, slots):  # type: ignore[no-untyped-def]
    return enter_inlined(pairs, event, slots)


@compiled
def leave(pairs, event, slots):  # type: ignore[no-untyped-def]
    for i in range(pairs.first[event], pairs.first[event + 1]):
        slots[pairs.attribute[i]] = ABSENT
