"""Editing in place, tags, recent events and what they match, and trials of joins, over HTTP as without scripts."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.service.conftest import Running, Served
from tidings.service.matching import table_rows
from tidings.service.web.pages import cards

HTML = {"Accept": "text/html"}
JSON = {"Accept": "application/json"}
TABLES = '[stocks]\ncolumns = { symbol = "text", per = "number" }\nkey = ["symbol"]\n[reviews]\ncolumns = { symbol = "text" }\n'
JOIN = "SELECT * FROM stocks JOIN reviews USING (symbol)\nWHERE stocks.per > 10"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("author")
    (folder / "tables.toml").write_text(TABLES)
    with Running(data=folder / "data", tables=folder / "tables.toml") as served:
        yield served


@pytest.fixture
def visitor(desk: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=desk.url, headers=HTML, timeout=30) as client:
        yield client


def form_of(visitor: httpx.Client, path: str, **fields: str) -> dict[str, str]:
    """The fields of a page's form, with these values."""
    page = visitor.get(path).text
    named = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))
    return {**named, **fields}


def words(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def insert(served: Served, table: str, id: str, **row: Any) -> None:
    served.publish({"type": "tidings.insert", "id": id, "source": "t", "table": table, "row": row})


def test_a_subscription_is_edited_after_its_answers_were_compared(
    desk: Served, visitor: httpx.Client
) -> None:
    events = [
        {"source": "shop", "id": f"p{n}", "topic": "edit", "price": n, "title": f"Offer {n}"}
        for n in (5, 15, 25)
    ]
    desk.publish(*events)
    made = desk.subscribe("WHERE topic = 'edit' AND price < 20", tags=["cheap"])
    path = f"/subscriptions/{made['id']}"
    form = form_of(
        visitor, f"{path}/edit", text="WHERE topic = 'edit' AND price > 10", title="Dear", tags="Dear, shop"
    )
    compared = visitor.post(f"{path}/compare?part=trial", data=form).text
    assert "matches 1 more and 1 no longer" in words(compared)
    assert re.search(r'class="minus".*?Offer 5 .*?class="plus".*?Offer 25', compared, re.DOTALL)
    assert "no longer: Offer 5 (from shop)" in words(compared)
    whole = visitor.post(f"{path}/compare", data=form).text
    assert "After saving" in whole
    assert 'value="Dear, shop"' in whole  # what was typed is still there
    assert (
        "cannot be tried" in visitor.post(f"{path}/compare?part=trial", data={**form, "text": "WHERE"}).text
    )
    for wrong, status, said in (
        ({"text": "WHERE topic =", "ticket": made["ticket"]}, 422, "verdict bad"),
        ({"tags": "x" * 60, "ticket": made["ticket"]}, 422, "may have 50"),
        ({}, 403, "give the ticket"),
        ({"revision": "7", "ticket": made["ticket"]}, 412, "revision 1 by now"),
    ):
        answer = visitor.post(f"{path}/edit", data={**form, **wrong})
        assert (answer.status_code, said in answer.text) == (status, True), wrong
    answer = visitor.post(f"{path}/edit", data={**form, "ticket": made["ticket"]})
    assert answer.headers["location"] == f"{path}?done=edited"
    for public, done in (("yes", "public"), ("", "not-public"), ("", "saved")):
        again = {**form, **form_of(visitor, f"{path}/edit"), "public": public, "ticket": made["ticket"]}
        answer = visitor.post(f"{path}/edit", data=again)
        assert answer.headers["location"] == f"{path}?done={done}"
        assert (
            visitor.get(made["feeds"]["atom"]).status_code == 200
        )  # the secret address, whatever the feeds are
        assert visitor.get(f"/feeds/{made['id']}.atom").status_code == (200 if public else 404)
    page = visitor.get(path).text
    assert 'href="/?tag=dear"' in page
    assert "Dear" in words(visitor.get("/?tag=shop").text)
    assert "No subscription was found" in visitor.get("/?tag=cheap").text
    begun = visitor.post(
        "/subscriptions",
        data={**form_of(visitor, "/subscriptions/new"), "text": "WHERE topic = 'x'", "tags": "new two"},
    )
    assert desk.http.get(f"/api{begun.headers['location']}").json()["tags"] == ["new", "two"]


def test_what_is_no_longer_matched_can_be_seen_to_the_last(desk: Served, visitor: httpx.Client) -> None:
    desk.publish(*({"source": "s", "id": f"c{n}", "topic": "long", "size": n} for n in range(30)))
    made = desk.subscribe("WHERE topic = 'long'")
    path = f"/subscriptions/{made['id']}"
    form = form_of(visitor, f"{path}/edit", text="WHERE topic = 'long' AND size >= 25")
    compared = visitor.post(f"{path}/compare?part=trial", data=form).text
    assert "10 more: 5 no longer, 5 in both" in words(compared)
    assert compared.count('class="minus"') == 25
    assert "are shown" not in compared


def test_a_notification_that_came_before_an_edit_says_so(desk: Served, visitor: httpx.Client) -> None:
    made = desk.subscribe("WHERE topic = 'wind' AND speed > 60")
    desk.publish({"source": "s", "id": "w1", "topic": "wind", "speed": 65})
    path = f"/subscriptions/{made['id']}"
    why = f"{path}/notifications/{desk.notifications(made['id'])[0]['id']}"
    page = visitor.get(why).text
    assert re.search(r'class="badge match">', page)
    assert "probably" not in page
    form = form_of(visitor, f"{path}/edit", text="WHERE topic = 'wind' AND speed > 100")
    visitor.post(f"{path}/edit", data={**form, "ticket": made["ticket"]})
    page = visitor.get(why).text
    assert re.search(r'class="badge no-longer-matches">.*?was probably edited', page, re.DOTALL)
    assert 'class="badge match"' not in page


def test_recent_events_and_what_they_match(desk: Served, visitor: httpx.Client) -> None:
    desk.subscribe("WHERE topic = 'recent' AND size > 3", title="Large ones", tags=["big"])
    desk.publish({"source": "shop", "id": "r1", "topic": "recent", "size": 5, "title": "A large one"})
    assert "Count matches" in visitor.get("/events").text
    assert {one["matches"] for one in desk.http.get("/events", headers=JSON).json()["events"]} == {None}
    page = visitor.get("/events?counts=1").text
    row = re.search(r'<tr>\s*<td><a href="([^"]+)">A large one</a>.*?</tr>', page, re.DOTALL)
    assert row is not None
    assert words(row[0]).split()[-1] == "1"  # matches
    assert "just now" in row[0]
    page = visitor.get(row[1].replace("&amp;", "&")).text
    assert "1 of your subscriptions matches" in page
    assert (
        'href="/subscriptions/new?text=WHERE+topic+%3D+%27recent%27">Subscribe to events like this</a>'
        in page
    )
    assert re.search(r'class="held.*?size.*?5', page, re.DOTALL)
    assert "Large ones" in page
    form = form_of(visitor, "/events/match")
    for kind, body, said in (
        ("application/json", '{"topic": "recent", "size": 4}', "Large ones"),
        ("application/json", '{"topic": "recent", "size": 1}', "No subscription matches"),
        ("application/json", "{", 'role="alert"'),
        ("text/turtle", "<urn:a> <urn:b> 'c' .", "No subscription matches"),
        ("application/json", '[{"a": 1}, {"a": 2}]', "one at a time"),
    ):
        assert said in visitor.post("/events/match", data={**form, "kind": kind, "body": body}).text, body
    gone = visitor.get("/events/match?source=shop&id=gone")
    assert (gone.status_code, "no longer among the last" in gone.text) == (404, True)


def test_a_join_is_tried_on_the_rows_that_are_there(
    desk: Served, visitor: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        insert(desk, "stocks", f"s{n}", symbol=f"S{n}", per=10 * n)
    insert(desk, "reviews", "v", symbol="S2")
    deadline = time.monotonic() + 10
    while desk.http.get("/api/tables/reviews/rows").json().get("total") != 1:
        assert time.monotonic() < deadline
    desk.service.log_writer.recent._events.clear()  # rows stay when the events that brought them are forgotten
    insert(desk, "reviews", "w", symbol="S2")
    tried = desk.http.post("/api/try", json={"text": JOIN}).json()
    assert (tried["looked"], tried["matched"], tried["late"]) == (1, 1, False)
    assert tried["matches"][0]["changes"] == [{"table": "reviews", "change": "+", "row": {"symbol": "S2"}}]
    assert [row["row"]["symbol"] for row in tried["rows"]] == ["S2"] * 3
    form = form_of(visitor, "/subscriptions/new", text=JOIN)
    page = visitor.post("/subscriptions/new?part=trial", data=form).text
    assert "reviews gained 1 row" in page
    assert "Rows of its result now 3" in words(page)
    monkeypatch.setattr(cards, "MOST_ROWS", 2)
    page = words(visitor.post("/subscriptions/new?part=trial", data=form).text)
    assert "Rows of its result now 3, the first 2 are shown" in page
    monkeypatch.setattr(table_rows, "_MOST", 1)
    assert desk.http.post("/api/try", json={"text": JOIN}).json()["rows"] is None
    page = words(visitor.post("/subscriptions/new?part=trial", data=form).text)
    assert "The present rows are not known." in page
    assert "tidings.snapshot" not in visitor.get("/events").text
