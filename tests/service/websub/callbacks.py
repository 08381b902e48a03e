"""A subscriber's server on loopback: it records what a hub asks and posts, and answers as it is told."""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit


class Asked(NamedTuple):
    path: str
    query: dict[str, list[str]]
    raw: str  # the query


class Posted(NamedTuple):
    path: str  # with its query
    headers: dict[str, str]  # names in lower case
    body: bytes


def echo(asked: Asked) -> tuple[int, bytes]:
    return 200, asked.query.get("hub.challenge", [""])[0].encode()


class Callbacks:
    """`answer` is what a verification is answered with, `accept` the status for a pushed feed."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.posted: list[Posted] = []
        self.answer: Callable[[Asked], tuple[int, bytes]] = echo
        self.accept: Callable[[Posted], int] = lambda posted: 204
        self.headers: dict[str, str] = {}
        callbacks = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                asked = Asked(parts.path, parse_qs(parts.query), parts.query)
                callbacks.asked.append(asked)
                self._answer(*callbacks.answer(asked))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                posted = Posted(self.path, headers, body)
                callbacks.posted.append(posted)
                status = callbacks.accept(posted)
                self._answer(status, b"" if status == 204 else b"to be ignored: 500 gone")

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                for name, value in {**callbacks.headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    def asked_at(self, path: str) -> list[Asked]:
        return [asked for asked in list(self.asked) if asked.path == path]

    def posted_to(self, path: str) -> list[Posted]:
        return [posted for posted in list(self.posted) if posted.path == path]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@contextmanager
def callbacks_server() -> Iterator[Callbacks]:
    callbacks = Callbacks()
    try:
        yield callbacks
    finally:
        callbacks.close()


def until(true: Callable[[], object], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.005)


def signature(method: str, secret: str, body: bytes) -> str:
    return f"{method}={hmac.new(secret.encode(), body, method).hexdigest()}"
