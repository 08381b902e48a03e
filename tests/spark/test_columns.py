"""Attributes in the columns of a DataFrame, of the types that Spark has, in batch and in a stream."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tidings import Engine, TidingsError
from tidings.model.envelope import conform
from tidings.spark import match
from tidings.spark.matching import match_batches
from tidings.storage import versions

COLUMNS = """id string, source string, pieces int, weight double, colour string, new boolean, made date,
    seen timestamp, shelf array<string>, user struct<name: string, ages: array<int>>, price decimal(20, 10),
    parts array<struct<name: string, cost: long>>, local timestamp_ntz, raw binary, big long, small float,
    flags map<string, string>"""
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
EVENTS = [
    ("1", "a", 5, 1.5, "red", True, date(2021, 2, 3), NOON, ["a", "b"], ("Ann", [40, 9]), Decimal("0.1"),
     [("bell", 12), ("wheel", 3)], datetime(2024, 5, 1, 13), b"\xff\x00", 2**53 + 1, 0.5, {"urgent": "yes"}),
    ("2", "b", 3, 2.5, "Red", False, date(2019, 1, 1), NOON.replace(hour=11), [], ("Bob", []),
     Decimal("0.1000000001"), [("bell", 9)], datetime(2024, 5, 1, 12), b"", 2**53, float("nan"), {"urgent": "no"}),
    ("3", *[None] * 16),
    ("4", "a", 0, -0.0, "green", None, None, None, ["c", None], (None, [17]), Decimal(7), [], None, None, 1, None, {}),
]  # fmt: skip
# What each filter asks for, and which events it is to find.
FILTERS = {
    "pieces > 3": "1",
    "weight BETWEEN 1.5 AND 2": "1",
    "weight = 0": "4",
    "colour IN ('red', 'blue')": "1",
    "colour = 'RED' IGNORE CASE": "12",
    "new = true": "1",
    "made >= 2020-01-01": "1",
    "seen < 2024-05-01T12:00:00Z": "2",
    "seen = 2024-05-01T14:00:00+02:00": "1",
    "local > 2024-05-01T12:00:00": "1",
    "shelf = 'b'": "1",
    "EXISTS shelf": "14",
    "user.name LIKE 'A%' AND user.ages < 18": "1",
    "user.ages < 18": "14",
    "EXISTS user": "124",
    "price = 0.1": "1",
    "price < big": "12",
    "parts.name = 'bell' AND parts.cost < 10": "12",
    "ANY part IN parts SATISFIES (part.name = 'bell' AND part.cost < 10)": "2",
    "big = 9007199254740993": "1",
    "small < 1": "1",
    "flags.urgent = 'yes'": "1",
    "EXISTS flags": "124",
    "MISSING colour": "3",
    "colour IS NULL": "3",
    "pieces > weight": "12",
    "NOT (new = true OR colour = 'green')": "23",
    "source = 'a'": "14",
    "id != '1'": "234",
}


@pytest.fixture
def index(tmp_path):
    engine = Engine()
    for text in FILTERS:
        engine.subscribe(text, f"WHERE {text}")
    versions.publish(tmp_path / "index", engine)
    return tmp_path / "index"


def answers(found) -> dict[str, str]:
    by_filter = dict.fromkeys(FILTERS, "")
    for row in found.sort_by("event").to_pylist():
        assert row["verdict"] == "match", row["message"]
        by_filter[row["subscription"]] += row["event"]
    return by_filter


def test_a_batch_of_every_type(spark, index):
    frame = spark.createDataFrame(EVENTS, COLUMNS)
    assert answers(match(frame, index).toArrow()) == FILTERS


def test_a_stream_of_every_type(spark, index, tmp_path):
    frame = spark.createDataFrame(EVENTS, COLUMNS)
    frame.write.parquet(str(tmp_path / "events"))
    events = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "events"))
    query = match(events, index).writeStream.format("memory").queryName("columns").start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    assert answers(spark.table("columns").toArrow()) == FILTERS


def test_many_rows_without_ids_get_the_ids_that_the_log_would_give(spark, index, tmp_path):
    # Several Arrow batches a task; rows come twice, and the same content is the same event.
    frame = spark.range(30_000).selectExpr(
        "cast(id % 15000 AS int) AS pieces",
        "concat('c', id % 15000) AS colour",
        "'{\"big\": 1}' AS attributes",
    )
    engine = Engine()
    engine.subscribe("few", "WHERE pieces < 20 AND big = 1")
    engine.subscribe("one", "WHERE colour = 'c14999'")
    found = match(frame, (index, versions.publish(index, engine))).toArrow().to_pylist()
    wanted = [{"pieces": i, "colour": f"c{i}", "attributes": '{"big": 1}'} for i in [*range(20), 14_999]]
    ids = conform(pa.Table.from_pylist(wanted).cast(pa.schema(
        [("pieces", pa.int32()), ("colour", pa.string()), ("attributes", pa.string())]
    ))).column("id").to_pylist()  # fmt: skip
    assert sorted(row["event"] for row in found if row["subscription"] == "few") == sorted(ids[:20] * 2)
    assert [row["event"] for row in found if row["subscription"] == "one"] == ids[20:] * 2


def test_no_event_becomes_an_object():
    """Moments that Python cannot hold: who made objects of the events would fail."""
    far = pa.array([2**62, 0, 2**62], pa.timestamp("us", "UTC"))
    batch = pa.record_batch({"id": ["1", "2", "3"], "pieces": [5, 6, 1], "seen": far, "other": far})
    with pytest.raises((ValueError, OverflowError)):
        batch.to_pylist()
    engine = Engine()
    engine.subscribe("many", "WHERE pieces > 3 AND NOT colour = 'red'")
    engine.subscribe("early", "WHERE seen < 2024-05-01T12:00:00Z OR colour LIKE 'r%'")
    found = pa.Table.from_batches(match_batches(engine, iter([batch])))
    assert sorted((row["subscription"], row["event"]) for row in found.to_pylist()) == [
        ("early", "2"),
        ("many", "1"),
        ("many", "2"),
    ]


def test_a_name_that_two_columns_have_is_told(spark, index):
    with pytest.raises(TidingsError, match="two columns 'colour'; rename one"):
        match(spark.sql("SELECT 'a' AS colour, 'b' AS colour"), index)
