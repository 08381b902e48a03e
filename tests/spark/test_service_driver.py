"""What a driver does with a micro-batch: what was told and the events that it tells of go into the mailbox, once."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidings import Engine, Event
from tidings.errors import TidingsError
from tidings.kinds.joins.schema.table import Table
from tidings.model.event import EVENT_SCHEMA
from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.service.matching.driver import Recorder
from tidings.service.matching.index_writer import IndexWriter
from tidings.service.matching.supervisor import Supervisor
from tidings.service.model import Subscription
from tidings.service.settings import Settings
from tidings.service.store.database import StoreError, open_mailbox, open_stores
from tidings.service.store.mailbox import Mailbox
from tidings.spark.joins.stream import declared_tables, leave_other_tables
from tidings.spark.offsets import BatchRange, batch_range, query_id
from tidings.spark.ordered_files import POSITION
from tidings.spark.output import Batch
from tidings.spark.slices import MicroBatch, Slice
from tidings.storage import versions
from tidings.storage.event_log import EventLog, Offset, Position
from tidings.storage.part_visits import PartVisits

STOCKS = Table("stocks", {"symbol": "text", "per": "number"}, key=["symbol"])
MATCHES, JOINS = "11111111-matches", "22222222-joins"


class World:
    """A log, and what Spark would note of two queries that read it."""

    def __init__(self, data: Path) -> None:
        self.data, self.log = data, EventLog(data / "log")
        self.checkpoints = {MATCHES: data / "checkpoint", JOINS: data / "checkpoint" / "joins"}
        for query, checkpoint in self.checkpoints.items():
            (checkpoint / "spark" / "offsets").mkdir(parents=True)
            (checkpoint / "spark" / "metadata").write_text(json.dumps({"id": query}))

    def batch(self, query: str, number: int, end: Offset, told: list[tuple[str, str]]) -> Batch:
        """`told` are the pairs (subscription, event)."""
        facts = json.dumps(
            {"batchWatermarkMs": 0, "batchTimestampMs": 1_700_000_000_500 + number, "conf": {}}
        )
        place = self.checkpoints[query] / "spark" / "offsets" / str(number)
        place.write_text(f"v1\n{facts}\n{json.dumps(end._asdict())}")
        folder = self.data / "output" / f"query={query}" / f"batch={number:09d}"
        if told:
            folder.mkdir(parents=True, exist_ok=True)
            rows = [{"subscription": one, "source": "x", "event": id, "verdict": "match"} for one, id in told]
            table = pa.Table.from_pylist(rows, NOTIFICATION_SCHEMA)
            ids = [id for batch in self.log.read() for id in batch["id"].to_pylist()]
            positions = pa.array([ids.index(id) if id in ids else 0 for _, id in told])
            table = table.append_column(POSITION, positions).sort_by(POSITION)
            for bucket in range(3):
                mine = pa.array(range(bucket, len(table), 3), pa.int64())
                pq.write_table(table.take(mine), folder / f"{bucket}.parquet")
        return Batch(query, number, "v1+0", 2, len(told), 0, folder)

    def record(
        self, recorder: Recorder, query: str, number: int, end: Offset, told: list[tuple[str, str]]
    ) -> None:
        """Has a micro-batch recorded, as the stream does it with those of each of the two queries."""
        batch = self.batch(query, number, end, told)
        if self.checkpoints[query].name == "joins":
            recorder.record_joins(batch)
        else:
            range = batch_range(self.checkpoints[query], number)
            part = Slice(2, 0, batch.table(), EVENT_SCHEMA.empty_table(), Position(*end))
            recorder.record(MicroBatch(query, number, "v1+0", range), part)

    def append(self, *ids: str) -> Offset:
        return self.log.append([Event(id=id, source="x", attributes={"n": id}) for id in ids])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.log.close()


@pytest.fixture
def mailbox(tmp_path: Path) -> Iterator[Mailbox]:
    open_index = open_mailbox(Settings(tmp_path))
    yield open_index
    open_index.close()


def test_how_far_a_micro_batch_reads(world: World) -> None:
    first, second = world.append("a"), world.append("b")
    world.batch(MATCHES, 0, first, [])
    world.batch(MATCHES, 1, second, [])
    place = world.checkpoints[MATCHES]
    assert query_id(place) == MATCHES
    assert batch_range(place, 0) == BatchRange(None, first, 1_700_000_000.5)
    assert batch_range(place, 1) == BatchRange(first, second, 1_700_000_000.501)
    (place / "spark" / "offsets" / "2").write_text("v9\n")
    with pytest.raises(TidingsError, match="another Spark"):
        batch_range(place, 2)


def test_a_batch_is_recorded_with_its_events_and_its_files_go(world: World, mailbox: Mailbox) -> None:
    recorder = Recorder(world.data, mailbox, lambda: 1_700_000_001.0)
    batch = world.batch(JOINS, 0, world.append("a", "b", "c"), [("s1", "a"), ("s2", "a"), ("s1", "c")])
    recorder.record_joins(batch)
    told = mailbox.page(["s1", "s2"], after=0)
    assert [(one.subscription, one.event and one.event.id) for one in told] == [
        ("s1", "a"),
        ("s2", "a"),
        ("s1", "c"),
    ]
    assert told[0].event is not None
    assert told[0].event.attributes == {"n": "a"}
    assert not batch.folder.exists()
    (kept,) = mailbox.batches()
    assert (kept.query, kept.batch, kept.version, kept.events, kept.notifications) == (
        JOINS,
        0,
        "v1+0",
        2,
        3,
    )
    assert (kept.began, kept.ended) == (1_700_000_000.5, 1_700_000_001.0)


def test_a_batch_that_is_done_again_is_told_once(world: World, mailbox: Mailbox) -> None:
    recorder, end = Recorder(world.data, mailbox), world.append("a")
    for _ in range(2):
        batch = world.batch(JOINS, 0, end, [("s1", "a")])
        recorder.record_joins(batch)
        assert not batch.folder.exists()
    assert len(mailbox.page(["s1"])) == 1
    assert mailbox.totals()["notifications"] == 1


def test_a_batch_that_tells_nothing_is_recorded_too(world: World, mailbox: Mailbox) -> None:
    end = world.append("a")
    Recorder(world.data, mailbox).record_joins(world.batch(JOINS, 0, end, []))
    assert mailbox.reached() == {JOINS: end}
    assert mailbox.last() == 0


def test_visits_of_parts_are_reported_once_a_slice_is_recorded(world: World, mailbox: Mailbox) -> None:
    reported: list[PartVisits] = []
    recorder, end = Recorder(world.data, mailbox, on_visits=reported.append), world.append("a")
    world.record(recorder, MATCHES, 0, end, [])
    assert reported == [], "an index that is not divided"
    visits = PartVisits.from_lists([[2], [1], [3], [1]])
    empty = NOTIFICATION_SCHEMA.empty_table(), EVENT_SCHEMA.empty_table()
    recorder.record(
        MicroBatch(MATCHES, 1, "v1+0", BatchRange(end, end, 1.0)), Slice(1, 0, *empty, Position(*end), visits)
    )
    assert reported == [visits]


def test_two_queries_read_at_their_own_pace(world: World, mailbox: Mailbox) -> None:
    recorder = Recorder(world.data, mailbox)
    first, second = world.append("a"), world.append("b")
    world.record(recorder, MATCHES, 0, second, [("s1", "b")])
    world.record(recorder, JOINS, 0, first, [("s2", "a")])
    assert mailbox.reached() == {MATCHES: second, JOINS: first}
    events = [one.event for one in mailbox.page(["s1", "s2"], after=0)]
    assert [event and event.id for event in events] == ["b", "a"]


def test_joins_are_recorded_in_the_order_of_the_log(world: World, mailbox: Mailbox) -> None:
    ids = [str(number) for number in range(30)]
    batch = world.batch(JOINS, 0, world.append(*ids), [("s", id) for id in reversed(ids)])
    Recorder(world.data, mailbox).record_joins(batch)
    assert [one.event and one.event.id for one in mailbox.page(["s"], after=0)] == ids


def test_joins_of_many_notifications_go_on_after_their_last_slice(
    world: World, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.spark.slices.SLICE", 10)
    ids = [f"{number:02d}" for number in range(35)]
    batch = world.batch(JOINS, 0, world.append(*ids), [("s", id) for id in ids])
    heard: list[int] = []

    def killed(query: str, count: int) -> None:
        heard.append(count)
        if len(heard) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Recorder(world.data, mailbox, on_record=killed).record_joins(batch)
    assert heard == [10, 10]
    assert mailbox.reached() == {}
    Recorder(world.data, mailbox, on_record=killed).record_joins(batch)
    assert heard == [10, 10, 10, 5]
    assert [one.event and one.event.id for one in mailbox.page(["s"], after=0)] == ids
    (kept,) = mailbox.batches()
    assert (kept.events, kept.notifications) == (2, 35)


def test_what_the_log_has_dropped_before_the_first_batch(world: World, mailbox: Mailbox) -> None:
    small = EventLog(world.data / "log", segment_bytes=1)
    world.log.close()
    small.append([Event(id="old", source="x")])
    start = small.append([Event(id="a", source="x")])
    small.drop_before(start)
    Recorder(world.data, mailbox).record_joins(world.batch(JOINS, 0, start, [("s1", "a")]))
    (told,) = mailbox.page(["s1"])
    assert told.event is not None
    small.close()


def test_a_mailbox_that_cannot_be_written_fails_the_batch(
    world: World, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = mailbox.record

    def full(*_: object, **__: object) -> bool:
        raise StoreError("the mailbox cannot be used now: database or disk is full; try again")

    recorder, batch = Recorder(world.data, mailbox), world.batch(JOINS, 0, world.append("a"), [("s1", "a")])
    monkeypatch.setattr(mailbox, "record", full)
    with pytest.raises(StoreError, match="disk is full"):
        recorder.record_joins(batch)
    assert batch.folder.exists()
    monkeypatch.setattr(mailbox, "record", record)
    recorder.record_joins(replace(batch, version="v1+0"))
    assert mailbox.last() == 1


def test_joins_wait_for_nothing_after_a_restart_without_new_events(world: World, mailbox: Mailbox) -> None:
    """The last change was matched and not joined when the driver was killed, and so was an event after it."""
    versions.publish(world.data / "index", Engine(tables=[STOCKS]))
    (world.checkpoints[JOINS] / "TABLES").write_text(declared_tables(world.data / "index"))
    change = world.log.append([Event.insert("stocks", {"symbol": "X", "per": 1.0}, id="c")])
    end = world.append("last")
    world.record(Recorder(world.data, mailbox), MATCHES, 0, end, [])
    mailbox.know(JOINS, "joins", world.log.start())
    again = Recorder(world.data, mailbox)
    again.positions = (end, None)
    again.start()
    assert mailbox.reached()[JOINS] < change
    world.record(again, JOINS, 0, change, [])
    assert mailbox.reached()[JOINS] == end
    mailbox.advance(JOINS, change)
    assert mailbox.reached()[JOINS] == end, "it never goes back"
    world.record(Recorder(world.data, mailbox), JOINS, 1, change, [])
    later = Recorder(world.data, mailbox)
    later.positions = (end, change)
    later.start()
    assert mailbox.reached()[JOINS] == end


def test_a_checkpoint_of_other_tables_is_left(tmp_path: Path) -> None:
    index, checkpoint = tmp_path / "index", tmp_path / "checkpoint"
    state = checkpoint / "joins" / "spark" / "state"

    def with_tables(*tables: Table) -> None:
        versions.publish(index, Engine(tables=tables))
        leave_other_tables(index, checkpoint)

    with_tables()
    assert not (checkpoint / "joins").exists()
    with_tables(STOCKS)
    state.mkdir(parents=True)
    with_tables(STOCKS)
    assert state.exists()
    with_tables(STOCKS, Table("reviews", {"symbol": "text"}))
    assert not state.exists()
    state.mkdir(parents=True)
    with_tables()
    assert not (checkpoint / "joins").exists()


@pytest.mark.timeout(600)
def test_a_driver_over_tables_runs_two_queries(tmp_path: Path) -> None:
    (tmp_path / "tables.toml").write_text(
        '[stocks]\ncolumns = { symbol = "text", per = "number" }\nkey = ["symbol"]'
    )
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    settings = Settings(tmp_path, spark="local[2,4]", spark_settings=quick, tables=tmp_path / "tables.toml")
    registry, mailbox = open_stores(settings)
    texts = {
        "dear": "SELECT * FROM stocks WHERE per > 90",
        "rows": "SELECT * FROM stocks",
        "all": "WHERE source = 'market'",
    }
    registry.add_many([Subscription(id, text, id, "", "", id, 0.0, None) for id, text in texts.items()])
    heard = threading.Event()
    supervisor = Supervisor(settings, lambda state: heard.set() if state.status == "failed" else None)
    supervisor.start()  # Spark may start before there is an index
    assert IndexWriter(settings, registry).prepare() == []
    with EventLog(tmp_path / "log") as log:
        end = log.append([Event.insert("stocks", {"symbol": "X", "per": 95.5}, source="market", id="e")])
    try:
        supervisor.go()
        while list(mailbox.reached().values()) != [end, end]:
            assert not heard.wait(0.05), supervisor.state.message
    finally:
        supervisor.stop()
    told = {one.subscription: one for one in mailbox.page(list(texts))}
    assert set(told) == set(texts)
    assert {one.event and one.event.id for one in told.values()} == {"e"}
    for id in ("dear", "rows"):
        assert told[id].sequence == 1
        assert [(one["change"], one["row"]) for one in told[id].changes] == [
            ("+", {"symbol": "X", "per": 95.5})
        ]
    assert supervisor.state.status == "stopped"
    assert supervisor.state.restarts == 0
    registry.close()
    mailbox.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_python_process_that_does_not_start_in_time_does_not_end_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark waits ten seconds for the one that plans micro-batches; the first sleeps longer."""
    late = "import os, sys, time\nif 'streaming_source_runner' in ' '.join(sys.orig_argv) and not os.path.exists({0!r}):"
    late += "\n    open({0!r}, 'w').close(); time.sleep(15)\n"
    (tmp_path / "late").mkdir()
    (tmp_path / "late" / "sitecustomize.py").write_text(late.format(str(tmp_path / "slept")))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "late"), prepend=os.pathsep)
    settings = Settings(tmp_path, spark="local[2,4]")
    registry, mailbox = open_stores(settings)
    registry.add(Subscription("all", "WHERE n = 'e'", "", "", "", "", 0.0, None))
    supervisor = Supervisor(settings)
    supervisor.start()
    assert IndexWriter(settings, registry).prepare() == []
    with EventLog(tmp_path / "log") as log:
        end = log.append([Event(id="e", source="x", attributes={"n": "e"})])
    try:
        supervisor.go()
        while list(mailbox.reached().values()) != [end]:
            assert supervisor.state.status != "failed", supervisor.state.message
            time.sleep(0.05)
    finally:
        supervisor.stop()
    assert (tmp_path / "slept").exists()
    assert supervisor.state.restarts == 0
    assert [one.subscription for one in mailbox.page(["all"])] == ["all"]
    registry.close()
    mailbox.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_without_checkpoint_and_index_the_stream_goes_on(tmp_path: Path) -> None:
    (tmp_path / "tables.toml").write_text(
        '[stocks]\ncolumns = { symbol = "text", per = "number" }\nkey = ["symbol"]'
    )
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    settings = Settings(tmp_path, spark="local[2,4]", spark_settings=quick, tables=tmp_path / "tables.toml")
    registry, mailbox = open_stores(settings)
    dear, all = "SELECT * FROM stocks WHERE per > 90", "WHERE source = 'market'"

    def begin(**texts: str) -> None:
        registry.add_many([Subscription(id, text, id, "", "", id, 0.0, None) for id, text in texts.items()])

    def answer(event: Event) -> None:
        """One life of a driver, which answers an event."""
        assert IndexWriter(settings, registry).prepare() == []
        with EventLog(tmp_path / "log") as log:
            end = log.append([event])
        supervisor, deadline = Supervisor(settings), time.monotonic() + 250
        supervisor.start()
        try:
            supervisor.go()
            while (mailbox.reached_by("match"), mailbox.reached_by("joins")) != (end, end):
                assert time.monotonic() < deadline, supervisor.state.message
                time.sleep(0.05)
        finally:
            supervisor.stop()

    def told(subscription: str) -> list[tuple[str, str]]:
        page = mailbox.page([subscription], after=0)
        return [(one.kind.value, one.event.id if one.event else "") for one in page]

    begin(early=all, dear=dear)
    answer(Event.insert("stocks", {"symbol": "X", "per": 95.5}, source="market", id="1"))
    begin(late=all, later=dear)
    shutil.rmtree(tmp_path / "checkpoint")
    shutil.rmtree(tmp_path / "index")
    answer(Event.update("stocks", {"symbol": "X", "per": 99.5}, source="market", id="2"))
    assert told("early") == [("match", "1"), ("match", "2")]
    assert told("late") == [("match", "2")]
    assert told("dear") == [("match", "1"), ("missed", ""), ("match", "2")]
    assert told("later") == [("missed", ""), ("match", "2")]
    *_, last = mailbox.page(["dear"], after=0)
    assert {(change["change"], change["row"]["per"]) for change in last.changes} == {("+", 99.5), ("-", 95.5)}
    assert (last.sequence or 0) > 1_000_000_000  # a gap, so that a replica asks for a snapshot
    registry.close()
    mailbox.close()
