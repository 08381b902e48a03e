"""Partitions the rows of a join over buckets, so that rows which join are in the same bucket.

Joins of the same tables on the same columns are one partition class. Where all tables are joined on the same values,
these values determine the bucket, so buckets are independent. Rows of a table without a join are divided by their key.
All other joins (chains, stars, cycles) share one bucket, which has all their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa

from tidings.kinds.joins.changes.row_images import canonical
from tidings.kinds.joins.index.index import JoinIndex
from tidings.kinds.joins.index.levels import Levels
from tidings.kinds.joins.index.subscriptions import Subscriptions
from tidings.kinds.joins.kernels.layout import IndexArrays
from tidings.kinds.joins.rows.rows import Rows
from tidings.kinds.joins.schema.shape import JoinShape
from tidings.kinds.joins.schema.table import Table

WHOLE = "*"


class Partition(NamedTuple):
    """A partition class. `columns` says, for each of its tables, by which columns rows go to buckets."""

    name: str
    columns: dict[str, tuple[str, ...]]
    buckets: int

    @property
    def is_whole(self) -> bool:
        return self.name == WHOLE

    def part(self, bucket: int) -> str:
        """The name of a bucket in notifications."""
        return f"{bucket}/{self.buckets}"

    def bucket_keys(self, table: Table, columns: Sequence[pa.Array]) -> np.ndarray:
        """A hash for each row; its bucket is the hash modulo `buckets`. Rows that can never join have -1."""
        if self.is_whole:
            return _hashes(canonical(table, columns))
        names = self.columns[table.name]
        chosen = [columns[table.names.index(name)] for name in names]
        # Whatever the columns are called here, equal values have equal texts.
        key = Table("key", {str(i): table.columns[name] for i, name in enumerate(names)})
        found = _hashes(canonical(key, chosen))
        if len(self.columns) > 1:
            for column in chosen:
                found[column.is_null().to_numpy(zero_copy_only=False)] = -1
        return found


def partition_of(shape: JoinShape, tables: Mapping[str, Table], buckets: int) -> Partition:
    """The partition class of a shape."""
    names = [tables[name].names for name in shape.tables]
    if len(shape.tables) == 1:
        (name,) = shape.tables
        return Partition(name, {name: tuple(tables[name].key) or names[0]}, buckets)
    if not shape.one_key:
        return Partition(WHOLE, dict.fromkeys(sorted(shape.tables), ()), 1)
    slots = sorted(range(len(shape.tables)), key=lambda slot: shape.tables[slot])
    variables = sorted(tuple(names[slot][dict(refs)[slot]] for slot in slots) for refs in shape.variables)
    columns = {
        shape.tables[slot]: tuple(variable[at] for variable in variables) for at, slot in enumerate(slots)
    }
    equations = (
        "=".join(f"{table}.{own[i]}" for table, own in columns.items()) for i in range(len(variables))
    )
    return Partition(" AND ".join(equations), columns, buckets)


def partitions(
    shapes: Iterable[JoinShape], tables: Mapping[str, Table], buckets: int, known: Iterable[Partition] = ()
) -> dict[str, Partition]:
    """The partition classes of all shapes by name, `known` ones included."""
    found = {partition.name: partition for partition in known}
    for shape in shapes:
        partition = partition_of(shape, tables, buckets)
        if partition.name in found:  # the one for all others grows by their tables
            partition = found[partition.name]._replace(
                columns=found[partition.name].columns | partition.columns
            )
        found[partition.name] = partition
    return found


class ClassLevels:
    """The levels of an index, restricted to the subscriptions of one class. They are kept from batch to batch."""

    def __init__(self, subscriptions: Subscriptions, levels: Levels, name: str) -> None:
        self.subscriptions, self.levels, self.name = subscriptions, levels, name
        self._no_rows = Rows(subscriptions.tables, subscriptions.texts)
        self._by_level: dict[str, tuple[JoinIndex, JoinIndex]] = {}

    @property
    def largest(self) -> int:
        return self.levels.largest

    def indexes(self, rows: Rows) -> tuple[IndexArrays, IndexArrays, IndexArrays]:
        levels = self.levels
        levels.indexes(self._no_rows)  # new subscriptions find their level
        base, middle = self._cached("base", levels.base), self._cached("middle", levels.middle)
        # The recent index changes in place, so it is restricted every time.
        recent = self._restricted(levels.recent.index)
        return base.for_rows(rows), middle.for_rows(rows), recent.for_rows(rows)

    def _cached(self, level: str, index: JoinIndex) -> JoinIndex:
        if level not in self._by_level or self._by_level[level][0] is not index:
            self._by_level[level] = index, self._restricted(index)
        return self._by_level[level][1]

    def _restricted(self, index: JoinIndex) -> JoinIndex:
        """An index without the sides of other classes, and without the orders that only those use."""
        sides = index.arrays["sides"]
        sides = sides[np.array([self._is_mine(index, side) for side in sides], dtype=np.bool_)]
        needed = set(sides["own_order"].tolist())
        for side in sides:
            needed.update(index.arrays["steps"]["order"][side["steps"] :][: side["arity"] ** 2].tolist())
        needed.discard(-1)
        # An order keeps its number; an order that is not needed is replaced by another one.
        orders = [index.orders[i if i in needed else min(needed)] for i in range(len(index.orders)) if needed]
        table_numbers = np.arange(len(self.subscriptions.tables) + 1)
        table_first = np.searchsorted(sides["table"], table_numbers).astype(np.int32)
        tables = set(sides["table"].tolist())
        looked_at = [(table, column) for table, column in index.looked_at if table in tables]
        for array in (sides, table_first):
            array.setflags(write=False)
        arrays = {**index.arrays, "sides": sides, "table_first": table_first}
        return JoinIndex(arrays, orders, looked_at, index.numbers)

    def _is_mine(self, index: JoinIndex, side: np.void) -> bool:
        """Whether a side belongs to this class: all its members have the shape of the first."""
        member = side["loose"] if side["loose_count"] else index.arrays["clusters"][side["cluster"]]["first"]
        number = int(index.arrays["number"][member])
        shape = self.subscriptions.shapes[self.subscriptions.shape_of.all[number if number >= 0 else ~number]]
        tables = {table.name: table for table in self.subscriptions.tables}
        return partition_of(shape, tables, 1).name == self.name


def _hashes(texts: pa.Array) -> np.ndarray:
    """A hash for each text, the same in every process; equal texts are hashed once."""
    encoded = texts.dictionary_encode()
    distinct = np.array([crc32(text.encode()) for text in encoded.dictionary.to_pylist()], dtype=np.int64)
    return np.asarray(distinct[encoded.indices.to_numpy()])
