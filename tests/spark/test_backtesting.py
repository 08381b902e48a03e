"""A backtest by Spark counts what one process counts, and in a service what its stream has told."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidings.engine.backtest import Tally, backtest_engine
from tidings.engine.backtest import backtest as count
from tidings.engine.engine import Engine
from tidings.errors import SubscriptionError, TidingsError
from tidings.model.event import Event
from tidings.service.delivery.channels.schedule import Schedule
from tidings.service.model import Principal, Role
from tidings.service.service import Service
from tidings.service.settings import Settings
from tidings.service.subscriptions.backtest_report import Report
from tidings.spark import backtest
from tidings.storage.event_log import EventLog
from tidings.storage.log_times import LogTimes

TEXT, SCOPE = "WHERE topic = 'sport' AND n < 700", "WHERE n >= 100"
HOUR = 3_600.0
ANN = Principal("ann", Role.ADMIN)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> EventLog:
    """A thousand events in a hundred hours, in several segments; each has its own time, an hour before its arrival."""
    folder, now = tmp_path_factory.mktemp("log"), 0.0
    with EventLog(folder, segment_bytes=100_000, clock=lambda: now) as log:
        for hour in range(100):
            now = hour * HOUR
            time_ = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + HOUR))
            log.append(
                [
                    Event(
                        "s",
                        {"topic": ("sport", "oil")[k % 2], "n": 10 * hour + k, "x": "y" * 500},
                        id=f"{hour}-{k}",
                        time=time_,
                    )
                    for k in range(10)
                ]
            )
    assert log.end().segment > 3
    return log


def counted(log: EventLog, text: str, since: float, until: float, scope: str = "") -> Tally:
    times = LogTimes(log)
    span = times.read(times.offset(since), times.offset(until))
    return count(backtest_engine(Engine(), text, scope), span)


@pytest.mark.parametrize(("since", "until"), [(0.0, 1e9), (20.5 * HOUR, 70 * HOUR)])
def test_tasks_count_what_one_process_counts(
    spark: SparkSession, log: EventLog, since: float, until: float
) -> None:
    parts: list[float] = []
    found = backtest(
        log.folder, TEXT, since=since, until=until, scope=SCOPE, spark=spark, progress=parts.append
    )
    wanted = counted(log, TEXT, since, until, SCOPE)
    assert found == wanted
    assert 0 < found.matched < found.events
    assert all(0 <= part <= 1 for part in parts)


def test_a_dataframe_counts_by_the_time_of_its_events(spark: SparkSession, log: EventLog) -> None:
    events = spark.read.format("tidings").load(str(log.folder))
    found = backtest(events, TEXT, since=10 * HOUR, until=20 * HOUR)
    wanted = counted(log, TEXT, 9 * HOUR, 19 * HOUR)
    assert found.minutes == Counter({minute + 60: matches for minute, matches in wanted.minutes.items()})
    assert found.events == wanted.events == 100


def test_who_refuses_its_progress_cancels_it(spark: SparkSession, log: EventLog) -> None:
    class Left(Exception):
        pass

    def leave(done: float) -> None:
        raise Left

    def ask() -> None:
        for _ in range(20):  # it may be done before it is looked at
            backtest(log.folder, TEXT, spark=spark, progress=leave)

    with pytest.raises(Left):
        ask()
    assert backtest(log.folder, TEXT, spark=spark).events == 1_000


def test_what_cannot_be_counted_is_said(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TidingsError, match="there is no event log"):
        backtest(tmp_path, TEXT, spark=spark)
    with pytest.raises(SubscriptionError, match="text ends"):
        backtest(tmp_path, "WHERE a =", spark=spark)
    with EventLog(tmp_path) as empty:
        empty.append([])
    assert backtest(tmp_path, TEXT, spark=spark) == Tally()


@pytest.mark.slow
def test_a_service_with_spark_counts_what_its_stream_has_told(tmp_path: Path) -> None:
    service = Service(Settings(data=tmp_path / "data", spark="local[2,4]"))
    deadline = time.monotonic() + 400

    def ask(text: str) -> Report:
        begun = service.backtests.begin(ANN, text, Schedule(digest="daily"), days=1)
        while (found := service.backtests.find(ANN, begun.id)).status in ("waiting", "running"):
            assert time.monotonic() < deadline, service.supervisor.state
            time.sleep(0.1)
        assert found.report is not None, found.message
        return found.report

    try:
        service.start()
        mine = service.lifecycle.subscribe(ANN, "WHERE topic = 'sport'").subscription
        begun = time.time()
        for hour in range(6):
            service.log._clock = lambda hour=hour: begun - (6 - hour) * HOUR  # type: ignore[misc]
            kinds = [("sport", "oil")[k % 2] for k in range(20 * (hour + 1))]
            service.log_writer.accept(
                [Event("s", {"topic": topic}, id=f"{hour}-{k}") for k, topic in enumerate(kinds)]
            )
        service.log._clock = time.time
        while (told := len(service.mailbox.page([mine.id], limit=1_000))) < 210:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        found = ask("WHERE topic = 'sport'")
        assert (found.events, found.matched, told) == (420, 210, 210)
        assert found.busiest is not None
        assert found.busiest.matched == 60
        assert [match.event.attributes["topic"] for match in found.matches] == ["sport"] * 50
        assert ask("WHERE topic = 'none'").matched == 0
        assert list((tmp_path / "data" / "backtests").iterdir()) == []
        assert service.supervisor.state.restarts == 0
    finally:
        service.stop()
