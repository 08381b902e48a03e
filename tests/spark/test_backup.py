"""A backup of a service under load, with joins, restored under another path after the service was killed: it goes on,
and each event that the backup has is told of once, whatever had happened to it when the backup was taken."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.spark.crowd import Known, all_told, until
from tests.spark.killing import Serving
from tidings import Client, Engine, Event, Table
from tidings.client import Subscription
from tidings.storage.event_log import EventLog

STOCKS = Table("stocks", {"symbol": "text", "per": "number"}, key=["symbol"])
REVIEWS = Table("reviews", {"symbol": "text", "analyst": "text", "rating": "integer"})
TABLES = """
[stocks]
columns = { symbol = "text", per = "number" }
key = ["symbol"]
[reviews]
columns = { symbol = "text", analyst = "text", rating = "integer" }
"""
JOIN = "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE stocks.per BETWEEN {} AND {} AND reviews.rating >= 3"
TEXTS = ("WHERE n >= 0", JOIN.format(20, 60), JOIN.format(0, 45))


class Load(threading.Thread):
    """Publishes rows and plain events, one by one, until it is stopped or nobody answers."""

    def __init__(self, client: Client, seed: int) -> None:
        super().__init__(daemon=True)
        self.client, self.chance = client, random.Random(seed)
        self.accepted: list[str] = []
        self.stop = threading.Event()

    def run(self) -> None:
        known: set[str] = set()
        while not self.stop.wait(0.03):
            symbol, number = f"S{self.chance.randrange(30)}", len(self.accepted)
            kind = self.chance.randrange(3)
            if kind == 0:
                act = Event.update if symbol in known else Event.insert
                known.add(symbol)
                event = act("stocks", {"symbol": symbol, "per": self.chance.randrange(100)})
            elif kind == 1:
                event = Event.insert(
                    "reviews", {"symbol": symbol, "analyst": f"A{number}", "rating": self.chance.randrange(6)}
                )
            else:
                event = Event("load", {"n": number}, id=f"plain {number}")
            try:
                self.accepted += self.client.publish(event).ids
            except Exception:
                return  # it was killed


def serving(folder: Path) -> Iterator[Serving]:
    folder.mkdir()
    (folder / "tables.toml").write_text(TABLES)
    served = Serving(folder, "--tables", "tables.toml")
    yield served
    served.end()
    if (folder / "said").exists():
        print((folder / "said").read_text(errors="replace")[-4_000:])


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Serving]:
    yield from serving(tmp_path / "here")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Serving]:
    yield from serving(tmp_path / "elsewhere")


def tidings(*words: object) -> None:
    command = [str(Path(sys.executable).with_name("tidings")), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def answers(served: Serving) -> bool:
    try:
        return httpx.get(f"{served.address}/health").status_code == 200
    except httpx.TransportError:
        return False


def told(address: str, subscription: str) -> list[dict[str, Any]]:
    time.sleep(0.3)  # it is asked again and again
    with httpx.Client(timeout=60) as http:
        return list(all_told(Known(address), http, subscription))


def net(changes: Iterator[tuple[str, str, dict[str, Any]]]) -> Counter[str]:
    """What rows are there after all changes."""
    rows: Counter[str] = Counter()
    for table, change, row in changes:
        rows[f"{table} {json.dumps(row, sort_keys=True)}"] += 1 if change == "+" else -1
    return +rows


def expected(log: Path, asked: list[Subscription]) -> dict[str, Counter[str]]:
    """What one process tells of all events of a log: the events of the plain subscription, the rows of the joins."""
    engine = Engine(tables=[STOCKS, REVIEWS])
    for one in asked:
        engine.subscribe(one.id, one.text)
    due: dict[str, list[Any]] = defaultdict(list)
    plain: Counter[str] = Counter()
    for batch in EventLog(log).read():
        for row in engine.publish_many(batch).to_pylist():
            if row["subscription"] is None:  # a change that is refused: the row is there already
                continue
            if row["changes"] is None:
                plain[row["event"]] += 1
            else:
                due[row["subscription"]] += [
                    (c["table"], c["change"], json.loads(c["row"])) for c in row["changes"]
                ]
    return {asked[0].id: plain, **{one.id: net(iter(due[one.id])) for one in asked[1:]}}


@pytest.mark.slow
@pytest.mark.timeout(0)  # each step has a bound of its own
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes by /proc")
def test_a_backup_under_load_is_restored_elsewhere_and_goes_on(
    here: Serving, elsewhere: Serving, tmp_path: Path, seed: int
) -> None:
    here.start()
    until(lambda: answers(here), "it answers", 120)
    client = Client(here.address)
    ended = client.subscribe(JOIN.format(1, 99), valid_for="never")  # its number is nobody else's afterwards
    asked = [client.subscribe(text, valid_for="never") for text in TEXTS]
    client.cancel(ended)
    load = Load(client, seed)
    load.start()
    until(lambda: all(len(told(here.address, one.id)) > 100 for one in asked), "the stream runs", 400)

    before = list(load.accepted)
    backup = tmp_path / "backup.tar"
    tidings("backup", backup, "--data", here.folder / "data")
    assert backup.stat().st_mode & 0o777 == 0o600
    assert not list((here.folder / "data").glob(".backup-*"))
    at_least = len(told(here.address, asked[0].id)) + 20
    until(lambda: len(told(here.address, asked[0].id)) > at_least, "it goes on", 200)
    here.end()
    load.join(60)
    last = max(item["number"] for one in asked for item in told_of(here, one.id))
    (here.folder / "data").rename(tmp_path / "lost")  # nothing may be read from there any more

    data = elsewhere.folder / "data"
    restored = time.time() * 1e6
    tidings("restore", backup, "--data", data)
    elsewhere.start()
    until(lambda: answers(elsewhere), "it answers", 120)
    with Client(elsewhere.address) as again:
        more = Load(again, seed + 1)
        more.start()
        until(lambda: len(more.accepted) > 300, "it accepts", 300)
        more.stop.set()
        more.join(60)
        again.publish(Event("load", {"n": 1}, id="the last"))

    def answered() -> bool:
        items = told(elsewhere.address, asked[0].id)
        waiting = httpx.get(f"{elsewhere.address}/api/status").json()["waiting_events"]
        return any(item["event"]["id"] == "the last" for item in items) and not waiting

    until(answered, "all is answered", 400)
    due = expected(data / "log", asked)
    in_log = {id for batch in EventLog(data / "log").read() for id in batch["id"].to_pylist()}
    assert set(before) <= in_log

    def whole() -> bool:
        return all(rows_of(told(elsewhere.address, one.id)) == due[one.id] for one in asked[1:])

    until(whole, "the joins' rows are what the log comes to", 200)
    items = told(elsewhere.address, asked[0].id)
    assert Counter(item["event"]["id"] for item in items) == due[asked[0].id]
    for one in asked[1:]:
        sequences: dict[str, list[int]] = defaultdict(list)
        heard = told(elsewhere.address, one.id)
        kinds = Counter(item["kind"] for item in heard)
        assert kinds["missed"] == 1  # a replica is told to ask for a snapshot
        for item in heard:
            if item["part"] is not None:
                sequences[item["part"]].append(item["sequence"])
        for numbers in sequences.values():
            before = sum(number < restored for number in numbers)
            after = [min(numbers[before:], default=0) + more for more in range(len(numbers) - before)]
            assert numbers == [*range(1, before + 1), *after]
    new = [item["number"] for item in items if item["event"]["id"] == "the last"]
    assert min(new) > last  # whoever had seen number `last` before hears of it


def rows_of(items: list[dict[str, Any]]) -> Counter[str]:
    return net((c["table"], c["change"], c["row"]) for item in items for c in item["changes"])


def told_of(served: Serving, subscription: str) -> list[dict[str, Any]]:
    """What the mailbox of a service that is gone has."""
    from tidings.service.settings import Settings
    from tidings.service.store.database import open_mailbox

    mailbox = open_mailbox(Settings(served.folder / "data"))
    try:
        return [{"number": one.number} for one in mailbox.page([subscription], limit=1)]
    finally:
        mailbox.close()
