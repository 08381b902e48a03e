"""Service, driver, JVM and Python workers killed under load: every notification is in the mailbox, once.

The first driver is that of a service that is killed; it finishes by itself, and the next one waits for it.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tidings import Event, versions
from tidings.log import EventLog
from tidings.service import handover, remains
from tidings.service.indexing import Indexing
from tidings.service.model import Subscription
from tidings.service.settings import Settings
from tidings.service.store.database import open_stores
from tidings.service.supervisor import Supervisor

TEXTS = {
    "oil": "WHERE topic = 'oil'",
    "dear": "WHERE topic = 'oil' AND price > 500",
    "gas": "WHERE topic = 'gas' OR price = 7",
    "titled": "SELECT ?t WHERE (?item, rss:title, ?t)",
}
QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
SERVICE = """
import sys, time
from tidings.service import handover
from tidings.service.supervisor import Supervisor
supervisor = Supervisor(handover.from_line(sys.stdin.buffer.readline()), lambda state: print(state.pid, flush=True))
supervisor.start()
time.sleep(600)
"""
TITLE = '<http://example.org/{}> <http://purl.org/rss/1.0/title> "t" .\n'


def event(number: int) -> Event:
    if number % 10 == 3:
        data = TITLE.format(number).encode()
        return Event(id=f"{number}", source="test", datacontenttype="application/n-triples", data=data)
    topic = ("oil", "gas", "tea")[number % 3]
    return Event(id=f"{number}", source=f"s{number % 4}", attributes={"topic": topic, "price": number})


class Publisher(threading.Thread):
    """Appends a few events every few milliseconds until it is told to end."""

    def __init__(self, log: EventLog) -> None:
        super().__init__(daemon=True)
        self.log, self.events, self.ending = log, list[Event](), threading.Event()

    def run(self) -> None:
        while not self.ending.wait(0.05):
            new = [event(number) for number in range(len(self.events), len(self.events) + 3)]
            self.log.append(new)
            self.events += new


def until(holds: Callable[[], object], seconds: float = 240.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.005)


def processes(session: int, *words: str) -> list[int]:
    """Those of a session whose command has all these words."""
    found = []
    for pid in remains.living(session):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
        except OSError:
            continue
        if all(word in command for word in words):
            found.append(pid)
    return found


@pytest.mark.timeout(900)  # five starts of Spark, on a machine that may be busy
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes by /proc")
@pytest.mark.slow
def test_nothing_lost_nothing_doubled(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    settings = Settings(tmp_path, spark="local[2,4]", spark_settings=QUICK)
    registry, mailbox = open_stores(settings)
    chance = random.Random(5)
    subscriptions = [Subscription(id, text, id, "", "", id, 0.0, None) for id, text in TEXTS.items()]
    registry.add_many(subscriptions)
    indexing = Indexing(settings, registry)
    assert indexing.prepare() == []
    publisher = Publisher(EventLog(tmp_path / "log"))
    publisher.start()

    def moves(killed: Callable[[], object]) -> None:
        """Something is told; then, at a moment that nobody chose, something is killed."""
        last = mailbox.last()
        until(lambda: mailbox.last() > last)
        time.sleep(chance.random() * 0.4)
        killed()

    # The service itself.
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", SERVICE], stdin=pipe, stdout=pipe) as service:
        assert service.stdin is not None
        assert service.stdout is not None
        service.stdin.write(handover.to_line(settings))
        service.stdin.flush()
        assert service.stdout.readline() == b"None\n"
        first = int(service.stdout.readline())
        moves(service.kill)

    supervisor = Supervisor(settings, pauses=(0.05,))
    request.addfinalizer(lambda: supervisor.stop(0))
    supervisor.start()

    def session() -> int:
        pid = supervisor.state.pid
        assert pid is not None
        return pid

    def running_again(restarts: int) -> None:
        until(lambda: supervisor.state.status == "running" and supervisor.state.restarts >= restarts)

    running_again(0)
    assert remains.living(first) == [], "the driver of the killed service is still there"
    # A Python worker: Spark starts another.
    moves(
        lambda: os.kill(max(processes(session(), "tidings.spark.daemon", "pyspark.worker")), signal.SIGKILL)
    )
    # The driver, whose JVM ends with it.
    old = session()
    before = supervisor.state.restarts
    moves(lambda: os.kill(old, signal.SIGKILL))
    running_again(before + 1)
    assert remains.living(old) == []
    # The JVM, whose driver ends with it.
    old = session()
    before = supervisor.state.restarts
    (jvm,) = processes(old, "org.apache.spark.deploy.SparkSubmit")
    moves(lambda: os.kill(jvm, signal.SIGKILL))
    running_again(before + 1)
    assert remains.living(old) == []

    publisher.ending.set()
    publisher.join()
    end = publisher.log.end()
    until(lambda: set(mailbox.reached().values()) == {end})
    old = session()
    supervisor.stop()
    assert remains.living(old) == []
    publisher.log.close()

    engine = versions.open(tmp_path / "index", versions.current(tmp_path / "index"))
    due = sorted(
        (
            row["subscription"],
            row["source"],
            row["event"],
            row["verdict"],
            dict(row["bindings"] or ()).get("t"),
        )
        for row in engine.publish_many(publisher.events).to_pylist()
    )
    told = mailbox.page(list(TEXTS), after=0, limit=1_000_000)
    assert [one.number for one in told] == sorted({one.number for one in told})
    events = {(one.source, one.id): one for one in publisher.events}
    assert all(one.event == events[one.event.source, one.event.id] for one in told if one.event)
    assert due == sorted(
        (one.subscription, one.event.source, one.event.id, one.kind.value, one.bindings.get("t"))
        for one in told
        if one.event
    )
    assert mailbox.totals()["events"] == len(publisher.events)
    assert not list((tmp_path / "output").glob("query=*/batch=*"))
    registry.close()
    mailbox.close()
