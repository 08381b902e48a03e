"""Sends endless answers without the frames of the application that began them.

A listener waits for hours, and there are thousands of them. While the routes and the middleware of its request waited
with it, they took two thirds of its memory. Here they only begin the answer:

    StreamResponse   sends the head, leaves its pieces in the scope, and returns
    StreamingLayer   stands before everything else, and sends the pieces when the application has returned
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

_PIECES = "tidings.pieces"


class StreamResponse(Response):
    """An answer in pieces, for an application behind a `StreamingLayer`."""

    def __init__(
        self, pieces: AsyncGenerator[bytes, None], *, media_type: str, headers: dict[str, str]
    ) -> None:
        self._pieces = pieces
        self.status_code, self.media_type, self.background = 200, media_type, None
        self.init_headers(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        scope[_PIECES] = self._pieces


class StreamingLayer:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)
        if (pieces := scope.pop(_PIECES, None)) is not None:
            await _send_pieces(pieces, receive, send)


async def _send_pieces(pieces: AsyncGenerator[bytes, None], receive: Receive, send: Send) -> None:
    """Until they end or the client has gone, which ends the generator too."""
    sending = asyncio.current_task()
    assert sending is not None
    gone = asyncio.create_task(_until_gone(receive))

    def cancel(_: object) -> None:
        sending.cancel()

    gone.add_done_callback(cancel)
    try:
        async for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except asyncio.CancelledError:
        if not gone.done():
            raise  # the server ends
    finally:
        gone.remove_done_callback(cancel)
        gone.cancel()
        await pieces.aclose()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
