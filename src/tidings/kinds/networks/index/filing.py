"""Indexes the expressions of a network as filters, a row for each entity in the order of ids, and reads events for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tidings.errors import EventError
from tidings.formats.kernels.json import occurrences_of
from tidings.kinds.filters.attribute_reader import AttributeReader
from tidings.kinds.filters.index import FilterIndex
from tidings.kinds.filters.kernels.layout import AttributePairs
from tidings.kinds.filters.table import FilterTable

_PIECE = 1 << 16  # rows that are copied at once


class ExpressionIndex:
    """An index of chosen expressions: row i is the expression which[i]."""

    def __init__(self, rows: FilterTable, which: np.ndarray) -> None:
        self.which = which
        self.index = FilterIndex.build(rows)
        self._reader = AttributeReader(self.index)
        levels = self.index.index.access.levels
        # As many lists as one value can lead to, for each attribute's value.
        self.depth = max((int(bits).bit_count() for bits in np.unique(levels).tolist()), default=0)

    def read(self, events: Sequence[Mapping[str, Any]]) -> AttributePairs:
        """The events as the index knows them."""
        found = occurrences_of(events, self.index.paths)
        if found.errors:
            raise EventError(next(iter(found.errors.values())))
        return self._reader.pairs(found, events.__getitem__)

    def matching(self, event: Mapping[str, Any]) -> np.ndarray:
        """The expressions that accept an event."""
        return self.which[self.index.match(self.read([event])).row]


def choose_rows(table: FilterTable, which: np.ndarray) -> FilterTable:
    """A table with chosen rows of another, repeated and in any order; the other may grow on."""
    chosen = FilterTable()
    chosen.constants.numbers, chosen.keys = dict(table.constants.numbers), dict(table.keys)
    chosen.trees, chosen.tree_first = table.trees[:], table.tree_first[:]
    first, slots = np.frombuffer(table.slot_first, np.int64), np.frombuffer(table.slots, np.int32)
    shape = np.frombuffer(table.row_shape, np.int32)
    for begin in range(0, len(which), _PIECE):
        piece = which[begin : begin + _PIECE]
        widths = np.diff(first)[piece]
        ends = np.cumsum(widths)
        at = np.repeat(first[piece] - ends + widths, widths) + np.arange(widths.sum())
        chosen.slot_first.frombytes((len(chosen.slots) + ends).tobytes())
        chosen.slots.frombytes(slots[at].tobytes())
        chosen.row_shape.frombytes(shape[piece].tobytes())
    return chosen
