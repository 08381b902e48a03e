"""Each notification is in exactly one message, none early, none lost, wherever the process is killed; a message is sent again only
if the kill came between the server's acceptance and our commit, and then with the same id."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.service.delivery.channels.test_schedule import is_quiet
from tests.service.stores import opened
from tests.service.telling import record_matches, subscribe
from tidings.service.delivery.channels import sending
from tidings.service.delivery.channels.composing import Composer, Links
from tidings.service.delivery.channels.message import REFUSED, Message, MessageKind
from tidings.service.delivery.channels.schedule import Schedule, next_due
from tidings.service.delivery.channels.sending import REFUSALS, Sender, due_at
from tidings.service.delivery.channels.transports import Transports
from tidings.service.delivery.hub import Hub
from tidings.service.delivery.webhook_attempts import DELIVERED, FAILED, GONE, Outcome
from tidings.service.model import Channel, ChannelState, Notice, NotificationKind
from tidings.service.settings import Settings
from tidings.service.store.channel_messages import ChannelMessages
from tidings.service.store.channels import ChannelStore

BEGIN = 1_774_720_000.0  # on the day before clocks are changed in Vienna, in March 2026
SUBSCRIPTIONS = ["s0", "s1", "s2"]


class Killed(BaseException):
    """What a test has in the place of kill -9: nothing of the process goes on, and the store stays as it is."""


class World:
    """A store, a server that accepts messages, a clock, and the process that sends, which may be killed at each of its steps."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings(folder)
        self.registry, self.mailbox = opened(self.settings)
        for id in SUBSCRIPTIONS:
            subscribe(self.registry, id)
        self.store = ChannelStore(self.mailbox)
        self.now = BEGIN
        self.steps_left: int | None = None  # until it is killed
        self.answer = Outcome(DELIVERED)
        self.accepted: list[tuple[float, Message]] = []
        self.unnoted: Counter[str] = Counter()  # messages that were accepted when the process was killed
        self.under_way: str | None = None
        self.restart()

    def close(self) -> None:
        self.registry.close()
        self.mailbox.close()

    def restart(self) -> None:
        """A new process on the same store."""
        messages: Any = Mortal(ChannelMessages(self.mailbox), self.step)
        links = Links(self.settings, lambda purpose, text: "signed")
        composer = Composer(messages, self.registry, self.settings, links)
        transports = Transports(self.settings, {"webhook": lambda settings: self})
        self.sender = Sender(
            messages, composer, transports, Hub(self.mailbox), clock=lambda: self.now, seed=1
        )
        self.messages = messages

    def step(self) -> None:
        if self.steps_left is not None:
            self.steps_left -= 1
            if self.steps_left < 0:
                raise Killed

    # --- the server

    def address(self, given: str) -> str:
        return given

    async def send(self, message: Message, now: float) -> Outcome:
        self.step()
        if self.answer.result == DELIVERED:
            self.accepted.append((now, message))
            self.under_way = message.id
        self.step()
        return self.answer

    async def close_all(self) -> None: ...

    # --- the process

    def turn(self, kill_after: int | None = None) -> None:
        """All that is due now is sent, unless the process is killed after so many steps."""
        self.steps_left = kill_after
        try:
            asyncio.run(self._turn())
        except Killed:
            self.restart()
        self.steps_left = None

    async def _turn(self) -> None:
        sender = self.sender
        for _ in range(2):  # what is postponed, or waits for another, may be for the next turn
            await self.settle()
            await sender._turn()
            for queue in sender._queues.values():
                while not queue.empty():
                    job = queue.get_nowait()
                    queue_of_one: asyncio.Queue[Any] = asyncio.Queue()
                    queue_of_one.put_nowait(job)
                    queue_of_one.put_nowait(None)
                    try:
                        await sender._work(queue_of_one)
                        await self.settle()
                    except Killed:
                        if self.under_way is not None:
                            self.unnoted[self.under_way] += 1
                        raise
                    finally:
                        self.under_way = None
        await self.settle()

    async def settle(self) -> None:
        await self.sender._settle()
        self.under_way = None

    def next_try(self) -> float | None:
        ids = [channel.id for channel in self.store.page(owner=None)]
        return min(self.messages.next_messages(ids).values(), default=None)

    def drain(self) -> None:
        """Lets so much time go by that everything is sent."""
        self.answer = Outcome(DELIVERED)
        for _ in range(60):
            self.turn()
            due = self.next_try()
            if due is None:
                return
            self.now = max(self.now + 1, due)
        raise AssertionError("there is still something to send")


