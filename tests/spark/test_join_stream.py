"""Joins over a stream: exactly what one process says, whoever dies; new subscriptions, snapshots, replicas."""

import json
import random
from collections import Counter, defaultdict

import pytest

from tidings import Engine, Event, Replica, Table, TidingsError
from tidings.dissemination.live.join_messages import JoinMessages
from tidings.dissemination.live.message_replica import MessageReplica
from tidings.dissemination.live.records import read_records, record_of
from tidings.dissemination.wire import encode
from tidings.model.notification import Notification
from tidings.spark import correlate, notifications, run
from tidings.storage import versions
from tidings.storage.event_log import EventLog

STOCKS = Table("stocks", {"symbol": "text", "per": "number", "name": "text"}, key=["symbol"])
REVIEWS = Table(
    "reviews", {"id": "integer", "symbol": "text", "rating": "integer", "by": "integer"}, key=["id"]
)
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
    for one in Notification.from_table(table):
        if one.verdict == "error":
            errors.add((one.event, one.message))
        for change in one.changes if one.verdict == "match" else ():
            key = (change.table, json.dumps(change.row))
            found[one.subscription, one.event][key] += 1 if change.change == "+" else -1
    return {key: {row: n for row, n in rows.items() if n} for key, rows in found.items()}, errors


def check_sequences(table):
    """1, 2, 3 .. for each subscription and part."""
    last = Counter()
    for one in Notification.from_table(table):
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
    assert len(told(expected)[1]) > 20
    assert len(told(expected)[0]) > 200
    check_sequences(found)
    assert sum(batch.events for batch in batches) == len(events)
    # In the log's order, although every bucket writes a file of its own.
    for id in TEXTS:
        numbers = [int(row["event"]) for row in found.to_pylist() if row["subscription"] == id]
        assert numbers == sorted(numbers)


def replicas(table, ids=TEXTS):
    """Copies that have had all notifications in a table."""
    found = {id: Replica(TEXTS[id], TABLES) for id in ids}
    for one in Notification.from_table(table):
        if one.subscription in found:
            found[one.subscription].apply(one)
    return found


def results(replica):
    assert replica.missing is None
    return sorted(map(json.dumps, replica.result()))


def test_subscriptions_and_snapshots_in_a_running_stream(spark, places):
    first, second, third = changes(500)[:100], changes(500)[100:200], changes(500)[200:]
    engine = Engine(tables=TABLES)
    engine.subscribe("one", TEXTS["one"])
    versions.publish(places[1], engine)
    with EventLog(places[0]) as log, correlate(spark, *places, buckets=3) as stream:
        log.append(first)
        stream.drain()
        # Joins of kinds that the stream has not had: their rows are there all the same.
        for id in ("joined", "bag"):
            engine.subscribe(id, TEXTS[id])
        versions.publish(places[1], engine)
        versions.append(places[1], [versions.Change("chain", TEXTS["chain"])])
        log.append([*second, *(Event.snapshot(id, id=id) for id in [*TEXTS, "nobody"])])
        stream.drain()
        log.append(third)
        stream.drain()
        found = notifications(places[2])
        whole = Engine(tables=TABLES)
        for id, text in TEXTS.items():
            whole.subscribe(id, text)
        whole.publish_many([*first, *second, *third])
        for id, replica in replicas(found).items():
            true = Replica(TEXTS[id], TABLES)
            true.apply(whole.snapshot(id))
            assert results(replica) == results(true)
            assert results(true)
        assert ("nobody", "there is no subscription 'nobody' over tables; look at its spelling") in told(
            found
        )[1]
        # One notification is lost on the way; another snapshot makes it good.
        heard = [one for one in Notification.from_table(found) if one.subscription == "joined"]
        begun = {one.part: one.sequence for one in heard if one.verdict == "snapshot"}
        later = Counter(one.part for one in heard if one.sequence > begun[one.part])
        part, count = later.most_common(1)[0]
        assert count > 1
        replica = Replica(TEXTS["joined"], TABLES)
        for one in heard:
            if (one.part, one.sequence) != (part, begun[part] + 1):
                replica.apply(one)
        assert "gap" in replica.missing
        log.append([Event.snapshot("joined", id="again")])
        stream.drain()
        for one in Notification.from_table(notifications(places[2])):
            if one.subscription == "joined":
                replica.apply(one)
        assert results(replica) == results(replicas(found)["joined"])


def test_changes_of_a_frame_of_ones_own(spark, places, tmp_path):
    folder = tmp_path / "changes"
    rows = [("stocks", "insert", {"symbol": f"s{i}", "per": float(i), "name": None}, i) for i in range(30)]
    schema = "table string, op string, row struct<symbol: string, per: double, name: string>, sequence long"
    spark.createDataFrame(rows, schema).coalesce(1).write.parquet(str(folder))
    frame = spark.readStream.schema(schema).parquet(str(folder))
    assert correlate(spark, frame, *places[1:], available_now=True).wait(120)
    found = [one for one in Notification.from_table(notifications(places[2])) if one.subscription == "one"]
    assert {one.changes[0].row["per"] for one in found} == set(map(float, range(30)))
    assert all(one.event for one in found)
    assert len(found) == 30


