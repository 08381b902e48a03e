"""Compiled loops of the interval algorithm over posting lists (Whang et al. 2009, Fontoura et al. 2010).

Every leaf of an expression gets an interval of the expression's line: the children of an AND lie one behind the other,
those of an OR all have the whole. The expression holds if leaves that hold lead from the line's beginning to its end.
Where two children of an AND meet is a point of its own, the number of the leaf behind it, so that ways through
different branches of an OR never mix. A conjunction is the case of k leaves one behind the other: counting to k.
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.expression_kernels import AND, IN, NOT_IN, OR, RANGE, UNEQUAL, accepts
from tidings.arrays.compiled import compiled, inlined

_ONE = np.uint64(1)
LEAVES = 63  # an expression with more is evaluated when one of its leaves holds
_TOUCHED = np.uint64(1 << LEAVES)  # stays in a mask whose leaves are all cancelled
_CHILDREN = 5


class Postings(NamedTuple):
    """The leaves that hold for an attribute's value, or are cancelled by it, and those that hold whenever the attribute
    is there: lists `first[key] … first[key + 1]` of (expression, leaf)."""

    first: np.ndarray
    expression: np.ndarray
    leaf: np.ndarray


class Lines(NamedTuple):
    """Of each leaf its interval, of each expression the fewest leaves that can make it hold."""

    first_leaf: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    fewest: np.ndarray


@compiled
def draw_lines(first_node, trees, lines, stack):
    """Fills `begin`, `end` and `fewest`."""
    for row in range(first_node.shape[0] - 1):
        leaf = lines.first_leaf[row]
        length = lines.first_leaf[row + 1] - leaf
        top, seen = -1, 0
        lines.fewest[row] = _fewest(first_node[row], first_node[row + 1], trees, stack[:, _CHILDREN:])
        for node in range(first_node[row], first_node[row + 1]):
            while top >= 0 and node >= stack[top, 0]:
                top -= 1
            inner = trees.kind[node] <= OR
            begin, end = 0, length - 1
            if top >= 0:
                begin, end = stack[top, 2], stack[top, 3]
                if stack[top, 1] == AND:
                    if stack[top, 4]:
                        begin = seen
                    if node + trees.size[node] < stack[top, 0]:
                        end = seen - 1
                        for other in range(node, node + trees.size[node]):
                            end += trees.kind[other] > OR
                stack[top, 4] = 1
            if inner:
                top += 1
                stack[top, 0], stack[top, 1] = node + trees.size[node], trees.kind[node]
                stack[top, 2], stack[top, 3], stack[top, 4] = begin, end, 0
            else:
                lines.begin[leaf + seen], lines.end[leaf + seen] = begin, end
                seen += 1
    return 0


@inlined
def _fewest(first, last, trees, stack):
    """The fewest leaves that make the tree hold: of an AND the sum, of an OR the least."""
    top = 0
    for back in range(last - first):
        node = last - 1 - back
        fewest = 1
        if trees.kind[node] <= OR:
            inside, fewest = 1, 0
            while inside < trees.size[node]:
                top -= 1
                child = stack[top, 0]
                if trees.kind[node] == AND:
                    fewest += child
                elif fewest == 0 or child < fewest:
                    fewest = child
                inside += stack[top, 1]
        stack[top, 0], stack[top, 1] = fewest, trees.size[node]
        top += 1
    return stack[0, 0]


@compiled
def post(leaves, first_leaf, trees, values, postings, cancelled, present, fill):
    """Counts the lists, or fills them: then `first` holds the place of each list's next entry."""
    for row in range(first_leaf.shape[0] - 1):
        for leaf in range(first_leaf[row], first_leaf[row + 1]):
            node = leaves[leaf]
            kind, low, high = trees.kind[node], trees.low[node], trees.high[node]
            base = trees.attribute[node] * values
            number = min(leaf - first_leaf[row], LEAVES)
            if kind in (UNEQUAL, NOT_IN):
                _enter(present, trees.attribute[node], row, number, fill)
            if kind in (IN, NOT_IN):
                for at in range(low, high):
                    lists = postings if kind == IN else cancelled
                    _enter(lists, base + trees.options[at], row, number, fill)
            elif kind == RANGE:
                for value in range(low, high + 1):
                    _enter(postings, base + value, row, number, fill)
            else:
                lists = cancelled if kind == UNEQUAL else postings
                _enter(lists, base + low, row, number, fill)
    return 0


@inlined
def _enter(lists, key, row, leaf, fill):
    at = lists.first[key]
    if fill:
        lists.expression[at], lists.leaf[at] = row, leaf
    lists.first[key] = at + 1


@inlined
def _raise(lists, key, masks, touched, count):
    for at in range(lists.first[key], lists.first[key + 1]):
        row = lists.expression[at]
        if masks[row] == 0:
            touched[count] = row
            count += 1
        masks[row] |= _TOUCHED | _ONE << np.uint64(lists.leaf[at])
    return count


@inlined
def _leads_through(lines, row, mask):
    """Whether the leaves of `mask` lead from the beginning of the line to its end; leaves are in order."""
    first = lines.first_leaf[row]
    reached = _ONE
    leaf = np.int64(0)
    length = lines.first_leaf[row + 1] - first
    while mask:
        if mask & _ONE and (reached >> np.uint64(lines.begin[first + leaf])) & _ONE:
            reached |= _ONE << np.uint64(lines.end[first + leaf] + 1)
        mask >>= _ONE
        leaf += 1
    return (reached >> np.uint64(length)) & _ONE


@inlined
def _ones(mask):
    count = 0
    while mask:
        mask &= mask - _ONE
        count += 1
    return count


@compiled
def match(
    attribute, value, cardinality, postings, cancelled, present, lines, code, masks, touched, values, out
):
    """All pairs (event, expression), as far as `out` goes; returns how many there are. Masks are 0 between events."""
    n = 0
    for event in range(attribute.shape[0]):
        count = 0
        for i in range(attribute.shape[1]):
            if attribute[event, i] < 0:
                continue
            values[attribute[event, i]] = value[event, i]
            key = attribute[event, i] * cardinality + value[event, i]
            # What stands under `present` holds unless this value cancels it.
            count = _raise(present, attribute[event, i], masks, touched, count)
            for at in range(cancelled.first[key], cancelled.first[key + 1]):
                leaf = cancelled.leaf[at]
                if leaf < LEAVES:
                    masks[cancelled.expression[at]] &= ~(_ONE << np.uint64(leaf))
            count = _raise(postings, key, masks, touched, count)
        for i in range(count):
            row = touched[i]
            mask = masks[row] & ~_TOUCHED
            masks[row] = 0
            if lines.first_leaf[row + 1] - lines.first_leaf[row] > LEAVES:
                holds = accepts(
                    code.trees, lines.first_leaf, code.leaf, code.on_true, code.on_false, row, values
                )
            else:
                holds = _ones(mask) >= lines.fewest[row] and _leads_through(lines, row, mask)
            if holds:
                if n < out.shape[0]:
                    out[n, 0], out[n, 1] = event, row
                n += 1
        for i in range(attribute.shape[1]):
            if attribute[event, i] >= 0:
                values[attribute[event, i]] = -1
    return n
