"""Filters being collected: rows of a tree and its constants, in plain growing columns.

An index is built from a table and does not change; the table grows on.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

import numpy as np

from tidings.arrays.vocabulary import Vocabulary, freeze_texts, thaw_texts
from tidings.kinds.filters.kernels.layout import INNER_SIZE, LEAF_SIZE, OR, FilterRows
from tidings.kinds.filters.kernels.resolving import rename_attributes
from tidings.kinds.filters.shape import ConditionSlot, FilterShape, Key, Slot


class FilterTable:
    """Rows, the attributes of the index and the constants they are compared with."""

    def __init__(self) -> None:
        self.constants = Vocabulary()
        self.keys: dict[Key, int] = {}
        self.trees = array("i")
        self.tree_first = array("q", [0])
        self.row_shape = array("i")
        self.slots = array("i")
        self.slot_first = array("q", [0])

    def __len__(self) -> int:
        return len(self.row_shape)

    def add_shape(self, shape: FilterShape) -> int:
        """A shape to add rows of."""
        numbers = [self.keys.setdefault(key, len(self.keys)) for key in shape.keys]
        words, at = shape.words.copy(), 0
        while at < len(words):
            if words[at] <= OR:
                at += INNER_SIZE
            else:
                words[at + 1] = numbers[words[at + 1]]
                at += LEAF_SIZE
        self.trees.extend(words)
        self.tree_first.append(len(self.trees))
        return len(self.tree_first) - 2

    def add(self, number: int, texts: Sequence[str | None]) -> None:
        """A row of shape `number` with the texts that its shape's slots have."""
        constant = self.constants.number
        self.slots.extend([-1 if text is None else constant(text) for text in texts])
        self.slot_first.append(len(self.slots))
        self.row_shape.append(number)

    def add_many(
        self,
        number: int,
        shape: FilterShape,
        columns: Mapping[str, tuple[np.ndarray, list[str]]],
        count: int,
    ) -> None:
        """Many rows of one shape: for each parameter the codes of the rows and the N-Triples texts they mean."""
        width = len(shape.slots)
        rows = np.empty((count, width), dtype=np.int32)
        for i, slot in enumerate(shape.slots):
            rows[:, i] = self._column(slot, columns, count)
        self.slots.frombytes(rows.tobytes())
        first = self.slot_first[-1]
        self.slot_first.frombytes((first + width * np.arange(1, count + 1, dtype=np.int64)).tobytes())
        self.row_shape.frombytes(np.full(count, number, dtype=np.int32).tobytes())

    def _column(
        self, slot: Slot | ConditionSlot, columns: Mapping[str, tuple[np.ndarray, list[str]]], count: int
    ) -> np.ndarray:
        """The constants of one slot for all rows; each distinct combination of values is made once."""
        names = slot.names()
        if len(names) > 1:
            codes = np.stack([columns[name][0] for name in names], axis=1)
            distinct, which = np.unique(codes, axis=0, return_inverse=True)
        elif names:
            which = columns[names[0]][0]
            distinct = np.arange(len(columns[names[0]][1]))[:, None]
        else:
            which, distinct = np.zeros(count, dtype=np.int64), np.zeros((1, 0), dtype=np.int64)
        numbers = np.empty(len(distinct), dtype=np.int32)
        for i, chosen in enumerate(distinct.tolist()):
            values = {name: columns[name][1][code] for name, code in zip(names, chosen, strict=True)}
            text = slot.text(values)
            numbers[i] = -1 if text is None else self.constants.number(text)
        return numbers[which.ravel()]

    def extend(self, other: FilterTable, kept: np.ndarray) -> None:
        """Takes over the rows of `other` with these numbers."""
        keys = np.array([self.keys.setdefault(key, len(self.keys)) for key in other.keys], dtype=np.int32)
        texts = list(other.constants.numbers)
        shape, slots = np.frombuffer(other.row_shape, np.int32), np.frombuffer(other.slots, np.int32)
        first = np.frombuffer(other.slot_first, np.int64)
        widths = np.diff(first)[kept]
        at = np.repeat(first[:-1][kept] - np.cumsum(widths) + widths, widths) + np.arange(widths.sum())
        taken = slots[at]
        used = np.unique(taken[taken >= 0])
        renumbered = np.full(len(texts) + 1, -1, dtype=np.int32)
        renumbered[used] = [self.constants.number(texts[i]) for i in used.tolist()]
        shapes, which = np.unique(shape[kept], return_inverse=True)
        self._take_trees(other, shapes, keys)
        before = len(self.tree_first) - 1 - len(shapes)
        self.slots.frombytes(renumbered[taken].tobytes())
        self.slot_first.frombytes((self.slot_first[-1] + np.cumsum(widths)).tobytes())
        self.row_shape.frombytes((before + which).astype(np.int32).tobytes())

    def _take_trees(self, other: FilterTable, shapes: np.ndarray, keys: np.ndarray) -> None:
        trees, first = np.frombuffer(other.trees, np.int32), np.frombuffer(other.tree_first, np.int64)
        widths = np.diff(first)[shapes]
        at = np.repeat(first[:-1][shapes] - np.cumsum(widths) + widths, widths) + np.arange(widths.sum())
        taken = trees[at].copy()
        if len(taken):
            rename_attributes(taken, keys)
        self.trees.frombytes(taken.tobytes())
        self.tree_first.frombytes((self.tree_first[-1] + np.cumsum(widths)).tobytes())

    def rows(self) -> FilterRows:
        return FilterRows(
            np.frombuffer(self.trees, np.int32),
            np.frombuffer(self.tree_first, np.int64),
            np.frombuffer(self.row_shape, np.int32),
            np.frombuffer(self.slot_first, np.int64),
            np.frombuffer(self.slots, np.int32),
        )

    def freeze(self) -> dict[str, np.ndarray]:
        """The table as arrays, for `thaw`."""
        constants = freeze_texts(self.constants.numbers)
        return {
            "constant_blob": constants["blob"],
            "constant_start": constants["start"],
            "trees": np.frombuffer(self.trees, np.int32).copy(),
            "tree_first": np.frombuffer(self.tree_first, np.int64).copy(),
            "row_shape": np.frombuffer(self.row_shape, np.int32).copy(),
            "slots": np.frombuffer(self.slots, np.int32).copy(),
            "slot_first": np.frombuffer(self.slot_first, np.int64).copy(),
        }

    @classmethod
    def thaw(cls, arrays: Mapping[str, np.ndarray], keys: list[list[str]]) -> FilterTable:
        table = cls()
        texts = thaw_texts({"blob": arrays["constant_blob"], "start": arrays["constant_start"]})
        table.constants = Vocabulary(texts)
        table.keys = {Key(*key): number for number, key in enumerate(keys)}
        table.tree_first, table.slot_first = array("q"), array("q")
        for name in ("trees", "tree_first", "row_shape", "slots", "slot_first"):
            getattr(table, name).frombytes(arrays[name].tobytes())
        return table
