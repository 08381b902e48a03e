"""What the correlator tells each subscription is what the definition says it gained and lost."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import islice

import pyarrow as pa
import pytest

from tests.examples import seeds
from tests.kinds.joins.cases import Changes, some_inserts, some_query, some_tables
from tidings.engine.engine import Engine
from tidings.errors import EventError
from tidings.kinds.joins.changes.changes import read_changes
from tidings.kinds.joins.deltas import Deltas
from tidings.kinds.joins.index.correlator import Correlator
from tidings.kinds.joins.index.levels import Levels
from tidings.kinds.joins.index.subscriptions import Subscriptions
from tidings.kinds.joins.kernels.layout import BUCKETS
from tidings.kinds.joins.naive import Naive
from tidings.kinds.joins.rows.texts import Texts
from tidings.kinds.joins.schema.shape import read
from tidings.kinds.joins.schema.table import Table
from tidings.model.event import Event, to_table


def _event(change) -> Event:
    if change.op == "insert":
        return Event.insert(change.table, change.row)
    if change.op == "delete":
        return Event.delete(change.table, change.row)
    return Event.update(change.table, change.row, before=change.before)


def _said(deltas: Deltas, tables) -> list[dict[str, tuple[Counter, Counter]]]:
    """What was told, by event and id, as the definition says it."""
    read = {table.name: table.read for table in tables}
    found: dict[int, dict[str, tuple[Counter, Counter]]] = {}
    for row in deltas.table_of_deltas().to_pylist():
        both = found.setdefault(row["event"], {}).setdefault(row["subscription"], (Counter(), Counter()))
        both[row["change"] == "-"][row["table"], read[row["table"]](json.loads(row["row"]))] += 1
    return found


@pytest.mark.parametrize("few", [64, 1])
@pytest.mark.parametrize("seed", seeds(8, 20))
def test_as_the_definition_says(seed: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.kinds.joins.index.levels.RECENT", 0 if few == 1 else 1024)
    monkeypatch.setattr("tidings.kinds.joins.index.index.FEW", few)
    monkeypatch.setattr("tidings.kinds.joins.rows.rows._REBUILD_FROM", few)
    rng = random.Random(seed)
    tables = some_tables(rng)
    definition = Naive(tables)
    subscriptions = Subscriptions(tables, Texts())
    correlator = Correlator(tables, subscriptions, Levels(subscriptions))
    for number in range(12):
        query = some_query(rng, tables).query
        definition.subscribe(str(number), query)
        subscriptions_number = subscriptions.add(str(number), *read(query, definition.tables))
        correlator.levels.added([subscriptions_number])
    notified = Counter()
    changes = [*some_inserts(rng, tables), *islice(Changes(rng, tables, definition.rows), 40)]
    for size in iter(lambda: rng.choice((1, 1, 3, 10)), None):
        batch, changes = changes[:size], changes[size:]
        if not batch:
            break
        deltas = correlator.apply(read_changes(to_table([_event(change) for change in batch]), tables))
        said = _said(deltas, tables)
        for position, change in enumerate(batch):
            try:
                expected = definition.apply(*change)
            except EventError:
                expected = {}
                assert position in deltas.errors, change
            else:
                assert position not in deltas.errors, deltas.errors
            assert said.get(position, {}) == expected, (position, change)
            notified.update(expected.keys())
    counted = {id: int(subscriptions.records.all["sequence"][subscriptions.find(id)]) for id in notified}
    assert counted == dict(notified)
    assert sum(notified.values()) > 5


def test_values_that_no_row_has_any_more_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Orders of ever new values, as of order numbers, are as large as the rows that are there."""
    monkeypatch.setattr("tidings.kinds.joins.rows.rows._REBUILD_FROM", 64)
    orders, items = (Table(name, {"number": "integer", "price": "integer"}) for name in ("orders", "items"))
    engine = Engine(tables=[orders, items])
    engine.subscribe("q", "FROM orders JOIN items USING (number) WHERE orders.price > 1")
    engine.publish(Event.insert("orders", {"number": -1, "price": 5}))
    rows = engine.joins.correlator.rows
    for number in range(500):
        row = {"number": number, "price": 5}
        events = [make(name, row) for make in (Event.insert, Event.delete) for name in ("orders", "items")]
        assert len(engine.correlate(events)) == 4
    assert rows.arrays().used[BUCKETS] <= 70
    (notification,) = engine.publish(Event.insert("items", {"number": -1, "price": 0}))
    assert len(notification.changes) == 2


def test_a_subscription_that_has_ended_leaves_no_text() -> None:
    engine = Engine(tables=[Table("t", {"a": "integer"})])
    people = pa.table({"id": [str(n) for n in range(10)], "least": range(10)})
    for least in range(5):
        engine.subscribe("0", f"FROM t WHERE a > {least}")
        engine.subscribe("ends", "FROM t WHERE a > 3")
        engine.unsubscribe("ends")
        engine.subscribe_table("FROM t WHERE a > $least", people)
    assert engine.text("7") == "FROM t WHERE a > 7"
    assert (len(engine.joins._texts), len(engine.joins._templates)) == (0, 1)
