"""What is counted of operators, what is said of it, and that it can be drawn."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings import Engine, Event, Out, TidingsError, operator
from tidings.kinds.operators.statistics import duration


@operator(cost=1e-6)
def inside(event: Event, area: str) -> bool:
    return bool(event.attributes["area"] == area)


@operator(cost=20e-3)
def groups(event: Event, people: Out[int]) -> Iterator[int]:
    time.sleep(0.002)  # what it costs is measured, and decides which is asked first
    if "groups" not in event.attributes:
        raise ValueError("no picture")
    yield from event.attributes["groups"]


@operator
def known(event: Event, word: str) -> bool:
    return word == "park"


TEXTS = {
    "mob": "WHERE inside(Bronx) AND groups(?people) AND ?people > 50",
    "crowd": "WHERE inside(Bronx) AND groups(?n) AND ?n > 10",
    "same": "WHERE groups(?all) AND ?all > 50 AND inside(Bronx)",
}


def engine_of(**texts: str) -> Engine:
    engine = Engine(operators=[inside, groups, known])
    for id, text in texts.items():
        engine.subscribe(id, text)
    return engine


def published() -> Engine:
    engine = engine_of(**TEXTS)
    engine.publish_many(
        [
            Event(attributes={"area": "Bronx", "groups": [12, 85]}),
            Event(attributes={"area": "Bronx", "groups": [20]}),
            Event(attributes={"area": "Bronx"}),
            *(Event(attributes={"area": "Queens", "groups": [85]}) for _ in range(7)),
        ]
    )
    return engine


def test_predicates_are_counted_once_for_all_that_ask() -> None:
    stats = published().stats()
    rows = {row.pop("predicate"): row for row in stats.table().to_pylist()}
    counts = {
        text: tuple(row[name] for name in ("operator", "evaluations", "hits", "spared", "failures"))
        for text, row in rows.items()
    }
    assert counts == {
        "inside('Bronx')": ("inside", 10, 3, 0, 0),
        "groups(?1) AND ?1 > 50": ("groups", 3, 1, 7, 1),
        "groups(?1) AND ?1 > 10": ("groups", 3, 2, 7, 1),
    }
    assert rows["inside('Bronx')"]["selectivity"] == pytest.approx(0.3, abs=0.05)
    assert 0 < rows["inside('Bronx')"]["cost"] < 0.01
    assert stats.events == 10


def test_operators_are_summed_by_evaluations_not_by_predicates() -> None:
    stats = published().stats()
    totals = {one.operator: one for one in stats.operators}
    assert totals["groups"][1:5] == (2, 3, 7, 1)
    assert totals["inside"][1:5] == (1, 10, 0, 0)
    assert (stats.evaluations, stats.spared) == (13, 7)
    assert totals["groups"].seconds_spared == pytest.approx(totals["groups"].seconds * 7 / 3)


def test_calls_under_bindings_are_counted_with_their_operator() -> None:
    engine = engine_of(s="WHERE (?shop, at, ?place) AND known(?place) AND inside(Bronx)")
    for area in ("Bronx", "Queens"):
        event = Event.from_rdf("@prefix : <urn:tidings:> . :a :at 'park', 'road' .", "turtle")
        engine.publish(
            Event(attributes={"area": area}, data=event.data, datacontenttype=event.datacontenttype)
        )
    stats = engine.stats()
    assert stats.table()["predicate"].to_pylist() == ["inside('Bronx')"]
    (one,) = (one for one in stats.operators if one.operator == "known")
    assert one.predicates == one.spared == one.failures == 0
    assert 1 <= one.evaluations <= 2


def test_a_text_for_people() -> None:
    lines = str(published().stats()).splitlines()
    assert lines[0].split() == "predicate evaluations hits spared failures selectivity cost".split()
    assert any(line.startswith("groups(?1) AND ?1 > 50 ") for line in lines)
    assert lines[-1].startswith("13 evaluations in ")
    assert ", 1 failed, 7 spared that would have taken " in lines[-1]
    engine = engine_of(**{f"s{i}": f"WHERE groups(?n) AND ?n > {i}" for i in range(30)})
    assert "and 10 more predicates" in str(engine.stats())
    assert str(Engine().stats()) == "no subscription calls an operator"


def test_statistics_survive_a_save(tmp_path: Path) -> None:
    engine = published()
    engine.save(tmp_path)
    loaded = Engine.load(tmp_path, operators=[inside, groups, known])
    assert loaded.stats().table().equals(engine.stats().table())


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_picture(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"stats.{suffix}"
    engine = published()
    engine.subscribe("more", "WHERE known('$x') AND inside('a\nb')")
    engine.publish(Event(attributes={"area": "Bronx"}))
    engine.stats().plot(path)
    assert path.stat().st_size > 5_000
    if suffix == "svg":
        assert "groups(?1) AND ?1 &gt; 50" in path.read_text()


def test_many_predicates_and_operators_fit_into_a_picture(tmp_path: Path) -> None:
    def made(n: int) -> object:
        return operator(name=f"above{n}")(lambda event, least: event.attributes["x"] > least)

    engine = Engine(operators=[made(n) for n in range(30)])  # type: ignore[misc]
    for i in range(3_000):
        engine.subscribe(f"s{i}", f"WHERE above{i % 30}({i})")
    engine.publish_many([Event(attributes={"x": 1500})] * 2)
    engine.stats().plot(tmp_path / "many.svg")
    assert "18 others" in (tmp_path / "many.svg").read_text()


def test_nothing_to_draw_and_nowhere_to_draw_it(tmp_path: Path) -> None:
    with pytest.raises(TidingsError, match="nothing to draw"):
        engine_of(**TEXTS).stats().plot(tmp_path / "stats.png")
    with pytest.raises(TidingsError, match="name a file .svg or .png"):
        published().stats().plot(tmp_path / "stats.pdf")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (4.4e-6, "4.4 µs"), (0.02, "20 ms"), (1.25, "1.25 s"), (1234, "1,234 s")],
)
def test_times_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
