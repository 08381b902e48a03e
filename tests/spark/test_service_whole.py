"""The whole service under load, killed at any moment: who was told 202 gets every notification, once.

Service, driver, JVM and one of Spark's Python workers are killed, each when something was told just before; in
further rounds several also soon after each other, while others are still starting.

    pytest tests/spark/test_service_whole.py --rounds 10 --seed 7 -s
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.spark.crowd import (
    Asked,
    Known,
    Listener,
    Publisher,
    Receiver,
    Subscriber,
    all_told,
    subscribe,
    until,
)
from tidings import Engine
from tidings.service.matching import process_session

TEXTS = {
    "oil": "WHERE topic = 'oil'",
    "dear": "WHERE price > 950 OR (topic = 'gas' AND price < 100)",
    "storm": "SELECT ?x WHERE (?x, rss:title, ?t) AND ?t CONTAINS 'Storm'",
}
HOOKED = ("dear", "storm")
KINDS = ("service", "driver", "worker", "jvm")


class Serving:
    """`tidings serve`, started and killed; all that ever comes of it has a mark in its environment."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.options = folder, options
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.mark = f"TIDINGS_TEST_MARK={uuid.uuid4().hex}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        name, value = self.mark.split("=")
        quick = "-XX:TieredStopAtLevel=1"  # no JVM lives long enough here to earn the good compiler
        command = [str(Path(sys.executable).with_name("tidings")), "serve", "--data", "data"]
        command += ["--port", str(self.port), "--allow-network", "127.0.0.0/8", *self.options]
        with (self.folder / "said").open("ab") as said:
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env={**os.environ, name: value, "JDK_JAVA_OPTIONS": quick},
                start_new_session=True,
            )

    def driver(self) -> int | None:
        """The driver of the service that runs now."""
        assert self.process is not None
        for pid in self.living():
            with suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == self.process.pid and "tidings.service.matching.driver" in command_of(
                    pid
                ):
                    return pid
        return None

    def living(self) -> list[int]:
        """All that is left of it, in whatever session."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if self.mark.encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
        return found

    def end(self) -> None:
        """Kills all that is left of it."""
        for pid in self.living():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def command_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    serving = Serving(tmp_path)
    yield serving
    serving.end()
    print((tmp_path / "said").read_text(errors="replace")[-4_000:])  # which is shown if the test has failed


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


class Killer:
    """Kills at moments that a seed decides, and waits until what is sent afterwards is told of."""

    def __init__(self, serving: Serving, known: Known, listener: Listener, chance: random.Random) -> None:
        self.serving, self.known, self.listener, self.chance = serving, known, listener, chance
        self.took: list[str] = []

    def told_since(self, moment: float) -> bool:
        """Whether something that was sent after that moment has been heard of."""
        heard = self.listener.first_heard
        return any(self.known.sent.get(about, 0.0) > moment for about in list(heard)[-1_000:])

    def wait_for_told(self, moment: float) -> None:
        until(lambda: self.told_since(moment), "events are told of again", 300, self.known.faults)

    def kill(self, kind: str) -> None:
        time.sleep(self.chance.random() * 0.5)
        now = time.monotonic()
        driver = self.serving.driver()
        if kind == "service":
            self.restart(self.chance.choice((0.0, 2.0)) * self.chance.random())
        elif not self._strike(kind, driver):
            return
        self.wait_for_told(now)
        self.took.append(f"{kind} {time.monotonic() - now:.1f} s")
        if kind in ("service", "driver", "jvm") and driver is not None:
            until(lambda: not process_session.living(driver), f"nothing of driver {driver} is left", 60)

    def stumble(self) -> None:
        """A few kills one soon after the other, of whatever runs just then and of what has only begun to start; some
        take several at once."""
        for _ in range(self.chance.randrange(1, 4)):
            time.sleep(self.chance.random() * 6)
            driver = self.serving.driver()
            kind = self.chance.choice((*KINDS, "service and driver", "all"))
            self.took.append(kind)
            if kind == "all":
                self.serving.end()
            elif kind == "service and driver" and driver is not None:
                os.kill(driver, signal.SIGKILL)
            if kind in ("driver", "worker", "jvm"):
                self._strike(kind, driver)
            else:
                self.restart(self.chance.random())
        now = time.monotonic()
        self.wait_for_told(now)
        self.took.append(f"{time.monotonic() - now:.1f} s")

    def restart(self, pause: float) -> None:
        assert self.serving.process is not None
        self.serving.process.kill()
        self.serving.process.wait()
        time.sleep(pause)
        self.serving.start()

    def _strike(self, kind: str, driver: int | None) -> bool:
        """Kills a part of the driver's session, if it is there."""
        if driver is None:
            return False
        words = {
            "driver": "tidings.service.matching.driver",
            "worker": "tidings.spark.daemon",
            "jvm": "SparkSubmit",
        }
        found = [pid for pid in process_session.living(driver) if words[kind] in command_of(pid)]
        if not found:
            return False
        with suppress(ProcessLookupError):
            os.kill(driver if kind == "driver" else self.chance.choice(sorted(found)), signal.SIGKILL)
        return True


