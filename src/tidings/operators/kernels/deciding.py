"""A truth value arrives: leaves, gates and rows that it decides, and evaluations that nobody needs any more.

A leaf matters while its gate and all gates above are undecided. The gain of an evaluation is the expected number of
rows, in parts for gates inside a row, that it settles: for every leaf that matters the chance that its value decides
its gate, which is certain when no other child is left.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.operators.kernels.layout import (
    AWAITED,
    AWAITING,
    BUCKET_SHIFT,
    BUCKETS,
    CONFIRMED,
    FALSE,
    FIRST_BUCKET,
    MOOT,
    NEGATED,
    OR,
    PLACES,
    TOP,
    TRUE,
    UNDECIDED,
    UNKNOWN,
    Docket,
)


@inlined
def bucket_of(d: Docket, ev: int) -> int:
    worth = np.float64(max(d.ev[ev].gain, 0.0) / d.ev[ev].cost)
    bucket = (worth.view(np.int64) >> BUCKET_SHIFT) - FIRST_BUCKET
    return min(max(bucket, 0), BUCKETS - 1)  # type: ignore[return-value]


@inlined
def push(d: Docket, place: int, ev: int) -> None:
    """Puts an evaluation into its bucket, at a place that is free."""
    bucket = bucket_of(d, ev)
    d.place[place, 0], d.place[place, 1] = ev, d.bucket[bucket]
    d.bucket[bucket] = place
    d.ev[ev].bucket = bucket
    if bucket > d.counters[TOP]:
        d.counters[TOP] = bucket


@inlined
def _drop(d: Docket, leaf: int) -> None:
    """A leaf matters no more."""
    ev = d.leaf[leaf].ev
    d.leaf[leaf].ev = -1
    d.ev[ev].live -= 1
    d.ev[ev].gain -= d.leaf[leaf].gain


@inlined
def _under(d: Docket, gate: int, top: int) -> bool:
    while gate > top:  # parents come before their children
        gate = d.gate[gate].parent
    return gate == top


@inlined
def _close(d: Docket, gate: int, value: int) -> None:
    """Decides a gate: nothing under it matters any more."""
    d.gate[gate].state = value
    if d.gate[gate].left > 0:
        for leaf in range(d.gate[gate].low, d.gate[gate].high):
            if d.leaf[leaf].ev >= 0 and _under(d, d.leaf[leaf].gate, gate):
                _drop(d, leaf)
        for other in range(gate + 1, d.g0[d.gate[gate].row + 1]):
            state = d.gate[other].state
            if (state == 0 or state == AWAITING) and _under(d, other, gate):
                d.gate[other].state = MOOT


@inlined
def _last(d: Docket, gate: int) -> None:
    """Only one child of a gate is left: whatever its value, it decides the gate."""
    for leaf in range(d.gate[gate].low, d.gate[gate].high):
        ev = d.leaf[leaf].ev
        if ev >= 0 and d.leaf[leaf].gate == gate:
            d.ev[ev].gain += d.gate[gate].weight - d.leaf[leaf].gain
            d.leaf[leaf].gain = d.gate[gate].weight
            if d.ev[ev].bucket >= 0:  # where it was, it is overlooked
                push(d, d.counters[PLACES], ev)
                d.counters[PLACES] += 1
            return


@inlined
def _turned(value: int, negated: int) -> int:
    return TRUE + FALSE - value if negated and value != UNKNOWN else value


@inlined
def _rise(d: Docket, gate: int, value: int) -> None:
    """A child of an undecided gate has got a value; what this decides is handed on upwards."""
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
                if d.gate[gate].left == 1:
                    _last(d, gate)
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
        gate = d.gate[gate].parent


@inlined
def apply(d: Docket, leaf: int, truth: int) -> None:
    """Gives a leaf that matters the truth of its predicate."""
    _drop(d, leaf)
    _rise(d, d.leaf[leaf].gate, _turned(truth, d.leaf[leaf].asked & 1))


@inlined
def apply_everywhere(d: Docket, pred: int) -> None:
    """Gives the truth of a predicate to all leaves that ask for it."""
    truth = d.pred[pred].truth
    for at in range(d.pred[pred].first, d.pred[pred + 1].first):
        leaf = d.pred_leaf[at]
        if d.leaf[leaf].ev >= 0:
            apply(d, leaf, truth)


@compiled
def confirm(d: Docket, gate: int, value: int) -> None:
    """Decides a gate that waited for it."""
    if d.gate[gate].state != AWAITING:
        return
    _close(d, gate, value)
    parent = d.gate[gate].parent
    if parent < 0:
        d.counters[UNDECIDED] -= 1
    else:
        _rise(d, parent, _turned(value, d.gate[gate].kind & NEGATED))
