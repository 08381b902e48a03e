"""Events in Arrow columns match what the same events match as documents, whatever the type of a column.

A null is not there, where a document would have it as null: what is compared is a column against documents without it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.kinds.filters import cases
from tests.kinds.filters.test_index import index_of, matched, pairs_of
from tidings.formats.namespaces import XSD
from tidings.kinds.filters.attribute_reader import AttributeReader
from tidings.kinds.filters.columns import read_events
from tidings.language.query import (
    AnyElement,
    Attribute,
    Between,
    Comparison,
    Condition,
    Exists,
    Folded,
    Missing,
    OneOf,
    TextTest,
)
from tidings.model.terms import Literal

HOUR = timezone(timedelta(hours=1))
CONSTANTS = [
    0,
    1,
    2,
    5,
    -1,
    100,
    0.1,
    0.5,
    2.5,
    2**53,
    2**53 + 1,
    2**63,
    10**20,
    "",
    "a",
    "b",
    "1",
    "0.5",
    "Zürich",
    True,
]
CONSTANTS += [False, "2004-01-31", "2004-01-31T10:30:00"]
LITERALS = [cases.constant(value) for value in CONSTANTS]
LITERALS += [
    Literal(text, XSD + kind)
    for text, kind in (
        ("2004-01-31", "date"),
        ("2004-01-31T10:30:00Z", "dateTime"),
        ("2004-01-31T10:30:00.000001Z", "dateTime"),
        ("1969-12-31T23:59:59.5Z", "dateTime"),
        ("0.10000000149011612", "double"),
    )
]
PATHS = ["a", "a.b", "a.c", "a.b.d"]


def conditions() -> list[Condition]:
    made: list[Condition] = []
    for path in PATHS:
        attribute = Attribute(path)
        made += [Exists(attribute), Missing(attribute), OneOf(attribute, tuple(LITERALS[:6]), True)]
        made += [OneOf(attribute, (cases.constant("a"), cases.constant(5)), True)]
        made += [
            TextTest(attribute, "CONTAINS", Literal("a")),
            TextTest(attribute, "STARTS", Literal("2004")),
        ]
        made += [
            Comparison(Folded(attribute), "=", Literal("ZÜRICH")),
            Between(attribute, LITERALS[1], LITERALS[5]),
        ]
        made += [Comparison(attribute, "<", Attribute("a.b"))]
        for literal in LITERALS:
            made += [Comparison(attribute, op, literal) for op in ("=", "<", ">=", "!=")]
    made.append(AnyElement("x", Attribute("a"), Comparison(Attribute("x.b"), "=", cases.constant(1))))
    return made


CONDITIONS = conditions()
INDEX = index_of(CONDITIONS)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def assert_same(
    column: pa.Array | pa.ChunkedArray, documents: Sequence[dict[str, Any]] | None = None
) -> None:
    """A column `a` against documents; by default what Python makes of it."""
    if documents is None:
        documents = [without_nulls({"a": value}) for value in column.to_pylist()]
    reader = AttributeReader(INDEX)
    found = read_events(pa.table({"a": column, "unasked": column}), reader.wanted)
    by_column = matched(INDEX, reader.pairs(found, lambda event: documents[event]))
    by_document = matched(INDEX, pairs_of(INDEX, documents))
    differences = [(CONDITIONS[i], documents[j]) for i, j in sorted(by_column ^ by_document)[:3]]
    assert by_column == by_document, differences
    assert len(found.first) == len(documents) + 1
    if any(documents):
        assert by_column


WHOLE = [0, 1, 5, None, 100]
MOMENTS = [
    datetime(2004, 1, 31, 10, 30),
    None,
    datetime(2004, 1, 31),
    datetime(1969, 12, 31, 23, 59, 59, 500_000),
]
MOMENTS += [datetime(2004, 1, 31, 10, 30, 0, 1), datetime(9999, 12, 31), datetime(1, 1, 1)]
STRUCT = pa.struct({"b": pa.int64(), "c": pa.string()})
COLUMNS: dict[str, pa.Array | pa.ChunkedArray] = {
    **{str(kind): pa.array(WHOLE, kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint32())},
    "int64": pa.array([2**53, 2**53 + 1, -(2**63), 2**63 - 1, None]),
    "uint64": pa.array([2**63, 2**64 - 1, 0, None], pa.uint64()),
    "float64": pa.array([0.1, 0.5, 1e20, 1e22, 1e-7, -0.0, 2.0**53, float("nan"), float("inf"), None, 1.0, 123456.789]),
    "float32": pa.array([0.1, 0.5, 1e20, None, 2.5, 16777216.0], pa.float32()),
    "float16": pa.array([0.5, 2.5, 0.1, None], pa.float16()),
    "decimal128": pa.array([Decimal("0.10"), Decimal("5.00"), None, Decimal("-1.00")], pa.decimal128(10, 2)),
    "decimal of many digits": pa.array([Decimal(10**20), Decimal(2**53 + 1)], pa.decimal128(38, 0)),
    "small decimal": pa.array([Decimal("1e-12"), Decimal("0.1")], pa.decimal128(30, 12)),
    "decimal256": pa.array([Decimal(10**60), Decimal("5")], pa.decimal256(70, 2)),
    "decimal of negative scale": pa.array([Decimal(100), Decimal(500)], pa.decimal128(5, -2)),
    "bool": pa.array([True, False, None]),
    "date32": pa.array([date(2004, 1, 31), date(2004, 2, 1), None, date(1, 1, 1)], pa.date32()),
    "date64": pa.array([date(2004, 1, 31), None], pa.date64()),
    **{
        f"timestamp[{unit}]": pa.array([m and m.replace(microsecond=0) for m in MOMENTS], pa.timestamp(unit))
        for unit in ("s", "ms", "us")
    },
    "timestamp[us] exact": pa.array(MOMENTS, pa.timestamp("us")),
    "timestamp[ns]": pa.array(MOMENTS[:5], pa.timestamp("ns")),
    "timestamp in UTC": pa.array([m and m.replace(tzinfo=UTC) for m in MOMENTS], pa.timestamp("us", "UTC")),
    "string": pa.array(["", "a", "1", "0.5", "Zürich", "ZÜRICH", None, "2004-01-31", "2004-01-31T10:30:00", "true"]),
    "large_string": pa.array(["", "a", "1", None, "Zürich"], pa.large_string()),
    "string_view": pa.array(["", "a", "1", None, "a text of more than twelve"], pa.string_view()),
    "dictionary": pa.array(["a", "b", None, "a", "1"]).dictionary_encode(),
    "dictionary of numbers": pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0]), pa.array([5, 1])),
    "dictionary with null": pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["a", None])),
    "null": pa.nulls(3),
    "struct": pa.array([{"b": 1, "c": "a"}, {"b": None, "c": ""}, None, {"b": 5, "c": None}], STRUCT),
    "struct in struct": pa.array([{"b": {"d": 1}}, {"b": None}, {"b": {"d": None}}, None], pa.struct({"b": pa.struct({"d": pa.int8()})})),
    "list": pa.array([[1, 5], [], None, [None], [5, None, 100], [0]], pa.list_(pa.int32())),
    "list of texts": pa.array([["a", "1"], ["Zürich"], [], None], pa.list_(pa.string())),
    "large_list": pa.array([[1, 5], [], None, [None]], pa.large_list(pa.int64())),
    "fixed_size_list": pa.array([[1, 5], None, [None, 5], [100, 0]], pa.list_(pa.int64(), 2)),
    "list_view": pa.array([[1, 5], [], None, [None]], pa.list_view(pa.int64())),
    "list of lists": pa.array([[[1], [5, 2]], [[]], [None, []], None, [[None]]], pa.list_(pa.list_(pa.int64()))),
    "list of structs": pa.array([[{"b": 1, "c": "a"}, {"b": 5, "c": None}], [], [None], [{"b": None, "c": "b"}], None], pa.list_(STRUCT)),
    "struct of lists": pa.array([{"b": [1, 5]}, {"b": []}, {"b": None}, None, {"b": [None]}], pa.struct({"b": pa.list_(pa.int8())})),
    "list of booleans": pa.array([[True, False], [None, True], []], pa.list_(pa.bool_())),
    "list of moments": pa.array([MOMENTS[:3], []], pa.list_(pa.timestamp("us"))),
    "empty": pa.array([], pa.int64()),
    "empty list": pa.array([], pa.list_(pa.string())),
    "chunked": pa.chunked_array([pa.array([1, None]), pa.array([], pa.int64()), pa.array([5, 100])]),
    "chunked texts": pa.chunked_array([["a", None], [], ["Zürich", "1"]], pa.string()),
    "chunked dictionary": pa.chunked_array([pa.array(["a", "b"]).dictionary_encode(), pa.array(["1", "a"]).dictionary_encode()]),
    "no chunk": pa.chunked_array([], pa.string()),
}  # fmt: skip


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_documents(name: str) -> None:
    assert_same(COLUMNS[name])


@pytest.mark.parametrize("name", COLUMNS)
def test_slices_of_columns_are_documents(name: str) -> None:
    column = COLUMNS[name]
    assert_same(column.slice(1))
    assert_same(column.slice(1, 2))
    assert_same(column.slice(len(column)))
    if isinstance(column, pa.Array) and len(column):
        assert_same(pa.chunked_array([column.slice(1), column.slice(0, 2)]))


def test_moments_in_a_zone_are_written_in_utc() -> None:
    moments = [moment and moment.replace(tzinfo=HOUR) for moment in MOMENTS[:5]]
    texts = [moment and moment.astimezone(UTC).isoformat().replace("+00:00", "Z") for moment in moments]
    column = pa.array(moments, pa.timestamp("us", "+01:00"))
    assert_same(column, [{"a": text} if text else {} for text in texts])


def test_a_map_is_a_dict() -> None:
    column = pa.array(
        [[("b", 1), ("c", 5)], [], None, [("b", None)], [("other", 3)]], pa.map_(pa.string(), pa.int64())
    )
    documents: list[dict[str, Any]] = [
        {"a": {"b": 1, "c": 5}},
        {"a": {}},
        {},
        {"a": {"b": None}},
        {"a": {"other": 3}},
    ]
    assert_same(column, documents)
    assert_same(column.slice(1, 3), documents[1:4])


def test_what_has_no_value_is_there() -> None:
    """Bytes, times of day and durations compare with nothing."""
    there: list[dict[str, Any]] = [{"a": {}}, {}]
    for kind in (pa.binary(), pa.large_binary()):
        assert_same(pa.array([b"a", None], kind), there)
    assert_same(pa.array([5, None], pa.duration("s")), there)
    assert_same(pa.array([5, None], pa.time32("s")), there)


def test_columns_beside_json() -> None:
    """An event's attributes are its columns and what the column `attributes` says."""
    documents = [{"a": 1, "user": {"age": 5}}, {"a": [1, 2]}, {}, {"user.age": 3, "b": "x"}]
    rest = [{"a.b": 5}, {}, {"b": 2}, {"a": "z"}]
    made: list[Condition] = [
        Comparison(Attribute(path), op, cases.constant(value))
        for path in ("a", "a.b", "user.age", "b")
        for op in ("=", "<", "!=")
        for value in (1, 2, 5, "x", "z")
    ] + [Missing(Attribute("a")), Exists(Attribute("a")), Missing(Attribute("user"))]
    index = index_of(made)
    reader = AttributeReader(index)
    table = pa.table(
        {
            "attributes": [json.dumps(document) for document in documents],
            "a.b": [each.get("a.b") for each in rest],
            "b": pa.array([each.get("b") for each in rest], pa.int8()),
            "a": [each.get("a") for each in rest],
            "data": [b"a"] * 4,
        }
    )
    whole = [{**document, **each} for document, each in zip(documents, rest, strict=True)]
    whole[3]["a"] = "z"
    found = read_events(table, reader.wanted)
    assert matched(index, reader.pairs(found, lambda event: whole[event])) == matched(
        index, pairs_of(index, whole)
    )


def test_json_that_cannot_be_read_is_told() -> None:
    reader = AttributeReader(INDEX)
    column = pa.array(['{"a": 1}', "[1]", None, "", '{"a": 5', '{"a": 5}'])
    found = read_events(pa.table({"attributes": column}), reader.wanted)
    assert sorted(found.errors) == [1, 4]
    by_column = matched(INDEX, reader.pairs(found, lambda event: {}))
    expected: list[dict[str, Any]] = [{"a": 1}, {}, {}, {}, {}, {"a": 5}]
    assert by_column == matched(INDEX, pairs_of(INDEX, expected))


def test_columns_that_no_filter_names_are_not_looked_at() -> None:
    index = index_of([Exists(Attribute("a"))])
    found = read_events(pa.table({"b": [1, 2], "data": [b"", b""]}), AttributeReader(index).wanted)
    assert found.first.tolist() == [0, 0, 0]
