"""What is promised of the mailbox, on either database."""

from __future__ import annotations

import json
import random
from pathlib import Path
from unittest.mock import patch

import pytest
from sqlalchemy import func, select
from sqlalchemy.event import listens_for

from tests.postgresql import Server
from tests.service.store.batches import batch, event, forgotten, notification_row, of_size, start
from tests.service.store.conftest import Stores
from tidings.model.event import Event
from tidings.service.model import Fault, Notice, NotificationKind, StoredNotification
from tidings.service.settings import Settings
from tidings.service.store import tables
from tidings.service.store.database import open_mailbox
from tidings.service.store.mailbox import Mailbox
from tidings.service.store.notification_search import Blocks, Span, numbers_of, numbers_of_each
from tidings.storage.event_log import Offset, Position


def numbers(found: list[StoredNotification]) -> list[int]:
    return [one.number for one in found]


def count(mailbox: Mailbox, table: object) -> int:
    with mailbox._database.reading() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def test_what_a_batch_told_is_found_as_it_was_told(mailbox: Mailbox) -> None:
    whole = Event(
        source="//here", id="e1", type="t", time="2026-01-01T00:00:00Z", datacontenttype="text/plain",
        data=bytes(range(256)), attributes={"title": "Ünï 😀", "deep": [{"a": None}]},
    )  # fmt: skip
    rows = [
        notification_row("s1", "e1", bindings=[("x", "väl"), ("y", "2")]),
        notification_row("s2", "e1", verdict="undecided", message="out of steps"),
        notification_row(
            "s1", "e2", part="p", sequence=3, changes=[{"table": "t", "change": "+", "row": '{"a": 1}'}]
        ),
        notification_row("s1", "e2", verdict="snapshot", part="p", sequence=3, changes=[]),
    ]
    assert mailbox.record(*batch(0, rows, [whole, event("e2"), event("untold")], ended=12.5))
    first, third, fourth = mailbox.page(["s1"], after=0)
    (second,) = mailbox.page(["s2"])
    assert numbers([first, second, third, fourth]) == [1, 2, 3, 4]
    assert first == StoredNotification(
        1, first.id, "s1", NotificationKind.MATCH, 12.5, whole, {"x": "väl", "y": "2"}
    )
    assert second == StoredNotification(
        2, second.id, "s2", NotificationKind.UNDECIDED, 12.5, whole, message="out of steps"
    )
    changes = ({"table": "t", "change": "+", "row": {"a": 1}},)
    assert third == StoredNotification(
        3, third.id, "s1", NotificationKind.MATCH, 12.5, event("e2"), {}, "p", 3, changes
    )
    assert fourth == StoredNotification(
        4, fourth.id, "s1", NotificationKind.SNAPSHOT, 12.5, event("e2"), {}, "p", 3
    )
    assert len({first.id, second.id, third.id, fourth.id}) == 4
    assert count(mailbox, tables.events) == 2
    assert mailbox.find("s1", first.id) == first
    assert mailbox.find("s2", first.id) is None
    assert mailbox.find("s1", "no") is None


def test_a_batch_that_comes_again_changes_nothing(mailbox: Mailbox) -> None:
    given = batch(
        4, [notification_row("s", "e"), notification_row(None, "bad", verdict="error", message="what")]
    )
    assert mailbox.record(*given)
    before = (mailbox.page(["s"]), mailbox.last(), mailbox.totals(), mailbox.faults(), mailbox.batches())
    assert not mailbox.record(*given)
    assert before == (
        mailbox.page(["s"]),
        mailbox.last(),
        mailbox.totals(),
        mailbox.faults(),
        mailbox.batches(),
    )


def test_the_same_thing_is_told_once_whatever_query_tells_it(mailbox: Mailbox) -> None:
    mailbox.record(*batch(0, [notification_row("s", "e1"), notification_row("s", "e2")]))
    before = mailbox.page(["s"], after=0)
    assert mailbox.record(
        *batch(
            0,
            [notification_row("s", "e2"), notification_row("s", "e3"), notification_row("s", "e3")],
            query="new",
        )
    )
    found = mailbox.page(["s"], after=0)
    assert found[:2] == before
    assert [one.event.id for one in found] == ["e1", "e2", "e3"]


