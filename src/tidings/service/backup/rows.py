"""Reads the rows of a store's tables in chunks, and writes them into the tables of another, of either database.

A chunk is an Arrow file of some megabytes, so memory is bounded whatever a table holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, Final

import pyarrow as pa
from sqlalchemy import Connection, MetaData, Table, func, inspect, select, text

from tidings.errors import TidingsError
from tidings.service.store.transactions import insert_columns

_ROWS: Final = 20_000
_BYTES: Final = 8 << 20
_FETCHED: Final = 200  # at once; an event may have megabytes
_COMPRESSED: Final = pa.ipc.IpcWriteOptions(compression="zstd")


def row_count(connection: Connection, tables: MetaData) -> int:
    """The number of rows of all tables."""
    return sum(
        int(connection.execute(select(func.count()).select_from(table)).scalar_one())
        for table in tables.sorted_tables
    )


def read_chunks(connection: Connection, tables: MetaData) -> Iterator[tuple[str, int, bytes]]:
    """The rows of all tables: the name of each chunk, its rows, its content. An empty table has one chunk."""
    for table in tables.sorted_tables:
        for number, rows in zip(count(), _chunks(connection, table), strict=False):
            columns = zip(*rows, strict=True) if rows else [()] * len(table.columns)
            chunk = pa.table(dict(zip(table.columns.keys(), map(list, columns), strict=True)))
            sink = pa.BufferOutputStream()
            with pa.ipc.new_file(sink, chunk.schema, options=_COMPRESSED) as writer:
                writer.write_table(chunk)
            yield f"{table.name}/{number:06d}.arrow", len(rows), sink.getvalue().to_pybytes()


def write_chunk(connection: Connection, name: str, content: bytes) -> None:
    """Inserts a chunk into the table that its name has. What a new table begins with is removed before its first
    one."""
    table, _, number = name.partition("/")
    found = inspect(connection)
    if table not in found.get_table_names():
        raise TidingsError(f"the backup has a table {table!r}, which this program does not know")
    chunk = pa.ipc.open_file(content).read_all()
    unknown = set(chunk.column_names) - {column["name"] for column in found.get_columns(table)}
    if unknown:
        raise TidingsError(f"the backup has columns of {table} that this program does not know: {unknown}")
    if number == f"{0:06d}.arrow":
        connection.execute(text(f"DELETE FROM {table}"))
    columns = {column: chunk[column].to_pylist() for column in chunk.column_names}
    insert_columns(connection, Table(table, MetaData()), columns)


def _chunks(connection: Connection, table: Table) -> Iterator[list[Any]]:
    rows: list[Any] = []
    size, chunks = 0, 0
    order = table.primary_key.columns
    query = select(table).order_by(*order).execution_options(yield_per=_FETCHED)
    for row in connection.execute(query):
        rows.append(row)
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(rows) == _ROWS or size > _BYTES:
            yield rows
            rows, size, chunks = [], 0, chunks + 1
    if rows or not chunks:
        yield rows
