"""Requests for rows, which the parent in use gets, and none is lost while another is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tests.service.relay.test_edge_stream import STOCKS
from tidings import Engine
from tidings.language.parser import parse
from tidings.language.printer import to_text
from tidings.service.relay.own_filters import OwnFilters
from tidings.service.relay.parent import Parent, ParentAway
from tidings.service.settings import Settings
from tidings.service.web.middleware import SMALL, BodyLimit, Message, Receive, Scope, Send

TEXTS = [to_text(parse(f"SELECT * FROM stocks WHERE per > {number}")) for number in range(3)]


class Upstream(Parent):
    """Accepts all filters, and notes what rows it is asked for."""

    def __init__(self, name: str) -> None:
        super().__init__(f"http://{name}.invalid", None, "n" + "a" * 20)
        self.asked: list[list[str]] = []
        self.before: Callable[[], None] = lambda: None

    def replace_filters(self, texts: Sequence[str], *, again: bool) -> dict[str, str]:
        return {}

    def request_rows(self, texts: Sequence[str]) -> None:
        before, self.before = self.before, lambda: None
        before()
        self.asked.append(list(texts))


def test_rows_are_requested_of_the_parent_in_use_and_none_is_lost() -> None:
    first, second = Upstream("first"), Upstream("second")
    own = OwnFilters([first, second], lambda: zip("abc", TEXTS, strict=True), lambda: Engine(tables=[STOCKS]))

    def fail() -> None:
        second.before = lambda: own.need_rows(TEXTS[2:])  # while the next request is sent
        own.need_rows(TEXTS[1:2])
        raise ParentAway("gone")

    own.start()
    try:
        own.register_anew(second)
        second.before = fail
        own.need_rows(TEXTS[:1])
        for _ in range(10):
            if len(second.asked) < 2:
                with suppress(ParentAway):
                    own.register_anew(second)
        assert (first.asked, second.asked) == ([], [TEXTS[:2], TEXTS[2:]])
    finally:
        own.stop()


def test_a_request_for_the_rows_of_many_filters_may_be_large() -> None:
    came = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        came.append(scope["path"])

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        pass

    async def ask(path: str) -> None:
        headers = [(b"content-length", str(SMALL + 1).encode())]
        await BodyLimit(app, Settings(Path()))(
            {"type": "http", "path": path, "headers": headers}, receive, send
        )

    for path in ("/api/links/rows", "/api/links"):
        asyncio.run(ask(path))
    assert came == ["/api/links/rows"]
