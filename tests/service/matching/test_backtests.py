"""Backtests of a service without Spark: they count what its own stream has told, and are bounded."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import Running, Served
from tidings.client import AsyncClient, Backtest, Client, ServiceError
from tidings.engine.backtest import Tally
from tidings.engine.engine import Engine
from tidings.service.delivery.channels.schedule import Schedule
from tidings.service.matching import backtests
from tidings.service.matching.backtests import Backtests, GivenUp, LocalRunner, Progress, Span
from tidings.service.model import Principal, Role
from tidings.service.subscriptions.access_control import NotFound, TooMany
from tidings.storage.event_log import EventLog

HOUR = 3_600.0
ANN, BEN = (Principal(name, Role.SUBSCRIBER, name) for name in ("ann", "ben"))
DAILY = Schedule(digest="daily")


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with the events of two days, and a subscription that was there from the start."""
    with Running(data=tmp_path_factory.mktemp("data"), matching="process") as served:
        begun = time.time()
        told = served.subscribe("WHERE topic = 'sport'")
        service, number = served.service, 0
        for hour in range(0, 48, 3):  # the clocks of the log and of the mailbox go by hours
            at = begun - (48 - hour) * HOUR
            service.log._clock = service.supervisor._clock = lambda at=at: at  # type: ignore[union-attr]
            wanted = [
                {"id": str(number + k), "topic": "sport" if (number + k) % (1 + hour % 5) == 0 else "oil"}
                for k in range(4 + hour % 7)
            ]
            number += len(wanted)
            if wanted:
                served.publish(*wanted)
                reached = service.log.end()
                deadline = time.monotonic() + 10
                while service.supervisor._reached < reached and time.monotonic() < deadline:  # type: ignore[union-attr]
                    time.sleep(0.005)
        service.log._clock = service.supervisor._clock = time.time  # type: ignore[union-attr]
        served.told = told["id"]  # type: ignore[attr-defined]
        served.published = number  # type: ignore[attr-defined]
        yield served


def told_by_hour(served: Served) -> Counter[int]:
    """When the stream recorded each notification, by hours."""
    with Client(served.url) as client:
        return Counter(
            int(datetime.fromisoformat(str(each.time)).timestamp() // HOUR)
            for each in client.notifications(served.told)  # type: ignore[attr-defined]
        )


def test_a_backtest_counts_what_the_stream_has_told(busy: Served) -> None:
    told = told_by_hour(busy)
    assert told.total() > 20
    with Client(busy.url) as client:
        found = client.backtest("WHERE topic = 'sport'", days=3, schedule={"digest": "daily", "at": "00:00"})
    assert (found.events, found.matched) == (busy.published, told.total())  # type: ignore[attr-defined]
    days = Counter[str]()
    for hour, count in told.items():
        days[time.strftime("%Y-%m-%d", time.gmtime(hour * HOUR))] += count
    assert {day["day"]: day["matched"] for day in found.days if day["matched"]} == days
    busiest = found.busiest
    assert busiest is not None
    assert busiest["matched"] == max(told.values())
    digest = found.digest
    assert digest["messages"] <= 3
    assert sum(each["items"] for each in digest["newest"]) + digest["waiting"] == told.total()
    assert [match["event"]["attributes"]["topic"] for match in found.matches] == ["sport"] * min(
        50, told.total()
    )
    assert found.warning is None


def test_fewer_days_are_asked_for(busy: Served) -> None:
    with Client(busy.url) as client:
        found = client.backtest("WHERE topic = 'sport'", days=1)
    since = time.time() - 24 * HOUR
    # Events of an hour have one time, so the hour in which a day ago lies counts whole or not at all.
    told = sum(count for hour, count in told_by_hour(busy).items() if (hour + 1) * HOUR >= since)
    assert 0 < found.matched <= told < 48 * 7


def test_the_asynchronous_client_asks_too(busy: Served) -> None:
    done: list[float] = []

    async def ask() -> Backtest:
        async with AsyncClient(busy.url) as client:
            return await client.backtest("WHERE topic = 'oil'", days=3, schedule={}, progress=done.append)

    found = asyncio.run(ask())
    assert found.matched == sum(each["items"] for each in found.digest["newest"])
    assert all(0 <= part <= 1 for part in done)


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ({"text": "WHERE topic ="}, 422, "text ends"),
        ({"text": "WHERE a = 1", "days": 0}, 422, "days"),
        ({"text": "WHERE a = 1", "schedule": {"digest": "yearly"}}, 422, "hourly, daily or weekly"),
        ({"text": "WHERE a = 1", "schedule": {"zone": "Europe/Wien"}}, 422, "time zone"),
    ],
)
def test_what_cannot_be_backtested_is_said(
    busy: Served, asked: dict[str, Any], status: int, words: str
) -> None:
    answer = busy.http.post("/api/backtests", json=asked)
    assert (answer.status_code, words in answer.text) == (status, True), answer.text


def test_a_result_is_found_by_its_id_by_its_caller_alone(busy: Served) -> None:
    answer = busy.http.post("/api/backtests", json={"text": "WHERE topic = 'oil'"})
    assert answer.status_code == 202
    id = answer.json()["id"]
    assert answer.headers["Location"].endswith(f"/api/backtests/{id}")
    deadline = time.monotonic() + 20
    while (state := busy.http.get(f"/api/backtests/{id}").json())["status"] != "done":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert state["progress"] == 1.0
    assert busy.http.get("/api/backtests/b-nothing").status_code == 404
    with pytest.raises(NotFound):
        busy.service.backtests.find(BEN, id)


