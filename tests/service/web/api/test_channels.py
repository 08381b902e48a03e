"""Channels over HTTP and by the client: a real service, a real receiver, signatures verified by the library of receivers."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.service.conftest import Running, Served
from tidings import AsyncClient, Client
from tidings.client import ServiceError
from tidings.service.delivery.channels.channels import MOST_CHANNELS
from tidings.service.model import Role
from tidings.service.subscriptions.access_control import TooMany


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
    assert channel["state"] == "active"
    assert channel["subscriptions"] == sorted([sport, cheap])
    near.publish({"topic": "sport", "title": "A goal", "price": 5, "link": "https://example.org/goal"})
    messages = receiver.wait(1)
    headers, body = receiver.posts[0]
    Webhook(channel["secret"]).verify(body, headers)
    message = messages[0]
    assert message["type"] == "tidings.message"
    assert message["data"]["channel"] == channel["id"]
    assert message["data"]["title"] == "Mine"
    items = message["data"]["items"]
    assert {item["subscription_title"] for item in items} == {"Sport", "Cheap"}
    assert {item["title"] for item in items} == {"A goal"}
    assert {item["link"] for item in items} == {"https://example.org/goal"}
    assert message["data"]["more"] == 0
    shown = _until(lambda: _get(near, channel), lambda shown: shown["waiting"] == 0)
    assert "secret" not in shown
    assert (shown["failures"], shown["error"]) == (0, None)


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
    assert changed.status_code == 200
    assert changed.json()["schedule"] == {}
    assert [item["title"] for item in receiver.wait(1)[0]["data"]["items"]] == ["1", "2"]


def test_the_client_does_all_of_it(near: Served, receiver: Receiver) -> None:
    with Client(near.url) as client:
        subscription = client.subscribe("WHERE topic = 'client'")
        channel = client.add_channel("webhook", receiver.url, title="A", subscriptions=[subscription])
        assert channel.secret is not None
        assert channel.subscriptions == [subscription.id]
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
        assert client.leave_channel(channel, subscription).subscriptions == []
        assert client.join_channel(channel, subscription).subscriptions == [subscription.id]
        client.end_channel(channel)
        assert channel.id not in [each.id for each in client.channels()]


def test_a_subscription_that_has_ended_keeps_no_other_from_joining(near: Served, receiver: Receiver) -> None:
    with Client(near.url) as client:
        ended, other = client.subscribe("WHERE topic = 'ended'"), client.subscribe("WHERE topic = 'other'")
        channel = client.add_channel("webhook", receiver.url, subscriptions=[ended])
        client.cancel(ended)
        assert set(client.join_channel(channel, other).subscriptions) == {ended.id, other.id}
        assert client.leave_channel(channel, ended).subscriptions == [other.id]
        with pytest.raises(ServiceError, match="there is no subscription"):
            client.join_channel(channel, ended)
        client.end_channel(channel)


def test_a_subscription_that_may_be_renewed_can_join(near: Served, receiver: Receiver) -> None:
    with Client(near.url) as client:
        subscription = client.subscribe("WHERE topic = 'renewed'")
        registry = near.service.registry
        registry.expire(registry.find_many([subscription.id]))
        assert client.subscription(subscription.id).state == "expired"
        channel = client.add_channel("webhook", receiver.url, subscriptions=[subscription])
        assert channel.subscriptions == [subscription.id]
        client.end_channel(channel)


def test_the_asynchronous_client_does_all_of_it(near: Served, receiver: Receiver) -> None:
    async def run() -> None:
        async with AsyncClient(near.url) as client:
            subscription = await client.subscribe("WHERE topic = 'async'")
            channel = await client.add_channel("webhook", receiver.url, subscriptions=[subscription])
            assert channel.id in [each.id async for each in client.channels()]
            assert (await client.channel(channel.id)).state == "active"
            assert (await client.change_channel(channel, title="B")).title == "B"
            assert (await client.leave_channel(channel, subscription)).subscriptions == []
            assert (await client.join_channel(channel, subscription)).subscriptions == [subscription.id]
            assert (await client.test_channel(channel))["delivered"] is True
            await client.end_channel(channel)
            with pytest.raises(ServiceError, match="there is no channel"):
                await client.channel(channel.id)

    asyncio.run(run())


def _get(served: Served, channel: dict[str, Any]) -> dict[str, Any]:
    return dict(served.http.get(f"/api/channels/{channel['id']}").json())


def _until(look: Callable[[], dict[str, Any]], good: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    deadline = time.monotonic() + 10
    while not good(found := look()):
        assert time.monotonic() < deadline, found
        time.sleep(0.02)
    return found


def test_subscriptions_join_and_leave(near: Served, receiver: Receiver) -> None:
    first, second = (near.subscribe(f"WHERE topic = 'join{n}'")["id"] for n in range(2))
    channel = add(near, receiver, first)
    path = f"/api/channels/{channel['id']}/subscriptions"
    near.publish({"topic": "join1", "title": "before"})
    near.notifications(second, 1)
    assert near.http.put(f"{path}/{second}").json()["subscriptions"] == sorted([first, second])
    near.publish({"topic": "join1", "title": "within"})
    assert [item["title"] for item in receiver.wait(1)[0]["data"]["items"]] == ["within"]
    assert near.http.delete(f"{path}/{second}").json()["subscriptions"] == [first]
    assert near.http.delete(f"{path}/{second}").status_code == 404
    near.publish({"topic": "join1", "title": "after"}, {"topic": "join0", "title": "other"})
    assert [item["title"] for item in receiver.wait(2)[1]["data"]["items"]] == ["other"]
    listed = near.http.patch(f"/api/channels/{channel['id']}", json={"subscriptions": [second]}).json()
    assert listed["subscriptions"] == [second]


def test_a_receiver_that_is_gone_ends_the_channel(near: Served, receiver: Receiver) -> None:
    subscription = near.subscribe("WHERE topic = 'gone'")["id"]
    channel = add(near, receiver, subscription)
    receiver.status = 410
    near.publish({"topic": "gone", "title": "1"})
    shown = _until(lambda: _get(near, channel), lambda shown: shown["state"] == "ended")
    assert "gone for good" in shown["ended_because"]
    assert near.http.get(f"/api/subscriptions/{subscription}").json()["state"] == "active"
    changed = near.http.patch(f"/api/channels/{channel['id']}", json={"title": "again"})
    assert changed.status_code == 410
    assert near.http.delete(f"/api/channels/{channel['id']}").status_code == 204
    assert near.http.get(f"/api/channels/{channel['id']}").status_code == 404


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "pigeon"}, "there is no kind of channel 'pigeon'; this service has"),
        ({"kind": "webhok"}, "there is no kind of channel 'webhok'; did you mean 'webhook'?"),
        ({"address": "nowhere"}, "nowhere"),
        ({"address": "http://10.1.2.3/"}, "10.1.2.3"),
        ({"schedule": {"digest": "yearly"}}, "the digest is 'yearly'; give hourly, daily or weekly"),
        ({"subscriptions": ["nobodys"]}, "there is no subscription 'nobodys' of the owner of this channel"),
        ({"color": "red"}, "color"),
    ],
)
def test_what_cannot_be_a_channel_is_refused_in_a_sentence(
    near: Served, receiver: Receiver, change: dict[str, Any], sentence: str
) -> None:
    answer = near.http.post("/api/channels", json={"kind": "webhook", "address": receiver.url, **change})
    assert 400 <= answer.status_code < 500, answer.text
    assert sentence in answer.json()["detail"]


def test_channels_are_their_owners_own(guarded: Served) -> None:
    access = guarded.service.access
    ann, ben, admin = (
        {"Authorization": f"Bearer {access.grant(f'{role} of channels', role)[1]}"}
        for role in (Role.SUBSCRIBER, Role.SUBSCRIBER, Role.ADMIN)
    )
    http = guarded.http
    own = http.post("/api/subscriptions", json={"text": "WHERE a = 1"}, headers=ann).json()["id"]
    foreign = http.post("/api/subscriptions", json={"text": "WHERE a = 2"}, headers=ben).json()["id"]
    new = {"kind": "webhook", "address": "https://example.org/hook", "subscriptions": [own]}
    assert http.post("/api/channels", json=new).status_code == 401
    assert (
        http.post("/api/channels", json={**new, "subscriptions": [foreign]}, headers=ann).status_code == 422
    )
    assert http.post("/api/channels", json={**new, "confirmed": True}, headers=ann).status_code == 422
    path = f"/api/channels/{http.post('/api/channels', json=new, headers=ann).json()['id']}"
    for method, address in (
        ("GET", path), ("PATCH", path), ("DELETE", path), ("POST", f"{path}/test"),
        ("PUT", f"{path}/subscriptions/{foreign}"), ("DELETE", f"{path}/subscriptions/{own}"),
    ):  # fmt: skip
        asked = {"json": {"title": "mine"}} if method == "PATCH" else {}
        assert http.request(method, address, headers=ben, **asked).status_code == 404, (method, address)
    assert http.put(f"{path}/subscriptions/{foreign}", headers=ann).status_code == 422
    assert http.put(f"{path}/subscriptions/{foreign}", headers=admin).status_code == 422
    assert http.get("/api/channels", headers=ben).json()["items"] == []
    assert [item["address"] for item in http.get("/api/channels", headers=ann).json()["items"]] == [
        new["address"]
    ]
    assert http.get(path, headers=admin).status_code == 200
    assert http.delete(path, headers=admin).status_code == 204


def test_an_owner_has_a_bounded_number_of_channels_in_pages(guarded: Served) -> None:
    _, secret = guarded.service.access.grant("many", Role.SUBSCRIBER, requests_per_second=1_000)
    headers = {"Authorization": f"Bearer {secret}"}
    new = {"kind": "webhook", "address": "https://example.org/hook"}
    for number in range(MOST_CHANNELS):
        made = guarded.http.post("/api/channels", json={**new, "title": f"{number}"}, headers=headers)
        assert made.status_code == 201
    refused = guarded.http.post("/api/channels", json=new, headers=headers)
    assert (refused.status_code, refused.json()["detail"]) == (
        422,
        "there are 100 channels already; remove some of them first",
    )
    with Client(guarded.url, secret) as client:
        assert [channel.title for channel in client.channels()] == [
            f"{number}" for number in reversed(range(MOST_CHANNELS))
        ]
    cursor, found = None, []
    while True:
        page = guarded.http.get(
            "/api/channels", params={"limit": 40, **({"cursor": cursor} if cursor else {})}, headers=headers
        ).json()
        found += [item["id"] for item in page["items"]]
        if (cursor := page["next"]) is None:
            break
    assert len(set(found)) == len(found) == MOST_CHANNELS


def test_test_messages_are_limited(near: Served, receiver: Receiver) -> None:
    channel = add(near, receiver)
    statuses = [near.http.post(f"/api/channels/{channel['id']}/test").status_code for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]


def test_requests_to_confirm_are_limited_for_an_address_and_for_an_owner(guarded: Served) -> None:
    access = guarded.service.access
    for number in range(3):
        access.count_confirmation(f"o{number}", "Ann@example.org")
    with pytest.raises(TooMany, match="sent to this address"):
        access.count_confirmation("o3", "ann@example.org")
    for number in range(20):
        access.count_confirmation("flooder", f"n{number}@example.org")
    with pytest.raises(TooMany, match="too many requests to confirm"):
        access.count_confirmation("flooder", "n20@example.org")


def test_messages_are_counted(near: Served, receiver: Receiver) -> None:
    subscription = near.subscribe("WHERE topic = 'counted'")["id"]
    add(near, receiver, subscription)
    near.publish({"topic": "counted", "title": "1"})
    receiver.wait(1)

    def counted() -> dict[str, Any]:
        lines = near.http.get("/metrics").text.splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[0] != "#"}

    found = _until(counted, lambda found: found["tidings_channel_late_seconds_count"] > 0)
    assert found['tidings_channel_messages_total{kind="webhook",outcome="delivered"}'] >= 1
    assert found["tidings_channel_waiting_messages"] >= 0
    status = near.http.get("/status", headers={"Accept": "text/html"}).text
    assert re.search(r"Channels</dt>\s*<dd[^>]*>\d+ active", status), status


def test_a_delegate_has_channels_for_its_users(guarded: Served) -> None:
    _, secret = guarded.service.access.grant("a site", Role.DELEGATE)
    ann, ben, site = (Client(guarded.url, secret, user=user) for user in ("4", "42", None))
    try:
        subscription = ann.subscribe("WHERE a = 1")
        channel = ann.add_channel(
            "webhook", "https://example.org/4", subscriptions=[subscription], confirmed=True
        )
        assert channel.user == "4"
        other = ben.add_channel("webhook", "https://example.org/42")
        assert [each.id for each in ann.channels()] == [channel.id]
        assert {each.id for each in site.channels()} == {channel.id, other.id}
        assert [each.id for each in site.channels(user="42")] == [other.id]
        for refused in (
            lambda: ben.channel(channel.id),
            lambda: ben.join_channel(other, subscription),
            lambda: site.join_channel(other, subscription),
            lambda: site.add_channel("webhook", "https://example.org/"),
        ):
            with pytest.raises(ServiceError):
                refused()
        assert site.change_channel(channel, title="by the site").title == "by the site"
        site.end_channel(channel)
        assert list(ann.channels()) == []
    finally:
        for client in (ann, ben, site):
            client.close()
