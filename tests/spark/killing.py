"""A service under load whose processes are killed at moments that a seed decides; `Trial` has its steps and checks.

Killed are the service, the driver, the JVM, one of Spark's Python workers, a compaction under way (or the service
meanwhile), and PostgreSQL if it is the store. Every other kill waits until events that were sent after it are told of;
the others are soon followed by the next one, while processes are still starting.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from tests.postgresql import Server
from tests.spark.crowd import (
    Asked,
    Known,
    Listener,
    Publisher,
    Receiver,
    RowPublisher,
    Subscriber,
    all_told,
    subscribe,
    until,
)
from tidings import Engine, Table
from tidings.model.notification import Notification
from tidings.service.matching import process_session
from tidings.storage.event_log import EventLog

TEXTS = {
    "oil": "WHERE topic = 'oil'",
    "dear": "WHERE price > 950 OR (topic = 'gas' AND price < 100)",
    "storm": "SELECT ?x WHERE (?x, rss:title, ?t) AND ?t CONTAINS 'Storm'",
}
JOINS = {
    "cheap": "SELECT * FROM stocks WHERE per < 40",
    "rated": "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per BETWEEN 10 AND 70 AND rating >= 4",
}
TABLES = [
    Table("stocks", {"symbol": "text", "per": "number"}, key=["symbol"]),
    Table("reviews", {"id": "integer", "symbol": "text", "rating": "integer"}, key=["id"]),
]
DECLARED = """
[stocks]
columns = { symbol = "text", per = "number" }
key = ["symbol"]
[reviews]
columns = { id = "integer", symbol = "text", rating = "integer" }
key = ["id"]
"""
HOOKED = ("dear", "storm")
KINDS = ("service", "driver", "worker", "jvm", "compaction")
PATIENCE = 30.0  # seconds in which a process should be there
_WORDS = {
    "driver": "tidings.service.matching.driver",
    "worker": "-m tidings.spark.daemon",
    "jvm": "/pyspark/conf:",  # not what starts it, whose work may be done
}


class Serving:
    """`tidings serve`, started and killed; all that ever comes of it has a mark in its environment."""

    def __init__(self, folder: Path, *options: str, command: str = "serve", data: str = "data") -> None:
        self.folder, self.options, self.command, self.data = folder, options, command, data
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.mark = f"TIDINGS_TEST_MARK={uuid.uuid4().hex}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        name, value = self.mark.split("=")
        script = Path(__file__).with_name("quick_serve.py")
        command = [sys.executable, str(script), self.command, "--data", self.data]
        command += ["--port", str(self.port), "--allow-network", "127.0.0.0/8", *self.options]
        with (self.folder / "said").open("ab") as said:
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env={**os.environ, name: value},
                start_new_session=True,
            )

    def driver(self) -> int | None:
        """The driver of the service that runs now."""
        assert self.process is not None
        for pid in self.living():
            if parent_of(pid) == self.process.pid and _WORDS["driver"] in command_of(pid):
                return pid
        return None

    def compaction(self) -> int | None:
        """A process that folds the index, if there is one."""
        found = (pid for pid in self.living() if "tidings.service.matching.compaction" in command_of(pid))
        return next(found, None)

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


def parent_of(pid: int) -> int | None:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return None


def command_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


class Killer:
    """Kills at moments that a seed decides. `killed` counts by kind."""

    def __init__(
        self, serving: Serving, known: Known, listener: Listener, chance: random.Random, store: Server | None
    ) -> None:
        self.serving, self.known, self.listener, self.chance = serving, known, listener, chance
        self._store = store
        self.kinds = (*KINDS, "store") if store else KINDS
        self.killed: Counter[str] = Counter()
        self.asked: list[Asked] = []
        self.took: list[str] = []

    def told_since(self, moment: float) -> bool:
        """Whether something that was sent after that moment has been heard of."""
        heard = self.listener.first_heard
        return any(self.known.sent.get(about, 0.0) > moment for about in list(heard)[-1_000:])

    def wait_for_told(self, moment: float) -> None:
        until(lambda: self.told_since(moment), "events are told of again", 300, self.known.faults)

    def kill(self, kind: str, *, wait: bool) -> None:
        """Kills one process, as soon as there is one of this kind. Waits until events are told of again, and until
        nothing is left of a driver that had to end; or only for a moment."""
        time.sleep(self.chance.random() * 0.5)
        deadline = time.monotonic() + PATIENCE
        while True:
            now, driver = time.monotonic(), self.serving.driver()
            if self._strike(kind, driver):
                break
            if now > deadline:
                return
            time.sleep(0.1)
        self.killed[kind] += 1
        if not wait:
            self.took.append(kind)
            time.sleep(self.chance.random() * 6)
            return
        self.wait_for_told(now)
        self.took.append(f"{kind} {time.monotonic() - now:.1f} s")
        if kind in ("service", "driver", "jvm") and driver is not None:
            with suppress(AssertionError):
                until(lambda: not process_session.living(driver), "", 60)
            left = [command_of(pid) for pid in process_session.living(driver)]
            assert not left, f"{kind} was killed, and is left of driver {driver} after a minute: {left}"

    def _strike(self, kind: str, driver: int | None) -> bool:
        if kind == "service":
            self._restart(self.chance.choice((0.0, 2.0)) * self.chance.random())
            return True
        if kind == "store":
            assert self._store is not None
            with self._store.stopped():
                time.sleep(self.chance.choice((0.0, 4.0)) * self.chance.random())
            return True
        if kind == "compaction":
            return self._strike_compaction()
        if driver is None:
            return False
        found = [pid for pid in process_session.living(driver) if _WORDS[kind] in command_of(pid)]
        if kind == "jvm":  # not a child that it has just forked
            found = [pid for pid in found if parent_of(pid) == driver]
        if not found:
            return False
        with suppress(ProcessLookupError):
            os.kill(driver if kind == "driver" else self.chance.choice(sorted(found)), signal.SIGKILL)
        return True

    def _strike_compaction(self) -> bool:
        """Subscribes until the index is folded, and kills the process that does it, or the service meanwhile."""
        with httpx.Client(timeout=60) as http:
            for number in range(60):
                asked = subscribe(self.known, http, f"WHERE topic = 'corn' AND price = {number}")
                if asked is not None:
                    self.asked.append(asked)
                if (folding := self.serving.compaction()) is not None:
                    break
            else:
                return False
        time.sleep(self.chance.random() * 1.5)
        if self.chance.random() < 0.5:
            self._restart(0.0)
        else:
            with suppress(ProcessLookupError):
                os.kill(folding, signal.SIGKILL)
        return True

    def _restart(self, pause: float) -> None:
        assert self.serving.process is not None
        self.serving.process.kill()
        self.serving.process.wait()
        time.sleep(pause)
        self.serving.start()


class Trial:
    """One service, those around it, and what is killed; then everything that was promised is checked."""

    def __init__(self, serving: Serving, receiver: Receiver, seed: int, store: Server | None = None) -> None:
        self.serving, self.receiver, self.began = serving, receiver, time.monotonic()
        self.known, self.http = Known(serving.address), httpx.Client(timeout=60)
        (serving.folder / "tables.toml").write_text(DECLARED)
        serving.options += ("--tables", "tables.toml")
        serving.start()
        self.asked = {name: self._subscribe(name, text) for name, text in {**TEXTS, **JOINS}.items()}
        self.rows = RowPublisher(self.known, "rows", 3, 0.1, seed)
        self.publishers = [
            Publisher(self.known, "one", 1, 0.03, seed),
            Publisher(self.known, "two", 1, 0.05, seed),
            Publisher(self.known, "many", 10, 0.2, seed),
            self.rows,
        ]
        self.of_asked = Listener(self.known, [one.id for one in self.asked.values()])
        self.of_all = Listener(self.known, None)
        self.subscriber = Subscriber(self.known, 3.0, seed)
        for member in (*self.publishers, self.subscriber, self.of_asked, self.of_all):
            member.start()
        self.killer = Killer(serving, self.known, self.of_asked, random.Random(seed), store)
        self.killer.wait_for_told(self.began)
        print(f"\nseed {seed}: first start {time.monotonic() - self.began:.1f} s", flush=True)

    def _subscribe(self, name: str, text: str) -> Asked:
        hook = f"{self.receiver.address}/{name}" if name in HOOKED else None
        asked = subscribe(self.known, self.http, text, hook)
        assert asked is not None
        return asked

    def kill(self, *kinds: str, wait: float = 1.0) -> None:
        """Kills one after the other, with this share of waiting for each."""
        for kind in kinds:
            self.killer.kill(kind, wait=self.killer.chance.random() < wait)
            assert not self.known.faults, self.known.faults[:5]
        self.killer.wait_for_told(time.monotonic())
        print(", ".join(self.killer.took), flush=True)
        self.killer.took.clear()

    def check(self) -> None:
        """Stops publishing; everything that was accepted must have been told, once, in the log's order."""
        self._finish()
        self.begun = [*self.asked.values(), *self.subscriber.asked, *self.killer.asked]
        self.told = {one.id: list(all_told(self.known, self.http, one.id)) for one in self.begun}
        self._check_log()
        self._check_matches()
        self._check_joins()
        self._check_listeners()
        self._check_webhooks()
        self._end()
        self._report()

    def _finish(self) -> None:
        for member in (*self.publishers, self.subscriber):
            member.stop.set()
        for member in (*self.publishers, self.subscriber):
            member.join(300)
            assert not member.is_alive(), f"{member.name} gets no answer"
        self.accepted = [event for publisher in self.publishers for event in publisher.accepted]
        # Changes of rows are read by the query that matches, and by the one that keeps joins.
        expected = len(self.accepted) + len(self.rows.accepted)

        def status() -> dict[str, Any]:
            answer = self.known.ask(self.http, "GET", "/api/status")
            assert answer is not None
            return dict(answer.json())

        def answered() -> bool:
            now = status()
            return now["events"] >= expected and not now["waiting_events"]

        until(answered, "all that was accepted is answered", 300, self.known.faults)
        assert status()["events"] == expected, "an event was answered twice, or never sent"

    def _check_log(self) -> None:
        """The log has what was accepted, each once; and every subscription was told in its order."""
        batches = EventLog(self.serving.folder / "data" / "log").read()
        logged = [
            about
            for batch in batches
            for about in zip(batch["source"].to_pylist(), batch["id"].to_pylist(), strict=True)
        ]
        assert Counter(logged) == Counter((event.source, event.id) for event in self.accepted)
        place = {about: number for number, about in enumerate(logged)}
        for items in self.told.values():
            numbers = [item["number"] for item in items]
            assert numbers == sorted(set(numbers))
            places = [place[item["event"]["source"], item["event"]["id"]] for item in items]
            assert places == sorted(places), "a subscription was told of a later event first"

    def _check_matches(self) -> None:
        engine = self._engine()
        due: dict[str, Counter[tuple[str, ...]]] = {one.id: Counter() for one in self.begun}
        for row in engine.publish_many(self.accepted).to_pylist():
            if row["subscription"] is not None:
                bindings = str(sorted(dict(row["bindings"] or ()).items()))
                due[row["subscription"]][row["source"], row["event"], row["verdict"], bindings] += 1
        first = {self.asked[name].id for name in TEXTS}
        for one in self.begun:
            if one.id in {self.asked[name].id for name in JOINS}:
                continue
            got = Counter(
                (i["event"]["source"], i["event"]["id"], i["kind"], str(sorted(i["bindings"].items())))
                for i in self.told[one.id]
            )
            assert set(got.values()) <= {1}, f"told twice: {[key for key, n in got.items() if n > 1][:5]}"
            assert not got - due[one.id], f"not due: {list(got - due[one.id])[:5]}"
            # To one that was begun under load, what was sent before may have been told or not.
            missing = [
                key
                for key in due[one.id] - got
                if one.id in first or self.known.sent[key[0], key[1]] > one.since
            ]
            assert not missing, f"{len(missing)} of {one.text} were not told: {missing[:5]}"
        assert all(self.told[id] for id in first)
        sent = {(event.source, event.id): event for event in self.accepted}
        for item in (item for items in self.told.values() for item in items):
            event = sent[item["event"]["source"], item["event"]["id"]]
            assert item["event"]["attributes"] == event.attributes

    def _engine(self) -> Engine:
        engine = Engine(tables=TABLES)
        for one in self.begun:
            engine.subscribe(one.id, one.text)
        return engine

    def _check_joins(self) -> None:
        """Rows gained and lost by each event as one process says it, and sequences without a gap."""
        ids = [self.asked[name].id for name in JOINS]
        due: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for one in Notification.from_table(self._engine().publish_many(self.rows.accepted)):
            for change in one.changes if one.subscription in ids else ():
                row = f"{change.table} {json.dumps(change.row, sort_keys=True)}"
                due[one.subscription or "", one.event][row] += 1 if change.change == "+" else -1
        got: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        last: Counter[tuple[str, str]] = Counter()
        for id in ids:
            assert self.told[id], "no change of rows was told"
            for item in self.told[id]:
                last[id, item["part"]] += 1
                assert item["sequence"] == last[id, item["part"]], f"a gap before {item}"
                for change in item["changes"]:
                    row = f"{change['table']} {json.dumps(change['row'], sort_keys=True)}"
                    got[id, item["event"]["id"]][row] += 1 if change["change"] == "+" else -1
        assert _net(got) == _net(due)

    def _check_listeners(self) -> None:
        """What was heard of the stream, over all its connections."""
        first = {item["number"] for one in self.asked.values() for item in self.told[one.id]}
        every = {item["number"] for items in self.told.values() for item in items}
        until(lambda: len(self.of_asked.heard) >= len(first), "the listener has heard everything", 60)
        assert [one.number for one in self.of_asked.heard] == sorted(first)
        ids = {one.id for one in self.begun}  # there may be more, whose answer was lost
        with suppress(AssertionError):
            until(
                lambda: len([1 for one in self.of_all.heard if one.subscription in ids]) >= len(every), "", 30
            )
        heard = [one.number for one in self.of_all.heard if one.subscription in ids]
        assert max(Counter(heard).values()) == 1
        assert set(heard) == every, f"not heard: {sorted(every - set(heard))[:10]} of {len(every)}"

    def _check_webhooks(self) -> None:
        """Everything came, in order; again only what had been under way."""
        for name in HOOKED:
            items = {item["number"]: item["id"] for item in self.told[self.asked[name].id]}
            came = self.receiver.came[f"/{name}"]
            until(
                lambda items=items, came=came: items.keys() <= {n for n, _, _ in came},
                f"{name} is delivered",
                120,
            )
            assert list(dict.fromkeys(number for number, _, _ in came)) == list(items)
            assert {(number, hook) for number, hook, _ in came} == set(items.items())

    def _end(self) -> None:
        """An end in peace, and nothing is left."""
        self.known.ending.set()
        assert self.serving.process is not None
        self.serving.process.send_signal(signal.SIGTERM)
        assert self.serving.process.wait(120) == 0
        until(lambda: not self.serving.living(), "nothing of the service is left", 30)
        assert not self.known.faults, self.known.faults[:5]
        assert "Traceback" not in (self.serving.folder / "said").read_text(errors="replace")
        assert not list((self.serving.folder / "data" / "output").glob("query=*/batch=*"))
        self.http.close()
        for member in (self.of_asked, self.of_all):
            member.close()
            assert not member.is_alive()

    def _report(self) -> None:
        again = sum(publisher.again for publisher in self.publishers)
        count = sum(map(len, self.told.values()))
        joined = sum(len(self.told[self.asked[name].id]) for name in JOINS)
        print(
            f"{self.killer.killed.total()} kills ({dict(self.killer.killed)}): {len(self.accepted):,} events,"
            f" {again} of them sent again; {count:,} notifications to {len(self.begun)} subscriptions, {joined:,} of"
            f" them of joins; 0 lost, 0 doubled, in order; {time.monotonic() - self.began:.0f} s",
            flush=True,
        )


def _net(changes: dict[tuple[str, str], Counter[str]]) -> dict[tuple[str, str], dict[str, int]]:
    found = {key: {row: count for row, count in rows.items() if count} for key, rows in changes.items()}
    return {key: rows for key, rows in found.items() if rows}
