"""What time does: subscriptions end when all that was accepted before is answered, and old things go."""

import json
import os
import threading
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from tests.service.stores import opened
from tidings.errors import TidingsError
from tidings.model.event import EVENT_SCHEMA, Event
from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.service.ingest.deduplication import Deduplication
from tidings.service.model import (
    BatchRecord,
    Channel,
    ChannelState,
    Delivery,
    Notice,
    NotificationKind,
    State,
    Subscription,
)
from tidings.service.settings import DAY, Settings
from tidings.service.store.channel_messages import ChannelMessages
from tidings.service.store.channels import ChannelStore
from tidings.service.subscriptions.expiry import Expiry
from tidings.storage.event_log import EventLog, Offset


class Clock:
    def __init__(self):
        self.now = time.time()

    def __call__(self):
        return self.now


class Index:
    """Takes what is in the outbox, as the index does, and knows what is asked."""

    def __init__(self, registry):
        self.registry, self.asked, self.drops = registry, set(), 0

    def wait_for(self, number):
        for change in self.registry.changes():
            self.asked.add(change.id) if change.text is not None else self.asked.discard(change.id)
        self.registry.applied(number)

    def drop(self):
        self.drops += 1


class World:
    """Real stores and a real log. The stream is played: it has answered what `answer` says."""

    def __init__(self, folder, segment_bytes=64 << 20):
        self.clock = Clock()
        self.settings = Settings(folder)
        self.registry, self.mailbox = opened(self.settings)
        self.log = EventLog(folder / "log", segment_bytes=segment_bytes)
        self.deduplication = Deduplication(folder / "arrivals.db", self.log)
        self.index = Index(self.registry)
        self.batches, self.places = {}, {}
        self.query("q1")
        self.expiry = self.new_expiry()

    def new_expiry(self):
        parts = self.registry, self.mailbox, self.log, self.deduplication, self.index, self.settings
        return Expiry(*parts, clock=self.clock)

    def query(self, id, folder=""):
        place = self.places[id] = self.settings.data / "checkpoint" / folder / "spark"
        for part in ("offsets", "commits"):
            (place / part).mkdir(parents=True, exist_ok=True)
        (place / "metadata").write_text(json.dumps({"id": id}))

    def answer(self, upto=None, query="q1"):
        upto = self.log.end() if upto is None else upto
        batch = self.batches[query] = self.batches.get(query, -1) + 1
        times = self.clock.now, self.clock.now
        if place := self.places.get(query):
            facts = json.dumps({"batchTimestampMs": 1_000})
            (place / "offsets" / str(batch)).write_text(f"v1\n{facts}\n{json.dumps(upto._asdict())}")
            (place / "commits" / str(batch - 1)).touch()
        record = BatchRecord(query, batch, "v1+0", upto.segment, upto.byte, 1, 0, 0, *times)
        assert self.mailbox.record(record, NOTIFICATION_SCHEMA.empty_table(), EVENT_SCHEMA.empty_table())

    def publish(self, id="e1"):
        return self.log.append([Event(source="here", id=id, attributes={"a": 1})])

    def add(self, id="s1", valid_for=100.0, **more):
        until = None if valid_for is None else self.clock.now + valid_for
        self.index.wait_for(
            self.registry.add(
                Subscription(id, "WHERE a = 1", id, "", "x", f"feed-{id}", self.clock.now, until, **more)
            )
        )

    def state(self, id="s1"):
        return self.registry.find(id).state

    def notifications(self, id="s1"):
        return [one.kind for one in self.mailbox.page([id], after=0, limit=100)]

    def close(self):
        self.deduplication.close()
        self.log.close()
        self.registry.close()
        self.mailbox.close()


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.close()


# Expiry


def test_one_ends_when_all_that_was_accepted_in_time_is_answered(world):
    world.add()
    in_time = world.publish()
    world.clock.now += 101
    world.expiry.sweep()
    assert world.state() is State.ACTIVE  # the stream is behind
    world.publish("e2")  # comes too late to be waited for
    world.expiry.sweep()
    assert world.state() is State.ACTIVE
    assert world.index.asked == {"s1"}
    world.answer(in_time)
    world.expiry.sweep()
    assert world.state() is State.EXPIRED
    assert world.index.asked == set()
    assert world.notifications() == [NotificationKind.EXPIRED]
    world.expiry.sweep()
    world.new_expiry().sweep()
    assert world.notifications() == [NotificationKind.EXPIRED]
    (notice,) = world.mailbox.page(["s1"])
    assert notice.at == world.clock.now
    assert notice.message.startswith("this subscription ended at 20")


