"""The stream from the log to Parquet: new versions, restarts, sinks, and one stream a checkpoint."""

import shutil
from dataclasses import replace

import pytest

from tidings import Engine, Event, TidingsError
from tidings.spark import notifications, run
from tidings.spark.stream import deliver
from tidings.spark.version_pins import last_base
from tidings.storage import versions
from tidings.storage.event_log import EventLog

from .conftest import BROKEN, TITLE, expected, rows, words
from .test_slices import Recorded


@pytest.fixture
def log(tmp_path):
    with EventLog(tmp_path / "log") as log:
        yield log


def test_notifications_appear_and_a_new_subscription_counts_from_the_next_micro_batch(
    spark, index, log, tmp_path
):
    places = tmp_path / "log", index, tmp_path / "out", tmp_path / "checkpoint"
    batches, sunk = [], []

    def sink(frame, batch):
        sunk.extend((batch, row.event) for row in frame.collect())

    log.append([*words(0, 6), BROKEN])
    with run(spark, *places, sink=sink, on_batch=batches.append) as stream:
        stream.drain()
        assert rows(notifications(tmp_path / "out")) == expected(index, [*words(0, 6), BROKEN])
        assert sum(batch.errors for batch in batches) == 1
        versions.append(index, [versions.Change("gamma", f"SELECT ?i WHERE (?i, <{TITLE}>, 'gamma')")])
        log.append(words(6, 3))
        stream.drain()
        assert rows(batches[-1].table()) == expected(index, words(6, 3))
        assert len(rows(batches[-1].table())) == 3
        # A batch without notifications leaves no folder and disturbs no reader.
        log.append([Event(id="none", source="test")])
        stream.drain()
        assert (batches[-1].events, batches[-1].notifications) == (1, 0)
        assert batches[-1].table().num_rows == 0
        with pytest.raises(TidingsError, match="another stream is running"):
            run(spark, *places)
    assert sorted(event for _, event in sunk) == ["0", "1", "3", "4", "6", "7", "8", "broken"]
    assert [batch.id for batch in batches] == list(range(len(batches)))
    assert sum(batch.events for batch in batches) == 11


def test_a_restart_goes_on_where_the_last_run_ended(spark, index, log, tmp_path):
    places = tmp_path / "log", index, tmp_path / "out", tmp_path / "checkpoint"
    log.append(words(0, 50))
    first, second = [], []
    assert run(spark, *places, available_now=True, max_events=20, on_batch=first.append).wait(120)
    log.append(words(50, 20))
    assert run(spark, *places, available_now=True, on_batch=second.append).wait(120)
    assert [batch.events for batch in second] == [20]
    assert {batch.query for batch in first} == {batch.query for batch in second}
    assert rows(notifications(tmp_path / "out")) == expected(index, words(0, 70))


def test_notifications_follow_the_order_of_the_log_in_every_batch(spark, index, log, tmp_path):
    places = tmp_path / "log", index, tmp_path / "out", tmp_path / "checkpoint"
    either = f"SELECT ?i WHERE (?i, <{TITLE}>, 'alpha') OR n > 0"
    versions.append(index, [versions.Change("either", either), versions.Change("n", "WHERE n > 0")])
    padding = "." * 5_000  # so that there are several tasks
    for event in words(0, 600):
        log.append([replace(event, attributes={"n": int(event.id), "padding": padding})])
    batches = []
    assert run(spark, *places, available_now=True, max_events=150, on_batch=batches.append).wait(120)
    assert [len(list(batch.folder.glob("*.parquet"))) for batch in batches] == [2, 2, 2, 2]
    told = notifications(tmp_path / "out").to_pylist()
    for subscription, count in (("n", 599), ("either", 600), ("alpha", 200)):
        numbers = [int(row["event"]) for row in told if row["subscription"] == subscription]
        assert numbers == sorted(numbers)
        assert len(set(numbers)) == count


def test_a_lost_index_does_not_stop_the_stream(spark, index, log, tmp_path):
    places = tmp_path / "log", index, tmp_path / "out", tmp_path / "checkpoint"

    def fail(batch):
        raise TidingsError("killed here")

    log.append(words(0, 6))
    versions.append(index, [versions.Change("gamma", f"SELECT ?i WHERE (?i, <{TITLE}>, 'gamma')")])
    with pytest.raises(TidingsError, match="killed here"):
        run(spark, *places, available_now=True, on_batch=fail).wait(120)
    pinned = versions.current(index)
    engine = Engine()
    for word in ("alpha", "gamma"):
        engine.subscribe(word, f"SELECT ?item WHERE (?item, <{TITLE}>, '{word}')")
    shutil.rmtree(index)
    versions.publish(index, engine, at_least=last_base(tmp_path / "checkpoint") + 1)
    assert versions.current(index).base > pinned.base
    assert run(spark, *places, available_now=True).wait(120)
    assert rows(notifications(tmp_path / "out")) == expected(index, words(0, 6))


def test_a_lost_index_does_not_stop_the_stream_of_the_service(spark, index, log, tmp_path):
    """Killed with a batch that is pinned and recorded in part: after a rebuild it goes on with the new version."""
    places = tmp_path / "log", index, tmp_path / "out", tmp_path / "checkpoint"

    def build(**more):
        engine = Engine()
        for word in ("alpha", "gamma"):
            engine.subscribe(word, f"SELECT ?item WHERE (?item, <{TITLE}>, '{word}')")
        versions.publish(index, engine, **more)

    class Failing(Recorded):
        def record(self, batch, part):
            raise TidingsError("killed here")

    build()
    log.append(words(0, 60))
    with pytest.raises(TidingsError, match="killed here"):
        deliver(spark, *places, Failing()).wait(120)
    pinned = versions.current(index)
    shutil.rmtree(index)
    build(at_least=last_base(tmp_path / "checkpoint") + 1)
    assert versions.current(index).base > pinned.base
    recorder = Recorded()
    with deliver(spark, *places, recorder) as stream:
        stream.drain()
    assert [int(event) for event, _ in recorder.answers()] == [n for n in range(60) if n % 3 != 1]


def test_a_failure_inside_reaches_the_caller_as_one_sentence_and_loses_nothing(spark, index, log, tmp_path):
    places = tmp_path / "log", index, tmp_path / "out", tmp_path / "checkpoint"
    log.append(words(0, 6))

    def broken(frame, batch):
        raise OSError("the sink's disk is full")

    stream = run(spark, *places, sink=broken)
    with pytest.raises(TidingsError, match="the stream stopped: .*the sink's disk is full"):
        stream.wait(120)
    stream.stop()
    versions.append(index, [versions.Change("gamma", f"SELECT ?i WHERE (?i, <{TITLE}>, 'gamma')")])
    batches = []
    assert run(spark, *places, available_now=True, on_batch=batches.append).wait(120)
    # The replay uses the version of the first attempt, and replaces its output.
    assert [batch.version for batch in batches] == ["v1+0"]
    assert len(rows(notifications(tmp_path / "out"))) == 4


def test_no_index_is_told_at_once(spark, tmp_path):
    with pytest.raises(TidingsError, match="tidings index build"):
        run(spark, tmp_path / "log", tmp_path / "nothing", tmp_path / "out", tmp_path / "checkpoint")