def test_a_subscription_is_told_in_the_order_of_the_log_over_slices_and_batches(mailbox: Mailbox) -> None:
    chance, names = random.Random(3), [f"s{number}" for number in range(5)]
    answers = [
        (name, f"e{number:03d}")
        for number in range(120)
        for name in chance.sample(names, chance.randrange(1, len(names)))
    ]
    for number, first in enumerate(range(0, len(answers), 100)):
        for begin in range(first, first + 100, 30):
            part = answers[begin : min(begin + 30, first + 100)]
            until = Position(1, number, begin) if begin < first + 90 else None
            mailbox.record(*batch(number, [notification_row(*answer) for answer in part]), until=until)
    for name in names:
        told = [one.event and one.event.id for one in mailbox.page([name], after=0, limit=1_000)]
        assert told == [event for subscription, event in answers if subscription == name]
    together = mailbox.page(names, after=0, limit=1_000)
    assert [(one.subscription, one.event and one.event.id) for one in together] == answers


@pytest.mark.parametrize("kind", ["postgresql"])
def test_what_is_recorded_outlives_a_crash_of_a_server_that_commits_later(
    server: Server, settings: Settings, mailbox: Mailbox
) -> None:
    """The numbers of notifications were seen by clients: they must not be given again."""
    assert server.sql("SHOW synchronous_commit").strip() == b"off"
    for number in range(5):
        mailbox.record(*of_size("q", number, 40))
        with server.stopped():
            pass
        reopened = open_mailbox(settings)
        assert reopened.last() == (number + 1) * 40
        reopened.close()


def test_an_empty_batch_moves_on(mailbox: Mailbox) -> None:
    assert mailbox.record(*batch(0, []))
    assert mailbox.record(*batch(1, [], query="other", segment=7, byte=8))
    assert mailbox.record(*batch(1, [], [event(str(i)) for i in range(5)], segment=2, byte=9))
    assert mailbox.reached() == {"q": Offset(2, 9), "other": Offset(7, 8)}
    assert mailbox.last() == 0
    assert mailbox.first() == 1
    assert mailbox.totals() == {"events": 5, "notifications": 0, "errors": 0}
    assert [(one.query, one.batch) for one in mailbox.batches(limit=2)] in (
        [("q", 1), ("other", 1)],
        [("other", 1), ("q", 1)],
    )
    assert mailbox.batches()[-1] == batch(0, [])[0]


def test_an_unreadable_event_is_a_fault_and_told_to_nobody(mailbox: Mailbox) -> None:
    rows = [notification_row(None, f"e{i}", verdict="error", message=f"wrong {i}") for i in range(3)]
    mailbox.record(*batch(0, [*rows, notification_row(None, None, verdict="error", source=None)], ended=4.0))
    assert mailbox.faults() == [Fault("", "", "", 4.0)] + [
        Fault("//here", f"e{i}", f"wrong {i}", 4.0) for i in (2, 1, 0)
    ]
    assert len(mailbox.faults(limit=1)) == 1
    assert mailbox.last() == 0
    assert mailbox.totals()["errors"] == 4


def test_an_event_that_was_not_given_is_kept_by_its_name(mailbox: Mailbox) -> None:
    mailbox.record(*batch(0, [notification_row("s", "e")], []))
    assert mailbox.page(["s"])[0].event == Event(source="//here", id="e")


def test_pages_go_both_ways_and_hold_under_inserts(mailbox: Mailbox) -> None:
    mailbox.record(*batch(0, [notification_row(f"s{i % 3}", f"e{i}") for i in range(30)]))
    newest = mailbox.page(["s1"], limit=4)
    assert numbers(newest) == [29, 26, 23, 20]
    mailbox.record(*batch(1, [notification_row(f"s{i % 3}", f"f{i}") for i in range(6)]))
    assert numbers(mailbox.page(["s1"], before=20, limit=4)) == [17, 14, 11, 8]
    assert numbers(mailbox.page(["s1"], after=29)) == [32, 35]
    assert numbers(mailbox.page(["s1", "s2", "none"], after=25, limit=4)) == [26, 27, 29, 30]
    assert numbers(mailbox.page(["s1", "s2", "s1"], limit=3)) == [36, 35, 33]
    assert numbers(mailbox.page(["s0", "s2"], before=4)) == [3, 1]
    assert numbers(mailbox.page(["s1"], after=10, before=18)) == [11, 14, 17]
    assert numbers(mailbox.page([f"s{i}" for i in range(40_000)], limit=2)) == [36, 35]
    assert mailbox.page([]) == []
    assert mailbox.page(["s1"], limit=0) == mailbox.page(["s1", "s2"], limit=-5) == []


def test_cursors_may_be_any_integers(mailbox: Mailbox) -> None:
    mailbox.record(*batch(0, [notification_row("s", "e")]))
    assert len(mailbox.page(["s"], after=-(10**30))) == 1
    assert mailbox.page(["s"], after=10**30) == []
    assert len(mailbox.page(["s"], before=10**30)) == 1
    assert mailbox.news(10**30) == (1, {})
    assert mailbox.news(-(10**30)) == (1, {"s": 1})


