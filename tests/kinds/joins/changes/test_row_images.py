"""Images are what `Table.read` and `Table.text` say, however many rows are read at once."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tidings.kinds.joins.changes.row_images import NeedsTableRead, RowImages, canonical, typed
from tidings.kinds.joins.schema.order_keys import ARROW
from tidings.kinds.joins.schema.table import TYPES, Table

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.integers(-(2**63) + 1, 2**63 - 1),
    "number": st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(10**17), 10**17).map(float)
    | st.decimals(-1000, 1000, places=3).map(float),
    "text": st.text() | st.sampled_from(['"', "\\", "\n", "\x00", "\x7f", "\u2028", "é😀", "null", ""]),
    "boolean": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(UTC)),
}
ALL = Table('a"ll', {f"{kind}\n é": kind for kind in TYPES})


@examples(60)
@given(st.lists(st.tuples(*(st.none() | VALUES[kind] for kind in TYPES)), min_size=1, max_size=20))
def test_texts_are_those_of_the_table(rows: list[tuple[Any, ...]]) -> None:
    rows = [ALL.read(dict(zip(ALL.names, row, strict=True))) for row in rows]
    columns = [pa.array([row[i] for row in rows], ARROW[kind]) for i, kind in enumerate(TYPES)]
    assert canonical(ALL, columns).to_pylist() == [ALL.text(row) for row in rows]


@examples(60)
@given(st.lists(st.tuples(*(st.none() | VALUES[kind] for kind in TYPES)), min_size=1, max_size=20))
def test_typed_columns_hold_what_the_table_reads(rows: list[tuple[Any, ...]]) -> None:
    given = {
        name: pa.array([row[i] for row in rows], ARROW[kind])
        for i, (name, kind) in enumerate(ALL.columns.items())
    }
    columns = typed(ALL, given, len(rows))
    read = [ALL.read(dict(zip(ALL.names, row, strict=True))) for row in rows]
    assert list(zip(*(column.to_pylist() for column in columns), strict=True)) == read
    assert RowImages.of(ALL, columns).texts.to_pylist() == [ALL.text(row) for row in read]


@pytest.mark.parametrize(
    ("kind", "array", "values"),
    [
        ("integer", pa.array([1, None], pa.int8()), [1, None]),
        ("integer", pa.array([2**63 - 1], pa.uint64()), [2**63 - 1]),
        ("number", pa.array([1, 2**63 - 1]), [1.0, float(2**63 - 1)]),
        ("number", pa.array([Decimal("0.10"), None]), [0.1, None]),
        ("number", pa.array([0.5], pa.float32()), [0.5]),
        ("text", pa.array(["a", "a", None]).dictionary_encode(), ["a", "a", None]),
        ("text", pa.array(["a"], pa.large_string()), ["a"]),
        ("text", pa.array(["a"], pa.string_view()), ["a"]),
        ("date", pa.array(["2004-01-31", None]), [date(2004, 1, 31), None]),
        ("date", pa.array([date(2004, 1, 31)], pa.date64()), [date(2004, 1, 31)]),
        ("timestamp", pa.array(["2004-01-31T10:00:00.5Z"]), [datetime(2004, 1, 31, 10, 0, 0, 500000, UTC)]),
        ("timestamp", pa.array(["2004-01-31T10:00:00+02:00"]), [datetime(2004, 1, 31, 8, tzinfo=UTC)]),
        ("timestamp", pa.array([datetime(2004, 1, 31, 10)], pa.timestamp("ns")), [datetime(2004, 1, 31, 10, tzinfo=UTC)]),
        (
            "timestamp",
            pa.array([datetime(2004, 1, 31, 10, tzinfo=UTC)], pa.timestamp("s", "Europe/Berlin")),
            [datetime(2004, 1, 31, 10, tzinfo=UTC)],
        ),
        ("boolean", pa.nulls(2), [None, None]),
        ("boolean", pa.nulls(2, pa.int64()), [None, None]),
    ],
)  # fmt: skip
def test_other_types_of_arrow_are_taken(kind: str, array: pa.Array, values: list[Any]) -> None:
    (column,) = typed(Table("t", {"a": kind}), {"a": array}, len(array))
    assert column.type == ARROW[kind]
    assert column.to_pylist() == values


@pytest.mark.parametrize(
    ("kind", "array"),
    [
        ("integer", pa.array([-(2**63)])),
        ("integer", pa.array([1.0])),
        ("integer", pa.array([True])),
        ("number", pa.array([float("nan")])),
        ("number", pa.array([float("inf")])),
        ("number", pa.array(["1"])),
        ("text", pa.array([1])),
        ("text", pa.array([b"a"])),
        ("boolean", pa.array([1])),
        ("date", pa.array(["31.1.2004"])),
        ("date", pa.array([-719163], pa.int32()).cast(pa.date32())),
        ("date", pa.array([1])),
        ("timestamp", pa.array(["0000-01-31T10:00:00Z"])),
        ("timestamp", pa.array(["soon"])),
        ("timestamp", pa.array([2**62]).cast(pa.timestamp("us"))),
    ],
)
def test_what_is_not_sure_is_not_taken(kind: str, array: pa.Array) -> None:
    with pytest.raises((NeedsTableRead, pa.ArrowInvalid)):
        typed(Table("t", {"a": kind}), {"a": array}, len(array))


def test_keys_and_unknown_columns_are_not_taken_either() -> None:
    table = Table("t", {"a": "integer", "b": "integer"}, key=["a"])
    with pytest.raises(NeedsTableRead):
        typed(table, {"b": pa.array([1])}, 1)
    with pytest.raises(NeedsTableRead):
        typed(table, {"a": pa.array([1]), "c": pa.array([1])}, 1)
    columns = typed(table, {"a": pa.array([1, 2]), "c": pa.nulls(2)}, 2)
    assert [column.to_pylist() for column in columns] == [[1, 2], [None, None]]
    assert RowImages.of(table, columns).partial.tolist() == [True, True]
