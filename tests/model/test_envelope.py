"""A user's own columns become rows of the event schema."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tidings.engine.engine import Engine
from tidings.errors import EventError
from tidings.model.envelope import arrange, conform
from tidings.model.event import EVENT_SCHEMA, Event, to_table


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
        "price": 1.5,
        "seen": "2024-05-01T00:00:00.000000Z",
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


def test_events_are_arranged_with_their_columns_as_they_are():
    table = pa.table({"pieces": [1], "time": pa.array([datetime(2024, 5, 1)], pa.timestamp("us", "UTC"))})
    events = arrange(table).events
    assert events["pieces"].type == pa.int64()
    assert events["time"].to_pylist() == ["2024-05-01T00:00:00.000000Z"]
    assert events["source"].to_pylist() == [None]


def test_notifications_of_arranged_events_have_the_ids_that_conform_gives():
    # Ids of the user's own that look like ours stay what they are.
    table = pa.table({"id": ["mine", None, "", "\x022", "\x02\x02"], "pieces": [1, 2, 2, 3, 4]})
    engine = Engine()
    engine.subscribe("all", "WHERE pieces > 0")
    arranged = arrange(table)
    found = arranged.named(engine.match(arranged.events.combine_chunks().to_batches()[0]))
    assert sorted(found.column("event").to_pylist()) == sorted(conform(table).column("id").to_pylist())
    assert len(set(found.column("event").to_pylist())) == 4


def test_nothing_found_needs_no_names():
    arranged = arrange(pa.table({"pieces": [1, 2]}))
    found = Engine().match(arranged.events.combine_chunks().to_batches()[0])
    assert arranged.named(found).num_rows == 0


@pytest.mark.parametrize("reader", [arrange, conform])
def test_a_name_is_the_name_of_one_column(reader):
    with pytest.raises(EventError, match="two columns 'a'; rename one"):
        reader(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]))


def test_columns_mean_the_same_in_a_row_of_the_event_schema():
    """A table that is matched at once, and one that went through the log."""
    table = pa.table(
        {
            "id": ["1"],
            "exact": pa.array([Decimal("0.1000000000000000000001")], pa.decimal128(30, 22)),
            "tiny": pa.array([Decimal("1E-9")], pa.decimal128(30, 22)),
            "flags": pa.array([[("urgent", "yes")]], pa.map_(pa.string(), pa.string())),
            "far": pa.array([2**60], pa.timestamp("us", "UTC")),
            "local": pa.array([datetime(2024, 5, 1, 12)], pa.timestamp("ms")),
            "day": pa.array([10**7], pa.date32()),
            "nested": [{"price": Decimal("2.50"), "parts": [Decimal("3")]}],
        }
    )
    engine = Engine()
    filters = {
        "exact > 0.1": True,
        "exact = 0.1": False,
        "tiny = 0.000000001": True,
        "flags.urgent = 'yes'": True,
        "EXISTS far": True,
        "local = 2024-05-01T12:00:00": True,
        "EXISTS day": True,
        "nested.price < 3 AND nested.parts = 3": True,
    }
    for text in filters:
        engine.subscribe(text, f"WHERE {text}")
    for events in (arrange(table).events, pa.Table.from_batches([conform(table)])):
        found = engine.publish_many(events)["subscription"].to_pylist()
        assert sorted(found) == sorted(text for text, holds in filters.items() if holds)