def test_one_that_is_valid_stays(world):
    world.add()
    world.add("s2", valid_for=None)
    world.clock.now += 40
    world.expiry.sweep()
    assert (world.state(), world.state("s2")) == (State.ACTIVE, State.ACTIVE)
    assert world.notifications() == world.notifications("s2") == []


def test_nothing_is_waited_for_where_nothing_was_published(world):
    world.add()
    world.clock.now += 101
    world.expiry.sweep()
    assert world.state() is State.EXPIRED


def test_after_a_time_out_of_service_it_ends_too(world):
    world.add()
    end = world.publish()
    world.clock.now += DAY
    world.expiry = world.new_expiry()
    world.expiry.sweep()
    assert world.state() is State.ACTIVE
    world.answer(end)
    world.expiry.sweep()
    assert world.state() is State.EXPIRED
    assert world.notifications() == [NotificationKind.EXPIRED]  # "soon" is no news any more


def test_a_paused_one_ends_without_waiting(world):
    world.add(state=State.PAUSED)
    world.publish()
    world.clock.now += 101
    world.expiry.sweep()
    assert world.state() is State.EXPIRED
    assert world.notifications() == [NotificationKind.EXPIRED]


def test_one_that_is_renewed_while_it_waits_goes_on(world):
    world.add()
    end = world.publish()
    world.clock.now += 101
    world.expiry.sweep()
    found = world.registry.find("s1")
    world.registry.update(replace(found, valid_until=world.clock.now + 100, renewed=world.clock.now))
    world.answer(end)
    world.expiry.sweep()
    assert world.state() is State.ACTIVE
    late = world.publish("e2")
    world.clock.now += 101
    world.expiry.sweep()
    assert world.state() is State.ACTIVE  # the end that was noted the first time does not count
    world.answer(late)
    world.expiry.sweep()
    assert world.state() is State.EXPIRED


def test_one_that_is_renewed_at_that_very_moment_goes_on(world):
    world.add()
    world.clock.now += 101
    expire = world.registry.expire

    def be_late(given):
        found = world.registry.find("s1")
        world.registry.update(replace(found, valid_until=world.clock.now + 100, renewed=world.clock.now))
        return expire(given)

    world.registry.expire = be_late
    world.expiry.sweep()
    assert world.state() is State.ACTIVE
    assert world.notifications() == []


def test_every_query_of_the_stream_is_waited_for_and_no_other(world):
    world.answer(Offset(0, 16), "earlier")  # of a checkpoint that is gone
    world.query("q2", "joins")
    world.add()
    end = world.publish()
    world.clock.now += 101
    world.answer(end)
    world.expiry.sweep()
    assert world.state() is State.ACTIVE
    world.answer(end, "q2")
    world.expiry.sweep()
    assert world.state() is State.EXPIRED


def test_the_end_of_a_segment_is_the_start_of_the_next(tmp_path):
    world = World(tmp_path, segment_bytes=1)
    world.add()
    first = world.publish()
    second = world.publish("e2")
    assert second.segment > first.segment
    assert world.expiry._nothing_between(first, Offset(second.segment, 16))
    assert not world.expiry._nothing_between(first, second)
    world.close()


def test_many_end_in_a_few_rounds(world):
    until = world.clock.now + 10
    world.index.wait_for(
        world.registry.add_many(
            [
                Subscription(f"s{n}", "WHERE a = 1", "t", "", "x", f"f{n}", world.clock.now, until)
                for n in range(3_000)
            ]
        )
    )
    world.clock.now += 11
    for _ in range(3):
        world.expiry.sweep()
    assert world.registry.counts(None)[State.EXPIRED] == 3_000
    assert world.index.asked == set()
    assert world.notifications("s2999") == [NotificationKind.EXPIRED]


