"""Webhooks against real receivers: in order, verified by the library that receivers use, whatever goes wrong."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.service.telling import expire, record_matches, stores, subscribe
from tidings.feeds.addresses import AsyncGuard
from tidings.service.delivery.hub import Hub
from tidings.service.delivery.notification_json import notification_to_json
from tidings.service.delivery.receivers import Receivers
from tidings.service.delivery.webhook_attempts import Outcome, attempt, message_id
from tidings.service.delivery.webhooks import AT_HOST, Webhooks
from tidings.service.model import Delivery, NotificationKind, State, StoredNotification
from tidings.service.settings import Settings
from tidings.service.store.mailbox import Mailbox
from tidings.service.store.registry import Registry
from tidings.service.subscriptions.tickets import new_webhook_secret

LOOPBACK = ("127.0.0.0/8",)
SECRET = new_webhook_secret()


def to_json(notification: StoredNotification) -> Mapping[str, object]:
    return notification_to_json(notification, Settings(data=Path("nowhere")))


@dataclass
class Answer:
    status: int = 204
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass
class Receiver:
    """An HTTP server that notes what it gets. `answer` decides what it says; it may take its time."""

    answer: Callable[[], Answer] = Answer
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    taken: list[dict[str, Any]] = field(default_factory=list)  # verified, and to be answered with 2xx
    url: str = ""
    verify: Callable[[bytes, dict[str, str]], dict[str, Any]] = Webhook(SECRET).verify
    came: threading.Condition = field(default_factory=threading.Condition)

    def titles(self, subscription: str | None = None) -> list[str]:
        return [
            one["data"]["event"]["title"] if one["data"]["event"] else one["data"]["kind"]
            for one in self.taken
            if subscription in (None, one["data"]["subscription"])
        ]

    async def until(self, enough: Callable[[], bool], timeout: float = 20) -> None:
        def wait() -> bool:
            with self.came:
                return self.came.wait_for(enough, timeout)

        assert await asyncio.to_thread(wait), f"only these came: {self.titles()}, {len(self.got)} requests"


@contextmanager
def receiving(answer: Callable[[], Answer] = Answer) -> Iterator[Receiver]:
    receiver = Receiver(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            with receiver.came:
                receiver.got.append((headers, body))
                receiver.came.notify_all()
            said = receiver.answer()
            if 200 <= said.status < 300:
                # Before the answer: the next one may come on another connection as soon as this one is answered.
                with receiver.came:
                    receiver.taken.append(receiver.verify(body, headers))
                    receiver.came.notify_all()
            try:
                self.send_response(said.status)
                for name, value in said.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(said.body)))
                self.end_headers()
                self.wfile.write(said.body)
            except OSError:
                self.close_connection = True

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        receiver.url = f"http://127.0.0.1:{server.server_port}/hook"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()


@dataclass
class World:
    registry: Registry
    mailbox: Mailbox
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def hook(self, id: str, url: str, cursor: int = 0) -> None:
        subscribe(self.registry, id)
        self.registry.set_delivery(Delivery(id, url, SECRET, cursor))

    def delivery(self, id: str) -> Delivery:
        found = self.registry.delivery(id)
        assert found is not None
        return found

    async def noted(self, id: str, enough: Callable[[Delivery], bool]) -> Delivery:
        """The delivery, as soon as it is so."""
        async with asyncio.timeout(10):
            while not enough(self.delivery(id)):
                await asyncio.sleep(0.01)
        return self.delivery(id)

    @asynccontextmanager
    async def delivering(self, *, registry: Any = None, **more: Any) -> AsyncIterator[Webhooks]:
        def count(outcome: str) -> None:
            self.counts[outcome] += 1

        hub = Hub(self.mailbox, interval=0.005)
        hub.start()
        receivers = Receivers(AsyncGuard(LOOPBACK))
        options = {"tick": 0.01, "seed": 1, "count": count, **more}
        hooks = Webhooks(registry or self.registry, self.mailbox, hub, receivers, to_json, **options)
        stop = asyncio.Event()
        task = asyncio.create_task(hooks.run(stop))
        try:
            yield hooks
        finally:
            stop.set()
            await task
            await asyncio.to_thread(hub.stop)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with stores(tmp_path) as (registry, mailbox):
        yield World(registry, mailbox)


class Hasty:
    """A clock that runs fast. What it signed is verified by a receiver whose clock shows the time of the signature."""

    def __init__(self, rate: float) -> None:
        self._real, self._began, self._rate = time.monotonic(), time.time(), rate

    def __call__(self) -> float:
        return self._began + (time.monotonic() - self._real) * self._rate


def verify(body: bytes, headers: dict[str, str]) -> dict[str, Any]:
    class Then(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.fromtimestamp(float(headers["webhook-timestamp"]) + 1, tz)

    with _verifying, pytest.MonkeyPatch.context() as patch:
        patch.setattr("standardwebhooks.webhooks.datetime", Then)
        return dict(Webhook(SECRET).verify(body, headers))


_verifying = threading.Lock()


def test_it_delivers_in_order_and_notes_how_far_it_is(world: World) -> None:
    async def run() -> None:
        with receiving() as receiver:
            world.hook("a", receiver.url)
            record_matches(world.mailbox, ["a", "b"], *(f"old {i}" for i in range(50)))
            async with world.delivering():
                await receiver.until(lambda: len(receiver.taken) == 50)
                await asyncio.to_thread(record_matches, world.mailbox, "a", "new")
                await receiver.until(lambda: len(receiver.taken) == 51)
            assert receiver.titles() == [f"old {i}" for i in range(50)] + ["new"]
            assert world.delivery("a").cursor == 101
            headers, body = receiver.got[0]
            sent = json.loads(body)
            assert headers["content-type"] == "application/json"
            assert set(sent) == {"type", "timestamp", "data"}
            assert sent["type"] == "tidings.match"
            assert datetime.fromisoformat(sent["timestamp"]).tzinfo is not None
            assert headers["webhook-id"] == sent["data"]["id"]
            assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 51

    asyncio.run(run())
    assert world.counts == {"delivered": 51}


def test_who_fails_for_an_hour_gets_everything_afterwards_in_order(world: World) -> None:
    """The bar: an hour in seconds, by a clock that runs 1,800 times as fast."""
    clock = Hasty(rate=1_800)
    began = clock()
    asked: list[float] = []

    def answer() -> Answer:
        asked.append(clock())
        return Answer(204 if clock() > asked[0] + 6_000 else 503)

    async def run() -> None:
        with receiving(answer) as receiver:
            receiver.verify = verify
            for id in "abc":
                world.hook(id, receiver.url)
            async with world.delivering(clock=clock):
                for hour in range(12):
                    await asyncio.to_thread(
                        record_matches,
                        world.mailbox,
                        ["a", "b", "c"],
                        *(f"{hour}.{i}" for i in range(5)),
                        at=clock(),
                    )
                    while clock() < began + (hour + 1) * 300:
                        await asyncio.sleep(0.005)
                await receiver.until(lambda: len(receiver.taken) >= 3 * 61)
            expected = [f"{hour}.{i}" for hour in range(12) for i in range(5)]
            for id in "abc":
                assert receiver.titles(id) == [*expected, "missed"], id
                assert world.delivery(id) == Delivery(
                    id, receiver.url, SECRET, world.mailbox.page([id])[0].number
                )
            # Tried less and less often, and never given up.
            assert 15 < len(receiver.got) - len(receiver.taken) < 120
            late = next(one for one in receiver.taken if one["type"] == "tidings.missed")
            assert "comes late" in late["data"]["message"]

    asyncio.run(run())


def test_a_failure_shorter_than_an_hour_is_not_worth_a_word(world: World) -> None:
    failures = iter([500, 500, 429])
    clock = Hasty(rate=50)

    async def run() -> None:
        with receiving(lambda: Answer(next(failures, 200))) as receiver:
            world.hook("a", receiver.url)
            record_matches(world.mailbox, "a", "one", "two")
            async with world.delivering(clock=clock):
                await receiver.until(lambda: len(receiver.taken) == 2)
            assert receiver.titles() == ["one", "two"]
            ids = [headers["webhook-id"] for headers, _ in receiver.got]
            assert len(ids) == 5
            assert len(set(ids[:4])) == 1, "the same message, tried again"
            assert [notification.kind for notification in world.mailbox.page(["a"])] == [
                NotificationKind.MATCH,
                NotificationKind.MATCH,
            ]

    asyncio.run(run())


def test_many_slow_receivers_delay_no_quick_one(world: World) -> None:
    release = threading.Event()

    def slow() -> Answer:
        release.wait(20)
        return Answer()

    async def run() -> None:
        with receiving(slow) as sloth, receiving() as quick:
            for i in range(50):
                world.hook(f"slow{i}", sloth.url)
            world.hook("quick", quick.url)
            everyone = [*(f"slow{i}" for i in range(50)), "quick"]
            record_matches(world.mailbox, everyone, "one", "two")
            async with world.delivering():
                try:
                    await quick.until(lambda: quick.titles() == ["one", "two"], 15)
                    await asyncio.to_thread(record_matches, world.mailbox, "quick", "three")
                    await quick.until(lambda: quick.titles() == ["one", "two", "three"], 15)
                    assert 0 < len(sloth.got) <= AT_HOST, "one host is asked a few things at a time"
                finally:
                    release.set()
                await sloth.until(lambda: len(sloth.taken) == 100)
            assert all(sloth.titles(f"slow{i}") == ["one", "two"] for i in range(50))

    asyncio.run(run())


def test_gone_disables_it(world: World) -> None:
    async def run() -> None:
        with receiving(lambda: Answer(410)) as receiver:
            world.hook("a", receiver.url)
            record_matches(world.mailbox, "a", "one", "two")
            async with world.delivering():
                found = await world.noted("a", lambda one: one.disabled is not None)
                await asyncio.to_thread(record_matches, world.mailbox, "a", "three")
                await asyncio.sleep(0.1)
            assert found.disabled == "the receiver said that it is gone for good (410)"
            assert found.cursor == 0
            assert len(receiver.got) == 1
            assert world.registry.deliveries() == []

    asyncio.run(run())
    assert world.counts == {"gone": 1}


def test_an_address_that_is_changed_while_it_fails_gets_all(world: World) -> None:
    async def run() -> None:
        with receiving(lambda: Answer(500, {"Retry-After": "3600"})) as broken, receiving() as good:
            world.hook("a", broken.url)
            record_matches(world.mailbox, "a", "one", "two")
            async with world.delivering() as hooks:
                await world.noted("a", lambda one: one.failures == 1)
                await asyncio.to_thread(world.registry.set_delivery, Delivery("a", good.url, SECRET, 0))
                hooks.poke("a")
                await good.until(lambda: len(good.taken) == 2)
            assert good.titles() == ["one", "two"]
            assert world.delivery("a") == Delivery("a", good.url, SECRET, 2)
            assert len(broken.got) == 1

    asyncio.run(run())


def test_an_address_that_is_changed_during_a_try_is_not_undone(world: World) -> None:
    async def run() -> None:
        with receiving() as good:

            def change() -> Answer:
                world.registry.set_delivery(Delivery("a", good.url, SECRET, 0))
                holder[0].poke("a")
                return Answer(500)

            holder: list[Webhooks] = []
            with receiving(change) as old:
                world.hook("a", old.url)
                async with world.delivering() as hooks:
                    holder.append(hooks)
                    await asyncio.to_thread(record_matches, world.mailbox, "a", "one")
                    await good.until(lambda: len(good.taken) == 1)
                assert len(old.got) == 1
            assert world.delivery("a") == Delivery("a", good.url, SECRET, 1)

    asyncio.run(run())


def test_a_cancelled_subscription_is_not_tried_again_and_stays_gone(world: World) -> None:
    clock = Hasty(rate=100)

    async def run() -> None:
        with receiving(lambda: Answer(500)) as receiver:
            world.hook("a", receiver.url)
            record_matches(world.mailbox, "a", "one")
            async with world.delivering(clock=clock) as hooks:
                await receiver.until(lambda: len(receiver.got) >= 2)
                found = world.registry.find("a")
                assert found is not None
                world.registry.update(replace(found, state=State.CANCELLED))
                world.registry.remove_delivery("a")
                hooks.poke("a")
                await asyncio.sleep(0.05)
                tried = len(receiver.got)
                await asyncio.sleep(0.2)  # twenty seconds by its clock
                assert len(receiver.got) == tried
            assert world.registry.delivery("a") is None

    asyncio.run(run())


def test_what_an_expired_subscription_was_told_is_delivered(world: World) -> None:
    async def run() -> None:
        with receiving() as receiver:
            world.hook("a", receiver.url)
            found = world.registry.find("a")
            assert found is not None
            record_matches(world.mailbox, "a", "one")
            world.registry.update(replace(found, state=State.EXPIRED))
            expire(world.mailbox, "a")
            async with world.delivering():
                await receiver.until(lambda: len(receiver.taken) == 2)
            assert receiver.titles() == ["one", "expired"]
            assert receiver.taken[1]["type"] == "tidings.expired"

    asyncio.run(run())


def test_a_webhook_that_is_new_is_taken_up_by_a_poke(world: World) -> None:
    async def run() -> None:
        with receiving() as receiver:
            async with world.delivering() as hooks:
                world.hook("a", receiver.url)
                threading.Thread(target=hooks.poke, args=("a",)).start()
                await asyncio.to_thread(record_matches, world.mailbox, "a", "one")
                await receiver.until(lambda: len(receiver.taken) == 1)

    asyncio.run(run())


class _Away:
    """A registry that cannot be used for a while."""

    def __init__(self, registry: Registry) -> None:
        self._registry, self.left = registry, 12

    def __getattr__(self, name: str) -> Any:
        if self.left:
            self.left -= 1
            raise ConnectionError("no route to the store")
        return getattr(self._registry, name)


def test_a_store_that_is_away_for_a_while_loses_nothing(world: World) -> None:
    async def run() -> None:
        with receiving() as receiver:
            world.hook("a", receiver.url)
            record_matches(world.mailbox, "a", "one", "two")
            clock = Hasty(rate=50)
            async with world.delivering(registry=_Away(world.registry), clock=clock):
                await receiver.until(lambda: len(receiver.taken) >= 2)
                await world.noted("a", lambda one: one.cursor == 2)

    asyncio.run(run())


_KILLED = """
import asyncio, sys
from pathlib import Path
from tidings.feeds.addresses import AsyncGuard
from tidings.service.delivery.receivers import Receivers
from tidings.service.delivery.hub import Hub
from tidings.service.settings import Settings
from tidings.service.store.database import open_stores
from tidings.service.delivery.webhooks import AT_HOST, Webhooks
from tidings.service.delivery.notification_json import notification_to_json

