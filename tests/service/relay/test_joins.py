"""Joins at a relay: subscribers get what they would get at the centre, and a change crosses the link once for all of them."""

from __future__ import annotations

import json
import random
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.kinds.joins.cases import Change, Changes, some_inserts
from tests.service.conftest import Running, Served
from tests.service.relay.test_relay import connected, relay_of, until
from tidings import Replica, Table
from tidings.errors import EventError
from tidings.kinds.joins.naive import Naive
from tidings.kinds.joins.schema.declarations import read_tables
from tidings.kinds.joins.schema.table import plain
from tidings.language.parser import parse
from tidings.model.notification import Notification, RowChange
from tidings.service.matching.engine_settings import fingerprint
from tidings.service.model import Notice, NotificationKind
from tidings.service.relay.upstream_tables import upstream_tables

TABLES = """
[stocks]
columns = { symbol = "integer", per = "number", note = "text" }
key = ["symbol"]
payload = ["note"]

[reviews]
columns = { symbol = "integer", rating = "integer" }
"""
TEXTS = [
    "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per >= 0 AND rating >= 1",
    "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per >= 0 AND rating >= 2",
    "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE rating IN (1, 3)",
    "SELECT * FROM stocks WHERE per >= 0 AND symbol < 3",
    "SELECT * FROM reviews",
]


@pytest.fixture
def declared(tmp_path: Path) -> Path:
    (tmp_path / "tables.toml").write_text(TABLES)
    return tmp_path / "tables.toml"


@contextmanager
def chain(tmp_path: Path, declared: Path, relays: int) -> Iterator[list[Served]]:
    """A centre, and relays below each other."""
    with ExitStack() as stack:
        found = [stack.enter_context(Running(data=tmp_path / "centre", tables=declared))]
        for number in range(relays):
            below = relay_of(found[-1], data=tmp_path / f"relay{number}", tables=declared)
            found.append(stack.enter_context(below))
            until(lambda: connected(found[-1]))
        yield found


def line(change: Any, id: str) -> dict[str, Any]:
    row = {name: plain(value) for name, value in change.row.items()}
    before = change.before and {name: plain(value) for name, value in change.before.items()}
    event = {"type": f"tidings.{change.op}", "table": change.table, "row": row, "id": id, "source": "db"}
    return event | ({"before": before} if before else {})


class Subscriber:
    """A replica at some service, and what it was told."""

    def __init__(self, at: Served, text: str, tables: list[Table]) -> None:
        self.at, self.text, self.copy = at, text, Replica(text, tables)
        made = at.subscribe(text)
        self.id, self.ticket = made["id"], made["ticket"]
        self.request_snapshot()
        self.seen, self.matches = 0, list[tuple[str, int]]()
        until(lambda: self.take() or self.copy.missing is None)

    def request_snapshot(self) -> None:
        path = f"/api/subscriptions/{self.id}/snapshot"
        answer = self.at.http.post(path, headers={"Tidings-Ticket": self.ticket})
        assert answer.is_success, answer.text

    def take(self) -> None:
        for stored in self.at.service.mailbox.page([self.id], after=self.seen, limit=500):
            self.seen = stored.number
            changes = tuple(RowChange(one["table"], one["change"], one["row"]) for one in stored.changes)
            notification = Notification(
                self.id, "", "", stored.kind.value, {}, None, stored.part, stored.sequence, changes
            )
            self.copy.apply(notification)
            if stored.kind.value == "match":
                assert stored.event is not None
                self.matches.append((stored.event.id, stored.sequence or 0))

    def form(self) -> Counter[tuple[str, str]]:
        names = {table for table in ("stocks", "reviews") if table in self.text}
        return Counter((name, json.dumps(row)) for name in names for row in self.copy.rows(name))


def expected(naive: Naive, id: str) -> Counter[tuple[str, str]]:
    return Counter(
        {
            (name, json.dumps(json.loads(naive.tables[name].text(row)))): copies
            for (name, row), copies in naive.forms[id].items()
        }
    )


def changes_for(naive: Naive, tables: list[Table], seed: int, count: int) -> list[Any]:
    """Changes that can be applied."""
    there = Naive(tables)
    there.rows = {name: rows.copy() for name, rows in naive.rows.items()}
    found = []
    for change in islice(Changes(random.Random(seed), tables, there.rows), 4 * count):
        try:
            there.apply(*change)
        except EventError:
            continue
        found.append(change)
    return found[:count]


