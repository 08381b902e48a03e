"""What subscriptions were told, over HTTP: by page, with the reason, as a stream that goes on where it broke."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.service.conftest import Served
from tidings.service.web.api import notifications
from tidings.service.web.api.models import Explanation, Notification, NotificationPage


def events(lines: Iterator[str]) -> Iterator[dict]:
    """Server-sent events as dicts, by the rules of the specification."""
    event: dict = {}
    for line in lines:
        if line == "":
            if "data" in event:
                yield {**event, "data": json.loads(event["data"])}
            event = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            event[name] = value.removeprefix(" ")


def test_told_as_the_models_say(served: Served) -> None:
    one = served.subscribe("WHERE topic = 'models'")
    served.publish(
        {"id": "1", "source": "a", "topic": "models", "title": "A <b>title</b>", "deep": {"er": [1, None]}}
    )
    (notification,) = served.notifications(one["id"])
    Notification.model_validate(notification, strict=False)
    assert set(notification) == set(Notification.model_fields)
    assert notification["kind"] == "match"
    assert notification["event"]["attributes"]["topic"] == "models"
    page = served.http.get(f"/api/subscriptions/{one['id']}/notifications").json()
    assert set(page) == set(NotificationPage.model_fields)


def test_pages_newest_first_and_catching_up(served: Served) -> None:
    one = served.subscribe("WHERE topic = 'pages'")
    served.publish(*({"id": str(n), "source": "pages", "topic": "pages"} for n in range(5)))
    newest_first = [notification["event"]["id"] for notification in served.notifications(one["id"], 5)]
    path = f"/api/subscriptions/{one['id']}/notifications"

    def walk(url: str | None) -> list[str]:
        found = []
        while url is not None:
            answer = served.http.get(url)
            assert answer.status_code == 200, answer.text
            found += [notification["event"]["id"] for notification in answer.json()["items"]]
            url = answer.links["next"]["url"] if "next" in answer.links else None
        return found

    assert walk(f"{path}?limit=2") == newest_first
    assert walk(f"{path}?after=0&limit=2") == newest_first[::-1]
    numbers = [notification["number"] for notification in served.http.get(path).json()["items"]]
    assert walk(f"{path}?before={numbers[1]}&limit=1") == newest_first[2:]
    assert walk(f"{path}?after={numbers[1]}") == newest_first[:1]


@pytest.mark.parametrize(
    "query",
    [
        "after=-1",
        "after=x",
        f"after={2**63}",
        "before=1&after=1",
        "cursor=x",
        "cursor=a" + "9" * 30,
        "limit=0",
    ],
)
def test_wrong_places(served: Served, query: str) -> None:
    one = served.subscribe()
    answer = served.http.get(f"/api/subscriptions/{one['id']}/notifications?{query}")
    assert answer.status_code == 422, answer.text


def test_why(served: Served) -> None:
    one = served.subscribe("WHERE topic = 'why' AND price < 20")
    served.publish({"id": "why/1 ü", "source": "a", "topic": "why", "price": 12})
    (notification,) = served.notifications(one["id"])
    path = f"/api/subscriptions/{one['id']}/notifications"
    answer = served.http.get(f"{path}/{notification['id']}/why")
    assert answer.status_code == 200, answer.text
    found = Explanation.model_validate(answer.json())
    assert found.verdict == "match"
    assert any("price" in clause.text for clause in found.clauses)
    for wrong in ("none", "%00", "x" * 1_000):
        assert served.http.get(f"{path}/{wrong}/why").status_code == 404


def test_a_stream_tells_as_it_is_told_and_goes_on_where_it_broke(served: Served) -> None:
    one = served.subscribe("WHERE topic = 'stream'")
    path = f"/api/subscriptions/{one['id']}/stream"
    with served.http.stream("GET", path) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        lines = answer.iter_lines()
        assert next(lines).startswith("retry:")
        served.publish({"id": "1", "source": "stream", "topic": "stream"})
        first = next(events(lines))
        assert first["event"] == "notification"
        assert first["data"]["event"]["id"] == "1"
        assert first["id"] == str(first["data"]["number"])
    served.publish({"id": "2", "source": "stream", "topic": "stream"})
    served.notifications(one["id"], 2)
    with served.http.stream("GET", path, headers={"Last-Event-ID": first["id"]}) as answer:
        assert next(events(answer.iter_lines()))["data"]["event"]["id"] == "2"


def test_a_stream_ends_with_its_subscription(served: Served) -> None:
    one = served.subscribe("WHERE topic = 'ending'")
    headers = {"Tidings-Ticket": one["ticket"]}
    assert served.http.delete(f"/api/subscriptions/{one['id']}", headers=headers).status_code == 200
    path = f"/api/subscriptions/{one['id']}/stream"
    assert served.http.get(path).status_code == 204  # a browser does not come again then


def test_several_in_one_stream_and_all(served: Served) -> None:
    one, two = served.subscribe("WHERE topic = 'one'"), served.subscribe("WHERE topic = 'two'")
    for params in ({"subscription": [one["id"], two["id"]]}, {}):
        with served.http.stream("GET", "/api/stream", params=params) as answer:
            lines = answer.iter_lines()
            next(lines)
            # The list of those that are streamed is made after the first line.
            found = events(lines)
            names = {f"{params}{n}" for n in (1, 2)}
            served.publish(
                {"id": f"{params}1", "source": "several", "topic": "one"},
                {"id": f"{params}2", "source": "several", "topic": "two"},
            )
            assert {next(found)["data"]["event"]["id"], next(found)["data"]["event"]["id"]} == names


def test_a_stream_of_all_has_all(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are: the oldest is in it, and one stream too large is refused in a sentence."""
    served.subscribe("WHERE topic = 'oldest'")
    many = [{"text": f"WHERE topic = 'one of many {number}'"} for number in range(1_050)]
    assert served.http.post("/api/subscriptions/bulk", json=many).status_code == 200
    with served.http.stream("GET", "/api/stream") as answer:
        lines = answer.iter_lines()
        next(lines)
        served.publish({"id": "all of them", "source": "many", "topic": "oldest"})
        assert next(events(lines))["data"]["event"]["id"] == "all of them"
    monkeypatch.setattr(notifications, "MOST_OF_MINE", 1_000)
    refused = served.http.get("/api/stream")
    assert refused.status_code == 422
    assert "more than 1,000 subscriptions" in refused.json()["detail"]


