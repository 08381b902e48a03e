"""Subscriptions that are edited in place, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.service.conftest import Served

PROBLEM = "application/problem+json"


def patch(served: Served, of: dict[str, Any], change: Any, **headers: str) -> Any:
    return served.http.patch(
        f"/api/subscriptions/{of['id']}",
        json=change,
        headers={
            "Tidings-Ticket": of["ticket"],
            **{name.replace("_", "-"): headers[name] for name in headers},
        },
    )


def test_a_new_text_is_matched_from_the_answer_on(served: Served) -> None:
    begun = served.subscribe("WHERE topic = 'old text'")
    served.publish({"topic": "old text", "n": 1})
    before = served.notifications(begun["id"])
    edited = patch(served, begun, {"text": "WHERE topic = 'new text'"})
    assert edited.status_code == 200, edited.text
    assert edited.json()["text"] == edited.json()["title"] == "WHERE topic = 'new text'"
    assert "ticket" not in edited.json()
    served.publish({"topic": "old text", "n": 2}, {"topic": "new text", "n": 3})
    told = served.notifications(begun["id"], 2)
    assert [item["event"]["attributes"]["n"] for item in told] == [3, 1]
    assert told[1] == before[0]
    assert [edited.json()[name] for name in ("id", "created", "feeds")] == [
        begun[name] for name in ("id", "created", "feeds")
    ]


def test_what_is_not_named_stays(served: Served) -> None:
    begun = served.subscribe("WHERE topic = 'stays'", title="Stays", valid_for="never")
    edited = patch(served, begun, {"public": True}).json()
    assert edited["feeds"] != begun["feeds"]
    same = ("text", "title", "state", "valid_until", "webhook")
    assert [edited[name] for name in same] == [begun[name] for name in same]
    assert patch(served, begun, {"title": "Other"}).json()["title"] == "Other"
    assert patch(served, begun, {"text": "WHERE topic = 'x'"}).json()["title"] == "Other"
    assert patch(served, begun, {"title": ""}).json()["title"] == "WHERE topic = 'x'"
    assert patch(served, begun, {"valid_for": 60}).json()["valid_until"] is not None
    last = patch(served, begun, {}).json()
    assert patch(served, begun, {}).json()["revision"] == last["revision"]


def test_a_paused_one_is_edited_and_stays_paused(served: Served) -> None:
    begun = served.subscribe("WHERE topic = 'paused'")
    headers = {"Tidings-Ticket": begun["ticket"]}
    served.http.post(f"/api/subscriptions/{begun['id']}/pause", headers=headers)
    assert patch(served, begun, {"text": "WHERE topic = 'paused anew'"}).json()["state"] == "paused"
    other = served.subscribe("WHERE topic = 'paused anew'")
    served.publish({"topic": "paused anew", "n": 1})
    served.notifications(
        other["id"]
    )  # the stream is past the first event, or it might match it after the resumption
    served.http.post(f"/api/subscriptions/{begun['id']}/resume", headers=headers)
    served.publish({"topic": "paused anew", "n": 2})
    found = served.notifications(begun["id"])
    assert [notification["event"]["attributes"]["n"] for notification in found] == [2]


def test_the_webhook_is_set_kept_and_removed(served: Served) -> None:
    begun = served.subscribe("WHERE topic = 'hooked'")
    first = patch(served, begun, {"webhook": "https://hook.invalid/1"}).json()
    assert first["webhook"]["url"] == "https://hook.invalid/1"
    assert first["webhook_secret"].startswith("whsec_")
    assert patch(served, begun, {"webhook": "https://hook.invalid/1"}).json()["webhook_secret"] is None
    second = patch(served, begun, {"webhook": "https://hook.invalid/2"}).json()
    assert second["webhook_secret"] not in (None, first["webhook_secret"])
    assert patch(served, begun, {"webhook": None}).json()["webhook"] is None
    assert patch(served, begun, {"webhook": "http://127.0.0.1/"}).status_code == 422


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"text": "WHERE a ="}, "the text ends at 1:10"),
        ({"text": ""}, "text"),
        ({"text": None}, "text"),
        ({"title": "x" * 300}, "title"),
        ({"valid_for": 0}, "valid_for"),
        ({"public": "yes"}, "public"),
        ({"state": "paused"}, "state"),
        ([], "body"),
    ],
)
def test_a_wrong_edit_changes_nothing(served: Served, change: Any, said: str) -> None:
    begun = served.subscribe("WHERE topic = 'right'")
    answer = patch(served, begun, change)
    assert (answer.status_code, answer.headers["content-type"]) == (422, PROBLEM)
    assert said in answer.json()["detail"]
    both = {"title": "New", "text": "WHERE a ="}
    assert patch(served, begun, both).status_code == 422
    found = served.http.get(f"/api/subscriptions/{begun['id']}").json()
    assert found == {name: begun[name] for name in found}


def test_who_may_edit(served: Served) -> None:
    begun, other = served.subscribe(), served.subscribe()
    assert patch(served, {**begun, "ticket": other["ticket"]}, {"title": "x"}).status_code == 403
    path = f"/api/subscriptions/{begun['id']}"
    assert (
        served.http.patch(path, json={"text": "WHERE a ="}).status_code == 403
    )  # before the text is looked at
    assert served.http.patch(path, json={"title": "x", "ticket": begun["ticket"]}).status_code == 200
    served.http.delete(path, headers={"Tidings-Ticket": begun["ticket"]})
    assert patch(served, begun, {"title": "x"}).status_code == 410
    assert served.http.patch("/api/subscriptions/snone", json={"title": "x"}).status_code == 404


def test_an_edit_of_an_older_revision_is_refused(served: Served) -> None:
    begun = served.subscribe()
    tag = served.http.get(f"/api/subscriptions/{begun['id']}").headers["etag"]
    first = patch(served, begun, {"title": "First"}, If_Match=tag)
    assert (first.status_code, first.headers["etag"]) == (200, f'"{first.json()["revision"]}"')
    for stale in (tag, '"none"', f"W/{tag}"):
        refused = patch(served, begun, {"title": "Second"}, If_Match=stale)
        assert (refused.status_code, refused.json()["type"]) == (412, "/problems/precondition")
    assert patch(served, begun, {"title": "Third"}, If_Match="*").json()["title"] == "Third"
