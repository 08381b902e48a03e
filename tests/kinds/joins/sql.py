"""The rows of tables in DuckDB, and what a join's text gives there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import duckdb

from tidings.kinds.joins.schema.table import Row, Table

_TYPES = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}


class Sql:
    def __init__(self, tables: Iterable[Table]) -> None:
        self.tables = {table.name: table for table in tables}
        self._connection = duckdb.connect(config={"threads": 1})
        for table in self.tables.values():
            columns = ", ".join(f"{name} {_TYPES[kind]}" for name, kind in table.columns.items())
            self._connection.execute(f"CREATE TABLE {table.name} ({columns})")

    def set(self, table: str, rows: Counter[Row]) -> None:
        """Make these the rows of a table."""
        self._connection.execute(f"DELETE FROM {table}")
        if rows:
            places = ", ".join("?" * len(self.tables[table].names))
            several = ", ".join([f"({places})"] * rows.total())
            values = [_naive(value) for row in rows.elements() for value in row]
            self._connection.execute(f"INSERT INTO {table} VALUES {several}", values)

    def result(self, text: str, tables: Sequence[str]) -> Counter[tuple[Any, ...]]:
        """The joined rows of `SELECT * …`, as all columns of all tables in order, those of USING once for each table."""
        columns = [f"{name}.{column}" for name in tables for column in self.tables[name].names]
        said = text.replace("SELECT *", f"SELECT {', '.join(columns)}", 1)
        return Counter(self._connection.execute(said).fetchall())


def flat(joined: Counter[tuple[Row, ...]]) -> Counter[tuple[Any, ...]]:
    """Joined rows as DuckDB gives them."""
    return Counter({tuple(_naive(value) for row in rows for value in row): n for rows, n in joined.items()})


def _naive(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
