"""A micro-batch is answered in slices: bounded, in the log's order, in this process or by tasks, and after a kill from
where it was."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark import RDD
from pyspark.sql import SparkSession

from tidings import Engine, Event, Operator, operator
from tidings.spark.batch_size import ANSWERS, BatchSize, ChunkSize, read_limit
from tidings.spark.code_pickle import pickle_code
from tidings.spark.offsets import BatchRange
from tidings.spark.slices import MicroBatch, Slice, SliceMatcher, slices
from tidings.storage import versions
from tidings.storage.event_log import EventLog, Offset, Position


class Killed(BaseException):
    pass


@dataclass
class Recorded:
    """A recorder that remembers, and is killed after so many slices."""

    killed_after: int = -1
    fails_after: int = -1  # once, before the next one is stored
    parts: list[Slice] = field(default_factory=list)

    def resume(self, batch: MicroBatch) -> Position | None:
        return self.parts[-1].reached if self.parts else None

    def record(self, batch: MicroBatch, part: Slice) -> None:
        if len(self.parts) == self.fails_after:
            self.fails_after = -1
            raise Killed
        self.parts.append(part)
        if len(self.parts) == self.killed_after:
            raise Killed

    def answers(self) -> list[tuple[str, str]]:
        return [
            (row["event"], row["subscription"])
            for part in self.parts
            for row in part.notifications.to_pylist()
        ]


def engine(**more: object) -> Engine:
    made = Engine(**more)  # type: ignore[arg-type]
    for number in range(8):
        made.subscribe(f"s{number}", f"WHERE n >= {number}")
    return made


def written(folder: Path, frames: list[int], segment_bytes: int = 64 << 20) -> tuple[EventLog, Offset]:
    """A log with frames of so many events; event 17 has n = 7, and so on."""
    numbers = iter(range(100_000))
    with EventLog(folder, segment_bytes=segment_bytes) as log:
        for size in frames:
            ids = [next(numbers) for _ in range(size)]
            log.append([Event(id=str(id), source="x", attributes={"n": id % 10}) for id in ids])
    return log, log.end()


def expected(index: Engine, count: int) -> list[tuple[str, str]]:
    """Of one event after the other."""
    return [
        (str(id), subscription)
        for id in range(count)
        for subscription in sorted(
            found.subscription or ""
            for found in index.publish(Event(id=str(id), source="x", attributes={"n": id % 10}))
        )
    ]


def by_event(answers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Sorted among the answers to one event, whose order is free."""
    return sorted(answers, key=lambda answer: (int(answer[0]), answer[1]))


@settings(max_examples=20)
@given(
    frames=st.lists(st.integers(1, 40), max_size=6),
    size=st.integers(20, 300),
    segment_bytes=st.sampled_from([1, 4_000, 64 << 20]),
)
def test_slices_are_in_order_and_bounded_and_any_of_them_may_be_the_first(
    tmp_path_factory: pytest.TempPathFactory, frames: list[int], size: int, segment_bytes: int
) -> None:
    index = engine()
    log, end = written(tmp_path_factory.mktemp("log"), frames, segment_bytes)
    found = Recorded(parts=list(slices(index, log, Position(*log.start()), end, size)))
    assert [int(event) for event, _ in found.answers()] == sorted(int(event) for event, _ in found.answers())
    assert by_event(found.answers()) == expected(index, sum(frames))
    assert sum(part.events for part in found.parts) == sum(frames)
    ends = [part.reached for part in found.parts]
    assert ends == sorted(set(ends))
    assert ends[-1] == Position(*end)
    # One chunk more than it should have at most, which has at most 8 answers to each of 32 events at first.
    assert max(len(part.notifications) for part in found.parts) <= size + max(8 * 32, 4 * size)
    for part in found.parts:
        assert part.notified["id"].to_pylist() == list(dict.fromkeys(part.notifications["event"].to_pylist()))
    for number, place in list(enumerate(ends[:-1]))[:3]:
        rest = Recorded(parts=list(slices(index, log, place, end, size)))
        done = Recorded(parts=found.parts[: number + 1])
        assert done.answers() + rest.answers() == found.answers()


def matcher(
    spark: SparkSession, folder: Path, recorder: Recorded, small: int | None, **code: tuple[Operator, ...]
) -> SliceMatcher:
    size = BatchSize(folder / "LIMIT", 2, small)
    operators = code.get("operators", ())
    parts = folder / "log", folder / "index", pickle_code(operators, ()), recorder, size
    return SliceMatcher(spark, *parts, answers=900)


@pytest.mark.parametrize("small", [0, 10_000])
def test_a_micro_batch_goes_on_after_the_slices_that_are_recorded(
    spark: SparkSession, tmp_path: Path, small: int
) -> None:
    """In this process, and by tasks, which stop after a slice each."""
    index, (_, end) = engine(), written(tmp_path / "log", [1, 700, 30, 500])
    version = versions.publish(tmp_path / "index", index)
    batch = MicroBatch("q", 3, str(version), BatchRange(None, end, 1.0))
    recorder = Recorded(killed_after=2)
    with pytest.raises(Killed):
        matcher(spark, tmp_path, recorder, small)(batch)
    recorder.killed_after = -1
    matcher(spark, tmp_path, recorder, small)(batch)
    assert by_event(recorder.answers()) == expected(index, 1_231)
    assert [int(event) for event, _ in recorder.answers()] == sorted(
        int(event) for event, _ in recorder.answers()
    )
    assert sum(part.events for part in recorder.parts) == 1_231
    assert recorder.parts[-1].reached == Position(*end)
    assert len(recorder.parts) > 2


