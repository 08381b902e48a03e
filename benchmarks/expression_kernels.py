"""Compiled loops over Boolean expressions as arrays: drawing trees at random, and evaluating them one by one.

An expression is its tree in pre-order; `size` is the number of nodes of the subtree, so a child follows its elder
sibling's last node. Every expression has random numbers of its own, so that the first 100,000 of a million are
the same as of a hundred thousand.
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.arrays.compiled import compiled, inlined

AND, OR, EQUAL, UNEQUAL, IN, NOT_IN, RANGE = range(7)
ACCEPT, REJECT = -1, -2
MISSING = -1
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Drawing(NamedTuple):
    """What trees are drawn from; the arrays are cumulative shares."""

    seed: int
    depth: int
    children: np.ndarray  # of 2, 3, … children
    kinds: np.ndarray  # of EQUAL, UNEQUAL, IN, NOT_IN, RANGE
    attributes: np.ndarray
    values: int
    options: int  # an IN has 2 … this many
    width: int  # a range has 1 … this many values
    inner: float  # share of inner nodes among the children that need not be one
    conjunctions: float  # share of roots that are an AND


class Trees(NamedTuple):
    """Nodes in pre-order. A leaf's `low` is its value, a range's lower end or the place of its first option;
    `high` is a range's upper end or the place behind its last option."""

    kind: np.ndarray
    size: np.ndarray
    attribute: np.ndarray
    low: np.ndarray
    high: np.ndarray
    options: np.ndarray


