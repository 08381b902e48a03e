"""An index whose subscriptions are divided, on Spark: two stages, the answers of the undivided one."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import spark_partition_id

from tidings import Engine, TidingsError
from tidings.errors import IndexFileError
from tidings.model.event import to_table
from tidings.spark import match, notifications, run
from tidings.spark.code_pickle import pickle_code
from tidings.spark.divided import files, stages
from tidings.spark.divided.stages import SHUFFLED, by_part, task_number
from tidings.spark.task_index import TaskIndex
from tidings.storage import versions
from tidings.storage.divided_index import DividedIndex
from tidings.storage.division import Division
from tidings.storage.event_log import EventLog
from tidings.storage.part_loads import counted_matches
from tidings.storage.versions import Change

from .conftest import rows
from .divided_index import PARTS, engine, events, publish

EVENTS = events(0, 60)


@pytest.mark.parametrize("place", ["split", "contain"])
def test_a_frame_gets_the_answers_of_the_undivided_index(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    publish(tmp_path / "index", place, monkeypatch)
    read = spark.sparkContext.accumulator(0)

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            read.add(batch.num_rows)
            yield batch

    frame = spark.createDataFrame(to_table(EVENTS)).repartition(2)
    counted = frame.mapInArrow(count, frame.schema)
    spark.conf.set("spark.sql.adaptive.enabled", "true")  # as in a session of the user's own
    try:
        found = match(counted, tmp_path / "index").withColumn("task", spark_partition_id()).toArrow()
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "false")
    assert rows(found) == rows(engine().publish_many(EVENTS))
    assert found["verdict"].to_pylist().count("error") == 1
    assert set(found["task"].to_pylist()) == set(range(PARTS))  # adaptive execution has merged none of them
    assert read.value == len(EVENTS)  # stage 1 was computed once


def _parts_opened(index: TaskIndex, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task of stage 2 that gives the parts which it has used."""
    used, part = set(), DividedIndex.part
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DividedIndex, "part", lambda self, number: used.add(number) or part(self, number))
        for _ in stages._part_task(index, batches):
            pass
    yield pa.RecordBatch.from_pydict({"task": [task_number()], "parts": [sorted(used)]})