@pytest.mark.timeout(0)  # each step has a bound of its own
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes by /proc")
def test_whatever_is_killed_everything_accepted_is_told_once(
    serving: Serving, receiver: Receiver, rounds: int, seed: int
) -> None:
    chance = random.Random(seed)
    print(f"\nseed {seed}, {rounds} rounds")
    known = Known(serving.address)
    http = httpx.Client(timeout=60)
    began = time.monotonic()
    serving.start()
    asked: dict[str, Asked] = {}
    for name, text in TEXTS.items():
        one = subscribe(known, http, text, f"{receiver.address}/{name}" if name in HOOKED else None)
        assert one is not None
        asked[name] = one
    publishers = [
        Publisher(known, "one", 1, 0.03, seed),
        Publisher(known, "two", 1, 0.05, seed),
        Publisher(known, "many", 10, 0.2, seed),
    ]
    of_three = Listener(known, [one.id for one in asked.values()])
    of_all = Listener(known, None)
    subscriber = Subscriber(known, 3.0, seed)
    crowd = [*publishers, subscriber, of_three, of_all]
    for member in crowd:
        member.start()
    killer = Killer(serving, known, of_three, chance)
    killer.wait_for_told(began)
    killer.took.append(f"first start {time.monotonic() - began:.1f} s")

    for round in range(rounds):
        for kind in chance.sample(KINDS, len(KINDS)):
            killer.kill(kind)
        if round:
            killer.stumble()
        print(f"round {round + 1}: {', '.join(killer.took)}", flush=True)
        killer.took.clear()
        assert not known.faults, known.faults[:5]

    for member in (*publishers, subscriber):
        member.stop.set()
    for member in (*publishers, subscriber):
        member.join(300)
        assert not member.is_alive(), f"{member.name} gets no answer"
    accepted = [event for publisher in publishers for event in publisher.accepted]

    def answered() -> bool:
        status = known.ask(http, "GET", "/api/status")
        assert status is not None
        return status.json()["events"] >= len(accepted) and not status.json()["waiting_events"]

    until(answered, "all that was accepted is answered", 300, known.faults)
    status = known.ask(http, "GET", "/api/status")
    assert status is not None
    assert status.json()["events"] == len(accepted), "an event was answered twice, or never sent"

    # What the interface says, by subscription; and what one process would have said.
    begun = [*asked.values(), *subscriber.asked]
    told = {one.id: list(all_told(known, http, one.id)) for one in begun}
    engine = Engine()
    for one in begun:
        engine.subscribe(one.id, one.text)
    due: dict[str, Counter[tuple[str, str, str, str]]] = {one.id: Counter() for one in begun}
    for row in engine.publish_many(accepted).to_pylist():
        bindings = str(sorted(dict(row["bindings"] or ()).items()))
        due[row["subscription"]][row["source"], row["event"], row["verdict"], bindings] += 1
    for one in begun:
        items = told[one.id]
        numbers = [item["number"] for item in items]
        assert numbers == sorted(set(numbers))
        got = Counter(
            (i["event"]["source"], i["event"]["id"], i["kind"], str(sorted(i["bindings"].items())))
            for i in items
        )
        assert set(got.values()) <= {1}, f"told twice: {[key for key, n in got.items() if n > 1][:5]}"
        assert not got - due[one.id], f"not due: {list(got - due[one.id])[:5]}"
        # To one that was begun under load, what was sent before may have been told or not.
        missing = [key for key in due[one.id] - got if known.sent[key[:2]] > one.since]
        if one.id in {first.id for first in asked.values()}:
            missing = list(due[one.id] - got)
        assert not missing, f"{len(missing)} of {one.text} were not told: {missing[:5]}"
    assert all(told[one.id] for one in asked.values())
    sent = {(event.source, event.id): event for event in accepted}
    for item in (item for items in told.values() for item in items):
        event = sent[item["event"]["source"], item["event"]["id"]]
        assert item["event"]["attributes"] == event.attributes

    # What was heard of the stream, over all its connections.
    first = {item["number"] for one in asked.values() for item in told[one.id]}
    every = {item["number"] for items in told.values() for item in items}
    until(lambda: len(of_three.heard) >= len(first), "the listener has heard everything", 60)
    heard = [one.number for one in of_three.heard]
    assert heard == sorted(first)
    ids = {one.id for one in begun}  # there may be more, whose answer was lost
    with suppress(AssertionError):
        until(lambda: len([1 for one in of_all.heard if one.subscription in ids]) >= len(every), "", 30)
    heard = [one.number for one in of_all.heard if one.subscription in ids]
    assert max(Counter(heard).values()) == 1
    assert set(heard) == every, f"not heard: {sorted(every - set(heard))[:10]} of {len(every)}"

    # What webhooks brought: everything, in order; again only what had been under way.
    for name in HOOKED:
        items = {item["number"]: item["id"] for item in told[asked[name].id]}
        came = receiver.came[f"/{name}"]
        until(
            lambda items=items, came=came: items.keys() <= {n for n, _, _ in came},
            f"{name} is delivered",
            120,
        )
        assert list(dict.fromkeys(number for number, _, _ in came)) == list(items)
        assert {(number, hook) for number, hook, _ in came} == set(items.items())

    # An end in peace, and nothing is left.
    known.ending.set()
    assert serving.process is not None
    serving.process.send_signal(signal.SIGTERM)
    assert serving.process.wait(120) == 0
    assert serving.living() == []
    assert not known.faults, known.faults[:5]
    assert "Traceback" not in (serving.folder / "said").read_text(errors="replace")
    assert not list((serving.folder / "data" / "output").glob("query=*/batch=*"))
    http.close()
    again = sum(publisher.again for publisher in publishers)
    print(
        f"{len(accepted):,} events, {again} of them sent again; {len(every):,} notifications to {len(begun)}"
        f" subscriptions; {time.monotonic() - began:.0f} s",
        flush=True,
    )
    for member in (of_three, of_all):
        member.close()
        assert not member.is_alive()