class Mortal:
    """The messages of a store, between each two steps of which the process may be killed."""

    def __init__(self, inner: ChannelMessages, step: Callable[[], None]) -> None:
        self._inner, self._step = inner, step

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        def called(*given: Any) -> Any:
            self._step()
            result = method(*given)
            self._step()
            return result

        return called


@contextmanager
def world() -> Iterator[World]:
    folder = Path(tempfile.mkdtemp(prefix="tidings-channels-"))
    made = World(folder)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder)


def add(
    world: World, id: str, schedule: Schedule, *subscriptions: str, kind: str = "webhook", **more: Any
) -> Channel:
    channel = Channel(
        id, "", kind, f"https://example.org/{id}", "", json.dumps(schedule.to_json()), world.now, **more
    )
    return world.store.add(channel, subscriptions, most=100)


SCHEDULES = [
    Schedule(),
    Schedule(at_most=2, per=3_600.0),
    Schedule(digest="hourly", zone="Asia/Kathmandu"),
    Schedule(
        digest="daily", at=150, zone="Europe/Vienna"
    ),  # at 02:30, which does not exist on one of these days
    Schedule(digest="weekly", at=480, day=1, zone="America/New_York", quiet=(420, 600)),
    Schedule(quiet=(1_320, 420), zone="Europe/Vienna"),
    Schedule(at_most=1, per=7_200.0, quiet=(60, 120), zone="Europe/Vienna"),
    Schedule(muted_until=BEGIN + 50_000.0),
]
channels = st.lists(
    st.tuples(st.sampled_from(SCHEDULES), st.sets(st.sampled_from(SUBSCRIPTIONS), min_size=1)),
    min_size=1,
    max_size=3,
)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("match"), st.sets(st.sampled_from(SUBSCRIPTIONS), min_size=1)),
        st.tuples(st.just("match"), st.sets(st.sampled_from(SUBSCRIPTIONS), min_size=1)),
        st.tuples(st.just("notice"), st.sampled_from(SUBSCRIPTIONS)),
        st.tuples(st.just("wait"), st.sampled_from([1, 60, 1_800, 3_600, 20_000, 86_400])),
        st.tuples(st.just("turn"), st.none()),
        st.tuples(st.just("turn"), st.integers(0, 24)),
        st.tuples(st.just("turn"), st.integers(0, 24)),
        st.tuples(st.just("join"), st.tuples(st.integers(0, 2), st.sampled_from(SUBSCRIPTIONS))),
        st.tuples(st.just("leave"), st.tuples(st.integers(0, 2), st.sampled_from(SUBSCRIPTIONS))),
        st.tuples(st.just("answer"), st.sampled_from([DELIVERED, DELIVERED, FAILED, REFUSED])),
    ),
    max_size=30,
)


class Expected:
    """What each channel is to get, by a list of members at every moment: the definition."""

    def __init__(self) -> None:
        self.members: defaultdict[str, set[str]] = defaultdict(set)
        self.arrived: defaultdict[str, list[tuple[float, str, str]]] = defaultdict(list)
        self.events = 0

    def add(self, now: float, subscription: str, event: str) -> None:
        for channel, members in self.members.items():
            if subscription in members:
                self.arrived[channel].append((now, subscription, event))


