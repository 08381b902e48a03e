"""Operators in the workers: answers as in one process, and what all workers learnt in the next version."""

import os
import random
import threading
import time
from pathlib import Path

import pytest

from tests.kinds.operators.cases import Case
from tidings import Engine, Event, TidingsError, operator
from tidings.formats.json_lines import read_lines
from tidings.kinds.operators.functions.catalogue import read_operators
from tidings.kinds.operators.functions.signature import Out
from tidings.model.event import to_table
from tidings.model.notification import Notification
from tidings.spark import match, notifications, run
from tidings.spark.code_pickle import pickle_code, unpickle_code
from tidings.storage import operator_feedback, versions
from tidings.storage.event_log import EventLog

pytestmark = pytest.mark.filterwarnings("ignore::tidings.engine.engine.BroadSubscription")
CITY = Path(__file__).parents[2] / "examples" / "city"


@operator(cost=1e-4, batch=True)
def even(calls) -> list[bool]:
    return [event.attributes["n"] % 2 == 0 for (event,) in calls]


@operator(cost=1e-4)
async def tens(event, count: Out[int]):
    yield event.attributes["n"] // 10


@operator(cost=1e-4)
def broken(event):
    if event.attributes["n"] == 3:
        raise OSError("the lamp is broken")
    return True


@operator(cost=1e-4)
def late(event, what: str):
    return what == "now"


def numbers(low, high):
    return [Event(id=str(n), source="test", attributes={"n": n}) for n in range(low, high)]


def told(table):
    return sorted(
        (n.event, n.subscription, n.verdict, n.message or "", n.bindings)
        for n in Notification.from_table(table)
    )


def subscriptions(path):
    lines = path.read_text().splitlines()
    return [line.split(": ", 1) for line in lines if line and not line.startswith("#")]


@pytest.fixture
def index(tmp_path):
    engine = Engine(operators=[even, tens, broken])
    engine.subscribe("even", "SELECT ?c WHERE even() AND tens(?c) AND ?c < 2")
    engine.subscribe("not", "WHERE NOT even() AND broken()")
    versions.publish(tmp_path / "index", engine)
    return tmp_path / "index"


def test_the_cameras_of_a_city(spark, tmp_path):
    operators = read_operators(str(CITY / "operators.py"))
    engine = Engine(operators=operators)
    for id, text in subscriptions(CITY / "subscriptions.txt"):
        engine.subscribe(id, text)
    versions.publish(tmp_path / "index", engine)
    events = read_lines((CITY / "events.jsonl").read_bytes())
    expected = told(engine.publish_many(events))
    assert {verdict for _, _, verdict, _, _ in expected} == {"match", "undecided"}
    # A file's operators go by value; the workers know nothing of the file.
    found = match(spark.createDataFrame(events), tmp_path / "index", operators=[str(CITY / "operators.py")])
    assert told(found.toArrow()) == expected


@pytest.mark.parametrize("seed", range(2))
def test_a_random_case(spark, tmp_path, seed):
    case = Case(random.Random(f"spark {seed}"), subscriptions=20, events=8, triples=0.3, mixed=True)
    engine = Engine(operators=case.operators.values())
    engine.subscribe_many((f"s{i}", text) for i, text in enumerate(case.texts))
    versions.publish(tmp_path / "index", engine)
    events = [case.event(n) for n in range(8)]
    frame = spark.createDataFrame(to_table(events)).repartition(3)
    found = match(frame, tmp_path / "index", operators=case.operators.values()).toArrow()
    # Which of several errors or bindings is told hangs on what was evaluated first.
    assert [row[:3] for row in told(found)] == [row[:3] for row in told(engine.publish_many(events))]


def test_a_stream_answers_gathers_and_takes_in_new_calls(spark, index, tmp_path):
    places = tmp_path / "log", index, tmp_path / "out", tmp_path / "checkpoint"
    operators = [even, tens, broken, late]
    with EventLog(tmp_path / "log") as log:
        log.append(numbers(0, 20))
        with run(spark, *places, operators=operators, max_events=10) as stream:
            stream.drain()
            first = told(notifications(tmp_path / "out"))
            one = versions.open(index, versions.current(index), operators=operators)
            assert first == told(one.publish_many(numbers(0, 20)))
            assert ("3", "not", "undecided", "broken failed: OSError: the lamp is broken", {}) in first
            # A call in the tail, of an operator that no subscription called before.
            text = "WHERE late(now) AND n > 20"
            versions.append(index, [versions.Change("late", text)], operators=operators)
            log.append(numbers(20, 30))
            stream.drain()
            assert [row[0] for row in told(notifications(tmp_path / "out")) if row[1] == "late"] == [
                str(n) for n in range(21, 30)
            ]
    learnt = known(versions.open(index, versions.compact(index, operators=operators), operators=operators))
    assert learnt["even()"] == (30, 30, 15)
    assert learnt["late('now')"][0] == 9
    assert learnt["broken()"][0] > 10  # how often it came to the second, workers have chosen
    # Nothing new: nothing is counted again.
    versions.append(index, [versions.Change("late", None)])
    again = known(versions.open(index, versions.compact(index, operators=operators), operators=operators))
    assert {text: again[text] for text in ("even()", "broken()")} == {
        text: learnt[text] for text in ("even()", "broken()")
    }
    assert "late('now')" not in again


