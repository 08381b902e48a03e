"""Every event once, durable before the answer, whoever publishes, whatever fails."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from tidings.errors import EventError
from tidings.model.event import Event
from tidings.service.ingest.deduplication import Deduplication
from tidings.service.ingest.log_writer import LogWriter, Receipt, Unavailable
from tidings.service.ingest.recent_events import RecentEvents
from tidings.storage.event_log import EventLog, LogError, Offset


def events(*ids: int | str, source: str = "s") -> list[Event]:
    return [Event(source, {"n": id}, id=str(id)) for id in ids]


def ids_of(log: EventLog) -> list[str]:
    return [id for batch in log.read() for id in batch.column("id").to_pylist()]


class Gate:
    """A log whose writing can be held up, or made to fail, as a disk does."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.open = threading.Event()
        self.open.set()
        self.entered = threading.Event()
        self.failure: Exception | None = None
        self.appends = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    def append(self, given: pa.Table | list[Event]) -> Offset:
        if len(given):
            self.appends += 1
            self.entered.set()
            self.open.wait(10)
            if self.failure is not None:
                raise self.failure
        return self._log.append(given)


class Desk:
    def __init__(self, folder: Path, **options: object) -> None:
        self.now = 100.0
        self.log = Gate(EventLog(folder / "log"))
        self.deduplication = Deduplication(folder / "arrivals.db", self.log)  # type: ignore[arg-type]
        self.accepted: list[tuple[int, int]] = []
        self.log_writer = LogWriter(
            self.log,
            self.deduplication,
            on_accept=lambda *counts: self.accepted.append(counts),
            clock=lambda: self.now,
            **options,  # type: ignore[arg-type]
        )

    def close(self) -> None:
        self.log.open.set()
        self.log_writer.close()
        self.deduplication.close()
        self.log.close()  # type: ignore[operator]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.close()


def test_an_event_is_in_the_log_when_the_answer_comes(desk: Desk) -> None:
    receipt = desk.log_writer.accept(events(1, 2))
    assert receipt == Receipt(2, 0, ["1", "2"], desk.log.end())
    assert ids_of(desk.log) == ["1", "2"]
    desk.log_writer.accept(events(2, 3))
    assert desk.accepted == [(2, 0), (1, 1)]


def test_duplicates_are_dropped(desk: Desk) -> None:
    desk.log_writer.accept(events(1))
    end = desk.log.end()
    assert desk.log_writer.accept(events(1)) == Receipt(0, 1, ["1"], end)
    assert desk.log_writer.accept(events(2, 1, 2, 3))[:3] == (2, 2, ["2", "1", "2", "3"])
    assert desk.log_writer.accept(events(1, source="another")).accepted == 1
    assert desk.log_writer.accept([]).accepted == 0
    assert ids_of(desk.log) == ["1", "2", "3", "1"]


def test_what_waits_is_one_group(desk: Desk) -> None:
    desk.log.open.clear()
    first = desk.log_writer.accept_later(events(0))
    desk.log.entered.wait(10)
    later = [desk.log_writer.accept_later(events(n % 20, n)) for n in range(1, 41)]
    assert desk.log_writer.waiting() == 80
    assert not first.done()
    desk.log.open.set()
    receipts = [future.result(10) for future in later]
    assert desk.log.appends == 2
    assert sum(receipt.accepted for receipt in receipts) == 40
    assert len({receipt.end for receipt in receipts}) == 1
    assert sorted(ids_of(desk.log)) == sorted(str(n) for n in range(41))


def test_many_threads(desk: Desk) -> None:
    def publish(seed: int) -> int:
        draw = random.Random(seed)
        return sum(
            desk.log_writer.accept(
                events(*(draw.randrange(400) for _ in range(draw.randint(1, 10))))
            ).accepted
            for _ in range(40)
        )

    with ThreadPoolExecutor(8) as pool:
        accepted = sum(pool.map(publish, range(8)))
    found = Counter(ids_of(desk.log))
    assert accepted == len(found) == sum(found.values())


def test_a_restart_knows_what_was_accepted(tmp_path: Path) -> None:
    first = Desk(tmp_path)
    first.log_writer.accept(events(*range(10)))
    first.close()
    second = Desk(tmp_path)
    assert second.log_writer.accept(events(9, 10))[:2] == (1, 1)
    second.close()


