"""Tables and their rows over HTTP, and snapshots of subscriptions over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import Running, Served

TABLES = """
[stocks]
columns = { symbol = "text", per = "number", since = "date" }
key = ["symbol"]
payload = ["since"]

[notes]
columns = { text = "text" }
"""


@pytest.fixture
def joining(tmp_path: Path, running: Callable[..., Running]) -> Iterator[Served]:
    (tmp_path / "tables.toml").write_text(TABLES)
    with running(tables=tmp_path / "tables.toml") as served:
        yield served


def change(served: Served, word: str, table: str, n: int = 0, **row: Any) -> None:
    change.count += 1  # type: ignore[attr-defined]
    served.publish(
        {"type": f"tidings.{word}", "id": f"{change.count}", "source": "t", "table": table, "row": row}  # type: ignore[attr-defined]
    )


change.count = 0  # type: ignore[attr-defined]


def rows(served: Served, table: str, limit: int = 50) -> list[dict[str, Any]]:
    """All rows, by pages."""
    found: list[dict[str, Any]] = []
    url: str | None = f"/api/tables/{table}/rows?limit={limit}"
    while url is not None:
        answer = served.http.get(url)
        assert answer.status_code == 200, answer.text
        assert len(answer.json()["items"]) <= limit
        found += answer.json()["items"]
        url = answer.links["next"]["url"] if "next" in answer.links else None
        assert (url is None) == (answer.json()["next"] is None)
        if url is None:
            assert len(found) == answer.json()["total"]
    return found


def test_tables_are_listed(joining: Served) -> None:
    stocks, notes = joining.http.get("/api/tables").json()["items"]
    columns = {"symbol": "text", "per": "number", "since": "date"}
    assert stocks == {"name": "stocks", "columns": columns, "key": ["symbol"], "payload": ["since"]}
    assert notes == {"name": "notes", "columns": {"text": "text"}, "key": [], "payload": []}


def test_rows_are_those_of_now(joining: Served) -> None:
    assert rows(joining, "stocks") == []
    for n in range(7):
        change(joining, "insert", "stocks", symbol=f"S{n}", per=n, since="2026-01-31")
    change(joining, "update", "stocks", symbol="S1", per=99, since="2026-01-31")
    change(joining, "delete", "stocks", symbol="S2")
    for _ in range(3):
        change(joining, "insert", "notes", text="the same")
    wanted = {f"S{n}": float(n) for n in range(7) if n != 2} | {"S1": 99.0}
    until_rows(joining, "notes", 3)
    found = rows(joining, "stocks", limit=2)
    assert {row["symbol"]: row["per"] for row in found} == wanted
    assert len(found) == len(wanted)
    assert found[0]["since"] == "2026-01-31"
    assert rows(joining, "notes", limit=1) == [{"text": "the same"}] * 3
    listed = joining.http.get("/api/subscriptions").json()["items"]
    assert listed == []  # what the service keeps for itself is not shown
    assert joining.http.get("/api/status").json()["subscriptions"]["active"] == 0
    assert joining.http.get("/api/subscriptions.ndjson").text == ""


def until_rows(served: Served, table: str, count: int) -> None:
    for _ in range(500):
        if len(rows(served, table)) == count:
            return
    raise AssertionError(f"{table} has {rows(served, table)}")


def test_a_table_that_nobody_reads_is_left_and_taken_up_again(joining: Served) -> None:
    change(joining, "insert", "notes", text="first")
    until_rows(joining, "notes", 1)
    registry = joining.service.registry
    (copy,) = joining.service.table_rows._copies.values()
    before = copy.subscription
    followed = registry.find(before)
    assert followed is not None
    assert followed.valid_until is not None
    assert registry.expire([followed])[0] == {before}
    change(joining, "insert", "notes", text="second")
    until_rows(joining, "notes", 2)
    assert copy.subscription != before


def test_tables_that_are_not_there(joining: Served) -> None:
    assert joining.http.get("/api/tables/none/rows").status_code == 404
    assert joining.http.get("/api/tables/stocks/rows?cursor=%21").status_code == 422
    assert joining.http.get("/api/tables/stocks/rows?limit=0").status_code == 422


def test_without_the_stream_rows_are_unavailable(joining: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    joining.stream.stop()
    monkeypatch.setattr("tidings.service.matching.table_rows._PATIENCE", 0.2)
    answer = joining.http.get("/api/tables/stocks/rows")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert joining.service.table_rows.present(joining.service.preview.tables) is None
    monkeypatch.undo()


def test_a_snapshot_is_asked_for_with_the_ticket(joining: Served) -> None:
    dear = joining.subscribe("SELECT * FROM stocks WHERE per > 50")
    change(joining, "insert", "stocks", symbol="IBM", per=60)
    path, ticket = f"/api/subscriptions/{dear['id']}", {"Tidings-Ticket": dear["ticket"]}
    joining.notifications(dear["id"])
    assert joining.http.post(f"{path}/snapshot").status_code == 403
    asked = joining.http.post(f"{path}/snapshot", headers=ticket)
    assert asked.status_code == 202
    snapshot, _ = joining.notifications(dear["id"], 2)
    assert (snapshot["kind"], snapshot["event"]["id"]) == ("snapshot", asked.json()["event"])
    assert [row["row"]["symbol"] for row in snapshot["changes"]] == ["IBM"]
    again = joining.http.post(f"{path}/snapshot", json={"ticket": dear["ticket"]})
    assert again.json() != asked.json()
    joining.http.post(f"{path}/pause", headers=ticket)
    assert joining.http.post(f"{path}/snapshot", headers=ticket).status_code == 409
    plain = joining.subscribe("WHERE a = 1")
    refused = joining.http.post(
        f"/api/subscriptions/{plain['id']}/snapshot", headers={"Tidings-Ticket": plain["ticket"]}
    )
    assert (refused.status_code, "over no tables" in refused.json()["detail"]) == (422, True)
