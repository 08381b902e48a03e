"""The index of expressions as the walks see it: whether a row accepts an event, and the next row that does."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.kinds.filters.kernels import seeking
from tidings.kinds.filters.kernels.layout import AGAIN, AttributePairs, Lists
from tidings.kinds.filters.kernels.running import row_holds
from tidings.kinds.networks.kernels.layout import EVENT, LISTS


class Entered(NamedTuple):
    """An event of a batch, in slots; `lists` has room for the postings that it leads to."""

    pairs: AttributePairs
    slots: np.ndarray
    lists: Lists


@inlined
def accepts(row, filters, event):  # type: ignore[no-untyped-def]
    return row_holds(filters, row, event.slots, event.pairs)


@inlined
def seek(row, filters, event, registers):  # type: ignore[no-untyped-def]
    """The next row from `row` on that accepts the event, or -1; the postings are opened when first needed."""
    if registers[LISTS] < 0:
        registers[LISTS] = seeking.open_lists(filters, event.pairs, registers[EVENT], event.lists)
    return seeking.seek(filters, event.pairs, event.slots, event.lists, registers[LISTS], row)


@compiled
def count_candidates(filters, pairs, event):  # type: ignore[no-untyped-def]
    """How many postings an event leads to: what it costs to take all from the index."""
    access = filters.access
    first, levels, base, height = access.first, access.levels, access.base, access.height
    total = np.int64(first[1]) - np.int64(first[0])
    for i in range(pairs.first[event], pairs.first[event + 1]):
        attribute = pairs.attribute[i]
        node = (np.int64(1) << height[attribute]) + (np.int64(pairs.position[i]) & (AGAIN - 1))
        mask = levels[attribute]
        while mask:
            if mask & 1:
                at = base[attribute] + node
                total += np.int64(first[at + 1]) - np.int64(first[at])
            mask >>= 1
            node >>= 1
    return total
