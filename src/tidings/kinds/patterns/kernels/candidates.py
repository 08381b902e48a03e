"""Finds the candidates of an event: the rows that one of its clauses leads to."""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.kinds.patterns.kernels.chains import bucket
from tidings.kinds.patterns.kernels.filing import access_key
from tidings.kinds.patterns.kernels.layout import BLOCK, ISA, POINT, RANGE, RESOURCE, SP, TEXT, VALUE, WORDS


@compiled
def _without_repeats(slots, space, count):  # type: ignore[no-untyped-def]
    """Takes repeated candidates out, to make room; returns how many are left: no more than there are rows."""
    space.looks[0] -= 1
    left = 0
    for i in range(count):
        r = slots[space.candidates[i] - 2]
        if space.seen[r] != space.looks[0]:
            space.seen[r] = space.looks[0]
            space.candidates[left] = space.candidates[i]
            left += 1
    return left


@inlined
def _posted(key, table, first, postings, slots, space, count):  # type: ignore[no-untyped-def]
    """Adds the rows filed under `key` to the candidates. A row that several clauses lead to is added several times;
    verification drops the repeats: to look at the row here would mean to wait for its memory."""
    mask = np.uint64(table.shape[0] - 1)
    at = (key >> np.uint64(1)) & mask
    while table[at, 0] != key:
        if table[at, 0] == 0:
            return count
        at = (at + np.uint64(1)) & mask
    where, room = np.int64(table[at, 1]), space.candidates.shape[0]
    if where >= 0:
        if count == room:
            count = _without_repeats(slots, space, count)
        space.candidates[count] = where
        return count + 1
    low, high = first[~where], first[~where + 1]
    if count + high - low > room:
        count = _without_repeats(slots, space, count)
    for j in range(low, high):
        space.candidates[count] = postings[j]
        count += 1
    return count


@compiled
def _in_range(group, rank, access, slots, space, count):  # type: ignore[no-untyped-def]
    """Adds the rows of a group of ranges that hold `rank`.

    Ranges are sorted by their low end, and among equals by their high end, largest first. So those that begin
    at or below the rank are a prefix, in which a block whose high ends all lie below the rank is skipped.
    """
    begin, low, high = access.range_first[group], access.range_first[group], access.range_first[group + 1]
    while low < high:
        middle = (low + high) // 2
        if access.range_low[middle] <= rank:
            low = middle + 1
        else:
            high = middle
    i = begin
    while i < low:
        if i & ((1 << BLOCK) - 1) == 0 and access.range_block[i >> BLOCK] < rank:
            i += 1 << BLOCK
            continue
        if access.range_high[i] >= rank:
            if count == space.candidates.shape[0]:
                count = _without_repeats(slots, space, count)
            space.candidates[count] = access.range_row[i]
            count += 1
        i += 1
    return count


@inlined
def _push(cls, space, top):  # type: ignore[no-untyped-def]
    if space.visited[cls] == space.visited[-1]:
        return top
    space.visited[cls] = space.visited[-1]
    space.stack[top] = cls
    return top + 1


@compiled
def _of_class(p, term, index, terms, space, mask, count):  # type: ignore[no-untyped-def]
    """Adds the rows filed under property p and a class that `term` belongs to: its own classes, and upwards."""
    access, classes, number, top = index.access, index.classes, terms.number[term], 0
    space.visited[-1] += 1
    if number < classes.number.shape[0]:
        if classes.number[number] >= 0:
            top = _push(classes.number[number], space, top)
        for i in range(classes.typed_first[number], classes.typed_first[number + 1]):
            top = _push(classes.typed[i], space, top)
    if terms.words[term] & 1 and terms.words[term] > 0:
        text = terms.words[term] // 2
        for i in range(classes.label_first[text], classes.label_first[text + 1]):
            top = _push(classes.label[i], space, top)
    e = space.head[SP, bucket(SP, number, classes.type_property, 0, mask)]
    while e >= 0:
        if space.known[0, e] == number and space.known[1, e] == classes.type_property:
            typed = space.known[2, e]
            if typed < classes.number.shape[0] and classes.number[typed] >= 0:
                top = _push(classes.number[typed], space, top)
        e = space.next[SP, e]
    while top > 0:
        top -= 1
        cls = space.stack[top]
        key = access_key(ISA, p, cls, -1)
        count = _posted(key, access.table, access.first, access.postings, index.rows.slots, space, count)
        for i in range(classes.parent_first[cls], classes.parent_first[cls + 1]):
            top = _push(classes.parents[i], space, top)
    return count


@inlined
def find_candidates(edges, index, terms, space, mask):  # type: ignore[no-untyped-def]
    """Collects the rows that a clause of the chained event leads to; returns how many."""
    access = index.access
    table, first, postings, slots = access.table, access.first, access.postings, index.rows.slots
    half = access.range_of.shape[0] // 2
    count = access.always.shape[0]
    for i in range(access.always.shape[0]):
        space.candidates[i] = access.always[i]
    mask_of_table, touched = np.uint64(table.shape[0] - 1), np.uint64(0)
    for kind in range(1, 8):
        if not access.used[kind]:
            continue
        # All keys first: the rows of the table they lead to are then fetched side by side (see `_verify`).
        for e in range(edges):
            a = space.known[0, e] if kind & 4 else np.int32(-1)
            b = space.known[1, e] if kind & 2 else np.int32(-1)
            c = space.known[2, e] if kind & 1 else np.int32(-1)
            space.keys[e] = access_key(kind, a, b, c)
            touched += table[(space.keys[e] >> np.uint64(1)) & mask_of_table, 0]
        for e in range(edges):
            count = _posted(space.keys[e], table, first, postings, slots, space, count)
    space.touched[0] = np.int64(touched)
    if not access.by_test:
        return count
    for e in range(edges):
        p, o, term = space.known[1, e], space.known[2, e], space.edge[2, e]
        if access.used[POINT]:
            for what in range(4):
                if not access.points[what] or (what == RESOURCE and not terms.is_iri[term]):
                    continue
                rank = terms.value[term] if what == VALUE else terms.words[term] if what == WORDS else o
                if rank >= 0:
                    key = access_key(POINT, p, what, rank)
                    count = _posted(key, table, first, postings, slots, space, count)
        if access.used[RANGE] and p < half:
            if access.range_of[p] >= 0 and terms.value[term] >= 0:
                count = _in_range(access.range_of[p], terms.value[term], access, slots, space, count)
            if access.range_of[p + half] >= 0 and terms.words[term] >= 0:
                count = _in_range(access.range_of[p + half], terms.words[term], access, slots, space, count)
        if access.used[TEXT]:
            for i in range(terms.test_first[term], terms.test_first[term + 1]):
                key = access_key(TEXT, p, terms.tests[i], -1)
                count = _posted(key, table, first, postings, slots, space, count)
        if access.used[ISA]:
            count = _of_class(p, term, index, terms, space, mask, count)
    return count
