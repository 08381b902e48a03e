"""Where a stream goes on whose checkpoint is lost, or older or newer than the mailbox."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from tidings import Engine
from tidings.service.matching.driver import Recorder
from tidings.service.matching.stream_recovery import JOINS as KEEPS_JOINS
from tidings.service.matching.stream_recovery import MATCH, note_queries, recover
from tidings.service.model import NotificationKind
from tidings.service.store import tables
from tidings.service.store.mailbox import Mailbox
from tidings.spark.joins.sequence_mark import first_sequence, leave_sequences
from tidings.storage import versions

from .test_service_driver import JOINS, MATCHES, STOCKS, World, mailbox, world  # noqa: F401

DEAR = "SELECT * FROM stocks WHERE per > 90"


class Stream:
    """Three events, each a micro-batch of a query; some of the batches are planned, in the mailbox, done."""

    def __init__(self, world: World, mailbox: Mailbox, query: str = MATCHES) -> None:  # noqa: F811
        self.world, self.mailbox, self.query = world, mailbox, query
        self.checkpoint = world.checkpoints[query]
        self.ends = [world.append(id) for id in "abc"]
        versions.publish(world.data / "index", Engine())

    def run(self, planned: int, recorded: int, done: int) -> None:
        recorder = Recorder(self.world.data, self.mailbox)
        for number in range(planned):
            told = self.query, number, self.ends[number], [("s", "abc"[number])]
            if number < recorded:
                self.world.record(recorder, *told)
            else:
                self.world.batch(*told)
        (self.checkpoint / "spark" / "commits").mkdir(exist_ok=True)
        for number in range(done):
            (self.checkpoint / "spark" / "commits" / str(number)).write_text("v1\n{}")
        (self.checkpoint / "pins").mkdir(exist_ok=True)
        recover(self.world.data, self.mailbox)


@pytest.fixture
def stream(world: World, mailbox: Mailbox) -> Iterator[Stream]:  # noqa: F811
    return Stream(world, mailbox)


@pytest.mark.parametrize(
    "counts", [(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2)]
)
def test_after_any_kill_the_checkpoint_is_kept(stream: Stream, counts: tuple[int, int, int]) -> None:
    stream.run(*counts)
    recover(stream.world.data, stream.mailbox)
    assert (stream.checkpoint / "spark" / "metadata").exists()


def test_a_lost_checkpoint_is_gone_on_from_the_mailbox(stream: Stream) -> None:
    stream.run(2, 2, 2)
    shutil.rmtree(stream.checkpoint)
    found = recover(stream.world.data, stream.mailbox)
    assert found.match == stream.ends[1]
    note_queries(["another"], found, stream.world.log, stream.mailbox)
    assert stream.mailbox.reached()["another"] == stream.ends[1]  # nothing before it is waited for
    assert recover(stream.world.data, stream.mailbox) == found


def test_a_mailbox_older_than_the_checkpoint_is_gone_on_from(stream: Stream) -> None:
    stream.run(3, 3, 3)
    with stream.mailbox._database.writing() as connection:  # as a back-up has it
        values = {"batch": 0, **stream.ends[0]._asdict()}
        connection.execute(update(tables.reached).where(tables.reached.c.query == MATCHES).values(values))
    assert recover(stream.world.data, stream.mailbox).match == stream.ends[0]
    assert not (stream.checkpoint / "spark").exists()
    assert not (stream.checkpoint / "pins").exists()


def test_a_checkpoint_older_than_the_mailbox_is_left(stream: Stream) -> None:
    stream.run(2, 2, 2)
    for folder in ("offsets", "commits"):
        (stream.checkpoint / "spark" / folder / "1").unlink()
    assert recover(stream.world.data, stream.mailbox).match == stream.ends[1]
    assert not (stream.checkpoint / "spark").exists()


def test_an_empty_mailbox_begins_where_the_checkpoint_is(stream: Stream) -> None:
    stream.run(2, 0, 2)
    assert recover(stream.world.data, stream.mailbox).match == stream.ends[1]
    assert (stream.checkpoint / "spark" / "metadata").exists()


def over_tables(data: Path, *ids: str) -> None:
    engine = Engine(tables=[STOCKS])
    for id in ids:
        engine.subscribe(id, DEAR)
    versions.publish(data / "index", engine, at_least=versions.last_base(data / "index") + 1)


def test_lost_rows_are_read_again_quietly_and_told_as_missed(world: World, mailbox: Mailbox) -> None:  # noqa: F811
    stream = Stream(world, mailbox, JOINS)
    over_tables(world.data, "s")
    stream.run(2, 2, 2)
    assert first_sequence(stream.checkpoint) == 0
    assert [one.kind for one in mailbox.page(["s"])] == [NotificationKind.MATCH] * 2
    shutil.rmtree(stream.checkpoint)
    for _ in range(2):
        found = recover(world.data, mailbox, lambda: 1_700_000_000.0)
    assert found.joins == stream.ends[1]
    told = mailbox.page(["s"])
    assert [one.kind for one in told] == [NotificationKind.MISSED, *[NotificationKind.MATCH] * 2]
    assert "ask for a snapshot" in str(told[0].message)
    assert first_sequence(stream.checkpoint) == 1_700_000_000_000_000

    (stream.checkpoint / "spark" / "offsets").mkdir(parents=True)
    (stream.checkpoint / "spark" / "metadata").write_text(json.dumps({"id": "another"}))
    world.checkpoints["another"] = stream.checkpoint
    recorder = Recorder(world.data, mailbox)
    recorder.positions = found
    for number, event in enumerate("abc"):
        told = [("s", event), ("began later", event)]
        world.record(recorder, "another", number, stream.ends[number], told)
    events = [one.event and one.event.id for one in mailbox.page(["began later"])]
    assert events == ["c"]
    assert mailbox.reached_by(KEEPS_JOINS) == stream.ends[1]
    note_queries([MATCH, "another"], found, world.log, mailbox)
    assert mailbox.reached_by(KEEPS_JOINS) == stream.ends[2]


def test_a_new_numbering_of_joins_goes_on_with_higher_sequences(world: World, mailbox: Mailbox) -> None:  # noqa: F811
    stream = Stream(world, mailbox, JOINS)
    over_tables(world.data, "s", "t")
    stream.run(1, 1, 1)
    over_tables(world.data, "s", "t", "u")
    recover(world.data, mailbox, lambda: 5.0)
    assert first_sequence(stream.checkpoint) == 0
    shutil.rmtree(world.data / "index")
    over_tables(world.data, "t", "s")
    recover(world.data, mailbox, lambda: 6.0)
    recover(world.data, mailbox, lambda: 7.0)
    assert first_sequence(stream.checkpoint) == 6_000_000
    assert [one.kind for one in mailbox.page(["t"])] == [NotificationKind.MISSED]


def test_restored_joins_go_on_with_higher_sequences(world: World, mailbox: Mailbox) -> None:  # noqa: F811
    stream = Stream(world, mailbox, JOINS)
    over_tables(world.data, "s")
    stream.run(1, 1, 1)
    leave_sequences(stream.checkpoint)
    for now in (8.0, 9.0):  # the second start keeps them
        recover(world.data, mailbox, lambda now=now: now)
    assert first_sequence(stream.checkpoint) == 8_000_000
    assert (stream.checkpoint / "spark" / "metadata").exists()  # rows stay
    assert next(one.kind for one in mailbox.page(["s"])) == NotificationKind.MISSED
