"""A disk that loses the end of the event log: the service starts, and those who may have missed something are told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.service.stores import opened
from tidings import Event
from tidings.service.matching.local_stream import LocalStream
from tidings.service.model import MATCH, NotificationKind, StoredNotification, Subscription
from tidings.service.service import Service
from tidings.service.settings import Settings
from tidings.storage.event_log import EventLog, Offset

TEXT = "WHERE topic = 'sport'"


def subscribe(service: Service, id: str) -> None:
    service.registry.add(Subscription(id, TEXT, id, "", id, id, 0.0, None))


def torn(data: Path) -> tuple[Offset, Offset]:
    """A log whose last event is not whole; the end of what is left, and what was its end."""
    with EventLog(data / "log") as log:
        kept = log.append([Event(id="1", source="x", attributes={"topic": "sport"})])
        end = log.append([Event(id="2", source="x", attributes={"topic": "sport"})])
    os.truncate(max((data / "log").glob("*.log")), end.byte - 5)
    return kept, end


def told(service: Service, id: str) -> list[StoredNotification]:
    return service.mailbox.page([id], after=0)


def test_lost_events_are_told_as_missed_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(tmp_path)
    for store in opened(settings):
        store.close()
    service = Service(settings)
    subscribe(service, "early")
    service.start(driver=False)
    service.stop()
    kept, end = torn(tmp_path)
    for _ in range(2):  # the second start finds nothing new
        service = Service(settings)
        service.start(driver=False)
        (notice,) = told(service, "early")
        assert notice.kind is NotificationKind.MISSED
        assert "events that were accepted may be missing" in str(notice.message)
        if service.registry.find("late") is None:
            subscribe(service, "late")
        assert told(service, "late") == []
        service.stop()
    assert f"events from {kept} to {end} may be missing" in caplog.text
    # What is sent again is accepted, and told.
    service = Service(settings)
    service.start(driver=False)
    assert service.log_writer.accept([Event(id="2", source="x", attributes={"topic": "sport"})]).accepted == 1
    LocalStream(tmp_path, service.mailbox).step()
    assert [one.event and one.event.id for one in told(service, "early")] == [None, "1", "2"]
    service.stop()


def test_what_was_answered_before_it_was_lost_is_not_missed(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    _, end = torn(tmp_path)
    for store in opened(settings):
        store.close()
    service = Service(settings)
    subscribe(service, "s")
    service.mailbox.know("query", MATCH, end)
    service.start(driver=False)
    assert told(service, "s") == []
    assert service.log.lost() == []
    service.stop()


def test_a_crash_before_the_notices_repeats_them(tmp_path: Path) -> None:
    kept, end = torn(tmp_path)
    with EventLog(tmp_path / "log") as log:
        log.append([])
    assert EventLog(tmp_path / "log").lost() == [(kept, end)]
    with EventLog(tmp_path / "log") as log:
        log.append([])
        assert log.lost() == [(kept, end)]
        log.forget_lost()
        assert log.lost() == []
