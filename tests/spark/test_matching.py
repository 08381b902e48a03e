"""DataFrame -> DataFrame, in batch and in a stream, says what the engine says."""

import pytest

from tidings import Engine, TidingsError
from tidings.model.event import to_table
from tidings.spark import match, version_pins
from tidings.storage import versions
from tidings.storage.event_log import EventLog

from .conftest import BROKEN, TITLE, expected, rows, words


def test_batch_equals_one_process(spark, index):
    events = [*words(0, 40), BROKEN]
    found = match(spark.createDataFrame(to_table(events)), index).toArrow()
    assert rows(found) == expected(index, events)
    assert [row[2] for row in rows(found)].count("error") == 1


def test_a_users_own_columns_are_enough(spark, index):
    frame = spark.createDataFrame(
        [
            (f'<http://example.org/{word}> <{TITLE}> "{word}" .', "application/n-triples", 7)
            for word in ("alpha", "beta")
        ],
        "data string, datacontenttype string, shelf int",
    )
    found = match(frame, index).toArrow().to_pylist()
    assert sorted(row["subscription"] for row in found) == ["alpha", "beta"]
    assert all(row["event"] for row in found)


def test_mistakes_get_a_sentence_before_any_job(spark, index, tmp_path):
    frame = spark.createDataFrame(to_table(words(0, 1)))
    with pytest.raises(TidingsError, match="tidings index build"):
        match(frame, tmp_path / "nowhere")
    with pytest.raises(TidingsError, match="column 'data' is struct"):
        match(spark.range(1).selectExpr("struct(id) as data"), index)


def test_a_version_is_what_it_was(spark, index):
    frame = spark.createDataFrame(to_table(words(0, 3)))
    before = versions.current(index)
    versions.append(index, [versions.Change("gamma", f"SELECT ?i WHERE (?i, <{TITLE}>, 'gamma')")])
    assert len(rows(match(frame, (index, before)).toArrow())) == 2
    assert len(rows(match(frame, index).toArrow())) == 3


def test_in_a_users_own_stream_a_version_is_pinned_for_each_micro_batch(spark, index, tmp_path):
    with EventLog(tmp_path / "log") as log:
        log.append(words(0, 3))
        stream = match(spark.readStream.format("tidings").load(str(tmp_path / "log")), index)
        query = (
            stream.writeStream.format("memory")
            .queryName("found")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )
        try:
            query.processAllAvailable()
            first = versions.current(index)
            engine = Engine()
            engine.subscribe("gamma", f"SELECT ?i WHERE (?i, <{TITLE}>, 'gamma')")
            versions.publish(index, engine)
            log.append(words(3, 3))
            query.processAllAvailable()
        finally:
            query.stop()
    found = spark.table("found").toArrow().to_pylist()
    assert sorted((row["event"], row["subscription"]) for row in found) == [
        ("0", "alpha"),
        ("1", "beta"),
        ("5", "gamma"),
    ]
    assert version_pins.pinned(index / "pins" / str(query.id)) == {first, versions.current(index)}
