"""A user's own columns become rows of the event schema."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tidings.envelope import conform
from tidings.errors import EventError
from tidings.event import EVENT_SCHEMA, Event, to_table


def test_an_event_table_stays_as_it_is():
    table = to_table([Event(id="1", source="a", data=b"x", attributes={"k": 1}), Event(id="2")])
    assert pa.Table.from_batches([conform(table)]) == table


def test_missing_columns_are_null_and_extra_ones_are_attributes():
    table = pa.table(
        {
            "id": ["1", "2", "3"],
            "topic": ["news", None, None],
            "price": [Decimal("1.50"), None, None],
            "seen": [datetime(2024, 5, 1, tzinfo=UTC), None, None],
            "attributes": ['{"kept": true}', '{"kept": 2}', None],
        }
    )
    batch = conform(table)
    assert batch.schema == EVENT_SCHEMA
    assert batch.column("data").null_count == 3
    first, second, third = batch.column("attributes").to_pylist()
    assert json.loads(first) == {
        "kept": True,
        "topic": "news",
        "price": "1.50",
        "seen": "2024-05-01T00:00:00+00:00",
    }
    assert json.loads(second) == {"kept": 2}
    assert third is None


def test_attributes_that_are_no_json_object_are_left_for_the_engine_to_report():
    table = pa.table({"id": ["1", "2"], "attributes": ["{broken", "[1]"], "topic": ["news", "news"]})
    assert conform(table).column("attributes").to_pylist() == ["{broken", "[1]"]


def test_an_event_without_an_id_gets_the_hash_of_its_content():
    table = pa.table({"id": ["", None, "mine"], "data": [b"x", b"x", b"x"]})
    first, second, third = conform(table).column("id").to_pylist()
    assert first == second == Event(data=b"x").id
    assert third == "mine"


def test_times_and_texts_are_taken_in_their_usual_types():
    when = pa.array([datetime(2024, 5, 1, 12)], pa.timestamp("us", "UTC"))
    batch = conform(pa.table({"id": ["1"], "time": when, "data": ["text"]}))
    assert batch.column("time").to_pylist() == ["2024-05-01T12:00:00.000000Z"]
    assert batch.column("data").to_pylist() == [b"text"]


def test_a_column_of_a_wrong_type_is_named():
    with pytest.raises(EventError, match=r"column 'data' is struct<a: int64>; it must be binary"):
        conform(pa.table({"data": [{"a": 1}]}))