def test_a_disk_that_fails_is_told_and_the_next_are_accepted(desk: Desk) -> None:
    desk.log.failure = LogError("the events could not be written to log: No space left on device; try again")
    with pytest.raises(Unavailable, match="No space left") as caught:
        desk.log_writer.accept(events(1))
    assert caught.value.status == 503
    assert caught.value.retry_after > 0
    desk.log.failure = OSError(5, "Input/output error")
    with pytest.raises(Unavailable, match="Input/output"):
        desk.log_writer.accept(events(1))
    desk.log.failure = None
    assert desk.log_writer.accept(events(1, 2)).accepted == 2
    assert ids_of(desk.log) == ["1", "2"]


def test_a_write_that_failed_after_all_was_written_doubles_nothing(desk: Desk) -> None:
    """The publisher heard of a failure and sends again what the log had got all the same."""
    desk.log._log.append(events(1))  # behind the intake's back
    desk.log.failure = OSError("gone")
    with pytest.raises(Unavailable):
        desk.log_writer.accept(events(5))
    desk.log.failure = None
    assert desk.log_writer.accept(events(1, 5))[:2] == (1, 1)
    assert ids_of(desk.log) == ["1", "5"]


def test_arrivals_that_cannot_be_written_cost_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(desk.deduplication, "add", full)
        assert desk.log_writer.accept(events(1)).accepted == 1
    assert desk.log_writer.accept(events(1, 2))[:2] == (1, 1)
    assert ids_of(desk.log) == ["1", "2"]


def test_too_many_that_wait_are_told_to_come_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path, max_events=10, max_bytes=100_000)
    desk.log.open.clear()
    futures = [desk.log_writer.accept_later(events(0))]
    desk.log.entered.wait(10)
    futures.append(desk.log_writer.accept_later(events(*range(1, 21))))  # alone, however many
    with pytest.raises(Unavailable, match="20 events wait") as caught:
        desk.log_writer.accept_later(events(21))
    assert caught.value.status == 503
    desk.log.open.set()
    assert sum(future.result(10).accepted for future in futures) == 21
    desk.log.open.clear()
    desk.log.entered.clear()
    desk.log_writer.accept_later(events(30))
    desk.log.entered.wait(10)
    desk.log_writer.accept_later(events(31))
    with pytest.raises(Unavailable):
        desk.log_writer.accept_later([Event("s", data=b"x" * 100_000)])
    desk.close()


def test_a_call_that_is_given_up_is_not_written(desk: Desk) -> None:
    desk.log.open.clear()
    first = desk.log_writer.accept_later(events(1))
    desk.log.entered.wait(10)
    second, third = desk.log_writer.accept_later(events(2)), desk.log_writer.accept_later(events(3))
    assert second.cancel()
    desk.log.open.set()
    first.result(10)
    third.result(10)
    assert ids_of(desk.log) == ["1", "3"]


def test_what_is_no_event_is_refused_before_anything(desk: Desk) -> None:
    with pytest.raises(EventError, match="not dict"):
        desk.log_writer.accept([{}])  # type: ignore[list-item]
    circle: dict[str, object] = {}
    circle["circle"] = circle
    with pytest.raises(EventError):
        desk.log_writer.accept([Event("s", circle, id="1")])
    assert desk.log_writer.accept(events(1)).accepted == 1


def test_closing_answers_those_who_wait(desk: Desk) -> None:
    desk.log.open.clear()
    futures: list[Future[Receipt]] = [desk.log_writer.accept_later(events(1))]
    desk.log.entered.wait(10)
    futures.append(desk.log_writer.accept_later(events(2)))
    closing = threading.Thread(target=desk.log_writer.close)
    closing.start()
    desk.log.open.set()
    closing.join(10)
    assert [future.result(0).accepted for future in futures] == [1, 1]
    with pytest.raises(Unavailable, match="being stopped"):
        desk.log_writer.accept(events(3))


def test_how_long_events_were_on_their_way(desk: Desk) -> None:
    ends = []
    for n in range(4):
        desk.now = 100.0 + n
        ends.append(desk.log_writer.accept(events(n, f"{n}b")).end)
    desk.now = 110.0
    assert desk.log_writer.lag(None) == (8, 10.0)
    assert desk.log_writer.lag(ends[1]) == (4, 8.0)
    assert desk.log_writer.take_latencies(ends[1], 110.0) == [10.0, 9.0]
    assert desk.log_writer.take_latencies(ends[1], 111.0) == []
    assert desk.log_writer.lag(ends[1]) == (4, 8.0)
    assert desk.log_writer.take_latencies(Offset(9, 9), 111.0) == [9.0, 8.0]
    assert desk.log_writer.lag(ends[3]) == (0, 0.0)