class Trial:
    """Changes at the centre, and subscribers below who are compared with the definition after each."""

    def __init__(self, centre: Served, tables: list[Table]) -> None:
        self.centre, self.tables, self.naive = centre, tables, Naive(tables)
        self.people: list[Subscriber] = []
        self.told: Counter[str] = Counter()
        self._count = 0

    def subscribe(self, at: Served, texts: list[str]) -> None:
        for text in texts:
            person = Subscriber(at, text, self.tables)
            self.naive.subscribe(person.id, parse(text))
            assert person.form() == expected(self.naive, person.id), text
            self.people.append(person)

    def insert(self) -> None:
        for change in some_inserts(random.Random(1), self.tables):
            self.naive.apply(*change)
            self.publish(change)

    def publish(self, change: Any) -> str:
        self._count += 1
        self.centre.publish(line(change, str(self._count)))
        return str(self._count)

    def change(self, count: int, *, compared: bool = True) -> None:
        for change in changes_for(self.naive, self.tables, self._count, count):
            due = self.naive.apply(*change)
            event = self.publish(change)
            self.told.update(due.keys())
            if compared:
                self.compare()
                assert all(one.matches[-1][0] == event for one in self.people if one.id in due)

    def compare(self) -> None:
        for person in self.people:
            until(lambda: person.take() or len(person.matches) >= self.told[person.id])  # noqa: B023
            assert person.copy.missing is None
            assert person.form() == expected(self.naive, person.id), person.text
            assert [sequence for _, sequence in person.matches] == list(range(1, self.told[person.id] + 1))