def test_notices_are_told_once(mailbox: Mailbox) -> None:
    over = Notice("s", NotificationKind.EXPIRED, "expired 9", 9.0, "Its time is over.")
    mailbox.notify([over, Notice("t", NotificationKind.EXPIRED, "expired 9", 9.0, "Over."), over])
    mailbox.notify([over])
    mailbox.notify([])
    (found,) = mailbox.page(["s"])
    assert found == StoredNotification(
        1, "expired 9", "s", NotificationKind.EXPIRED, 9.0, message="Its time is over."
    )
    assert len(mailbox.page(["t"])) == 1


def test_news_are_of_those_who_were_told_since(mailbox: Mailbox) -> None:
    assert mailbox.news(0) == (0, {})
    mailbox.record(
        *batch(0, [notification_row("a", "1"), notification_row("b", "1"), notification_row("a", "2")])
    )
    assert mailbox.news(0) == (3, {"a": 3, "b": 2})
    assert mailbox.news(2) == (3, {"a": 3})
    assert mailbox.news(3) == (3, {})
    mailbox.notify([Notice("b", NotificationKind.MISSED, "m", 1.0, "Late.")])
    assert mailbox.news(3) == (4, {"b": 4})


@pytest.mark.parametrize("portion", [1, 3, 5_000])
def test_what_is_old_is_forgotten_with_its_events(
    mailbox: Mailbox, portion: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.service.store.mailbox._PORTION", portion)
    mailbox.record(
        *batch(
            0,
            [notification_row("a", "1"), notification_row("b", "1"), notification_row("b", "2")],
            ended=10.0,
        )
    )
    mailbox.record(
        *batch(1, [notification_row("a", "3"), notification_row(None, "x", verdict="error")], ended=20.0)
    )
    mailbox.record(*batch(2, [notification_row("c", "2"), notification_row("a", "4")], ended=30.0))
    assert forgotten(mailbox, 10.0) == {}
    assert mailbox.first() == 1
    assert forgotten(mailbox, 20.5) == {"a": 4, "b": 3}
    assert (mailbox.first(), mailbox.last()) == (5, 6)
    assert numbers(mailbox.page(["a", "b", "c"])) == [6, 5]
    assert mailbox.page(["c"])[0].event == event("2")
    assert count(mailbox, tables.events) == 2
    assert mailbox.faults() == []
    assert [one.batch for one in mailbox.batches()] == [2]
    assert not mailbox.record(
        *batch(1, [notification_row("a", "3")], ended=50.0)
    )  # which is known, though no longer kept
    assert forgotten(mailbox, 99.0) == {"a": 6, "c": 5}
    assert count(mailbox, tables.events) == 0
    assert (mailbox.first(), mailbox.last()) == (7, 6)
    assert not mailbox.record(*batch(2, [notification_row("c", "2")], ended=30.0))
    assert mailbox.reached() == {"q": Offset(1, 200)}
    assert mailbox.totals()["notifications"] == 6
    mailbox.record(*batch(3, [notification_row("a", "1")], ended=40.0))
    assert numbers(mailbox.page(["a"])) == [7]


def test_two_processes_take_turns_and_a_cursor_misses_nothing(stores: Stores) -> None:
    mailbox = stores.mailbox
    writers = [start(stores.settings, query, 12, 40) for query in ("one", "two")]
    notices, seen, cursor = 0, [], 0
    while True:
        over = all(writer.poll() is not None for writer in writers)
        last, changed = mailbox.news(cursor)
        found = mailbox.page([*changed, "nobody"], after=cursor, limit=10_000)
        assert max(numbers(found), default=cursor) >= max(changed.values(), default=cursor)
        seen += [one.number for one in found if one.number <= last]
        cursor = last
        if over:
            break
        if notices < 30:
            mailbox.notify([Notice("s0", NotificationKind.MISSED, f"n{notices}", 1.0, "Late.")])
            notices += 1
    assert [writer.wait() for writer in writers] == [0, 0]
    assert seen == list(range(1, mailbox.last() + 1))
    assert len(seen) == 2 * 12 * 40 + notices
    for writer in writers:
        writer.stdin.close()
        writer.stdout.close()


def test_a_process_killed_in_the_middle_of_a_batch_leaves_nothing_of_it(stores: Stores) -> None:
    mailbox = stores.mailbox
    with start(stores.settings, "q", 2, 3_000, "stop") as writer:
        assert writer.stdout.readline() == "middle\n"
        assert mailbox.last() == 3_000  # readers do not wait
        writer.kill()
    assert [one.batch for one in mailbox.batches()] == [0]
    assert count(mailbox, tables.notifications) == 3_000
    assert mailbox.record(*of_size("q", 1, 3_000))
    assert mailbox.last() == count(mailbox, tables.notifications) == 6_000
    assert mailbox.reached() == {"q": Offset(1, 100)}


def test_attributes_that_cannot_be_read_are_left_out(mailbox: Mailbox) -> None:
    given = batch(0, [notification_row("s", "e1"), notification_row("s", "e2"), notification_row("s", "e3")])
    texts = ["{", "[1]", "[" * 100_000]
    events = given[2].set_column(6, "attributes", [texts])
    mailbox.record(given[0], given[1], events)
    assert [one.event.attributes for one in mailbox.page(["s"])] == [{}, {}, {}]
    assert json.dumps([one.event.id for one in mailbox.page(["s"])]) == '["e3", "e2", "e1"]'


def test_pages_of_several_each_from_its_own_number(mailbox: Mailbox) -> None:
    mailbox.record(*batch(0, [notification_row(f"s{i % 3}", f"e{i}") for i in range(30)]))
    found = mailbox.pages({"s0": 0, "s1": 14, "s2": 30, "none": 0, "it's\0": 0}, 4)
    assert {id: numbers(page) for id, page in found.items()} == {"s0": [1, 4, 7, 10], "s1": [17, 20, 23, 26]}
    assert found["s0"] == mailbox.page(["s0"], after=0, limit=4)


def test_notifications_of_many_blocks(mailbox: Mailbox) -> None:
    """One subscription has some in each of 200 blocks of numbers, others have one in the first and in the last."""
    for block in range(200):
        with mailbox._database.writing() as connection:
            connection.exec_driver_sql(
                f"UPDATE counters SET value = {(block << 16) + 9} WHERE name = 'number'"
            )
        rare = "first" if block == 0 else "last" if block == 199 else "none"
        mailbox.record(*batch(block, [notification_row(id, f"e{block}") for id in ("all", "all too", rare)]))
    of_all = [(block << 16) + 10 for block in range(200)]
    assert numbers(mailbox.page(["all"], limit=1_000)) == of_all[::-1]
    assert numbers(mailbox.page(["all"], after=0, limit=150)) == of_all[:150]
    assert numbers(mailbox.page(["all"], before=of_all[40], limit=3)) == [of_all[39], of_all[38], of_all[37]]
    both = [number + more for number in of_all for more in (0, 1)]
    assert numbers(mailbox.page(["all", "all too"], after=of_all[3], limit=100)) == both[7:107]
    assert numbers(mailbox.page(["first", "last"])) == [of_all[199] + 2, of_all[0] + 2]
    found = mailbox.pages({"all": of_all[100], "first": 0, "last": 0, "all too": 1 << 40, "nobody": 0}, 60)
    assert {id: numbers(page) for id, page in found.items()} == {
        "all": of_all[101:161],
        "first": [of_all[0] + 2],
        "last": [of_all[199] + 2],
    }
    oldest = mailbox.page(["all"], after=0, limit=1)[0]
    assert mailbox.find("all", oldest.id) == oldest
    assert mailbox.find("last", oldest.id) is None
    with mailbox._database.writing() as connection:  # as a restoration does
        connection.exec_driver_sql("UPDATE counters SET value = value + 100000000000 WHERE name = 'number'")
    assert numbers(mailbox.page(["first", "last"])) == [of_all[199] + 2, of_all[0] + 2]
    told = mailbox.last()
    assert mailbox.record(*batch(200, [notification_row("all", "e0"), notification_row("new", "e0")]))
    assert numbers(mailbox.page(["all", "new"], after=told)) == [
        told + 2
    ]  # the event is told to the new one alone


def test_sqlite_uses_the_index_for_every_group_of_blocks(tmp_path: Path) -> None:
    mailbox = open_mailbox(Settings(tmp_path))
    ran: list[str] = []
    with mailbox._database.reading() as connection:

        @listens_for(connection, "before_cursor_execute")
        def note(_connection, cursor, statement, parameters, *_) -> None:
            if "ORDER BY" in statement:
                plan = cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()
                ran.extend(line[3] for line in plan if "notifications" in line[3])

        groups = [list(range(1 << power)) for power in range(0, 7, 2)]
        with patch.object(Blocks, "groups", lambda self, span, newest=False: iter(groups)):
            numbers_of(connection, ["a", "b"], Span(1, 1 << 30), 50, newest=True)
            numbers_of_each(connection, {"a": 1, "b": 2}, Span(1, 1 << 30), 50)
    assert len(ran) >= 2 * len(groups)
    assert all("notifications_block" in line or "(rowid=?)" in line for line in ran), ran
    mailbox.close()