def play(world: World, expected: Expected, action: str, given: Any) -> None:
    names = sorted(expected.members)
    if action == "match":
        expected.events += 1
        event = f"e{expected.events}"
        record_matches(world.mailbox, sorted(given), event, at=world.now)
        for subscription in sorted(given):
            expected.add(world.now, subscription, event)
    elif action == "notice":
        expected.events += 1
        event = f"notice {expected.events}"
        world.mailbox.notify([Notice(given, NotificationKind.EXPIRES_SOON, event, world.now, event)])
        expected.add(world.now, given, event)
    elif action == "wait":
        world.now += given
    elif action == "turn":
        world.turn(given)
    elif action == "answer":
        world.answer = Outcome(given, None if given == DELIVERED else "not now")
    else:
        channel, subscription = names[given[0] % len(names)], given[1]
        if action == "join":
            world.store.join(channel, [subscription])
            expected.members[channel].add(subscription)
        else:
            world.store.leave(channel, [subscription])
            expected.members[channel].discard(subscription)


def check_each_once(world: World, expected: Expected) -> dict[str, list[tuple[float, Message]]]:
    """Checks what was accepted, and returns the first acceptance of each message, for each channel."""
    first: dict[str, tuple[float, Message]] = {}
    times: Counter[str] = Counter()
    for at, message in world.accepted:
        times[message.id] += 1
        kept = first.setdefault(message.id, (at, message))
        assert kept[1] == message, "a message that is sent again is the same"
    for id, count in times.items():
        assert count <= 1 + world.unnoted[id], "a message is sent again only after a kill before it was noted"
    sent: defaultdict[str, list[tuple[float, Message]]] = defaultdict(list)
    for at, message in first.values():
        sent[message.channel].append((at, message))
    for channel in expected.members:
        items = [item for _, message in sent[channel] for item in message.items]
        assert [(item.subscription, item.title) for item in items] == [
            (subscription, event) for _, subscription, event in expected.arrived[channel]
        ]
    return sent


@given(channels, actions)
@examples(25)
def test_each_notification_is_in_one_message_and_none_is_early(
    given_channels: list[tuple[Schedule, set[str]]], given_actions: list[tuple[str, Any]]
) -> None:
    with world() as w:
        expected, schedules = Expected(), {}
        for number, (schedule, members) in enumerate(given_channels):
            add(w, f"c{number}", schedule, *members)
            expected.members[f"c{number}"] = set(members)
            schedules[f"c{number}"] = schedule
        refusals = 0
        for action, what in given_actions:
            refusals += action == "turn" and w.answer.result == REFUSED
            if refusals >= REFUSALS:  # the channel would end
                w.answer = Outcome(DELIVERED)
            play(w, expected, action, what)
        w.drain()
        for channel, sent in check_each_once(w, expected).items():
            schedule, arrivals = schedules[channel], iter(expected.arrived[channel])
            times: list[float] = []
            for at, message in sent:
                arrived = [next(arrivals)[0] for _ in message.items]
                assert at >= next_due(schedule, arrived[0], times), "none is early"
                assert not is_quiet(schedule, at)
                times.append(at)
            if schedule.at_most is not None:
                for index in range(schedule.at_most, len(times)):
                    assert times[index] - times[index - schedule.at_most] >= schedule.per - 1e-3


@given(channels, actions, st.lists(st.sampled_from([-400_000, -7_200, -5]), max_size=3))
@examples(10)
def test_a_clock_that_is_set_back_loses_nothing_and_delays_nothing(
    given_channels: list[tuple[Schedule, set[str]]], given_actions: list[tuple[str, Any]], jumps: list[int]
) -> None:
    with world() as w:
        expected = Expected()
        for number, (schedule, members) in enumerate(given_channels):
            add(w, f"c{number}", schedule, *members)
            expected.members[f"c{number}"] = set(members)
        for action, what in [*given_actions, *(("wait", jump) for jump in jumps)]:
            play(w, expected, action, what if action != "answer" else DELIVERED)
        w.turn()
        due = w.next_try()
        muted = max((schedule.muted_until or 0.0) for schedule, _ in given_channels)
        assert due is None or due <= max(w.now, muted) + 8 * 86_400, "a week, and quiet hours"
        w.drain()
        check_each_once(w, expected)


