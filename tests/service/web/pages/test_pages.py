"""What pages answer to whoever asks, without a browser: forms, JSON, errors, and what is drawn of what."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.service.conftest import Running, Served
from tidings.model.event import Event, to_table
from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.service.model import BatchRecord, Notice, NotificationKind, Role
from tidings.storage.part_visits import PartVisits

HTML = {"Accept": "text/html,application/xhtml+xml"}
JSON = {"Accept": "application/json"}


def token_of(page: httpx.Response) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]+)"', page.text)
    assert found is not None
    return found[1]


@pytest.fixture
def visitor(service: Served) -> httpx.Client:
    return httpx.Client(base_url=service.url, headers=HTML, timeout=20)


@pytest.mark.parametrize("path", ["/", "/subscriptions/new", "/sources", "/taxonomy", "/status", "/login"])
def test_each_page_answers_both_as_a_page_and_as_json(service: Served, path: str) -> None:
    page = service.http.get(path, headers=HTML)
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    data = service.http.get(path, headers=JSON)
    assert data.headers["content-type"] == "application/json"
    assert isinstance(data.json(), dict)
    assert data.headers["vary"] == page.headers["vary"] == "Accept"


def test_visits_of_the_parts_of_a_divided_index(running: Callable[..., Running]) -> None:
    with running(parts=2, place="split") as served:
        for part in (0, 1):
            assert f'tidings_part_matches_total{{part="{part}"}} 0.0' in served.http.get("/metrics").text
        served.service.metrics.visited(PartVisits.from_lists([[30, 2_000], [4, 5], [60, 7], [1, 3]]))
        first, second = served.http.get("/status", headers=JSON).json()["parts_of_index"]
        assert (first["forwards"], first["false_positives"], second["matches"], second["opened"]) == (
            30,
            4,
            7,
            3,
        )
        assert (
            '<td class="num" data-name="Visits">2,000</td>' in served.http.get("/status", headers=HTML).text
        )
        assert 'tidings_part_forwards_total{part="1"} 2000.0' in served.http.get("/metrics").text


def test_the_json_of_a_page_has_its_data(service: Served) -> None:
    made = service.subscribe("WHERE topic = 'data'", title="Data")
    service.publish({"source": "s", "id": "d1", "topic": "data", "title": "As data"})
    notification = service.notifications(made["id"])[0]
    page = service.http.get(f"/subscriptions/{made['id']}", headers=JSON).json()
    assert page["subscription"]["title"] == "Data"
    assert [one["title"] for one in page["notifications"]] == ["As data"]
    assert "ticket" not in page
    home = service.http.get("/?search=data", headers=JSON).json()
    (group,) = home["groups"]
    mine = {one["id"]: one for one in group["subscriptions"]}[made["id"]]
    assert (group["name"], mine["unread"], mine["latest"]) == ("active", 1, notification["time"])
    reason = service.http.get(
        f"/subscriptions/{made['id']}/notifications/{notification['id']}", headers=JSON
    ).json()
    assert reason["reason"]["verdict"] == "match"
    about = service.http.get("/taxonomy?class=http://example.org/Rowing", headers=JSON).json()
    assert {one["label"] for one in about["about"]["parents"]} == {"Sport", "On the water"}


def test_a_form_of_nobodys_page_is_refused(service: Served, visitor: httpx.Client) -> None:
    page = visitor.get("/subscriptions/new")
    for csrf in ("", "0" * 64, token_of(httpx.get(f"{service.url}/login", headers=HTML))):
        answer = visitor.post("/subscriptions", data={"csrf": csrf, "text": "WHERE a = 1"})
        assert answer.status_code == 403
        assert "<h1" in answer.text
    answer = visitor.post("/subscriptions", data={"csrf": token_of(page), "text": "WHERE a = 1"})
    assert answer.status_code == 303
    elsewhere = visitor.post(
        "/subscriptions",
        data={"csrf": token_of(page), "text": "WHERE a = 1"},
        headers={"Origin": "https://evil.example"},
    )
    assert elsewhere.status_code == 403


def test_what_was_typed_is_kept_when_it_is_refused(service: Served, visitor: httpx.Client) -> None:
    csrf = token_of(visitor.get("/subscriptions/new"))
    answer = visitor.post("/subscriptions", data={"csrf": csrf, "text": "WHERE a = \r\n", "title": "A title"})
    assert answer.status_code == 422
    assert "A title" in answer.text
    assert 'class="verdict bad"' in answer.text
    answer = visitor.post(
        "/subscriptions", data={"csrf": csrf, "text": "WHERE a = 1", "webhook": "http://127.0.0.1/inside"}
    )
    assert answer.status_code in (400, 403, 422)
    assert 'role="alert"' in answer.text
    answer = visitor.post("/sources", data={"csrf": csrf, "url": "http://169.254.169.254/latest"})
    assert answer.status_code in (400, 403, 422)
    assert "169.254.169.254" in answer.text
    assert 'role="alert"' in answer.text
    answer = visitor.post("/publish", data={"csrf": csrf, "kind": "application/json", "body": "{"})
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text


def test_subscriptions_are_mine_only_where_there_are_tokens(service: Served, guarded: Served) -> None:
    assert "<h1>Subscriptions</h1>" in service.http.get("/", headers=HTML).text
    _, secret = guarded.service.access.grant("reader", Role.SUBSCRIBER)
    page = guarded.http.get("/", headers={**HTML, "Authorization": f"Bearer {secret}"})
    assert "<h1>My subscriptions</h1>" in page.text


def test_errors_are_pages_for_people_and_problems_for_programs(service: Served) -> None:
    page = service.http.get("/subscriptions/snobody", headers=HTML)
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert "<h1" in page.text
    answer = service.http.get("/subscriptions/snobody", headers=JSON)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    for path in (
        "/?after=%00", "/?part=news&after=abc", "/subscriptions/%00", "/taxonomy?class=nothing", "/subscriptions/s?before=-1",
        "/?search=" + "x" * 5_000, "/?state=%F0%9F%A6%86", "/static/../rendering.py", "/static/%2e%2e/rendering.py",
    ):  # fmt: skip
        assert service.http.get(path, headers=HTML).status_code < 500, path


def test_an_opml_file_is_followed_and_given_back(running: Callable[..., Running]) -> None:
    with running(feed_interval=3_600.0) as served, httpx.Client(base_url=served.url, headers=HTML) as visitor:
        csrf = token_of(visitor.get("/sources"))
        opml = b'<opml version="2.0"><body><outline type="rss" text="A feed" xmlUrl="https://feed.invalid/a.xml"/></body></opml>'
        answer = visitor.post("/sources/opml", data={"csrf": csrf}, files={"file": ("a.opml", opml)})
        assert answer.status_code == 200
        assert "1 feed was added" in answer.text
        assert "https://feed.invalid/a.xml" in visitor.get("/api/sources.opml").text
        answer = visitor.post("/sources/remove", data={"csrf": csrf, "url": "https://feed.invalid/a.xml"})
        assert answer.status_code == 303
        assert "No feed is followed" in visitor.get("/sources").text


def test_a_publisher_has_no_subscriptions_and_no_login_leads_elsewhere(guarded: Served) -> None:
    _, secret = guarded.service.access.grant("press", Role.PUBLISHER)
    with httpx.Client(base_url=guarded.url, headers=HTML) as visitor:
        for wanted in (
            "https://evil.example/",
            "//evil.example",
            "/\\evil.example",
            "/\tevil",
            "javascript:alert(1)",
        ):
            page = visitor.get("/login", params={"next": wanted})
            answer = visitor.post("/login", data={"csrf": token_of(page), "token": secret, "next": wanted})
            assert answer.headers["location"] == "/"
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert visitor.get("/").headers["location"] == "/sources"
        assert visitor.get("/sources").status_code == 200
        assert visitor.get("/subscriptions/new").status_code == 403


def test_changes_of_rows_are_tables_and_notices_stand_out(running: Callable[..., Running]) -> None:
    with running() as served:
        made = served.subscribe("WHERE topic = 'rows'")
        event = Event(source="s", id="r1", attributes={"table": "stocks"})
        rows = [
            {"table": "stocks", "change": sign, "row": json.dumps({"symbol": "ACME", "per": per})}
            for sign, per in (("-", 50), ("+", 60))
        ]
        row = {
            "subscription": made["id"],
            "source": "s",
            "event": "r1",
            "verdict": "match",
            "changes": rows,
            "part": "0",
            "sequence": 7,
        }
        table = pa.Table.from_pylist(
            [{field.name: row.get(field.name) for field in NOTIFICATION_SCHEMA}], NOTIFICATION_SCHEMA
        )
        now = time.time()
        served.service.mailbox.record(
            BatchRecord("other", 1, "v1", 0, 0, 1, 1, 0, now, now), table, to_table([event])
        )
        served.service.mailbox.notify(
            [Notice(made["id"], NotificationKind.EXPIRES_SOON, "soon", now, "It expires soon; renew it")]
        )
        page = served.http.get(f"/subscriptions/{made['id']}", headers=HTML).text
        assert '<table class="changes">' in page
        assert re.search(r'class="minus".*?<td>ACME</td><td>50</td>', page, re.DOTALL)
        assert re.search(r'class="plus".*?<td>ACME</td><td>60</td>', page, re.DOTALL)
        assert "+ stocks: ACME, 60" in page
        assert 'class="notice new"' in page
        assert "It expires soon; renew it" in page


def test_older_notifications_are_on_pages_of_their_own(running: Callable[..., Running]) -> None:
    with running() as served:
        made = served.subscribe("WHERE topic = 'many'")
        served.publish(
            *(
                {"source": "s", "id": f"m{i:02}", "topic": "many", "title": f"Number {i:02}"}
                for i in range(30)
            )
        )
        served.notifications(made["id"], 30)
        seen: list[str] = []
        path: Any = f"/subscriptions/{made['id']}"
        while path:
            page = served.http.get(path, headers=HTML).text
            seen += re.findall(r"<h3>(Number \d\d)</h3>", page)
            older = re.search(r'href="[^"?]*(\?before=\d+)"', page)
            path = f"/subscriptions/{made['id']}{older[1]}" if older else None
        assert seen == [f"Number {i:02}" for i in range(29, -1, -1)]
