"""Compiled loops of the baselines, compiled exactly as our own.

All write pairs (publication, subscription) into `out` and return how many they found; a return value above
len(out) says that `out` has to be larger.
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.workloads import GREATER, NO_TEST, NO_VALUE
from tidings.arrays.compiled import compiled

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


class Counted(NamedTuple):
    """Scratch of the counting algorithm. Counts are zero and heads -1 between publications."""

    counts: np.ndarray  # subscription -> its edges seen
    touched: np.ndarray  # subscriptions with a count
    head: np.ndarray  # edge of the matrix -> first entry of its binding table, or -1
    following: np.ndarray  # entry -> next entry of the same table
    entry: np.ndarray  # entry -> edge of the publication
    used: np.ndarray  # edges of the matrix with a binding table
    rows: np.ndarray  # [2, row, star]: a join's input and output in turns


class Searched(NamedTuple):
    """Scratch of a search: cursor[j] is the edge that edge j of a subscription stands on."""

    counts: np.ndarray
    touched: np.ndarray
    first: np.ndarray  # label -> first edge of the publication, or -1
    following: np.ndarray  # edge -> next edge of the same label
    bound_to: np.ndarray  # slot or variable -> node, or -1
    cursor: np.ndarray
    news: np.ndarray  # [edge, side] -> what that edge has bound, or -1


@compiled
def _slot(key, mask):
    h = np.uint64(key) * _MIX
    return np.int64((h ^ (h >> _SHIFT)) & np.uint64(mask))


@compiled
def fill_pairs(pairs, slots):
    """An open-addressed table: slots[…] = the position of a pair of vertices in `pairs`."""
    mask = slots.shape[0] - 1
    for i in range(pairs.shape[0]):
        at = _slot(pairs[i], mask)
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = i


@compiled
def _holds(operator, bound, value):
    if operator == NO_TEST:
        return True
    if value == NO_VALUE:
        return False
    return value > bound if operator == GREATER else value < bound


@compiled
def _may_be(bound_to, node):
    return bound_to == -1 or bound_to == node


@compiled
def match_by_counting(publications, matrix, subscriptions, tests, stars, scratch, out):
    """G-ToPSS 4.2. For each edge of a publication, look up the pair of its ends with every choice of stars, then
    its label; count the edge for the subscriptions listed there and note its ends in the edge's binding table. Join
    the tables of subscriptions with enough counts; then check constraints."""
    subject, label, object_ = publications
    slots, pairs, pair_first, edge_label, edge_first, listed = matrix
    sub_subject, sub_object, sub_edge = subscriptions
    operator, bound, value = tests
    width = value.shape[0] + stars
    mask = slots.shape[0] - 1
    size = sub_edge.shape[1]
    counts, touched, head, following, entry, used, rows = scratch
    found = 0
    for p in range(subject.shape[0]):
        candidates, bindings, filled = 0, 0, 0
        for e in range(subject.shape[1]):
            for a in range(stars + 1):
                v = a if a < stars else subject[p, e] + stars
                for b in range(stars + 1):
                    w = b if b < stars else object_[p, e] + stars
                    if a == b and a < stars and subject[p, e] != object_[p, e]:
                        continue
                    key = np.int64(v) * width + w
                    at = _slot(key, mask)
                    while slots[at] >= 0 and pairs[slots[at]] != key:
                        at = (at + 1) & mask
                    if slots[at] < 0:
                        continue
                    low, high = pair_first[slots[at]], pair_first[slots[at] + 1]
                    while low < high:
                        middle = (low + high) // 2
                        if edge_label[middle] < label[p, e]:
                            low = middle + 1
                        else:
                            high = middle
                    if low >= pair_first[slots[at] + 1] or edge_label[low] != label[p, e]:
                        continue
                    if head[low] < 0:
                        used[filled] = low
                        filled += 1
                    following[bindings], entry[bindings] = head[low], e
                    head[low] = bindings
                    bindings += 1
                    for i in range(edge_first[low], edge_first[low + 1]):
                        s = listed[i]
                        if counts[s] == 0:
                            touched[candidates] = s
                            candidates += 1
                        counts[s] += 1
        for i in range(candidates):
            s = touched[i]
            enough = counts[s] >= size
            counts[s] = 0
            if not enough:
                continue
            for j in range(size):
                if head[sub_edge[s, j]] < 0:
                    enough = False
                    break
            if not enough:
                continue
            current, count = 0, 1
            rows[0, 0, :] = -1
            for j in range(size):
                x, y = -1 - sub_subject[s, j], -1 - sub_object[s, j]
                if x < 0 and y < 0:
                    continue
                kept = 0
                for r in range(count):
                    at = head[sub_edge[s, j]]
                    while at >= 0:
                        v, w = subject[p, entry[at]], object_[p, entry[at]]
                        fits = (x < 0 or _may_be(rows[current, r, x], v)) and (
                            y < 0 or _may_be(rows[current, r, y], w)
                        )
                        if fits:
                            for star in range(stars):
                                rows[1 - current, kept, star] = rows[current, r, star]
                            if x >= 0:
                                rows[1 - current, kept, x] = v
                            if y >= 0:
                                rows[1 - current, kept, y] = w
                            kept += 1
                        at = following[at]
                current, count = 1 - current, kept
                if count == 0:
                    break
            for r in range(count):
                bindable = operator[s] != NO_TEST
                if _holds(operator[s], bound[s], value[rows[current, r, 0]] if bindable else NO_VALUE):
                    if found < out.shape[0]:
                        out[found, 0], out[found, 1] = p, s
                    found += 1
                    break
        for i in range(filled):
            head[used[i]] = -1
    return found


@compiled
def match_as_variables(publications, by_label, subscriptions, names, tests, scratch, out):
    """As OPS does: every node of a subscription is a variable. Subscriptions whose labels all occur are embedded
    by labels alone; an embedding's names and constraints are checked when it is complete."""
    subject, label, object_ = publications
    label_first, listed, needed = by_label
    tails, sub_label, heads = subscriptions
    operator, bound, value = tests
    counts, touched, first, following, bound_to, cursor, news = scratch
    size, edges = sub_label.shape[1], subject.shape[1]
    found = 0
    for p in range(subject.shape[0]):
        first[:] = -1
        candidates = 0
        for e in range(edges):
            k = label[p, e]
            if first[k] < 0:
                for i in range(label_first[k], label_first[k + 1]):
                    s = listed[i]
                    if counts[s] == 0:
                        touched[candidates] = s
                        candidates += 1
                    counts[s] += 1
            following[e] = first[k]
            first[k] = e
        for i in range(candidates):
            s = touched[i]
            enough = counts[s] == needed[s]
            counts[s] = 0
            if not enough:
                continue
            bound_to[:] = -1
            j = 0
            cursor[0] = first[sub_label[s, 0]]
            news[0] = -1
            while j >= 0:
                e = cursor[j]
                if e < 0:
                    j -= 1
                    if j >= 0:
                        for side in range(2):
                            if news[j, side] >= 0:
                                bound_to[news[j, side]] = -1
                        cursor[j] = following[cursor[j]]
                    continue
                news[j] = -1
                x, y = tails[s, j], heads[s, j]
                fits = _may_be(bound_to[x], subject[p, e])
                if fits and bound_to[x] < 0:
                    bound_to[x] = subject[p, e]
                    news[j, 0] = x
                fits = fits and _may_be(bound_to[y], object_[p, e])
                if fits and bound_to[y] < 0:
                    bound_to[y] = object_[p, e]
                    news[j, 1] = y
                whole = False
                if fits and j == size - 1:
                    whole = True
                    for slot in range(names.shape[1]):
                        if names[s, slot] >= 0 and names[s, slot] != bound_to[slot]:
                            whole = False
                            break
                        if names[s, slot] == -1 and not _holds(operator[s], bound[s], value[bound_to[slot]]):
                            whole = False
                            break
                if whole:
                    if found < out.shape[0]:
                        out[found, 0], out[found, 1] = p, s
                    found += 1
                    break
                if fits and j < size - 1:
                    j += 1
                    cursor[j] = first[sub_label[s, j]]
                    continue
                for side in range(2):
                    if news[j, side] >= 0:
                        bound_to[news[j, side]] = -1
                cursor[j] = following[e]
    return found