@pytest.mark.parametrize(("result", "attempts"), [(GONE, 1), (REFUSED, REFUSALS)])
def test_a_channel_ends_when_its_server_refuses_it(result: str, attempts: int) -> None:
    with world() as w:
        add(w, "c", Schedule(), "s0")
        record_matches(w.mailbox, "s0", "e", at=w.now)
        w.answer = Outcome(result, "no such mailbox")
        for attempt in range(attempts):
            found = w.store.find("c")
            assert found is not None
            assert (found.state, found.refusals) == (ChannelState.ACTIVE, attempt)
            w.turn()
            w.now = max(w.now, w.next_try() or 0.0)
        found = w.store.find("c")
        assert found is not None
        assert (found.state, found.reason) == (ChannelState.ENDED, "no such mailbox")
        assert w.next_try() is None
        record_matches(w.mailbox, "s0", "later", at=w.now)
        w.turn()
        assert w.next_try() is None
        assert not w.accepted


def test_a_failing_server_gets_everything_together_when_it_is_back() -> None:
    with world() as w:
        add(w, "c", Schedule(), "s0")
        w.answer = Outcome(FAILED, "the server is away")
        for number in range(5):
            record_matches(w.mailbox, "s0", f"e{number}", at=w.now)
            w.turn()
            w.now += 700
        found = w.store.find("c")
        assert found is not None
        assert (found.failures, found.error) == (5, "the server is away")
        w.drain()
        assert [[item.title for item in message.items] for _, message in w.accepted] == [
            ["e0"],
            ["e1", "e2", "e3", "e4"],
        ]
        found = w.store.find("c")
        assert found is not None
        assert (found.failures, found.error) == (0, None)


class Hanging:
    """A server that accepts nothing before it is let go."""

    def __init__(self) -> None:
        self.is_free = asyncio.Event()

    def address(self, given: str) -> str:
        return given

    async def send(self, message: Message, now: float) -> Outcome:
        await self.is_free.wait()
        return Outcome(DELIVERED)

    async def close(self) -> None: ...


def test_a_server_that_hangs_delays_no_other_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("AT_ONCE", 2), ("BATCH", 6), ("ENOUGH", 3)):
        monkeypatch.setattr(sending, name, value)

    async def send(w: World) -> int:
        hanging, accepted, stop = Hanging(), asyncio.Event(), asyncio.Event()

        class Working(Hanging):
            async def send(self, message: Message, now: float) -> Outcome:
                accepted.set()
                return Outcome(DELIVERED)

        transports = Transports(w.settings, {"email": lambda _: hanging, "webhook": lambda _: Working()})
        composer = Composer(w.messages, w.registry, w.settings, Links(w.settings, lambda *_: "signed"))
        sender = Sender(
            w.messages, composer, transports, Hub(w.mailbox), clock=lambda: w.now, tick=0.02, seed=1
        )
        running = asyncio.create_task(sender.run(stop))
        async with asyncio.timeout(10):
            await accepted.wait()
        while w.messages.count() > 20:  # until it is stored that the message was sent
            await asyncio.sleep(0.01)
        hanging.is_free.set()
        stop.set()
        await running
        return w.messages.count()

    with world() as w:
        for number in range(20):
            add(w, f"m{number}", Schedule(), "s0", kind="email")
        add(w, "w", Schedule(), "s1")
        record_matches(w.mailbox, "s0", "e0", at=w.now - 1)
        record_matches(w.mailbox, "s1", "e1", at=w.now)
        assert 0 < asyncio.run(send(w)) < 20


def test_a_time_zone_that_is_gone_holds_up_no_channel() -> None:
    with world() as w:
        add(w, "gone", Schedule(quiet=(0, 1), zone="Europe/Atlantis"), "s0")
        add(w, "c", Schedule(), "s0")
        record_matches(w.mailbox, "s0", "e0", at=w.now)
        w.drain()
        assert {message.channel for _, message in w.accepted} == {"gone", "c"}


