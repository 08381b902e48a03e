"""Compiled loops over operators' workloads: what one could do who knows the event, and what nobody can do without."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled
from tidings.kinds.operators.kernels.choosing import best, finish, learn, walk
from tidings.kinds.operators.kernels.layout import FALSE, TRUE, UNDECIDED


@compiled
def certify(first, member, pred_first, pred_row, truth, cost, decided, hits, heap, needed):
    """Hindsight: all predicates of the rows that match, and for the others the false predicate that settles the most
    rows for its cost, again and again. `needed` gets 1 for each of these; comes as zeros, as do decided and hits."""
    for row in range(first.shape[0] - 1):
        matches = True
        for k in range(first[row], first[row + 1]):
            if not truth[member[k]]:
                matches = False
        for k in range(first[row], first[row + 1]):
            if matches:
                needed[member[k]] = 1
                decided[row] = 1
            elif not truth[member[k]]:
                hits[member[k]] += 1
    size = 0
    for pred in range(hits.shape[0]):
        if hits[pred] > 0:
            heap[size, 0], heap[size, 1] = pred, hits[pred] / cost[pred]
            size += 1
    for at in range(size // 2 - 1, -1, -1):
        _sink(heap, at, size)
    while size > 0:
        pred = int(heap[0, 0])
        worth = hits[pred] / cost[pred]
        if worth < heap[0, 1]:  # others have settled some of its rows
            heap[0, 1] = worth
            _sink(heap, 0, size)
            continue
        if hits[pred] == 0:
            return
        needed[pred] = 1
        size -= 1
        heap[0, 0], heap[0, 1] = heap[size, 0], heap[size, 1]
        _sink(heap, 0, size)
        for at in range(pred_first[pred], pred_first[pred + 1]):
            row = pred_row[at]
            if not decided[row]:
                decided[row] = 1
                for k in range(first[row], first[row + 1]):
                    hits[member[k]] -= 1


@compiled
def _sink(heap, at, size):
    pred, worth = heap[at, 0], heap[at, 1]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1, 1] > heap[child, 1]:
            child += 1
        if heap[child, 1] <= worth:
            break
        heap[at, 0], heap[at, 1] = heap[child, 0], heap[child, 1]
        at = child
    heap[at, 0], heap[at, 1] = pred, worth


@compiled
def bound(first, member, truth, cost, rounds, paid, load, slack, needed):
    """What nobody can do without: all predicates of the rows that match, and for the others a packing.

    Rows that do not match pay for their false predicates, no predicate is paid more than it costs: then any set of
    false predicates that settles all of these rows costs at least what they pay. Payments move towards a good packing
    for some rounds and are made a valid one at the end, so the bound holds however many rounds there are.
    """
    rows = first.shape[0] - 1
    for row in range(rows):
        falls = 0
        for k in range(first[row], first[row + 1]):
            pred = member[k]
            load[pred] += 1.0
            if not truth[pred]:
                falls += 1
        for k in range(first[row], first[row + 1]):
            if falls == 0:
                needed[member[k]] = 1
        paid[row] = 1.0 if falls else 0.0
    for row in range(rows):
        if paid[row] > 0.0:
            paid[row] = np.inf
            for k in range(first[row], first[row + 1]):
                pred = member[k]
                if not truth[pred]:
                    paid[row] = min(paid[row], cost[pred] / load[pred])
    for turn in range(rounds + 1):
        for pred in range(load.shape[0]):
            load[pred] = 0.0
        for row in range(rows):
            for k in range(first[row], first[row + 1]):
                load[member[k]] += paid[row]
        for row in range(rows):
            if paid[row] > 0.0:
                most = 0.0
                for k in range(first[row], first[row + 1]):
                    if not truth[member[k]]:
                        most = max(most, load[member[k]] / cost[member[k]])
                paid[row] /= most**0.5 if turn < rounds else max(most, 1.0)
    for pred in range(load.shape[0]):
        slack[pred] = cost[pred]
    for row in range(rows):
        for k in range(first[row], first[row + 1]):
            slack[member[k]] -= paid[row]
    total = 0.0
    for row in range(rows):
        if paid[row] > 0.0:
            more = np.inf
            for k in range(first[row], first[row + 1]):
                if not truth[member[k]]:
                    more = min(more, slack[member[k]])
            more = max(more, 0.0)
            for k in range(first[row], first[row + 1]):
                slack[member[k]] -= more
            total += paid[row] + more
    for pred in range(load.shape[0]):
        if needed[pred]:
            total += cost[pred]
    return total


@compiled
def replay_best(d, programs, learnt, now, truth, limit, learns, out):
    """Decides a docket by what is worth most when all truths are given; the number of evaluations and their cost."""
    count, cost = 0, 0.0
    while d.counters[UNDECIDED] > 0:
        chosen = best(d, limit, out)
        if chosen == 0:
            break
        for i in range(chosen):
            ev = out[i]
            count += 1
            cost += d.ev[ev].cost
            for at in range(d.ev_first[ev], d.ev_first[ev + 1]):
                d.pred[d.ev_pred[at]].truth = TRUE if truth[d.pred_id[d.ev_pred[at]]] else FALSE
            if learns:
                learn(d, programs, learnt, now, ev, -1.0)
            finish(d, ev, True)
    return count, cost


@compiled
def replay_walk(d, rows, leaves, shared, past, truth, out):
    """Decides a docket along an order when all truths are given; the number of evaluations and their cost."""
    count, cost = 0, 0.0
    while walk(d, rows, leaves, past, out):
        ev = out[0]
        count += 1
        cost += d.ev[ev].cost
        for at in range(d.ev_first[ev], d.ev_first[ev + 1]):
            d.pred[d.ev_pred[at]].truth = TRUE if truth[d.pred_id[d.ev_pred[at]]] else FALSE
        finish(d, ev, shared)
    return count, cost