def test_a_notice_that_a_crash_swallowed_is_told_at_the_next_start(world):
    world.add()
    world.add("long ago")
    world.add("gone", valid_for=50)
    world.clock.now += 101
    for id, until in (("s1", world.clock.now - 1), ("long ago", world.clock.now - 8 * DAY)):
        world.registry.update(replace(world.registry.find(id), state=State.EXPIRED, valid_until=until))
    world.registry.update(replace(world.registry.find("gone"), state=State.CANCELLED))
    world.new_expiry().sweep()
    world.new_expiry().sweep()
    assert world.notifications() == [NotificationKind.EXPIRED]
    assert world.notifications("long ago") == world.notifications("gone") == []


# The notice before


@pytest.mark.parametrize(
    ("validity", "lead"),
    [(30 * DAY, 3_600), (DAY, 3_600), (3_600 * 5, 1_800), (600, 60), (300, 60), (100, 50), (10, 5)],
)
def test_the_end_is_announced_a_tenth_before(world, validity, lead):
    world.add(valid_for=validity)
    world.clock.now += validity - lead - 1
    world.expiry.sweep()
    assert world.notifications() == []
    world.clock.now += 61 if lead > 60 else 1.5  # what is far is looked at every minute
    world.expiry.sweep()
    assert world.notifications() == [NotificationKind.EXPIRES_SOON]
    assert world.registry.find("s1").warned
    world.new_expiry().sweep()
    assert world.notifications() == [NotificationKind.EXPIRES_SOON]


def test_it_is_announced_anew_for_every_end(world):
    world.add(valid_for=600)
    world.clock.now += 550
    world.expiry.sweep()
    found = world.registry.find("s1")
    now = world.clock.now
    world.registry.update(replace(found, valid_until=now + 600, renewed=now, warned=False))
    world.expiry.sweep()
    assert world.notifications() == [NotificationKind.EXPIRES_SOON]  # the new one has only begun
    world.clock.now += 550
    world.expiry.sweep()
    assert world.notifications() == [NotificationKind.EXPIRES_SOON] * 2
    world.clock.now += 51
    world.expiry.sweep()
    assert world.notifications() == [NotificationKind.EXPIRES_SOON] * 2 + [NotificationKind.EXPIRED]


def test_a_crash_between_telling_and_noting_tells_it_once(world):
    world.add()
    world.clock.now += 60
    warn = world.registry.warn

    def fail(given):
        raise OSError("killed")

    world.registry.warn = fail
    world.expiry.sweep()
    world.registry.warn = warn
    assert not world.registry.find("s1").warned
    world.new_expiry().sweep()
    assert world.registry.find("s1").warned
    assert world.notifications() == [NotificationKind.EXPIRES_SOON]


# Retention


def old(world, segment, days):
    path = world.log.folder / f"{segment:012d}.log"
    at = world.clock.now - days * DAY
    os.utime(path, (at, at))


def test_old_segments_go_but_none_that_the_stream_may_read(tmp_path):
    world = World(tmp_path, segment_bytes=1)
    ends = [world.publish(f"e{n}") for n in range(6)]
    world.deduplication.catch_up()
    first = ends[0].segment
    for n, end in enumerate(ends):
        old(world, end.segment, 10 if n < 4 else 1)
    world.expiry.retain()
    assert world.log.start().segment == first  # nothing is answered yet
    world.answer(ends[1])
    world.answer(ends[2])
    world.clock.now += 301
    world.expiry.retain()
    # The batch up to the third may be read again from the end of the second.
    assert world.log.start().segment == ends[1].segment
    for end in ends[3:]:
        world.answer(end)
    world.clock.now += 100
    world.expiry.retain()
    assert world.log.start().segment == ends[1].segment  # not yet: every few minutes is enough
    world.clock.now += 201
    world.expiry.retain()
    assert world.log.start().segment == ends[4].segment  # the younger ones stay
    assert len(world.deduplication) == 2
    assert world.log.end() == ends[-1]
    assert world.index.drops == 3
    world.close()


