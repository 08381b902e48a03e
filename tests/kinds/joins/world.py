"""A world to try everything in: an engine, the definition, DuckDB and replicas, told of the same random changes.

Each step does something that a user may do and compares: what every subscription is told with the definition, what
every replica holds with DuckDB.
"""

from __future__ import annotations

import json
import random
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.kinds.joins.cases import Change, Changes, some_inserts, some_query, some_tables
from tests.kinds.joins.sql import Sql, flat
from tidings import Engine, Event, Replica
from tidings.engine.engine import EmptySubscription
from tidings.errors import EventError
from tidings.kinds.joins.naive import Form, Joined, Naive
from tidings.kinds.joins.payload_once import once
from tidings.kinds.joins.schema.table import plain
from tidings.language.parser import parse
from tidings.language.query import Query
from tidings.model.event import to_table
from tidings.model.notification import Notification, RowChange

_START = datetime(2030, 1, 1, tzinfo=UTC)
_TEMPLATE = (
    "SELECT * FROM t0 JOIN t1 USING (whole) WHERE t0.whole BETWEEN $low AND $high AND t1.whole <= $most"
)


@dataclass
class Standing:
    """What the world knows of a live subscription; few have a replica, because DuckDB is asked for each."""

    text: str
    replica: Replica | None
    until: int | None = None
    sequence: int = 0
    is_behind: bool = False
    """A notification was lost on the way to the replica."""


@dataclass
class Sent:
    event: Event
    change: Change
    is_late: bool = False


@dataclass
class Tally:
    """How much was compared."""

    changes: int = 0
    refused: int = 0
    late: int = 0
    notified: int = 0
    joined: int = 0
    short: int = 0
    """Notifications without some payload."""
    sql: int = 0
    gaps: int = 0
    steps: Counter[str] = field(default_factory=Counter)

    def __iadd__(self, other: Tally) -> Tally:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        return self


