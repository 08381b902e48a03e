"""Filters as a kind: they take all tests of a way that no other finder has taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tidings.arrays import folders
from tidings.formats.kernels.json import occurrences_of
from tidings.kinds.filters.attribute_reader import AttributeReader
from tidings.kinds.filters.columns import read_events
from tidings.kinds.filters.index import FilterIndex
from tidings.kinds.filters.integrity import refuse_damaged_table
from tidings.kinds.filters.shape import FilterShape, compile_filter
from tidings.kinds.filters.table import FilterTable
from tidings.language.alternatives import Way
from tidings.language.query import And, KindCondition, leaves
from tidings.model.batch import Batch
from tidings.model.pairs import Found

_REMEMBERED = 100_000


@dataclass(frozen=True, slots=True)
class FilterPart:
    """The filter of a way; `is_broad` if every event satisfies it."""

    shape: FilterShape
    is_broad: bool


class Filters:
    """The kind of subscription that is a condition on attributes."""

    name, role = "filters", "find"
    conditions: tuple[type[KindCondition], ...] = ()

    def compile(self, way: Way) -> tuple[FilterPart, Way]:
        """Takes every test but those with conditions of other kinds, which only these can decide."""
        other = tuple(
            test for test in way.tests if any(isinstance(leaf, KindCondition) for leaf in leaves(test))
        )
        own = replace(way, tests=tuple(test for test in way.tests if test not in other)).condition
        return FilterPart(compile_filter(own), own == And(())), replace(way, tests=other)

    def builder(self) -> FilterBuilder:
        return FilterBuilder(FilterTable())

    def load(self, folder: Path) -> FilterBuilder:
        """What `FilterBuilder.save` wrote. In version 0.1 the table had a folder of its own."""
        index = FilterIndex.load(folder)
        inner = folder / "table"
        table = inner if inner.is_dir() else folder.parent / "filter_table"
        arrays, _ = folders.load(table)
        refuse_damaged_table(table, arrays, index.keys)
        return FilterBuilder(None, arrays, FilterFinder(index))


class FilterBuilder:
    """Filters of one segment; what comes from a folder becomes a table when it is first extended."""

    def __init__(
        self,
        table: FilterTable | None,
        arrays: Mapping[str, np.ndarray] | None = None,
        finder: FilterFinder | None = None,
    ) -> None:
        self._table, self._arrays, self._finder = table, arrays or {}, finder
        self._shapes: dict[int, tuple[FilterShape, int]] = {}

    def __len__(self) -> int:
        return len(self._arrays["row_shape"]) if self._table is None else len(self._table)

    @property
    def table(self) -> FilterTable:
        if self._table is None:
            self._table = FilterTable.thaw(self._arrays, self.finder().index.facts["keys"])
        return self._table

    def prepare(self, part: FilterPart, values: Mapping[str, str]) -> Sequence[str | None]:
        return part.shape.texts(values)

    def add(self, part: FilterPart, texts: Sequence[str | None]) -> int:
        self.table.add(self._shape(part.shape), texts)
        self._finder = None
        return len(self.table) - 1

    def add_many(
        self, part: FilterPart, columns: Mapping[str, tuple[np.ndarray, list[str]]], count: int
    ) -> int:
        self.table.add_many(self._shape(part.shape), part.shape, columns, count)
        self._finder = None
        return len(self.table) - count

    def _shape(self, shape: FilterShape) -> int:
        known = self._shapes.get(id(shape))
        if known is None:
            if len(self._shapes) >= _REMEMBERED:
                self._shapes.clear()
            # With the shape: its id stays its own.
            known = self._shapes[id(shape)] = shape, self.table.add_shape(shape)
        return known[1]

    def extend(self, other: FilterBuilder, rows: np.ndarray) -> None:
        self.table.extend(other.table, rows)
        self._finder = None

    def finder(self) -> FilterFinder:
        if self._finder is None:
            self._finder = FilterFinder(FilterIndex.build(self.table))
        return self._finder

    def save(self, folder: Path) -> None:
        self.finder().index.save(folder)
        folders.save(folder / "table", self.table.freeze(), {})


class FilterFinder:
    """Finds the filters that events satisfy, by the index."""

    several = False
    binds = False

    def __init__(self, index: FilterIndex) -> None:
        self.index = index
        self._reader = AttributeReader(index)

    def find(self, batch: Batch) -> Found:
        wanted = self._reader.wanted
        if batch.documents is not None:
            found = occurrences_of(batch.documents, wanted.table)
        else:
            found = read_events(batch.events, wanted)
            batch.refuse(found.errors)
        pairs = self._reader.pairs(found, lambda event: batch.attributes(event) or {})
        matches = self.index.match(pairs)
        if batch.refused:  # whatever could be read of such an event
            keep = ~np.isin(matches.event, list(batch.refused))
            return Found.certain(matches.event[keep], matches.row[keep])
        return Found.certain(matches.event, matches.row)
