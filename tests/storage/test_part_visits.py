"""What the parts of a divided index are visited for is counted, the same in both ways to match."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tidings import Engine, Event
from tidings.model.event import to_table
from tidings.storage import versions
from tidings.storage.divided_index import DividedIndex, visits_of
from tidings.storage.division import Placement
from tidings.storage.part_visits import COUNTS, PartVisits, total

TEXTS = {"oil": "topic = 'oil'", **{f"over {n}": f"topic = 'oil' AND price > {n}" for n in range(0, 100, 10)}}
EVENTS = [
    Event("t", {"topic": t, "price": p}, id=f"{t} {p}") for t in ("oil", "gas") for p in range(-5, 90, 9)
]


def opened(folder: Path, place: str) -> DividedIndex:
    engine = Engine()
    for id, text in TEXTS.items():
        engine.subscribe(id, f"WHERE {text}")
    index = versions.open(folder, versions.publish(folder, engine, placement=Placement(place, 3)))
    assert isinstance(index, DividedIndex)
    return index


@pytest.mark.parametrize("place", ["split", "contain"])
def test_visits_are_counted_in_one_process_and_in_two_stages(tmp_path: Path, place: str) -> None:
    index, events = opened(tmp_path / place, place), to_table(EVENTS)
    assert not index.visits()
    index.publish_many(events)
    here = index.visits()
    found, forwards = index.match_front(events)
    for part in range(3):
        rows = forwards.event[forwards.part == part]
        answers = index.match_part(part, events.take(rows))
        assert here["forwards"][part] == len(rows)
        assert here["matches"][part] == len(answers)
        assert here["false_positives"][part] == len(rows) - len(set(answers["event"].to_pylist()))
    assert here["opened"] == [1, 1, 1]
    again = index.visits()
    assert np.array_equal(again.counts[:3], here.counts[:3])
    assert again["opened"] == [0, 0, 0], "they have stayed open"
    assert not index.visits(), "all were taken"
    assert here.forwards == (3 * len(EVENTS) if place == "split" else 3 * len(EVENTS) // 2)
    assert 0 < here.false_positives < here.forwards
    assert len(found) + sum(here["matches"]) == len(Engine.publish_many(index, EVENTS))


def test_parts_that_are_closed_for_want_of_memory_are_opened_again(tmp_path: Path) -> None:
    division = opened(tmp_path / "index", "split").division
    little = division.front.bytes + max(piece.bytes for piece in division.parts)
    index = versions.open(tmp_path / "index", versions.current(tmp_path / "index"), memory=little)
    for _ in range(2):
        index.publish_many(EVENTS)
    assert sum(visits_of(index)["opened"]) > 3


def test_counts_add_up_and_travel() -> None:
    few, many = PartVisits(np.arange(8).reshape(4, 2)), PartVisits(np.ones((4, 3), dtype=np.int64))
    both = total([PartVisits(), few, many])
    assert both["forwards"] == [1, 2, 1]
    assert both["opened"] == [7, 8, 1]
    assert (both.forwards, both.false_positives) == (4, 8)
    assert PartVisits.from_bytes(both.to_bytes()) == both
    assert PartVisits.from_lists(both.to_lists()) == both
    assert PartVisits.from_bytes(b"") == PartVisits() == total([])
    assert [len(rows) for rows in PartVisits().to_lists()] == [0] * len(COUNTS)
    assert not PartVisits()
    assert not visits_of(Engine())