def test_an_index_without_tables_is_told_at_once(spark, tmp_path):
    versions.publish(tmp_path / "index", Engine())
    with pytest.raises(TidingsError, match=r"Engine\(tables="):
        correlate(spark, tmp_path / "log", tmp_path / "index", tmp_path / "out", tmp_path / "checkpoint")


def test_one_stream_matches_and_keeps_joins(spark, places):
    engine = Engine(tables=TABLES)
    engine.subscribe("one", TEXTS["one"])
    engine.subscribe("filter", "WHERE source = 'test'")
    versions.publish(places[1], engine)
    events = changes(40)
    with EventLog(places[0]) as log:
        log.append([*events, Event("test", {"a": 1}, id="no change")])
    assert run(spark, *places, available_now=True).wait(120)
    found, expected = notifications(places[2]), engine.publish_many([*events, Event("test", id="no change")])
    assert told(found) == told(expected)
    heard = [
        [one.event for one in Notification.from_table(table) if one.subscription == "filter"]
        for table in (found, expected)
    ]
    assert sorted(heard[0]) == sorted(heard[1])


@pytest.mark.slow
def test_a_payload_is_written_once(spark, tmp_path):
    products = Table(
        "products",
        {"id": "integer", "shop": "integer", "rating": "integer", "photo": "text"},
        ["id"],
        ["photo"],
    )
    tables = [products, Table("shops", {"shop": "integer", "city": "text"}, ["shop"])]
    texts = {
        "alone": "SELECT * FROM products WHERE rating >= 3",
        "joined": "SELECT * FROM products JOIN shops USING (shop) WHERE rating >= 3",
    }
    engine = Engine(tables=tables)
    for id, text in texts.items():
        engine.subscribe(id, text)
    versions.publish(tmp_path / "index", engine)
    rng = random.Random(5)
    events = [Event.insert("shops", {"shop": shop, "city": "Bonn"}, id=f"s{shop}") for shop in range(4)]
    events += [Event.snapshot(id, id=id) for id in texts]
    for number in range(120):
        row = {
            "id": rng.randrange(6), "shop": rng.randrange(3), "rating": rng.randrange(9), "photo": "x" * 5_000 + str(number // 30)
        }  # fmt: skip
        how = Event.insert if number < 6 else rng.choice((Event.insert, Event.update, Event.update))
        events.append(how("products", {**row, "id": number} if number < 6 else row, id=str(number)))
    with EventLog(tmp_path / "log") as log:
        log.append(events)
    stream = correlate(
        spark, tmp_path / "log", tmp_path / "index", tmp_path / "out", tmp_path / "checkpoint",
        payload="once", buckets=2, available_now=True,
    )  # fmt: skip
    assert stream.wait(120)
    found, whole = notifications(tmp_path / "out"), engine.publish_many(events)
    copies = {id: Replica(text, tables) for id, text in texts.items()}
    for one in Notification.from_table(found):
        if one.subscription in copies:
            copies[one.subscription].apply(one)
    for id, copy in copies.items():
        rows = [change.row for change in engine.snapshot(id).changes if change.table == "products"]
        assert copy.missing is None
        assert sorted(map(json.dumps, copy.rows("products"))) == sorted(map(json.dumps, rows))
    photos, all_photos = (
        sum("photo" in change["row"] for changes in table["changes"].to_pylist() for change in changes or ())
        for table in (found, whole)
    )
    assert 0 < photos < all_photos / 2


def message_copies(table, ids=TEXTS):
    """Replicas that have had all records and snapshots in a table."""
    found = {id: MessageReplica(TEXTS[id], TABLES) for id in ids}
    for row, one in zip(table.to_pylist(), Notification.from_table(table), strict=True):
        arrived = record_of(row["message"]) if one.verdict == "messages" else one
        for id, copy in found.items():
            if one.verdict == "messages" or one.subscription == id:
                copy.apply(arrived)
    return found


def test_messages_of_a_scheme_are_those_of_one_process(spark, places):
    events = changes(160)
    events[40:40] = [Event.snapshot(id, id=f"of {id}") for id in TEXTS]
    with EventLog(places[0]) as log:
        log.append(events[:100])
        log.append(events[100:])
    stream = correlate(spark, *places, messages="Ref-SJ-Clu+", buckets=2, available_now=True, max_events=100)
    assert stream.wait(120)
    found = notifications(places[2])
    engine = Engine(tables=TABLES)
    for id, text in TEXTS.items():
        engine.subscribe(id, text)
    made = JoinMessages(engine)

    def written(records):
        """Of each event and population the messages, whatever part they are of."""
        sent = defaultdict(list)
        for one in records:
            sent[one.event, one.population] += [encode(packet) for packet in one.packets]
        return {key: sorted(packets) for key, packets in sent.items()}

    expected = [record for event in events for record in made.publish([event])]
    assert written(read_records(found)) == written(expected)
    assert len(expected) > 60
    for copy in message_copies(found).values():
        assert copy.missing is None
    engine.publish_many([event for event in events if event.type != "tidings.snapshot"])
    for id, copy in message_copies(found).items():
        rows = Counter((one.table, json.dumps(one.row)) for one in engine.snapshot(id).changes)
        names = {one.table for one in engine.snapshot(id).changes}
        assert rows == Counter((name, json.dumps(row)) for name in names for row in copy.rows(name))
    assert {one.verdict for one in Notification.from_table(found)} == {"messages", "snapshot", "error"}
