"""What people read of the mailbox: pages without what is undecided, causes, read positions and stars."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from tests.service.store.batches import batch, forgotten, notification_row
from tidings.service.settings import Settings
from tidings.service.store import reader_marks, received
from tidings.service.store.database import open_database, open_mailbox
from tidings.service.store.mailbox import Mailbox
from tidings.service.store.mailbox_rows import event_key
from tidings.service.store.reader_marks import ReaderMarks, TooManyStars
from tidings.service.store.received import Received, Unread, cause_of

BLOCK = 1 << 16


def doubtful(subscription: str, event: str, message: str) -> dict[str, object]:
    return notification_row(subscription, event, verdict="undecided", message=message)


@pytest.fixture
def flooded(mailbox: Mailbox) -> Mailbox:
    """A match, 300 undecided notifications in two blocks, and a match of each subscription."""
    mailbox.record(*batch(1, [notification_row("a", "first")]))
    rows = [doubtful("a", f"e{i}", f"locIn failed: KeyError: 'lat{i}'") for i in range(200)]
    mailbox.record(*batch(2, rows))
    with mailbox.database.writing() as connection:  # numbers have gaps, as after a restoration
        connection.execute(text(f"UPDATE counters SET value = {3 * BLOCK} WHERE name = 'number'"))
    rows = [doubtful("a", f"f{i}", f"near took longer than its timeout of {i} s") for i in range(100)]
    mailbox.record(*batch(3, [*rows, notification_row("a", "last"), notification_row("b", "last")]))
    return mailbox


def test_undecided_notifications_are_left_out_and_counted_by_cause(
    flooded: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Received(flooded)
    page = found.page(["a", "b"], limit=2)
    assert [(n.subscription, n.event.id) for n in page.notifications] == [("b", "last"), ("a", "last")]
    page = found.page(["a", "b"], before=page.further, limit=2)
    assert [(n.event.id, n.number) for n in page.notifications] == [("first", 1)]
    assert page.further is None
    assert [n.event.id for n in found.news(["a"], after=1, limit=9)] == ["last"]
    assert len(found.undecided(["a"], limit=150).notifications) == 150
    assert found.undecided(["b"]) == ([], None)

    causes, more = found.causes(["a", "b"])
    assert [(cause.name, cause.count) for cause in causes] == [
        ("near took longer than its timeout of … s", 100),
        ("locIn failed: KeyError", 200),
    ]
    assert (causes[1].message, more) == ("locIn failed: KeyError: 'lat199'", False)
    assert [cause.count for cause in found.causes(["a"], after=3 * BLOCK).causes] == [100]
    assert [cause.count for cause in found.causes(["a"], until=11).causes] == [10]
    monkeypatch.setattr(received, "CAUSES_FROM", 50)
    assert [cause.count for cause in found.causes(["a"]).causes] == [50]
    assert found.causes(["a"]).more

    # A page looks at so many blocks, and says where the next one goes on.
    monkeypatch.setattr(received, "_BLOCKS", 1)
    short = found.page(["a"], limit=5)
    assert [n.event.id for n in short.notifications] == ["last"]
    assert [n.event.id for n in found.page(["a"], before=short.further, limit=5).notifications] == ["first"]


def test_the_latest_of_each_and_what_is_unread(flooded: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    found, marks = Received(flooded), ReaderMarks(flooded)
    latest = found.latest(["a", "b", "none"])
    assert latest == {"a": 3 * BLOCK + 101, "b": 3 * BLOCK + 102}
    assert found.times(list(latest.values())) == dict.fromkeys(latest.values(), 3.0)
    positions = marks.positions("ann", ["a", "b", "none"])
    assert positions == {"a": 0, "b": 0, "none": 0}
    assert found.unread(positions) == {"a": Unread(1, 99, True), "b": Unread(1, 0, False)}
    marks.move("ann", {"a": 3 * BLOCK + 90, "b": 10**15})
    assert found.unread(marks.positions("ann", ["a", "b"])) == {"a": Unread(1, 10, False)}
    assert marks.positions("ann", ["b"])["b"] == flooded.last()  # no number that is yet to come
    marks.move("ann", {"a": 5})  # a position never goes back
    assert marks.positions("ann", ["a"]) == {"a": 3 * BLOCK + 90}
    assert marks.positions("ben", ["a"]) == {"a": 0}  # of another reader
    monkeypatch.setattr(received, "_NAMED", 30)
    assert found.unread(positions) == {"a": Unread(1, 99, True), "b": Unread(1, 0, False)}
    monkeypatch.setattr(received, "_ACTIVE_BLOCKS", 1)
    assert found.unread({"a": 0}) == {"a": Unread(0, 100, True)}


def test_stars_are_of_a_reader_and_go_with_their_notifications(
    flooded: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks, found = ReaderMarks(flooded), Received(flooded)
    *_, first = found.page(["a"]).notifications
    newest = found.page(["b"]).notifications[0]
    for notification in (first, newest, newest):
        marks.star("ann", notification)
    marks.star("ben", first)
    assert marks.starred("ann", [first.number, newest.number, 7]) == {first.number, newest.number}
    page = marks.starred_page("ann", None, limit=1)
    assert page.notifications == [newest]
    assert marks.starred_page("ann", None, before=page.further).notifications == [first]
    assert marks.starred_page("ann", "a").notifications == [first]
    marks.unstar("ann", newest.number)
    assert marks.starred_page("ann", None).notifications == [first]
    monkeypatch.setattr(reader_marks, "MOST_STARS", 1)
    with pytest.raises(TooManyStars, match="take some stars away"):
        marks.star("ann", newest)
    marks.star("ann", first)  # which has one
    marks.move("ann", {"a": 1})
    forgotten(flooded, before=2.5)
    assert marks.starred_page("ben", None) == ([], None)
    with flooded.database.reading() as connection:
        for name in ("stars", "read_positions"):
            assert connection.execute(text(f"SELECT count(*) FROM {name}")).scalar() == 0


def test_a_mailbox_from_before_marks_is_taken_over(empty: Settings) -> None:
    """What revision 0004 wrote has no read positions, no stars, and no index of what is undecided."""
    database = open_database(empty, "mailbox", new=True)
    key = event_key("//here", "e")
    with database.writing() as connection:
        database.create(connection, "0004")
        told = "INSERT INTO notifications (number, subscription, kind, at, event, message) VALUES "
        rows = "(1, 's', 'match', 1, :key, NULL), (2, 's', 'undecided', 1, :key, 'locIn failed: KeyError')"
        connection.execute(text(told + rows), {"key": key})
        event = "INSERT INTO events (key, id, source, first, last) VALUES (:key, 'e', '//here', 1, 2)"
        connection.execute(text(event), {"key": key})
        connection.execute(text("UPDATE counters SET value = 2 WHERE name = 'number'"))
    database.close()
    mailbox = open_mailbox(empty)
    found, marks = Received(mailbox), ReaderMarks(mailbox)
    assert [n.number for n in found.page(["s"]).notifications] == [1]
    assert [(cause.name, cause.count) for cause in found.causes(["s"]).causes] == [
        ("locIn failed: KeyError", 1)
    ]
    assert found.unread(marks.positions("", ["s"])) == {"s": Unread(1, 1, False)}
    mailbox.close()


def test_the_cause_of_a_message() -> None:
    assert cause_of("locIn failed: KeyError: 'lat'") == "locIn failed: KeyError"
    assert cause_of("count returned 7; return True or False") == "count returned …; return True or False"
