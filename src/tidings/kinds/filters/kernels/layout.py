"""How filters, events and scratch lie in arrays: what every compiled loop of filters takes.

An expression is first a *tree* (what a subscription says) and then *code* (what is run):

    tree   prefix order, negation pushed to the leaves:
             AND | OR, words of this node and all below, number of children
             leaf | NEGATED, attribute, first slot, number of slots    a slot is the number of a constant
    code   row | REPEATS, then the leaves in the order in which they are tried:
             attribute, test | NEGATED_BIT | SENSE_BIT | LAST_BIT | jump << JUMP_SHIFT, operands
           A leaf whose outcome is its sense jumps over `jump` words, or ends with that outcome when jump is 0;
           otherwise the next leaf follows. The outcome of the last leaf is that of the expression.

Code words are 16 bits wide, or 32 for the few expressions that need it; an address in code is `offset * 2 + wide`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

AND, OR = 1, 2
# Leaves of a tree. Comparisons stand in the order of values.OPERATORS.
EQ, NE, LT, LE, GT, GE, BETWEEN, IN, NOT_IN, STARTS, EXISTS, NEVER = range(3, 15)
NEGATED = 64
INNER_SIZE, LEAF_SIZE = 3, 4

# Tests of code, and their operands after the attribute and the control word:
#   PRESENT, FALSE: none   POINT: position   RANGE: low, high   ONE_OF: n, positions   NONE_OF: kinds, n, positions
# Small ones have positions under 256, two in a word of 16 bits:
#   SMALL_RANGE: low | high << 8   SMALL_ONE_OF: n | position << 8, position | position << 8, …, the last perhaps twice
PRESENT, FALSE, POINT, RANGE, ONE_OF, NONE_OF, SMALL_RANGE, SMALL_ONE_OF = range(8)
SMALL_LIMIT = 256
TEST_MASK, NEGATED_BIT, SENSE_BIT, LAST_BIT, JUMP_SHIFT = 7, 8, 16, 32, 6
NARROW_LIMIT, NARROW_JUMP = 1 << 16, 1 << 10

# What an attribute's slot holds for an event: its only position, or that it has none, or MANY - 2 i - ascends, its values being
# pairs from number i on; `ascends` is 1 if their positions do, so that one of them is found by halving, else 0.
ABSENT, MANY = -1, -2
AGAIN = 1 << 30  # added to a pair's position: another view of the value before
REPEATS = 1 << 31  # added to a row's number in its code: one event may lead to it twice
COVER = 4  # a range is filed under at most so many nodes
CHECK_BITS = 8  # of a position in a check
NO_CHECK = 1 << 8

# Kinds of positions on a scale, in their order; nothing compares with the last.
NUMBERS, INSTANTS, TRUTHS, TEXTS, OTHERS = range(5)


class FilterRows(NamedTuple):
    """Expressions as trees: row r has the tree trees[tree_first[shape[r]]:] and the slots slots[slot_first[r]:]."""

    trees: np.ndarray
    tree_first: np.ndarray
    shape: np.ndarray
    slot_first: np.ndarray
    slots: np.ndarray


class ExpressionCode(NamedTuple):
    """Expressions, one after the other; at[r] is the address of row r."""

    narrow: np.ndarray
    wide: np.ndarray
    at: np.ndarray


class Access(NamedTuple):
    """Where rows are filed: under nodes of a binary tree over the positions of each attribute.

    Attribute a has the nodes base[a] + 1 (all positions) to base[a] + 2 ** (height[a] + 1) - 1; position p is node
    2 ** height[a] + p, its ancestors are the halves. Node n has the entries first[n] to first[n + 1], in the order of
    rows; node 0 has those that every event has to try. levels[a] has a bit for every level, 0 for positions, that has
    entries at all.

        entries[3 i]   address in code | check | check

    A check is something more that must hold where the entry leads to a match: attribute << 16 | low << 8 | high, the
    position shifted to the right by shift[a] lying from low to high. One whose low lies above its high always holds.
    """

    base: np.ndarray
    height: np.ndarray
    levels: np.ndarray
    shift: np.ndarray
    first: np.ndarray
    entries: np.ndarray


class Scales(NamedTuple):
    """Positions of values: of each attribute the constants it is compared with, in order.

    Constant i of a kind has position (start of the kind) + 2 i + 1, a value between two the even one between; truth
    values have two positions. ends[a] are where the kinds of attribute a end. Numbers are mantissa * 10 ** exponent;
    texts are numbers of the texts in blob, which are in order; `slots` finds them by attribute and bytes.
    """

    ends: np.ndarray
    number_first: np.ndarray
    mantissa: np.ndarray
    exponent: np.ndarray
    approximation: np.ndarray
    instant_first: np.ndarray
    instants: np.ndarray
    text_first: np.ndarray
    texts: np.ndarray
    ordered: np.ndarray  # whether any expression asks for the order of an attribute's texts
    blob: np.ndarray
    start: np.ndarray
    slots: np.ndarray


class Index(NamedTuple):
    code: ExpressionCode
    access: Access
    ends: np.ndarray  # of Scales


class AttributePairs(NamedTuple):
    """A batch of events: event e has the pairs first[e] to first[e + 1]; those of one attribute stand together."""

    first: np.ndarray
    attribute: np.ndarray
    position: np.ndarray


class Memo(NamedTuple):
    """Values of up to 16 bytes that were met before, and their one or two positions; -1 for no second.

    `about` is attribute << 8 | kind << 5 | size of the value, whose bytes are in `word` and `other`; 0 where none is.
    """

    about: np.ndarray
    word: np.ndarray
    other: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @classmethod
    def of(cls, size: int) -> Memo:
        kinds = (np.int64, np.uint64, np.uint64, np.int32, np.int32)
        return cls(*(np.zeros(size, dtype=kind) for kind in kinds))


class Lists(NamedTuple):
    """The postings that an event leads to: those from low to high, of which the first is of `row`."""

    low: np.ndarray
    high: np.ndarray
    row: np.ndarray


class Space(NamedTuple):
    """Scratch of the loops, clean between two calls."""

    slots: np.ndarray  # by attribute, ABSENT
    coarse: np.ndarray  # by attribute, positions as checks know them, ABSENT; 0 behind the last
    seen: np.ndarray  # a bit for each row, 0
    marked: np.ndarray  # rows whose bit is set
    held: np.ndarray  # candidates
    low: np.ndarray  # lists of entries that an event leads to
    high: np.ndarray
