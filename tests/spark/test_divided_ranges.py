"""Ranges of the log, answered by two stages, are slices as those of an undivided index are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tidings.spark.code_pickle import pickle_code
from tidings.spark.divided.ranges import Answered, Limits, _front_task, _part_task, _Visitors, join_answers
from tidings.spark.offsets import BatchRange
from tidings.spark.slices import MicroBatch
from tidings.spark.stream import deliver
from tidings.spark.task_index import TaskIndex
from tidings.storage import versions
from tidings.storage.event_log import EventLog, Offset, Position
from tidings.storage.part_loads import counted_matches
from tidings.storage.part_visits import total

from .test_slices import Killed, Recorded, by_event, engine, expected, matcher, written

SPLIT = versions.Placement("split", 3)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> TaskIndex:
    root = tmp_path_factory.mktemp("index")
    return TaskIndex(str(root), str(versions.publish(root, engine(), placement=SPLIT)), pickle_code(()))


def answered(
    index: TaskIndex, log: EventLog, ranges: list[tuple[Position, Offset]], answers: int
) -> list[Answered]:
    """What a job gives, without Spark."""
    limits = Limits(answers, 60.0)
    sent = list(_front_task(index, str(log.folder), limits, iter(list(enumerate(ranges)))))
    found = [
        answer
        for part in range(SPLIT.parts)
        for answer in _part_task(index, limits, iter([row for row in reversed(sent) if row[0] % 3 == part]))
    ]
    whole = join_answers(found, len(ranges))
    assert whole is not None
    return whole


def test_answers_of_two_attempts_are_not_join_answers(index: TaskIndex, tmp_path: Path) -> None:
    """A host was lost: one task of stage 2 has read what the first attempt of stage 1 has sent, the others the second."""
    log, end = written(tmp_path / "log", [300])
    ranges, limits = [(0, (Position(*log.start()), end))], Limits(10_000, 60.0)
    first, second = (list(_front_task(index, str(log.folder), limits, iter(ranges))) for _ in range(2))
    sent = [
        [row for row in attempt if row[0] % 3 == part] for part, attempt in enumerate([first, second, second])
    ]
    found = [answer for rows in sent for answer in _part_task(index, limits, iter(rows))]
    assert join_answers(found, 1) is None
    assert join_answers(found[:1], 1) is not None
    nothing_visits = [row for row in first if not isinstance(row[1], _Visitors)]
    silent = [*_part_task(index, limits, iter([nothing_visits[0]])), *found[-1:]]
    assert join_answers(silent, 1) is None


@settings(max_examples=15, deadline=None)
@given(frames=st.lists(st.integers(1, 90), min_size=1, max_size=5), answers=st.integers(30, 400))
def test_all_is_answered_once_and_in_order_however_often_a_range_ends_early(
    index: TaskIndex, tmp_path_factory: pytest.TempPathFactory, frames: list[int], answers: int
) -> None:
    log, end = written(tmp_path_factory.mktemp("log"), frames)
    recorded, start = Recorded(), Position(*log.start())
    while start < Position(*end):
        (found,) = answered(index, log, [(start, end)], answers)
        recorded.parts.append(found)  # type: ignore[arg-type]
        assert start < found.reached
        start = found.reached
        about = list(dict.fromkeys(found.notifications["event"].to_pylist()))
        assert found.notified["id"].to_pylist() == about
        assert len(found.notifications) <= 4 * (answers + 8 * 256)
    assert by_event(recorded.answers()) == expected(engine(), sum(frames))
    order = [int(event) for event, _ in recorded.answers()]
    assert order == sorted(order)
    assert sum(found.events for found in recorded.parts) == sum(frames)


def test_several_ranges_and_an_empty_one(index: TaskIndex, tmp_path: Path) -> None:
    log, end = written(tmp_path / "log", [20, 30])
    middle = next(iter(log.frames(log.start(), end))).end
    ranges = [(Position(*log.start()), middle), (Position(*middle), end), (Position(*end), end)]
    found = answered(index, log, ranges, 10_000)
    assert [each.events for each in found] == [20, 30, 0]
    assert [each.reached for each in found] == [Position(*middle), Position(*end), Position(*end)]


@pytest.mark.parametrize("small", [0, 10_000])
def test_a_micro_batch_of_the_service_goes_on_after_the_slices_that_are_recorded(
    spark: SparkSession, tmp_path: Path, small: int
) -> None:
    """By two stages, and without a job, where one process opens all parts."""
    _, end = written(tmp_path / "log", [1, 700, 30, 500])
    version = versions.publish(tmp_path / "index", engine(), placement=SPLIT)
    batch = MicroBatch("q", 3, str(version), BatchRange(None, end, 1.0))
    recorder = Recorded(killed_after=2)
    with pytest.raises(Killed):
        matcher(spark, tmp_path, recorder, small)(batch)
    recorder.killed_after = -1
    matcher(spark, tmp_path, recorder, small)(batch)
    assert by_event(recorder.answers()) == expected(engine(), 1_231)
    order = [int(event) for event, _ in recorder.answers()]
    assert order == sorted(order)
    assert sum(part.events for part in recorder.parts) == 1_231
    assert recorder.parts[-1].reached == Position(*end)
    visits = total(part.visits for part in recorder.parts)
    assert visits.forwards >= SPLIT.parts * 1_231, "what a slice leaves out is visited again"
    assert len(recorder.answers()) <= sum(visits["matches"])
    assert all(visits["opened"]) or not small
    counted = counted_matches(tmp_path / "index", version.base, engine())
    assert counted is not None
    assert np.all(counted.matches > 0)
    assert np.all(counted.matches <= visits["matches"]), (
        "a slice at whose record it was killed is not counted"
    )


def test_the_stream_of_the_service_with_little_memory(spark: SparkSession, tmp_path: Path) -> None:
    written(tmp_path / "log", [40, 40])
    versions.publish(tmp_path / "index", engine(), placement=SPLIT)
    base = tmp_path / "index" / "v1"
    division = versions.Division.read(base)
    assert division is not None
    memory = division.front.bytes + max(piece.bytes for piece in division.parts)
    recorder = Recorded()
    places = tmp_path / "log", tmp_path / "index", tmp_path / "out", tmp_path / "checkpoint"
    with deliver(spark, *places, recorder, small=0, memory=memory) as stream:  # type: ignore[arg-type]
        stream.drain()
    assert by_event(recorder.answers()) == expected(engine(), 80)
