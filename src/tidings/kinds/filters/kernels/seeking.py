"""Finds the next matching row from a given one on, and skips entries of the postings in between (graph constraints 2).

An event leads to a few lists of entries, each in the order of rows. A list is moved forward only when its
first row is behind what is asked for, and then by doubling steps and halving: rows in between are never looked at.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.kinds.filters.kernels.layout import AGAIN, REPEATS
from tidings.kinds.filters.kernels.running import holds, row_at

NONE = np.int64(1) << 40  # the row of a list that is at its end


@inlined
def _row(index, at):  # type: ignore[no-untyped-def]
    return row_at(index.code, np.int64(index.access.entries[3 * at])) & (REPEATS - 1)


@compiled
def open_lists(index, pairs, event, lists):  # type: ignore[no-untyped-def]
    """The lists that an event leads to, at their beginnings; returns how many."""
    access = index.access
    count = 0
    i, end = pairs.first[event], pairs.first[event + 1]
    node, mask, offset = np.int64(0), np.int64(1), np.int64(0)
    while True:
        if mask & 1:
            low, high = np.int64(access.first[offset + node]), np.int64(access.first[offset + node + 1])
            if low < high:
                lists.low[count], lists.high[count], lists.row[count] = low, high, _row(index, low)
                count += 1
        mask >>= 1
        node >>= 1
        if mask == 0:
            while i < end and mask == 0:
                attribute = pairs.attribute[i]
                position = np.int64(pairs.position[i]) & (AGAIN - 1)
                node = (np.int64(1) << access.height[attribute]) + position
                mask, offset = access.levels[attribute], access.base[attribute]
                i += 1
            if mask == 0:
                return count


@inlined
def _skip(index, lists, k, n):  # type: ignore[no-untyped-def]
    """Moves list k to its first row from n on."""
    low, high = lists.low[k], lists.high[k]
    step = np.int64(1)
    # The row at `low` is behind n all the time.
    while low + step < high and _row(index, low + step) < n:
        low += step
        step <<= 1
    high = min(high, low + step)
    low += 1
    while low < high:
        middle = (low + high) >> 1
        if _row(index, middle) < n:
            low = middle + 1
        else:
            high = middle
    lists.low[k] = low
    lists.row[k] = _row(index, low) if low < lists.high[k] else NONE


@compiled
def seek(index, pairs, slots, lists, count, n):  # type: ignore[no-untyped-def]
    """The next row from n on that holds for the event in `slots`, whose lists are open; -1 if there is none."""
    while True:
        best, address = NONE, np.int64(0)
        for k in range(count):
            if lists.row[k] < n:
                _skip(index, lists, k, n)
            if lists.row[k] < best:
                best = lists.row[k]
                address = np.int64(index.access.entries[3 * lists.low[k]])
        if best == NONE:
            return np.int64(-1)
        if holds(index, address, slots, pairs):
            return best
        n = best + 1
