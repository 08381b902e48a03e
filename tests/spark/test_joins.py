"""Joins over a stream: exactly what one process says, whoever dies; new subscriptions, snapshots, replicas."""

import json
import random
from collections import Counter, defaultdict

import pytest

from tidings import Engine, Event, TidingsError, versions
from tidings.joins import Replica, Table
from tidings.log import EventLog
from tidings.notification import from_table
from tidings.spark import correlate, notifications

STOCKS = Table("stocks", {"symbol": "text", "per": "number", "name": "text"}, key=["symbol"])
REVIEWS = Table("reviews", {"id": "integer", "symbol": "text", "rating": "integer", "by": "integer"}, key=["id"])
CRITICS = Table("critics", {"by": "integer", "city": "text"})
TABLES = [STOCKS, REVIEWS, CRITICS]
TEXTS = {
    "joined": "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per BETWEEN 20 AND 70 AND rating >= 4",
    "one": "SELECT * FROM stocks WHERE per < 40",
    "bag": "SELECT * FROM critics WHERE city IN ('Bonn', 'Paris')",
    "chain": "SELECT * FROM stocks JOIN reviews USING (symbol) JOIN critics USING (by) WHERE per > 10",
}


@pytest.fixture
def places(tmp_path):
    engine = Engine(tables=TABLES)
    for id, text in TEXTS.items():
        engine.subscribe(id, text)
    versions.publish(tmp_path / "index", engine)
    return tmp_path / "log", tmp_path / "index", tmp_path / "out", tmp_path / "checkpoint"


def changes(count, seed=1):
    """Random changes, good ones and bad ones, some told twice."""
    rng = random.Random(seed)
    symbols, cities = [f"s{i}" for i in range(8)], ["Bonn", "Paris", "Rome"]
    rows = {
        "stocks": lambda: {"symbol": rng.choice(symbols), "per": rng.randrange(80) / 2, "name": "ü\n"},
        "reviews": lambda: {
            "id": rng.randrange(20), "symbol": rng.choice([*symbols, None]), "rating": rng.randrange(9), "by": rng.randrange(4)
        },
        "critics": lambda: {"by": rng.randrange(4), "city": rng.choice(cities)},
    }  # fmt: skip
    events, sequence = [], 0
    for number in range(count):
        table = rng.choice(list(rows))
        row, sequence = rows[table](), sequence + 1
        how = rng.random()
        known = {"id": str(number), "source": "test", "sequence": sequence}
        if how < 0.55:
            event = Event.insert(table, row, **known)
        elif how < 0.8 and table != "critics":
            event = Event.update(table, row, **known)
        else:
            event = Event.delete(table, row, **known)
        events.append(event)
        if rng.random() < 0.05:
            events.append(event)
    return events


def told(table):
    """Per subscription and event the rows gained and lost, over all parts; and what was wrong."""
    found, errors = defaultdict(Counter), set()
    for one in from_table(table):
        if one.verdict == "error":
            errors.add((one.event, one.message))
        for change in one.changes if one.verdict == "match" else ():
            key = (change.table, json.dumps(change.row))
            found[one.subscription, one.event][key] += 1 if change.change == "+" else -1
    return {key: {row: n for row, n in rows.items() if n} for key, rows in found.items()}, errors


def check_sequences(table):
    """1, 2, 3 .. for each subscription and part."""
    last = Counter()
    for one in from_table(table):
        if one.verdict == "match":
            last[one.subscription, one.part] += 1
            assert one.sequence == last[one.subscription, one.part]


def naive(events):
    engine = Engine(tables=TABLES)
    for id, text in TEXTS.items():
        engine.subscribe(id, text)
    return engine.publish_many(events)


def test_a_stream_says_what_one_process_says(spark, places):
    events = changes(400)
    with EventLog(places[0]) as log:
        for first in range(0, len(events), 50):
            log.append(events[first : first + 50])
    batches = []
    stream = correlate(spark, *places, available_now=True, max_events=150, on_batch=batches.append)
    assert stream.wait(120)
    found, expected = notifications(places[2]), naive(events)
    assert told(found) == told(expected)
    assert len(told(expected)[1]) > 20 and len(told(expected)[0]) > 200
    check_sequences(found)
    assert sum(batch.events for batch in batches) == len(events)
