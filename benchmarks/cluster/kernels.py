"""Compiled loops of RSS cluster: `match` (4.5) over a subscription matrix, and `containmentChecking` (4.2)."""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.cluster.patterns import EQUAL, FREE, GREATER, LESS, NO_TEST, UNEQUAL
from benchmarks.workloads import NO_VALUE
from tidings.arrays.compiled import compiled

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
UNBOUND = -99


class Matrix(NamedTuple):
    """The two-level table, label then pair of vertices (here one key), with the lists of each edge."""

    slots: np.ndarray  # open-addressed: the number of an edge, or -1
    key: np.ndarray  # edge -> (label x width + subject) x width + object; vertex 0 is the star
    plain_first: np.ndarray  # edge -> its subscriptions without a test of a vertex of it
    plain: np.ndarray
    table: np.ndarray  # edge -> its constraint table, or -1
    list_first: np.ndarray  # (table, end of the edge, operator) -> its list, ordered by bound
    list_bound: np.ndarray
    listed: np.ndarray


class Counted(NamedTuple):
    """Scratch of a match. Counts are zero and heads -1 between publications."""

    counts: np.ndarray  # subscription -> its edges seen
    touched: np.ndarray
    head: np.ndarray  # edge of the matrix -> first entry of its binding table, or -1
    following: np.ndarray
    entry: np.ndarray  # entry -> edge of the publication
    used: np.ndarray
    bound_to: np.ndarray  # variable -> node
    cursor: np.ndarray  # [depth] -> entry of the binding table that the join stands on
    news: np.ndarray  # [depth, end] -> the variable that was bound there, or -1
    joined: np.ndarray  # [depth] -> edge of the subscription


class Lists(NamedTuple):
    """The index of the server by labels: label l has owner[start[l] : start[l] + size[l]], and room for more."""

    start: np.ndarray
    size: np.ndarray
    room: np.ndarray
    owner: np.ndarray
    used: np.ndarray  # [0]: how much of `owner`


@compiled
def _slot(key, mask):
    h = np.uint64(key) * _MIX
    return np.int64((h ^ (h >> _SHIFT)) & np.uint64(mask))


@compiled
def fill_slots(keys, slots):
    mask = slots.shape[0] - 1
    for i in range(keys.shape[0]):
        at = _slot(keys[i], mask)
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = i


@compiled
def _find(key, keys, slots):
    mask = slots.shape[0] - 1
    at = _slot(key, mask)
    while slots[at] >= 0 and keys[slots[at]] != key:
        at = (at + 1) & mask
    return slots[at]


@compiled
def holds(operator, bound, value):
    if operator == NO_TEST:
        return True
    if value == NO_VALUE:
        return False
    if operator == GREATER:
        return value > bound
    if operator == LESS:
        return value < bound
    return (value == bound) == (operator == EQUAL)


@compiled
def _count(s, counts, touched, candidates):
    if counts[s] == 0:
        touched[candidates] = s
        candidates += 1
    counts[s] += 1
    return candidates


@compiled
def _count_satisfied(matrix, first_list, value, counts, touched, candidates):
    """The subscriptions of four lists that a value satisfies; each is left at the first that it does not."""
    for operator in range(4):
        low, high = matrix.list_first[first_list + operator], matrix.list_first[first_list + operator + 1]
        if operator + 1 == LESS:
            i = high - 1
            while i >= low and matrix.list_bound[i] > value:
                candidates = _count(matrix.listed[i], counts, touched, candidates)
                i -= 1
            continue
        if operator + 1 == EQUAL:
            end = high
            while low < end:  # the first that is not smaller
                middle = (low + end) // 2
                if matrix.list_bound[middle] < value:
                    low = middle + 1
                else:
                    end = middle
        for i in range(low, high):
            if operator + 1 != UNEQUAL and not holds(operator + 1, matrix.list_bound[i], value):
                break
            if operator + 1 != UNEQUAL or matrix.list_bound[i] != value:
                candidates = _count(matrix.listed[i], counts, touched, candidates)
    return candidates


@compiled
def _may_join(variable, node, bound_to):
    return variable < 0 or bound_to[variable] == UNBOUND or bound_to[variable] == node


