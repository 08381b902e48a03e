"""Row images: the rows that changes carry, as Arrow columns of the table's types, with their canonical texts.

Arrow converts all rows at once. `NeedsTableRead` is raised if some row may be converted wrongly; then `Table.read`,
which is authoritative, reads the rows one by one. Both ways give the same image: equal rows have equal texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types

from tidings.errors import EventError
from tidings.kinds.joins.schema.order_keys import ARROW
from tidings.kinds.joins.schema.table import Row, Table

_DAYS = (-719162, 2932896)  # of the years 1 to 9999, which are Python's
_MICROSECONDS = (_DAYS[0] * 86_400_000_000, (_DAYS[1] + 1) * 86_400_000_000 - 1)
_PLAIN_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_PLAIN_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z$"
_FEW = 16
_TO_ESCAPE = r'[\x00-\x1f"\\]'


class NeedsTableRead(ValueError):
    """Some of these rows may be wrong, or have a form that only `Table.read` reads."""


@dataclass(frozen=True, slots=True)
class RowImages:
    """Rows of one table. `partial` marks rows of a table with a key whose other columns are all null."""

    columns: list[pa.Array]
    texts: pa.Array
    partial: np.ndarray

    def __len__(self) -> int:
        return len(self.partial)

    def take(self, rows: np.ndarray) -> RowImages:
        """The images of some rows; the same object if these are all."""
        if len(rows) == len(self):
            return self
        which = pa.array(rows)
        return RowImages(
            [column.take(which) for column in self.columns], self.texts.take(which), self.partial[rows]
        )

    @classmethod
    def of(cls, table: Table, columns: Sequence[pa.Array]) -> RowImages:
        """The images of columns that have the table's types."""
        others = [column for name, column in zip(table.names, columns, strict=True) if name not in table.key]
        partial = np.full(len(columns[0]), bool(table.key and others))
        for column in others:
            partial &= column.is_null().to_numpy(zero_copy_only=False)
        return cls(list(columns), canonical(table, columns), partial)