@pytest.mark.parametrize("id", ["none", "%00", "a" * 300])
def test_a_stream_of_what_is_not_there(served: Served, id: str) -> None:
    assert served.http.get(f"/api/stream?subscription={id}").status_code == 404


@pytest.mark.parametrize("last", ["x", "-1", "9" * 40, "99999999"])
def test_a_wrong_last_event_id_begins_with_what_comes(served: Served, last: str) -> None:
    one = served.subscribe("WHERE topic = 'last'")
    path = f"/api/subscriptions/{one['id']}/stream"
    with served.http.stream("GET", path, headers={"Last-Event-ID": last}) as answer:
        lines = answer.iter_lines()
        while not next(lines).startswith(":"):
            pass
        served.publish({"id": last, "source": "last", "topic": "last"})
        assert next(events(lines))["data"]["event"]["id"] == last


def test_a_subscriber_sees_only_their_own(guarded: Served) -> None:
    access = guarded.service.access
    from tidings.service.model import Role

    secrets = {}
    for name, role in (
        ("ann", Role.SUBSCRIBER),
        ("bob", Role.SUBSCRIBER),
        ("pub", Role.PUBLISHER),
        ("root", Role.ADMIN),
    ):
        secrets[name] = {"Authorization": f"Bearer {access.grant(name, role)[1]}"}
    http: httpx.Client = guarded.http
    assert http.get("/api/subscriptions").status_code == 401
    assert "Bearer" in http.get("/api/subscriptions").headers["www-authenticate"]
    new = {"text": "WHERE topic = 'own'"}
    assert http.post("/api/subscriptions", json=new, headers=secrets["pub"]).status_code == 403
    one = http.post("/api/subscriptions", json=new, headers=secrets["ann"]).json()
    path = f"/api/subscriptions/{one['id']}"
    for what in ("", "/notifications", "/notifications/x/why", "/stream"):
        if what != "/stream":
            assert http.get(path + what, headers=secrets["ann"]).status_code in (200, 404)
        assert http.get(path + what, headers=secrets["bob"]).status_code == 404
        assert http.get(path + what).status_code == 401
    assert http.get(f"/api/stream?subscription={one['id']}", headers=secrets["bob"]).status_code == 404
    assert http.get("/api/subscriptions", headers=secrets["bob"]).json()["items"] == []
    assert http.get("/api/subscriptions", headers=secrets["root"]).json()["items"][0]["id"] == one["id"]
    assert http.delete(path, headers=secrets["bob"]).status_code == 404
    assert http.post("/api/events", json={"a": 1}, headers=secrets["ann"]).status_code == 403
    assert http.post("/api/events", json={"a": 1}, headers=secrets["pub"]).status_code == 202
    assert http.post("/api/events", json={"a": 1}).status_code == 401
    assert http.delete(path, headers=secrets["ann"]).status_code == 200  # the owner's token does
    for wrong in ("Bearer", "Bearer x", "Basic eDp5", "Bearer tid_" + "a" * 43, "é"):
        assert http.get("/api/subscriptions", headers={"Authorization": wrong.encode()}).status_code == 401
