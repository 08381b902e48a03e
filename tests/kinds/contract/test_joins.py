"""What holds for every kind of subscription, as far as it can for one whose events change what is there.

The same changes go to engines that should not differ; what each subscription gets is then the same.
"""

from __future__ import annotations

import random
import warnings
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.examples import seeds
from tests.kinds.joins.cases import Change, Changes, some_inserts, some_query, some_tables
from tidings import Engine, Event, Table
from tidings.engine.engine import EmptySubscription
from tidings.kinds.joins.naive import Naive

pytestmark = [
    pytest.mark.parametrize("seed", seeds(1, 3)),
    pytest.mark.filterwarnings(f"ignore::{EmptySubscription.__module__}.{EmptySubscription.__name__}"),
]
Answers = dict[tuple[str | None, str], Any]


@pytest.fixture
def rng(seed: int) -> random.Random:
    return random.Random(seed)


@pytest.fixture
def tables(rng: random.Random) -> list[Table]:
    return some_tables(rng, 3)


@pytest.fixture
def texts(rng: random.Random, tables: list[Table]) -> dict[str, str]:
    return {f"s{i}": some_query(rng, tables).text for i in range(30)}


@pytest.fixture
def events(rng: random.Random, tables: list[Table]) -> list[Event]:
    start = some_inserts(rng, tables)
    naive = Naive(tables)
    for change in start:
        naive.apply(*change)
    changes = [*start, *islice(Changes(rng, tables, naive.rows), 20)]
    return [event_of(change, f"e{number}") for number, change in enumerate(changes)]


def event_of(change: Change, id: str) -> Event:
    if change.op == "update":
        return Event.update(change.table, change.row, change.before, id=id)
    return (Event.insert if change.op == "insert" else Event.delete)(change.table, change.row, id=id)


def engine_of(tables: list[Table], texts: dict[str, str]) -> Engine:
    engine = Engine(tables=tables)
    assert engine.subscribe_many(texts.items()) == []
    return engine


def answers(found: pa.Table) -> Answers:
    """The answers by subscription and event, in any order."""
    rows = found.to_pylist()
    by = {
        (row["subscription"], row["event"]): (
            row["verdict"],
            row["sequence"],
            row["message"],
            sorted(tuple(change.values()) for change in row["changes"] or ()),
        )
        for row in rows
    }
    assert len(by) == len(rows), "each once"
    return by


def test_some_are_told_and_some_are_not(
    tables: list[Table], texts: dict[str, str], events: list[Event]
) -> None:
    """Without this the rest would prove little."""
    found = answers(engine_of(tables, texts).publish_many(events))
    assert 20 < len(found) < len(texts) * len(events) // 2


def test_removal_undoes_addition(
    rng: random.Random, tables: list[Table], texts: dict[str, str], events: list[Event]
) -> None:
    expected = answers(engine_of(tables, texts).publish_many(events))
    engine = engine_of(tables, texts)
    others = {f"other{i}": some_query(rng, tables).text for i in range(20)}
    engine.subscribe_many(others.items())
    half = len(events) // 2
    found = answers(engine.publish_many(events[:half]))
    for id in others:
        assert engine.unsubscribe(id)
        assert not engine.unsubscribe(id)
        assert id not in engine
    assert len(engine) == len(texts)
    later = answers(engine.publish_many(events[half:]))
    assert not {id for id, _ in later} & others.keys()
    assert {at: one for at, one in (found | later).items() if at[0] not in others} == expected


def test_order_of_insertion_is_irrelevant(
    rng: random.Random, tables: list[Table], texts: dict[str, str], events: list[Event]
) -> None:
    shuffled = list(texts.items())
    rng.shuffle(shuffled)
    assert answers(engine_of(tables, dict(shuffled)).publish_many(events)) == answers(
        engine_of(tables, texts).publish_many(events)
    )


def test_batch_equals_one_by_one_wherever_it_is_cut(
    rng: random.Random, tables: list[Table], texts: dict[str, str], events: list[Event]
) -> None:
    expected = answers(engine_of(tables, texts).publish_many(events))
    engine, alone = engine_of(tables, texts), list[Any]()
    for event in events:
        alone += engine.publish(event)
    found = {(one.subscription, one.event): (one.verdict, one.sequence, one.message) for one in alone}
    assert found == {at: one[:3] for at, one in expected.items()}
    engine, cut = engine_of(tables, texts), {}
    while events:
        size = rng.randint(0, 9)
        cut |= answers(engine.publish_many(events[:size]))
        events = events[size:]
    assert cut == expected


def test_looking_changes_nothing(tables: list[Table], texts: dict[str, str], events: list[Event]) -> None:
    engine, found = engine_of(tables, texts), {}
    for first in range(0, len(events), 8):
        for id in ("s0", "s1"):
            assert engine.snapshot(id) == engine.snapshot(id)
            engine.publish(Event.snapshot(id))
        found |= answers(engine.publish_many(events[first : first + 8]))
    assert found == answers(engine_of(tables, texts).publish_many(events))


def test_save_and_load_round_trip(
    rng: random.Random, tables: list[Table], texts: dict[str, str], events: list[Event], tmp_path: Path
) -> None:
    """At any moment: rows, sequences and subscriptions go on where they were, a second time too."""
    expected = answers(engine_of(tables, texts).publish_many(events))
    engine, found = engine_of(tables, texts), {}
    for part in range(3):
        size = rng.randint(1, len(events) // 2)
        found |= answers(engine.publish_many(events[:size]))
        events = events[size:]
        engine.save(tmp_path / str(part))
        engine = Engine.load(tmp_path / str(part))
        assert {id: engine.text(id) for id in texts} == texts
    assert found | answers(engine.publish_many(events)) == expected


def test_subscribe_table_equals_its_texts(
    rng: random.Random, tables: list[Table], events: list[Event], tmp_path: Path
) -> None:
    template = (
        "SELECT * FROM t0 JOIN t1 USING (whole) WHERE t0.whole BETWEEN $low AND $high AND t1.whole > $least"
    )
    columns = {name: [rng.randint(-1, 4) for _ in range(90)] for name in ("low", "high", "least")}
    by_table = Engine(tables=tables)
    by_table.subscribe_table(template, pa.table({"id": [f"t{i}" for i in range(90)], **columns}))
    one_by_one = engine_of(tables, {f"t{i}": by_table.text(f"t{i}") for i in range(90)})
    by_table.unsubscribe("t3")
    one_by_one.unsubscribe("t3")
    by_table.save(tmp_path)
    expected = answers(one_by_one.publish_many(events))
    assert expected
    assert (
        answers(by_table.publish_many(events))
        == answers(Engine.load(tmp_path).publish_many(events))
        == expected
    )


def test_an_id_can_change_its_kind(
    tables: list[Table], texts: dict[str, str], events: list[Event], seed: int
) -> None:
    """Other kinds stand beside joins in one engine, and take the place of one another."""
    engine = engine_of(tables, texts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine.subscribe("s1", "WHERE table = 't0'")
        engine.subscribe("beside", "WHERE table = 't0'")
        engine.subscribe("back", "WHERE table = 't0'")
    engine.subscribe("back", texts["s2"])
    assert len(engine) == len(texts) + 2
    found = engine.publish_many(events)
    plain = {row["event"] for row in found.to_pylist() if row["subscription"] == "beside"}
    assert plain == {event.id for event in events if event.attributes["table"] == "t0"}
    by = answers(found)
    assert {event for id, event in by if id == "s1"} == plain
    assert {e: one for (id, e), one in by.items() if id == "back"} == {
        e: one for (id, e), one in by.items() if id == "s2"
    }