@dataclass(slots=True)
class RowImageBuilder:
    """Collects the images of one table: whole columns first, then rows that were read one by one."""

    table: Table
    pieces: list[list[pa.Array]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    count: int = 0

    def add(self, columns: list[pa.Array]) -> int:
        """Adds rows as columns; returns the number of the first."""
        first = self.count
        self.pieces.append(columns)
        self.count += len(columns[0])
        return first

    def add_row(self, row: Row) -> int:
        """Adds a single row; returns its number among the single rows, which come after all others."""
        self.rows.append(row)
        return len(self.rows) - 1

    def images(self) -> RowImages:
        """The images of all rows that were added."""
        if not self.pieces and len(self.rows) <= _FEW:
            return _of_few(self.table, self.rows)
        pieces = [*self.pieces, _columns(self.table, self.rows)] if self.rows else self.pieces
        columns = (
            pieces[0] if len(pieces) == 1 else [pa.concat_arrays(part) for part in zip(*pieces, strict=True)]
        )
        return RowImages.of(self.table, columns)


def _columns(table: Table, rows: Sequence[Row]) -> list[pa.Array]:
    return [
        pa.array([row[position] for row in rows], ARROW[kind]) for position, kind in enumerate(table.types)
    ]


def _of_few(table: Table, rows: Sequence[Row]) -> RowImages:
    """The same as `RowImages.of`, but faster for a few rows."""
    others = [position for position in range(len(table.names)) if position not in table.key_places]
    partial = [
        bool(table.key and others) and all(row[position] is None for position in others) for row in rows
    ]
    texts = pa.array([table.text(row) for row in rows], pa.string())
    return RowImages(_columns(table, rows), texts, np.array(partial, dtype=np.bool_))


def typed(table: Table, given: dict[str, pa.Array], count: int) -> list[pa.Array]:
    """Columns as the table declares them, all rows checked; a declared column that is not given is NULL."""
    for name, array in given.items():
        if name not in table.columns and array.null_count < count:
            raise NeedsTableRead
    columns = []
    for name, kind in table.columns.items():
        array = given.get(name)
        columns.append(pa.nulls(count, ARROW[kind]) if array is None else _typed(kind, array))
    for position in table.key_places:
        if columns[position].null_count:
            raise NeedsTableRead
    return columns


def _typed(kind: str, array: pa.Array) -> pa.Array:
    source = array.type
    if types.is_dictionary(source):
        array = array.dictionary_decode()
        source = array.type
    if types.is_large_string(source) or types.is_string_view(source):
        array = array.cast(pa.string())
        source = array.type
    if types.is_null(source):
        return array.cast(ARROW[kind])
    if kind == "integer" and types.is_integer(source):
        return _within(array.cast(pa.int64()), (-(2**63) + 1, 2**63 - 1))
    if kind == "number" and (
        types.is_integer(source) or types.is_floating(source) or types.is_decimal(source)
    ):
        if types.is_decimal(source):
            array = array.cast(pa.string())  # by way of its text it is rounded as everything else
        numbers = array.cast(pa.float64(), safe=False)
        if not _all(pc.is_finite(numbers)):
            raise NeedsTableRead
        return pc.add(numbers, 0.0)  # so that -0.0 is 0.0
    if kind == "text" and types.is_string(source):
        return array
    if kind == "boolean" and types.is_boolean(source):
        return array
    if kind == "date" and (types.is_date(source) or types.is_string(source)):
        if types.is_string(source):
            array = _of_texts(kind, array, _PLAIN_DATE)
        days = array.cast(pa.date32())
        _within(days.cast(pa.int32()), _DAYS)
        return days
    if kind == "timestamp" and (types.is_timestamp(source) or types.is_string(source)):
        if types.is_string(source):
            array = _of_texts(kind, array, _PLAIN_TIME)
        elif source.unit != "us":
            array = array.cast(pa.timestamp("us", source.tz), safe=source.unit != "ns")
        moments = array.view(ARROW["timestamp"])
        _within(moments.cast(pa.int64()), _MICROSECONDS)
        return moments
    if array.null_count == len(array):
        return pa.nulls(len(array), ARROW[kind])
    raise NeedsTableRead


def _of_texts(kind: str, texts: pa.Array, plain: str) -> pa.Array:
    """Dates or timestamps of their ISO texts."""
    if _all(pc.match_substring_regex(texts, plain)):
        return texts.cast(ARROW[kind])
    column_table = Table("one", {"value": kind})
    encoded = texts.dictionary_encode()
    try:
        values = [column_table.read({"value": text})[0] for text in encoded.dictionary.to_pylist()]
    except EventError:
        raise NeedsTableRead from None
    return pa.array(values, ARROW[kind]).take(encoded.indices)


def _within(whole: pa.Array, bounds: tuple[int, int]) -> pa.Array:
    found = pc.min_max(whole).as_py()
    if found["min"] is not None and not bounds[0] <= found["min"] <= found["max"] <= bounds[1]:
        raise NeedsTableRead
    return whole


def _all(tests: pa.Array) -> bool:
    """Whether all hold that are not null."""
    return pc.all(tests).as_py() is not False


# -- canonical texts


def canonical(table: Table, columns: Sequence[pa.Array]) -> pa.Array:
    """The rows as `Table.text` writes them."""
    parts: list[pa.Array | str] = []
    before = "{"
    for name, kind, column in zip(table.names, table.types, columns, strict=True):
        parts += [f"{before}{_quoted(name)}:", _values(kind, column)]
        before = ","
    return pc.binary_join_element_wise(*parts, "}", "", null_handling="replace", null_replacement="null")


def names_of(table: Table, columns: Sequence[pa.Array], texts: pa.Array) -> pa.Array:
    """The names of rows: the text of the key, or of the whole row."""
    if not table.key:
        return texts
    key = Table("key", {name: table.columns[name] for name in table.key})
    return canonical(key, [columns[place] for place in table.key_places])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _values(kind: str, column: pa.Array) -> pa.Array:
    """The JSON texts of values, null where they are."""
    if kind == "text":
        return _by_python(_in_quotes(column), column, pc.match_substring_regex(column, _TO_ESCAPE), _quoted)
    if kind == "number":
        texts = column.cast(pa.string())
        size = pc.abs(column)
        # Arrow has other bounds than Python between the plain form and the one with an exponent.
        odd = pc.or_(pc.match_substring(texts, "e"), pc.and_(pc.less(size, 1e-4), pc.greater(size, 0.0)))
        with_point = pc.binary_join_element_wise(texts, ".0", "")
        return _by_python(pc.if_else(pc.match_substring(texts, "."), texts, with_point), column, odd, repr)
    if kind == "date":
        return _in_quotes(column.cast(pa.string()))
    if kind == "timestamp":
        local = column.view(pa.timestamp("us"))  # Arrow is twenty times as slow where there is a zone
        texts = pc.replace_substring(local.cast(pa.string()), " ", "T", max_replacements=1)
        return pc.binary_join_element_wise('"', texts, 'Z"', "")
    return column.cast(pa.string())


def _in_quotes(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _by_python(texts: pa.Array, column: pa.Array, odd: pa.Array, write: Callable[[Any], str]) -> pa.Array:
    """The texts; those of the values marked `odd` are written by Python."""
    odd = pc.fill_null(odd, False)
    if not pc.any(odd).as_py():
        return texts
    return pc.replace_with_mask(texts, odd, pa.array(map(write, column.filter(odd).to_pylist()), pa.string()))
