"""What is forgotten by age and by size: who missed it is told in the same transaction, and the disk gets it back."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from tests.service.store.batches import batch, event, forgotten, notification_row
from tests.service.store.conftest import Stores
from tidings.service.model import Notice, NotificationKind
from tidings.service.settings import Settings
from tidings.service.store.database import open_mailbox
from tidings.service.store.mailbox import Mailbox


def fill(mailbox: Mailbox, batches: int, size: int = 200, at: float = 0.0) -> None:
    """Notifications of events with a kilobyte or two each."""
    for number in range(batches):
        ids = [f"{at}-{number}-{n}" for n in range(size)]
        events = [event(id, attributes={"title": id * 150}) for id in ids]
        rows = [notification_row(f"s{n % 5}", id) for n, id in enumerate(ids)]
        assert mailbox.record(*batch(number, rows, events, query=f"q{at}", ended=at + number + 1.0))


def missed(dropped: Mapping[str, int]) -> list[Notice]:
    return [
        Notice(id, NotificationKind.MISSED, "missed 0", 1e6, f"up to {last}") for id, last in dropped.items()
    ]


def test_a_notification_of_the_future_stops_nothing(mailbox: Mailbox) -> None:
    for number, at in enumerate([10.0, 5_000.0, 11.0, 5_001.0, 100.0]):  # the clock was wrong, twice
        mailbox.record(*batch(number, [notification_row("s", f"e{number}")], ended=at))
    assert forgotten(mailbox, before=50.0, now=200.0) == {"s": 3}
    # The fourth may be new: it goes when what came after it is old.
    assert [one.number for one in mailbox.page(["s"], after=0)] == [4, 5]
    assert forgotten(mailbox, before=150.0, now=200.0) == {"s": 5}
    assert mailbox.page(["s"]) == []


def test_many_of_the_future_stop_nothing(mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.service.store.mailbox._PORTION", 3)
    mailbox.record(*batch(0, [notification_row("s", f"e{n}") for n in range(10)], ended=5_000.0))
    mailbox.record(*batch(1, [notification_row("s", "old")], ended=10.0))
    assert forgotten(mailbox, before=50.0, now=200.0) == {"s": 11}


@pytest.mark.parametrize("portion", [2, 5_000])
def test_who_missed_something_is_told_in_the_same_transaction(
    mailbox: Mailbox, portion: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.service.store.mailbox._PORTION", portion)
    mailbox.record(*batch(0, [notification_row("s", f"e{n}") for n in range(6)], ended=10.0))

    def die(dropped: Mapping[str, int]) -> list[Notice]:
        raise KeyboardInterrupt  # as a kill would: nothing is committed

    with pytest.raises(KeyboardInterrupt):
        mailbox.forget(50.0, 200.0, die)
    assert mailbox.first() == 1
    mailbox.forget(50.0, 200.0, missed)
    (notice,) = mailbox.page(["s"])  # one, however many portions it took
    assert notice.kind is NotificationKind.MISSED
    assert notice.message == "up to 6"
    assert notice.number > 6


def test_how_much_is_kept_by_size(mailbox: Mailbox, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.service.store.transactions._SMALL", 0)
    monkeypatch.setattr("tidings.service.store.mailbox._PORTION", 100)
    fill(mailbox, 20, 80)  # events go with the last notification of their batch
    whole = mailbox._database.size()
    mailbox.forget_beyond(whole, missed)
    assert mailbox.first() == 1
    mailbox.forget_beyond(whole // 2, missed)
    assert mailbox._database.size() <= whole // 2
    kept = [one for one in mailbox.page([f"s{n}" for n in range(5)], after=0, limit=5_000) if one.event]
    assert [one.number for one in kept] == list(range(1_601 - len(kept), 1_601))  # the youngest
    assert 500 < len(kept) < 800
    notices = [one for one in mailbox.page(["s0", "s1"], limit=10) if one.kind is NotificationKind.MISSED]
    assert len(notices) == 2
    mailbox.forget_beyond(0, missed)  # it ends, though some bytes are always there
    assert {one.kind for one in mailbox.page([f"s{n}" for n in range(5)])} == {NotificationKind.MISSED}


# The file


def size_of(settings: Settings) -> int:
    with closing(sqlite3.connect(settings.data / "mailbox.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # which is done now and then
    return (settings.data / "mailbox.db").stat().st_size


def test_the_file_shrinks_while_others_write(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    mailbox, other = open_mailbox(settings), open_mailbox(settings)
    fill(mailbox, 6)
    mailbox.shrink()
    full = size_of(settings)
    mailbox.forget(1e3, 1e6, lambda dropped: [])
    fill(other, 1, at=5e3)
    mailbox.shrink()
    assert size_of(settings) < full / 3
    assert len(other.page(["s1"], limit=1_000)) == 40
    with mailbox._database.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar_one() == "ok"
    mailbox.close()
    other.close()


def test_a_file_of_an_earlier_version_shrinks_too(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    mailbox = open_mailbox(settings)
    fill(mailbox, 6)
    mailbox.close()
    with sqlite3.connect(tmp_path / "mailbox.db", isolation_level=None) as db:  # as it was made before
        db.execute("PRAGMA auto_vacuum = NONE")
        db.execute("VACUUM")
        assert db.execute("PRAGMA auto_vacuum").fetchone() == (0,)
    db.close()
    full = size_of(settings)
    mailbox = open_mailbox(settings)
    mailbox.forget(5.5, 1e6, lambda dropped: [])
    mailbox.shrink()
    assert size_of(settings) < full / 3
    assert len(mailbox.page(["s1"], limit=1_000)) == 40
    fill(mailbox, 5, at=5e3)
    mailbox.forget(1e4, 1e6, lambda dropped: [])
    mailbox.shrink()  # by portions from now on
    with mailbox._database.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA auto_vacuum").scalar_one() == 2
    assert size_of(settings) < full / 5
    mailbox.close()


def test_a_store_that_is_full_of_use_is_left_as_it_is(stores: Stores) -> None:
    fill(stores.mailbox, 2)
    before = stores.mailbox._database.size()
    stores.mailbox.shrink()
    assert stores.mailbox._database.size() == before
