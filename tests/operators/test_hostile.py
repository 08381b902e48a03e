"""What a demanding user tries: conditions of every kind around operators, and operators that misbehave."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from tidings import Engine, Event, operator
from tidings.errors import SubscriptionError
from tidings.notification import Notification
from tidings.operators.operator import OperatorError, Out

pytestmark = pytest.mark.filterwarnings("ignore::tidings.engine.BroadSubscription")
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


def bindings(told: list[Notification]) -> list[dict[str, str]]:
    assert {one.verdict for one in told} <= {"match"}
    return [one.bindings for one in told]


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
