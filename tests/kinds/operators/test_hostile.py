"""What a demanding user tries: conditions of every kind around operators, and operators that misbehave."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest

from tidings import Engine, Event, operator
from tidings.errors import SubscriptionError
from tidings.kinds.networks.network import Network
from tidings.kinds.operators.functions.operator import OperatorError, Out
from tidings.model.event import to_table
from tidings.model.notification import Notification

pytestmark = pytest.mark.filterwarnings("ignore::tidings.engine.engine.BroadSubscription")
PREFIXES = {"rss": "http://purl.org/rss/1.0/"}


class Asked:
    """Operators that count how often they are asked about what."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[Any, ...]] = Counter()

        @operator
        def locIn(event: Event, place: str) -> bool:
            self.counts["locIn", event.id, place] += 1
            return event.attributes.get("place") == place

        @operator
        def count(event: Event, n: Out[int]) -> Iterator[int]:
            self.counts["count", event.id] += 1
            yield from event.attributes.get("counts", [])

        @operator
        def short(event: Event, text: str) -> bool:
            self.counts["short", event.id, text] += 1
            return len(text) < 3

        self.operators = [locIn, count, short]

    def engine(self, *texts: str, **options: Any) -> Engine:
        engine = Engine(operators=self.operators, prefixes=PREFIXES, **options)
        for number, text in enumerate(texts):
            engine.subscribe(f"s{number}", f"WHERE {text}" if " WHERE " not in text else text.strip())
        return engine


@pytest.fixture
def asked() -> Asked:
    return Asked()


def turtle(body: str, id: str = "e", **attributes: Any) -> Event:
    data = f"@prefix rss: <{PREFIXES['rss']}> . {body}"
    return Event(id=id, datacontenttype="text/turtle", data=data.encode(), attributes=attributes)


def bindings(notifications: list[Notification]) -> list[dict[str, str]]:
    assert {notification.verdict for notification in notifications} <= {"match"}
    return [notification.bindings for notification in notifications]


def test_what_triples_bind_is_told_beside_a_call_without_variables(asked: Asked) -> None:
    event = turtle("<urn:a> rss:title 'x' .", place="Bronx")
    assert bindings(asked.engine("(?i, rss:title, ?t) AND locIn(Bronx)").publish(event)) == [
        {"i": "urn:a", "t": "x"}
    ]
    engine = asked.engine(" SELECT ?t WHERE (?i, rss:title, ?t) AND locIn(Bronx)")
    assert bindings(engine.publish(event)) == [{"t": "x"}]
    several = turtle("<urn:a> rss:title 'x', 'y' .", place="Bronx")
    found = bindings(engine.publish(several, all_bindings=True))
    assert sorted(one["t"] for one in found) == ["x", "y"]


@pytest.mark.parametrize(
    "text",
    [
        "(?i, rss:title, 'x') OR locIn(Bronx)",
        "(?i, rss:title, 'x') OR ((?i, rss:link, ?l) AND short(?l))",
        "topic = 'news' OR ((?i, rss:link, ?l) AND short(?l))",
        "topic = 'news' OR locIn(Bronx)",
        "topic = 'news' OR NOT locIn(Queens)",
        "(topic = 'news' AND locIn(Bronx)) OR (?i, rss:link, ?l)",
    ],
)
def test_no_operator_is_asked_when_another_way_has_matched(asked: Asked, text: str) -> None:
    event = turtle("<urn:a> rss:title 'x'; rss:link 'y' .", place="Bronx", topic="news")
    assert len(asked.engine(text).publish(event)) == 1
    assert not asked.counts


@pytest.mark.parametrize(
    "text",
    [
        "((?i, rss:title, ?l) AND locIn(Bronx)) OR ((?i, rss:link, ?l) AND short(?l))",
        "locIn(Bronx) OR ((?i, rss:link, ?l) AND short(?l))",
        "(topic = 'news' AND locIn(Bronx)) OR ((?i, rss:link, ?l) AND short(?l))",
    ],
)
def test_a_subscription_is_told_once_of_an_event_that_satisfies_it_in_two_ways(
    asked: Asked, text: str
) -> None:
    event = turtle("<urn:a> rss:title 'x'; rss:link 'y' .", place="Bronx", topic="news")
    assert len(bindings(asked.engine(text, "topic = 'other'").publish(event))) == 1
    assert set(asked.counts.values()) == {1}


