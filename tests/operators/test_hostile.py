"""What a demanding user tries: conditions of every kind around operators, and operators that misbehave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tidings import Engine, Event, operator
from tidings.notification import Notification
from tidings.operators.operator import Operator, Out

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