settings = Settings(data=Path(sys.argv[1]))
registry, mailbox = open_stores(settings)
hub = Hub(mailbox)
hub.start()
hooks = Webhooks(registry, mailbox, hub, Receivers(AsyncGuard(("127.0.0.0/8",))), lambda told: notification_to_json(told, settings))
asyncio.run(hooks.run(asyncio.Event()))
"""


def test_killed_between_delivery_and_note_it_comes_again_with_its_id(world: World, tmp_path: Path) -> None:
    processes: list[subprocess.Popen[bytes]] = []

    def answer() -> Answer:
        if len(receiver.got) == 3:  # it was received; nobody is left to hear so
            os.kill(processes[0].pid, signal.SIGKILL)
        return Answer()

    async def run() -> None:
        nonlocal receiver
        with receiving(answer) as receiver:
            world.hook("a", receiver.url)
            record_matches(world.mailbox, "a", "one", "two", "three", "four", "five")
            processes.append(subprocess.Popen([sys.executable, "-c", _KILLED, str(tmp_path)]))
            assert await asyncio.to_thread(processes[0].wait, 30) == -signal.SIGKILL
            noted = world.delivery("a").cursor
            assert noted <= 2
            async with world.delivering():
                await receiver.until(lambda: receiver.titles()[-1:] == ["five"])
            order = ["one", "two", "three", "four", "five"]
            assert receiver.titles() == order[:3] + order[noted:]
            ids = {}
            for headers, body in receiver.got:
                title = json.loads(body)["data"]["event"]["title"]
                assert ids.setdefault(title, headers["webhook-id"]) == headers["webhook-id"]

    receiver = Receiver()
    asyncio.run(run())


# --- one try


def try_once(
    url: str,
    timeout: float = 5.0,
    allowed: tuple[str, ...] = LOOPBACK,
    notification: StoredNotification | None = None,
) -> Outcome:
    async def run() -> Outcome:
        receivers = Receivers(AsyncGuard(allowed))
        one = notification or StoredNotification(1, "n1", "a", NotificationKind.EXPIRED, 1.0, message="over")
        try:
            return await attempt(receivers, Delivery("a", url, SECRET, 0), one, to_json, time.time(), timeout)
        finally:
            receivers.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7.0),
        ("999999999999", 86_400.0),
        ("in a while", 1_000.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 0.0),
        ("soon", None),
        ("-5", None),
        ("", None),
    ],
)
def test_retry_after_is_read(said: str, seconds: float | None) -> None:
    if said == "in a while":
        said = format_datetime(datetime.fromtimestamp(time.time() + 1_000, UTC), usegmt=True)
    with receiving(lambda: Answer(429, {"Retry-After": said})) as receiver:
        outcome = try_once(receiver.url)
    assert outcome.error == "the receiver answered 429 Too Many Requests"
    assert outcome.retry_after == (None if seconds is None else pytest.approx(seconds, abs=60))


def test_retry_after_is_honoured(world: World) -> None:
    async def run() -> None:
        with receiving(lambda: Answer(503, {"Retry-After": "5000"})) as receiver:
            world.hook("a", receiver.url)
            record_matches(world.mailbox, "a", "one")
            async with world.delivering():
                found = await world.noted("a", lambda one: one.failures == 1)
            assert found.next_try == pytest.approx(time.time() + 5_000, abs=60)
            assert found.error == "the receiver answered 503 Service Unavailable"
            assert found.failing_since == pytest.approx(time.time(), abs=60)
            # Nor does a restart ask sooner.
            async with world.delivering():
                await asyncio.sleep(0.1)
            assert len(receiver.got) == 1

    asyncio.run(run())


def test_redirects_are_a_failure_and_not_followed() -> None:
    with receiving() as inside, receiving(lambda: Answer(307, {"Location": inside.url})) as receiver:
        outcome = try_once(receiver.url)
        assert outcome.result == "failed"
        assert outcome.error is not None
        assert "redirects are not followed" in outcome.error
        assert inside.got == []


def test_an_endless_answer_is_let_go() -> None:
    with receiving(lambda: Answer(200, body=b"x" * (32 << 20))) as receiver:
        before = time.monotonic()
        assert try_once(receiver.url).result == "delivered"
        assert time.monotonic() - before < 3


def test_a_silent_receiver_is_left_after_a_while() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        outcome = try_once(f"http://127.0.0.1:{silent.getsockname()[1]}/", timeout=0.2)
    assert outcome == Outcome("failed", "the receiver did not answer within 0.2 seconds")


def test_nobody_there_and_addresses_inside_are_failures_with_a_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        nobody = try_once(f"http://127.0.0.1:{taken.getsockname()[1]}/")
    assert nobody.result == "failed"
    assert (nobody.error or "").startswith("the receiver cannot be reached")
    with receiving() as receiver:
        refused = try_once(receiver.url, allowed=())
        assert refused.result == "failed"
        assert "this machine" in (refused.error or "")
        assert receiver.got == []
    assert try_once("http://[nonsense/").result == "failed"


def test_ids_are_plain_and_no_two_subscriptions_share_one() -> None:
    def notification(
        subscription: str, id: str, kind: NotificationKind = NotificationKind.EXPIRED
    ) -> StoredNotification:
        return StoredNotification(1, id, subscription, kind, 1.0)

    assert message_id(notification("a", "0f" * 16, NotificationKind.MATCH)) == "0f" * 16
    assert message_id(notification("a", "expired 1.000")) != message_id(notification("b", "expired 1.000"))
    strange = message_id(notification("a", "é\r\nX-Evil: 1"))
    assert strange.isascii()
    assert strange.isprintable()
    with receiving() as receiver:
        assert try_once(receiver.url, notification=notification("a", "expired\r\nx: y")).result == "delivered"
        assert "x" not in receiver.got[0][0]