@pytest.mark.parametrize("small", [0, 10_000])
def test_nothing_is_recorded_after_a_slice_that_could_not_be(
    spark: SparkSession, tmp_path: Path, small: int
) -> None:
    """The next ones are matched while it is recorded; what is recorded must have no gap."""
    index, (_, end) = engine(), written(tmp_path / "log", [1, 700, 30, 500])
    version = versions.publish(tmp_path / "index", index)
    batch = MicroBatch("q", 3, str(version), BatchRange(None, end, 1.0))
    recorder = Recorded(fails_after=1)
    with pytest.raises(Killed):
        matcher(spark, tmp_path, recorder, small)(batch)
    assert len(recorder.parts) == 1
    matcher(spark, tmp_path, recorder, small)(batch)
    assert by_event(recorder.answers()) == expected(index, 1_231)
    assert sum(part.events for part in recorder.parts) == 1_231


@operator(cost=1e-4)
def in_a_worker(event: Event) -> bool:
    return os.environ.get("THE_DRIVER") is None


def test_operators_are_called_by_workers_however_small_the_micro_batch_is(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_DRIVER", "this")  # workers are started by Java, which was started before
    index, (_, end) = Engine(operators=[in_a_worker]), written(tmp_path / "log", [20])
    index.subscribe("there", "WHERE in_a_worker() AND n > 5")
    version = versions.publish(tmp_path / "index", index)
    recorder = Recorded()
    matcher(spark, tmp_path, recorder, 10_000, operators=(in_a_worker,))(
        MicroBatch("q", 0, str(version), BatchRange(None, end, 1.0))
    )
    assert [event for event, _ in recorder.answers()] == ["6", "7", "8", "9", "16", "17", "18", "19"]


def test_an_empty_range_is_recorded_as_reached(spark: SparkSession, tmp_path: Path) -> None:
    _, end = written(tmp_path / "log", [3])
    version = versions.publish(tmp_path / "index", engine())
    for small in (0, 10):
        recorder = Recorded()
        matcher(spark, tmp_path, recorder, small)(MicroBatch("q", 1, str(version), BatchRange(end, end, 1.0)))
        assert [(part.events, part.reached) for part in recorder.parts] == [(0, Position(*end))]


def test_the_size_of_a_micro_batch_follows_the_answers(tmp_path: Path) -> None:
    size = BatchSize(tmp_path / "LIMIT", 2)
    assert read_limit(str(tmp_path / "LIMIT")) is None
    size.matched_here(100, 1_000, 0.01)
    assert read_limit(str(tmp_path / "LIMIT")) == ANSWERS // 10
    size.matched_here(100, 100_000, 0.01)
    assert read_limit(str(tmp_path / "LIMIT")) == ANSWERS // 1_000
    for _ in range(60):
        size.matched_here(100, 0, 0.01)
    assert (read_limit(str(tmp_path / "LIMIT")) or 0) > ANSWERS


def test_what_is_small_is_learnt_from_what_jobs_and_events_cost(tmp_path: Path) -> None:
    size = BatchSize(tmp_path / "LIMIT", 2)
    for _ in range(40):
        size.matched_here(1_000, 10, 0.1)  # 0.1 ms an event
        size.matched_in_tasks(1_000, 10, 0.25)  # 0.2 s of which are the job's own
    assert size.is_small(3_500)
    assert not size.is_small(4_500)
    assert not BatchSize(tmp_path / "LIMIT", 2, 0).is_small(1)
    assert BatchSize(tmp_path / "LIMIT", 2, 10).is_small(10)


def test_a_chunk_shrinks_at_once_and_grows_slowly() -> None:
    chunk = ChunkSize(1_000)
    assert chunk.rows() == 32
    chunk.matched(32, 3_200)
    assert chunk.rows() == 10
    chunk.matched(10, 0)
    assert chunk.rows() == 40
    chunk.matched(40, 40 * 2_000)
    assert chunk.rows() == 1


def test_a_job_whose_workers_do_not_start_is_tried_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = engine()
    versions.publish(tmp_path / "index", index)
    _, end = written(tmp_path / "log", [30])
    jvm, collect = spark._jvm, RDD.collect
    said = ["Python worker failed to connect back."] * 2 + ["a worker exited unexpectedly"]

    def fail_at_first(job: RDD[object]) -> list[object]:
        if said:
            error = jvm.org.apache.spark.SparkException(said.pop(0))  # type: ignore[union-attr]
            jvm.scala.util.Failure(error).get()  # type: ignore[union-attr]  # raises it, as a job does
        return collect(job)

    monkeypatch.setattr(RDD, "collect", fail_at_first)
    monkeypatch.setattr("tidings.spark.slices.PAUSES", (0.01, 0.01))
    batch = MicroBatch("q", 0, str(versions.current(tmp_path / "index")), BatchRange(None, end, 0.0))
    recorded = Recorded()
    with pytest.raises(Exception, match="exited unexpectedly"):
        matcher(spark, tmp_path, recorded, 0)(batch)
    assert (said, recorded.parts) == ([], [])
    said += ["Python worker failed to connect back."] * 2
    matcher(spark, tmp_path, recorded, 0)(batch)
    assert by_event(recorded.answers()) == expected(index, 30)
