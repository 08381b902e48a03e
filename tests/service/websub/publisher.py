"""A publisher with a hub on loopback: it serves feeds, takes requests, and verifies and pushes when a test says so."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qsl

import httpx

from tests.service.websub.callbacks import signature, until


class Request(NamedTuple):
    path: str
    content_type: str
    form: dict[str, str]

    @property
    def callback(self) -> str:
        return self.form["hub.callback"]


def rss(*names: str) -> bytes:
    items = "".join(f"<item><guid>{name}</guid><title>{name}</title></item>" for name in names)
    return f"<rss version='2.0'><channel><title>C</title>{items}</channel></rss>".encode()


class Publisher:
    def __init__(self) -> None:
        self.feeds: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.gets: list[str] = []
        self.requests: list[Request] = []
        self.answers: dict[str, tuple[int, dict[str, str]]] = {}  # of hubs, by path
        self.http = httpx.Client(timeout=10, verify=False)
        publisher = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                publisher.gets.append(self.path)
                self._answer(*publisher.feeds.get(self.path, (404, {}, b"")))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                form = dict(parse_qsl(body.decode("utf-8", "strict"), strict_parsing=True))
                publisher.requests.append(Request(self.path, self.headers["Content-Type"], form))
                self._answer(*publisher.answers.get(self.path, (202, {})), b"")

            def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
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

    def serve(
        self, path: str, *names: str, topic: str | None = None, hubs: tuple[str, ...] = ("/hub",)
    ) -> str:
        """Serves a feed with Link headers; its address."""
        links = [f'<{self.url(hub)}>; rel="hub"' for hub in hubs]
        links.append(f'<{self.url(topic or path)}>; rel="self"')
        self.feeds[path] = 200, {"Link": ", ".join(links)}, rss(*names)
        return self.url(path)

    def request(self, number: int = 0) -> Request:
        """One of the requests to the hub, when it has come."""
        until(lambda: len(self.requests) > number)
        return self.requests[number]

    def verify(self, request: Request, **changed: str) -> httpx.Response:
        """Asks the callback whether it wants this."""
        given = {"mode": request.form["hub.mode"], "topic": request.form["hub.topic"], "challenge": "c-123"}
        if given["mode"] == "subscribe":
            given["lease_seconds"] = request.form["hub.lease_seconds"]
        query = {f"hub.{name}": value for name, value in {**given, **changed}.items() if value}
        return self.http.get(request.callback, params=query)

    def push(
        self, request: Request, body: bytes, method: str | None = "sha256", **headers: str
    ) -> httpx.Response:
        """Posts a feed to the callback, signed."""
        if method is not None:
            headers.setdefault("X-Hub-Signature", signature(method, request.form["hub.secret"], body))
        return self.http.post(
            request.callback, content=body, headers={"Content-Type": "application/rss+xml", **headers}
        )

    def close(self) -> None:
        self.http.close()
        self.server.shutdown()
        self.server.server_close()


@contextmanager
def publishing() -> Iterator[Publisher]:
    publisher = Publisher()
    try:
        yield publisher
    finally:
        publisher.close()
