"""Connections that never become a request, or never end: closed after a time, and never so many that a store has no file
left."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.service.conftest import Running, Served
from tidings.service import open_files
from tidings.service.web import connections


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service whose patience is short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "HEAD_SECONDS", 0.3)
        patch.setattr(connections, "BODY_SECONDS", 0.4)
        patch.setattr(connections, "WRITE_SECONDS", 0.3)
        with Running(data=tmp_path_factory.mktemp("hasty")) as served:
            yield served


def opened(served: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", served.service.settings.port), timeout=5)


def until_closed(raw: socket.socket, seconds: float = 5.0) -> bytes:
    """What comes until the other side hangs up."""
    came, deadline = b"", time.monotonic() + seconds
    raw.settimeout(0.05)
    while True:
        try:
            if not (piece := raw.recv(65536)):
                return came
            came += piece
        except TimeoutError:
            assert time.monotonic() < deadline, "it is still open"
        except ConnectionError:
            return came


HOST = b"Host: 127.0.0.1\r\n"
HALF = {
    "nothing": b"",
    "half a line": b"GET /hea",
    "half a head": b"GET /health HTTP/1.1\r\n" + HOST,
    "half a body": b"POST /api/events HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
    "half a chunk": b"POST /api/events HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
    "a body nobody reads": b"GET /health HTTP/1.1\r\n" + HOST + b"Content-Length: 1000\r\n\r\n",
    "half a second request": b"GET /health HTTP/1.1\r\n" + HOST + b"\r\nGET /health HT",
    "an upgrade": b"GET /health HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\nxxx",
}  # fmt: skip


def test_half_a_request_is_not_waited_for_without_end(hasty: Served) -> None:
    """Each as it is, and with a byte more now and then."""
    with ExitStack() as stack:
        still: dict[str, socket.socket] = {}
        for name, begin in HALF.items():
            for more in (" that trickles", "") if name != "an upgrade" else (" that trickles",):
                raw = still[name + more] = stack.enter_context(opened(hasty))
                raw.sendall(begin)
        deadline = time.monotonic() + 5
        while still:
            assert time.monotonic() < deadline, f"still open: {', '.join(still)}"
            time.sleep(0.05)
            for name, raw in list(still.items()):
                raw.settimeout(0.001)
                try:
                    if name.endswith("trickles"):
                        raw.sendall(b"x")
                    if not raw.recv(65536):
                        del still[name]
                except TimeoutError:
                    pass
                except ConnectionError:
                    del still[name]


def test_whole_requests_are_left_alone(hasty: Served) -> None:
    """A connection may rest between two requests, and a request may come in pieces that take a moment."""
    with opened(hasty) as raw:
        for _ in range(2):
            for piece in (b"GET /health HT", b"TP/1.1\r\n" + HOST, b"\r\n"):
                raw.sendall(piece)
                time.sleep(0.02)
            assert raw.recv(65536).startswith(b"HTTP/1.1 200")
            time.sleep(0.35)  # more than a head may take
    hasty.subscribe("WHERE topic = 'late'")
    with hasty.http.stream("GET", "/api/stream") as stream:  # an answer may take its time
        pieces = stream.iter_raw()
        next(pieces)
        time.sleep(0.5)
        hasty.publish({"source": "late", "id": "1", "topic": "late"})
        assert b"late" in next(piece for piece in pieces if b"data:" in piece)


@pytest.mark.parametrize(
    "piece",
    [b"X-Long: " + b"a" * 60_000, b"GET /" + b"a" * 60_000, b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 10_000],
)
def test_a_head_has_an_end(hasty: Served, piece: bytes) -> None:
    start = b"" if piece.startswith(b"GET") else b"GET / HTTP/1.1\r\n"
    with opened(hasty) as raw:
        raw.sendall(start + piece)
        sent = 0
        try:
            while sent < 20 << 20:
                raw.sendall(piece[-60_000:])
                sent += 60_000
        except OSError:
            pass
    assert sent < 16 << 20  # what the system's buffers take


def test_framing_and_pipelines_have_an_end(hasty: Served) -> None:
    start = b"POST /api/events HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    for body in (
        b"0\r\n" + b"Trailer: x\r\n" * 20_000,
        b"1;" + b"x" * 200_000,
        b"1\r\na\r\n" + b"1;" + b"x" * 200_000,
    ):
        with opened(hasty) as raw:
            try:
                for first in range(0, len(start + body), 10_000):
                    raw.sendall((start + body)[first : first + 10_000])
            except OSError:
                pass
            until_closed(raw)
    with opened(hasty) as raw:
        raw.sendall((b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n") * 500)
        assert until_closed(raw).count(b"HTTP/1.1 200") < 100


def test_who_does_not_read_is_left(hasty: Served) -> None:
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_024)
        raw.connect(("127.0.0.1", hasty.service.settings.port))
        raw.settimeout(0.1)
        try:
            while True:
                raw.sendall((b"GET /openapi.json HTTP/1.1\r\n" + HOST + b"\r\n") * 25)
                time.sleep(0.02)
        except OSError:
            pass  # nothing more is taken
        time.sleep(0.4)
        until_closed(raw)


def test_more_connections_than_there_are_files_for(hasty: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 20.0)
    monkeypatch.setattr(connections, "max_connections", lambda: 20)
    with ExitStack() as stack:
        held = [stack.enter_context(opened(hasty)) for _ in range(25)]
        assert sum(map(_is_refused, held)) in (5, 6)  # the client may hold one, too
    monkeypatch.setattr(connections, "max_connections", lambda: 1_000)
    assert hasty.http.get("/health").status_code == 200


def _is_refused(raw: socket.socket) -> bool:
    raw.settimeout(0.02)
    try:
        return raw.recv(100).startswith(b"HTTP/1.1 503")
    except TimeoutError:
        return False


def test_the_limit_of_open_files_is_raised_and_shared_out() -> None:
    script = (
        "import resource; from tidings.service import open_files as o\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, min(hard, 4096)))\n"
        "print(o.max_connections()); o.raise_limit()\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], o.max_connections(), o.max_streams())"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["64", "4096", "3584", "2688"]
    assert (
        open_files.max_streams()
        < open_files.max_connections()
        < resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    )
