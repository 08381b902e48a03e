"""Which subscriptions an event would match, over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from tests.service.conftest import Running, Served
from tidings.service.model import Role

TURTLE = "<http://example.org/1> <http://purl.org/rss/1.0/title> 'Tried' ."


def test_matches_have_bindings_and_nothing_is_published(served: Served) -> None:
    plain, pattern = (
        served.subscribe("WHERE topic = 'tried'"),
        served.subscribe("SELECT ?t WHERE (?i, rss:title, ?t)"),
    )
    said = served.http.post("/api/match", json={"topic": "tried"}).json()
    assert said["matched"] == 1
    assert said["items"] == [{"subscription": plain["id"], "kind": "match", "bindings": {}, "message": None}]
    kind = {"Content-Type": "text/turtle"}
    said = served.http.post("/api/match", content=TURTLE, headers=kind).json()
    assert [(item["subscription"], item["bindings"]) for item in said["items"]] == [
        (pattern["id"], {"t": "Tried"})
    ]
    headers = {"ce-id": "1", "ce-source": "s", "Content-Type": "application/json"}
    assert (
        served.http.post("/api/match", content=b'{"topic": "tried"}', headers=headers).json()["matched"] == 1
    )
    assert served.http.get("/api/status").json()["events"] == 0
    assert served.service.log.end() == served.service.log.start()


def test_it_is_the_index_of_now(served: Served) -> None:
    assert served.http.post("/api/match", json={"topic": "of now"}).json()["matched"] == 0
    for count in (1, 2, 3):
        served.subscribe("WHERE topic = 'of now'")
        said = served.http.post("/api/match", params={"limit": 2}, json={"topic": "of now"}).json()
        assert (said["matched"], len(said["items"])) == (count, min(count, 2))


def test_only_what_the_caller_may_see(guarded: Served) -> None:
    secrets = [guarded.service.access.grant(f"match {n}", Role.SUBSCRIBER)[1] for n in range(2)]
    mine, others = ({"Authorization": f"Bearer {secret}"} for secret in secrets)
    guarded.http.post("/api/subscriptions", json={"text": "WHERE a = 'mine'"}, headers=mine)
    assert guarded.http.post("/api/match", json={"a": "mine"}, headers=mine).json()["matched"] == 1
    assert guarded.http.post("/api/match", json={"a": "mine"}, headers=others).json()["matched"] == 0


def test_what_is_no_event(served: Served) -> None:
    post = served.http.post
    assert post("/api/match", json=[{"a": 1}, {"a": 2}]).status_code == 422
    assert post("/api/match", json=[]).status_code == 422
    assert post("/api/match", json=[5]).status_code == 400
    assert post("/api/match", content=b"{", headers={"Content-Type": "application/json"}).status_code == 400
    assert post("/api/match", content=b"x", headers={"Content-Type": "text/plain"}).status_code == 415
    assert (
        post("/api/match", content=b"no turtle", headers={"Content-Type": "text/turtle"}).status_code == 400
    )
    assert post("/api/match", params={"limit": 0}, json={"a": 1}).status_code == 422


def test_slow_operators_do_not_take_all_threads(tmp_path: Path, running: Callable[..., Running]) -> None:
    gate = tmp_path / "gate"
    operators = tmp_path / "slow_operators.py"
    operators.write_text(
        "import time\nfrom pathlib import Path\nfrom tidings import Event, operator\n\n"
        f"@operator(timeout=30)\ndef slow(event: Event, word: str) -> bool:\n    while not Path({str(gate)!r}).exists():\n        time.sleep(0.01)\n    return True\n"
    )
    with running(operators=(str(operators),)) as served:
        served.subscribe("{slow(x)}")
        answers: list[int] = []

        def ask() -> None:
            answers.append(served.http.post("/api/match", json={"a": 1}, timeout=60).status_code)

        asking = [threading.Thread(target=ask) for _ in range(8)]
        for thread in asking:
            thread.start()
        while len(answers) < 4:
            assert served.http.get("/api/status").status_code == 200
        gate.touch()
        for thread in asking:
            thread.join()
        assert sorted(answers) == [200] * 4 + [503] * 4
