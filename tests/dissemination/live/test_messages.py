"""Replicas that messages keep equal SQL after every change, whatever the join, and notice what they lack."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples, seeds
from tests.kinds.joins.cases import GRAPHS, Change, Changes, some_inserts, some_query, some_tables
from tests.kinds.joins.sql import Sql, flat
from tests.kinds.joins.test_payload_once import bulky
from tidings import Engine, Event, Table
from tidings.dissemination.live.join_messages import JoinMessages
from tidings.dissemination.live.message_replica import MessageReplica
from tidings.dissemination.live.records import MessageRecord, decode_record, encode_record
from tidings.dissemination.packet import WireError
from tidings.errors import EventError, SubscriptionError, TidingsError
from tidings.kinds.joins.naive import Naive
from tidings.kinds.joins.schema.shape import read
from tidings.kinds.joins.schema.table import by_name
from tidings.language.parser import parse

SCHEMES = ("Ref-SJ-Clu+", "Ref-SJ-Clu", "Ref-SJ-Sub", "Ref-SJ-Tup")
PRODUCTS = Table("products", {"id": "integer", "rating": "integer", "photo": "text"}, ["id"], ["photo"])
STOCKS = Table("stocks", {"symbol": "text", "per": "number"}, key=["symbol"])
REVIEWS = Table("reviews", {"symbol": "text", "analyst": "text", "rating": "integer"})
JOIN = "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per BETWEEN 45 AND 70 AND rating >= 6"


def event_of(change: Change) -> Event:
    if change.op == "update":
        return Event.update(change.table, change.row, change.before)
    return (Event.insert if change.op == "insert" else Event.delete)(change.table, change.row)


def carried(record: MessageRecord) -> MessageRecord:
    """The record as it arrives."""
    return decode_record(encode_record(record))


@pytest.mark.parametrize("seed", seeds(4, 60))
def test_replicas_equal_sql_after_every_change(seed: int) -> None:
    rng = random.Random(seed)
    tables = bulky(rng, 3) if seed % 3 == 0 else some_tables(rng, rng.choice((2, 3, 4)))
    naive, sql, engine = Naive(tables), Sql(tables), Engine(tables=tables)
    for change in some_inserts(rng, tables):
        naive.apply(*change)
        engine.publish(event_of(change))
    for name, there in naive.rows.items():
        sql.set(name, there)
    texts = {
        str(number): some_query(rng, tables, GRAPHS[(seed + number) % 4], 1 if number == 0 else None).text
        for number in range(4)
    }
    copies = {id: MessageReplica(text, tables) for id, text in texts.items()}
    for id, text in texts.items():
        engine.subscribe(id, text)
    made = JoinMessages(engine, SCHEMES[seed % 4])
    for id, copy in copies.items():
        assert copy.missing
        assert copy.apply(made.snapshot(id))
    behind: set[str] = set()
    compared = 0
    for change in islice(Changes(rng, tables, naive.rows), 40):
        try:
            naive.apply(*change)
        except EventError:
            assert made.publish([event_of(change)]) == []
            continue
        sql.set(change.table, naive.rows[change.table])
        for record in made.publish([event_of(change)]):
            is_lost = rng.random() < 0.05  # on the way, which the next one shows
            for id, copy in copies.items():
                if copy.population != record.population:
                    assert not copy.apply(record)
                elif is_lost:
                    behind.add(id)
                else:
                    assert copy.apply(carried(record)) == (id not in behind)
                    assert (copy.missing is None) == (id not in behind)
                    assert not copy.apply(record), "once"
        for id, copy in copies.items():
            if copy.missing:
                assert copy.apply(made.snapshot(id))
                behind.discard(id)
            if id not in behind:
                names = naive_tables(texts[id], tables)
                found = Counter(tuple(tuple(rows[name].values()) for name in names) for rows in copy.result())
                assert flat(found) == sql.result(texts[id], names), texts[id]
                compared += 1
    assert compared > 40


def naive_tables(text: str, tables: list[Table]) -> tuple[str, ...]:
    return read(parse(text), by_name(tables))[0].tables


def test_a_photo_is_sent_once() -> None:
    """Appendix I: a subscription to one table is a join of its facts with its payload."""
    engine, copy = (
        Engine(tables=[PRODUCTS]),
        MessageReplica("SELECT * FROM products WHERE rating >= 6", [PRODUCTS]),
    )
    engine.subscribe("good", "SELECT * FROM products WHERE rating >= 6")
    made = JoinMessages(engine)
    assert copy.apply(made.snapshot("good"))

    def size(event: Event) -> int:
        (record,) = made.publish([event])
        assert copy.apply(carried(record))
        return len(encode_record(record))

    row = {"id": 1, "rating": 7, "photo": "p" * 10_000}
    assert size(Event.insert("products", row)) > 10_000
    assert size(Event.update("products", {**row, "rating": 8})) < 500
    assert copy.rows("products") == [{**row, "rating": 8}]
    assert size(Event.update("products", {**row, "rating": 8, "photo": "new"})) > 10_000  # the old one goes
    assert copy.rows("products") == [{**row, "rating": 8, "photo": "new"}]
    assert made.publish([Event.update("products", {**row, "rating": 1, "photo": "newer"})])
    assert made.publish([Event.update("products", {**row, "rating": 2, "photo": "newer"})]) == []


def test_a_row_goes_once_to_all() -> None:
    engine = Engine(tables=[STOCKS, REVIEWS])
    for number in range(100):
        engine.subscribe(str(number), JOIN.replace("6", str(number % 8)))
    made = JoinMessages(engine)
    made.publish([Event.insert("reviews", {"symbol": "IBM", "analyst": "Ada", "rating": 7})])
    (record,) = made.publish([Event.insert("stocks", {"symbol": "IBM", "per": 52}, id="e", source="desk")])
    assert [(str(one.form), one.sign, one.rows[0].row) for one in record.messages()] == [
        ("stocks^reviews", "+", ("IBM", 52.0)),
        ("reviews^stocks", "+", ("IBM", "Ada", 7)),
    ]
    assert record[:5] == ("reviews.symbol=stocks.symbol", "0/1", 1, "e", "desk")
    assert len(encode_record(record)) < 500


def test_rows_that_are_there_and_new_subscriptions() -> None:
    engine = Engine(tables=[STOCKS, REVIEWS])
    engine.publish(Event.insert("stocks", {"symbol": "IBM", "per": 52}))
    made = JoinMessages(engine)
    assert made.publish([Event.insert("reviews", {"symbol": "IBM", "analyst": "Ada", "rating": 7})]) == []
    engine.subscribe("good", JOIN)
    copy = MessageReplica(JOIN, [STOCKS, REVIEWS])
    assert copy.apply(made.snapshot("good"))
    assert [row["reviews"]["analyst"] for row in copy.result()] == ["Ada"]
    (record,) = made.publish([Event.delete("stocks", {"symbol": "IBM"})])
    assert copy.apply(record)
    assert copy.result() == []
    with pytest.raises(SubscriptionError, match="there is no subscription 'bad' over tables"):
        made.snapshot("bad")


def test_schemes_that_need_other_clients_are_refused() -> None:
    with pytest.raises(TidingsError, match="no messages of a scheme 'Enum-J'; give one of Ref-SJ-Sub"):
        JoinMessages(Engine(tables=[STOCKS]), "Enum-J")
    with pytest.raises(TidingsError, match="did you mean 'Ref-SJ-Clu'"):
        JoinMessages(Engine(tables=[STOCKS]), "Ref-SJ-Cl")


@examples(60)
@given(st.binary(max_size=200), st.integers(0, 2**32), st.integers(0, 7))
def test_bytes_that_are_no_record(noise: bytes, at: int, bit: int) -> None:
    """Whatever arrives is a record, or one sentence."""
    engine = Engine(tables=[PRODUCTS])
    engine.subscribe("good", "SELECT * FROM products WHERE rating >= 6")
    (record,) = JoinMessages(engine).publish([Event.insert("products", {"id": 1, "rating": 7, "photo": "x"})])
    whole = encode_record(record)
    assert [one.rows[0].row for one in decode_record(whole).messages()] == [
        one.rows[0].row for one in record.messages()
    ]
    flipped = bytearray(whole)
    flipped[at % len(whole)] ^= 1 << bit
    for data in (noise, whole[: at % len(whole)], bytes(flipped), whole + noise, b"J" + noise):
        with suppress(WireError):
            decode_record(data).messages()
