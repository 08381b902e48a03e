"""Chooses the next evaluations of a docket: by what they decide for their cost, or along an order of rows."""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.kinds.operators.kernels.deciding import apply, apply_everywhere, bucket_of, push
from tidings.kinds.operators.kernels.layout import (
    AT_LEAF,
    AT_ROW,
    CHOSEN,
    CLAIMS,
    DONE,
    FINENESS,
    FORCED,
    HAS_BEGUN,
    TOP,
    TRUE,
    UNKNOWN,
    DocketArrays,
    Learnt,
    ProgramArrays,
)
from tidings.kinds.operators.kernels.opening import HALF_LIFE

Array = np.ndarray
# What has to wait for another evaluation of this round is waited for by all that are worth less than half of it.
SLACK = FINENESS
COST_WEIGHT = 0.05
OPERATOR_MEMORY = 10_000.0


@inlined
def _root(d: DocketArrays, leaf: int) -> int:
    gate = d.leaf[leaf].gate
    while d.gate[gate].parent >= 0:
        gate = d.gate[gate].parent
    return gate


@inlined
def _claims(d: DocketArrays, ev: int, since: int) -> bool:
    """Claims the rows that need an evaluation for it; False if another has claimed one of them `since` then.

    What was claimed by then stays so: to look first and claim then would go twice through memory.
    """
    d.counters[CLAIMS] += 1
    own = d.counters[CLAIMS]
    for at in range(d.ev_first[ev], d.ev_first[ev + 1]):
        pred = d.ev_pred[at]
        for at_leaf in range(d.pred_first[pred], d.pred_first[pred + 1]):
            leaf = d.pred_leaf[at_leaf]
            if d.leaf[leaf].ev >= 0:
                root = _root(d, leaf)
                if since < d.gate[root].claim < own:
                    return False
                d.gate[root].claim = own
    return True


@inlined
def best(d: DocketArrays, limit: int, out: Array) -> int:
    """Up to `limit` evaluations with the most gain for their cost, no two for the same row."""
    count = aside = 0
    least = 0
    since = d.counters[CLAIMS]
    while count < limit and (d.counters[TOP] >= least or d.bucket[FORCED] >= 0):
        top = d.counters[TOP] if d.bucket[FORCED] < 0 else FORCED
        link = d.bucket[top]
        if link < 0:
            d.counters[TOP] -= 1
            continue
        ev = d.links[link, 0]
        d.bucket[top] = d.links[link, 1]
        if d.ev[ev].live <= 0 or d.ev[ev].bucket != top:
            continue
        bucket = bucket_of(d, ev)
        if (
            bucket < top
        ):  # a gain that falls stays in its bucket until here; one that rises is pushed again at once
            push(d, link, ev)
            continue
        if limit > 1 and not _claims(d, ev, since) and bucket < FORCED:
            least = max(least, bucket - SLACK)
            d.aside[aside] = link
            aside += 1
            continue
        d.ev[ev].state = CHOSEN
        d.ev[ev].bucket = -1
        out[count] = ev
        count += 1
    for i in range(aside):
        push(d, d.aside[i], d.links[d.aside[i], 0])
    return count


@compiled
def choose_best(d: DocketArrays, limit: int, out: Array) -> int:
    return best(d, limit, out)


@inlined
def walk(d: DocketArrays, rows: Array, leaves: Array, past: bool, out: Array) -> int:
    """The next evaluation along an order of rows, and of leaves inside a row; 0 if there is none.

    Past: a row that has begun goes on to its end, when it is decided too, with what another row still needs (Sub-Order,
    Algorithm 1).
    """
    while d.counters[AT_ROW] < len(rows):
        row = rows[d.counters[AT_ROW]]
        if (past and d.counters[HAS_BEGUN]) or d.gate[d.g0[row]].state == 0:
            first, end = d.gate[d.g0[row]].low, d.gate[d.g0[row]].high
            while first + d.counters[AT_LEAF] < end:
                leaf = leaves[first + d.counters[AT_LEAF]]
                pred = d.leaf[leaf].asked >> 1
                ev = d.pred[pred].ev
                wanted = d.leaf[leaf].ev >= 0 or (past and ev >= 0 and d.ev[ev].live > 0)
                if wanted and ev >= 0 and d.ev[ev].state == 0:
                    d.ev[ev].state = CHOSEN
                    d.counters[HAS_BEGUN] = 1
                    out[0] = ev
                    return 1  # the next call comes back to this leaf, which may need the answer
                if d.leaf[leaf].ev >= 0 and d.pred[pred].truth:
                    apply(d, leaf, d.pred[pred].truth)
                d.counters[AT_LEAF] += 1
        d.counters[AT_ROW] += 1
        d.counters[AT_LEAF] = 0
        d.counters[HAS_BEGUN] = 0
    return 0