class SlowRunner:
    """Waits until it is released, and reports its progress meanwhile."""

    def __init__(self) -> None:
        self.release, self.begun = threading.Event(), threading.Event()

    def run(self, id: str, engine: Engine, span: Span, progress: Progress) -> Tally:
        self.begun.set()
        while not self.release.wait(0.005):
            progress(0.5)
        return Tally()


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[tuple[Backtests, SlowRunner, Callable[[float], None]]]:
    now, runner = [0.0], SlowRunner()
    made = Backtests(EventLog(tmp_path), runner, Engine, monotonic=lambda: now[0])
    made.start()
    yield made, runner, lambda seconds: now.__setitem__(0, now[0] + seconds)
    runner.release.set()
    made.stop()


Slow = tuple[Backtests, SlowRunner, Callable[[float], None]]


def ended(made: Backtests, id: str, principal: Principal = ANN) -> str:
    deadline = time.monotonic() + 10
    while (found := made._all[id]).status in ("waiting", "running"):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return found.status


def test_one_runs_at_a_time_and_a_caller_has_two(slow: Slow) -> None:
    made, runner, _ = slow
    first, second = (made.begin(ANN, "WHERE a = 1", DAILY) for _ in range(2))
    assert runner.begun.wait(10)
    assert [each.status for each in (first, second)] == ["running", "waiting"]
    with pytest.raises(TooMany, match="2 backtests of this caller"):
        made.begin(ANN, "WHERE a = 1", DAILY)
    others = [made.begin(Principal("", Role.SUBSCRIBER, f"u{n}"), "WHERE a = 1", DAILY) for n in range(7)]
    with pytest.raises(TooMany, match="8 backtests wait"):
        made.begin(BEN, "WHERE a = 1", DAILY)
    runner.release.set()
    assert [ended(made, each.id) for each in (first, second, *others)] == ["done"] * 9


def test_it_is_given_up_when_it_is_cancelled_when_nobody_asks_and_when_it_takes_too_long(slow: Slow) -> None:
    made, runner, passes = slow
    cancelled = made.begin(ANN, "WHERE a = 1", DAILY)
    waiting = made.begin(ANN, "WHERE a = 1", DAILY)
    assert runner.begun.wait(10)
    made.cancel(ANN, waiting.id)
    made.cancel(ANN, cancelled.id)
    assert [ended(made, each.id) for each in (cancelled, waiting)] == ["cancelled", "cancelled"]
    left = made.begin(ANN, "WHERE a = 1", DAILY)
    passes(backtests.LEFT_AFTER + 1)
    assert ended(made, left.id) == "cancelled"
    long = made.begin(ANN, "WHERE a = 1", DAILY)
    for _ in range(30):
        passes(backtests.LIMIT / 20)
        if long.status == "failed":
            break
        made.find(ANN, long.id)
        time.sleep(0.02)
    assert (ended(made, long.id), "took longer" in long.message) == ("failed", True)
    passes(backtests.KEPT_SECONDS + 1)
    with pytest.raises(NotFound):
        made.find(ANN, long.id)


def test_a_runner_that_fails_is_a_sentence(tmp_path: Path) -> None:
    class Failing:
        def run(self, *given: object) -> Tally:
            raise ZeroDivisionError

    made = Backtests(EventLog(tmp_path), Failing(), Engine)
    made.start()
    found = made.begin(ANN, "WHERE a = 1", DAILY)
    assert ended(made, found.id) == "failed"
    assert found.message.startswith("ZeroDivisionError")
    made.stop()


def test_the_local_runner_stops_where_it_is(tmp_path: Path) -> None:
    from tidings.engine.backtest import backtest_engine
    from tidings.model.event import Event

    def refuse(done: float) -> None:
        raise GivenUp

    with EventLog(tmp_path) as log:
        log.append([Event("s", {"a": 1}, id="1")])
        engine = backtest_engine(Engine(), "WHERE a = 1")
        runner = LocalRunner(log)
        assert runner.run("", engine, Span(0, time.time() + 1), lambda done: None).matched == 1
        assert runner.run("", engine, Span(0, 1), lambda done: None).events == 0
        with pytest.raises(GivenUp):
            runner.run("", engine, Span(0, time.time() + 1), refuse)


def test_a_scope_hides_other_events_and_another_caller_finds_nothing(
    running: Callable[..., Running],
) -> None:
    with running(matching="process", open=False) as served:
        access = served.service.access
        _, admin = access.grant("admin", Role.ADMIN)
        _, secret = access.grant("ann", Role.SUBSCRIBER, scope="WHERE city = 'Linz'")
        with Client(served.url, admin) as client:
            client.publish([{"id": str(n), "city": "Linz" if n % 3 else "Wien", "n": n} for n in range(9)])
            assert client.backtest("WHERE n >= 4").events == 9
        with Client(served.url, secret) as client:
            found = client.backtest("WHERE city = 'Linz' AND n >= 4")
            assert (found.events, found.matched) == (6, 4)
            with pytest.raises(ServiceError, match="may only ask"):
                client.backtest("WHERE n >= 4")
