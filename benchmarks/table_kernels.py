"""Compiled loops that write expressions as arrays into the rows of a table of filters, without a query tree each."""

# mypy: ignore-errors
from __future__ import annotations

from benchmarks.expression_kernels import EQUAL, IN, NOT_IN, OR, RANGE, UNEQUAL
from tidings.arrays.compiled import compiled
from tidings.kinds.filters.kernels import layout

_AND, _OR, _INNER, _LEAF = layout.AND, layout.OR, layout.INNER_SIZE, layout.LEAF_SIZE
_EQ, _NE, _LE, _GE = layout.EQ, layout.NE, layout.LE, layout.GE
_BETWEEN, _IN, _NOT_IN = layout.BETWEEN, layout.IN, layout.NOT_IN


@compiled
def measure(first_node, trees, values, words, slots):
    """How many words and slots each row has."""
    for row in range(first_node.shape[0] - 1):
        length = count = 0
        for node in range(first_node[row], first_node[row + 1]):
            if trees.kind[node] <= OR:
                length += _INNER
            else:
                length += _LEAF
                count += _width(trees, node, values)
        words[row], slots[row] = length, count
    return 0


@compiled
def _width(trees, node, values):
    kind = trees.kind[node]
    if kind in (IN, NOT_IN):
        return trees.high[node] - trees.low[node]
    if kind == RANGE and trees.low[node] > 0 and trees.high[node] < values - 1:
        return 2
    return 1


@compiled
def write(first_node, trees, values, constants, words, slots):
    """Writes trees and slots; constants[v] is the number of the constant v. A range that is open at an end has one."""
    at = slot = 0
    for row in range(first_node.shape[0] - 1):
        begin = slot
        for node in range(first_node[row], first_node[row + 1]):
            kind, low, high = trees.kind[node], trees.low[node], trees.high[node]
            if kind <= OR:
                length = children = 0
                last = node + trees.size[node]
                for inside in range(node, last):
                    length += _INNER if trees.kind[inside] <= OR else _LEAF
                child = node + 1
                while child < last:
                    children += 1
                    child += trees.size[child]
                words[at], words[at + 1], words[at + 2] = _OR if kind == OR else _AND, length, children
                at += _INNER
                continue
            width = _width(trees, node, values)
            op = _BETWEEN
            if kind == EQUAL:
                op = _EQ
            elif kind == UNEQUAL:
                op = _NE
            elif kind == IN:
                op = _IN
            elif kind == NOT_IN:
                op = _NOT_IN
            elif low == 0:
                op = _LE
            elif high == values - 1:
                op = _GE
            words[at], words[at + 1], words[at + 2], words[at + 3] = (
                op,
                trees.attribute[node],
                slot - begin,
                width,
            )
            at += _LEAF
            if kind in (IN, NOT_IN):
                for option in range(low, high):
                    slots[slot] = constants[trees.options[option]]
                    slot += 1
            elif op == _BETWEEN:
                slots[slot], slots[slot + 1] = constants[low], constants[high]
                slot += 2
            else:
                slots[slot] = constants[high if op == _LE else low]
                slot += 1
    return at
