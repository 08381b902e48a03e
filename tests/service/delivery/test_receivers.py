"""Posts to receivers that answer in every way that HTTP/1.1 allows, and in ways that it does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import uvloop

from tidings.feeds.addresses import AsyncGuard
from tidings.service.delivery.receivers import Answer, Receivers

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass
class Peer:
    """Sends one of `answers` for each request, and closes the connection after those in `closing`."""

    answers: list[bytes]
    closing: tuple[int, ...] = ()
    connections: int = 0
    heads: list[str] = field(default_factory=list)
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while len(self.heads) < len(self.answers):
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                await reader.readexactly(int(head.partition("Content-Length: ")[2].split()[0]))
                writer.write(self.answers[len(self.heads)])
                self.heads.append(head)
                if len(self.heads) - 1 in self.closing:
                    break
                await writer.drain()
            else:
                await reader.read()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(*answers: bytes, closing: tuple[int, ...] = ()) -> AsyncIterator[tuple[Peer, Receivers]]:
    peer = Peer(list(answers), closing)
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
    peer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook?a=b%20c"
    receivers = Receivers(AsyncGuard(("127.0.0.0/8",)))
    try:
        yield peer, receivers
    finally:
        receivers.close()
        server.close()


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """In the event loop that the service has."""
    uvloop.run(asyncio.wait_for(coroutine, 10))


async def post(receivers: Receivers, url: str) -> Answer:
    return await receivers.request("POST", url, {"Content-Type": "application/json"}, b"{}")


def test_a_connection_is_used_again() -> None:
    async def ask() -> None:
        async with serving(OK, OK, OK) as (peer, receivers):
            for _ in range(3):
                assert (await post(receivers, peer.url)).status == 200
            assert peer.connections == 1
            assert peer.heads[2].startswith("POST /hook?a=b%20c HTTP/1.1\r\nHost: 127.0.0.1:")

    run(ask())


def test_a_get_has_the_body_of_the_answer() -> None:
    async def ask() -> None:
        async with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", OK) as (peer, receivers):
            answer = await receivers.get(peer.url, {"Content-Length": "0"})
            assert (answer.status, answer.body) == (200, b"ok")
            assert (await post(receivers, peer.url)).status == 200
            assert peer.heads[0].startswith("GET /hook?a=b%20c HTTP/1.1\r\nHost: 127.0.0.1:")
            assert peer.connections == 1

    run(ask())


def test_a_connection_that_was_closed_meanwhile_is_replaced() -> None:
    async def ask() -> None:
        async with serving(OK, b"", OK, closing=(0, 1)) as (peer, receivers):
            await post(receivers, peer.url)
            await asyncio.sleep(0.05)  # it is known to be closed
            with pytest.raises(
                ConnectionError, match="without an answer"
            ):  # a new one: the receiver is broken
                await post(receivers, peer.url)
            assert (await post(receivers, peer.url)).status == 200

    run(ask())


def test_a_request_that_an_old_connection_did_not_answer_is_sent_again() -> None:
    async def ask() -> None:
        async with serving(OK, b"", OK, closing=(1,)) as (peer, receivers):
            await post(receivers, peer.url)
            assert (await post(receivers, peer.url)).status == 200
            assert (peer.connections, len(peer.heads)) == (2, 3)

    run(ask())


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 Fine\r\nX-A: b\r\n\r\n", Answer(204, "Fine", {"x-a": "b"})),
        (b"HTTP/1.1 503 \r\nContent-Length: 0\r\n\r\n", Answer(503, "", {"content-length": "0"})),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            Answer(200, "OK", {"transfer-encoding": "chunked"}, b"ok"),
        ),
        (b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 100_000, Answer(200, "OK", {}, b"x" * 100_000)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", Answer(200, "OK", {"content-length": "9"}, b"ok")),
    ],
)  # fmt: skip
def test_answers_of_every_form(sent: bytes, answer: Answer) -> None:
    async def ask() -> None:
        async with serving(sent, OK, closing=(0,)) as (peer, receivers):
            came = await post(receivers, peer.url)
            assert came[:3] == answer[:3]
            assert answer.body.startswith(came.body)  # a long one is cut
            assert len(came.body) >= min(10_000, len(answer.body))
            assert (await post(receivers, peer.url)).status == 200

    run(ask())


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        (b"", "without an answer"),
        (b"HTTP/1.1 200 OK\r\nA", "in the midst"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"x" * 100_000, "too long"),
    ],
)
def test_what_is_no_answer_is_an_error(sent: bytes, problem: str) -> None:
    async def ask() -> None:
        async with serving(sent, closing=(0,)) as (peer, receivers):
            with pytest.raises(ConnectionError, match=problem):
                await post(receivers, peer.url)

    run(ask())


def test_an_answer_that_comes_after_the_caller_has_gone_is_nobodys() -> None:
    async def ask() -> None:
        async with serving(b"", OK) as (peer, receivers):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(post(receivers, peer.url), 0.05)
            assert (await post(receivers, peer.url)).status == 200
            assert peer.connections == 2

    run(ask())


def test_an_address_may_name_an_account() -> None:
    async def ask() -> None:
        async with serving(OK) as (peer, receivers):
            await post(receivers, peer.url.replace("http://", "http://me:a%40b@"))
            assert "Authorization: Basic bWU6YUBi\r\n" in peer.heads[0]
            assert "Host: 127.0.0.1:" in peer.heads[0]

    run(ask())


@pytest.mark.parametrize("url", ["ftp://here/", "http:///x", "nothing"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises((httpx.InvalidURL, ValueError)):
        run(post(Receivers(AsyncGuard()), url))  # type: ignore[arg-type]
