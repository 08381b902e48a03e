"""The data of the demo: sample feeds and subscriptions, generated subscribers, and generated news.

The generated subscribers are 20,000 operators who each watch one software product for advisories above a score of
their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.errors import TidingsError

if TYPE_CHECKING:
    from tidings.model.event import Event

OPERATORS = 20_000
PRODUCTS = 2_000
ADVISORIES = 10_000
TEMPLATE = (
    "SELECT ?title, ?score WHERE (?item, rss:title, ?title), (?item, adv:product, '{product}'), (?item, adv:score, ?score)"
    " AND ?score >= {least}"
)
_RSS = "http://purl.org/rss/1.0/"
_SUBJECT = "http://purl.org/dc/elements/1.1/subject"
_ADVISORY = "http://example.org/advisory#"
_QUAKE = "http://example.org/quake#"
_WEATHER = "http://example.org/weather#"
# In the sample feed.
_REAL = ("libparchment", "lantern", "quillmq", "harbor", "otterssl", "fernhill", "nimbus")
_CLUBS = ("Harrow United", "Port Selkirk", "Brightwater", "Velmora Rovers", "Calder Town", "Sorrel Athletic")
_RIDERS = ("Okonkwo", "Bergstrom", "Delacroix", "Tanaka", "Moreau", "Lindqvist")
_PLACES = ("Karsa Ridge", "Isla Umbra", "Lake Torne", "Tarsk Plateau", "Kestrel Islands", "Calder Province")


def folder() -> Path:
    """The examples: inside an installed package, or beside `src` in a checkout."""
    here = Path(__file__).resolve()
    for folder in (here.parents[2] / "examples", here.parents[4] / "examples"):
        if (folder / "subscriptions.txt").exists():
            return folder
    raise TidingsError("the examples are not installed; run the demo from a checkout: make demo")


def operators() -> Iterator[tuple[str, str]]:
    """The name and the subscription of each operator."""
    import numpy as np

    random = np.random.default_rng(7)
    products = _products()
    chosen = random.integers(0, len(products), OPERATORS).tolist()
    least = (random.integers(40, 100, OPERATORS) / 10).tolist()
    for number, (product, score) in enumerate(zip(chosen, least, strict=True), 1):
        yield f"operator {number}", TEMPLATE.format(product=products[product], least=score)


def advisories() -> list[Event]:
    """Generated events, each a small graph like those of the sample feed."""
    import numpy as np

    random = np.random.default_rng(8)
    products = _products()
    chosen = random.integers(0, len(products), ADVISORIES).tolist()
    scores = (random.integers(10, 100, ADVISORIES) / 10).tolist()
    return [
        _advisory(number, products[product], score)
        for number, (product, score) in enumerate(zip(chosen, scores, strict=True), 1)
    ]


def news() -> Iterator[Event]:
    """Endless news, like those of the sample feeds: matches, races, quakes, storms and advisories."""
    import random

    chance = random.Random(9)
    pick = chance.choice
    for number in count(1):
        kind = number % 5
        if kind == 0:
            yield _advisory(ADVISORIES + number, pick(_REAL), chance.randint(60, 99) / 10)
        elif kind == 1:
            ours, theirs = chance.sample(_CLUBS, 2)
            minute = chance.randint(50, 95)
            late = str(minute) + {1: "st", 2: "nd", 3: "rd"}.get(minute % 10, "th")
            title = f"{ours} beat {theirs} with a goal in the {late} minute"
            yield _item(number, title, {_SUBJECT: "Football"})
        elif kind == 2:
            title = f"{pick(_RIDERS)} wins stage {chance.randint(1, 21)}"
            yield _item(number, title, {_SUBJECT: pick(("Cycling", "Rowing"))})
        elif kind == 3:
            magnitude = chance.randint(20, 75) / 10
            said = {
                _QUAKE + "magnitude": magnitude,
                _QUAKE + "depth": chance.randint(2, 60),
                _SUBJECT: "Earthquake",
            }
            yield _item(number, f"M {magnitude} {pick(_PLACES)}", said)
        else:
            wind, level = chance.randint(40, 140), pick(("yellow", "orange", "red"))
            said = {_WEATHER + "wind": wind, _WEATHER + "level": level, _SUBJECT: "Storm"}
            yield _item(number, f"Storm warning for {pick(_PLACES)}: gusts of {wind} km/h", said)


def _advisory(number: int, product: str, score: float) -> Event:
    said = {_ADVISORY + "product": product, _ADVISORY + "score": score}
    return _item(f"advisory-{number}", f"Advisory {number} for {product}", said)


def _item(id: int | str, title: str, said: dict[str, object]) -> Event:
    from tidings.formats.rdf import NTRIPLES
    from tidings.model.event import Event

    item = f"<http://example.org/news/{id}>"
    graph = "".join(
        f'{item} <{name}> "{value}" .\n'
        for name, value in {
            _RSS + "title": title,
            _RSS + "link": f"http://example.org/news/{id}",
            **said,
        }.items()
    )
    return Event(id=str(id), source="generated", datacontenttype=NTRIPLES, data=graph.encode())


def _products() -> list[str]:
    return [*_REAL, *(f"product-{number}" for number in range(PRODUCTS - len(_REAL)))]
