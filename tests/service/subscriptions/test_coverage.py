"""Which of a subscriber's subscriptions already cover a text."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.service.conftest import Running, Served
from tidings.service.model import Role
from tidings.service.subscriptions.coverage import SHOWN, CoverageSearch
from tidings.storage import versions


def checked(served: Served, text: str, **more: Any) -> dict[str, Any]:
    """A check that knows what covers the text: the index may have to be opened first."""
    deadline = time.monotonic() + 30
    while True:
        answer = served.http.post("/api/check", json={"text": text, **more})
        assert answer.status_code == 200, answer.text
        if answer.json()["covered_by"] is not None:
            return answer.json()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def covering(served: Served, text: str, **more: Any) -> set[str]:
    return {each["title"] for each in checked(served, text, **more)["covered_by"]}


def test_what_covers_a_text_is_named(served: Served) -> None:
    begun = {
        title: served.subscribe(text, title=title)
        for title, text in {
            "cheap": "WHERE fruit = 'fig' AND price < 20",
            "figs": "WHERE fruit = 'fig'",
            "nuts": "WHERE fruit = 'nut'",
            "figs or nuts": "WHERE fruit IN ('fig', 'nut')",
            "titles": "SELECT ?t WHERE (?i, rss:title, ?t)",
        }.items()
    }
    found = checked(served, "WHERE fruit = 'fig' AND price < 10 AND ripe = TRUE")
    assert {(each["title"], each["same"]) for each in found["covered_by"]} == {
        ("cheap", False),
        ("figs", False),
        ("figs or nuts", False),
    }
    assert not found["covered_by_more"]
    assert covering(served, "WHERE fruit = 'fig' OR fruit = 'nut'") == {"figs or nuts"}
    assert covering(served, "SELECT ?x WHERE (?x, rss:title, ?y) AND ?y CONTAINS 'goal'") == {"titles"}
    assert covering(served, "WHERE fruit = 'pear'") == set()
    same = checked(served, "WHERE price < 20 AND fruit = 'fig'")["covered_by"]
    assert {(each["id"], each["same"]) for each in same} == {
        (begun["cheap"]["id"], True),
        (begun["figs"]["id"], False),
        (begun["figs or nuts"]["id"], False),
    }
    # One that is edited does not cover itself; one that is not active covers nothing.
    edited = begun["cheap"]["id"]
    assert covering(served, "WHERE fruit = 'fig' AND price < 15", edited=edited) == {"figs", "figs or nuts"}
    served.http.post(
        f"/api/subscriptions/{begun['figs']['id']}/pause",
        json={},
        headers={"Tidings-Ticket": begun["figs"]["ticket"]},
    ).raise_for_status()
    assert covering(served, "WHERE fruit = 'fig' AND price < 15", edited=edited) == {"figs or nuts"}


def test_a_text_that_is_no_subscription_is_covered_by_none(served: Served) -> None:
    found = checked(served, "WHERE fruit =")
    assert (found["ok"], found["covered_by"], found["covered_by_more"]) == (False, [], False)
    # Nothing can match it.
    assert covering(served, "SELECT ?t WHERE (?i, rss:title, ?t) AND ?t = 'a' AND ?t = 'b'") == set()


def test_there_may_be_more_than_are_shown(served: Served) -> None:
    many = [{"text": f"WHERE depth > {n}"} for n in range(600)]
    assert served.http.post("/api/subscriptions/bulk", json=many).json()["subscribed"] == 600
    found = checked(served, "WHERE depth > 1000")
    assert len(found["covered_by"]) == SHOWN
    assert found["covered_by_more"]


def test_subscriptions_of_others_are_not_named(guarded: Served) -> None:
    access = guarded.service.access
    alice, bob, admin = (
        {"Authorization": f"Bearer {access.grant(name, role)[1]}"}
        for name, role in (("alice", Role.SUBSCRIBER), ("bob", Role.SUBSCRIBER), ("root", Role.ADMIN))
    )
    for headers, title in ((alice, "of Alice"), (bob, "of Bob")):
        body = {"text": "WHERE topic = 'sport'", "title": title}
        assert guarded.http.post("/api/subscriptions", json=body, headers=headers).status_code == 201
    for headers, own in ((alice, {"of Alice"}), (bob, {"of Bob"}), (admin, set())):
        guarded.http.headers.update(headers)
        assert covering(guarded, "WHERE topic = 'sport' AND price < 3") == own


def test_a_check_waits_for_no_index(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    service = served.service
    search = CoverageSearch(service.registry, service.preview, service.event_preview, awaited=0.02)
    monkeypatch.setattr(service, "coverage", search)
    with service.event_preview._lock:  # as one who matches for long
        began = time.monotonic()
        for _ in range(3):
            answer = served.http.post("/api/check", json={"text": "WHERE fruit = 'fig'"}).json()
            assert (answer["ok"], answer["covered_by"]) == (True, None)
        assert time.monotonic() - began < 2
    monkeypatch.setattr(service.event_preview, "candidates", lambda events: 1 / 0)
    answer = served.http.post("/api/check", json={"text": "WHERE fruit = 'fig'"}).json()
    assert (answer["ok"], answer["covered_by"]) == (True, None)
    search.close()


def test_in_a_divided_index(running: Callable[..., Running]) -> None:
    with running() as served:
        for n in range(10):
            served.subscribe(f"WHERE fruit = 'fig' AND price < {n}", title=f"under {n}")
        served.subscribe("WHERE fruit = 'fig'", title="figs")
    with running(parts=2, place="contain") as served:
        index = served.service.settings.data / "index"
        assert versions.division(index, versions.current(index)) is not None
        assert covering(served, "WHERE fruit = 'fig' AND price < 8") == {"figs", "under 8", "under 9"}