class World:
    def __init__(self, seed: int, folder: Path, replicas: int = 5) -> None:
        self.rng, self.folder = random.Random(seed), folder
        self.tables = some_tables(self.rng, self.rng.choice((2, 2, 3, 3, 4, 5, 8)))
        self.engine, self.naive, self.sql = Engine(tables=self.tables), Naive(self.tables), Sql(self.tables)
        self.standing: dict[str, Standing] = {}
        self.tally, self._replicas = Tally(), replicas
        self._clock, self._count = 0, 0
        self._sequences: dict[str, int] = {}
        self._sent: list[Sent] = []
        for _ in range(10):
            self.subscribe()
        self.deliver(some_inserts(self.rng, self.tables), "many")
        self._changes = iter(Changes(self.rng, self.tables, self.naive.rows))

    def step(self) -> None:
        does = self.rng.choices(
            ("change", "subscribe", "table", "unsubscribe", "reload", "truncate", "look"),
            (30, 5, 1, 3, 1, 0.3, 2),
        )[0]
        self.tally.steps[does] += 1
        if does == "change":
            size, route = (
                self.rng.choice((1, 1, 2, 5)),
                self.rng.choice(("one", "many", "lines", "columns", "joined", "once")),
            )
            self.deliver(list(islice(self._changes, size)), route)
        elif does == "truncate":
            self.deliver([Change("truncate", self.rng.choice(self.tables).name, {})], "many")
            self._changes = iter(Changes(self.rng, self.tables, self.naive.rows))
        else:
            getattr(self, does)()

    def subscribe(self) -> None:
        """A new one, or one that takes the place of another; sometimes for a few changes only."""
        replaced = self.rng.random() < 0.3 and self.standing
        id = self.rng.choice(list(self.standing)) if replaced else f"s{self._new()}"
        case = some_query(self.rng, self.tables)
        until = self._clock + self.rng.randint(0, 12) if self.rng.random() < 0.2 else None
        valid_until = None if until is None else _at(until)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EmptySubscription)
            self.engine.subscribe(id, case.text, valid_until=valid_until)
        self._stand(id, case.text, case.query, until)

    def table(self) -> None:
        count = self.rng.choice((0, 3, 9))
        ids = self.rng.sample([*self.standing, *(f"s{self._new()}" for _ in range(count))], count)
        columns = {name: [self.rng.randint(-1, 4) for _ in ids] for name in ("low", "high", "most")}
        rows = pa.table(
            {"id": pa.array(ids, pa.string()), **{n: pa.array(c, pa.int64()) for n, c in columns.items()}}
        )
        self.engine.subscribe_table(_TEMPLATE, rows)
        for id in ids:
            text = self.engine.text(id)
            self._stand(id, text, parse(text), None)

    def unsubscribe(self) -> None:
        id = self.rng.choice([*self.standing, "nobody"])
        assert self.engine.unsubscribe(id) == (id in self.standing)
        assert id not in self.engine
        assert not self.engine.unsubscribe(id)
        self._forget(id)

    def reload(self) -> None:
        folder = self.folder / str(self._new())
        self.engine.save(folder)
        self.engine = Engine.load(folder)
        assert {id: self.engine.text(id) for id in self.standing} == {
            id: standing.text for id, standing in self.standing.items()
        }

    def look(self) -> None:
        """Snapshots, by the engine's method and by an event, change nothing and tell all."""
        for id, standing in self.standing.items():
            snapshot = self.engine.snapshot(id)
            (asked,) = self.engine.publish(Event.snapshot(id))
            assert (
                (asked.sequence, asked.part)
                == (snapshot.sequence, snapshot.part)
                == (standing.sequence, "0/1")
            )
            assert self._form(snapshot) == self._form(asked) == (self.naive.forms[id], Counter())

    def deliver(self, changes: Sequence[Change], route: str) -> None:
        """Changes by one of the ways there are, and all comparisons."""
        sent = []
        for change in changes:
            while self._sent and self.rng.random() < 0.05:
                old = self.rng.choice(self._sent)
                sent.append(Sent(self._renamed(old.event), old.change, is_late=True))
            sent.append(
                self._event(change, "" if route == "joined" else self.rng.choice(("", "db", "other")))
            )
        found = self._notifications([message.event for message in sent], route)
        for message in sent:
            self._clock = int(message.event.id.removeprefix("e"))
            self._end_old()
            self._compare(message, found.pop(message.event.id, []), route)
        assert not found
        self._mend()

    def _notifications(self, events: list[Event], route: str) -> dict[str, list[Notification]]:
        if route == "one":
            found: Iterator[Notification] = (n for event in events for n in self.engine.publish(event))
        elif route == "lines":
            found = Notification.from_table(self.engine.publish_lines("\n".join(map(self._line, events))))
        elif route == "columns":
            table = to_table(events)
            deltas = self.engine.correlate(table)
            assert len(deltas) == len(deltas.table_of_deltas())
            found = Notification.from_table(deltas.notifications(table))
        elif route == "once":
            found = Notification.from_table(self.engine.publish_many(events, payload="once"))
        else:
            found = Notification.from_table(self.engine.publish_many(events, joined=route == "joined"))
        by_event: dict[str, list[Notification]] = {}
        for notification in found:
            by_event.setdefault(notification.event, []).append(notification)
        return by_event

    def _compare(self, sent: Sent, notifications: Sequence[Notification], route: str) -> None:
        joined = route == "joined"
        self.tally.changes += 1
        expected = None if sent.is_late else self._apply(sent.change, joined)
        if expected is None:
            (error,) = notifications
            assert (error.verdict, error.subscription) == ("error", None)
            assert ("came again or late" in (error.message or "")) >= sent.is_late, error
            self.tally.refused += 1
            self.tally.late += sent.is_late
            return
        if sent.event.source:
            self._sent.append(sent)
        assert {n.subscription for n in notifications} == expected.keys(), sent.change
        assert len(notifications) == len(expected)
        for notification in notifications:
            assert notification.subscription is not None
            standing = self.standing[notification.subscription]
            standing.sequence += 1
            assert (notification.verdict, notification.part, notification.sequence) == (
                "match",
                "0/1",
                standing.sequence,
            )
            due = expected[notification.subscription]
            if route == "once":
                assert _written(notification.changes) == self._once(*due), sent.change
                self.tally.short += _written(notification.changes) != _written(self._changes_of(*due))
            else:
                found = self._rows(notification) if joined else self._form(notification)
                assert found == due, sent.change
            self._pass_on(standing, notification, joined)
        self.tally.notified += len(notifications)
        self.tally.joined += len(notifications) * joined
        self._ask_duckdb(sent.change.table)

    def _apply(self, change: Change, joined: bool) -> dict[str, Any] | None:
        """What the definition says, or None if it refuses."""
        before = {id: self.naive.result(id) for id in self.standing} if joined else {}
        try:
            expected = self.naive.apply(*change)
        except EventError:
            return None
        self.sql.set(change.table, self.naive.rows[change.table])
        if not joined:
            return expected
        pairs = {id: (self.naive.result(id) - old, old - self.naive.result(id)) for id, old in before.items()}
        return {id: both for id, both in pairs.items() if any(both)}

    def _pass_on(self, standing: Standing, notification: Notification, joined: bool) -> None:
        if standing.replica is None:
            return
        if not joined and not standing.is_behind and self.rng.random() < 0.03:
            standing.is_behind = True  # lost on the way, which the next one shows
            return
        taken = standing.replica.apply(notification)
        assert taken == (not joined and not standing.is_behind)
        assert taken != bool(standing.replica.missing)
        if taken:
            assert not standing.replica.apply(notification), "once"

    def _mend(self) -> None:
        """Replicas that miss something ask for snapshots, in the stream."""
        missing = [
            id for id, standing in self.standing.items() if standing.replica and standing.replica.missing
        ]
        answers = Notification.from_table(self.engine.publish_many([Event.snapshot(id) for id in missing]))
        for id, answer in zip(missing, answers, strict=True):
            standing = self.standing[id]
            assert answer.subscription == id
            assert standing.replica is not None
            assert standing.replica.apply(answer)
            standing.is_behind = False
            self.tally.gaps += 1
            self._ask_duckdb(standing=standing)

    def _ask_duckdb(self, table: str | None = None, standing: Standing | None = None) -> None:
        """A replica's result is that of its text, wherever a table has changed."""
        for id, current in self.standing.items():
            if current.replica is None or current.replica.missing or current.is_behind:
                continue
            names = self.naive.subscriptions[id][0].tables
            if table in names or current is standing:
                said = current.text if current.text.startswith("SELECT") else f"SELECT * {current.text}"
                found = Counter(
                    tuple(tuple(rows[name].values()) for name in names) for rows in current.replica.result()
                )
                assert flat(found) == self.sql.result(said, names), current.text
                self.tally.sql += 1

    def _once(self, gained: Form, lost: Form) -> Counter[str]:
        return _written(once(self._changes_of(gained, lost), self.naive.tables))

    def _changes_of(self, gained: Form, lost: Form) -> list[RowChange]:
        return [
            RowChange(name, sign, json.loads(self.naive.tables[name].text(row)))
            for sign, form in (("+", gained), ("-", lost))
            for name, row in form.elements()
        ]

    def _form(self, notification: Notification) -> tuple[Counter[Any], Counter[Any]]:
        both: tuple[Counter[Any], Counter[Any]] = Counter(), Counter()
        for change in notification.changes:
            both[change.change == "-"][change.table, self.naive.tables[change.table].read(change.row)] += 1
        return both

    def _rows(self, notification: Notification) -> tuple[Counter[Joined], Counter[Joined]]:
        both: tuple[Counter[Joined], Counter[Joined]] = Counter(), Counter()
        assert notification.subscription is not None
        names = self.naive.subscriptions[notification.subscription][0].tables
        for change in notification.changes:
            assert change.table.split(" JOIN ") == list(change.row)
            rows = {name: self.naive.tables[name].read(row) for name, row in change.row.items()}
            both[change.change == "-"][tuple(rows[name] for name in names)] += 1
        return both

    def _stand(self, id: str, text: str, query: Query, until: int | None) -> None:
        self._forget(id)
        wanted = sum(standing.replica is not None for standing in self.standing.values()) < self._replicas
        replica = Replica(text, self.tables) if wanted else None
        self.naive.subscribe(id, query)
        self.standing[id] = Standing(text, replica, until)
        if replica is not None:
            assert replica.apply(self.engine.snapshot(id))
            self._ask_duckdb(standing=self.standing[id])

    def _forget(self, id: str) -> None:
        if self.standing.pop(id, None):
            self.naive.unsubscribe(id)

    def _end_old(self) -> None:
        for id, standing in list(self.standing.items()):
            if standing.until is not None and standing.until < self._clock:
                self._forget(id)  # the engine knows by itself

    def _new(self) -> int:
        self._count += 1
        return self._count

    def _event(self, change: Change, source: str) -> Sent:
        number = self._new()
        envelope: dict[str, Any] = {"id": f"e{number}", "time": _at(number), "source": source}
        if source:
            self._sequences[source] = envelope["sequence"] = self._sequences.get(
                source, 0
            ) + self.rng.randint(1, 3)
        match change.op:
            case "insert":
                event = Event.insert(change.table, change.row, **envelope)
            case "delete":
                event = Event.delete(change.table, change.row, **envelope)
            case "update":
                event = Event.update(change.table, change.row, change.before, **envelope)
            case _:
                attributes = {"table": change.table, "sequence": envelope.pop("sequence", None)}
                event = Event(attributes=attributes, type="tidings.truncate", **envelope)
        return Sent(event, change)

    def _renamed(self, event: Event) -> Event:
        number = self._new()
        return Event(event.source, event.attributes, f"e{number}", event.type, _at(number))

    def _line(self, event: Event) -> str:
        members = {"id": event.id, "time": event.time, "source": event.source, **event.attributes}
        word = event.type.removeprefix("tidings.")
        if self.rng.random() < 0.5:
            members[word] = members.pop("table")
        else:
            members["type"] = event.type
        return json.dumps(members, default=plain)


def _at(second: int) -> str:
    return (_START + timedelta(seconds=second)).isoformat()


def _written(changes: Iterable[RowChange]) -> Counter[str]:
    return Counter(f"{change.change}{change.table} {json.dumps(change.row)}" for change in changes)
