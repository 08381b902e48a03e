"""Applies a truth value: which leaves, gates and rows it decides, and which evaluations are needed no more.

A leaf matters while its gate and all gates above are undecided. What it is worth to decide a gate is the least that
it must cost: the smallest cost / chance to decide it of its leaves, divided among them. The gain of an evaluation is
the sum over its leaves of the chance to decide their gates times that worth. So a row that something cheap will
settle anyway gives its expensive predicates no gain. With the plain count of rows instead, unequal costs made it dearer
than Sub-Order at some points. What is the last of its row must be evaluated in any case, and comes first.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.kinds.operators.kernels.layout import (
    AWAITED,
    AWAITING,
    BUCKET_SHIFT,
    CONFIRMED,
    FALSE,
    FIRST_BUCKET,
    FORCED,
    LINKS,
    MOOT,
    NEGATED,
    OR,
    TOP,
    TRUE,
    UNDECIDED,
    UNKNOWN,
    DocketArrays,
)

LEAST_CHANCE = 1e-9
SAME = 1.0 + 1e-6
MOST_REPRICED = 64  # a gate of thousands would be gone through for every child


@inlined
def chance(d: DocketArrays, leaf: int) -> float:
    """That the value of a leaf decides its gate: true an OR, false an AND, any the gate that has no other child."""
    gate, asked = d.leaf[leaf].gate, d.leaf[leaf].asked
    if d.gate[gate].left == 1:
        return 1.0
    p = d.pred[asked >> 1].p
    return p if (asked & 1) ^ (d.gate[gate].kind & OR) else 1.0 - p


@inlined
def is_forced(d: DocketArrays, gate: int) -> bool:
    """Whether the only leaf that a gate has left must get its value in any case."""
    return d.gate[gate].left == 1 and d.gate[gate].parent < 0


@inlined
def price(d: DocketArrays, leaf: int, chance: float) -> float:
    """What it costs to decide a gate by a leaf, on average."""
    return d.pred[d.leaf[leaf].asked >> 1].cost / max(chance, LEAST_CHANCE)


@inlined
def _price(d: DocketArrays, leaf: int) -> float:
    """The price of a leaf while its gate had another child."""
    asked = d.leaf[leaf].asked
    p = d.pred[asked >> 1].p
    return price(d, leaf, p if (asked & 1) ^ (d.gate[d.leaf[leaf].gate].kind & OR) else 1.0 - p)


@inlined
def bucket_of(d: DocketArrays, ev: int) -> int:
    if d.ev[ev].forced:
        return FORCED
    worth = np.float64(max(d.ev[ev].gain, 0.0) / d.ev[ev].cost)
    bucket = (worth.view(np.int64) >> BUCKET_SHIFT) - FIRST_BUCKET
    return min(max(bucket, 0), FORCED - 1)  # type: ignore[return-value]


@inlined
def push(d: DocketArrays, link: int, ev: int) -> None:
    """Puts an evaluation into its bucket by a free link."""
    bucket = bucket_of(d, ev)
    d.links[link, 0], d.links[link, 1] = ev, d.bucket[bucket]
    d.bucket[bucket] = link
    d.ev[ev].bucket = bucket
    if d.counters[TOP] < bucket < FORCED:
        d.counters[TOP] = bucket


@inlined
def _drop(d: DocketArrays, leaf: int) -> None:
    """A leaf matters no more."""
    ev = d.leaf[leaf].ev
    d.leaf[leaf].ev = -1
    d.ev[ev].live -= 1
    d.ev[ev].gain -= d.leaf[leaf].gain
    if is_forced(d, d.leaf[leaf].gate):
        d.ev[ev].forced -= 1


@inlined
def _under(d: DocketArrays, gate: int, top: int) -> bool:
    while gate > top:  # parents come before their children
        gate = d.gate[gate].parent
    return gate == top


@inlined
def _close(d: DocketArrays, gate: int, value: int) -> None:
    """Decides a gate: nothing under it matters any more."""
    d.gate[gate].state = value
    if d.gate[gate].left > 0:
        for leaf in range(d.gate[gate].low, d.gate[gate].high):
            if d.leaf[leaf].ev >= 0 and _under(d, d.leaf[leaf].gate, gate):
                _drop(d, leaf)
        if d.gate[gate].nested:
            other = gate + 1
            while other < len(d.gate) and d.gate[other].parent >= 0:
                state = d.gate[other].state
                if (state == 0 or state == AWAITING) and _under(d, other, gate):
                    d.gate[other].state = MOOT
                other += 1


@inlined
def _reprice(d: DocketArrays, gate: int, leaf: int) -> None:
    """A gate has a child less, a leaf (or -1): if that was its cheapest, or one is left, what is left is worth more."""
    left = d.gate[gate].left
    if left > MOST_REPRICED:
        return
    if left > 1 and (leaf < 0 or _price(d, leaf) > d.gate[gate].cheapest * SAME):
        return
    low, high, cheapest = d.gate[gate].low, d.gate[gate].high, np.inf
    for other in range(low, high):
        if d.leaf[other].ev >= 0 and d.leaf[other].gate == gate and d.pred[d.leaf[other].asked >> 1].ev >= 0:
            cheapest = min(cheapest, price(d, other, chance(d, other)))
    d.gate[gate].cheapest = cheapest
    worth = d.gate[gate].weight * cheapest / left
    for other in range(low, high):
        ev = d.leaf[other].ev
        if ev >= 0 and d.leaf[other].gate == gate and d.pred[d.leaf[other].asked >> 1].ev >= 0:
            d.ev[ev].gain -= d.leaf[other].gain
            d.leaf[other].gain = chance(d, other) * worth
            d.ev[ev].gain += d.leaf[other].gain
            if is_forced(d, gate):
                d.ev[ev].forced += 1
            # Where it was, it is overlooked.
            if (
                d.ev[ev].bucket >= 0
                and bucket_of(d, ev) > d.ev[ev].bucket
                and d.counters[LINKS] < len(d.links)
            ):
                push(d, d.counters[LINKS], ev)
                d.counters[LINKS] += 1


@inlined
def _turned(value: int, negated: int) -> int:
    return TRUE + FALSE - value if negated and value != UNKNOWN else value


@inlined
def _rise(d: DocketArrays, gate: int, value: int, leaf: int) -> None:
    """A child of an undecided gate, a leaf or (-1) a gate, has got a value; what this decides is handed on upwards."""
    while True:
        kind = d.gate[gate].kind
        decisive = TRUE if kind & OR else FALSE
        if value == decisive:
            decided = decisive
        else:
            d.gate[gate].left -= 1
            if value == UNKNOWN:
                d.gate[gate].doubt = 1
            if d.gate[gate].left > 0:
                _reprice(d, gate, leaf)
                return
            if kind & CONFIRMED:
                d.gate[gate].state = AWAITING
                d.awaited[d.counters[AWAITED]] = gate
                d.counters[AWAITED] += 1
                return
            decided = UNKNOWN if d.gate[gate].doubt else TRUE + FALSE - decisive
        _close(d, gate, decided)
        if d.gate[gate].parent < 0:
            d.counters[UNDECIDED] -= 1
            return
        value = _turned(decided, kind & NEGATED)
        gate, leaf = d.gate[gate].parent, -1


@inlined
def apply(d: DocketArrays, leaf: int, truth: int) -> None:
    """Gives a leaf that matters the truth of its predicate."""
    _drop(d, leaf)
    _rise(d, d.leaf[leaf].gate, _turned(truth, d.leaf[leaf].asked & 1), leaf)


@inlined
def apply_everywhere(d: DocketArrays, pred: int) -> None:
    """Gives the truth of a predicate to all leaves that ask for it."""
    truth = d.pred[pred].truth
    for at in range(d.pred_first[pred], d.pred_first[pred + 1]):
        leaf = d.pred_leaf[at]
        if d.leaf[leaf].ev >= 0:
            apply(d, leaf, truth)


@compiled
def confirm(d: DocketArrays, gate: int, value: int) -> None:
    """Decides a gate that waited for it."""
    if d.gate[gate].state != AWAITING:
        return
    _close(d, gate, value)
    parent = d.gate[gate].parent
    if parent < 0:
        d.counters[UNDECIDED] -= 1
    else:
        _rise(d, parent, _turned(value, d.gate[gate].kind & NEGATED), -1)


@compiled
def dismiss(d: DocketArrays, root: int) -> None:
    """Leaves a row, whose root this is, without an answer."""
    if d.gate[root].state == 0 or d.gate[root].state == AWAITING:
        _close(d, root, MOOT)
        d.counters[UNDECIDED] -= 1
