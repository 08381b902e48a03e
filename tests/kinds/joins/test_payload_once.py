"""A payload goes to a subscriber once: rows are short exactly where the paper's second table would send nothing."""

from __future__ import annotations

import json
import random
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from tests.examples import seeds
from tests.kinds.joins import world
from tests.kinds.joins.cases import Changes, some_query, some_tables
from tidings import Engine, Event, Replica, Table, dissemination
from tidings.dissemination import Payloads
from tidings.errors import EventError, TidingsError
from tidings.kinds.joins.naive import Naive, semijoin
from tidings.kinds.joins.payload_once import payload_columns
from tidings.kinds.joins.schema.shape import read
from tidings.kinds.joins.schema.table import Row, by_name
from tidings.model.notification import RowChange

PRODUCTS = Table(
    "products", {"id": "integer", "rating": "integer", "photo": "text"}, key=["id"], payload=["photo"]
)
TEXT = "SELECT * FROM products WHERE rating >= 6"


def bulky(rng: random.Random, count: int | None = None) -> list[Table]:
    """Tables with a key and a payload, but for some."""
    tables = []
    for table in some_tables(rng, min(count or 2, 3)):
        columns = {**table.columns, "id": "integer", "note": "text"}
        tables.append(replace(table, columns=columns, key=["id"], payload=["note"]))
    return [*tables[:-1], *some_tables(rng, len(tables))[len(tables) - 1 :]]


def short(changes: tuple[RowChange, ...]) -> list[str]:
    return [f"{change.change} {' '.join(map(str, change.row.values()))}" for change in changes]


def test_a_photo_is_sent_once() -> None:
    engine, copy = Engine(tables=[PRODUCTS]), Replica(TEXT, [PRODUCTS])
    engine.subscribe("good", TEXT)
    copy.apply(engine.snapshot("good"))

    def change(event: Event) -> list[str]:
        (notification,) = engine.publish(event, payload="once")
        assert copy.apply(notification)
        return short(notification.changes)

    row = {"id": 1, "rating": 7, "photo": "a megabyte"}
    assert change(Event.insert("products", row)) == ["+ 1 7 a megabyte"]
    assert change(Event.update("products", {**row, "rating": 8})) == ["+ 1 8", "- 1 7"]
    assert copy.rows("products") == [{**row, "rating": 8}]
    assert change(Event.update("products", {**row, "rating": 8, "photo": "other"})) == [
        "+ 1 8 other",
        "- 1 8",
    ]
    assert copy.rows("products") == [{**row, "rating": 8, "photo": "other"}]
    assert change(Event.update("products", {**row, "rating": 5, "photo": "other"})) == ["- 1 8"]
    assert change(Event.update("products", {**row, "photo": None})) == ["+ 1 7 None"]
    assert change(Event.update("products", {**row, "rating": 9, "photo": None})) == ["+ 1 9", "- 1 7"]
    assert copy.rows("products") == [{**row, "rating": 9, "photo": None}]
    engine.publish(Event.update("products", {**row, "rating": 6}))  # lost on the way
    (late,) = engine.publish(Event.update("products", row), payload="once")
    assert not copy.apply(late)
    assert copy.missing == "a gap: expected 7, got 8"


def test_a_payload_that_is_not_there_is_missing() -> None:
    engine, copy = Engine(tables=[PRODUCTS]), Replica(TEXT, [PRODUCTS])
    engine.subscribe("good", TEXT)
    snapshot = engine.snapshot("good")
    assert copy.apply(snapshot)
    assert not copy.apply(
        replace(
            snapshot,
            verdict="match",
            sequence=1,
            changes=(RowChange("products", "+", {"id": 1, "rating": 7}),),
        )
    )
    assert copy.missing == '1 cannot be read: the payload of {"id":1,"rating":7,"photo":null} is not here'


def test_the_word_is_one_of_two() -> None:
    engine = Engine(tables=[PRODUCTS])
    with pytest.raises(TidingsError, match="payload is 'twice'; give 'always' for whole rows, or 'once'"):
        engine.publish(Event.delete("products", {"id": 1}), payload="twice")  # type: ignore[arg-type]
    with pytest.raises(TidingsError, match="joined rows are whole"):
        engine.correlate([], joined=True, payload="once")


@pytest.mark.parametrize("seed", seeds(1, 5))
def test_replicas_equal_sql(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every notification the definition's rows; in every replica what DuckDB has."""
    monkeypatch.setattr(world, "some_tables", bulky)
    tally = world.Tally()
    for number in range(3):
        found = world.World(3 * seed + number, tmp_path / str(number))
        for _ in range(40):
            found.step()
        tally += found.tally
    assert min(tally.short, tally.sql) > 0, tally


@pytest.mark.parametrize("seed", seeds(3, 20))
def test_payload_is_sent_where_a_table_of_its_own_would_send_it(seed: int) -> None:
    rng = random.Random(seed)
    tables = bulky(rng, 3)
    parts = Payloads(tables)
    split = by_name(parts.tables)
    engine, naive = Engine(tables=tables), Naive(tables)
    queries = [some_query(rng, tables, count=rng.choice((1, 2))) for _ in range(6)]
    for number, case in enumerate(queries):
        engine.subscribe(str(number), case.text)
    shapes = [read(parts.query(case.query), split) for case in queries]
    rows: dict[str, Counter[Row]] = {name: Counter() for name in split}
    sent = 0
    for change in islice(Changes(rng, tables, naive.rows), 60):
        before = naive.rows[change.table]
        with suppress(EventError):
            naive.apply(*change)
        new, old = _difference(before, naive.rows[change.table])
        if new is None and old is None:
            continue
        ours = Counter(
            (notification.subscription, row.table, _payload(naive.tables[row.table], row.row))
            for notification in engine.publish(_event(naive.tables[change.table], new, old), payload="once")
            for row in notification.changes
            if row.change == "+" and _payload(naive.tables[row.table], row.row)
        )
        forms = [semijoin(*shape, rows) for shape in shapes]
        for part in parts.changes(dissemination.Change(change.table, new, old)):
            rows[part.table] = rows[part.table] + Counter([part.new] if part.new else [])
            rows[part.table] = rows[part.table] - Counter([part.old] if part.old else [])
        theirs = Counter(
            (str(number), name.removesuffix("_payload"), split[name].text(row).partition(":")[2])
            for number, shape in enumerate(shapes)
            for name, row in semijoin(*shape, rows) - forms[number]
            if name.endswith("_payload")
        )
        assert ours == theirs, change
        sent += ours.total()
    assert sent


def _difference(before: Counter[Row], after: Counter[Row]) -> tuple[Row | None, Row | None]:
    return next(iter(after - before), None), next(iter(before - after), None)


def _event(table: Table, new: Row | None, old: Row | None) -> Event:
    given, was = (row and json.loads(table.text(row)) for row in (new, old))
    if given and was:
        return Event.update(table.name, given, before=was)
    return Event.insert(table.name, given) if given else Event.delete(table.name, was)


def _payload(table: Table, row: dict[str, object]) -> str:
    """Key and payload as the text of a row without the first name; empty if the row is short."""
    names = payload_columns(table)
    if not names or names[0] not in row:
        return ""
    part = Table("part", {name: table.columns[name] for name in (*table.key, *names)})
    return part.text(part.read({name: row[name] for name in part.names})).partition(":")[2]
