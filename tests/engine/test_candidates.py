"""Candidates of events: what would match if operators and networks let it through, neither of which is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidings import Engine, Event, operator
from tidings.storage import versions
from tidings.storage.divided_index import DividedIndex

TEXTS = {
    "cheap": "WHERE price < 20",
    "cheap or red": "WHERE price < 20 OR colour = 'red'",
    "dear": "WHERE price > 20",
    "costly": "WHERE price < 20 AND costly(20)",
    "odd": "WHERE price < 20 AND price + weight > 5",
    "even": "WHERE price < 20 AND price + weight > 500",
}


@operator
def costly(event: Event, limit: int) -> bool:
    raise AssertionError("no operator is called")


def engine() -> Engine:
    made = Engine(operators=[costly])
    for id, text in TEXTS.items():
        made.subscribe(id, text)
    return made


@pytest.mark.parametrize("place", [None, "split", "contain"])
def test_candidates_of_all_events(tmp_path: Path, place: str | None) -> None:
    index = engine()
    if place is not None:
        version = versions.publish(tmp_path, index, placement=versions.Placement(place, 2))
        index = versions.open(tmp_path, version, operators=[costly])
        assert isinstance(index, DividedIndex)
    first, second = (Event("t", {"price": price, "weight": 9}) for price in (5, 7))
    assert sorted(index.candidates([first])) == ["cheap", "cheap or red", "costly", "odd"]
    assert sorted(index.candidates([first, second])) == ["cheap", "cheap or red", "costly", "odd"]
    red = Event("t", {"price": [5, 70], "colour": "red"})
    assert sorted(index.candidates([first, red])) == ["cheap", "cheap or red", "costly"]
    index.unsubscribe("cheap")
    assert sorted(index.candidates([first, second])) == ["cheap or red", "costly", "odd"]
    assert index.candidates([Event("t", {"topic": "sport"})]) == []
