"""What the folders in tests/fixtures/version-0.1.tar.gz were made of, by the code of version 0.1.

All kinds of subscription, alone and combined, with what that version left to be parsed while matching: residual
conditions, programs of operators, conditions inside filters.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

import tidings
from tidings import Event, Network, Out, Taxonomy

PREFIXES = {"ex": "http://example.org/"}


@tidings.operator
def near(event: Event, place: str) -> bool:
    return event.attributes.get("place") == place


@tidings.operator
def size(event: Event, n: Out[int]) -> Iterator[int]:
    yield int(event.attributes.get("size", 0))


@tidings.operator
def longer(event: Event, text: str, n: Out[int]) -> Iterator[int]:
    yield len(text)


OPERATORS = [near, size, longer]
TABLES: list[tuple[str, dict[str, str], list[str]]] = [
    ("stocks", {"symbol": "text", "per": "number"}, ["symbol"]),
    ("reviews", {"id": "integer", "symbol": "text", "rating": "integer"}, ["id"]),
]
TEXTS = {
    "filter": "WHERE topic = 'news' AND (age BETWEEN 20 AND 30 OR geo IN ('CA', 'NY'))",
    "sum": "WHERE age + size > 30",
    "any": "WHERE ANY item IN items SATISFIES (item.price > 5 AND item.name = 'pen')",
    "words": "WHERE title CONTAINS 'chess' OR title = 'GOAL' IGNORE CASE",
    "title": "SELECT ?t WHERE (?i, rss:title, ?t)",
    "sport": "SELECT ?i WHERE (?i, ex:about, ?s) AND ?s ISA ex:Sport",
    "residual": "SELECT ?t WHERE (?i, rss:title, ?t) AND topic = 'news'",
    "two variables": "WHERE (?i, ex:low, ?a), (?i, ex:high, ?b) AND ?a < ?b",
    "two ways": "WHERE (?i, ex:about, ex:Chess) OR (?i, rss:title, 'Goal') OR topic = 'sport'",
    "at acme": "WHERE age > 18 VIA net AT 'acme'",
    "call": "WHERE near('Bronx')",
    "answer": "WHERE size(?n) AND ?n > 4",
    "call and filter": "WHERE topic = 'news' AND near('Bronx') AND NOT near('Queens')",
    "call or filter": "WHERE age > 28 OR near('Queens')",
    "call on a title": "SELECT ?t, ?n WHERE (?i, rss:title, ?t) AND longer(?t, ?n) AND ?n > 4",
    "call at acme": "WHERE size(?n) AND ?n > 2 VIA net AT 'acme'",
    "join": "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per > 45 AND rating >= 6",
    "table": "SELECT * FROM stocks WHERE per > 60",
    "gone": "WHERE topic = 'news'",
}
TEMPLATE = "SELECT ?t WHERE (?i, rss:title, ?t) AND (age > $age OR near($place))"
LATER = {"later": "WHERE (?i, ex:low, ?a) AND age > 25", "title": "SELECT ?i WHERE (?i, rss:title, 'Goal')"}
"""What the tail of the index has."""


def taxonomy() -> Taxonomy:
    made = Taxonomy()
    made.add_class("http://example.org/Sport")
    made.add_class("http://example.org/Chess", ["http://example.org/Sport"], "chess")
    return made


def network() -> Network:
    made = Network()
    for name, where in (("hall", None), ("door", "topic = 'news'"), ("acme", "age + size > 20")):
        made.add_node(name, where)
    made.add_edge("hall", "door")
    made.add_edge("door", "acme")
    return made


def fill(engine: Any) -> None:
    """Subscribes, and publishes some rows and events, so that there is state and something learnt."""
    for id, text in TEXTS.items():
        engine.subscribe(id, text)
    engine.subscribe("ended", "WHERE topic = 'news'", valid_until="2030-01-01")
    table = pa.table({"id": ["t1", "t2"], "age": [22, 28], "place": ["Bronx", "Queens"]})
    engine.subscribe_table(TEMPLATE, table)
    engine.unsubscribe("gone")
    for event in rows(range(8)):
        engine.publish(event)
    for event in events(range(20)):
        engine.publish(event)


def rows(numbers: range) -> list[Event]:
    found = []
    for n in numbers:
        symbol = f"S{n % 4}"
        found.append(Event.insert("stocks", {"symbol": f"{symbol}-{n}", "per": 40 + 5 * n}, id=f"s{n}"))
        row = {"id": n, "symbol": f"{symbol}-{n}", "rating": n % 10}
        found.append(Event.insert("reviews", row, id=f"r{n}"))
    return found


def events(numbers: range) -> list[Event]:
    found = []
    for n in numbers:
        rng = random.Random(n)
        lines = [f'<urn:i{n}> <http://purl.org/rss/1.0/title> "{rng.choice(["Goal", "Long title"])}" .']
        if rng.random() < 0.5:
            subject = rng.choice(["http://example.org/Chess", "http://example.org/Art"])
            lines.append(f"<urn:i{n}> <http://example.org/about> <{subject}> .")
        if rng.random() < 0.5:
            for name in ("low", "high"):
                lines.append(f"<urn:i{n}> <http://example.org/{name}> {rng.randrange(5)} .")
        attributes = {
            "topic": rng.choice(["news", "sport"]),
            "age": rng.randrange(15, 35),
            "geo": rng.choice(["CA", "NY", "TX"]),
            "size": rng.randrange(10),
            "place": rng.choice(["Bronx", "Queens"]),
            "title": rng.choice(["a chess game", "goal", "other"]),
            "items": [{"name": rng.choice(["pen", "ink"]), "price": rng.randrange(10)} for _ in range(2)],
        }
        source = rng.choice(["hall", "elsewhere"])
        found.append(
            Event.from_rdf(
                "\n".join(lines),
                "turtle",
                source=source,
                id=f"e{n}",
                attributes=attributes,
                time="2026-01-01",
            )
        )
    return found


def answers(engine: Any, published: list[Event], every: bool = False) -> list[list[Any]]:
    """Notifications as JSON would have them, in an order of their own."""
    found = engine.publish_many(published, all_bindings=every).to_pylist()
    return sorted(
        [
            row["event"],
            row["subscription"] or "",
            row["verdict"],
            sorted(map(list, row["bindings"] or ())),
            row["sequence"] or 0,
            [[change["table"], change["change"], change["row"]] for change in row["changes"] or ()],
        ]
        for row in found
    )
