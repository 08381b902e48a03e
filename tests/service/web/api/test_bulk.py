"""Many subscriptions by one request, and all of them exported."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.service.conftest import Running, Served
from tidings.service.model import Role

LINES = {"Content-Type": "application/x-ndjson"}


def test_each_item_is_answered_by_itself(served: Served) -> None:
    wanted = [
        {"text": "WHERE topic = 'bulk'", "title": "First", "webhook": "https://hook.invalid/"},
        {"text": "WHERE a ="},
        {"title": "no text"},
        {"text": "WHERE topic = 'bulk'", "state": "paused", "valid_for": "never"},
        {"text": "WHERE a = 1", "webhook": "http://127.0.0.1/"},
        5,
    ]
    answer = served.http.post("/api/subscriptions/bulk", json=wanted)
    assert answer.status_code == 200, answer.text
    said = answer.json()
    assert (said["subscribed"], said["refused"]) == (2, 4)
    first, broken, empty, paused, inside, number = said["items"]
    assert [item["place"] for item in said["items"]] == [f"item {n}" for n in range(1, 7)]
    assert (broken["line"], broken["column"], broken["id"]) == (1, 10, None)
    assert "text" in empty["error"]
    assert "127.0.0.1" in inside["error"]
    assert number["error"]
    assert first["webhook_secret"].startswith("whsec_")
    served.publish({"topic": "bulk"})
    served.notifications(first["id"])
    path = f"/api/subscriptions/{paused['id']}"
    assert served.http.get(path).json()["state"] == "paused"
    assert served.http.get(f"{path}/notifications").json()["items"] == []
    ticket = {"Tidings-Ticket": paused["ticket"]}
    assert served.http.delete(path, headers=ticket).json()["state"] == "cancelled"


def test_lines_are_counted_as_they_are(served: Served) -> None:
    body = b'{"text": "WHERE a = 1"}\n\n{"text": \n{"text": "WHERE a = 1", "text": "twice"}\n'
    said = served.http.post("/api/subscriptions/bulk", content=body, headers=LINES).json()
    assert [(item["place"], item["error"] is None) for item in said["items"]] == [
        ("line 1", True),
        ("line 3", False),
        ("line 4", False),
    ]


def test_bodies_that_are_refused_as_a_whole(served: Served) -> None:
    post = served.http.post
    assert post("/api/subscriptions/bulk", json={"text": "WHERE a = 1"}).status_code == 422
    assert (
        post(
            "/api/subscriptions/bulk", content=b"[", headers={"Content-Type": "application/json"}
        ).status_code
        == 400
    )
    assert (
        post("/api/subscriptions/bulk", content=b"[]", headers={"Content-Type": "text/plain"}).status_code
        == 415
    )
    assert post("/api/subscriptions/bulk", content=b"1\n" * 10_001, headers=LINES).status_code == 413
    assert post("/api/subscriptions/bulk", json=[]).json() == {"subscribed": 0, "refused": 0, "items": []}


def test_the_quota_is_respected(guarded: Served) -> None:
    _, secret = guarded.service.access.grant("few", Role.SUBSCRIBER, subscriptions=3)
    headers = {"Authorization": f"Bearer {secret}"}
    wanted = [{"text": f"WHERE a = {n}"} for n in range(5)]
    said = guarded.http.post("/api/subscriptions/bulk", json=wanted, headers=headers).json()
    assert [item["id"] is not None for item in said["items"]] == [True, True, True, False, False]
    assert "may have 3" in said["items"][4]["error"]
    again = guarded.http.post("/api/subscriptions/bulk", json=wanted, headers=headers).json()
    assert again["subscribed"] == 0


def lines_of(served: Served, headers: dict[str, str] | None = None) -> list[dict[str, Any]]:
    answer = served.http.get("/api/subscriptions.ndjson", headers=headers)
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


def test_an_export_is_taken_back(served: Served, running: Callable[..., Running]) -> None:
    wanted = [
        {"text": "WHERE topic = 'exported'", "title": "Räume", "valid_for": "never", "public": True},
        {"text": "WHERE a = 1", "state": "paused", "valid_for": 3600, "webhook": "https://hook.invalid/x"},
    ]
    gone = served.subscribe("WHERE topic = 'cancelled'")
    served.http.delete(f"/api/subscriptions/{gone['id']}", headers={"Tidings-Ticket": gone["ticket"]})
    served.http.post("/api/subscriptions/bulk", json=wanted)
    exported = lines_of(served)
    assert gone["id"] not in {line["id"] for line in exported}
    with running() as other:
        body = "\n".join(map(json.dumps, exported)).encode()
        said = other.http.post("/api/subscriptions/bulk", content=body, headers=LINES).json()
        assert said["refused"] == 0
        moved = lines_of(other)

    def content(lines: list[dict[str, Any]]) -> list[Any]:
        names = ("text", "title", "public", "webhook", "state")
        return sorted([line[name] or "" for name in names] + [line["valid_for"] == "never"] for line in lines)

    assert content(moved) == content(exported)
    assert all(
        line["valid_for"] == "never" or 0 < line["valid_for"] <= 86_400 for line in [*moved, *exported]
    )


def test_an_export_has_only_what_the_caller_may_see(guarded: Served) -> None:
    secrets = [guarded.service.access.grant(f"export {n}", Role.SUBSCRIBER)[1] for n in range(2)]
    mine, others = ({"Authorization": f"Bearer {secret}"} for secret in secrets)
    guarded.http.post("/api/subscriptions", json={"text": "WHERE a = 'mine'"}, headers=mine)
    assert [line["text"] for line in lines_of(guarded, mine)] == ["WHERE a = 'mine'"]
    assert lines_of(guarded, others) == []


def test_a_thousand_wait_for_the_index_once(served: Served) -> None:
    wanted = [{"text": f"WHERE topic = 'thousand' AND n = {n}"} for n in range(1_000)]
    said = served.http.post("/api/subscriptions/bulk", json=wanted).json()
    assert said["subscribed"] == 1_000
    served.publish({"topic": "thousand", "n": 700})
    served.notifications(said["items"][700]["id"])