def test_the_lag_counts_what_was_accepted_before_a_restart(tmp_path: Path) -> None:
    first = Desk(tmp_path)
    reached = first.log_writer.accept(events(1, 2)).end
    first.log_writer.accept(events(3, 4, 5))
    first.close()
    second = Desk(tmp_path)
    second.log_writer.accept(events(6))
    assert second.log_writer.lag(reached) == (4, 0.0)
    assert second.log_writer.lag(None).events == 6
    second.close()


def test_a_stream_that_stands_still_costs_no_memory(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.service.ingest.log_writer._REMEMBERED", 3)
    for n in range(6):
        end = desk.log_writer.accept(events(n)).end
    assert desk.log_writer.lag(None).events == 6
    assert len(desk.log_writer.take_latencies(end, 100.0)) == 3


# -- the last events


def test_the_last_events_newest_first(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for first in range(0, 1_500, 300):
        desk.log_writer.accept(events(*range(first, first + 300)))
    desk.log_writer.accept(
        [Event("s", {"t": [1, None]}, id="x", type="t", time="2026-01-01T00:00:00Z", data=b"\xff\0")]
    )
    last = desk.log_writer.recent.events()
    assert [event.id for event in last] == ["x", *(str(n) for n in range(1_499, 500, -1))]
    assert desk.log_writer.recent.events(2) == last[:2]
    desk.close()
    again = Desk(tmp_path)
    assert again.log_writer.recent.events() == last
    again.close()


def test_they_are_found_in_the_last_segments_alone(tmp_path: Path) -> None:
    with EventLog(tmp_path, segment_bytes=2_000) as log:
        for n in range(100):
            log.append(events(n))
        segments = sorted(tmp_path.glob("*.log"))
        assert len(segments) > 8
        for segment in segments[:-4]:
            segment.write_bytes(b"whoever reads this has read too much")
        recent = RecentEvents(kept=3)
        recent.fill(log)
        assert [event.id for event in recent.events()] == ["99", "98", "97"]


def test_what_no_subscription_matches_is_not_among_them() -> None:
    recent = RecentEvents()
    types = ("tidings.snapshot", "tidings.messages", "tidings.member-rows", "news")
    recent.add([(Event("s", id=type, type=type), 1) for type in types])
    assert [event.id for event in recent.events()] == ["news"]


def test_they_are_bounded_in_bytes(tmp_path: Path) -> None:
    recent = RecentEvents(kept=10, max_bytes=1_000)
    recent.add([(Event("s", id=str(n)), 300) for n in range(8)])
    assert [event.id for event in recent.events()] == ["7", "6", "5"]
    with EventLog(tmp_path) as log:
        for n in range(20):
            log.append([Event("s", id=str(n), data=b"x" * 300)])
        recent = RecentEvents(kept=10, max_bytes=1_000)
        recent.fill(log)
        assert [event.id for event in recent.events()] == [
            "19",
            "18",
        ]  # a frame is somewhat larger than its events


# -- a process that is killed

PUBLISHER = """
import sys, threading
from tidings.model.event import Event
from tidings.storage.event_log import EventLog
from tidings.service.ingest.deduplication import Deduplication
from tidings.service.ingest.log_writer import LogWriter

folder = sys.argv[1]
log = EventLog(folder + "/log")
log_writer = LogWriter(log, Deduplication(folder + "/arrivals.db", log))
turn = threading.Lock()

def publish(name):
    for n in range(10_000):
        ids = [f"{name} {n} {k}" for k in range(5)]
        log_writer.accept([Event("s", id=id) for id in ids])
        with turn:
            print(*ids, sep="\\n", flush=True)

for name in range(4):
    threading.Thread(target=publish, args=(name,), daemon=True).start()
threading.Event().wait()
"""


@pytest.mark.parametrize("lines", [1, 300])
def test_killed_at_any_moment_nothing_accepted_is_lost_or_doubled(tmp_path: Path, lines: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PUBLISHER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines_read = [process.stdout.readline() for _ in range(lines)]
    os.kill(process.pid, signal.SIGKILL)
    lines_read += process.stdout.read().splitlines(keepends=True)
    process.wait()
    process.stdout.close()
    acknowledged = [line.strip() for line in lines_read if line.endswith("\n")]
    desk = Desk(tmp_path)
    there = Counter(ids_of(desk.log))
    assert set(acknowledged) <= set(there)
    # Publishers that got no answer send again what they sent.
    again = sorted({*acknowledged, *there})
    assert desk.log_writer.accept([Event("s", id=id) for id in again])[:2] == (0, len(again))
    assert max(Counter(ids_of(desk.log)).values()) == 1
    desk.close()
