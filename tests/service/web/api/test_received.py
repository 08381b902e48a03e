"""Search in what was received, stars and read positions, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.service.conftest import Served
from tidings.service.delivery import received_search


@pytest.fixture(scope="module")
def made(served: Served) -> dict[str, Any]:
    """A subscription with five events, of which two are about ducks."""
    subscription = served.subscribe("WHERE topic = 'news'", title="News")
    served.subscribe("WHERE topic = 'none'")
    served.publish(
        {"source": "s", "id": "1", "topic": "news", "title": "Ducks over São Paulo"},
        {
            "source": "s",
            "id": "2",
            "topic": "news",
            "title": "Rain",
            "summary": "<p>No <b>ducks</b> today</p>",
        },
        *({"source": "s", "id": f"{i}", "topic": "news", "inner": {"list": [f"n{i}"]}} for i in (3, 4, 5)),
    )
    served.notifications(subscription["id"], 5)
    return subscription


def found(served: Served, path: str, **query: Any) -> list[str]:
    answer = served.http.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return [item["event"]["id"] for item in answer.json()["items"]]


def test_words_are_found_newest_first(served: Served, made: dict[str, Any]) -> None:
    for path in ("/api/notifications", f"/api/subscriptions/{made['id']}/notifications"):
        assert found(served, path, q="DUCKS") == ["2", "1"]
        assert found(served, path, q="ducks são") == ["1"]
        assert found(served, path, q="n4 news") == ["4"]
        assert found(served, path, q="title") == []  # the name of an attribute
        assert found(served, path, q="topic\0news", limit=2) == []
    page = served.http.get("/api/notifications", params={"q": "news", "limit": 2})
    assert [item["event"]["id"] for item in page.json()["items"]] == ["5", "4"]
    assert f"cursor={page.json()['next']}" in page.headers["link"]
    path = f"/api/subscriptions/{made['id']}/notifications"
    assert served.http.get(path, params={"q": "news", "after": 1}).status_code == 422


@pytest.mark.parametrize(("bound", "most", "requests"), [("LOOKED_AT", 2, 3), ("_LETTERS", 1, 5)])
def test_a_search_is_bounded_and_goes_on_further_back(
    served: Served,
    made: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    bound: str,
    most: int,
    requests: int,
) -> None:
    monkeypatch.setattr(received_search, bound, most)
    seen, cursor, pages = [], None, 0
    while pages == 0 or cursor:
        query = {"q": "ducks"} if cursor is None else {"q": "ducks", "cursor": cursor}
        answer = served.http.get("/api/notifications", params=query).json()
        seen += [item["event"]["id"] for item in answer["items"]]
        cursor, pages = answer["next"], pages + 1
    assert (seen, pages) == (["2", "1"], requests)


def test_stars_and_read_positions(served: Served, made: dict[str, Any]) -> None:
    path = f"/api/subscriptions/{made['id']}"
    newest = served.http.get(f"{path}/notifications").json()["items"][0]
    star = f"{path}/notifications/{newest['id']}/star"
    assert [served.http.put(star).status_code for _ in range(2)] == [204, 204]
    assert found(served, "/api/notifications", starred=True) == ["5"]
    assert found(served, f"{path}/notifications", starred=True, q="n4") == []
    assert served.http.delete(star).status_code == 204
    assert found(served, "/api/notifications", starred=True) == []
    assert served.http.put(f"{path}/notifications/none/star").status_code == 404

    assert served.http.get(f"{path}/read").json() == {"number": 0, "unread": 5, "undecided": 0, "more": False}
    moved = served.http.put(f"{path}/read", json={"number": newest["number"] - 1}).json()
    assert moved == {"number": newest["number"] - 1, "unread": 1, "undecided": 0, "more": False}
    assert served.http.put(f"{path}/read", json={"number": 1}).json() == moved  # it never goes back
    assert served.http.put(f"{path}/read", json={"number": -1}).status_code == 422
