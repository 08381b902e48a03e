"""`tidings backtest`: bars by day, the digest and the newest matches, offline and from a service."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.service.conftest import Running
from tidings.cli import main
from tidings.engine.engine import Engine
from tidings.model.event import Event
from tidings.storage import versions
from tidings.storage.event_log import EventLog

DAY = 86_400.0


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a service with a prefix, and with events of four days: 0, 2, 4 and 6 of sport, and as many others."""
    folder, now = tmp_path_factory.mktemp("service"), time.time()
    for day in range(4):
        with EventLog(folder / "log", clock=lambda day=day: now - (4 - day) * DAY) as log:
            log.append(
                [
                    Event(
                        "s", {"topic": ("sport", "oil")[k % 2], "title": f"No. {k} of {day}"}, id=f"{day}-{k}"
                    )
                    for k in range(4 * day)
                ]
            )
    versions.publish(folder / "index", Engine(prefixes={"ex": "http://example.org/"}))
    return folder


def run(*arguments: object) -> str:
    done = CliRunner().invoke(main, ["backtest", *map(str, arguments)])
    return f"{done.exit_code}\n{done.output}"


def test_it_draws_days_and_says_what_the_digest_would_have_been(data: Path) -> None:
    said = run("WHERE topic = 'sport'", "--data", data, "--zone", "Asia/Tokyo")
    lines = said.splitlines()
    assert lines[:2] == ["0", "12 matches of 24 events (50.0%)"]
    bars = [line for line in lines if "█" in line]
    assert [line.rsplit(" ", 1)[1] for line in bars] == ["2", "4", "6"]
    assert [line.count("█") for line in bars] == [13, 26, 40]
    assert "3 daily messages with 2 to 6 items" in said
    assert "busiest hour" in said
    assert "No. 10 of 3" in said


def test_json_days_and_messages_at_once(data: Path) -> None:
    found = json.loads(
        run("WHERE topic = 'sport'", "--log", data / "log", "--days", 2, "--digest", "none", "--json")[2:]
    )
    assert (found["matched"], found["events"]) == (6, 12)
    assert found["digest"]["sentence"] == "1 message with 6 items"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("WHERE a = 1",), "2\nUsage"),
        (("WHERE a =", "--data", "DATA"), "1\nError: the text ends"),
        (("WHERE a = 1", "--log", "DATA"), "1\nError: there is no event log in"),
        (("WHERE a = 1", "--data", "DATA", "--zone", "Europe/Wien"), "1\nError: the time zone 'Europe/Wien'"),
        (("WHERE a = 1", "--data", "DATA", "--digest", "hourly", "--at", "08:00"), "2\nUsage"),
        (("WHERE a = 1", "--service", "http://localhost:1", "--spark", "local[2]"), "2\nUsage"),
        (("WHERE a = 1", "--service", "http://127.0.0.1:1"), "1\nError: the service at"),
    ],
)
def test_a_mistake_is_a_sentence(data: Path, arguments: tuple[str, ...], words: str) -> None:
    assert run(*(str(data) if given == "DATA" else given for given in arguments)).startswith(words)


def test_prefixes_of_the_service_are_known(data: Path) -> None:
    assert run("SELECT ?x WHERE (?x, ex:p, ?y)", "--data", data).startswith("0\n0 matches of 24 events")


def test_a_running_service_is_asked(data: Path) -> None:
    with Running(data=data, matching="process") as served:
        said = run("WHERE topic = 'sport'", "--service", served.url, "--digest", "weekly", "--at", "07:30")
    assert said.startswith("0\n12 matches of 24 events (50.0%)")
    assert "weekly message" in said
    assert "No. 10 of 3" in said