@compiled
def _join(s, p, publications, patterns, sub_edge, value, scratch):
    """Whether the binding tables of a subscription's edges have a common row that satisfies its test. Rows are made
    depth first, so that the first one ends it."""
    bound_to, cursor, news, joined, head = (
        scratch.bound_to,
        scratch.cursor,
        scratch.news,
        scratch.joined,
        scratch.head,
    )
    depth = 0
    for j in range(patterns.first[s], patterns.first[s + 1]):
        if head[sub_edge[j]] < 0:
            return False
        x, y = patterns.subject[j], patterns.object[j]
        if (x < 0 and x != FREE) or (y < 0 and y != FREE):
            joined[depth] = j
            depth += 1
    last = depth - 1
    if last < 0:
        return True
    bound_to[:] = UNBOUND
    depth = 0
    cursor[0] = head[sub_edge[joined[0]]]
    while depth >= 0:
        at = cursor[depth]
        if at < 0:
            depth -= 1
            if depth >= 0:
                for end in range(2):
                    if news[depth, end] >= 0:
                        bound_to[news[depth, end]] = UNBOUND
                cursor[depth] = scratch.following[cursor[depth]]
            continue
        news[depth] = -1
        j, e = joined[depth], scratch.entry[at]
        fits = True
        for end in range(2):
            if not fits:
                break
            written = patterns.subject[j] if end == 0 else patterns.object[j]
            node = publications.subject[p, e] if end == 0 else publications.object[p, e]
            variable = -1 if written >= 0 or written == FREE else -1 - written
            fits = _may_join(variable, node, bound_to)
            if fits and variable >= 0 and bound_to[variable] == UNBOUND:
                bound_to[variable] = node
                news[depth, end] = variable
                # A table is shared by subscriptions with other tests, so its rows are tested again.
                fits = variable != 0 or holds(patterns.operator[s], patterns.bound[s], value[node])
        if fits and depth == last:
            return True
        if fits:
            depth += 1
            cursor[depth] = head[sub_edge[joined[depth]]]
            continue
        for end in range(2):
            if news[depth, end] >= 0:
                bound_to[news[depth, end]] = UNBOUND
        cursor[depth] = scratch.following[at]
    return False


@compiled
def match(publications, matrix, patterns, sub_edge, value, scratch, out):
    """Algorithm `match`: for each edge of a publication, the edges of the matrix with that label whose vertices are its own or
    stars; of their subscriptions, those whose tests the vertices satisfy are counted; joins of those with enough counts."""
    width = value.shape[0] + 1
    counts, touched, head = scratch.counts, scratch.touched, scratch.head
    found = 0
    for p in range(publications.subject.shape[0]):
        candidates, bindings, filled = 0, 0, 0
        for e in range(publications.subject.shape[1]):
            v, w = publications.subject[p, e], publications.object[p, e]
            for choice in range(4):
                x, y = v + 1 if choice & 1 else 0, w + 1 if choice & 2 else 0
                key = (np.int64(publications.label[p, e]) * width + x) * width + y
                edge = _find(key, matrix.key, matrix.slots)
                if edge < 0:
                    continue
                if head[edge] < 0:
                    scratch.used[filled] = edge
                    filled += 1
                scratch.following[bindings], scratch.entry[bindings] = head[edge], e
                head[edge] = bindings
                bindings += 1
                for i in range(matrix.plain_first[edge], matrix.plain_first[edge + 1]):
                    candidates = _count(matrix.plain[i], counts, touched, candidates)
                if matrix.table[edge] >= 0:
                    for end in range(2):
                        number = value[v] if end == 0 else value[w]
                        if number != NO_VALUE:
                            lists = (matrix.table[edge] * 2 + end) * 4
                            candidates = _count_satisfied(matrix, lists, number, counts, touched, candidates)
        for i in range(candidates):
            s = touched[i]
            enough = counts[s] >= patterns.first[s + 1] - patterns.first[s]
            counts[s] = 0
            if enough and _join(s, p, publications, patterns, sub_edge, value, scratch):
                if found < out.shape[0]:
                    out[found, 0], out[found, 1] = p, s
                found += 1
        for i in range(filled):
            head[scratch.used[i]] = -1
    return found