@compiled
def choose_next(d: DocketArrays, rows: Array, leaves: Array, past: bool, out: Array) -> int:
    return walk(d, rows, leaves, past, out)


@inlined
def finish(d: DocketArrays, ev: int, shared: bool) -> None:
    d.ev[ev].state = DONE
    if shared:
        for at in range(d.ev_first[ev], d.ev_first[ev + 1]):
            if d.pred[d.ev_pred[at]].truth:
                apply_everywhere(d, d.ev_pred[at])


@inlined
def learn(
    d: DocketArrays, programs: ProgramArrays, learnt: Learnt, now: float, ev: int, seconds: float
) -> None:
    number = d.ev_id[ev]
    operator = programs.eval_operator[number]
    if seconds >= 0.0:
        learnt.calls[number] += 1.0
        weight = max(1.0 / learnt.calls[number], COST_WEIGHT)
        learnt.seconds[number] += weight * (seconds - learnt.seconds[number])
        learnt.operator_seconds[operator] += COST_WEIGHT * (seconds - learnt.operator_seconds[operator])
    for at in range(d.ev_first[ev], d.ev_first[ev + 1]):
        pred = d.ev_pred[at]
        truth = d.pred[pred].truth
        if truth == UNKNOWN:
            learnt.failures[number] += 1.0
            return
        if truth == 0:
            continue
        known = d.pred_id[pred]
        learnt.told[known] += 1.0
        fresh = 2.0 ** ((learnt.moment[known] - now) / HALF_LIFE)
        hit = 1.0 if truth == TRUE else 0.0
        learnt.held[known] += hit
        learnt.hits[known] = learnt.hits[known] * fresh + hit
        learnt.trials[known] = learnt.trials[known] * fresh + 1.0
        learnt.moment[known] = now
        # An operator has many predicates: its memory is of as many sights, not of as many events.
        learnt.operator_hits[operator] += hit
        learnt.operator_trials[operator] += 1.0
        if learnt.operator_trials[operator] > OPERATOR_MEMORY:
            learnt.operator_hits[operator] *= 0.5
            learnt.operator_trials[operator] *= 0.5


@compiled
def settle(
    d: DocketArrays,
    programs: ProgramArrays,
    learnt: Learnt,
    now: float,
    evs: Array,
    values: Array,
    seconds: Array,
    shared: bool,
) -> None:
    """Takes in evaluations: `values` are truths for all their predicates, or 0 where `pred_truth` has one for each."""
    for i in range(len(evs)):
        ev = evs[i]
        if values[i]:
            for at in range(d.ev_first[ev], d.ev_first[ev + 1]):
                d.pred[d.ev_pred[at]].truth = values[i]
        learn(d, programs, learnt, now, ev, seconds[i])
        finish(d, ev, shared)


@compiled
def know(d: DocketArrays, preds: Array) -> None:
    """Takes in predicates that needed no evaluation; their truths are in `pred_truth`."""
    for pred in preds:
        apply_everywhere(d, pred)


@compiled
def arrange(d: DocketArrays, rows: int, key: Array, leaves: Array) -> None:
    """The leaves of each row by a key of their predicates, smallest first, equal ones as they are."""
    for row in range(rows):
        first = d.gate[d.g0[row]].low
        for leaf in range(first, d.gate[d.g0[row]].high):
            at = leaf
            pred = d.leaf[leaf].asked >> 1
            while at > first:
                other = d.leaf[leaves[at - 1]].asked >> 1
                if key[other] <= key[pred]:
                    break
                leaves[at] = leaves[at - 1]
                at -= 1
            leaves[at] = leaf
