"""Servers on loopback that take messages by the rules of ntfy and of Matrix, and answer as those do."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tidings.feeds.addresses import AsyncGuard
from tidings.service.delivery.channels.transports.chat_requests import ChatServers
from tidings.service.delivery.receivers import Receivers

Answer = tuple[int, str, dict[str, str]]  # status, body, headers


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    content: Any


@dataclass
class ChatServer:
    answer: Callable[[Request], Answer | bytes | None]  # bytes: as they are; None: nothing
    url: str = ""
    requests: list[Request] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
                first, *lines = head.rstrip().split("\r\n")
                headers = {name.lower(): value for name, value in (text.split(": ", 1) for text in lines)}
                body = await reader.readexactly(int(headers["content-length"]))
                method, path, _ = first.split(" ")
                self.requests.append(Request(method, path, headers, json.loads(body)))
                answer = self.answer(self.requests[-1])
                if answer is None:
                    await reader.read()
                    return
                if isinstance(answer, bytes):
                    writer.write(answer)
                    return
                status, text, more = answer
                beside = "".join(f"{name}: {value}\r\n" for name, value in more.items())
                data = text.encode()
                writer.write(
                    f"HTTP/1.1 {status} So\r\nContent-Length: {len(data)}\r\n{beside}\r\n".encode() + data
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def chat(
    answer: Callable[[Request], Answer | bytes | None],
) -> AsyncIterator[tuple[ChatServer, ChatServers]]:
    found = ChatServer(answer)
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    allowed = ("127.0.0.0/8",)
    servers = ChatServers(Receivers(AsyncGuard(allowed)), allowed, timeout=0.5)
    try:
        yield found, servers
    finally:
        servers.close()
        server.close()
        await asyncio.sleep(0.01)


def ntfy(request: Request) -> Answer:
    """As ntfy takes messages that are published as JSON (docs.ntfy.sh/publish): posted to the root, with these fields."""

    def no(status: int, error: str) -> Answer:
        return status, json.dumps({"code": status * 100, "http": status, "error": error}), {}

    sent = request.content
    if (request.method, request.path) != ("POST", "/"):
        return no(404, "page not found")
    if not set(sent) <= {"topic", "message", "title", "tags", "priority", "click"}:
        return no(400, "invalid request: unknown field")
    if not re.fullmatch(r"[-_A-Za-z0-9]{1,64}", sent["topic"]):
        return no(400, "invalid topic")
    if sent["topic"] == "protected" and request.headers.get("authorization") != "Bearer tk_right":
        return no(403, "forbidden")
    if not isinstance(sent["message"], str) or not 0 < len(sent["message"].encode()) <= 4096:
        return no(400, "invalid message: it would be an attachment")
    if sent["priority"] not in range(1, 6) or not all(isinstance(tag, str) for tag in sent["tags"]):
        return no(400, "invalid priority or tags")
    if "click" in sent and not sent["click"].startswith(("https://", "http://")):
        return no(400, "invalid click")
    return 200, json.dumps({"id": "x", "event": "message", "topic": sent["topic"]}), {}


_PATH = re.compile(r"/_matrix/client/v3/rooms/%21[A-Za-z0-9._~%-]+/send/m\.room\.message/[A-Za-z0-9_-]+")


def matrix(request: Request) -> Answer:
    """As a homeserver takes a message into a room that the account has joined."""

    def no(status: int, code: str, error: str, **more: int) -> Answer:
        return status, json.dumps({"errcode": code, "error": error, **more}), {}

    if request.headers.get("authorization") != "Bearer syt_right":
        return no(401, "M_UNKNOWN_TOKEN", "Unknown access token")
    if request.method != "PUT" or not _PATH.fullmatch(request.path):
        return no(404, "M_UNRECOGNIZED", "Unrecognized request")
    if "%21secret" in request.path:
        return no(403, "M_FORBIDDEN", "User is not in the room")
    if "%21absent" in request.path:
        return no(404, "M_NOT_FOUND", "Unknown room")
    if "%21busy" in request.path:
        return no(429, "M_LIMIT_EXCEEDED", "Too many requests", retry_after_ms=2500)
    if request.content["msgtype"] != "m.notice" or not isinstance(request.content["body"], str):
        return no(400, "M_BAD_JSON", "no body")
    if len(json.dumps(request.content, ensure_ascii=False).encode()) > 60_000:
        return no(413, "M_TOO_LARGE", "event too large")
    return 200, json.dumps({"event_id": "$" + request.path.rpartition("/")[2]}), {}
