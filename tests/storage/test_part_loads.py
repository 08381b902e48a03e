"""The parts of a new base are balanced by the matches that streams have counted in those of the last one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tidings import Engine, Event
from tidings.model.event import to_table
from tidings.storage import versions
from tidings.storage.divided_index import DividedIndex
from tidings.storage.division import Division, Placement
from tidings.storage.part_layout import CountedMatches
from tidings.storage.part_loads import add_visits, counted_matches
from tidings.storage.part_visits import PartVisits, no_visits
from tidings.storage.versions import Change, Version

TOPICS = ("gas", "oil")
OIL = [
    Event.from_rdf(f"<urn:{number}> <urn:topic> <urn:oil> ; <urn:price> {number % 30} .", "ttl")
    for number in range(60)  # each price twice: a sample ignores what one event alone has
]


def published(root: Path) -> Version:
    """Of each topic a subscription that contains 30 others; without a sample each topic is in a part of its own."""
    engine = Engine()
    for topic in TOPICS:
        pattern = f"WHERE (?offer, <urn:topic>, <urn:{topic}>)"
        engine.subscribe(topic, pattern)
        for price in range(30):
            engine.subscribe(f"{topic} {price}", f"{pattern} AND (?offer, <urn:price>, ?x) AND ?x > {price}")
    return versions.publish(root, engine, placement=Placement("contain", 2))


def matched(root: Path, version: Version) -> PartVisits:
    index = versions.open(root, version)
    assert isinstance(index, DividedIndex)
    index.visits()
    index.publish_many(OIL)
    return index.visits()


def division_of(root: Path, version: Version) -> Division:
    found = versions.division(root, version)
    assert found is not None
    return found


def fold(root: Path, **more: object) -> Version:
    versions.append(root, [Change("new", "WHERE (?offer, <urn:topic>, <urn:tin>)")])
    return versions.compact(root, **more)  # type: ignore[arg-type]


def test_a_fold_balances_parts_by_the_matches_that_were_counted(tmp_path: Path) -> None:
    version = published(tmp_path)
    before = matched(tmp_path, version)
    assert (min(before["matches"]), division_of(tmp_path, version).loads) == (0, ())
    for query in ("one", "other"):
        add_visits(tmp_path, query, version.base, before)
    folded = fold(tmp_path)
    after, division = matched(tmp_path, folded), division_of(tmp_path, folded)
    assert sum(after["matches"]) == sum(before["matches"])
    assert max(after["matches"]) < 0.9 * sum(after["matches"])
    # No sample says which of the 30 are matched most, so that they are expected to be alike.
    assert max(division.loads) == pytest.approx(0.75, abs=0.05)
    assert max(piece.subscriptions for piece in division.parts) <= 45
    assert versions.drop(tmp_path) == [version.base]
    assert not list((tmp_path / "visits").iterdir()), "they are gone with the base"


def test_counts_outweigh_a_sample_which_counts_without_them(tmp_path: Path) -> None:
    sample = to_table(OIL)
    for name, counted, expected in (("without", 0, False), ("with", 100, True)):
        root = tmp_path / name
        version = published(root)
        gas = no_visits(2)
        gas.counts[2, part_with(root, version, "gas 3")] = counted
        add_visits(root, "q", version.base, gas)
        folded = fold(root, sample=sample)
        parts = [part_with(root, folded, f"gas {price}") for price in range(30)]
        shares = np.bincount(parts, minlength=2) / 30
        is_by_gas = np.allclose(division_of(root, folded).loads, shares, atol=0.001)
        assert is_by_gas is expected


def part_with(root: Path, version: Version, id: str) -> int:
    index = versions.open(root, version)
    assert isinstance(index, DividedIndex)
    part = index.part_with(id)
    assert part is not None
    return part


def test_matches_of_a_part_are_divided_by_those_of_a_sample() -> None:
    counted = CountedMatches(np.array([0, 0, 1, -1]), np.array([40.0, 8.0]))
    assert counted.by_subscription(np.array([3.0, 0.0, 0.0, 9.0])).tolist() == [32, 8, 8, 16]
    assert CountedMatches(np.array([-1]), np.array([5.0])).by_subscription(np.zeros(1)).tolist() == [0]


def test_counts_that_cannot_be_read_are_none(tmp_path: Path) -> None:
    version = published(tmp_path)
    engine = versions.open(tmp_path, version)
    add_visits(tmp_path, "q", version.base, PartVisits())
    assert not (tmp_path / "visits").exists(), "nothing was counted"
    add_visits(tmp_path, "q", version.base, matched(tmp_path, version))
    (file,) = (tmp_path / "visits").iterdir()
    for wrong in ("", "{", "[[1]]", "[[1], [2, 3], [4], [5]]", '{"a": 1}', "7", "[[1e999], [1], [1], [1]]"):
        file.write_text(wrong)
        assert counted_matches(tmp_path, version.base, engine) is None
    assert counted_matches(tmp_path, version.base + 1, engine) is None


def test_a_folder_that_cannot_be_written_to_costs_the_counts_alone(tmp_path: Path) -> None:
    version = published(tmp_path)
    (tmp_path / "visits").write_text("no folder")
    add_visits(tmp_path, "q", version.base, matched(tmp_path, version))
    assert counted_matches(tmp_path, version.base, versions.open(tmp_path, version)) is None


def test_counts_of_more_parts_than_a_base_has_are_cut(tmp_path: Path) -> None:
    version = published(tmp_path)
    add_visits(tmp_path, "q", version.base, PartVisits(np.full((4, 5), 7)))
    counted = counted_matches(tmp_path, version.base, versions.open(tmp_path, version))
    assert counted is not None
    assert counted.matches.tolist() == [7, 7]
