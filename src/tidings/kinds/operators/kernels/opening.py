"""Opens a docket: copies the programs of its rows, and gives predicates and evaluations small numbers."""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.kinds.operators.kernels.deciding import chance, is_forced, price, push
from tidings.kinds.operators.kernels.layout import (
    AWAITED,
    AWAITING,
    BUCKETS,
    CONFIRMED,
    COUNTERS,
    LINKS,
    UNDECIDED,
    DocketArrays,
    Learnt,
    ProgramArrays,
)

Array = np.ndarray
# A predicate of which nothing is known holds like others of its operator, and one of an operator of which nothing is
# known holds this often. The prior weighs as much as this many sights; a sight weighs half after so many events.
FIRST_GUESS, GUESS_WEIGHT, HALF_LIFE = 0.5, 3.0, 100.0


@compiled
def sizes(programs: ProgramArrays, rows: Array) -> tuple[int, int]:
    """How many gates and leaves some rows have."""
    gates = leaves = 0
    for row in rows:
        gates += programs.gate_first[row + 1] - programs.gate_first[row]
        leaves += programs.leaf_first[row + 1] - programs.leaf_first[row]
    return gates, leaves


@inlined
def selectivity(learnt: Learnt, pred: int, operator: int, now: float) -> float:
    guess = (learnt.operator_hits[operator] + FIRST_GUESS) / (learnt.operator_trials[operator] + 1.0)
    if learnt.trials[pred] == 0.0:
        return guess
    fresh = 2.0 ** ((learnt.moment[pred] - now) / HALF_LIFE)
    return (learnt.hits[pred] * fresh + guess * GUESS_WEIGHT) / (learnt.trials[pred] * fresh + GUESS_WEIGHT)


@inlined
def _cost(learnt: Learnt, ev: int, operator: int) -> float:
    return learnt.seconds[ev] if learnt.calls[ev] else learnt.operator_seconds[operator]


@compiled
def estimates(programs: ProgramArrays, learnt: Learnt, now: float, p: Array, cost: Array) -> None:
    """The selectivity and the cost of every predicate that is evaluated."""
    for pred in range(len(p)):
        ev = programs.pred_eval[pred]
        if ev >= 0:
            operator = programs.eval_operator[ev]
            p[pred] = selectivity(learnt, pred, operator, now)
            cost[pred] = _cost(learnt, ev, operator)


@compiled
def open_rows(
    programs: ProgramArrays,
    learnt: Learnt,
    now: float,
    rows: Array,
    pred_local: Array,
    ev_local: Array,
    d: DocketArrays,
) -> tuple[int, int]:
    """Fills a docket; returns its numbers of predicates and evaluations.

    `pred_local` and `ev_local` have an entry for every predicate and evaluation of the engine, all -1 before and after.
    """
    preds = leaves = 0
    for i in range(COUNTERS):
        d.counters[i] = 0
    d.counters[UNDECIDED] = len(rows)
    d.g0[0] = 0
    for i in range(len(rows)):
        row = rows[i]
        d.g0[i + 1] = d.g0[i] + programs.gate_first[row + 1] - programs.gate_first[row]
        _copy_gates(programs, row, d, d.g0[i], leaves)
        leaves, preds = _copy_leaves(programs, row, pred_local, d, d.g0[i], leaves, preds)
    evs = _number_evaluations(programs, learnt, now, pred_local, ev_local, d, preds)
    d.pred_first[preds] = leaves
    _list_predicates(ev_local, d, preds, evs)
    _rate_leaves(d, leaves, evs)
    return preds, evs


@inlined
def _copy_gates(programs: ProgramArrays, row: int, d: DocketArrays, base: int, leaf: int) -> None:
    """The gates of a row, from gate `base` on; its leaves begin at `leaf`."""
    first = programs.gate_first[row]
    count = programs.gate_first[row + 1] - first
    length = programs.leaf_first[row + 1] - programs.leaf_first[row]
    for j in range(count):
        gate = base + j
        size, parent = programs.gate_size[first + j], programs.gate_parent[first + j]
        kind = programs.gate_kind[first + j]
        d.gate[gate].state = 0
        d.gate[gate].doubt = 0
        d.gate[gate].kind = kind
        d.gate[gate].left = size
        d.gate[gate].cheapest = np.inf
        d.gate[gate].low = leaf
        d.gate[gate].high = leaf + length
        d.gate[gate].claim = 0
        d.gate[gate].nested = count > 1
        d.gate[gate].parent = base + parent if parent >= 0 else -1
        d.gate[gate].weight = (
            d.gate[base + parent].weight / programs.gate_size[first + parent] if parent >= 0 else 1.0
        )
        if size == 0 and kind & CONFIRMED:
            d.gate[gate].state = AWAITING
            d.awaited[d.counters[AWAITED]] = gate
            d.counters[AWAITED] += 1