@pytest.mark.parametrize("relays", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_subscribers_at_a_relay_equal_naive(tmp_path: Path, declared: Path, relays: int) -> None:
    with chain(tmp_path, declared, relays) as services:
        trial = Trial(services[0], read_tables(declared))
        trial.insert()
        for relay in services[1:]:
            trial.subscribe(relay, [*TEXTS, TEXTS[0]])
        trial.change(12)
        assert len(trial.told) >= 5
        trial.subscribe(services[0], TEXTS[:1])  # the centre notifies its own by deltas, as ever
        trial.change(3)
        # At the centre no member has a notification of its own.
        (link,) = services[0].service.downstream.links()
        assert any(id.startswith("(messages)") for id in link.ids)
        members = [id for id in link.ids if id.startswith("r")]
        stored = services[0].service.mailbox.page(members, after=0, limit=500)
        assert {one.event.type for one in stored if one.event} == {"tidings.member-rows"}


@pytest.mark.parametrize(
    "state",
    [
        pytest.param("kept", marks=pytest.mark.slow),
        "old",
        pytest.param("lost", marks=pytest.mark.slow),
        pytest.param("damaged", marks=pytest.mark.slow),
    ],
)
def test_a_relay_goes_on_after_a_restart_or_a_kill(tmp_path: Path, declared: Path, state: str) -> None:
    """A kill leaves a state that is older than the mailbox; the log is read again from there. Without any state the rows
    come again, and subscribers are sent a snapshot."""
    tables, data = read_tables(declared), tmp_path / "relay"
    with Running(data=tmp_path / "centre", tables=declared) as centre:
        trial = Trial(centre, tables)
        with relay_of(centre, data=data, tables=declared) as relay:
            until(lambda: connected(relay))
            trial.insert()
            trial.subscribe(relay, TEXTS[:3])
            trial.change(3)
            relay.service._edge._save()
            old = (data / "joins.state").read_bytes()
            trial.change(4)
        trial.change(4, compared=False)
        if state == "lost":
            (data / "joins.state").unlink()
        if state == "damaged":  # as of another release
            (data / "joins.state").write_bytes(old[:20] + b"\x95" + old[21:])
        if state == "old":
            (data / "joins.state").write_bytes(old)
        with relay_of(centre, data=data, tables=declared) as relay:
            for person in trial.people:
                person.at = relay
            if state in ("lost", "damaged"):
                for count in (0, 8):
                    for change in changes_for(trial.naive, tables, 99, count):
                        trial.naive.apply(*change)
                        trial.publish(change)
                    for person in trial.people:
                        due = expected(trial.naive, person.id)
                        until(lambda: person.take() or (person.copy.missing is None and person.form() == due))  # noqa: B023
                return
            trial.compare()
            trial.change(4)


def test_rows_come_again_when_something_may_be_missing(tmp_path: Path, declared: Path) -> None:
    """As after the centre has lost its checkpoint: its members have a notice in the mailbox."""
    with chain(tmp_path, declared, 1) as (centre, relay):
        trial = Trial(centre, read_tables(declared))
        trial.insert()
        trial.subscribe(relay, [TEXTS[4]])
        (person,) = trial.people
        edge = relay.service._edge._edge
        for part in edge._members[person.id].parts.values():
            part.held.clear()
        (member,) = centre.service.downstream.links()[0].member_ids
        centre.service.mailbox.notify([Notice(member, NotificationKind.MISSED, "missed tables", 1.0, "lost")])
        trial.told[person.id] += 1
        until(lambda: person.take() or person.matches)
        assert edge.rows(person.id)[0].result == trial.naive.forms[person.id]


@pytest.mark.slow
def test_a_change_crosses_the_link_once_for_all(tmp_path: Path, declared: Path) -> None:
    with chain(tmp_path, declared, 1) as (centre, relay):
        trial = Trial(centre, read_tables(declared))
        trial.subscribe(relay, [f"{TEXTS[3]} AND per < {1_000 + number}" for number in range(40)])
        (before,) = centre.service.downstream.relays.all()
        for number in range(10):
            row = {"symbol": 1, "per": float(number), "note": "x" * 2_000}
            change = Change("insert" if number == 0 else "update", "stocks", row)
            trial.told.update(trial.naive.apply(*change).keys())
            trial.publish(change)
            trial.compare()
        (after,) = centre.service.downstream.relays.all()
        assert after.messages - before.messages == 10
        sent = after.bytes - before.bytes
        each = sum(
            len(json.dumps(relay.service.to_json(one)["changes"]))
            for person in trial.people
            for one in relay.service.mailbox.page([person.id], after=0, limit=100)
        )
        print(f"{sent:,} bytes on the link, {each:,} of deltas")
        assert sent < each / 50


def test_publishers_cannot_make_messages_and_relays_know_the_tables(tmp_path: Path, declared: Path) -> None:
    with chain(tmp_path, declared, 0) as (centre,):
        url = centre.url
        found = upstream_tables(["http://127.0.0.1:9", url], None, tmp_path)
        assert found is not None
        assert read_tables(found) == read_tables(declared)
        answer = centre.http.post("/api/events", json=[{"type": "tidings.messages", "id": "0/1 1"}])
        assert "made by a stream alone" in answer.text
    assert upstream_tables([url], None, tmp_path) == found  # nobody answers any more


def test_a_relay_that_was_started_first_learns_the_tables(tmp_path: Path, declared: Path) -> None:
    with ExitStack() as stack:
        centre = Running(data=tmp_path / "centre", tables=declared)
        centre._listener.close()  # nobody answers there yet
        data, url = tmp_path / "relay", centre.settings.address
        assert upstream_tables([url], None, data) is None
        relay = stack.enter_context(Running(data=data, matching="process", upstream=(url,)))
        assert relay.http.post("/api/subscriptions", json={"text": TEXTS[0]}).status_code == 422
        plain = relay.subscribe("WHERE topic = 'sport'")["id"]
        centre._listener = socket.create_server(("127.0.0.1", centre.settings.port))
        trial = Trial(stack.enter_context(centre), read_tables(declared))
        until(lambda: connected(relay))
        trial.insert()
        trial.subscribe(relay, TEXTS[:2])
        trial.change(3)
        trial.centre.publish({"id": "1", "source": "s", "topic": "sport"})
        relay.notifications(plain, 1)
        tables = [served.http.get("/api/tables").json() for served in (relay, trial.centre)]
        assert tables[0] == tables[1]  # those of a relay below
        built = (data / "index" / "FINGERPRINT").read_text()
        kept = upstream_tables([url], None, data)
        assert kept is not None
        relay.service.definitions.set_tables(kept)
        assert (
            fingerprint(replace(relay.service.settings, tables=kept), relay.service.registry.definitions())
            == built
        )