def test_a_task_of_the_second_stage_opens_one_part(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = publish(tmp_path / "index", "split", monkeypatch, 8)
    index = TaskIndex(str(tmp_path / "index"), str(version), pickle_code(()))
    frame = spark.createDataFrame(to_table(EVENTS)).repartition(2)
    shuffled = by_part(frame.mapInArrow(partial(stages._front_task, index), SHUFFLED), 8)
    used = shuffled.mapInArrow(partial(_parts_opened, index), "task long, parts array<long>").collect()
    assert sorted((row.task, row.parts) for row in used) == [(part, [part]) for part in range(8)]


def _sent(index: TaskIndex, batches: list[pa.RecordBatch]) -> list[set[tuple[str, ...]]]:
    """What each task of the second stage is sent by a task of the first: events, and notifications."""
    sent: list[set[tuple[str, ...]]] = [set() for _ in range(PARTS)]
    for row in stages._front_task(index, iter(batches)):
        to = row.column("part")[0].as_py() % PARTS
        for _, forwarded, piece in stages.received(iter([row])):
            names = ("id",) if forwarded else ("event", "subscription")
            for each in piece.select(names).to_pylist():
                assert tuple(each.values()) not in sent[to]
                sent[to].add(tuple(each.values()))
    return sent


def test_a_task_that_is_repeated_sends_to_each_task_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a host is lost, tasks of the second stage may have read the first attempt, and events come in another order."""
    version = publish(tmp_path / "index", "contain", monkeypatch)
    index = TaskIndex(str(tmp_path / "index"), str(version), pickle_code(()))
    table = to_table(EVENTS)
    (once,) = table.combine_chunks().to_batches()
    again = table.take(list(reversed(range(len(table))))).to_batches(max_chunksize=7)
    assert len(again) > PARTS
    assert _sent(index, [once]) == _sent(index, again)


def test_memory_is_looked_at_before_any_job(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path / "index", "split", monkeypatch)
    frame = spark.createDataFrame(to_table(EVENTS))
    division = Division.read(tmp_path / "index" / "v1")
    assert division is not None
    enough = division.front.bytes + max(piece.bytes for piece in division.parts)
    for memory in (enough, "1GB"):
        found = match(frame, tmp_path / "index", memory=memory).toArrow()
        assert rows(found) == rows(engine().publish_many(EVENTS))
    with pytest.raises(
        IndexFileError, match=f"front and one part {enough:,} bytes of memory, and {enough - 1:,} are"
    ):
        match(frame, tmp_path / "index", memory=enough - 1)
    with pytest.raises(TidingsError, match="'much' is no size; give one like 5GB"):
        match(frame, tmp_path / "index", memory="much")
    places = tmp_path / "log", tmp_path / "index", tmp_path / "out", tmp_path / "checkpoint"
    with pytest.raises(IndexFileError, match="are allowed; allow more"):
        run(spark, *places, memory=1_000)
    versions.publish(tmp_path / "index", engine(), placement=versions.Placement("split", 1))
    with pytest.raises(IndexFileError, match=r"is not divided and needs .* build it with --parts \d"):
        match(frame, tmp_path / "index", memory=20_000)


def test_a_users_own_stream_follows_an_index_that_is_divided_otherwise(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path / "index", "contain", monkeypatch)
    with EventLog(tmp_path / "log") as log:
        log.append(EVENTS)
        stream = match(spark.readStream.format("tidings").load(str(tmp_path / "log")), tmp_path / "index")
        writer = stream.writeStream.format("memory").queryName("divided")
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        try:
            query.processAllAvailable()
            for first, parts in ((100, 5), (200, 1)):  # 1: not divided any more
                publish(tmp_path / "index", "split", monkeypatch, parts)
                log.append(events(first, 12))
                query.processAllAvailable()
        finally:
            query.stop()
    published = [*EVENTS, *events(100, 12), *events(200, 12)]
    assert rows(spark.table("divided").toArrow()) == rows(engine().publish_many(published))


def _dying(mark: Path, task: Any, *given: Any) -> Iterator[pa.RecordBatch]:
    """A task whose worker is killed once, after it has given something."""
    for row in task(*given):
        yield row
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)


def test_a_stream_replays_exactly_and_keeps_the_order_of_the_log(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is killed in each stage of the first micro-batch, its sink fails, and the index is another one when it is
    replayed."""
    before = publish(tmp_path / "index", "contain", monkeypatch)
    log = EventLog(tmp_path / "log")
    for event in EVENTS:  # in frames of their own, so that two tasks share them
        log.append([event])
    places = tmp_path / "log", tmp_path / "index", tmp_path / "out", tmp_path / "checkpoint"
    marks = {name: tmp_path / f"{name} killed" for name in ("_front_task", "_part_task")}
    for name, mark in marks.items():
        monkeypatch.setattr(files, name, partial(_dying, mark, getattr(files, name)))

    def fail(frame: Any, batch: int) -> None:
        raise OSError("the sink's disk is full")

    with pytest.raises(TidingsError, match="the sink's disk is full"):
        run(spark, *places, sink=fail, available_now=True).wait(120)
    assert all(mark.exists() for mark in marks.values())
    written = notifications(tmp_path / "out")
    after = versions.append(tmp_path / "index", [Change("more", "WHERE n = 1"), Change("n5", None)])
    log.append(events(100, 30))
    batches = []
    assert run(spark, *places, available_now=True, on_batch=batches.append).wait(120)
    assert [(batch.version, batch.events) for batch in batches] == [(str(before), 61), (str(after), 31)]
    assert [batch.errors for batch in batches] == [1, 1]
    assert batches[0].table().equals(written)
    assert rows(batches[0].table()) == rows(engine().publish_many(EVENTS))
    changed = engine()
    changed.subscribe("more", "WHERE n = 1")
    changed.unsubscribe("n5")
    assert rows(batches[1].table()) == rows(changed.publish_many(events(100, 30)))
    assert sum(batch.notifications for batch in batches) == len(notifications(tmp_path / "out")) - 2
    for batch, published in zip(batches, (EVENTS, events(100, 30)), strict=True):
        place = {event.id: at for at, event in enumerate(published)}
        order = [place[id] for id in batch.table()["event"].to_pylist()]
        assert order == sorted(order)
    assert not any((tmp_path / "out" / ".unfinished").iterdir())
    visits = DividedIndex.forwards(versions.open(tmp_path / "index", before), to_table(EVENTS))  # type: ignore[arg-type]
    assert batches[0].visits.forwards == len(visits.event)
    assert 0 < batches[0].visits.false_positives < batches[0].visits.forwards
    counted = counted_matches(tmp_path / "index", before.base, engine())
    assert counted is not None
    assert counted.matches.sum() >= sum(sum(batch.visits["matches"]) for batch in batches)


def test_subscriptions_of_a_frame(spark: SparkSession, tmp_path: Path) -> None:
    subscriptions = spark.createDataFrame(
        [
            ("large", "WHERE total > 100"),
            ("faulty", "WHERE total >"),
            ("twice", "WHERE total > 1"),
            ("twice", "WHERE total > 2"),
            (None, "WHERE total > 1"),
            ("same", "WHERE country = 'CA'"),
            ("same", "WHERE country = 'CA'"),
        ],
        "id string, text string",
    )
    orders = spark.createDataFrame([("o1", 250.0, "CA"), ("o2", 20.0, "NZ")], ["id", "total", "country"])
    found = match(orders, subscriptions).toArrow().to_pylist()
    assert sorted((row["event"], row["subscription"]) for row in found if row["verdict"] == "match") == [
        ("o1", "large"),
        ("o1", "same"),
    ]
    refused = {row["subscription"]: row["message"] for row in found if row["verdict"] == "error"}
    assert refused.keys() == {"faulty", "twice", None}
    assert "at 1:14" in refused["faulty"]
    many = spark.range(2_000).selectExpr("string(id) as id", "concat('WHERE total > ', id) as text")
    whole = match(orders, many).toArrow()
    assert len(whole) == 250 + 20
    assert rows(match(orders, many, memory=200_000).toArrow()) == rows(whole)
    with pytest.raises(
        TidingsError, match="the subscriptions have no column 'text'; give the columns id and text"
    ):
        match(orders, orders)
    stream = spark.readStream.format("rate").load().selectExpr("string(value) as id", "'' as text")
    with pytest.raises(TidingsError, match="the subscriptions are a stream"):
        match(orders, stream)
    with pytest.raises(TidingsError, match="the events are a stream"):
        match(stream, subscriptions)


def test_an_empty_index_divided(spark: SparkSession, tmp_path: Path) -> None:
    versions.publish(tmp_path / "index", Engine(), placement=versions.Placement("split", 2))
    assert match(spark.createDataFrame(to_table(EVENTS)), tmp_path / "index").count() == 0
