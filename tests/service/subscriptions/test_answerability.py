"""Subscriptions that cannot be matched any more say so, and go on by themselves when they can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.conftest import Running, Served
from tests.service.stores import opened
from tidings.engine.engine import Engine
from tidings.service.matching.index_writer import IndexWriter
from tidings.service.model import NotificationKind, State, Subscription
from tidings.service.settings import Settings
from tidings.service.subscriptions.answerability import Answerability

TEXTS = {
    "plain": "WHERE topic = 'oil'",
    "table": "SELECT * FROM stocks WHERE per > 90",
    "operator": "WHERE rare()",
    "network": "WHERE topic = 'oil' VIA exchange AT 'reader'",
    "prefix": "WHERE (?s, ex:topic, 'oil')",
}
NAMED = {"table": "stocks", "operator": "rare", "network": "exchange", "prefix": "'ex'"}


@pytest.fixture
def definitions(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "tables.toml").write_text(
        '[stocks]\ncolumns = { symbol = "text", per = "number" }\nkey = ["symbol"]\n'
    )
    (tmp_path / "rare.py").write_text(
        "import tidings\n\n@tidings.operator\ndef rare(event) -> bool:\n    return True\n"
    )
    (tmp_path / "exchange").mkdir()
    (tmp_path / "exchange" / "edges.csv").write_text("source,target\npublisher,reader\n")
    return {
        "tables": tmp_path / "tables.toml",
        "operators": (str(tmp_path / "rare.py"),),
        "networks": {"exchange": tmp_path / "exchange"},
        "prefixes": {"ex": "http://example.org/"},
    }


def states(served: Served) -> dict[str, str]:
    items = served.http.get("/api/subscriptions").json()["items"]
    return {item["title"]: item["state"] for item in items}


def kinds(served: Served, id: str) -> list[str]:
    items = served.http.get(f"/api/subscriptions/{id}/notifications").json()["items"]
    return [item["kind"] for item in items]


def test_a_restart_without_what_they_need_and_one_with_it(
    running: Callable[..., Running], definitions: dict[str, Any]
) -> None:
    with running(**definitions) as served:
        made = {name: served.subscribe(text, title=name) for name, text in TEXTS.items()}
        others = [served.subscribe(TEXTS["prefix"], title=f"other {n}") for n in range(4)]
        assert set(states(served).values()) == {"active"}
    with running() as served:
        found = states(served)
        assert {name: found[name] for name in TEXTS} == {
            name: "unanswerable" if name in NAMED else "active" for name in TEXTS
        }
        for name, word in NAMED.items():
            lost = served.http.get(f"/api/subscriptions/{made[name]['id']}").json()
            assert word in lost["reason"]
            [notice] = served.notifications(made[name]["id"], 1)
            assert notice["kind"] == "unanswerable"
            assert lost["reason"] in notice["message"]
        assert kinds(served, made["plain"]["id"]) == []
        page = served.http.get(f"/subscriptions/{made['table']['id']}").text
        assert "unanswerable" in page
        assert "No event can be matched" in page
        assert "stocks" in served.http.get("/?state=unanswerable").text
        assert served.http.get("/api/status").json()["subscriptions"]["unanswerable"] == 8
        change_while_unanswerable(served, others)
    with running() as served:  # nothing has changed, and nobody is told again
        for name in NAMED:
            assert kinds(served, made[name]["id"]) == ["unanswerable"]
    with running(**definitions) as served:
        found = states(served)
        assert {found[name] for name in TEXTS} == {"active"}
        assert [found[f"other {n}"] for n in range(4)] == ["active", "paused", "cancelled", "expired"]
        for name in NAMED:
            assert served.http.get(f"/api/subscriptions/{made[name]['id']}").json()["reason"] is None
            assert kinds(served, made[name]["id"]) == ["answerable", "unanswerable"]


def change_while_unanswerable(served: Served, made: list[dict[str, Any]]) -> None:
    """Renews, resumes, pauses and cancels, and lets one expire."""

    def post(number: int, step: str, **more: Any) -> httpx.Response:
        path = f"/api/subscriptions/{made[number]['id']}{step}"
        headers = {"Tidings-Ticket": made[number]["ticket"]}
        return served.http.request("POST" if step else "DELETE", path, headers=headers, **more)

    assert post(0, "/renew").json()["state"] == "unanswerable"
    refused = post(0, "/resume")
    assert (refused.status_code, "'ex'" in refused.json()["detail"]) == (422, True)
    found = served.http.get(f"/api/subscriptions/{made[0]['id']}").json()
    assert (found["state"], "'ex'" in found["reason"]) == ("unanswerable", True)
    paused = post(1, "/pause").json()
    assert (paused["state"], paused["reason"]) == ("paused", None)
    assert post(2, "").json()["state"] == "cancelled"
    assert post(3, "/renew", json={"valid_for": 0.01}).json()["state"] == "unanswerable"
    notices = served.notifications(made[3]["id"], 2)
    assert [notice["kind"] for notice in notices] == ["expired", "unanswerable"]
    assert kinds(served, made[0]["id"]) == ["unanswerable"]


def subscription(id: str, text: str) -> Subscription:
    return Subscription(id, text, id, "", "", f"feed-{id}", 1.0, None)


def test_a_crash_between_the_notice_and_the_state_makes_one_notice(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    registry, mailbox = opened(settings)
    registry.add_many([subscription("a", TEXTS["prefix"]), subscription("b", TEXTS["plain"])])
    crashing = Answerability(registry, mailbox)
    refuse, registry.refuse = registry.refuse, None  # type: ignore[method-assign]
    with pytest.raises(TypeError):
        IndexWriter(settings, registry, on_refused=crashing.refused).prepare()
    registry.refuse = refuse  # type: ignore[method-assign]
    IndexWriter(settings, registry, on_refused=Answerability(registry, mailbox).refused).prepare()
    found = registry.find("a")
    assert found is not None
    assert found.state is State.UNANSWERABLE
    assert [notice.kind for notice in mailbox.page(["a"])] == [NotificationKind.UNANSWERABLE]
    registry.close()
    mailbox.close()


def test_who_has_changed_it_meanwhile_is_left_alone(tmp_path: Path) -> None:
    registry, mailbox = opened(Settings(tmp_path))
    answerability = Answerability(registry, mailbox)
    number = registry.add(subscription("a", TEXTS["prefix"]))
    registry.update(replace(subscription("a", TEXTS["plain"])))
    answerability.refused([("a", "no prefix ex:")], number)  # of the text before
    found = registry.find("a")
    assert found is not None
    assert (found.state, found.reason) == (State.ACTIVE, None)
    answerability.refused([("a", "no prefix ex:")], registry.last_change())
    found = registry.find("a")
    assert found is not None
    assert (found.state, found.reason) == (State.UNANSWERABLE, "no prefix ex:")
    last = registry.last_change()
    answerability.retry(Engine())
    assert [change.id for change in registry.changes() if change.number > last] == ["a"]
    registry.close()
    mailbox.close()