def test_two_patterns_beside_a_filter_are_told_once(asked: Asked) -> None:
    engine = asked.engine("(?i, rss:title, 'x') OR (?i, rss:link, 'y')", "topic = 'z'", "locIn(Queens)")
    assert len(engine.publish(turtle("<urn:a> rss:title 'x'; rss:link 'y' ."))) == 1


def test_every_binding_of_every_way_is_told(asked: Asked) -> None:
    engine = asked.engine("(?i, rss:title, 'x') OR ((?i, rss:link, ?l) AND short(?l))")
    found = engine.publish(turtle("<urn:a> rss:title 'x'; rss:link 'y', 'z' ."), all_bindings=True)
    assert sorted(one.get("l", "") for one in bindings(found)) == ["", "y", "z"]


def test_a_replacement_that_is_refused_replaces_nothing() -> None:
    @operator
    def whole(event: Event, number: int) -> bool:
        return number == 1

    engine = Engine(operators=[whole])
    engine.subscribe("s", "WHERE whole(1)")
    with pytest.raises(SubscriptionError, match='"abc" is not an input for whole'):
        engine.subscribe("s", "WHERE whole(abc)")
    with pytest.raises(SubscriptionError, match='"abc" is not an input for whole'):
        engine.subscribe_table("WHERE whole($n)", pa.table({"id": ["t", "s"], "n": ["1", "abc"]}))
    assert [one.subscription for one in engine.publish(Event())] == ["s"]
    engine.subscribe_table("WHERE whole($n)", pa.table({"id": ["t", "s"], "n": [1, 2]}))
    assert [one.subscription for one in engine.publish(Event())] == ["t"]
    engine.subscribe("s", "WHERE whole(1)")
    assert len(engine) == len(engine.publish(Event())) == 2


def test_operators_are_given_in_a_list() -> None:
    with pytest.raises(OperatorError, match=r"give a list, \[locIn\]"):
        Engine(operators=Asked().operators[0])  # type: ignore[arg-type]
    with pytest.raises(OperatorError, match="decorate the function with @tidings.operator"):
        Engine(operators=[len])  # type: ignore[list-item]


CONSTANTS = [
    ("1", 1),
    ("1.0", 1.0),
    ("'1'", "1"),
    ("true", True),
    ("-5", -5),
    ("1.5km", 1500),
    ("2020-02-29", date(2020, 2, 29)),
    ("2020-02-29T10:00:00Z", datetime(2020, 2, 29, 10, tzinfo=UTC)),
    ("<urn:a>", "urn:a"),
    ("rss:title", "http://purl.org/rss/1.0/title"),
    ("Times Square", "Times Square"),
    ("'it''s'", "it's"),
    ("'one\ntwo'", "one\ntwo"),
    (r"'back\\slash \t'", "back\\slash \t"),
    ("'$x'", "$x"),
    (r"'$\u0000x\u0000'", "$\0x\0"),
    ("'colour'@en-GB", "colour"),
    ("'5'^^<http://www.w3.org/2001/XMLSchema#integer>", 5),
    ("'z'^^<urn:type>", "z"),
    ("日本 🎉", "日本 🎉"),
    ("''", ""),
    ("'?x > 1 OR other()'", "?x > 1 OR other()"),
    (f"'{'x' * 100_000}'", "x" * 100_000),
]


def test_constants_reach_an_operator_as_they_were_written() -> None:
    got: list[object] = []

    @operator(name="my.own.hear")
    def hear(event: Event, given: object) -> bool:
        got.append(given)
        return True

    engine = Engine(operators=[hear], prefixes=PREFIXES)
    for number, (written, _) in enumerate(CONSTANTS):
        engine.subscribe(f"s{number}", f"WHERE my.own.hear({written})")
    assert len(engine.publish(Event())) == len(CONSTANTS)
    expected = Counter((type(value), value) for _, value in CONSTANTS)
    assert Counter((type(value), value) for value in got) == expected
    table = pa.table({"id": ["t"], "g": ["$g \0 ' \\ \n"]})
    engine.subscribe_table("WHERE my.own.hear($g) AND my.own.hear('$g')", table)
    got.clear()
    engine.publish(Event())
    assert table["g"][0].as_py() in got


