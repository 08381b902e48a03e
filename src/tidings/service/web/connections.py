"""Bounds what one connection may take: time, memory, and one of a limited number.

uvicorn limits only how long a connection may rest between two requests. Here a connection is closed that does not send a
whole head or a whole request in time, whose heads, chunk framing or queue of requests grow without end, or whose client
stops reading. One beyond the limit of connections is answered with 503 and closed at once, so that open files are left
for the stores.

    opened ──► head ──► body ──► answer ──► resting ──► head …
           HEAD_SECONDS  BODY_SECONDS        keep-alive, by uvicorn
"""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidings.service.open_files import max_connections
from tidings.service.web.middleware import SLOWEST

HEAD_SECONDS = 20.0  # from the first byte of a request, or the opening of the connection
BODY_SECONDS = SLOWEST + 10.0  # later than the answer 408 of those that are read
WRITE_SECONDS = 60.0  # in which a client reads nothing of what waits for it
MAX_HEAD = 64 << 10  # bytes of a request line with its headers
_FRAMING = 8  # bytes beside the content for each byte of content, in a body sent in chunks
_TICK = 0.002  # seconds: timers are not more exact
_SHORT = 4 << 10  # bytes
_PIPELINED = 32  # requests that wait for the answer to the one before


def _refusal(status: str, detail: str, *headers: str) -> bytes:
    """An answer to what never becomes a request of the application."""
    head = (f"HTTP/1.1 {status}", *headers, "Connection: close", "Content-Type: text/plain")
    return "\r\n".join((*head, f"Content-Length: {len(detail)}", "", detail)).encode()


_FULL = _refusal(
    "503 Service Unavailable", "too many connections are open; try again in a few seconds", "Retry-After: 5"
)
_HEAD_TOO_LARGE = _refusal(
    "431 Request Header Fields Too Large", f"the headers have more than {MAX_HEAD:,} bytes; send fewer"
)


class _JoinedWrites:
    """A transport that sends a short piece together with the next one that is written in the same turn of the event
    loop. uvicorn writes head and body of an answer one after the other: so they are one call of the system, and wake
    the reader once."""

    __slots__ = ("_held", "_loop", "_transport", "get_extra_info", "is_closing")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop, self._held = transport, loop, b""
        self.is_closing, self.get_extra_info = transport.is_closing, transport.get_extra_info

    def write(self, data: bytes) -> None:
        if self._held:
            held, self._held = self._held, b""
            self._transport.write(held + data)
        elif len(data) <= _SHORT:
            self._held = data
            self._loop.call_soon(self._send)
        else:
            self._transport.write(data)

    def forget(self) -> None:
        """Nobody reads any more."""
        self._held = b""

    def close(self) -> None:
        self._send()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _send(self) -> None:
        if self._held:
            held, self._held = self._held, b""
            self._transport.write(held)


class BoundedProtocol(HttpToolsProtocol):
    """One connection. A request that has not come whole is waited for until `_until`; the timer that looks after it
    outlives the request, because setting one for each takes longer."""

    _until: float | None = None
    _timer: asyncio.TimerHandle | None = None
    _writing: asyncio.TimerHandle | None = None
    _in_head = True
    _came = _content = 0  # bytes of the request, and those of its body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._writes = _JoinedWrites(transport, self.loop)
        super().connection_made(self._writes)  # type: ignore[arg-type]
        if len(self.connections) > max_connections():
            self.transport.write(_FULL)
            self.transport.close()
            return
        self._wait(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._writes.forget()
        self._end_wait()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.resume_writing()
        self.pipeline.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._until is None:
            self._wait(HEAD_SECONDS)
        self._came += len(data)
        super().data_received(data)
        framing = self._came - self._content
        if framing > MAX_HEAD + (0 if self._in_head else _FRAMING * self._content):
            if self._in_head and not self.pipeline:
                self.transport.write(_HEAD_TOO_LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        self._came = self._content = 0
        self._in_head = True
        if self._until is None:  # it follows another in one piece
            self._wait(HEAD_SECONDS)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= _PIPELINED:
            raise ValueError("too many requests wait")  # the parser ends the connection
        self._in_head = False
        self._wait(BODY_SECONDS)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._content += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._end_wait()
        self._came = self._content = 0
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._writing is None:
            self._writing = self.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        super().resume_writing()

    def _wait(self, seconds: float) -> None:
        self._until = self.loop.time() + seconds
        if self._timer is None or self._timer.when() > self._until:
            self._look_at(self._until)

    def _end_wait(self) -> None:
        self._until = None

    def _look_at(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(at, self._look)

    def _look(self) -> None:
        """Closes a connection whose request is late; waits on for one that is not."""
        self._timer = None
        if self._until is None:
            return
        if self._until - self.loop.time() < _TICK:
            self.transport.close()
        else:
            self._look_at(self._until)


def configuration(app: ASGIApp, *, graceful_seconds: int, log_level: str | None = None) -> uvicorn.Config:
    """How uvicorn serves the application."""
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",  # there are none; a request for one is a plain request
        log_config=None,
        log_level=log_level,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=graceful_seconds,
        timeout_keep_alive=30,
        lifespan="on",
    )