def test_a_segment_of_the_future_does_not_stop_retention(tmp_path):
    world = World(tmp_path, segment_bytes=1)
    ends = [world.publish(f"e{n}") for n in range(6)]
    for n, end in enumerate(ends):
        old(world, end.segment, {1: -300, 3: -300, 4: 1, 5: 0}.get(n, 10))
    for end in ends:
        world.answer(end)
    world.expiry.retain()
    # The fourth, stamped after now, may be young: it goes when the one after it is old.
    assert world.log.start().segment == ends[3].segment
    world.close()


def test_micro_batches_of_the_future_do_not_stop_retention(tmp_path):
    world = World(tmp_path, segment_bytes=1)
    ends = [world.publish(f"e{n}") for n in range(6)]
    for end in ends[:-1]:
        old(world, end.segment, 10)
    world.clock.now += 300 * DAY  # the clock was wrong for a while
    world.answer(ends[0])
    world.answer(ends[1])
    world.clock.now -= 300 * DAY
    for end in ends[2:]:
        world.answer(end)
    world.expiry.retain()
    assert world.log.start().segment == ends[4].segment
    world.close()


def test_the_log_is_bounded_by_size_but_for_what_waits(tmp_path):
    world = World(tmp_path, segment_bytes=1)
    world.settings = replace(world.settings, keep_size=1_500)
    world.expiry = world.new_expiry()
    ends = [world.publish(f"e{n}") for n in range(8)]
    sizes = [(world.log.folder / f"{end.segment:012d}.log").stat().st_size for end in ends]
    assert sum(sizes[-3:]) > 1_500 > sum(sizes[-2:])
    world.expiry.bound_size()
    assert world.log.start().segment == 0  # nothing is matched yet
    world.answer(ends[2])
    world.answer(ends[3])
    world.clock.now += 31
    world.expiry.bound_size()
    assert world.log.start().segment == ends[2].segment  # from where the last batch may be repeated
    for end in ends[4:]:
        world.answer(end)
    world.clock.now += 10
    world.expiry.bound_size()
    assert world.log.start().segment == ends[2].segment  # not yet
    world.clock.now += 30
    world.expiry.bound_size()
    assert world.log.start().segment == ends[6].segment
    assert world.log.end() == ends[-1]
    world.close()


def test_who_misses_something_by_the_size_that_is_kept_is_told(world):
    for id in ("slow", "quick"):
        world.add(id, valid_for=None)
        world.mailbox.notify(
            [
                Notice(id, NotificationKind.EXPIRES_SOON, f"{n}", world.clock.now, "soon " * 500)
                for n in range(400)
            ]
        )
    world.registry.set_delivery(Delivery("slow", "https://example.org/", "whsec_", 7))
    world.registry.set_delivery(Delivery("quick", "https://example.org/", "whsec_", 800))
    world.settings = replace(world.settings, keep_size=1_000_000)
    world.new_expiry().bound_size()
    first = world.mailbox.first()
    assert 200 < first < 800
    missed = world.mailbox.page(["slow"])[0]
    assert missed.kind is NotificationKind.MISSED
    assert missed.message == (
        f"notifications after number 7 up to number {min(first - 1, 400)} could not be delivered before there was no"
        " room for them, and are not kept any longer"
    )
    assert NotificationKind.MISSED not in world.notifications("quick")


def test_a_crash_while_old_ones_are_deleted_loses_no_notice(world):
    world.add("slow", valid_for=None)
    world.registry.set_delivery(Delivery("slow", "https://example.org/", "whsec_", 0))
    long_ago = world.clock.now - 8 * DAY
    world.mailbox.notify([Notice("slow", NotificationKind.EXPIRES_SOON, "n", long_ago, "soon")])
    notify = world.mailbox.notify

    def die(notices):
        raise KeyboardInterrupt

    world.mailbox.notify = die  # as a kill after the deletion would
    with suppress(KeyboardInterrupt):
        world.expiry.retain()
    world.mailbox.notify = notify
    world.new_expiry().retain()
    assert world.notifications("slow") == [NotificationKind.MISSED]


