"""Calls receivers of webhooks, messages and WebSub over HTTP/1.1, on connections that stay open, to permitted addresses only.

A general client took 1.5 ms of a core for a request, most of it for what a webhook does not need: redirects, proxies,
cookies, decoding. Of an answer, only its status, its headers and a little of its body are read.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, cast
from urllib.parse import unquote

import httptools
import httpx

from tidings.feeds.addresses import AsyncGuard

_ENOUGH = 16 << 10  # bytes of an answer; a longer one ends its connection
_KEPT = 400  # connections that wait for the next request
_KEPT_SECONDS = 30.0


class Answer(NamedTuple):
    """The names of headers are in lower case. The body is cut off after 16 KiB."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes = b""


class _Target(NamedTuple):
    host: str
    port: int
    is_secure: bool
    head: str  # of a request after its method, as far as the address decides it


class Receivers:
    """The connections to all receivers, in one event loop."""

    def __init__(self, guard: AsyncGuard) -> None:
        self._guard = guard
        self._context: ssl.SSLContext | None = None
        self._waiting: defaultdict[tuple[str, int, bool], list[_Connection]] = defaultdict(list)
        self._count = 0

    async def request(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Sends a body and returns the answer. OSError, AddressRefused or httpx.InvalidURL if there is none; the caller
        sets the timeout. A request that an old connection did not answer because it was closed is sent once more."""
        target = _target(url)
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        request = f"{method} {target.head}{lines}Content-Length: {len(body)}\r\n\r\n".encode("ascii") + body
        return await self._call(target, request)

    async def get(self, url: str, headers: Mapping[str, str]) -> Answer:
        """The same for a GET."""
        target = _parsed(url)  # which is asked for once
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return await self._call(target, f"GET {target.head}{lines}\r\n".encode("ascii"))

    async def _call(self, target: _Target, request: bytes) -> Answer:
        connection = self._take(target)
        if connection is not None:
            try:
                return await self._ask(target, connection, request)
            except _Closed:
                pass
        context = None
        if target.is_secure:
            self._context = self._context or httpx.create_ssl_context()
            context = self._context
        connection = await self._guard.connect(_Connection, target.host, target.port, context)
        return await self._ask(target, connection, request)

    def close(self) -> None:
        for connections in self._waiting.values():
            for connection in connections:
                connection.close()
        self._waiting.clear()

    async def _ask(self, target: _Target, connection: _Connection, request: bytes) -> Answer:
        try:
            answer = await connection.ask(request)
        except BaseException:  # also if the caller gave it up: its answer may come yet
            connection.close()
            raise
        if connection.is_reusable and self._count < _KEPT:
            self._count += 1
            self._waiting[target[:3]].append(connection)
            connection.close_after(_KEPT_SECONDS)
        else:
            connection.close()
        return answer

    def _take(self, target: _Target) -> _Connection | None:
        """The connection that was used last, if one is still open."""
        connections = self._waiting.get(target[:3])
        while connections:
            connection = connections.pop()
            self._count -= 1
            if not connections:
                del self._waiting[target[:3]]
            if connection.is_open:
                return connection
        return None


class _Closed(ConnectionError):
    """The connection was closed before anything of the answer had come."""


class _Connection(asyncio.Protocol):
    """One connection, one request at a time. Methods named on_… are called by the parser."""

    def __init__(self) -> None:
        self.is_open, self.is_reusable = True, False
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._expiry: asyncio.TimerHandle | None = None

    def ask(self, request: bytes) -> asyncio.Future[Answer]:
        assert self._transport is not None
        if self._expiry is not None:
            self._expiry.cancel()
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._reason, self._came, self.is_reusable = "", 0, False
        self._body = bytearray()
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._answer

    def close(self) -> None:
        self.is_open = False
        if self._expiry is not None:
            self._expiry.cancel()
        if self._transport is not None:
            self._transport.abort()

    def close_after(self, seconds: float) -> None:
        self._expiry = asyncio.get_running_loop().call_later(seconds, self.close)

    # --- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # which uvloop's are, without saying so

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():  # no request is open
            self.close()
            return
        self._came += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ConnectionError(f"the answer is no HTTP: {error}"))
        if self._came > _ENOUGH:
            self._finish("the head of the answer is too long")

    def eof_received(self) -> bool:
        return False  # closes it

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if self._answer is not None and not self._answer.done():
            if not self._came:
                self._fail(_Closed("it closed the connection without an answer"))
            self._finish("it closed the connection in the midst of its answer")

    def _finish(self, problem: str) -> None:
        """The answer, if its head has come: its body decides nothing."""
        if self._parser.get_status_code() >= 200 and self._is_whole_head:
            self._set()
        else:
            self._fail(ConnectionError(problem))

    def _set(self) -> None:
        if self._answer is not None and not self._answer.done():
            answer = Answer(
                self._parser.get_status_code(), self._reason, self._headers, bytes(self._body[:_ENOUGH])
            )
            self._answer.set_result(answer)

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    # --- called by the parser

    def on_message_begin(self) -> None:
        self._headers, self._reason, self._is_whole_head = {}, "", False
        self._body.clear()

    def on_status(self, text: bytes) -> None:
        self._reason += text.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._is_whole_head = True

    def on_body(self, data: bytes) -> None:
        self._body += data

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() >= 200:  # before it, there may be others that only say to wait
            self.is_reusable = self._parser.should_keep_alive()
            self._set()


def _parsed(url: str) -> _Target:
    parsed = httpx.URL(url)
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise httpx.InvalidURL(f"{url[:200]!r} does not start with http:// or https:// and a host")
    is_secure = parsed.scheme == "https"
    host = parsed.raw_host.decode("ascii")
    head = f"{parsed.raw_path.decode('ascii')} HTTP/1.1\r\nHost: {parsed.netloc.decode('ascii')}\r\n"
    if parsed.userinfo:
        given = base64.b64encode(unquote(parsed.userinfo.decode("ascii")).encode()).decode("ascii")
        head += f"Authorization: Basic {given}\r\n"
    return _Target(host, parsed.port or (443 if is_secure else 80), is_secure, head)


_target = lru_cache(maxsize=10_000)(_parsed)
