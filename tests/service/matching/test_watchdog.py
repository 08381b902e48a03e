"""A driver that hangs is noticed and replaced, and none that works is."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from tests.service.matching.test_supervisor import OPENING, Heard
from tidings.service.matching import process_session
from tidings.service.matching.supervisor import Supervisor
from tidings.service.matching.watchdog import Watchdog
from tidings.service.settings import Settings

LIVES = OPENING + ('say(status="running")\nwhile True: say(tasks={"q": [1, 0]}); time.sleep(0.05)')


def dog(waiting: tuple[str, ...] = (), stall: float = 30.0, silence: float = 1e9) -> Watchdog:
    return Watchdog(lambda: waiting, stall, silence_seconds=silence, tick_seconds=10.0)


def test_silence_is_a_hang() -> None:
    watchdog = dog(silence=30.0)
    assert [watchdog.tick(may_match=True) for _ in range(2)] == [None, None]
    watchdog.heard({"tasks": {}})
    assert [watchdog.tick(may_match=True) for _ in range(2)] == [None, None]
    assert watchdog.tick(may_match=True) == "it gave no sign of life for 30 s"


@pytest.mark.parametrize(
    "sign",
    [{"recorded": 0, "query": "q"}, {"tasks": {"q": [1, 2]}}, {"status": "running"}],
)
def test_progress_is_none(sign: object) -> None:
    watchdog = dog(("q",))
    watchdog.heard({"tasks": {"q": [1, 1]}})
    assert [watchdog.tick(may_match=True) for _ in range(2)] == [None, None]
    watchdog.heard({"tasks": {"q": [1, 1]}})  # it lives, and that is all
    watchdog.heard(sign)
    assert [watchdog.tick(may_match=True) for _ in range(2)] == [None, None]
    assert watchdog.tick(may_match=True) == "it made no progress for 30 s while events wait"


def test_one_of_two_queries_hangs() -> None:
    watchdog = dog(("matches", "joins"))
    for _ in range(2):
        assert watchdog.tick(may_match=True) is None
        watchdog.heard({"recorded": 5, "query": "matches"})
    assert watchdog.tick(may_match=True) is not None


def test_nothing_waits_or_the_store_is_away_or_there_is_no_index_yet() -> None:
    def away() -> tuple[str, ...]:
        raise ConnectionError

    assert not any(dog().tick(may_match=True) for _ in range(10))
    index_less = dog(("q",))
    assert not any(index_less.tick(may_match=False) for _ in range(10))
    storeless = Watchdog(away, 30.0, silence_seconds=1e9, tick_seconds=10.0)
    assert not any(storeless.tick(may_match=True) for _ in range(10))


def test_a_stopped_driver_is_replaced(tmp_path: Path) -> None:
    heard = Heard()
    watchdog = Watchdog(lambda: (), math.inf, silence_seconds=2.0, tick_seconds=0.1)
    command = (sys.executable, "-c", LIVES)
    supervisor = Supervisor(Settings(tmp_path), heard, command=command, pauses=(0.01,), watchdog=watchdog)
    supervisor.start()
    try:
        first = heard.wait(lambda state: state.status == "running").pid
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        failed = heard.wait(lambda state: state.status == "failed")
        assert failed.message.startswith("it gave no sign of life for")
        assert process_session.living(first) == []
        heard.wait(lambda state: state.status == "running" and state.restarts == 1)
    finally:
        supervisor.stop(0.1)


def test_a_driver_that_does_nothing_while_events_wait_is_replaced(tmp_path: Path) -> None:
    heard, waits = Heard(), threading.Event()
    watchdog = Watchdog(lambda: ("q",) if waits.is_set() else (), 1.0, tick_seconds=0.1)
    command = (sys.executable, "-c", LIVES)
    supervisor = Supervisor(Settings(tmp_path), heard, command=command, pauses=(0.01,), watchdog=watchdog)
    supervisor.start()
    supervisor.go()
    try:
        heard.wait(lambda state: state.status == "running")
        waits.set()
        assert "no progress" in heard.wait(lambda state: state.status == "failed").message
        waits.clear()
        heard.wait(lambda state: state.status == "running" and state.restarts == 1)
    finally:
        supervisor.stop(0.1)
