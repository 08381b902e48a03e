"""Only those are woken who were told something, and nobody sleeps through it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.service.telling import expire, record_matches, stores
from tidings.service.delivery.hub import Hub
from tidings.service.store.mailbox import Mailbox


def test_who_was_told_something_is_woken_and_nobody_else(tmp_path: Path) -> None:
    with stores(tmp_path) as (_, mailbox):
        hub = Hub(mailbox, interval=0.005)
        hub.start()

        async def listen() -> tuple[bool, bool]:
            mine = asyncio.create_task(hub.wait(frozenset({"a", "b"}), hub.last, 5))
            other = asyncio.create_task(hub.wait(frozenset({"c"}), hub.last, 0.2))
            await asyncio.sleep(0)
            await asyncio.to_thread(record_matches, mailbox, "b", "e1")
            return await mine, await other

        try:
            assert asyncio.run(listen()) == (True, False)
            assert hub.listeners == 0
            assert hub.last == 1
        finally:
            hub.stop()


def test_what_comes_between_a_look_and_the_waiting_is_not_missed(tmp_path: Path) -> None:
    with stores(tmp_path) as (_, mailbox):
        hub = Hub(mailbox, interval=0.005)
        heard = threading.Event()
        hub.on_news(lambda given: heard.set())
        hub.start()
        mark = hub.last
        record_matches(mailbox, "a", "e1")
        assert heard.wait(5)
        try:
            assert asyncio.run(hub.wait(frozenset({"a"}), mark, 5))
            assert not asyncio.run(hub.wait(frozenset({"b"}), mark, 0.01)), "nothing was told to b"
            assert not asyncio.run(hub.wait(frozenset({"a"}), hub.last, 0.01)), "a has seen it"
        finally:
            hub.stop()


def test_who_is_far_behind_is_told_to_look(tmp_path: Path) -> None:
    with stores(tmp_path) as (_, mailbox):
        record_matches(mailbox, "a", "e1")
        hub = Hub(mailbox)
        hub.start()
        try:
            assert asyncio.run(hub.wait(frozenset({"b"}), 0, 5)), (
                "what was before its start the hub cannot know"
            )
        finally:
            hub.stop()


def test_callbacks_hear_the_last_number_of_each(tmp_path: Path) -> None:
    with stores(tmp_path) as (_, mailbox):
        hub = Hub(mailbox, interval=0.005)
        news: list[dict[str, int]] = []
        came = threading.Event()

        def broken(given: object) -> None:
            raise RuntimeError("not today")

        def note(given: object) -> None:
            news.append(dict(given))  # type: ignore[call-overload]
            came.set()

        hub.on_news(broken)
        hub.on_news(note)
        hub.start()
        record_matches(mailbox, ["a", "b"], "e1", "e2")
        assert came.wait(5)
        hub.stop()
        assert news == [{"a": 3, "b": 4}]


class _Away:
    """A mailbox that cannot be read for a while."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self.away = False
        self.asked = 0

    def last(self) -> int:
        return self._mailbox.last()

    def news(self, after: int) -> tuple[int, dict[str, int]]:
        self.asked += 1
        if self.away:
            raise ConnectionError("no route to the store")
        return self._mailbox.news(after)


def test_a_store_that_is_away_is_waited_for_and_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tidings.service.delivery.hub")
    with stores(tmp_path) as (_, mailbox):
        box = _Away(mailbox)
        hub = Hub(box, interval=0.002)
        hub.start()
        box.away = True
        before = box.asked
        while box.asked < before + 4:
            time.sleep(0.001)
        record_matches(mailbox, "a", "e1")

        async def listen() -> bool:
            waiting = asyncio.create_task(hub.wait(frozenset({"a"}), 0, 5))
            await asyncio.sleep(0)
            box.away = False
            return await waiting

        assert asyncio.run(listen())
        hub.stop()
    said = [record.getMessage() for record in caplog.records]
    assert [line for line in said if "cannot be read" in line] == [
        "the mailbox cannot be read, trying on: no route to the store"
    ]
    assert said[-1] == "the mailbox can be read again"


def test_what_is_committed_here_or_announced_is_heard_without_polling(tmp_path: Path) -> None:
    with stores(tmp_path) as (_, mailbox), stores(tmp_path) as (_, elsewhere):
        hub = Hub(mailbox, interval=60)
        mailbox.on_commit(hub.wake)
        hub.start()

        async def listen(write: Callable[[], None]) -> bool:
            waiting = asyncio.create_task(hub.wait(frozenset({"a"}), hub.last, 10))
            await asyncio.sleep(0)
            await asyncio.to_thread(write)
            return await waiting

        def announced() -> None:
            record_matches(elsewhere, "a", "e2")  # as the driver does, in another process
            hub.wake()

        try:
            assert asyncio.run(listen(lambda: record_matches(mailbox, "a", "e1")))
            assert asyncio.run(listen(lambda: expire(mailbox, "a")))
            assert asyncio.run(listen(announced))
        finally:
            hub.stop()


def test_a_stop_ends_all_waiting(tmp_path: Path) -> None:
    with stores(tmp_path) as (_, mailbox):
        hub = Hub(mailbox)
        hub.start()

        async def listen() -> bool:
            waiting = asyncio.create_task(hub.wait(frozenset({"a"}), 0, 60))
            await asyncio.sleep(0)
            await asyncio.to_thread(hub.stop)
            assert not await hub.wait(frozenset({"a"}), 0, 60), "nor does anybody begin to wait"
            return await waiting

        assert not asyncio.run(listen())


def test_thousands_of_listeners_cost_nothing_until_they_are_concerned(tmp_path: Path) -> None:
    with stores(tmp_path) as (_, mailbox):
        hub = Hub(mailbox, interval=0.005)
        hub.start()

        async def listen() -> tuple[int, float]:
            waiting = [asyncio.create_task(hub.wait(frozenset({f"s{i}"}), 0, 30)) for i in range(5_000)]
            await asyncio.sleep(0)
            assert hub.listeners == 5_000
            began = time.process_time()
            await asyncio.to_thread(record_matches, mailbox, ["s7", "s4999"], "e1")
            await asyncio.gather(waiting[7], waiting[4_999])
            took = time.process_time() - began
            still = sum(not one.done() for one in waiting)
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            return still, took

        still, took = asyncio.run(listen())
        assert still == 4_998
        assert took < 1.0
        assert hub.listeners == 0
        hub.stop()