@compiled
def match_one_by_one(publications, subscriptions, tests, scratch, out):
    """Each subscription alone: try every edge of the publication for each of its edges, in the order written."""
    subject, label, object_ = publications
    sub_subject, sub_label, sub_object = subscriptions
    operator, bound, value = tests
    size, edges = sub_label.shape[1], subject.shape[1]
    bound_to, cursor, news = scratch.bound_to, scratch.cursor, scratch.news
    found = 0
    for p in range(subject.shape[0]):
        for s in range(sub_label.shape[0]):
            bound_to[:] = -1
            j = 0
            cursor[0] = 0
            while j >= 0:
                e = cursor[j]
                if e == edges:
                    j -= 1
                    if j >= 0:
                        for side in range(2):
                            if news[j, side] >= 0:
                                bound_to[news[j, side]] = -1
                        cursor[j] += 1
                    continue
                news[j] = -1
                fits = label[p, e] == sub_label[s, j]
                for side in range(2):
                    if not fits:
                        break
                    want = sub_subject[s, j] if side == 0 else sub_object[s, j]
                    have = subject[p, e] if side == 0 else object_[p, e]
                    if want >= 0:
                        fits = want == have
                    elif bound_to[-1 - want] >= 0:
                        fits = bound_to[-1 - want] == have
                    else:
                        bound_to[-1 - want] = have
                        news[j, side] = -1 - want
                        fits = want != -1 or _holds(operator[s], bound[s], value[have])
                if fits and j == size - 1:
                    if found < out.shape[0]:
                        out[found, 0], out[found, 1] = p, s
                    found += 1
                    break
                if fits:
                    j += 1
                    cursor[j] = 0
                    continue
                for side in range(2):
                    if news[j, side] >= 0:
                        bound_to[news[j, side]] = -1
                cursor[j] += 1
    return found