def test_a_number_beyond_all_floats_is_no_input() -> None:
    @operator
    def hear(event: Event, given: object) -> bool:
        return True

    engine = Engine(operators=[hear], prefixes=PREFIXES)
    with pytest.raises(SubscriptionError, match="1e400.* is not an input for hear"):
        engine.subscribe("s", "WHERE hear(1e400)")
    engine.subscribe("t", "WHERE (?i, rss:link, ?n) AND hear(?n)")
    assert not engine.publish(turtle("<urn:a> rss:link 1e400 ."))
    assert len(engine.publish(turtle("<urn:a> rss:link 1e40 ."))) == 1


def test_an_operator_that_is_asked_about_many_values_takes_time_for_each_only(asked: Asked) -> None:
    engine = asked.engine("(?i, rss:link, ?l) AND short(?l)")
    for count in (1, 1_000):
        many = ", ".join(f"'long{n}'" for n in range(count))
        start = time.perf_counter()
        assert engine.publish(turtle(f"<urn:a> rss:link {many} .", f"none{count}")) == []
    assert time.perf_counter() - start < 5
    many = ", ".join(f"'{n}'" for n in range(500))
    start = time.perf_counter()
    found = engine.publish(turtle(f"<urn:a> rss:link {many} .", "all"), all_bindings=True)
    assert time.perf_counter() - start < 5
    assert len(found) == 100
    assert len(asked.counts) == 1_501
    assert set(asked.counts.values()) == {1}


def _counting(counts: Counter[tuple[str, str]], **settings: Any) -> Any:
    """An operator that counts how often it is asked about an event."""

    if settings.pop("is_async", False):

        @operator(name="level", **settings)
        async def level(event: Event, value: Out[int]) -> list[int]:
            counts["level", event.id] += 1
            return [int(event.attributes["level"])]

        return level
    if settings.get("batch"):

        @operator(name="level", **settings)
        def levels(calls: list[tuple[Event]], value: Out[int]) -> list[list[int]]:
            counts.update(("level", event.id) for (event,) in calls)
            return [[int(event.attributes["level"])] for (event,) in calls]

        return levels

    @operator(name="level", **settings)
    def plain(event: Event, value: Out[int]) -> Iterator[int]:
        counts["level", event.id] += 1
        yield int(event.attributes["level"])

    return plain


