"""Channels over HTTP and by the client: a real service, a real receiver, signatures verified by the library of receivers."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.service.conftest import Running, Served
from tidings import Client


class Receiver:
    """What was posted, and what is answered."""

    def __init__(self) -> None:
        self.posts: list[tuple[dict[str, str], bytes]] = []
        self.status = 200
        self.url = ""

    def wait(self, count: int, seconds: float = 10.0) -> list[dict[str, Any]]:
        deadline = time.monotonic() + seconds
        while len(self.posts) < count:
            assert time.monotonic() < deadline, f"{len(self.posts)} messages of {count}"
            time.sleep(0.02)
        return [json.loads(body) for _, body in self.posts]


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.posts.append((dict(self.headers.items()), body))
            self.send_response(receiver.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/hook"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as opened:
        yield opened


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that may call receivers on this machine."""
    with Running(data=tmp_path_factory.mktemp("near"), allowed=("127.0.0.0/8",)) as served:
        yield served


def add(served: Served, receiver: Receiver, *subscriptions: str, **more: Any) -> dict[str, Any]:
    new = {"kind": "webhook", "address": receiver.url, "subscriptions": subscriptions, **more}
    answer = served.http.post("/api/channels", json=new)
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_notifications_of_several_subscriptions_come_in_signed_messages(
    near: Served, receiver: Receiver
) -> None:
    sport = near.subscribe("WHERE topic = 'sport'", title="Sport")["id"]
    cheap = near.subscribe("WHERE price < 10", title="Cheap")["id"]
    channel = add(near, receiver, sport, cheap, title="Mine")
    assert channel["state"] == "active" and channel["subscriptions"] == sorted([sport, cheap])
    near.publish({"topic": "sport", "title": "A goal", "price": 5, "link": "https://example.org/goal"})
    messages = receiver.wait(1)
    headers, body = receiver.posts[0]
    Webhook(channel["secret"]).verify(body, headers)
    message = messages[0]
    assert message["type"] == "tidings.message"
    assert message["data"]["channel"] == channel["id"] and message["data"]["title"] == "Mine"
    items = message["data"]["items"]
    assert {item["subscription_title"] for item in items} == {"Sport", "Cheap"}
    assert {item["title"] for item in items} == {"A goal"}
    assert {item["link"] for item in items} == {"https://example.org/goal"}
    assert message["data"]["more"] == 0
    shown = near.http.get(f"/api/channels/{channel['id']}").json()
    assert "secret" not in shown
    assert (shown["waiting"], shown["failures"], shown["error"]) == (0, 0, None)


def test_a_digest_waits_and_says_what_waits(near: Served, receiver: Receiver) -> None:
    sport = near.subscribe("WHERE topic = 'digest'")["id"]
    schedule = {"digest": "daily", "at": "08:00", "zone": "Europe/Vienna"}
    channel = add(near, receiver, sport, schedule=schedule)
    assert (channel["schedule"], channel["zone"]) == (schedule, "Europe/Vienna")
    near.publish({"topic": "digest", "title": "1"}, {"topic": "digest", "title": "2"})
    near.notifications(sport, 2)
    shown = _until(lambda: _get(near, channel), lambda shown: shown["next_message"] is not None)
    assert shown["waiting"] == 2
    assert not receiver.posts
    changed = near.http.patch(f"/api/channels/{channel['id']}", json={"schedule": {}})
    assert changed.status_code == 200 and changed.json()["schedule"] == {}
    assert [item["title"] for item in receiver.wait(1)[0]["data"]["items"]] == ["1", "2"]


def test_the_client_does_all_of_it(near: Served, receiver: Receiver) -> None:
    with Client(near.url) as client:
        subscription = client.subscribe("WHERE topic = 'client'")
        channel = client.add_channel("webhook", receiver.url, title="A", subscriptions=[subscription])
        assert channel.secret is not None and channel.subscriptions == [subscription.id]
        assert channel.id in [each.id for each in client.channels()]
        assert client.test_channel(channel)["delivered"] is True
        assert receiver.wait(1)[0]["type"] == "tidings.test"
        changed = client.change_channel(channel, schedule={"digest": "weekly", "day": "friday"}, title="B")
        assert (changed.title, changed.schedule) == (
            "B",
            {"digest": "weekly", "at": "08:00", "day": "friday"},
        )
        muted = client.change_channel(channel, muted_until="2030-01-01T00:00:00Z")
        assert muted.schedule["muted_until"] == "2030-01-01T00:00:00Z"
        assert "muted_until" not in client.change_channel(channel, muted_until="never").schedule
        client.end_channel(channel)
        assert channel.id not in [each.id for each in client.channels()]


def _get(served: Served, channel: dict[str, Any]) -> dict[str, Any]:
    return dict(served.http.get(f"/api/channels/{channel['id']}").json())


def _until(look: Callable[[], dict[str, Any]], good: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    deadline = time.monotonic() + 10
    while not good(found := look()):
        assert time.monotonic() < deadline, found
        time.sleep(0.02)
    return found
