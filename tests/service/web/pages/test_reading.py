"""What a reader sees without a browser: groups of subscriptions, lines of notifications, causes and marks."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.service.conftest import Served
from tests.service.web.pages.test_pages import HTML, JSON, token_of
from tidings.model.event import Event, to_table
from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.service.model import BatchRecord, Role
from tidings.service.web.pages import home

_batches = count(1)


@pytest.fixture
def served(guarded: Served) -> Iterator[Served]:
    """For somebody with a token of their own, who sees nothing of the other tests."""
    _, secret = guarded.service.access.grant("reader", Role.SUBSCRIBER, requests_per_second=1e6)
    headers = {"Authorization": f"Bearer {secret}"}
    with httpx.Client(base_url=guarded.url, headers=headers, timeout=20) as client:
        yield Served(guarded.service, guarded.stream, client)


def record(served: Served, rows: list[dict[str, Any]], *events: Event) -> None:
    """Stores notifications as the stream does."""
    given = [{field.name: row.get(field.name) for field in NOTIFICATION_SCHEMA} for row in rows]
    now, number = time.time(), next(_batches)
    batch = BatchRecord("other", number, "v1", 0, number, len(events), len(rows), 0, now, now)
    table = pa.Table.from_pylist(given, NOTIFICATION_SCHEMA)
    assert served.service.mailbox.record(batch, table, to_table(list(events)))


def match(served: Served, ids: list[str], **attributes: str) -> None:
    event = Event("s", attributes, id=attributes["title"])
    rows = [{"subscription": id, "source": "s", "event": event.id, "verdict": "match"} for id in ids]
    record(served, rows, event)


def doubts(id: str, number: int, cause: str = "locIn failed: KeyError: 'lat'") -> list[dict[str, Any]]:
    return [
        {"subscription": id, "source": cause, "event": f"{i}", "verdict": "undecided", "message": cause}
        for i in range(number)
    ]


def test_a_flood_of_undecided_notifications_is_a_line_for_each_cause(served: Served) -> None:
    made, other = served.subscribe(title="Near me"), served.subscribe(title="Other")
    match(served, [made["id"], other["id"]], title="A match")
    record(served, doubts(made["id"], 1_111) + doubts(other["id"], 1, "near took longer than 2 s"))
    for path in ("/", f"/subscriptions/{made['id']}"):
        page = served.http.get(path, headers=JSON).json()
        assert {one["title"] for one in page["notifications"]} == {"A match"}
        causes = {one["cause"]: (one["count"], one["more"]) for one in page["causes"]}
        assert causes.pop("locIn failed: KeyError") == (1_111, False)
        assert list(causes) == (["near took longer than … s"] if path == "/" else [])
        text = re.sub(r"<[^>]+>|\s+", " ", served.http.get(path, headers=HTML).text)
        assert "1,111 undecided: locIn failed: KeyError , last" in re.sub(" +", " ", text)
        assert text.count("locIn failed") == 1
    see = f"/subscriptions/{made['id']}?undecided=true"
    assert f'href="{see}"' in served.http.get("/", headers=HTML).text
    assert len(served.http.get(see, headers=JSON).json()["notifications"]) == 25
    # What arrives later raises the count: the fragment says by how much, and up to which number.
    last = served.service.mailbox.last()
    record(served, doubts(made["id"], 3, "locIn failed: ValueError: far"), Event("s", id="x"))
    news = served.http.get(f"/?part=news&after={last}", headers=JSON).json()
    assert news["notifications"] == []
    assert [(one["cause"], one["count"]) for one in news["causes"]] == [("locIn failed: ValueError", 3)]
    assert (news["reached"], news["full"]) == (served.service.mailbox.last(), False)


@pytest.mark.parametrize("of_one", [False, True])
def test_what_comes_while_a_page_is_made_is_added_by_its_script_once(
    served: Served, monkeypatch: pytest.MonkeyPatch, of_one: bool
) -> None:
    id = served.subscribe(title="Late")["id"]
    match(served, [id], title=f"Before {of_one}")
    last = served.service.mailbox.last()
    match(served, [id], title=f"Meanwhile {of_one}")
    record(served, doubts(id, 3))
    # As if both had come after the page had read the number of the last one.
    monkeypatch.setattr(served.service.mailbox, "last", lambda: last)
    path = f"/subscriptions/{id}" if of_one else "/"
    page = served.http.get(path, headers=JSON).json()
    assert [one["title"] for one in page["notifications"]] == [f"Before {of_one}"]
    assert page["causes"] == []
    monkeypatch.undo()
    news = served.http.get(f"{path}?part=news&after={last}", headers=JSON).json()
    assert [one["title"] for one in news["notifications"]] == [f"Meanwhile {of_one}"]
    assert [one["count"] for one in news["causes"]] == [3]


def test_a_search_further_back_does_not_deny_what_was_found(served: Served) -> None:
    id = served.subscribe(title="Searched")["id"]
    match(served, [id], title="In the 93rd minute")
    number = served.notifications(id)[0]["number"]
    for path in ("/notifications", f"/subscriptions/{id}"):
        page = served.http.get(f"{path}?q=93rd&before={number}", headers=HTML).text
        assert "No older notification has “93rd”." in page
        assert (
            "No notification that is kept has “94th”." in served.http.get(f"{path}?q=94th", headers=HTML).text
        )


def test_a_snapshot_is_one_line_and_a_change_says_which_row(served: Served) -> None:
    id = served.subscribe()["id"]
    row = {"subscription": id, "source": "s"}

    def changes(sign: str, *prices: int) -> list[dict[str, str]]:
        rows = [json.dumps({"symbol": "ACME", "price": price, "of": "x"}) for price in prices]
        return [{"table": "stocks", "change": sign, "row": row} for row in rows]

    parts: list[dict[str, Any]] = [
        {**row, "event": "snap", "verdict": "snapshot", "part": str(part), "sequence": 0}
        | ({"changes": changes("+", part, part + 100)} if part < 8 else {})
        for part in range(16)
    ]
    record(served, parts, Event("s", id="snap"))
    changed = changes("-", 7) + changes("+", 9)
    record(
        served,
        [{**row, "event": "c", "verdict": "match", "part": "1", "sequence": 1, "changes": changed}],
        Event("s", id="c"),
    )
    for path in ("/", f"/subscriptions/{id}", "/notifications"):
        lines = served.http.get(path, headers=JSON).json()["notifications"]
        titles = [one["title"] for one in lines]
        assert titles == ["- stocks: ACME, 7, x; + stocks: ACME, 9, x", "Snapshot: stocks 16 rows"]
        assert len(lines[1]["changes"]) == 16


def test_a_group_is_counted_whole_or_said_to_be_a_part(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [served.subscribe(title=f"T{i}") for i in range(6)]
    path = f"/api/subscriptions/{made[4]['id']}/pause"
    served.http.post(path, headers={"Tidings-Ticket": made[4]["ticket"]})
    monkeypatch.setattr(home, "WATCHED", 4)
    page = served.http.get("/", headers=HTML).text
    counted = dict(re.findall(r'<h3>(\w+)</h3> <span class="count">([^<]+)', page))
    assert counted == {"Active": "3 on this page", "Paused": "1"}
    assert "older than these 4 →" in page
    older = re.search(r'href="(/\?after=[^"]+)"', page)
    assert older is not None
    page = served.http.get(older[1], headers=HTML).text
    assert re.findall(r'<span class="count">([^<]+)</span></summary>', page) == ["2 on this page"]


def test_a_selected_value_is_shown_although_the_title_has_it(served: Served) -> None:
    id = served.subscribe()["id"]
    event = Event("s", {"title": "Gusts of 93 km/h", "link": "https://a.example/"}, id="gusts")
    bound = {"wind": "93", "title": "Gusts of 93 km/h", "at": "https://a.example/"}
    row = {"subscription": id, "source": "s", "event": "gusts", "verdict": "match"}
    record(served, [{**row, "bindings": list(bound.items())}], event)
    (line,) = served.http.get(f"/subscriptions/{id}", headers=JSON).json()["notifications"]
    assert list(line["bound"]) == ["wind"]


def test_subscriptions_are_in_groups_the_latest_activity_first(served: Served) -> None:
    made = [served.subscribe(f"WHERE topic = 't{i}'", title=f"T{i}") for i in range(20)]
    shown = served.subscribe("WHERE topic = 'p'", title="Shown", public=True)
    for id, ticket, word in (
        (made[0]["id"], made[0]["ticket"], "pause"),
        (made[1]["id"], made[1]["ticket"], ""),
    ):
        method = served.http.post if word else served.http.delete
        method(f"/api/subscriptions/{id}/{word}".rstrip("/"), headers={"Tidings-Ticket": ticket})
    match(served, [made[5]["id"]], topic="t5", title="Five", link="https://a.example/5")
    notification = served.notifications(made[5]["id"])[0]
    groups = {one["name"]: one for one in served.http.get("/", headers=JSON).json()["groups"]}
    assert list(groups) == ["active", "paused", "public", "ended"]
    assert [groups[name]["count"] for name in groups] == [18, 1, 1, 1]
    active = groups["active"]["subscriptions"]
    assert [(one["title"], one["unread"]) for one in active[:2]] == [("T5", 1), ("T19", 0)]
    assert len(active) == 15
    assert groups["public"]["subscriptions"][0]["id"] == shown["id"]
    page = served.http.get("/", headers=HTML).text
    assert 'href="/?state=active"' in page
    assert "Show all 18" in page
    every = served.http.get("/?state=active", headers=JSON).json()["groups"]
    assert [(one["name"], len(one["subscriptions"])) for one in every] == [("active", 18), ("public", 1)]

    # The forms, as they are sent without a script.
    visitor = served.http
    csrf = token_of(visitor.get("/", headers=HTML))
    star = f"/subscriptions/{made[5]['id']}/notifications/{notification['id']}/star"
    answer = visitor.post(star, data={"csrf": csrf, "starred": "yes", "back": "//evil.example/"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    starred = visitor.get("/notifications?starred=true", headers=JSON).json()["notifications"]
    assert [(one["title"], one["starred"], one["excerpt"]) for one in starred] == [
        ("Five", True, "topic: t5")
    ]
    visitor.post("/notifications/read", data={"csrf": csrf, "number": notification["number"], "back": "/"})
    assert not any(one["unread"] for one in visitor.get("/", headers=JSON).json()["notifications"])