@inlined
def _copy_leaves(
    programs: ProgramArrays, row: int, pred_local: Array, d: DocketArrays, base: int, at: int, preds: int
) -> tuple[int, int]:
    """The leaves of a row, from `at` on, and numbers for predicates that are new; (leaves, predicates) by then.
    `pred_first` counts the leaves of each."""
    for leaf in range(programs.leaf_first[row], programs.leaf_first[row + 1]):
        asked = programs.leaf_asked[leaf]
        known = pred_local[asked >> 1]
        if known < 0:
            known = pred_local[asked >> 1] = preds
            d.pred_id[preds] = asked >> 1
            d.pred_first[preds] = 0
            preds += 1
        d.pred_first[known] += 1
        d.leaf[at].asked = known << 1 | asked & 1
        d.leaf[at].gate = base + programs.leaf_gate[leaf]
        at += 1
    return at, preds


@inlined
def _number_evaluations(
    programs: ProgramArrays,
    learnt: Learnt,
    now: float,
    pred_local: Array,
    ev_local: Array,
    d: DocketArrays,
    preds: int,
) -> int:
    """What is known of each predicate, and numbers for the evaluations they need; how many these are.

    `ev_first` counts the predicates of each; `pred_first` becomes the end of each one's leaves, which `_rate_leaves`
    makes the start.
    """
    evs = total = 0
    for k in range(preds):
        total += d.pred_first[k]
        d.pred_first[k] = total
        pred = d.pred_id[k]
        pred_local[pred] = -1
        d.pred[k].truth = 0
        ev = programs.pred_eval[pred]
        if ev < 0:
            d.pred[k].ev = -1
            d.pred[k].p = d.pred[k].cost = 0.0
            continue
        learnt.wanted[pred] += 1.0
        operator = programs.eval_operator[ev]
        cost = _cost(learnt, ev, operator)
        d.pred[k].p = selectivity(learnt, pred, operator, now)
        d.pred[k].cost = cost
        known = ev_local[ev]
        if known < 0:
            known = ev_local[ev] = evs
            d.ev_id[evs] = ev
            d.ev_first[evs] = 0
            _clear(d, evs, cost)
            evs += 1
        d.pred[k].ev = known
        d.ev_first[known] += 1
    return evs


@inlined
def _clear(d: DocketArrays, ev: int, cost: float) -> None:
    d.ev[ev].live = 0
    d.ev[ev].state = 0
    d.ev[ev].gain = 0.0
    d.ev[ev].bucket = -1
    d.ev[ev].forced = 0
    d.ev[ev].cost = cost


@inlined
def _list_predicates(ev_local: Array, d: DocketArrays, preds: int, evs: int) -> None:
    """The predicates of each evaluation."""
    total = 0
    for e in range(evs):
        ev_local[d.ev_id[e]] = -1
        total += d.ev_first[e]
        d.ev_first[e] = total
    d.ev_first[evs] = total
    _clear(d, evs, 1.0)  # the evaluation of whatever needs none
    for k in range(preds - 1, -1, -1):
        e = d.pred[k].ev
        if e >= 0:
            d.ev_first[e] -= 1
            d.ev_pred[d.ev_first[e]] = k


@inlined
def _rate_leaves(d: DocketArrays, leaves: int, evs: int) -> None:
    """The leaves of each predicate, and what every leaf and its evaluation gain."""
    for leaf in range(leaves - 1, -1, -1):
        gate, k = d.leaf[leaf].gate, d.leaf[leaf].asked >> 1
        d.pred_first[k] -= 1
        d.pred_leaf[d.pred_first[k]] = leaf
        d.leaf[leaf].gain = 0.0
        if d.pred[k].ev >= 0:
            likely = chance(d, leaf)
            d.leaf[leaf].gain = likely
            d.gate[gate].cheapest = min(d.gate[gate].cheapest, price(d, leaf, likely))
        d.leaf[leaf].ev = d.pred[k].ev if d.pred[k].ev >= 0 else evs
    for leaf in range(leaves):
        gate, e = d.leaf[leaf].gate, d.leaf[leaf].ev
        d.ev[e].live += 1
        if e < evs:
            left = d.gate[gate].left
            d.leaf[leaf].gain *= d.gate[gate].weight * d.gate[gate].cheapest / left
            d.ev[e].gain += d.leaf[leaf].gain
            if is_forced(d, gate):
                d.ev[e].forced += 1


@compiled
def line_up(d: DocketArrays, evs: int) -> None:
    """Puts all evaluations into their buckets."""
    for i in range(BUCKETS):
        d.bucket[i] = -1
    for ev in range(evs - 1, -1, -1):
        push(d, ev, ev)
    d.counters[LINKS] = evs
