"""Select with payload: the same answers, and a bulky column goes to a subscriber once."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from tests.kinds.joins.cases import some_query, some_row, some_tables
from tidings.dissemination.payload import Payloads
from tidings.dissemination.schemes import DEFAULT, Change, Message, Server, Side, accepts, binary
from tidings.errors import EventError
from tidings.kinds.joins import naive
from tidings.kinds.joins.schema.shape import read
from tidings.kinds.joins.schema.table import Table, TableError
from tidings.language.parser import parse
from tidings.model.event import Event

PRODUCTS = Table(
    "products", {"id": "integer", "rating": "integer", "photo": "text"}, key=["id"], payload=["photo"]
)
PHOTO = "p" * 10_000


def test_a_table_is_split() -> None:
    facts, payload = Payloads([PRODUCTS]).tables
    assert facts == Table("products", {"id": "integer", "rating": "integer"}, key=["id"])
    assert (payload.name, payload.names, payload.key) == (
        "products_payload",
        ("products_id", "photo"),
        ("products_id",),
    )
    split = Payloads([PRODUCTS]).split("products")
    assert split is not None
    assert split.parts((7, 5, "x")) == ((7, 5), (7, "x"))
    assert split.merged((7, 5), (7, "x")) == (7, 5, "x")


def test_a_photo_is_sent_once() -> None:
    payloads = Payloads([PRODUCTS])
    shape, (wanted,) = read(
        payloads.query(parse("SELECT * FROM products WHERE rating >= 6")),
        {table.name: table for table in payloads.tables},
    )
    assert shape.tables == ("products", "products_payload")
    server = Server(payloads.tables)
    everything = (np.array([0]), np.array([0]))
    signature = binary(Side("products", (0,), 1), Side("products_payload", (0,), None))
    server.subscribe(signature, [(np.array([wanted.low]), np.array([wanted.high])), everything])
    scheme, person = DEFAULT(server), server.subscription(0)

    def told(change: Change) -> list[Message]:
        sent = [message for part in payloads.changes(change) for message in scheme.messages(part)]
        return [message for message in sent if accepts(message, person)]

    first = told(Change("products", new=(7, 6, PHOTO)))
    assert sorted(message.rows[0].table for message in first) == ["products", "products_payload"]
    again = told(Change("products", new=(7, 9, PHOTO), old=(7, 6, PHOTO)))
    assert sum(message.size for message in again) < 50
    out = told(Change("products", new=(7, 1, PHOTO), old=(7, 9, PHOTO)))
    assert sorted((m.rows[0].table, m.sign) for m in out) == [("products", "-"), ("products_payload", "-")]
    other = told(Change("products", new=(7, 8, "new"), old=(7, 1, PHOTO)))
    assert sorted((m.rows[0].table, m.sign) for m in other) == [("products", "+"), ("products_payload", "+")]
    painted = told(Change("products", new=(7, 8, "newer"), old=(7, 8, "new")))
    assert [(m.rows[0].table, m.sign) for m in painted] == [
        ("products_payload", "+"),
        ("products_payload", "-"),
    ]


@pytest.mark.parametrize("seed", range(8))
def test_answers_stay_the_same(seed: int) -> None:
    """Joined rows of split tables, merged, are those of the whole ones."""
    rng = random.Random(seed)
    tables = some_tables(rng, 3)
    while not any(table.key and table.payload for table in tables):
        tables = some_tables(rng, 3)
    payloads = Payloads(tables)
    whole, parts = ({table.name: table for table in some} for some in (tables, payloads.tables))
    queries = [some_query(rng, tables, count=rng.choice((1, 2, 3))).query for _ in range(5)]
    rows = {name: Counter() for name in whole}
    split_rows = {name: Counter() for name in parts}
    for _ in range(40):
        table = rng.choice(tables)
        new = table.read(some_row(rng, table))
        there = [row for row in rows[table.name] if table.key_of(row) == table.key_of(new)]
        old = there[0] if there and table.key else None
        if old is None and rows[table.name] and rng.random() < 0.4:
            old = rng.choice(list(rows[table.name]))
        change = Change(table.name, None if old and rng.random() < 0.3 else new, old)
        for bag, some in ((rows, [change]), (split_rows, payloads.changes(change))):
            for one in some:
                for row, sign in ((one.new, 1), (one.old, -1)):
                    if row is not None:
                        bag[one.table][row] += sign
                        bag[one.table] += Counter()
        assert all(count >= 1 for bag in split_rows.values() for count in bag.values())
        for query in queries:
            shape, ranges = read(query, whole)
            found, wanted = read(payloads.query(query), parts)
            merged = Counter()
            for joined, count in naive.result(found, wanted, split_rows).items():
                of = dict(zip(found.tables, joined, strict=True))
                row = []
                for name in shape.tables:
                    split = payloads.split(name)
                    row.append(split.merged(of[name], of[split.payload.name]) if split else of[name])
                merged[tuple(row)] += count
            assert merged == naive.result(shape, ranges, rows)


def test_events_are_split() -> None:
    payloads = Payloads([PRODUCTS])
    first = payloads.events(
        Event.insert("products", {"id": 1, "rating": 5, "photo": "x"}, source="db", sequence=4)
    )
    assert [(e.source, dict(e.attributes)) for e in first] == [
        ("db/payload", {"table": "products_payload", "row": {"products_id": 1, "photo": "x"}, "sequence": 4}),
        ("db", {"table": "products", "row": {"id": 1, "rating": 5}, "sequence": 4}),
    ]
    before = {"id": 1, "rating": 5, "photo": "x"}
    (same,) = payloads.events(Event.update("products", {"id": 1, "rating": 6, "photo": "x"}, before))
    assert same.attributes["table"] == "products"
    assert same.attributes["before"] == {"id": 1, "rating": 5}
    assert len(payloads.events(Event.update("products", {"id": 1, "rating": 6, "photo": "y"}, before))) == 2
    assert len(payloads.events(Event.update("products", {"id": 1, "rating": 6, "photo": "x"}))) == 2
    gone = payloads.events(Event.delete("products", {"id": 1}))
    assert [e.attributes for e in gone] == [
        {"table": "products", "row": {"id": 1}},
        {"table": "products_payload", "row": {"products_id": 1}},
    ]
    other = Event.insert("elsewhere", {"id": 1})
    assert payloads.events(other) == [other]


def test_a_row_that_cannot_be_read_is_split_into_nothing() -> None:
    with pytest.raises(EventError, match="no column 'size'"):
        Payloads([PRODUCTS]).events(Event.insert("products", {"id": 1, "photo": "x", "size": 3}))


def test_what_cannot_be_split() -> None:
    bag = Table("bag", {"a": "integer", "photo": "text"}, payload=["photo"])
    assert Payloads([bag]).tables == [bag]
    assert Payloads([bag]).split("bag") is None
    with pytest.raises(TableError, match="'products_payload', which is there"):
        Payloads([PRODUCTS, Table("products_payload", {"a": "integer"})])
