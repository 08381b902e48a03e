"""A store that is away, locked or damaged while the service runs: 503 with Retry-After on every route, no word of where
it is, and all is well when it is back."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.postgresql import Server
from tests.service.conftest import Running, Served
from tests.service.hostile.routes import filled, routes_of
from tidings.service.store import transactions
from tidings.service.store.transactions import Database, StoreAway, StoreError

# They need no store, or the stream, which is not there to be asked.
INDEPENDENT = {
    "/health",
    "/metrics",
    "/openapi.json",
    "/login",
    "/taxonomy",
    "/static/page.js",
    "/api/taxonomy",
    "/api/definitions",
    "/api/links/definitions",
    "/api/prefixes",
    "/api/networks",
    "/api/networks/{name}",
    "/api/tables",
    "/api/tables/{name}/rows",
    "/api/backtests/{id}",
}
WITHOUT = ("/api/complete", "/api/stream", "/api/links/packets", "/api/links/payloads", "/subscriptions/new")
BODIES = {
    "/api/links": {"relay": "n" + "a" * 20},
    "/api/subscriptions": {"text": "WHERE a = 1"},
    "/api/sources": {"url": "https://away.example/feed"},
    "/api/tokens": {"name": "a", "role": "admin"},
}


def answers(served: Served) -> Iterator[tuple[str, httpx.Response]]:
    """Of the routes that have to ask a store, each once."""
    served.service.supervisor._state = replace(served.service.supervisor.state, status="running")
    for method, path in routes_of(served.service):
        if path in INDEPENDENT or not path.startswith(
            ("/api/", "/ready", "/feeds/", "/sources", "/subscriptions", "/status")
        ):
            continue
        if method == "GET" and path not in WITHOUT:
            answer = served.http.get(filled(path, "n", format="atom"))
        elif path in BODIES and method == "POST":
            answer = served.http.post(path, json=BODIES[path])
        else:
            continue
        yield f"{method} {path}", answer


def test_postgresql_stopped_and_started(server: Server, tmp_path: Path) -> None:
    store = server.create("away")
    with Running(data=tmp_path / "data", store=store) as served:
        assert served.http.get("/api/subscriptions").status_code == 200
        with server.stopped():
            said = dict(answers(served))
            assert len(said) > 12
            for what, answer in said.items():
                assert (what, answer.status_code) == (what, 503), answer.text
                assert int(answer.headers["retry-after"]) >= 1
                for place in (str(server.home), "PGSQL", "127.0.0.1", "port", "socket", "server"):
                    assert place not in answer.json()["detail"], answer.text
        assert served.http.get("/ready").status_code == 200
        assert served.http.get("/api/subscriptions").status_code == 200
        assert served.subscribe()["state"] == "active"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")
    finally:
        connection.close()


@contextmanager
def damaged(path: Path) -> Iterator[None]:
    kept = path.read_bytes()
    wal = path.with_name(f"{path.name}-wal")
    beside = wal.read_bytes()
    wal.write_bytes(b"")
    path.write_bytes(b"not a database " * 1_000)
    try:
        yield
    finally:
        path.write_bytes(kept)
        wal.write_bytes(beside)


def test_a_file_that_is_locked_or_damaged(
    running: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "BUSY_SECONDS", 0.1)
    with running() as served:
        registry = served.service.settings.data / "registry.db"
        with locked(registry):
            for path, body in BODIES.items():
                answer = served.http.post(path, json=body)
                assert (path, answer.status_code) == (path, 503), answer.text
                assert answer.headers["retry-after"] == "5"
        assert served.subscribe()["state"] == "active"
        with damaged(registry):
            answer = served.http.get("/api/subscriptions")
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5"), answer.text


def test_writers_do_not_wait_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a file that stays locked each would wait as long as all before it together."""
    from tidings.service.store import registry, tables

    monkeypatch.setattr(transactions, "BUSY_SECONDS", 0.2)
    database = Database(
        transactions.sqlite_url(tmp_path / "r.db"), tables.REGISTRY, "registry", registry.HEAD
    )
    with database.writing(), pytest.raises(StoreAway, match="busy"), database.writing():
        pass
    database.close()


def test_what_the_start_says_is_for_its_operator(tmp_path: Path) -> None:
    from tidings.service.store import registry, tables

    url = transactions.postgresql_url("postgresql://nobody@127.0.0.1:9/none")
    with pytest.raises(StoreError, match=r"127\.0\.0\.1") as raised:
        Database(url, tables.REGISTRY, "registry", registry.HEAD)
    assert not isinstance(raised.value, StoreAway)
