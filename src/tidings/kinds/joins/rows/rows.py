"""The rows of all tables, in memory: their contents as JSON, their cells as integers, and their orders.

A row has a number while it exists; afterwards another row may get it. It is found by its key, or by its whole content
if the table has no key. Only columns that a subscription or a key uses have cells; the others are in the JSON alone.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence

import numpy as np
import pyarrow as pa

from tidings.arrays.growing import Growing
from tidings.kinds.joins.changes.ledger import Ledger
from tidings.kinds.joins.kernels.layout import (
    BUCKET,
    BUCKETS,
    COUNTERS,
    ENTRIES,
    ENTRY,
    KEY_VALUES,
    KEYS,
    NONE,
    NULL,
    ORDER,
    RowArrays,
)
from tidings.kinds.joins.kernels.resizing import pack, rehash_buckets, rehash_keys
from tidings.kinds.joins.kernels.rows import put_many
from tidings.kinds.joins.rows.row_contents import RowContents
from tidings.kinds.joins.rows.texts import Texts
from tidings.kinds.joins.schema.order_keys import ARROW, keys_of
from tidings.kinds.joins.schema.table import Table

OrderSpec = tuple[int, tuple[int, ...], int]
"""A table, its key columns, and the column that rows of one key are sorted by, or NONE."""
_REBUILD_FROM = 1 << 16  # buckets


class Rows:
    """`add` numbers rows and `forget` frees their numbers; the compiled loops insert them into the orders."""

    def __init__(self, tables: Sequence[Table], texts: Texts) -> None:
        self.tables, self.texts = tables, texts
        self.contents = RowContents()
        self.ledger: Ledger[int] = Ledger(tables, self.contents.are_equal)
        self._cells, self._row_cell, self._row_table = Growing(np.int64), Growing(np.int64), Growing(np.int32)
        self._free: list[list[int]] = [[] for _ in tables]
        self._looked_at: list[set[int]] = [set(table.key_places) for table in tables]
        self._orders: dict[OrderSpec, int] = {}
        self._order_records, self._key_columns = Growing(ORDER), Growing(np.int32)
        self._table_first, self._order_numbers = np.zeros(len(tables) + 1, np.int32), np.zeros(0, np.int32)
        self._empty_orders()

    def _empty_orders(self) -> None:
        self._used = np.zeros(COUNTERS, dtype=np.int64)
        self._entries, self._buckets = np.zeros(1024, dtype=ENTRY), np.zeros(64, dtype=BUCKET)
        self._directory, self._slots = np.zeros(256, dtype=np.int32), np.zeros(256, dtype=np.int32)
        self._key_first, self._key_values = np.zeros(65, dtype=np.int64), np.zeros(64, dtype=np.int64)

    def __len__(self) -> int:
        return sum(len(self.of(table)) for table in range(len(self.tables)))

    def room(self) -> int:
        """One more than the highest number of a row."""
        return len(self._row_cell)

    def of(self, table: int) -> list[int]:
        """The rows of a table."""
        return self.ledger.rows(table)

    def tables_of(self, rows: np.ndarray) -> np.ndarray:
        return self._row_table.all[rows]

    def names(self, table: int, columns: Sequence[pa.Array], texts: pa.Array) -> list[Hashable]:
        """The key of each row: the cells of its key columns, or its text."""
        key_columns = self.tables[table].key_places
        if not key_columns:
            return texts.to_pylist()
        cells = [self._cells_of(table, position, columns[position]).tolist() for position in key_columns]
        return cells[0] if len(cells) == 1 else list(zip(*cells, strict=True))

    def add(self, table: int, columns: Sequence[pa.Array], texts: pa.Array) -> np.ndarray:
        """Adds rows, given as typed columns and as JSON; returns their numbers."""
        count, width = len(texts), len(self.tables[table].names)
        free = self._free[table]
        again = [free.pop() for _ in range(min(count, len(free)))]
        new, first = count - len(again), len(self._row_cell)
        rows = np.concatenate([np.array(again, dtype=np.int64), np.arange(first, first + new)]).astype(
            np.int32
        )
        at = len(self._cells)
        self._cells.extend(np.full(new * width, NULL, dtype=np.int64))
        self._row_cell.extend(at + width * np.arange(new))
        self._row_table.extend(np.full(new, table, dtype=np.int32))
        where = self._row_cell.all[rows]
        for position in range(width):
            looked_at = position in self._looked_at[table]
            self._cells.all[where + position] = (
                self._cells_of(table, position, columns[position]) if looked_at else NULL
            )
        self.contents.put(rows, texts)
        return rows

    def forget(self, table: int, rows: Sequence[int]) -> None:
        """Frees the numbers of rows that are in no order any more."""
        self._free[table].extend(rows)
        self.contents.drop(np.asarray(rows, dtype=np.int64))

    def rebuild_orders(self) -> None:
        """Rebuilds the orders if most of their buckets belong to values that no row has any more."""
        live = self.room() - sum(map(len, self._free))
        if self._used[BUCKETS] > max(_REBUILD_FROM, 4 * live * len(self._orders)):
            self._empty_orders()
            for table in range(len(self.tables)):
                self._put(self.of(table), NONE)

    def order(self, spec: OrderSpec) -> int:
        """The number of an order; a new one is built from the current rows."""
        if spec in self._orders:
            return self._orders[spec]
        table, key, column = spec
        number = self._orders[spec] = len(self._orders)
        is_text = column != NONE and self.tables[table].types[column] == "text"
        self._order_records.extend([(table, column, is_text, len(self._key_columns), len(key))])
        self._key_columns.extend(np.array(key, dtype=np.int32))
        tables = np.array([spec[0] for spec in self._orders], dtype=np.int32)
        self._order_numbers = np.argsort(tables, kind="stable").astype(np.int32)
        self._table_first = np.searchsorted(
            tables[self._order_numbers], np.arange(len(self.tables) + 1)
        ).astype(np.int32)
        self._put(self.of(table), number)
        return number

    def load(self, table: int, columns: Sequence[pa.Array], texts: pa.Array) -> None:
        """Loads rows without a change: they are known to the ledger and are in every order."""
        rows = self.add(table, columns, texts)
        for name, row in zip(self.names(table, columns, texts), rows.tolist(), strict=True):
            self.ledger.known[table].setdefault(name, []).append(row)
        self._put(rows, NONE)

    def _put(self, rows: Sequence[int] | np.ndarray, order: int) -> None:
        """Puts rows into an order, or into all (NONE)."""
        rows, done = np.asarray(rows, dtype=np.int32), 0
        while (done := put_many(self.arrays(), rows, done, order)) < len(rows):
            self.grow()

    def look_at(self, table: int, columns: set[int]) -> None:
        """Gives columns cells from now on, also those of the current rows."""
        new = columns - self._looked_at[table]
        if not new:
            return
        self._looked_at[table] |= new
        rows = np.array(self.of(table), dtype=np.int64)
        if not len(rows):
            return
        contents = [json.loads(text) for text in self.contents.texts(rows).to_pylist()]
        for position in new:
            kind, name = self.tables[table].types[position], self.tables[table].names[position]
            column = pa.array([row[name] for row in contents])
            if kind == "timestamp":
                column = column.cast(pa.string())
            self._cells.all[self._row_cell.all[rows] + position] = self._cells_of(
                table, position, column.cast(ARROW[kind])
            )

    def arrays(self) -> RowArrays:
        return RowArrays(
            self._cells.all,
            self._row_cell.all,
            self._row_table.all,
            self._order_records.all,
            self._key_columns.all,
            self._table_first,
            self._order_numbers,
            self._entries,
            self._buckets,
            self._directory,
            self._slots,
            self._key_first,
            self._key_values,
            self.texts.key.all,
            self.texts.first.all,
            self.texts.bytes.all,
            self._used,
        )

    def grow(self) -> None:
        """Enlarges the arrays that are nearly full."""
        used, orders = self._used, max(8, len(self._orders))
        if used[BUCKETS] + orders > len(self._buckets):
            self._buckets = _larger(self._buckets, 2 * len(self._buckets) + orders)
            self._directory = np.zeros(_hash_size(len(self._buckets)), dtype=np.int32)
            rehash_buckets(self._buckets, int(used[BUCKETS]), self._directory)
        if used[KEYS] + orders >= len(self._key_first):
            self._key_first = _larger(self._key_first, 2 * len(self._key_first) + orders)
            self._slots = np.zeros(_hash_size(len(self._key_first)), dtype=np.int32)
            rehash_keys(self._key_first, self._key_values, int(used[KEYS]), self._slots)
        widest = max([1, *(len(key) for _, key, _ in self._orders)])
        if used[KEY_VALUES] + orders * widest > len(self._key_values):
            self._key_values = _larger(self._key_values, 2 * len(self._key_values) + orders * widest)
        # Buckets that moved left gaps; once packed, there is room for each to grow by half.
        counts = self._buckets["count"][: used[BUCKETS]].astype(np.int64)
        if used[ENTRIES] + 2 * counts.max(initial=0) + 8 * orders > len(self._entries) // 2:
            entries = np.zeros(int(4 * counts.sum() + 16 * orders + 4 * used[BUCKETS] + 1024), dtype=ENTRY)
            used[ENTRIES] = pack(self._buckets, int(used[BUCKETS]), self._entries, entries)
            self._entries = entries

    def _cells_of(self, table: int, position: int, column: pa.Array) -> np.ndarray:
        kind = self.tables[table].types[position]
        return self.texts.number_column(column) if kind == "text" else keys_of(kind, column)


def _larger(array: np.ndarray, size: int) -> np.ndarray:
    larger = np.zeros(size, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


def _hash_size(count: int) -> int:
    return 1 << (2 * count).bit_length()
