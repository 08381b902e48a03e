"""The workload of word search: its searches match as often as it says, and are found as by dividing texts at blanks."""

from __future__ import annotations

from benchmarks.search_bars import expected, words
from benchmarks.search_workloads import Parameters, make
from tidings import Engine, Event

SMALL = Parameters(searches=4_000, texts=30, vocabulary=2_000, stop_words=5)


def test_texts_divided_at_blanks_give_the_same() -> None:
    workload = make(SMALL)
    engine = Engine()
    engine.subscribe_table("WHERE body SEARCH $words", workload.table())
    found = 0
    for number, text in enumerate(workload.texts):
        ids = {n.subscription for n in engine.publish(Event(attributes={"body": text}))}
        assert ids == {f"s{i}" for i in expected(workload, number)}
        found += len(ids)
    assert found > 5 * SMALL.texts


def test_all_bars_are_measured() -> None:
    bars = list(words(SMALL))
    assert bars[0].bar == "at most 300 µs a text"
    assert len(bars) == 5
