"""The kinds of subscription the contract is checked for. A new kind joins by making one of these.

Texts come from small vocabularies, so that most subscriptions match some event and many differ in constants only.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from tests.kinds.filters import cases as filter_cases
from tests.kinds.operators.cases import PLACES, Case
from tests.kinds.patterns import cases
from tidings.kinds.operators.functions.operator import Operator
from tidings.language.printer import to_text
from tidings.language.query import Query
from tidings.model.event import Event
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import ntriples


@dataclass(frozen=True)
class Kind:
    """What the contract needs to know of a kind; every function draws from the generator it is given."""

    name: str
    text: Callable[[random.Random], str]
    event: Callable[[random.Random], Event]
    taxonomy: Callable[[random.Random], Taxonomy]
    template: str
    row: Callable[[random.Random], dict[str, object]]
    operators: tuple[Operator, ...] = ()

    def __str__(self) -> str:
        return self.name

    def table(self, rng: random.Random, count: int) -> pa.Table:
        rows = [self.row(rng) for _ in range(count)]
        ids = [f"t{i}" for i in range(count)]
        return pa.table({"id": ids, **{name: [row[name] for row in rows] for name in rows[0]}})


def _pattern_text(rng: random.Random) -> str:
    text = to_text(cases.query(rng))
    kind = rng.random()
    if kind < 0.1:
        return f"{text} AND topic = 'finance'"  # an attribute: settled after the index
    if kind < 0.15:
        return "WHERE topic = 'finance' AND age > 20"
    return text


def _pattern_event(rng: random.Random) -> Event:
    graph = cases.graph(rng)
    lines = "".join(f"{ntriples(s)} {ntriples(p)} {ntriples(o)} .\n" for s, p, o in graph)
    attributes = {"topic": rng.choice(["finance", "sport"]), "age": rng.randint(18, 25)}
    return Event.from_rdf(lines, "nt", source="test", attributes=attributes, id=f"e{rng.getrandbits(64):x}")


def _pattern_row(rng: random.Random) -> dict[str, object]:
    return {
        "property": rng.choice(cases.PROPERTIES).value,
        "low": rng.randint(0, 3),
        "word": rng.choice(["red", "dark", 'say "hi"\n', "a\bc\f\\", "ü"]),
    }


PATTERNS = Kind(
    "patterns",
    _pattern_text,
    _pattern_event,
    cases.taxonomy,
    "SELECT ?x, ?y WHERE (?x, $property, ?y), (?x, ?p, ?z) AND (?y > $low OR ?z CONTAINS $word)",
    _pattern_row,
)


def _filter_text(rng: random.Random) -> str:
    text = to_text(Query(filter_cases.condition(rng, rng.choice([0, 1, 2, 3]))))
    if rng.random() < 0.1:  # in two ways, of which the event has one or both
        return f"{text} OR s = 'red' OR (?x, ?p, ?y)"
    return text


def _filter_event(rng: random.Random) -> Event:
    envelope = {"source": "test", "id": f"e{rng.getrandbits(64):x}"}
    attributes = filter_cases.attributes(rng)
    if rng.random() < 0.5:
        return Event(attributes=attributes, **envelope)
    return Event.from_rdf("<urn:a> <urn:b> <urn:c> .\n", "nt", attributes=attributes, **envelope)


def _filter_row(rng: random.Random) -> dict[str, object]:
    return {
        "low": rng.randint(0, 3),
        "word": rng.choice(filter_cases.TEXTS),
        "beginning": rng.choice(["r", "dark", "100%", "", "\U0010ffff"]),
        "search": rng.choice(["red", "dark red", '"dark red" OR zurich', "green OR red -dark"]),
    }


FILTERS = Kind(
    "filters",
    _filter_text,
    _filter_event,
    lambda rng: Taxonomy(),
    "WHERE i > $low AND (s = $word OR t STARTS WITH $beginning OR s CONTAINS $word OR i + j > $low OR t SEARCH $search OR NOT t SEARCH $search STEMMED 'english')",
    _filter_row,
)


def _operator_case(rng: random.Random) -> Case:
    return Case(rng, subscriptions=1, events=1, depth=1, triples=0.2)


def _operator_text(rng: random.Random) -> str:
    return _operator_case(rng).texts[0]


def _operator_event(rng: random.Random) -> Event:
    """An event whose number, which is all that operators look at, is like no other's."""
    event = _operator_case(rng).event(0)
    number = rng.getrandbits(64)
    return replace(event, id=f"e{number:x}", attributes={**event.attributes, "n": number})


def _operator_row(rng: random.Random) -> dict[str, object]:
    return {"low": rng.randint(0, 3), "place": rng.choice(PLACES), "most": rng.choice([0, 1, 2.5, 4])}


OPERATORS = Kind(
    "operators",
    _operator_text,
    _operator_event,
    lambda rng: Taxonomy(),
    "SELECT ?n WHERE a >= $low AND (size($place, ?n) AND ?n <= $most OR NOT near($place) AND people(?n))",
    _operator_row,
    tuple(Case(random.Random(7), mixed=True).operators.values()),
)
KINDS = [PATTERNS, FILTERS, OPERATORS]
