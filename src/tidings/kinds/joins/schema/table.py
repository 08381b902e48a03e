"""Tables: the columns of their rows, and the key that identifies a row.

A row is a tuple of Python values in the order of the columns, None for NULL. Equal rows have equal tuples and equal
texts: `read` alone decides which values are equal. Without a key the rows of a table are a bag.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from tidings.errors import EventError, TidingsError
from tidings.model.values import instant

Row = tuple[Any, ...]

TYPES = ("integer", "number", "text", "boolean", "date", "timestamp")
_LARGEST = 2**63 - 1  # and no less than its negative: the lowest 64-bit integer stands for NULL
_NEEDS = {
    "integer": "a whole number of at most 63 bits",
    "number": "a finite number",
    "text": "a text in Unicode",
    "boolean": "true or false",
    "date": "a date such as '2004-01-31'",
    "timestamp": "a time such as '2004-01-31T10:00:00Z'",
}
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TableError(TidingsError):
    """A table cannot be declared so."""


@dataclass(frozen=True)
class Table:
    """`Table("stocks", {"symbol": "text", "per": "number"}, key=["symbol"])`.

    Types are integer, number, text, boolean, date and timestamp. No condition and no join looks at the columns of
    `payload`; they only come along.
    """

    name: str
    columns: Mapping[str, str]
    key: Sequence[str] = ()
    payload: Sequence[str] = ()
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    types: tuple[str, ...] = field(init=False, repr=False, compare=False)
    key_places: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check(self)
        columns = dict(self.columns)
        names = tuple(columns)
        settled = {
            "columns": columns,
            "key": tuple(self.key),
            "payload": tuple(self.payload),
            "names": names,
            "types": tuple(columns.values()),
            "key_places": tuple(names.index(name) for name in self.key),
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    def __hash__(self) -> int:
        return hash((self.name, self.names, self.types, self.key, self.payload))

    def read(self, row: Mapping[str, Any]) -> Row:
        """The row's values in the order of the columns; EventError says what is wrong with it."""
        if not row.keys() <= self.columns.keys():
            name = next(name for name in row if name not in self.columns)
            raise EventError(
                f"table '{self.name}' has no column '{name}'; its columns are {', '.join(self.names)}"
            )
        values = tuple(
            None if (value := row.get(name)) is None else self._value(name, kind, value)
            for name, kind in self.columns.items()
        )
        for position in self.key_places:
            if values[position] is None:
                raise EventError(
                    f"a row of table '{self.name}' has no {self.names[position]}; every column of the key needs a value"
                )
        return values

    def key_of(self, values: Row) -> Row:
        """The values that identify a row: its key, or the whole row if the table has none."""
        return tuple(values[position] for position in self.key_places) if self.key else values

    def text(self, values: Row) -> str:
        """The row as canonical JSON: every column in order, no blanks, dates and times in ISO form."""
        return json.dumps(dict(zip(self.names, map(plain, values), strict=True)), **_CANONICAL)

    def _value(self, name: str, kind: str, value: Any) -> Any:
        read = _READERS[kind](value)
        if read is None:
            shown = repr(value) if len(repr(value)) <= 60 else repr(value)[:57] + "..."
            raise EventError(f"{self.name}.{name} is {shown}; the column needs {_NEEDS[kind]}, or null")
        return read


_CANONICAL: dict[str, Any] = {"ensure_ascii": False, "separators": (",", ":"), "allow_nan": False}


def plain(value: Any) -> Any:
    """A value of a row as JSON writes it; a timestamp always has six digits behind the second."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
    return value.isoformat() if isinstance(value, date) else value


def _integer(value: Any) -> int | None:
    return value if type(value) is int and -_LARGEST <= value <= _LARGEST else None


def _number(value: Any) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        found = float(value) + 0.0  # so that -0.0 is 0.0
    except OverflowError:
        return None
    return found if found - found == 0 else None


def _text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return None
    return value


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _date(value: Any) -> date | None:
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            return None
    return value if isinstance(value, date) and not isinstance(value, datetime) else None


def _timestamp(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        try:
            return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        except OverflowError:
            return None
    if isinstance(value, str) and (moment := instant(value)) is not None:
        try:
            return _EPOCH + timedelta(microseconds=moment)
        except OverflowError:
            return None
    return None


_READERS = {
    "integer": _integer,
    "number": _number,
    "text": _text,
    "boolean": _boolean,
    "date": _date,
    "timestamp": _timestamp,
}


def by_name(tables: Iterable[Table]) -> dict[str, Table]:
    """Tables by their names; a TableError says what is no table, or is given twice."""
    found: dict[str, Table] = {}
    if isinstance(tables, Table):
        raise TableError(f"the tables are one table '{tables.name}'; give a list of them")
    for table in tables:
        if not isinstance(table, Table):
            raise TableError(f"{table!r} is no table; give Table(name, columns, key=...)")
        if table.name in found:
            raise TableError(f"there are two tables '{table.name}'; give each its own name")
        found[table.name] = table
    return found


def _check(table: Table) -> None:
    if not table.name or not isinstance(table.name, str):
        raise TableError(f"{table.name!r} is no name of a table; give a text such as 'stocks'")
    if not isinstance(table.columns, Mapping) or not table.columns:
        raise TableError(f"table '{table.name}' has no columns; give them as {{'symbol': 'text'}}")
    for name, kind in table.columns.items():
        if not name or not isinstance(name, str):
            raise TableError(
                f"a column of '{table.name}' has the name {name!r}; give a text such as 'symbol'"
            )
        if kind not in TYPES:
            raise TableError(
                f"{table.name}.{name} has the type {kind!r}; a type is one of {', '.join(TYPES)}"
            )
    for role, names in (("key", table.key), ("payload", table.payload)):
        if isinstance(names, str):
            raise TableError(f"the {role} of table '{table.name}' is a text; give a list such as [{names!r}]")
        for name in names:
            if name not in table.columns:
                columns = ", ".join(table.columns)
                raise TableError(f"the {role} of '{table.name}' names {name!r}; its columns are {columns}")
        if len(set(names)) < len(names):
            raise TableError(f"the {role} of table '{table.name}' names a column twice; name each once")
