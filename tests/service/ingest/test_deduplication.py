"""The hashes say what the log has, whatever happened between the two."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings.model.event import Event
from tidings.service.ingest.deduplication import Deduplication, deduplication_key
from tidings.storage.event_log import EventLog, Offset


def events(*ids: int | str) -> list[Event]:
    return [Event("s", id=str(id)) for id in ids]


def keys(*ids: int | str) -> list[bytes]:
    return [deduplication_key("s", str(id)) for id in ids]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EventLog]:
    with EventLog(tmp_path / "log", segment_bytes=2_000) as log:
        yield log


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "arrivals.db"


def test_a_key_is_of_source_and_id() -> None:
    assert len(deduplication_key("a", "b")) == 16
    assert (
        len(
            {
                deduplication_key("a", "b"),
                deduplication_key("b", "a"),
                deduplication_key("ab", ""),
                deduplication_key("", "ab"),
                deduplication_key("ü", "€"),
            }
        )
        == 5
    )


def test_what_was_added_is_known(log: EventLog, path: Path) -> None:
    deduplication = Deduplication(path, log)
    deduplication.add(keys(*range(1_200)), log.append(events(*range(1_200))))
    assert deduplication.known(keys(*range(1_100, 1_300))) == set(keys(*range(1_100, 1_200)))
    assert deduplication.known([]) == set()
    deduplication.close()
    assert len(Deduplication(path, log)) == 1_200


def test_what_the_log_has_beyond_the_mark_is_read(log: EventLog, path: Path) -> None:
    """As after a kill between the append and the add."""
    deduplication = Deduplication(path, log)
    deduplication.add(keys(1), log.append(events(1)))
    deduplication.close()
    for id in range(2, 60):  # over several segments
        log.append(events(id))
    assert log.end().segment > 2
    again = Deduplication(path, log)
    assert again.mark() == log.end()
    assert len(again.known(keys(*range(100)))) == 59
    assert again.catch_up() == 0


def test_frames_that_a_crash_left_beyond_head_are_known(tmp_path: Path, path: Path) -> None:
    """They come to light with the next writer, and before anything is asked."""
    with EventLog(tmp_path / "log") as log:
        log.append(events(1))
        head = (tmp_path / "log" / "HEAD").read_bytes()
        log.append(events(2))
    (tmp_path / "log" / "HEAD").write_bytes(head)
    with EventLog(tmp_path / "log") as log:
        assert Deduplication(path, log).known(keys(1, 2)) == set(keys(1, 2))


def test_a_mark_beyond_the_log_means_another_log(log: EventLog, path: Path) -> None:
    deduplication = Deduplication(path, log)
    log.append(events(1))
    deduplication.add(keys(1, 2, 3), Offset(77, 1_000))
    deduplication.close()
    assert Deduplication(path, log).known(keys(1, 2, 3)) == set(keys(1))


def test_a_mark_within_a_frame_means_another_log(log: EventLog, path: Path) -> None:
    end = log.append(events(1))
    deduplication = Deduplication(path, log)
    deduplication.add(keys(2), Offset(end.segment, end.byte - 8))
    deduplication.close()
    assert Deduplication(path, log).known(keys(1, 2)) == set(keys(1))


@pytest.mark.parametrize(
    "content", [b"this is no database" * 1_000, b"", b"SQLite format 3\0" + b"\xff" * 8_000]
)
def test_a_damaged_file_is_built_anew(log: EventLog, path: Path, content: bytes) -> None:
    log.append(events(1, 2))
    path.write_bytes(content)
    assert Deduplication(path, log).known(keys(1, 2, 3)) == set(keys(1, 2))


def test_a_file_of_another_format_is_built_anew(log: EventLog, path: Path) -> None:
    log.append(events(1))
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    assert Deduplication(path, log).known(keys(1)) == set(keys(1))


def test_damage_that_is_found_later_is_mended(log: EventLog, path: Path) -> None:
    log.append(events(*range(2_000)))
    Deduplication(path, log).close()
    content = bytearray(path.read_bytes())
    for page in range(2, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xee" * 64
    path.write_bytes(content)
    assert len(Deduplication(path, log).known(keys(*range(2_100)))) == 2_000


def test_dropped_segments_are_forgotten(log: EventLog, path: Path) -> None:
    deduplication = Deduplication(path, log)
    ends = {}
    for id in range(40):
        ends[id] = log.append(events(id))
        deduplication.add(keys(id), ends[id])
    keep = log.end().segment - 1
    log.drop_before(Offset(keep, 16))
    deduplication.drop_before(keep)
    deduplication.drop_before(keep)
    kept = [id for id, end in ends.items() if end.segment >= keep]
    assert 0 < len(kept) < 40
    assert deduplication.known(keys(*range(40))) == set(keys(*kept))
    deduplication.close()
    path.unlink()
    assert Deduplication(path, log).known(keys(*range(40))) == set(keys(*kept))


def test_segments_that_were_dropped_in_its_absence(log: EventLog, path: Path) -> None:
    Deduplication(path, log).close()
    for id in range(40):
        log.append(events(id))
    log.drop_before(log.end())
    deduplication = Deduplication(path, log)
    assert 0 < len(deduplication) < 40
    assert deduplication.mark() == log.end()


def test_any_thread_may_ask(log: EventLog, path: Path) -> None:
    log.append(events(1))
    deduplication = Deduplication(path, log)
    found: list[set[bytes]] = []
    threads = [
        threading.Thread(target=lambda: found.append(deduplication.known(keys(1, 2)))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [set(keys(1))] * 8


def test_keys_that_wait_to_be_written_are_known_and_survive_a_kill(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "log")
    deduplication = Deduplication(tmp_path / "arrivals.db", log)
    deduplication.add(keys(1, 2), log.append(events(1, 2)))
    assert deduplication.known(keys(1, 2, 3)) == set(keys(1, 2))
    written = sqlite3.connect(tmp_path / "arrivals.db")
    assert written.execute("SELECT count(*) FROM arrivals").fetchone() == (0,)  # as a kill would find it
    again = Deduplication(tmp_path / "arrivals.db", log)
    assert again.known(keys(1, 2, 3)) == set(keys(1, 2))
    assert len(again) == 2
    for opened in (written, again, deduplication, log):
        opened.close()
