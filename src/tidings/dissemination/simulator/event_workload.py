"""Draws subscriptions, texts of filters and patterns of which many contain others, and events for a content-based network.

An event is about a topic and has a price and a rating, as attributes or as a graph. A subscription asks for a topic: for all of it, below
a price, or within a range of prices and from a rating on. Topics follow Zipf's law, prices of subscriptions are multiples of ten; so
popular texts occur often, and the wide ones of a topic contain the narrow ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tidings.model.event import Event

_WIDE, _BELOW = 0.1, 0.5  # shares of subscriptions to all of a topic, and to what is below a price
_URN = "urn:example:"


@dataclass(frozen=True, slots=True)
class Events:
    subscriptions: int = 1_000
    topics: int = 100
    patterns: float = 0.3
    """The share of subscriptions that are patterns, and of events that are graphs."""
    payload: int = 500
    """Bytes of each event's text."""
    events: int = 200
    """How many are measured."""
    turnover: int = 1
    """A subscription ends and another one comes every so many events; 0: never."""
    seed: int = 1


class DrawnEvents:
    """Both go on as long as they are taken."""

    def __init__(self, events: Events) -> None:
        self._events = events
        weights = 1 / np.arange(1, events.topics + 1)
        self._weights = weights / weights.sum()

    def texts(self) -> Iterator[str]:
        """Of subscriptions."""
        rng = np.random.default_rng((self._events.seed, 0))
        while True:
            topic, share = self._topic(rng), rng.random()
            low, high = sorted((rng.choice(11, 2, replace=False) * 10).tolist())
            conditions = [
                f"{{price}} < {high}" if share < _BELOW else f"{{price}} BETWEEN {low} AND {high}",
                f"{{rating}} >= {int(rng.integers(2, 6))}",
            ]
            kept = conditions[: 0 if share < _WIDE else 1 if share < _BELOW else 2]
            yield (_pattern if rng.random() < self._events.patterns else _filter)(topic, kept)

    def events(self) -> Iterator[Event]:
        rng, number = np.random.default_rng((self._events.seed, 1)), 0
        while True:
            number += 1
            about = {
                "topic": self._topic(rng),
                "price": int(rng.integers(100)),
                "rating": int(rng.integers(1, 6)),
            }
            text = f"{number} ".ljust(self._events.payload, ".")[: self._events.payload]
            if rng.random() >= self._events.patterns:
                yield Event(id=str(number), attributes=about | {"text": text})
                continue
            named = {name: f'"{value}"' if isinstance(value, str) else value for name, value in about.items()}
            objects = "; ".join(f"<{_URN}{name}> {value}" for name, value in named.items())
            graph = f'<{_URN}{number}> {objects}; <{_URN}text> "{text}" .'
            yield Event.from_rdf(graph, "turtle", id=str(number))

    def _topic(self, rng: np.random.Generator) -> str:
        return f"topic{int(rng.choice(self._events.topics, p=self._weights)) + 1}"


def _filter(topic: str, conditions: list[str]) -> str:
    return " AND ".join([f"WHERE topic = '{topic}'", *conditions]).format(price="price", rating="rating")


def _pattern(topic: str, conditions: list[str]) -> str:
    names = ("price", "rating")[: len(conditions)]
    triples = [f"(?item, <{_URN}topic>, '{topic}')", *(f"(?item, <{_URN}{name}>, ?{name})" for name in names)]
    return " AND ".join([f"SELECT ?item WHERE {', '.join(triples)}", *conditions]).format(
        price="?price", rating="?rating"
    )