@inlined
def _random(state):
    state[0] += _STEP
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return np.float64((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inlined
def _below(state, n):
    return np.int64(_random(state) * n)


@inlined
def _weighted(state, shares):
    return np.searchsorted(shares[:-1], _random(state), side="right")


@compiled
def draw(drawing, first_node, first_option, trees, fill, state, stamps, stack):
    """Draws len(first_node) - 1 expressions. Without `fill` it only counts, so that arrays can be made."""
    nodes = options = 0
    for row in range(first_node.shape[0] - 1):
        first_node[row], first_option[row] = nodes, options
        state[0] = np.uint64(drawing.seed) * _MIX_1 + np.uint64(row) * _MIX_2
        _random(state)
        # A frame: node, children to come, depth below it, operator, which of the children goes all the way down.
        depth = 1 + _below(state, drawing.depth)
        top = 0
        root = AND if _random(state) < drawing.conjunctions else OR
        children = 2 + _weighted(state, drawing.children)
        stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = nodes, children, depth, root
        stack[0, 4] = _below(state, children)
        nodes += 1
        while top >= 0:
            if stack[top, 1] == 0:
                node = stack[top, 0]
                if fill:
                    trees.kind[node] = stack[top, 3]
                    trees.size[node] = nodes - node
                    trees.attribute[node] = -1
                top -= 1
                continue
            stack[top, 1] -= 1
            below = stack[top, 2] - 1
            deeper = 0
            if below > 0:
                if stack[top, 1] == stack[top, 4]:
                    deeper = below
                elif _random(state) < drawing.inner:
                    deeper = 1 + _below(state, below)
            if deeper:
                top += 1
                children = 2 + _weighted(state, drawing.children)
                stack[top, 0], stack[top, 1], stack[top, 2] = nodes, children, deeper
                stack[top, 3] = AND + OR - stack[top - 1, 3]
                stack[top, 4] = _below(state, children)
            else:
                options = _leaf(drawing, trees, nodes, options, row, fill, state, stamps)
            nodes += 1
    first_node[-1], first_option[-1] = nodes, options
    return 0


@inlined
def _leaf(drawing, trees, node, options, row, fill, state, stamps):
    kind = EQUAL + _weighted(state, drawing.kinds)
    attribute = _weighted(state, drawing.attributes)
    for _ in range(20):  # an attribute twice in one expression is rare, not impossible
        if stamps[attribute] != row:
            break
        attribute = _weighted(state, drawing.attributes)
    stamps[attribute] = row
    low = high = 0
    if kind in (IN, NOT_IN):
        count = 2 + _below(state, drawing.options - 1)
        low = options
        high = low + count
        # Distinct and ascending: one option from each of `count` parts of the values.
        part = drawing.values // count
        for i in range(count):
            value = i * part + _below(state, part)
            if fill:
                trees.options[low + i] = value
        options = high
    elif kind == RANGE:
        width = 1 + _below(state, drawing.width)
        low = _below(state, drawing.values - width + 1)
        high = low + width - 1
        side = _below(state, 4)  # half of the ranges are open at one end, and as wide
        if side == 0:
            low, high = 0, width - 1
        elif side == 1:
            low, high = drawing.values - width, drawing.values - 1
    else:
        low = high = _below(state, drawing.values)
    if fill:
        trees.kind[node] = kind
        trees.size[node] = 1
        trees.attribute[node] = attribute
        trees.low[node], trees.high[node] = low, high
    return options


@compiled
def short_circuit(first_node, trees, first_leaf, leaves, on_true, on_false, stack):
    """The leaves of each expression in order, and after each the leaf to go on with, or ACCEPT or REJECT."""
    n = 0
    for row in range(first_node.shape[0] - 1):
        first_leaf[row] = start = n
        top = -1
        seen = 0
        for node in range(first_node[row], first_node[row + 1]):
            # Close what has ended, and see which leaf comes after this subtree.
            while top >= 0 and node >= stack[top, 0]:
                top -= 1
            yes, no = ACCEPT, REJECT
            if top >= 0:
                yes, no = stack[top, 2], stack[top, 3]
                if node + trees.size[node] < stack[top, 0]:
                    following = seen
                    for other in range(node, node + trees.size[node]):
                        following += trees.kind[other] > OR
                    if stack[top, 1] == AND:
                        yes = following
                    else:
                        no = following
            if trees.kind[node] > OR:
                leaves[n], on_true[n], on_false[n] = node, yes, no
                n += 1
                seen += 1
            else:
                top += 1
                stack[top, 0] = node + trees.size[node]
                stack[top, 1], stack[top, 2], stack[top, 3] = trees.kind[node], yes, no
        assert n - start == seen
    first_leaf[-1] = n
    return n


@inlined
def holds(trees, node, value):
    """Whether a leaf holds for its attribute's value."""
    if value == MISSING:
        return False
    kind, low, high = trees.kind[node], trees.low[node], trees.high[node]
    if kind == EQUAL:
        return value == low
    if kind == UNEQUAL:
        return value != low
    if kind == RANGE:
        return low <= value and value <= high
    found = False
    for at in range(low, high):
        if trees.options[at] == value:
            found = True
            break
    return found == (kind == IN)


@inlined
def accepts(trees, first_leaf, leaves, on_true, on_false, row, values):
    """Whether an expression holds, by its short-circuit code."""
    first = first_leaf[row]
    at = np.int64(0)
    while at >= 0:
        leaf = first + at
        node = leaves[leaf]
        at = on_true[leaf] if holds(trees, node, values[trees.attribute[node]]) else on_false[leaf]
    return at == ACCEPT


@compiled
def evaluate(rows, attribute, value, trees, first_leaf, leaves, on_true, on_false, values, out):
    """Evaluates every expression of `rows` on every event, writing (event, row); returns how many hold."""
    n = 0
    for event in range(attribute.shape[0]):
        for i in range(attribute.shape[1]):
            if attribute[event, i] >= 0:
                values[attribute[event, i]] = value[event, i]
        for i in range(rows.shape[0]):
            if accepts(trees, first_leaf, leaves, on_true, on_false, rows[i], values):
                if n < out.shape[0]:
                    out[n, 0], out[n, 1] = event, rows[i]
                n += 1
        for i in range(attribute.shape[1]):
            if attribute[event, i] >= 0:
                values[attribute[event, i]] = MISSING
    return n
