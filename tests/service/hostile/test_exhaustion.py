"""Questions, documents and connections that would take all there is: each ends in its time, and costs nobody else's."""

from __future__ import annotations

import gzip
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.service.conftest import Served
from tidings.feeds import http as feeds_http
from tidings.feeds.addresses import guarded_client
from tidings.model.event import Event
from tidings.service.delivery.markup import plain_text, safe_html
from tidings.service.model import Role
from tidings.service.subscriptions import access_control as access_module
from tidings.service.subscriptions.completion import Completer
from tidings.service.telemetry.logs import without_secrets

MOST = 64 << 10


def seconds_of(call: Any, *arguments: Any) -> float:
    """Of the processor, not of the clock: the machine may be busy with other things."""
    began = time.thread_time()
    call(*arguments)
    return time.thread_time() - began


QUESTIONS = {
    "parentheses": "WHERE " + "(" * 30_000 + "a = 1" + ")" * 30_000,
    "negations": "WHERE " + "NOT " * 16_000 + "a = 1",
    "classes": "WHERE (?a, ?b, ?c)" + " AND ?a ISA rss:item" * 3_000,
    "10,000 classes": ("WHERE (?a, ?b, ?c)" + " AND ?a ISA rss:x" * 10_000),
    "alternatives": "WHERE " + " AND ".join(f"(a{n} = 1 OR b{n} = 2)" for n in range(2_500)),
    "alternatives of patterns": "WHERE "
    + " AND ".join(f"((?x, rss:p{n}, ?y) OR (?x, rss:q{n}, ?y))" for n in range(1_000)),
    "a regex": "WHERE a MATCHES '" + "(a+)+" * 5_000 + "$'",
    "repetitions": "WHERE a MATCHES '" + "(" * 5 + "a{1,100}" + "){1,100}" * 5 + "'",
    "many regexes": "WHERE " + " AND ".join(["a MATCHES '(x{1,900})'"] * 2_000),
    "wildcards": "WHERE a LIKE '" + "%a" * 30_000 + "'",
    "values": "WHERE a IN (" + ",".join(map(str, range(11_000))) + ")",
    "triples": "WHERE " + ", ".join(f"(?a{n}, rss:p, ?a{n + 1})" for n in range(2_500)),
    "any in any": "WHERE " + "ANY x IN y SATISFIES (" * 2_500 + "a = 1" + ")" * 2_500,
    "a number": "WHERE a = " + "9" * 60_000,
    "a name": "WHERE " + "a" * 60_000 + " = 1",
    "quotes": "WHERE a = " + "'" * 60_001,
    "blanks": "WHERE" + " " * 60_000 + "a = 1",
    "comments": "#" * 60_000,
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_of_64_kb_is_checked_soon(served: Served, name: str) -> None:
    text = QUESTIONS[name][:MOST]
    assert seconds_of(served.service.preview.check, text) < 8
    answer = served.http.post("/api/check", json={"text": text})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "text",
    ["(a," + " " * 3_990, "(" * 4_000, "a" * 4_000, "a IN (" * 600, "'" * 3_999, "( " * 2_000, "VIA x AT '" * 390,
     "(a, b, '" * 480, "ISA " * 1_000, " " * 4_000, "a = " * 990 + "'", "\u202e" * 4_000, "?" * 4_000],
)  # fmt: skip
def test_completion_takes_a_moment(served: Served, text: str) -> None:
    completer: Completer = served.service.completer
    assert seconds_of(completer.complete, text, len(text)) < 1
    assert served.http.get("/api/complete", params={"text": text[:4_000]}).status_code == 200
    assert served.http.get("/api/complete", params={"text": text + "x" * 4_000}).status_code == 422


@pytest.mark.parametrize(
    "where",
    [
        "(?a, ?b, ?c), (?d, ?e, ?f), (?g, ?h, ?i) AND ?a = 'x'",
        "(?a, ?b, ?c), (?d, ?e, ?f) AND ?a ISA rss:item AND ?d = 'none'",
        "(?a, ?b, ?c), (?a, ?d, 'none')",
        "(?a, <urn:p>, ?b), (?b, <urn:p>, ?c), (?c, <urn:p>, ?a)",
        pytest.param(
            ", ".join(f"(?a{n}, <urn:p>, ?a{n * 7 % 20})" for n in range(20)), marks=pytest.mark.slow
        ),
    ],
)
def test_a_reason_over_a_large_graph_is_found_soon(served: Served, where: str) -> None:
    graph = "".join(f"<urn:s{n}> <urn:p> <urn:s{n * 31 % 1_999}> .\n" for n in range(2_000))
    event = Event.from_rdf(graph.encode(), "text/turtle")
    assert seconds_of(served.service.preview.explain, f"WHERE {where}", event) < 6


def test_a_trial_ends_in_time_whatever_is_tried(served: Served) -> None:
    served.publish(*[{"source": "long", "id": str(n), "a": "a" * 5_000} for n in range(300)])
    for text in ("WHERE a MATCHES '" + "(a+)+" * 500 + "$b'", "WHERE a LIKE '" + "%a" * 2_000 + "b'"):
        answer = served.http.post("/api/try", json={"text": text}).json()
        assert answer["looked"] <= 1_000
        assert answer["looked"] == 300 or answer["late"]


def test_lists_of_addresses_with_blanks(served: Served) -> None:
    outlines = "".join(f"<outline xmlUrl='http://{'a' * 3_900}{n} b'/>" for n in range(1_000))
    body = f"<opml version='2.0'><body>{outlines}</body></opml>".encode()
    began = time.monotonic()
    answer = served.http.post("/api/sources/opml", content=body, headers={"Content-Type": "text/x-opml"})
    assert (answer.json()["added"], len(answer.json()["refused"])) == (0, 1_000)
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    "line",
    ["a" * 64_000, "://" * 20_000, "token=" * 10_000, "tid_" * 16_000, "a:" * 30_000, "/feeds/" * 9_000],
)
def test_a_line_of_the_log_is_written_soon(line: str) -> None:
    assert seconds_of(without_secrets, line) < 1