@pytest.mark.parametrize("settings", [{}, {"timeout": 10}, {"is_async": True}, {"batch": True}], ids=str)
def test_an_evaluation_is_done_once_an_event_for_all_layers_and_ways(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    level = _counting(counts, **settings)
    engine = Engine(operators=[level])
    table = pa.table({"id": [f"s{n}" for n in range(1_200)], "n": list(range(1_200))})
    engine.subscribe_table("WHERE level(?v) AND ?v > $n", table)
    events = [Event(id=f"e{n}", attributes={"level": n}) for n in range(0, 40, 8)]
    assert len(engine.publish_many(events)) == 0 + 8 + 16 + 24 + 32
    for n in range(20):  # in the tail
        engine.subscribe(f"t{n}", f"WHERE kind = 'a' OR NOT (level(?v) AND ?v > {n}) OR level(8)")
    counts.clear()
    notifications = engine.publish_many(events)
    assert len({(one["subscription"], one["event"]) for one in notifications.to_pylist()}) == len(
        notifications
    )
    assert len(notifications) == 0 + 8 + 16 + 24 + 32 + 20 + 20 + 4
    assert set(counts.values()) == {1}
    engine.save(tmp_path)
    for one in (engine, Engine.load(tmp_path, operators=[level])):
        counts.clear()
        assert sorted(map(str, one.publish_many(events).to_pylist())) == sorted(
            map(str, notifications.to_pylist())
        )
        assert set(counts.values()) == {1}


def test_one_event_a_table_lines_and_a_batch_are_answered_alike(asked: Asked) -> None:
    engine = asked.engine(
        "topic = 'x' AND count(?n) AND ?n > 1", "NOT locIn(Bronx)", "count(2) OR locIn(Bronx)"
    )
    rows = [
        {"id": "1", "topic": "x", "counts": [1, 2]},
        {"id": "2", "topic": "y", "counts": [2], "place": "Bronx"},
        {"id": "3", "topic": "x"},
    ]
    events = [Event(id=row["id"], attributes={k: v for k, v in row.items() if k != "id"}) for row in rows]

    def answers(table: pa.Table | pa.RecordBatch) -> list[tuple[Any, ...]]:
        return sorted(
            (one["subscription"], one["event"], one["verdict"], *one["bindings"]) for one in table.to_pylist()
        )

    table = engine.publish_many(events)
    assert len(table) == 5
    alone = [one for event in events for one in engine.publish(event)]
    assert sorted((n.subscription, n.event, n.verdict, *n.bindings.items()) for n in alone) == answers(table)
    lines = "\n".join(json.dumps(row) for row in rows)
    assert answers(engine.publish_lines(lines)) == answers(table)
    (batch,) = to_table(events).to_batches()
    assert answers(engine.match(batch)) == answers(table)
    assert len(engine.publish_many([])) == 0
    broken = engine.publish_lines(f"{lines}\n{{oops\n[1]")
    assert answers(broken.filter(pa.compute.is_valid(broken["subscription"]))) == answers(table)
    assert [one["verdict"] for one in broken.to_pylist()].count("error") == 2


def test_no_operator_is_asked_for_subscriptions_that_are_gone_over_or_not_reached(asked: Asked) -> None:
    network = Network()
    network.add_node("in")
    network.add_node("near")
    network.add_node("far")
    network.add_edge("in", "near")
    network.add_edge("in", "far", "topic = 'far'")
    engine = Engine(operators=asked.operators, networks={"net": network}, prefixes=PREFIXES)
    engine.subscribe("far", "WHERE locIn(A) VIA net AT far")
    engine.subscribe("far too", "WHERE (?i, rss:link, ?l) AND short(?l) VIA net AT far")
    engine.subscribe("far as well", "WHERE topic = 'near' AND locIn(B) VIA net AT far")
    engine.subscribe("over", "WHERE locIn(C)", valid_until="2001-01-01")
    engine.subscribe("gone", "WHERE locIn(D)")
    engine.unsubscribe("gone")
    engine.subscribe("replaced", "WHERE locIn(E)")
    engine.subscribe("replaced", "WHERE topic = 'never' AND locIn(F)")
    engine.subscribe("near", "WHERE locIn(G) VIA net AT near")
    event = turtle("<urn:a> rss:link 'x' .", topic="near", place="G")
    assert [one.subscription for one in engine.publish(replace(event, source="in"))] == ["near"]
    assert set(asked.counts) == {("locIn", "e", "G")}
    asked.counts.clear()
    event = turtle("<urn:a> rss:link 'x' .", topic="far", place="A")
    assert len(engine.publish(replace(event, source="in"))) == 2
    assert set(asked.counts.values()) == {1}


def test_an_operator_that_interrupts_leaves_an_engine_that_works() -> None:
    impatient = [KeyboardInterrupt, None]

    @operator
    def stop(event: Event) -> bool:
        if (error := impatient.pop(0)) is not None:
            raise error
        return True

    @operator
    async def slow(event: Event) -> bool:
        return True

    engine = Engine(operators=[stop, slow])
    engine.subscribe("s", "WHERE stop() AND slow()")
    with pytest.raises(KeyboardInterrupt):
        engine.publish(Event(id="1"))
    assert [(one.event, one.verdict) for one in engine.publish(Event(id="2"))] == [("2", "match")]


def test_an_operator_may_subscribe_but_not_publish_to_the_engine_that_asks_it() -> None:
    @operator
    def again(event: Event) -> bool:
        engine.subscribe(f"from {event.id}", "WHERE topic = 'x' AND NOT again()")
        return bool(engine.publish(Event(id="inner")))

    @operator
    async def slow(event: Event) -> bool:
        await asyncio.sleep(0.01)
        return True

    engine = Engine(operators=[again, slow])
    engine.subscribe("s", "WHERE again()")
    engine.subscribe("t", "WHERE slow()")
    for id in ("1", "2"):
        notifications = {one.subscription: one for one in engine.publish(Event(id=id))}
        assert notifications["t"].verdict == "match"
        assert notifications["s"].verdict == "undecided"
        assert "give it an engine of its own" in (notifications["s"].message or "")
    assert len(engine) == 4


@pytest.mark.parametrize("settings", [{"is_async": True}, {"timeout": 30}], ids=str)
def test_an_operator_in_the_background_does_not_wait_for_its_own_engine(settings: dict[str, Any]) -> None:
    async def later(event: Event) -> bool:
        return bool(engine.publish(Event(id="inner")))

    def now(event: Event) -> bool:
        return bool(engine.publish(Event(id="inner")))

    again = operator(name="again", timeout=settings.get("timeout"))(later if "is_async" in settings else now)
    engine = Engine(operators=[again])
    engine.subscribe("s", "WHERE again()")
    (notification,) = engine.publish(Event(id="outer"))
    assert notification.verdict == "undecided"
    assert "give it an engine of its own" in (notification.message or "")


def test_operators_that_have_changed_since_an_engine_was_saved_are_told(asked: Asked, tmp_path: Path) -> None:
    asked.engine("locIn(Bronx) AND count(?n)").save(tmp_path)
    locIn, count, _ = asked.operators

    def publish(*operators: Any) -> list[Notification]:
        return Engine.load(tmp_path, operators=operators).publish(
            Event(attributes={"place": "Bronx", "counts": [1]})
        )

    assert len(publish(locIn, count)) == 1
    with pytest.raises(SubscriptionError, match="unknown operator 'locIn'"):
        publish()
    wider = operator(name="locIn")(lambda event, place, metres: True)
    with pytest.raises(SubscriptionError, match="locIn has 2 arguments, not 1; write it as locIn"):
        publish(wider, count)
    other = operator(name="count")(lambda event, n: True)
    with pytest.raises(SubscriptionError, match=r"count bound what is an input of count\(n\) now"):
        publish(locIn, other)


def test_threads_take_turns() -> None:
    counts: Counter[tuple[str, str]] = Counter()
    engine = Engine(operators=[_counting(counts)])
    engine.subscribe_many((f"s{n}", f"WHERE level(?v) AND ?v > {n}") for n in range(10))
    found: dict[str, int] = {}

    def publish(thread: int) -> None:
        for n in range(10):
            event = Event(id=f"{thread}/{n}", attributes={"level": n})
            found[event.id] = len(engine.publish(event))

    threads = [Thread(target=publish, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {f"{thread}/{n}": n for thread in range(4) for n in range(10)}
    assert set(counts.values()) == {1}


def test_an_or_of_cheap_conditions_and_calls_has_the_answers_of_both(asked: Asked) -> None:
    engine = asked.engine(
        "topic = 'news' OR count(?n) OR MISSING topic", " SELECT ?n WHERE topic = 'x' OR count(?n)"
    )
    news = Event(id="1", attributes={"topic": "news", "counts": [1, 2]})
    assert len(engine.publish(news)) == 2
    every = engine.publish(news, all_bindings=True)
    assert sorted(str(one.bindings) for one in every if one.subscription == "s0") == [
        "{'n': '1'}",
        "{'n': '2'}",
        "{}",
    ]
    assert [one.bindings for one in engine.publish(Event(id="2"))] == [{}]
    assert engine.publish(Event(id="3", attributes={"topic": "y"})) == []


def test_what_nobody_else_has_decided_is_undecided(asked: Asked) -> None:
    @operator
    def down(event: Event) -> bool:
        raise ValueError("no\nanswer")

    asked.operators.append(down)
    engine = asked.engine(
        "down()",
        "NOT down()",
        "down() AND locIn(Bronx)",
        "down() OR locIn(Queens)",
        "topic = 'x' OR down()",
        "topic = 'y' AND down()",
        "(?i, rss:title, ?t) OR down()",
    )
    notifications = engine.publish(turtle("<urn:a> rss:title 'x' .", place="Queens", topic="x"))
    assert {notification.subscription: notification.verdict for notification in notifications} == {
        "s0": "undecided",
        "s1": "undecided",
        "s3": "match",
        "s4": "match",
        "s6": "match",
    }
    assert len(notifications) == 5
    assert {notification.message for notification in notifications} == {
        None,
        "down failed: ValueError: no answer",
    }


def test_a_pattern_that_runs_out_of_steps_hides_no_other_way(asked: Asked) -> None:
    many = turtle(
        f"<urn:a> rss:link {', '.join(repr(str(n)) for n in range(60))} .", topic="x", place="Bronx"
    )
    endless = "((?a, ?p, ?b) AND (?c, ?q, ?d) AND (?e, ?r, ?f) AND (?g, ?s, ?h)"
    endless += " AND ?b = ?d AND ?d = ?f AND ?f = ?h AND ?h = 'none')"
    others = ("topic = 'x'", "locIn(Bronx)", "topic = 'y'", "locIn(Queens)")
    engine = asked.engine(endless, *(f"{endless} OR {other}" for other in others))
    found = [(one.subscription, one.verdict) for one in engine.publish(many)]
    verdicts = ["undecided", "match", "match", "undecided", "undecided"]
    assert sorted(found) == [(f"s{n}", verdict) for n, verdict in enumerate(verdicts)]
