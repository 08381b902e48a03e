"""Notifications at the edge are those of the definition, change by change, from messages alone."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import islice

import pytest

from tests.dissemination.live.test_messages import event_of
from tests.examples import seeds
from tests.kinds.joins.cases import GRAPHS, Changes, some_inserts, some_query, some_tables
from tests.kinds.joins.test_payload_once import bulky
from tidings import Engine, Event, Table
from tidings.dissemination.live.carriers import MemberRows, record_event, record_in, rows_event, rows_in
from tidings.dissemination.live.edge import EdgeJoins
from tidings.dissemination.live.join_messages import JoinMessages
from tidings.dissemination.packet import WireError
from tidings.errors import EventError
from tidings.kinds.joins.naive import Naive
from tidings.language.parser import parse

STOCKS = Table("stocks", {"symbol": "text", "per": "number"}, key=["symbol"])


def rows_of(made: JoinMessages, id: str, text: str) -> MemberRows:
    """What the centre sends for a new member, as it arrives."""
    snapshot = made.snapshot(id)
    assert snapshot.part is not None
    assert snapshot.sequence is not None
    return rows_in(rows_event(id, "e", MemberRows(text, snapshot.part, snapshot.sequence, snapshot.changes)))


@pytest.mark.parametrize("seed", seeds(4, 40))
def test_notifications_are_those_of_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    tables = bulky(rng, 3) if seed % 3 == 0 else some_tables(rng, rng.choice((2, 3, 4)))
    naive, engine, edge = Naive(tables), Engine(tables=tables), EdgeJoins(tables)
    for change in some_inserts(rng, tables):
        naive.apply(*change)
        engine.publish(event_of(change))
    made = JoinMessages(engine)
    texts: dict[str, str] = {}
    sequences: Counter[str] = Counter()
    told = 0
    for number, change in enumerate(islice(Changes(rng, tables, naive.rows), 60)):
        if number % 6 == 0:
            id = str(number)
            case = some_query(rng, tables, GRAPHS[number % 4], 1 if number % 4 == 0 else None)
            again = texts and rng.random() < 0.3  # a text that is there
            text = rng.choice(list(texts.values())) if again else case.text
            known, texts[id] = text in texts.values(), text
            query = parse(texts[id])
            naive.subscribe(id, query)
            edge.add(id, texts[id], query)
            if not known:
                engine.subscribe(id, texts[id])
                assert edge.rows(id) is None
                assert edge.take_rows(rows_of(made, id, texts[id])) == []
        if number % 20 == 13:
            edge.remove(gone := rng.choice(list(texts)))
            naive.unsubscribe(gone)
            del texts[gone]
        if number % 15 == 14:  # as after a restart
            state, edge = edge.state(), EdgeJoins(tables)
            for id, text in texts.items():
                edge.add(id, text, parse(text))
            edge.restore(state)
        try:
            expected = naive.apply(*change)
        except EventError:
            assert made.publish([event_of(change)]) == []
            continue
        found = {}
        for record in made.publish([event_of(change)]):
            arrived = record_in(record_event(record))
            for answer in edge.take_record(arrived):
                sequences[answer.subscription] += 1
                assert (answer.part, answer.sequence) == ("0/1", sequences[answer.subscription])
                found[answer.subscription] = answer.gained, answer.lost
            assert edge.take_record(arrived) == [], "once"
        assert found == expected, change
        told += len(found)
        for id in texts:
            (rows,) = edge.rows(id) or ()
            assert rows.result == naive.forms[id]
    assert told > 5


def test_rows_that_come_again_are_a_difference() -> None:
    engine, edge, text = Engine(tables=[STOCKS]), EdgeJoins([STOCKS]), "SELECT * FROM stocks WHERE per > 50"
    engine.subscribe("s", text)
    edge.add("s", text, parse(text))
    made = JoinMessages(engine)
    assert edge.take_rows(rows_of(made, "s", text)) == []
    early = rows_of(made, "s", text)
    made.publish([Event.insert("stocks", {"symbol": "IBM", "per": 60})])  # lost
    (change,) = edge.take_rows(rows_of(made, "s", text))
    assert (change.sequence, list(change.gained), list(change.lost)) == (1, [("stocks", ("IBM", 60.0))], [])
    assert edge.take_rows(early) == []
    assert edge.take_rows(rows_of(made, "s", text)) == []
    (record,) = made.publish([Event.delete("stocks", {"symbol": "IBM"})])
    (change,) = edge.take_record(record)
    assert edge.result_changes(change.lost, "-")[0].row == {"symbol": "IBM", "per": 60.0}


def test_carriers_that_carry_nothing() -> None:
    with pytest.raises(WireError, match="of type 'x'"):
        record_in(Event(id="1", type="x"))
    with pytest.raises(WireError, match="none that carries rows"):
        rows_in(Event(id="1", type="tidings.member-rows", data=b'["text", "0/0", 1, []]'))
    engine = Engine(tables=[STOCKS])
    engine.subscribe("s", "SELECT * FROM stocks WHERE per > 50")
    (record,) = JoinMessages(engine).publish([Event.insert("stocks", {"symbol": "IBM", "per": 60})])
    with pytest.raises(WireError, match="another population"):
        record_in(replace(record_event(record), source="(messages) other"))