@pytest.mark.parametrize(
    "html", ["<div>" * 20_000, "<" * 100_000, "&" * 100_000, "<a href='" * 10_000, "<!--" * 25_000]
)
def test_html_is_made_safe_soon(html: str) -> None:
    assert seconds_of(safe_html, html) < 2
    assert seconds_of(plain_text, html) < 2


def bearer(served: Served, name: str, role: Role, **limits: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {served.service.access.grant(name, role, **limits)[1]}"}


@pytest.fixture
def few_streams(guarded: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_module, "STREAMS_OF_ONE", 3)
    monkeypatch.setattr(guarded.service.access, "max_streams", 6)


@pytest.mark.usefixtures("few_streams")
def test_one_token_does_not_take_all_streams(guarded: Served) -> None:
    one, two, three = (bearer(guarded, name, Role.SUBSCRIBER) for name in ("one", "two", "three"))

    def opened(stack: ExitStack, headers: dict[str, str]) -> int:
        answer = stack.enter_context(guarded.http.stream("GET", "/api/stream", headers=headers))
        if answer.status_code == 200:
            pieces = answer.iter_raw()
            next(pieces)  # it has begun
            stack.callback(pieces.close)
        else:
            assert answer.headers["retry-after"]
        return answer.status_code

    with ExitStack() as stack:
        assert [opened(stack, one) for _ in range(5)] == [200, 200, 200, 429, 429]
        assert [opened(stack, two) for _ in range(4)] == [200, 200, 200, 429]
        assert opened(stack, three) == 429  # all that there are
    deadline = time.monotonic() + 10
    while True:  # who hangs up gives theirs back
        with ExitStack() as stack:
            if opened(stack, three) == 200:
                break
        assert time.monotonic() < deadline


def test_a_stream_ends_with_its_token(guarded: Served) -> None:
    access = guarded.service.access
    token, secret = access.grant("short", Role.SUBSCRIBER)
    mine = {"Authorization": f"Bearer {secret}"}
    publisher = bearer(guarded, "publisher", Role.PUBLISHER)
    http = guarded.http
    made = http.post("/api/subscriptions", json={"text": "WHERE topic = 'stream'"}, headers=mine).json()

    def publish(id: str) -> None:
        event = {"source": "s", "id": id, "topic": "stream"}
        assert http.post("/api/events", json=event, headers=publisher).status_code == 202

    with http.stream("GET", f"/api/subscriptions/{made['id']}/stream", headers=mine) as answer:
        pieces: Iterator[str] = answer.iter_text()
        assert "retry" in next(pieces)
        publish("before")
        assert "before" in next(piece for piece in pieces if "data:" in piece)
        assert access.end(token.id)
        publish("after")
        assert "data:" not in "".join(pieces)  # it ends, and nothing more is told


def test_junk_is_counted_too(guarded: Served) -> None:
    """Who sends what cannot be read has the service read it all the same."""
    for number, (kind, body) in enumerate(
        (
            ("application/json", b"{"),
            ("application/json", b"[1,2,3]"),
            ("application/x-ndjson", b"1\n2\n"),
            ("text/none", b"x"),
        )
    ):
        slow = bearer(guarded, f"slow {number}", Role.PUBLISHER, events_per_second=1)
        quick = bearer(guarded, f"quick {number}", Role.PUBLISHER)
        answers = [
            guarded.http.post("/api/events", content=body, headers={**slow, "Content-Type": kind})
            for _ in range(6)
        ]
        assert answers[0].status_code in (400, 415)
        assert answers[-1].status_code == 429
        assert int(answers[-1].headers["retry-after"]) >= 1
        good = guarded.http.post("/api/events", json={"source": "good", "n": number}, headers=quick)
        assert good.status_code == 202  # it is the other's, and nobody else's


def test_what_is_followed_unpacks_within_bounds_and_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bomb in gzip, a body that trickles, headers that trickle."""
    monkeypatch.setattr(feeds_http, "MAX_SECONDS", 0.5)
    listener = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()
    bomb = gzip.compress(b"\0" * 50_000_000)

    def trickle(raw: socket.socket, first: bytes) -> None:
        try:
            raw.sendall(first)
            while not stop.wait(0.05):
                raw.sendall(b"x")
        except OSError:
            pass

    def answer() -> None:
        while not stop.is_set():
            try:
                raw, _ = listener.accept()
            except OSError:
                return
            path = raw.recv(65536).split()[1]
            if path == b"/bomb":
                raw.sendall(
                    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
                    + bomb
                )
            elif path == b"/body":
                trickle(raw, b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            else:
                trickle(raw, b"HTTP/1.1 200 OK\r\nX-Long: ")
            raw.close()

    threading.Thread(target=answer, daemon=True).start()
    try:
        with guarded_client(("127.0.0.0/8",)) as client:
            for path, why in (
                ("bomb", "more than"),
                ("body", "longer than|too long|timed out"),
                ("head", "too long|timed out"),
            ):
                began = time.monotonic()
                url = f"http://127.0.0.1:{listener.getsockname()[1]}/{path}"
                got = feeds_http.get(client, url, None, None, 1_000_000)
                assert got.status == "error"
                assert re.search(why, got.error or ""), got.error
                assert time.monotonic() - began < 10
    finally:
        stop.set()
        listener.close()
