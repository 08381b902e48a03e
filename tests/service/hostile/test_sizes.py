"""Bodies of 100 MB, bodies that never end, bodies that trickle: refused as soon as it is known, on every route."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.conftest import Served
from tests.service.hostile.routes import filled, routes_of
from tidings.service.settings import Settings
from tidings.service.web.middleware import LARGE, SLOWEST, SMALL, BodyLimit

SIZE = 100 << 20


def exchange(served: Served, head: str, body: Iterator[bytes], seconds: float = 20.0) -> tuple[bytes, int]:
    """What is answered, and how many bytes of the body were sent until then."""
    sent = 0
    with socket.create_connection(("127.0.0.1", served.service.settings.port), timeout=seconds) as raw:
        raw.sendall(head.encode("latin-1"))
        try:
            for piece in body:
                raw.sendall(piece)
                sent += len(piece)
        except OSError:
            pass  # it has hung up
        raw.settimeout(seconds)
        came = b""
        try:
            while b"\r\n\r\n" not in came:
                piece = raw.recv(65536)
                if not piece:
                    break
                came += piece
        except ConnectionResetError:
            pass
        return came, sent


UNREAD = {
    ("POST", "/api/sources/fetch"),
    ("PUT", "/api/subscriptions/none/notifications/none/star"),
    ("POST", "/api/channels/none/test"),
    ("PUT", "/api/channels/none/subscriptions/none"),
}


def head(served: Served, method: str, path: str, *more: str) -> str:
    port = served.service.settings.port
    lines = (f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Content-Type: application/json", *more)
    return "\r\n".join(lines) + "\r\n\r\n"


@pytest.fixture(scope="module")
def changing(served: Served) -> list[tuple[str, str]]:
    return [
        (method, filled(path, "none", word="pause"))
        for method, path in routes_of(served.service)
        if method not in ("GET", "HEAD")
    ]


def test_the_length_is_enough_to_refuse(served: Served, changing: list[tuple[str, str]]) -> None:
    for method, path in changing:
        for length in (SIZE, 10**30):
            start = head(served, method, path, f"Content-Length: {length}")
            came, _ = exchange(served, start, iter(()))
            assert came.startswith((b"HTTP/1.1 413", b"HTTP/1.1 400")), (method, path, came[:200])


def test_without_a_length_it_ends_at_the_limit(served: Served, changing: list[tuple[str, str]]) -> None:
    piece = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    for method, path in changing:
        if method == "DELETE" or (method, path) in UNREAD or not path.startswith("/api/"):
            continue  # it is read by nobody, whatever comes
        limit = served.service.settings.max_body if path in LARGE else SMALL
        pieces = (piece for _ in range(SIZE // 65536))
        came, sent = exchange(served, head(served, method, path, "Transfer-Encoding: chunked"), pieces)
        assert came == b"" or came.startswith(b"HTTP/1.1 4"), (method, path, came[:200])
        assert sent < limit + (16 << 20), (method, path)  # what the system's buffers hold beyond it
    assert served.http.get("/health").status_code == 200


def test_only_events_and_files_may_be_large(served: Served, changing: list[tuple[str, str]]) -> None:
    assert {path for _, path in changing} >= LARGE
    text = "WHERE topic = '" + "😀" * 16_000 + "'"
    longest = json.dumps({"text": text})  # each written as twelve characters
    assert served.http.post(
        "/api/check", content=longest, headers={"Content-Type": "application/json"}
    ).json()["ok"]
    over = served.http.post("/api/check", json={"text": "x" * SMALL})
    assert (over.status_code, over.json()["type"]) == (413, "/problems/too-large")
    assert over.headers["connection"] == "close"


async def read_all(scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass


def test_a_body_that_trickles_is_left() -> None:
    """One byte after the other never runs into a timeout between two of them."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/api/events", "headers": []}
    guard = BodyLimit(read_all, Settings(data=Path("nowhere")), seconds=0.2)
    asyncio.run(asyncio.wait_for(guard(scope, receive, send), 10))
    assert [one["status"] for one in sent if "status" in one] == [408]
    assert SLOWEST <= 120


def test_many_who_trickle_keep_nobody_out(served: Served) -> None:
    port = served.service.settings.port
    begun = []
    try:
        for number in range(200):
            raw = socket.create_connection(("127.0.0.1", port), timeout=10)
            begun.append(raw)
            start = head(served, "POST", "/api/events", "Content-Length: 1000")
            raw.sendall((start if number % 2 else start[: -10 - number % 20]).encode())
        began = time.monotonic()
        assert served.http.get("/health").status_code == 200
        assert served.publish({"source": "quick", "id": "1"})["accepted"] == 1
        assert time.monotonic() - began < 5
    finally:
        for raw in begun:
            raw.close()


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/x-www-form-urlencoded", b"&" * (SMALL - 1)),
        ("application/x-www-form-urlencoded", b"a=1&" * (SMALL // 4 - 1)),
        ("application/x-www-form-urlencoded", b"%" * (SMALL - 1)),
        ("multipart/form-data; boundary=b", b"--b\r\n" * (SMALL // 5 - 1)),
        ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n' * 15_000),
        ("multipart/form-data; boundary=b", b"--b\r\n" + b"A: b\r\n" * 150_000),
        ("multipart/form-data; boundary=b", b"--b\r\nA: " + b"b" * 900_000),
        ("multipart/form-data; boundary=b", b"\r\n" * 500_000),
        ("multipart/form-data; boundary=" + "b" * 5_000, b"x"),
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=b; charset=none", b'--b\r\nContent-Disposition: form-data; name="a\xff"\r\n\r\nx'),
    ],
)  # fmt: skip
def test_forms_of_many_fields_hold_up_nobody(served: Served, kind: str, body: bytes) -> None:
    """They are read in the loop that answers everybody, before anybody knows who sends them."""
    slowest, done = [0.0], threading.Event()

    def others() -> None:
        with httpx.Client(base_url=served.url, timeout=20) as http:
            while not done.is_set():
                began = time.monotonic()
                http.get("/health")
                slowest[0] = max(slowest[0], time.monotonic() - began)

    watching = threading.Thread(target=others)
    watching.start()
    try:
        for path in ("/login", "/publish", "/sources/opml", "/subscriptions/new"):
            answer = served.http.post(path, content=body, headers={"Content-Type": kind})
            assert 400 <= answer.status_code < 500, (path, answer.text[:200])
    finally:
        done.set()
        watching.join()
    assert slowest[0] < 3
