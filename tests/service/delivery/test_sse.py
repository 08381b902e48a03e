"""A stream of server-sent events skips nothing, repeats nothing, and ends when there is nothing more to come."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import uvicorn
from fastapi import FastAPI, Request

from tests.service.telling import expire, record_matches, stores
from tidings.service.delivery import sse
from tidings.service.delivery.hub import Hub
from tidings.service.delivery.notification_json import NotificationTexts, notification_to_json
from tidings.service.delivery.stream_reads import StreamReads
from tidings.service.model import StoredNotification
from tidings.service.settings import Settings
from tidings.service.store.mailbox import Mailbox
from tidings.service.web.streaming import StreamingLayer, StreamResponse


class Piece(NamedTuple):
    id: str | None
    event: str | None
    data: Any
    comment: str | None


def read(text: str) -> list[Piece]:
    """As the standard says; a comment is one piece too."""
    pieces = []
    for block in text.split("\n\n")[:-1]:
        fields: dict[str, str] = {}
        comment = None
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            if name == "":
                comment = value.strip()
            else:
                assert name not in fields, f"{name} is there twice: {block!r}"
                fields[name] = value.removeprefix(" ")
        data = json.loads(fields["data"]) if "data" in fields else None
        pieces.append(Piece(fields.get("id"), fields.get("event"), data, comment))
    return pieces


SETTINGS = Settings(data=Path("nowhere"))
TEXTS = NotificationTexts(SETTINGS)


def to_json(notification: StoredNotification) -> Mapping[str, object]:
    return notification_to_json(notification, SETTINGS)


def encode(notification: StoredNotification) -> bytes:
    text = TEXTS.text(notification)
    assert json.loads(text) == to_json(notification)
    return sse.encode(notification, text)


class World:
    def __init__(self, mailbox: Mailbox, hub: Hub) -> None:
        self.mailbox, self.hub = mailbox, hub
        self.lives: dict[str, bool] = {"a": True}
        self.asked = 0  # how often they were looked up

    def _subscriptions(self) -> dict[str, bool]:
        self.asked += 1
        return dict(self.lives)

    def stream(self, last_event_id: str | None = None, **more: Any) -> AsyncGenerator[bytes, None]:
        return sse.stream(
            self.mailbox,
            self.hub,
            self._subscriptions,
            StreamReads(self.mailbox, encode, sse.PAGE),
            last_event_id=last_event_id,
            change=lambda: hash(tuple(self.lives.items())),
            **more,
        )

    async def first(
        self, stream: AsyncGenerator[bytes, None], enough: Callable[[list[Piece]], bool]
    ) -> list[Piece]:
        """What comes until it is enough."""
        text = b""
        async with asyncio.timeout(10):
            async for piece in stream:
                text += piece
                if enough(read(text.decode())):
                    break
        return [one for one in read(text.decode()) if one.event is not None]


def count(number: int) -> Callable[[list[Piece]], bool]:
    return lambda pieces: sum(one.event is not None for one in pieces) >= number


@contextmanager
def world(folder: Path) -> Iterator[World]:
    with stores(folder) as (_, mailbox):
        hub = Hub(mailbox, interval=0.005)
        hub.start()
        try:
            yield World(mailbox, hub)
        finally:
            hub.stop()


def titles(pieces: list[Piece]) -> list[str]:
    return [one.data["event"]["title"] for one in pieces]


def test_what_is_there_comes_first_then_what_is_told(tmp_path: Path) -> None:
    with world(tmp_path) as it:
        record_matches(it.mailbox, "b", "not for us")
        record_matches(it.mailbox, "a", *(f"old {i}" for i in range(250)))

        async def listen() -> list[Piece]:
            stream = it.stream("0")
            before = await it.first(stream, count(250))
            await asyncio.to_thread(record_matches, it.mailbox, ["b", "a"], "new 1", "new 2")
            after = await it.first(stream, count(2))
            await stream.aclose()
            return before + after

        pieces = asyncio.run(listen())
        assert titles(pieces) == [f"old {i}" for i in range(250)] + ["new 1", "new 2"]
        assert [int(one.id or 0) for one in pieces] == [*range(2, 252), 253, 255]
        assert {one.event for one in pieces} == {"notification"}
        assert pieces[0].data["subscription"] == "a"
        assert it.hub.listeners == 0


def test_without_a_cursor_it_begins_with_what_comes_next(tmp_path: Path) -> None:
    with world(tmp_path) as it:
        record_matches(it.mailbox, "a", "old")

        async def listen() -> list[Piece]:
            stream = it.stream()
            assert await anext(stream) == b"retry: 3000\n\n"
            waiting = asyncio.create_task(it.first(stream, count(1)))
            while not it.hub.listeners:
                await asyncio.sleep(0.001)
            await asyncio.to_thread(record_matches, it.mailbox, "a", "new")
            return await waiting

        assert titles(asyncio.run(listen())) == ["new"]


@pytest.mark.parametrize(
    "given", ["", "abc", "1e3", "-1", "99999999999999999999", "12", "٣", "<script>", "é"]
)
def test_an_id_that_is_none_of_ours_is_told_and_not_used(tmp_path: Path, given: str) -> None:
    with world(tmp_path) as it:
        record_matches(it.mailbox, "a", "old")

        async def listen() -> str:
            it.lives["a"] = False
            return b"".join([piece async for piece in it.stream(given)]).decode()

        text = asyncio.run(listen())
        said = [one.comment for one in read(text) if one.comment]
        assert len(said) == (1 if given else 0)
        assert all("beginning with what comes next" in one and one.isascii() for one in said)
        assert "data:" not in text


def test_a_cursor_older_than_what_is_kept_is_told_what_was_missed(tmp_path: Path) -> None:
    with world(tmp_path) as it:
        record_matches(it.mailbox, "a", "e1", "e2", "e3", at=100.0)
        record_matches(it.mailbox, "a", "e4")
        it.mailbox.forget(200.0, 1e12, lambda dropped: [])
        first, second = asyncio.run(it.first(it.stream("1"), count(2)))
        assert (first.event, first.data, first.id) == ("missed", {"from": 2, "to": 3}, "3")
        assert titles([second]) == ["e4"]
        (only,) = asyncio.run(it.first(it.stream("3"), count(1)))
        assert titles([only]) == ["e4"], "who had all that was dropped has missed nothing"


def test_it_ends_with_its_subscription_after_the_notice(tmp_path: Path) -> None:
    with world(tmp_path) as it:

        async def listen() -> list[Piece]:
            it.lives = {"a": True}
            waiting = asyncio.create_task(it.first(it.stream("0"), lambda pieces: False))
            while not it.hub.listeners:
                await asyncio.sleep(0.001)
            await asyncio.to_thread(record_matches, it.mailbox, "a", "last")
            it.lives = {"a": False}
            await asyncio.to_thread(expire, it.mailbox, "a")
            return await waiting

        notification, notice = asyncio.run(listen())
        assert titles([notification]) == ["last"]
        assert notice.event == "notice"
        assert notice.data["kind"] == "expired"


def test_it_ends_when_its_subscription_is_cancelled(tmp_path: Path) -> None:
    with world(tmp_path) as it:

        async def listen() -> list[Piece]:
            waiting = asyncio.create_task(it.first(it.stream(heartbeat=0.02), lambda pieces: False))
            while not it.hub.listeners:
                await asyncio.sleep(0.001)
            it.lives["a"] = False
            return await waiting

        assert asyncio.run(listen()) == []


def test_it_ends_with_the_service(tmp_path: Path) -> None:
    with world(tmp_path) as it:

        async def listen() -> None:
            waiting = asyncio.create_task(it.first(it.stream(), lambda pieces: False))
            while not it.hub.listeners:
                await asyncio.sleep(0.001)
            it.hub.end_waits()
            await waiting

        asyncio.run(listen())
        assert it.hub.listeners == 0


def test_heartbeats_come_while_nothing_else_does(tmp_path: Path) -> None:
    with world(tmp_path) as it:
        beats = lambda pieces: sum(one.comment == "still here" for one in pieces) >= 3  # noqa: E731
        assert asyncio.run(it.first(it.stream(heartbeat=0.01), beats)) == []


def test_a_heartbeat_without_news_reads_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with world(tmp_path) as it:
        reads: list[int] = []
        page = it.mailbox.pages

        def counted(*given: Any, **more: Any) -> list[StoredNotification]:
            reads.append(1)
            return page(*given, **more)

        monkeypatch.setattr(it.mailbox, "pages", counted)
        beats = lambda pieces: sum(one.comment == "still here" for one in pieces) >= 5  # noqa: E731
        assert asyncio.run(it.first(it.stream(heartbeat=0.02), beats)) == []
        assert (len(reads), it.asked) == (1, 1)


def test_a_stream_of_all_of_mine_takes_new_subscriptions_in(tmp_path: Path) -> None:
    with world(tmp_path) as it:

        async def listen() -> list[Piece]:
            stream = it.stream("0", endless=True, heartbeat=5.0)
            waiting = asyncio.create_task(it.first(stream, count(2)))
            while not it.hub.listeners:
                await asyncio.sleep(0.001)
            # Told before the stream has heard of the subscription.
            it.lives["new"] = True
            await asyncio.to_thread(record_matches, it.mailbox, "new", "early")
            await asyncio.to_thread(record_matches, it.mailbox, "a", "mine")
            pieces = await waiting
            await asyncio.to_thread(record_matches, it.mailbox, "new", "later")
            pieces += await it.first(stream, count(1))
            await stream.aclose()
            return pieces

        pieces = asyncio.run(listen())
        assert titles(pieces) == ["early", "mine", "later"]
        assert [one.id for one in pieces] == ["1", "2", "3"], "who breaks off anywhere misses nothing"


def test_a_slow_client_is_sent_no_more_than_it_takes(tmp_path: Path) -> None:
    with world(tmp_path) as it:
        record_matches(it.mailbox, "a", *(f"e{i}" for i in range(1_000)))
        pages = 0
        page = it.mailbox.pages

        def counted(*args: Any, **more: Any) -> list[StoredNotification]:
            nonlocal pages
            pages += 1
            return page(*args, **more)

        it.mailbox.pages = counted  # type: ignore[method-assign, assignment]

        async def listen() -> None:
            stream = it.stream("0")
            await anext(stream)
            await anext(stream)
            await asyncio.sleep(0.05)
            assert pages == 1
            await stream.aclose()

        asyncio.run(listen())


def test_over_http_a_client_resumes_and_one_that_goes_away_is_noticed(tmp_path: Path) -> None:
    app = FastAPI()
    with world(tmp_path) as it:

        @app.get("/stream")
        async def stream(request: Request) -> StreamResponse:
            pieces = it.stream(request.headers.get("Last-Event-ID"))
            return StreamResponse(pieces, media_type=sse.MEDIA_TYPE, headers=sse.HEADERS)

        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            server = uvicorn.Server(uvicorn.Config(StreamingLayer(app), log_config=None, lifespan="off"))
            thread = threading.Thread(target=server.run, args=([listener],))
            thread.start()
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/stream"
            try:
                record_matches(it.mailbox, "a", "e1", "e2")
                with httpx.stream("GET", url, headers={"Last-Event-ID": "1"}, timeout=5) as response:
                    lines = response.iter_lines()
                    assert response.headers["content-type"].startswith("text/event-stream")
                    assert next(line for line in lines if line.startswith("id:")) == "id: 2"
                    record_matches(it.mailbox, "a", "e3")
                    assert next(line for line in lines if line.startswith("id:")) == "id: 3"
                    until = time.monotonic() + 5
                    while not it.hub.listeners and time.monotonic() < until:
                        time.sleep(0.005)
                until = time.monotonic() + 5
                while it.hub.listeners and time.monotonic() < until:
                    time.sleep(0.005)
                assert it.hub.listeners == 0
            finally:
                server.should_exit = True
                thread.join()


def test_streams_that_are_woken_together_are_read_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world(tmp_path) as it:
        asked: list[int] = []
        pages = it.mailbox.pages

        def counted(after: Mapping[str, int], limit: int) -> dict[str, list[StoredNotification]]:
            asked.append(len(after))
            return pages(after, limit)

        monkeypatch.setattr(it.mailbox, "pages", counted)
        record_matches(it.mailbox, [f"s{number}" for number in range(20)], "e")
        reads = StreamReads(it.mailbox, encode, sse.PAGE)

        async def read_all() -> list[Any]:
            wanted = [(frozenset({f"s{number}"}), 0) for number in range(20)]
            wanted += [(frozenset({"s0"}), 1_000), (frozenset({"s1", "s2"}), 0), (frozenset(), 0)]
            return await asyncio.gather(*(reads.read(*one) for one in wanted))

        found = asyncio.run(read_all())
        assert [len(one.page) for one in found] == [1] * 20 + [0, 2, 0]
        assert found[21].text == found[1].text + found[2].text
        assert sum(asked) == 21, "the stream of another number waits for the next turn"
        assert len(asked) <= 3