@compiled
def contains(a, b, patterns, value, bound_to, cursor, news):
    """Whether every edge of a has its place in an edge of b, each variable of a having one node of b."""
    a_first, a_end = patterns.first[a], patterns.first[a + 1]
    b_first, b_end = patterns.first[b], patterns.first[b + 1]
    bound_to[:] = UNBOUND
    depth, last = 0, a_end - a_first - 1
    cursor[0] = b_first
    while depth >= 0:
        j, e = a_first + depth, cursor[depth]
        if e >= b_end:
            depth -= 1
            if depth >= 0:
                for end in range(2):
                    if news[depth, end] >= 0:
                        bound_to[news[depth, end]] = UNBOUND
                cursor[depth] += 1
            continue
        news[depth] = -1
        fits = patterns.label[j] == patterns.label[e]
        for end in range(2):
            if not fits:
                break
            written = patterns.subject[j] if end == 0 else patterns.object[j]
            node = patterns.subject[e] if end == 0 else patterns.object[e]
            if written >= 0:
                fits = written == node
            elif written != FREE:
                variable = -1 - written
                fits = bound_to[variable] == UNBOUND or (bound_to[variable] == node and node != FREE)
                if fits and bound_to[variable] == UNBOUND:
                    bound_to[variable] = node
                    news[depth, end] = variable
                    fits = variable != 0 or _implied(a, b, node, patterns, value)
        if fits and depth == last:
            return True
        if fits:
            depth += 1
            cursor[depth] = b_first
            continue
        for end in range(2):
            if news[depth, end] >= 0:
                bound_to[news[depth, end]] = UNBOUND
        cursor[depth] += 1
    return False


@compiled
def _implied(a, b, node, patterns, value):
    """Whether whatever `node` of b stands for satisfies the test of a."""
    operator, bound = patterns.operator[a], patterns.bound[a]
    if operator == NO_TEST:
        return True
    if node >= 0:
        return holds(operator, bound, value[node])
    given, at = patterns.operator[b], patterns.bound[b]
    if node != -1 or given == NO_TEST:
        return False
    if given == EQUAL:
        return holds(operator, bound, at)
    if operator == UNEQUAL:
        return (
            (given == UNEQUAL and at == bound)
            or (given == GREATER and at >= bound)
            or (given == LESS and at <= bound)
        )
    return given == operator and (
        at >= bound if operator == GREATER else at <= bound if operator == LESS else False
    )


@compiled
def enter(s, patterns, lists):
    """Enters a subscription into the lists of its labels. A list that is full moves behind all others, with twice the room."""
    for j in range(patterns.first[s], patterns.first[s + 1]):
        label = patterns.label[j]
        size, start = lists.size[label], lists.start[label]
        if size == lists.room[label]:
            there = lists.used[0]
            for i in range(size):
                lists.owner[there + i] = lists.owner[start + i]
            start = there
            lists.start[label], lists.room[label] = there, max(4, 2 * size)
            lists.used[0] += lists.room[label]
        lists.owner[start + size] = s
        lists.size[label] += 1


@compiled
def leave(s, patterns, lists):
    for j in range(patterns.first[s], patterns.first[s + 1]):
        label = patterns.label[j]
        i = lists.start[label]
        while lists.owner[i] != s:
            i += 1
        lists.size[label] -= 1
        lists.owner[i] = lists.owner[lists.start[label] + lists.size[label]]


@compiled
def check_containment(s, patterns, lists, value, counts, touched, bound_to, cursor, news, out):
    """Algorithm `containmentChecking`: the subscription of the index that contains s, or -1, and how many in `out` s contains.

    Candidates have as many pairs of equal labels as the smaller of both has edges. A subscription with a container in the
    index contains none there, because nothing in the index contains anything else there."""
    candidates = 0
    for j in range(patterns.first[s], patterns.first[s + 1]):
        start = lists.start[patterns.label[j]]
        for i in range(start, start + lists.size[patterns.label[j]]):
            candidates = _count(lists.owner[i], counts, touched, candidates)
    container, found = -1, 0
    size = patterns.first[s + 1] - patterns.first[s]
    for i in range(candidates):
        other = touched[i]
        shared = counts[other]
        counts[other] = 0
        other_size = patterns.first[other + 1] - patterns.first[other]
        if container >= 0 or shared < min(size, other_size):
            continue
        if other_size <= size and contains(other, s, patterns, value, bound_to, cursor, news):
            container = other
        elif size <= other_size and contains(s, other, patterns, value, bound_to, cursor, news):
            out[found] = other
            found += 1
    return container, found