def test_what_a_webhook_did_not_take_in_time_is_told_as_missed(world):
    for id in ("slow", "quick", "none"):
        world.add(id, valid_for=None)
    long_ago = world.clock.now - 8 * DAY
    for id in ("slow", "quick", "none"):
        world.mailbox.notify(
            [Notice(id, NotificationKind.EXPIRES_SOON, f"{n}", long_ago, "soon") for n in range(3)]
        )
    world.mailbox.notify([Notice("slow", NotificationKind.EXPIRES_SOON, "new", world.clock.now, "soon")])
    world.registry.set_delivery(Delivery("slow", "https://example.org/", "whsec_", 1))
    world.registry.set_delivery(Delivery("quick", "https://example.org/", "whsec_", 6))
    world.expiry.retain()
    assert world.notifications("slow") == [NotificationKind.EXPIRES_SOON, NotificationKind.MISSED]
    missed = world.mailbox.page(["slow"])[0]
    assert missed.message == (
        "notifications after number 1 up to number 3 could not be delivered within 7 days, and are not kept any longer"
    )
    assert world.notifications("quick") == world.notifications("none") == []


def test_what_waited_too_long_for_a_channel_is_reported_as_missed_in_its_next_message(world):
    for id in ("weekly", "elsewhere"):
        world.add(id, valid_for=None)
    store, messages = ChannelStore(world.mailbox), ChannelMessages(world.mailbox)
    channel = Channel("c", "", "webhook", "https://example.org/", "", "{}", world.clock.now)
    store.add(channel, ["weekly"], most=10)
    store.add(replace(channel, id="u", state=ChannelState.UNCONFIRMED, created=1.0), ["weekly"], most=10)
    for id in ("weekly", "elsewhere"):
        world.mailbox.notify(
            [Notice(id, NotificationKind.EXPIRES_SOON, f"{n}", world.clock.now, "soon") for n in range(3)]
        )
    later = world.clock.now + 30 * DAY

    def due(schedule, sent, first):
        return later

    messages.assign(due, world.clock.now)
    world.clock.now += 8 * DAY
    world.expiry.retain()
    assert world.notifications("weekly") == [NotificationKind.MISSED]
    assert world.notifications("elsewhere") == []
    messages.assign(due, world.clock.now)
    assert messages.seal(lambda schedule, sent, first: 0.0, later, 10) == 1
    (message,) = messages.to_send(later, 10)
    (contents,) = messages.contents([message], 10)
    assert [each.message for each in contents.first] == [
        "notifications after number 0 up to number 3 could not be delivered within 7 days, and are not kept any longer"
    ]
    assert store.find("u") is None  # nobody has confirmed it


def test_what_ended_long_ago_is_forgotten_with_its_webhook(world):
    for id in ("expired", "cancelled", "recent", "active"):
        world.add(id)
    for id, state, days in (
        ("expired", State.EXPIRED, 8),
        ("cancelled", State.CANCELLED, 8),
        ("recent", State.EXPIRED, 6),
    ):
        found = world.registry.find(id)
        world.registry.update(replace(found, state=state, valid_until=world.clock.now - days * DAY))
        world.registry.set_delivery(Delivery(id, "https://example.org/", "whsec_", 0))
    world.expiry.retain()
    assert {one.id for one in world.registry.page(owner=None)} == {"recent", "active"}
    assert [one.subscription for one in world.registry.deliveries()] == ["recent"]


# The thread


def test_a_step_that_fails_does_not_hold_up_the_others(world, caplog):
    world.add()
    world.clock.now += 101

    def fail(query):
        raise TidingsError("the database is away")

    last_batch, world.mailbox.last_batch = world.mailbox.last_batch, fail
    world.expiry.sweep()
    assert world.state() is State.EXPIRED
    assert "the sweeper could not retain" in caplog.text
    world.mailbox.last_batch = last_batch
    world.expiry.sweep()
    assert world.index.drops == 1


def test_the_thread_goes_round_by_itself(world, monkeypatch):
    monkeypatch.setattr("tidings.service.subscriptions.expiry.EVERY", 0.01)
    ended = threading.Event()
    drop = world.index.drop
    world.index.drop = lambda: (drop(), ended.set())
    world.add()
    world.clock.now += 101
    world.expiry.start()
    assert ended.wait(20)
    world.expiry.stop()
    assert world.state() is State.EXPIRED
