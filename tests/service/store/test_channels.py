"""Channels and their messages in both databases."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from sqlalchemy import text

from tests.service.store.batches import batch, notification_row
from tests.service.store.conftest import Stores
from tidings.service.model import Channel, ChannelState
from tidings.service.settings import Settings
from tidings.service.store.channel_messages import ChannelMessages, Lane, Settled
from tidings.service.store.channels import ChannelStore, TooManyChannels
from tidings.service.store.database import open_database, open_mailbox

NOW = 1_000_000.0


def channel(id: str = "c", **more: object) -> Channel:
    made = Channel(id, "ann", "webhook", "https://example.org/", "Title\0", "{}", NOW, secret="s")
    return replace(made, **more)  # type: ignore[arg-type]


def due(schedule: str, sent: Sequence[float], first: float) -> float:
    return float(json.loads(schedule).get("due", first))


class Told:
    """The channels of a mailbox, and how notifications come into it."""

    def __init__(self, stores: Stores) -> None:
        self.mailbox = stores.mailbox
        self.channels, self.messages = ChannelStore(stores.mailbox), ChannelMessages(stores.mailbox)
        self._batches = 0

    def record(self, *subscriptions: str) -> None:
        rows = [notification_row(id, f"e{self._batches}") for id in subscriptions]
        assert self.mailbox.record(*batch(self._batches, rows))
        self._batches += 1

    def next_try(self) -> float | None:
        ids = [each.id for each in self.channels.page(owner=None)]
        return min(self.messages.next_messages(ids).values(), default=None)

    def assign(self, now: float = NOW) -> None:
        while self.messages.assign(due, now):
            pass


@pytest.fixture
def made(stores: Stores) -> Told:
    return Told(stores)


def test_channels_are_kept_as_they_are_given(made: Told) -> None:
    added = made.channels.add(channel(sent=(1.5, 2.25)), ["b", "a", "a"], most=2)
    assert added == channel(title="Title\ufffd", sent=(1.5, 2.25), cursor=made.mailbox.last())
    assert made.channels.find("c") == added
    assert made.channels.find("d") is None
    assert made.channels.subscriptions(["c", "d"]) == {"c": ["a", "b"]}
    made.channels.add(channel("d"), [], most=2)
    with pytest.raises(TooManyChannels):
        made.channels.add(channel("e"), [], most=2)
    made.channels.add(channel("f", owner="ben", created=NOW + 1), ["a"], most=2)
    assert [each.id for each in made.channels.page(owner=None)] == ["f", "d", "c"]
    assert [each.id for each in made.channels.page(owner="ann", after="d")] == ["c"]
    assert [each.id for each in made.channels.channels_of("a")] == ["c", "f"]
    made.channels.end("d", "enough")
    assert made.channels.counts() == {"active": 2, "ended": 1}
    with pytest.raises(TooManyChannels):
        made.channels.add(channel("e"), [], most=2)  # one that has ended counts until it is removed
    assert made.channels.remove("d")
    made.channels.add(channel("e"), [], most=2)


def test_messages_are_ranges_that_touch(made: Told) -> None:
    made.channels.add(channel(), ["s", "t"], most=9)
    made.channels.add(channel("later", schedule=json.dumps({"due": NOW + 100})), ["s"], most=9)
    made.record("s", "other")
    made.assign()
    assert made.messages.count() == 2
    assert made.messages.seal(due, NOW, 10) == 1
    (first,) = made.messages.to_send(NOW, 10)
    assert (first.channel.id, first.after, first.until) == ("c", 0, made.mailbox.last())
    assert first.id == f"c-{first.until}"
    made.record("t")
    made.assign()
    assert made.messages.seal(due, NOW, 10) == 0  # it waits for the one before
    assert made.messages.waiting([channel(), channel("later")]) == {"c": 2, "later": 1}
    assert made.messages.next_messages(["c", "later", "none"])["later"] == NOW + 100
    failed = replace(first.channel, failures=1, error="no\0")
    made.messages.settle([Settled(first, failed, NOW, NOW + 9)])
    assert made.messages.to_send(NOW, 10) == []
    (again,) = made.messages.to_send(NOW + 9, 10)
    assert (again.id, again.channel.failures) == (first.id, 1)
    assert made.messages.to_send(NOW + 9, 10, [Lane(again.channel.kind, False)]) == [again]
    assert made.messages.to_send(NOW + 9, 10, [Lane(again.channel.kind, True)]) == []
    assert [each.subscription for each in made.messages.contents([again], 5)[0].first] == ["s"]
    made.messages.settle([Settled(again, replace(again.channel, sent=(NOW,), failures=0), NOW)])
    assert made.messages.seal(due, NOW, 10) == 1
    (second,) = made.messages.to_send(NOW, 10)
    assert (second.after, second.channel.sent) == (first.until, (NOW,))
    assert [each.subscription for each in made.messages.contents([second], 5)[0].first] == ["t"]


def test_many_notifications_are_assigned_in_windows_and_gaps_cost_nothing(made: Told) -> None:
    made.channels.add(channel(), ["s0"], most=9)
    made.channels.add(channel("z"), ["s20999"], most=9)
    with made.mailbox.database.writing() as connection:
        connection.execute(text(f"UPDATE counters SET value = {1 << 60} WHERE name = 'number'"))
    made.record(*(f"s{n:05}" if n else "s0" for n in range(21_000)))
    assert made.messages.assign(due, NOW)
    assert not made.messages.assign(due, NOW)
    assert made.messages.waiting([channel(), channel("z")]) == {"c": 1, "z": 1}
    assert not made.messages.assign(due, NOW)


def test_undecided_ones_need_no_message(made: Told) -> None:
    made.channels.add(channel(), ["s"], most=9)
    undecided = {**notification_row("s", "u"), "verdict": "undecided"}
    assert made.mailbox.record(*batch(0, [undecided]))
    made.assign()
    assert made.messages.count() == 0
    assert made.mailbox.record(*batch(1, [{**undecided, "event": "v"}, notification_row("s", "m")]))
    made.assign()
    assert made.messages.waiting([channel()]) == {"c": 1}


def test_members_have_what_comes_between_their_numbers(made: Told) -> None:
    made.record("s")
    made.channels.add(channel(), ["s"], most=9)
    made.record("s", "t")
    made.channels.join("c", ["t", "s"])
    made.channels.leave("c", ["s"])
    made.channels.leave("c", ["s"])
    made.channels.join("c", ["u"])
    made.channels.leave("c", ["u"])
    made.record("s", "t", "u")
    made.channels.join("c", ["s"])
    made.record("s")
    made.assign()
    assert made.messages.seal(due, NOW, 10) == 1
    ((first, total),) = made.messages.contents(made.messages.to_send(NOW, 10), 10)
    assert [each.subscription for each in first] == ["s", "t", "s"]
    assert total == 3
    assert made.messages.unsent() == {"s": 1, "t": 3}
    made.channels.forget_members()
    assert made.messages.contents(made.messages.to_send(NOW, 10), 10)[0].total == 3


def test_a_channel_that_ended_gets_nothing_and_one_that_is_removed_is_unknown(made: Told) -> None:
    made.channels.add(channel(), ["s"], most=9)
    made.record("s")
    made.assign()
    ended = made.channels.end("c", "enough")
    assert ended is not None
    assert (ended.state, ended.reason) == (ChannelState.ENDED, "enough")
    assert made.messages.count() == 0
    made.record("s")
    made.assign()
    assert made.messages.count() == 0
    made.channels.end("c", "again")
    found = made.channels.find("c")
    assert found is not None
    assert found.reason == "enough"
    assert made.channels.remove("c")
    assert not made.channels.remove("c")
    assert made.channels.find("c") is None
    assert made.channels.confirm("c") is None


def test_times_of_a_clock_that_was_set_back_are_reckoned_anew(made: Told) -> None:
    made.channels.add(channel(), ["s"], most=9)
    made.channels.add(channel("open", schedule=json.dumps({"due": 5.0})), ["s"], most=9)
    made.record("s")
    future = NOW + 1e9
    made.messages.assign(lambda schedule, sent, first: future + 9, future)
    made.messages.set_back(due, future)
    assert made.next_try() == future + 9
    made.messages.set_back(due, NOW)
    assert made.next_try() == 0.0  # when it arrived, by the batch
    assert made.messages.seal(due, NOW, 10) == 2


def test_a_changed_schedule_changes_what_waits(made: Told) -> None:
    made.channels.add(channel(schedule=json.dumps({"due": NOW + 100})), ["s"], most=9)
    made.record("s")
    made.assign()
    assert made.next_try() == NOW + 100
    changed = made.channels.change("c", {"schedule": json.dumps({"due": NOW + 5})}, due, NOW)
    assert changed is not None
    assert made.next_try() == NOW + 5
    assert made.channels.change("none", {"title": "x"}, due, NOW) is None


def test_a_mailbox_from_before_channels_is_taken_over(empty: Settings) -> None:
    database = open_database(empty, "mailbox", new=True)
    with database.writing() as connection:
        database.create(connection, "0005")
        connection.execute(text("UPDATE counters SET value = 7 WHERE name = 'number'"))
        connection.execute(
            text("INSERT INTO notifications (number, subscription, kind, at) VALUES (7, 's', 'expired', 1)")
        )
    database.close()
    opened = open_mailbox(empty)
    channels, messages = ChannelStore(opened), ChannelMessages(opened)
    added = channels.add(channel(), ["s"], most=1)
    assert added.cursor == 7
    assert not messages.assign(due, NOW)
    assert messages.count() == 0
    assert opened.record(*batch(0, [notification_row("s", "e")]))
    assert not messages.assign(due, NOW)
    assert messages.waiting([added]) == {"c": 1}
    opened.close()
