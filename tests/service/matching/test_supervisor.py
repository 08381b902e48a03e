"""A driver is started, listened to, started again, ended; and nothing of it is left. The drivers here have no Spark."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest

from tidings.service.matching import driver_settings, process_session, supervisor
from tidings.service.matching.supervisor import DriverState, Supervisor
from tidings.service.settings import Settings
from tidings.storage.part_visits import PartVisits

OPENING = """
import json, os, subprocess, sys, time
def say(**state): print(json.dumps(state), flush=True)
settings = sys.stdin.readline()
say(status="starting")
"""
GOOD = OPENING + 'say(status="running"); sys.stdin.read(); say(status="stopped")'
# A child in a group of its own, as Spark's Python workers are, that outlives whoever started it.
LEAVES_A_CHILD = """
child = subprocess.Popen([sys.executable, "-c", "import os, time; os.setpgid(0, 0); time.sleep(600)"])
open(json.loads(settings)["data"] + "/child", "w").write(str(child.pid))
"""


class Heard:
    """The states of a supervisor, as they come."""

    def __init__(self) -> None:
        self.states: list[DriverState] = []
        self._news = threading.Condition()

    def __call__(self, state: DriverState) -> None:
        with self._news:
            self.states.append(state)
            self._news.notify_all()

    def wait(self, holds: Callable[[DriverState], bool]) -> DriverState:
        with self._news:
            assert self._news.wait_for(lambda: any(map(holds, self.states)), 30), self.states
            return next(filter(holds, self.states))


Make = Callable[..., tuple[Supervisor, Heard]]


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Make]:
    started: list[Supervisor] = []

    def make(code: str, pauses: tuple[float, ...] = (0.01,)) -> tuple[Supervisor, Heard]:
        heard = Heard()
        one = Supervisor(Settings(tmp_path), heard, command=(sys.executable, "-c", code), pauses=pauses)
        started.append(one)
        one.start()
        return one, heard

    yield make
    for one in started:
        one.stop(0.1)


def test_settings_are_handed_over(tmp_path: Path) -> None:
    settings = Settings(
        tmp_path,
        store="postgresql://me:secret@host/db",
        taxonomy=tmp_path / "t.ttl",
        networks={"n": tmp_path / "n"},
        prefixes={"ex": "http://example.org/"},
        operators=("a.py", "b.c"),
        allowed=("10.0.0.0/8",),
        spark_settings={"spark.x": "1"},
    )
    line = driver_settings.to_line(settings)
    assert line.count(b"\n") == 1
    assert driver_settings.from_line(line) == settings
    assert driver_settings.from_line(driver_settings.to_line(Settings(tmp_path))) == Settings(tmp_path)


def test_a_driver_starts_runs_and_ends(supervised: Make) -> None:
    one, heard = supervised(GOOD)
    running = heard.wait(lambda state: state.status == "running")
    assert running.pid is not None
    assert one.state == running
    one.stop()
    assert [state.status for state in heard.states] == ["starting", "running", "stopped"]
    assert one.state.restarts == 0
    assert process_session.living(running.pid) == []


def test_a_driver_that_fails_is_started_again_with_pauses(supervised: Make) -> None:
    code = OPENING + 'say(status="failed", message="the disk is full"); sys.exit(1)'
    began = time.monotonic()
    one, heard = supervised(code, pauses=(0.01, 0.3))
    heard.wait(lambda state: state.restarts == 3)
    assert time.monotonic() - began > 0.6  # the second and the third pause
    assert {state.message for state in heard.states if state.status == "failed"} == {"the disk is full"}
    one.stop()
    assert one.state.status == "stopped"


def test_a_driver_that_is_killed_is_started_again(supervised: Make) -> None:
    _, heard = supervised(GOOD)
    first = heard.wait(lambda state: state.status == "running")
    assert first.pid is not None
    os.kill(first.pid, signal.SIGKILL)
    assert "SIGKILL" in heard.wait(lambda state: state.status == "failed").message
    again = heard.wait(lambda state: state.status == "running" and state.restarts == 1)
    assert again.pid != first.pid


def test_the_last_words_of_one_that_says_nothing_else(
    supervised: Make, caplog: pytest.LogCaptureFixture
) -> None:
    _, heard = supervised(OPENING + 'print("no state"); print("[1]"); sys.exit("out of memory")')
    assert heard.wait(lambda state: state.status == "failed").message == "out of memory"
    assert "driver: out of memory" in caplog.text


def test_a_driver_may_go_once_there_is_an_index_and_so_may_the_next(supervised: Make) -> None:
    waits = OPENING + 'assert sys.stdin.readline() == "go\\n"; say(status="running"); sys.exit("enough")'
    one, heard = supervised(waits)
    heard.wait(lambda state: state.status == "starting" and state.pid is None)
    assert all(state.status == "starting" for state in heard.states)
    one.go()
    heard.wait(lambda state: state.status == "running")
    heard.wait(lambda state: state.status == "running" and state.restarts > 0)


def test_what_a_driver_records_is_announced_at_once(tmp_path: Path) -> None:
    announced = threading.Semaphore(0)
    code = OPENING + 'say(recorded=0, query="q"); say(recorded=3, query="q"); sys.stdin.read()'
    one = Supervisor(Settings(tmp_path), on_record=announced.release, command=(sys.executable, "-c", code))
    one.start()
    assert announced.acquire(timeout=30)
    assert not announced.acquire(timeout=0.1), "nothing is to be delivered of a batch without notifications"
    one.stop()


def test_visits_of_parts_are_passed_on(tmp_path: Path) -> None:
    visits: SimpleQueue[PartVisits] = SimpleQueue()
    code = OPENING + "say(visits=[[3, 4], [1, 0], [9, 9], [1, 1]]); sys.stdin.read()"
    one = Supervisor(Settings(tmp_path), on_visits=visits.put, command=(sys.executable, "-c", code))
    one.start()
    assert visits.get(timeout=30)["forwards"] == [3, 4]
    one.stop()


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    heard = Heard()
    one = Supervisor(Settings(tmp_path), heard, command=("/no/such/program",), pauses=(0.01,))
    one.start()
    assert "cannot be started" in heard.wait(lambda state: state.status == "failed").message
    one.stop()


def test_a_listener_that_fails_disturbs_nothing(tmp_path: Path) -> None:
    heard = Heard()

    def fails(state: DriverState) -> None:
        heard(state)
        raise ValueError("no")

    one = Supervisor(Settings(tmp_path), fails, command=(sys.executable, "-c", GOOD))
    one.start()
    heard.wait(lambda state: state.status == "running")
    one.stop()
    assert one.state.status == "stopped"


def test_one_that_does_not_end_is_killed_with_all_it_started(supervised: Make, tmp_path: Path) -> None:
    one, heard = supervised(OPENING + LEAVES_A_CHILD + 'say(status="running"); time.sleep(600)')
    pid = heard.wait(lambda state: state.status == "running").pid
    assert pid is not None
    child = int((tmp_path / "child").read_text())
    assert set(process_session.living(pid)) == {pid, child}
    one.stop(0.2)
    assert process_session.living(pid) == []


def test_what_a_dead_one_left_is_gone_before_the_next(
    supervised: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_JVM_SECONDS", 0.2)
    code = OPENING + 'assert not os.path.exists(json.loads(settings)["data"] + "/child")' + LEAVES_A_CHILD
    _, heard = supervised(code + "os._exit(3)")
    heard.wait(lambda state: state.status == "failed")
    child = int((tmp_path / "child").read_text())
    stat = Path(f"/proc/{child}/stat")
    assert not stat.exists() or " Z " in stat.read_text()  # it may be that nobody awaits it


def test_stopped_before_it_was_started(tmp_path: Path) -> None:
    one = Supervisor(Settings(tmp_path))
    one.stop()
    assert one.state.status == "stopped"
