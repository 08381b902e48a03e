"""Matches events with expressions: collects the candidates of an event and runs the code of each.

The time goes into waiting for memory, so candidates are taken in portions: first the beginning of each is
fetched, all at once as far as the processor can, then each is run. One by one took twice the time.
"""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.kinds.filters.kernels.layout import ABSENT, AGAIN, REPEATS
from tidings.kinds.filters.kernels.running import enter_inlined, holds_narrow, holds_single, holds_wide

PORTION = 512
_LINE = 32  # words
# Numbers without a sign: an index that could be negative is looked at twice.
_1, _2, _3, _8, _16, _255 = map(np.uint64, (1, 2, 3, 8, 16, 255))


@inlined
def _passes(check, coarse):  # type: ignore[no-untyped-def]
    low, high = check >> _8 & _255, check & _255
    # What lies before `low` wraps round to more than there can be.
    return np.uint64(coarse[check >> _16]) - low <= high - low


@inlined
def _take(entries, low, high, coarse, held, count):  # type: ignore[no-untyped-def]
    """Adds the entries from low to high whose checks hold to the candidates; how many there are then.

    The first check leaves few, so the second has a round of its own: half the time of both in one.
    """
    begin = kept = np.uint64(count)
    at = np.uint64(low) * _3
    for _ in range(high - low):
        held[kept] = at
        kept += np.uint64(_passes(np.uint64(entries[at + _1]), coarse))
        at += _3
    end, kept = kept, begin
    for i in range(begin, end):
        at = np.uint64(held[i])
        held[kept] = entries[at]
        kept += np.uint64(_passes(np.uint64(entries[at + _2]), coarse))
    return np.int64(kept)


@inlined
def _run(index, pairs, held, count, dedupe, space, marked, events, rows, found, event):  # type: ignore[no-untyped-def]
    """Runs candidates held[:count]; returns (rows found, rows marked) so far, or (-1, marked) if there is no room."""
    narrow, wide = index.code.narrow, index.code.wide
    slots, seen, marks, ends = space.slots, space.seen, space.marked, index.ends
    # First fetch the beginnings of all, each two lines of memory, with nothing to decide in between.
    last = narrow.shape[0] - 1
    fetched = 0
    for i in range(count if last >= 0 else 0):
        at = min(np.int64(held[i]) >> 1, last)
        fetched += narrow[at] + narrow[min(at + _LINE, last)]
    marks[marked] = fetched
    # Then pass over those that were here before.
    kept = 0
    for i in range(count):
        address = np.int64(held[i])
        at = address >> 1
        row = np.int64(wide[at]) if address & 1 else np.int64(narrow[at]) | np.int64(narrow[at + 1]) << 16
        if dedupe or row >= REPEATS:
            number = row & (REPEATS - 1)
            bit = np.uint8(1 << (number & 7))
            if seen[number >> 3] & bit:
                continue
            seen[number >> 3] |= bit
            marks[marked] = number
            marked += 1
        held[kept] = held[i]
        kept += 1
    for i in range(kept):
        address = np.int64(held[i])
        at = address >> 1
        if address & 1:
            hit = holds_wide(wide, at + 1, slots, pairs, ends)
            row = np.int64(wide[at])
        else:
            if dedupe:
                hit = holds_narrow(narrow, at + 2, slots, pairs, ends)
            else:
                hit = holds_single(narrow, at + 2, slots, ends)
            row = np.int64(narrow[at]) | np.int64(narrow[at + 1]) << 16
        if hit:
            if found == rows.shape[0]:
                return -1, marked
            events[found] = event
            rows[found] = row & (REPEATS - 1)
            found += 1
    return found, marked


@compiled
def match_events(index, pairs, begin, space, events, rows):  # type: ignore[no-untyped-def]
    """Matches events from number `begin` on; (events done, answers, candidates): fewer done when room ran out."""
    access = index.access
    base, height, levels = access.base, access.height, access.levels
    first, entries, shift = access.first, access.entries, access.shift
    slots, held, seen, marks, coarse = space.slots, space.held, space.seen, space.marked, space.coarse
    list_low, list_high = space.low, space.high
    found, tried = 0, 0
    total = pairs.first.shape[0] - 1
    for event in range(begin, total):
        before = found
        dedupe = enter_inlined(pairs, event, slots)
        # The lists that the event leads to: first all their beginnings, so that they are fetched together.
        lists, fetched = 0, np.uint32(0)
        if first[1]:
            list_low[0], list_high[0] = 0, first[1]
            lists = 1
        for i in range(pairs.first[event], pairs.first[event + 1]):
            attribute = pairs.attribute[i]
            position = np.int64(pairs.position[i]) & (AGAIN - 1)
            coarse[attribute] = position >> shift[attribute]
            node = (np.int64(1) << height[attribute]) + position
            mask = levels[attribute]
            while mask:
                if mask & 1:
                    low, high = first[base[attribute] + node], first[base[attribute] + node + 1]
                    list_low[lists], list_high[lists] = low, high
                    lists += low < high
                mask >>= 1
                node >>= 1
        for k in range(lists):
            fetched += entries[3 * list_low[k]]
        marks[0] = fetched
        k, low, count, marked = 0, np.int64(0), 0, 0
        if lists:
            low = list_low[0]
        while k < lists and found >= 0:
            while k < lists and count < PORTION:
                stop = min(list_high[k], low + PORTION - count)
                if dedupe:  # a check knows one position of each attribute
                    for j in range(low, stop):
                        held[count] = entries[3 * j]
                        count += 1
                else:
                    count = _take(entries, low, stop, coarse, held, count)
                low = stop
                if low == list_high[k]:
                    k += 1
                    if k < lists:
                        low = list_low[k]
            tried += count
            found, marked = _run(index, pairs, held, count, dedupe, space, marked, events, rows, found, event)
            count = 0
        for i in range(marked):
            seen[marks[i] >> 3] = 0
        for i in range(pairs.first[event], pairs.first[event + 1]):
            slots[pairs.attribute[i]] = coarse[pairs.attribute[i]] = ABSENT
        if found < 0:
            return event, before, tried
    return total, found, tried
