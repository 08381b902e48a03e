"""What a search lacks, what it implies, an example of it; what is refused."""

from __future__ import annotations

import random
import sys

import pytest

from tests.examples import seeds
from tests.model.search.test_definition import searches, texts
from tidings import Engine, Event
from tidings.errors import SubscriptionError
from tidings.model.search import stems
from tidings.model.search.expression import (
    MAX_DEPTH,
    MAX_WORDS,
    example,
    implies,
    read_search,
    search_fault,
    search_holds,
    unsatisfied,
)

SMALL = ["sun", "rain", "wind", "it's"]


@pytest.mark.parametrize(
    ("search", "text", "lacks"),
    [
        ("solar power", "Power", ["'solar' is not there"]),
        ("solar -nuclear", "solar nuclear", ["the excluded 'nuclear' is there"]),
        (
            '"wind power" -coal',
            "power, wind, coal",
            ['"wind power" is not there', "the excluded 'coal' is there"],
        ),
        ("solar OR wind", "coal", ["none of 'solar', 'wind' is there"]),
        ("solar OR (wind -cold)", "cold wind", ["'solar' is not there and the excluded 'cold' is there"]),
        ("solar -(wind OR rain)", "solar rain", ["the excluded 'wind' OR 'rain' is there"]),
        ("solar", "SOLAR", []),
    ],
)
def test_what_a_text_lacks(search: str, text: str, lacks: list[str]) -> None:
    assert unsatisfied(text, search) == lacks


@pytest.mark.parametrize("seed", seeds(1, 10))
def test_a_text_lacks_nothing_where_a_search_holds_and_something_elsewhere(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        text, search = texts(rng), searches(rng)
        assert bool(unsatisfied(text, search)) is not search_holds(text, search)


@pytest.mark.parametrize("seed", seeds(1, 10))
def test_what_is_implied_holds(seed: int) -> None:
    rng = random.Random(seed)
    told = [" ".join(rng.choices(SMALL, k=rng.choice([1, 2, 3, 5]))) for _ in range(60)] + [""]
    asked = [searches(rng, SMALL, depth=1) for _ in range(40)]
    held = [{i for i, text in enumerate(told) if search_holds(text, search)} for search in asked]
    found = 0
    for a, known in enumerate(asked):
        assert implies(read_search(known), read_search(known))
        for b, wanted in enumerate(asked):
            if implies(read_search(known), read_search(wanted)):
                assert held[a] <= held[b], (known, wanted)
                found += a != b
    assert found > 20


def test_an_example_usually_satisfies_its_search() -> None:
    rng = random.Random(1)
    made = [searches(rng) for _ in range(200)]
    assert sum(search_holds(example(read_search(search)), search) for search in made) > 150


def test_limits() -> None:
    assert search_fault(" ".join(["a"] * MAX_WORDS)) is None
    assert str(search_fault(" ".join(["a"] * (MAX_WORDS + 1)))).startswith(
        "the search has more than 1,000 words"
    )
    deep = "(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH
    assert search_fault(deep) is None
    assert "too many parentheses" in str(search_fault(f"({deep})"))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    stems._stemmer.cache_clear()
    engine = Engine()
    with pytest.raises(
        SubscriptionError,
        match=r"snowballstemmer, which is not installed at 1:27; install tidings\[stemming\]",
    ):
        engine.subscribe("a", "body SEARCH 'run' STEMMED 'english'")
    engine.subscribe("b", "body SEARCH 'run'")
    assert [n.subscription for n in engine.publish(Event(attributes={"body": "run"}))] == ["b"]
    monkeypatch.undo()
    stems._stemmer.cache_clear()


def test_an_engine_explains_searches() -> None:
    engine = Engine()
    engine.subscribe("a", "WHERE body SEARCH 'solar -nuclear'")
    engine.subscribe("t", "WHERE (?i, <urn:t>, ?t) AND ?t SEARCH '\"wind power\"'")
    event = Event.from_rdf(
        '<urn:i> <urn:t> "Power by wind" .', "turtle", attributes={"body": ["x", "nuclear solar"]}
    )
    assert (
        str(engine.explain("a", event))
        .splitlines()[1]
        .endswith("body is 'x', 'nuclear solar'; 'solar' is not there")
    )
    assert 'does not hold for ?t = Power by wind; "wind power" is not there' in str(
        engine.explain("t", event)
    )