def known(engine):
    """By predicate: for how many events it was wanted and told, and for how many it held."""
    predicates, learnt = engine._checker.table.predicates, engine._checker.table.predicates.learnt
    rows = zip(predicates.texts, learnt.wanted, learnt.told, learnt.held, strict=True)
    return {text: tuple(map(int, counts)) for text, *counts in rows}


def test_a_replayed_batch_counts_once(spark, index, tmp_path):
    places = tmp_path / "log", index, tmp_path / "out", tmp_path / "checkpoint"

    def full(frame, batch):
        raise OSError("the sink's disk is full")

    with EventLog(tmp_path / "log") as log:
        log.append(numbers(0, 10))
        operators = [even, tens, broken]
        stream = run(spark, *places, operators=operators, sink=full)
        with pytest.raises(TidingsError, match="disk is full"):
            stream.wait(120)
        stream.stop()
        assert sum(1 for _ in (index / operator_feedback.FOLDER).iterdir()) == 1
        # A new base takes it in before the replay comes.
        versions.append(index, [versions.Change("none", "WHERE n = -1")])
        versions.compact(index, operators=operators)
        assert run(spark, *places, operators=operators, available_now=True).wait(120)
    engine = Engine(operators=operators)  # built anew: it knows what the base before it knew
    engine.subscribe("even", "WHERE even()")
    versions.publish(index, engine)
    assert known(engine)["even()"][0] == 10


def test_operators_that_are_missing_are_told_at_once(spark, index, tmp_path):
    places = tmp_path / "log", index, tmp_path / "out", tmp_path / "checkpoint"
    frame = spark.createDataFrame(to_table(numbers(0, 1)))
    with pytest.raises(TidingsError, match="unknown operator 'tens'"):
        match(frame, index, operators=[even, broken])
    with pytest.raises(TidingsError, match="there is no module 'nowhere'"):
        match(frame, index, operators=["nowhere"])
    with EventLog(tmp_path / "log") as log:
        with pytest.raises(TidingsError, match="unknown operator"):
            run(spark, *places)
        log.append(numbers(0, 4))
        with run(spark, *places, operators=[even, tens, broken]) as stream:
            stream.drain()
            versions.append(index, [versions.Change("late", "WHERE late(now)")], operators=[late])
            log.append(numbers(4, 8))
            with pytest.raises(TidingsError, match="stream stopped: .*unknown operator 'late'"):
                stream.drain()
        # With what was missing it goes on where it stopped.
        assert run(spark, *places, operators=[even, tens, broken, late], available_now=True).wait(120)
    found = [row[0] for row in told(notifications(tmp_path / "out")) if row[1] == "late"]
    assert found == ["4", "5", "6", "7"]


def test_what_cannot_be_sent_is_told_before_any_job(spark, index):
    lock = threading.Lock()

    @operator
    def waits(event):
        with lock:
            return True

    frame = spark.createDataFrame(to_table(numbers(0, 1)))
    with pytest.raises(TidingsError, match="cannot be sent to the workers"):
        match(frame, index, operators=[even, tens, broken, waits])


def test_a_worker_keeps_its_operators_from_task_to_task(spark, tmp_path):
    loaded = []

    @operator(cost=1e-3)
    def model(event, age: Out[float], worker: Out[int]):
        if not loaded:
            loaded.append(time.monotonic())
        yield loaded[0], os.getpid()

    engine = Engine(operators=[model])
    engine.subscribe("m", "WHERE model(?age, ?worker)")
    versions.publish(tmp_path / "index", engine)
    frame = spark.createDataFrame(to_table(numbers(0, 40))).repartition(8)
    found = match(frame, tmp_path / "index", operators=[model]).toArrow().to_pylist()
    assert len(found) == 40
    models = {tuple(dict(row["bindings"]).values()) for row in found}
    assert len(models) == len({worker for _, worker in models}), "a worker has loaded its model once"


def test_an_operator_that_calls_itself_arrives_whole():
    @operator(cost=1e-3, retries=2)
    def countdown(event, start: int, left: Out[int]):
        yield start
        if start:
            yield from countdown(event, start - 1)

    pickled = pickle_code([countdown])
    (arrived,) = unpickle_code(pickled).operators
    assert arrived is not countdown
    assert (repr(arrived), arrived.signature) == (repr(countdown), countdown.signature)
    assert list(arrived(None, 3)) == [3, 2, 1, 0]
    assert unpickle_code(bytes(pickled)).operators[0] is arrived
    assert unpickle_code(pickle_code([even])).operators[0] is even  # of a module: by its name