def test_a_long_message_counts_what_it_leaves_out() -> None:
    with world() as w:
        add(w, "c", Schedule(), "s0", "s1")
        record_matches(w.mailbox, ["s0", "s1"], *(f"e{number}" for number in range(40)), at=w.now)
        w.drain()
        ((_, message),) = w.accepted
        assert (len(message.items), message.more) == (50, 30)


def test_two_channels_of_a_subscription_have_their_own_positions() -> None:
    with world() as w:
        add(w, "late", Schedule(digest="weekly"), "s0")
        for number in range(3):
            record_matches(w.mailbox, "s0", *(f"e{number}-{event}" for event in range(600)), at=w.now)
            w.turn()
        add(w, "now", Schedule(), "s0")
        record_matches(w.mailbox, "s0", "last", at=w.now)
        w.turn()
        ((_, message),) = w.accepted
        assert [item.title for item in message.items] == ["last"]
        w.drain()
        assert len(w.accepted) == 2


def test_what_comes_while_a_message_is_sealed_needs_no_other() -> None:
    with world() as w:
        add(w, "c", Schedule(), "s0")
        due = due_at(w.now)
        record_matches(w.mailbox, "s0", "e1", at=w.now)
        assert not w.messages.assign(due, w.now)
        record_matches(w.mailbox, "s0", "e2", at=w.now)
        assert w.messages.seal(due, w.now, 10) == 1
        assert not w.messages.assign(due, w.now)
        assert w.messages.count() == 1
        w.drain()
        assert [[item.title for item in message.items] for _, message in w.accepted] == [["e1", "e2"]]


def test_a_limit_holds_for_what_collected_while_a_message_failed() -> None:
    with world() as w:
        add(w, "c", Schedule(at_most=1, per=3_600.0), "s0")
        w.answer = Outcome(FAILED, "the server is away")
        record_matches(w.mailbox, "s0", "e1", at=w.now)
        w.turn()
        record_matches(w.mailbox, "s0", "e2", at=w.now)
        w.turn()
        w.drain()
        (first, _), (second, _) = w.accepted
        assert second - first >= 3_600.0


def test_what_was_due_while_nothing_ran_respects_quiet_hours_and_mutes() -> None:
    begin = datetime(2026, 5, 4, 21, 59, tzinfo=ZoneInfo("Europe/Vienna")).timestamp()
    quiet = Schedule(quiet=(1_320, 420), zone="Europe/Vienna")
    for steps in range(8):  # killed before and after it is assigned, and sealed
        with world() as w:
            w.now = begin
            add(w, "c", quiet, "s0")
            record_matches(w.mailbox, "s0", "e1", at=w.now)
            w.turn(kill_after=steps)
            if w.accepted:
                break
            w.now += 3_600
            w.turn()
            assert not w.accepted
            w.drain()
            ((at, _),) = w.accepted
            assert at == begin + 9 * 3_600 + 60
    assert steps > 4
    with world() as w:
        add(w, "c", Schedule(), "s0")
        w.answer = Outcome(FAILED, "the server is away")
        record_matches(w.mailbox, "s0", "e1", at=w.now)
        w.turn()
        muted = json.dumps(Schedule(muted_until=w.now + 86_400).to_json())
        w.store.change("c", {"schedule": muted}, due_at(w.now), w.now)
        w.answer = Outcome(DELIVERED)
        w.now += 3_600
        w.turn()
        assert not w.accepted
        w.drain()
        ((at, _),) = w.accepted
        assert at == BEGIN + 86_400


def test_a_channel_begins_and_goes_on_where_it_is_confirmed() -> None:
    with world() as w:
        add(w, "c", Schedule(), "s0", state=ChannelState.UNCONFIRMED)
        record_matches(w.mailbox, "s0", "before", at=w.now)
        w.drain()
        assert [(message.kind, message.items) for _, message in w.accepted] == [
            (MessageKind.CONFIRMATION, ())
        ]
        w.store.confirm("c")
        w.store.confirm("c")
        record_matches(w.mailbox, "s0", "after", at=w.now)
        w.drain()
        assert [item.title for item in w.accepted[-1][1].items] == ["after"]
        assert len(w.accepted) == 2
