"""A segment tree over one range of every pair of ranges, whose nodes list the pairs by the low end of the other.

A pair is a subscription's range on the base table and its range on the filtering table, the latter's ends as ranks
among all ends. A node stands for a stretch of the base attribute and lists those whose base range covers it:

    listed   the pair's number                     rising by low end of the filtering range
    low      that low end
    least    the least high end from here on       so "is one inside (x, y)" is one search in the list
    most     the greatest high end up to here      so "does one hold x or reach it" is one more
    block    the greatest high end of every BLOCK positions, whatever lists they belong to

Pairs that hold a point of the base attribute are in the lists of one path from leaf to root, each in one of them.
Clusters are not needed for these searches: their cost does not depend on how many there would be.
"""

from __future__ import annotations

from tidings.arrays.compiled import compiled, inlined

BLOCK = 16  # positions of a list that are skipped at once if none of them can be an answer


@compiled
def list_pairs(order, first_leaf, last_leaf, leaves, cursor, listed, counting):  # type: ignore[no-untyped-def]
    """Lists pairs, in `order`, at the nodes whose stretches make up their base ranges; if `counting`, only how many."""
    for i in order:
        left, right = first_leaf[i] + leaves, last_leaf[i] + leaves + 1
        while left < right:
            if left & 1:
                if not counting:
                    listed[cursor[left]] = i
                cursor[left] += 1
                left += 1
            if right & 1:
                right -= 1
                if not counting:
                    listed[cursor[right]] = i
                cursor[right] += 1
            left >>= 1
            right >>= 1


@compiled
def bound_lists(first, listed, pair_low, pair_high, low, least, most, block):  # type: ignore[no-untyped-def]
    """Fills `low`, `least` and `most` beside `listed`, and `block`, which begins with zeros."""
    for node in range(len(first) - 1):
        reached = -1
        for position in range(first[node], first[node + 1]):
            low[position] = pair_low[listed[position]]
            reached = max(reached, pair_high[listed[position]])
            most[position] = reached
            block[position // BLOCK] = max(block[position // BLOCK], pair_high[listed[position]])
        reached = 2**31 - 1
        for position in range(first[node + 1] - 1, first[node] - 1, -1):
            reached = min(reached, pair_high[listed[position]])
            least[position] = reached


@inlined
def position_from(low, first, stop, rank):  # type: ignore[no-untyped-def]
    """The first position in [first, stop) whose low end is not below the rank."""
    while first < stop:
        middle = (first + stop) >> 1
        if low[middle] < rank:
            first = middle + 1
        else:
            stop = middle
    return first


@compiled
def inside(tree, leaf, after, before, out):  # type: ignore[no-untyped-def]
    """out[j]: whether some pair at this leaf has its low end at or above rank after[j], its high end below before[j]."""
    for j in range(len(after)):
        out[j] = False
    node = leaf + tree.leaves
    while node > 0:
        first, stop = tree.first[node], tree.first[node + 1]
        if first < stop:
            for j in range(len(after)):
                if not out[j] and tree.low[stop - 1] >= after[j] and tree.least[first] < before[j]:
                    position = position_from(tree.low, first, stop, after[j])
                    out[j] = tree.least[position] < before[j]
        node >>= 1


@compiled
def reaching(tree, leaf, up_to, from_on, out):  # type: ignore[no-untyped-def]
    """out[j]: whether some pair at this leaf has its low end up to rank up_to[j], its high end from from_on[j] on."""
    for j in range(len(up_to)):
        out[j] = False
    node = leaf + tree.leaves
    while node > 0:
        first, stop = tree.first[node], tree.first[node + 1]
        if first < stop:
            for j in range(len(up_to)):
                if not out[j] and tree.low[first] <= up_to[j] and tree.most[stop - 1] >= from_on[j]:
                    position = position_from(tree.low, first, stop, up_to[j] + 1) - 1
                    out[j] = tree.most[position] >= from_on[j]
        node >>= 1


@compiled
def holding(tree, leaf, up_to, from_on, out):  # type: ignore[no-untyped-def]
    """The pairs at this leaf whose filtering range holds some of the rising values, each once.

    Value j is at rank up_to[j] among low ends and from_on[j] among high ends. A pair's first value at or above its low
    end is the one to look at: the pair holds it, or none.
    """
    found = 0
    node = leaf + tree.leaves
    while node > 0:
        position, stop = tree.first[node], tree.first[node + 1]
        if position < stop:
            for j in range(len(up_to)):
                if tree.most[stop - 1] < from_on[j]:
                    break
                end = position_from(tree.low, position, stop, up_to[j] + 1)
                while position < end:
                    last = min((position // BLOCK + 1) * BLOCK, end)
                    if tree.block[position // BLOCK] >= from_on[j]:
                        for at in range(position, last):
                            if tree.high[tree.listed[at]] >= from_on[j]:
                                out[found] = tree.listed[at]
                                found += 1
                    position = last
        node >>= 1
    return found


@compiled
def between(tree, after, up_to, from_on, before, out):  # type: ignore[no-untyped-def]
    """The pairs whose low end is in [after, up_to] and whose high end is in [from_on, before), whatever their base."""
    found = 0
    position = position_from(tree.all_low, 0, len(tree.all_low), after)
    stop = position_from(tree.all_low, position, len(tree.all_low), up_to + 1)
    while position < stop:
        block = position // BLOCK
        last = min((block + 1) * BLOCK, stop)
        if tree.block_least[block] < before and tree.block_most[block] >= from_on:
            for at in range(position, last):
                pair = tree.order[at]
                if from_on <= tree.high[pair] < before:
                    out[found] = pair
                    found += 1
        position = last
    return found


@compiled
def mark_held(pairs, base_low, base_high, keys, marks):  # type: ignore[no-untyped-def]
    """marks[k] > 0: the base range of some of the pairs holds keys[k]; keys rise, marks are one longer and zero."""
    for i in pairs:
        begin = position_from(keys, 0, len(keys), base_low[i])
        end = begin
        stop = len(keys)
        while end < stop:
            middle = (end + stop) >> 1
            if keys[middle] <= base_high[i]:
                end = middle + 1
            else:
                stop = middle
        if begin < end:
            marks[begin] += 1
            marks[end] -= 1
    for k in range(1, len(keys)):
        marks[k] += marks[k - 1]
