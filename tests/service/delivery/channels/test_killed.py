"""A real service is killed again and again while events come: each notification is in exactly one message of each channel, and
a message that comes again has the same id and the same items."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.web.api.test_channels import Receiver, receiving

ROOT = Path(__file__).parents[4]
KILLS = 6
SERVE = """
import sys, time
from pathlib import Path
from tests.service.conftest import Running
with Running(data=Path(sys.argv[1]), matching="process", allowed=("127.0.0.0/8",)) as served:
    print(served.url, flush=True)
    time.sleep(600)
"""


@contextmanager
def serving(data: Path) -> Iterator[httpx.Client]:
    """A service that is killed at the end, whatever it is doing then."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(data)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        with httpx.Client(base_url=process.stdout.readline().strip(), timeout=20) as client:
            yield client
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def publish(http: httpx.Client, events: list[dict[str, Any]]) -> None:
    answer = http.post("/api/events", json=events)
    assert answer.status_code == 202, answer.text


@pytest.mark.slow
def test_a_service_that_is_killed_sends_each_notification_in_one_message(tmp_path: Path) -> None:
    chance = random.Random(7)
    with receiving() as receiver:
        with serving(tmp_path) as http:
            subscriptions = [
                http.post(
                    "/api/subscriptions", json={"text": f"WHERE topic = 't{n}'", "valid_for": "never"}
                ).json()["id"]
                for n in range(4)
            ]
            members = [subscriptions[:2], subscriptions[1:], subscriptions, subscriptions]
            schedules: list[dict[str, Any]] = [{}, {}, {"at_most": 1, "per": 60}, {"digest": "weekly"}]
            channels = [
                http.post(
                    "/api/channels",
                    json={
                        "kind": "webhook",
                        "address": receiver.url,
                        "subscriptions": ids,
                        "schedule": schedule,
                    },
                ).json()["id"]
                for ids, schedule in zip(members, schedules, strict=True)
            ]
        expected: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for turn in range(KILLS):
            with serving(tmp_path) as http:
                for number in range(chance.randrange(2, 8)):
                    topic, event = chance.randrange(4), f"e{turn}-{number}"
                    publish(http, [{"id": event, "source": "test", "topic": f"t{topic}", "title": event}])
                    for channel, ids in zip(channels, members, strict=True):
                        if subscriptions[topic] in ids:
                            expected[channel].add((subscriptions[topic], event))
                    time.sleep(chance.uniform(0, 0.05))
                time.sleep(chance.uniform(0, 0.4))
        with serving(tmp_path) as http:
            for channel in channels[2:]:
                assert http.patch(f"/api/channels/{channel}", json={"schedule": {}}).status_code == 200
            deadline = time.monotonic() + 60
            while any(
                set(items) < expected[channel] for channel, items in received(receiver, channels).items()
            ):
                assert time.monotonic() < deadline, "something is missing"
                time.sleep(0.2)
            time.sleep(1.0)
            assert {http.get(f"/api/channels/{channel}").json()["waiting"] for channel in channels} == {0}
    found = received(receiver, channels)
    for channel in channels:
        assert found[channel] == Counter(expected[channel]), "each in one message"
    again = Counter(headers["webhook-id"] for headers, _ in receiver.posts)
    assert sum(again.values()) - len(again) <= KILLS * len(channels)


def received(receiver: Receiver, channels: list[str]) -> dict[str, Counter[tuple[str, str]]]:
    """How many messages have each notification, by channel. One that came again counts once."""
    messages: dict[str, dict[str, Any]] = {}
    for headers, body in list(receiver.posts):
        data = json.loads(body)["data"]
        ids = [
            item["id"] for item in data["items"]
        ]  # addresses have the port, which is another after each start
        assert [item["id"] for item in messages.setdefault(headers["webhook-id"], data)["items"]] == ids
    found: dict[str, Counter[tuple[str, str]]] = {channel: Counter() for channel in channels}
    for data in messages.values():
        found[data["channel"]].update((item["subscription"], item["event"]) for item in data["items"])
    return found
