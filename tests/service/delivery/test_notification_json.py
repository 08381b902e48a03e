"""The public JSON form of a notification: what is in it, and that any reader takes it."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.service.delivery.test_presentation import values
from tidings.model.event import Event
from tidings.service.delivery.notification_json import notification_to_json
from tidings.service.model import NotificationKind, StoredNotification
from tidings.service.settings import Settings

SETTINGS = Settings(Path("data"), url="https://tidings.example")


def test_all_of_a_notification() -> None:
    event = Event("http://a.example/", {"title": "T", "age": 24}, "e1", "news", "2003-06-03T14:39:21Z")
    notification = StoredNotification(7, "n1", "s1", NotificationKind.MATCH, 1054651161.5, event, {"x": "1"})
    assert notification_to_json(notification, SETTINGS) == {
        "id": "n1",
        "number": 7,
        "subscription": "s1",
        "kind": "match",
        "time": "2003-06-03T14:39:21.500Z",
        "url": "https://tidings.example/subscriptions/s1#n1",
        "event": {
            "id": "e1",
            "source": "http://a.example/",
            "type": "news",
            "time": "2003-06-03T14:39:21Z",
            "title": "T",
            "link": None,
            "summary": "age: 24",
            "attributes": {"title": "T", "age": 24},
        },
        "bindings": {"x": "1"},
        "changes": [],
        "part": None,
        "sequence": None,
        "message": None,
    }


def test_a_notice_has_no_event() -> None:
    said = notification_to_json(
        StoredNotification(1, "expired 1", "s1", NotificationKind.EXPIRED, 0.0, message="over"), SETTINGS
    )
    assert (said["event"], said["message"], said["time"]) == (None, "over", "1970-01-01T00:00:00.000Z")
    assert said["url"].endswith("#expired%201")


@given(st.dictionaries(st.text(), values, max_size=4), st.dictionaries(st.text(), st.text(), max_size=2))
def test_it_is_always_json(attributes: dict[str, object], bindings: dict[str, str]) -> None:
    changes = ({"table": "t", "change": "-", "row": attributes},)
    notification = StoredNotification(
        1,
        "n",
        "s",
        NotificationKind.MATCH,
        0.0,
        Event(attributes=attributes, id="x"),
        bindings,
        changes=changes,
    )
    text = json.dumps(notification_to_json(notification, SETTINGS), allow_nan=False, ensure_ascii=False)
    assert json.loads(text.encode())["number"] == 1


def test_what_is_too_large_is_left_out() -> None:
    deep: list[object] = []
    for _ in range(900):
        deep = [deep]
    event = Event(
        attributes={"a": 1, "large": "x" * 10**6, "rows": [[0] * 100] * 10**4, "deep": deep, "z": 2}, id="x"
    )
    said = notification_to_json(
        StoredNotification(1, "n", "s", NotificationKind.MATCH, 0.0, event), SETTINGS
    )["event"]
    assert said is not None
    assert set(said["attributes"]) == {"a", "deep", "z"}
    assert len(json.dumps(said)) < 10_000
