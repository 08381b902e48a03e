"""Converts the values of Debezium's change events to values of declared tables.

A message carries its schema or not. The schema marks days, milliseconds, microseconds, nanoseconds and unscaled
decimals. Without it, the declared type of the column decides: an integer in a date is days since 1970; in a
timestamp it is milliseconds below 10^14, microseconds below 10^17 and nanoseconds above; a text in a number is a decimal.
A database's table may have more columns than are declared here; the others are left out.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types

from tidings.kinds.joins.changes.row_images import NeedsTableRead
from tidings.kinds.joins.schema.order_keys import ARROW
from tidings.kinds.joins.schema.table import Table

# The encoding of a column: a count of units of this many nanoseconds, or a decimal with this scale.
Hint = tuple[str, int]

_DAY = 86_400_000_000_000
_UNITS = {
    "io.debezium.time.Date": _DAY,
    "io.debezium.time.Timestamp": 1_000_000,
    "io.debezium.time.MicroTimestamp": 1_000,
    "io.debezium.time.NanoTimestamp": 1,
    "org.apache.kafka.connect.data.Date": _DAY,
    "org.apache.kafka.connect.data.Timestamp": 1_000_000,
}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_LIMITS = ((10**14, 1_000_000), (10**17, 1_000))  # below: milliseconds, microseconds; above: nanoseconds
_DECIMAL_TEXT = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WHOLE_TEXT = re.compile(r"[+-]?[0-9]+")
_TIMES = ("date", "timestamp")


def hints_of(schema: object) -> dict[str, Hint]:
    """The hints in the schema of a message, for columns whose values need one."""
    hints: dict[str, Hint] = {}
    for part in _fields(schema):
        if part.get("field") in ("before", "after"):
            for column in _fields(part):
                name, kind = column.get("field"), column.get("name")
                if kind in _UNITS:
                    hints[str(name)] = ("time", _UNITS[str(kind)])
                elif kind == _DECIMAL:
                    parameters = column.get("parameters")
                    scale = parameters.get("scale", "0") if isinstance(parameters, Mapping) else "0"
                    if _WHOLE_TEXT.fullmatch(str(scale)):
                        hints[str(name)] = ("decimal", int(scale))
    return hints


def _fields(schema: object) -> list[Mapping[str, Any]]:
    fields = schema.get("fields") if isinstance(schema, Mapping) else None
    return [field for field in fields if isinstance(field, Mapping)] if isinstance(fields, list) else []


# -- one row


def row_of(table: Table, image: object, hints: Mapping[str, Hint]) -> object:
    """A Debezium image as a row of the table, for `Table.read`."""
    if not isinstance(image, Mapping):
        return image
    return {
        name: _value(kind, image[name], hints.get(name))
        for name, kind in table.columns.items()
        if name in image
    }


def _value(kind: str, value: Any, hint: Hint | None) -> Any:
    if kind in _TIMES and type(value) is int:
        unit = hint[1] if hint and hint[0] == "time" else _DAY if kind == "date" else _unit(value)
        try:
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value * unit // 1000)
        except OverflowError:
            return value
        return moment.date() if kind == "date" else moment
    if kind in ("integer", "number"):
        return _decimal(kind, value, hint)
    return value


def _unit(value: int) -> int:
    return next((unit for limit, unit in _LIMITS if abs(value) < limit), 1)


def _decimal(kind: str, value: Any, hint: Hint | None) -> Any:
    """A decimal in any form of `decimal.handling.mode` as a number; any other value is returned as it is."""
    scale, unscaled = hint[1] if hint and hint[0] == "decimal" else None, value
    if isinstance(value, Mapping):  # of variable scale
        scale, unscaled = value.get("scale"), value.get("value")
    try:
        if isinstance(unscaled, str) and type(scale) is int:
            whole = int.from_bytes(base64.b64decode(unscaled, validate=True), "big", signed=True)
            number = Decimal(f"{whole}e{-scale}")
        elif isinstance(value, str) and _DECIMAL_TEXT.fullmatch(value):
            number = Decimal(value)
        else:
            return value
    except (ValueError, ArithmeticError):
        return value
    if kind == "number":
        return float(number)
    fits = number.adjusted() < 20 and number == number.to_integral_value()
    return int(number) if fits else value


# -- many rows


def json_types(table: Table, images: Iterable[object]) -> pa.StructType:
    """The Arrow types to read images with: sample images show whether times and decimals are texts or numbers."""
    python_types: dict[str, type] = {}
    for image in images:
        if isinstance(image, Mapping):
            python_types |= {name: type(value) for name, value in image.items() if value is not None}
    return pa.struct(
        [(name, _json_type(kind, python_types.get(name))) for name, kind in table.columns.items()]
    )


def _json_type(kind: str, python_type: type | None) -> pa.DataType:
    if python_type is str and kind != "boolean":
        return pa.string()
    return pa.int64() if kind in _TIMES else ARROW[kind]


def decoded(table: Table, given: dict[str, pa.Array], hints: Mapping[str, Hint]) -> dict[str, pa.Array]:
    """Converts columns of images to columns of the table's types."""
    return {name: _column(table.columns[name], array, hints.get(name)) for name, array in given.items()}


def _column(kind: str, array: pa.Array, hint: Hint | None) -> pa.Array:
    if kind in _TIMES and types.is_integer(array.type):
        return _times(kind, array, hint)
    if kind in ("integer", "number") and types.is_string(array.type):
        if hint or not _all_decimals(array):
            return pa.array([_decimal(kind, value, hint) for value in array.to_pylist()], ARROW[kind])
        return array.cast(ARROW[kind])
    return array


def _all_decimals(array: pa.Array) -> bool:
    return pc.all(pc.match_substring_regex(array, f"^(?:{_DECIMAL_TEXT.pattern})$")).as_py() is not False


def _times(kind: str, array: pa.Array, hint: Hint | None) -> pa.Array:
    values = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    unit: int | np.ndarray
    if hint and hint[0] == "time":
        unit = hint[1]
    elif kind == "date":
        unit = _DAY
    else:
        size = np.abs(values)
        unit = np.where(size < _LIMITS[0][0], _LIMITS[0][1], np.where(size < _LIMITS[1][0], _LIMITS[1][1], 1))
    coarse, fine = np.maximum(np.asarray(unit) // 1000, 1), np.asarray(unit) == 1
    if len(values) and np.abs(values.astype(np.float64) * coarse).max() > 2**62:
        raise NeedsTableRead
    moments = np.where(fine, values // 1000, values * coarse)
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    if kind == "date":
        return pa.array((moments // (_DAY // 1000)).astype(np.int32), mask=nulls).cast(pa.date32())
    return pa.array(moments, mask=nulls).cast(ARROW[kind])
