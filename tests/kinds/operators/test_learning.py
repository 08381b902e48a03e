"""What was learnt adds up: two halves make the whole, the order of workers is irrelevant, nothing counts twice."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tidings import Engine, Event
from tidings.errors import IndexFileError
from tidings.kinds.operators.functions.operator import Operator, Out, operator
from tidings.kinds.operators.learning import (
    COUNTS,
    FULL_MEMORY,
    Learning,
    LearningRecorder,
    freshness,
    learn,
    merged,
)

SUBSCRIPTIONS = {
    "a": "WHERE often() AND sometimes(3)",
    "b": "WHERE sometimes(3) AND count(?n) AND ?n > 2",
    "c": "WHERE count(?n) AND ?n > 4 AND fails()",
    "d": "WHERE NOT often() OR rarely('x')",
}


@operator(cost=1e-6)
def often(event: Event) -> bool:
    return event.attributes["n"] % 10 != 0


@operator(cost=1e-6)
def sometimes(event: Event, modulus: int) -> bool:
    return event.attributes["n"] % modulus == 0


@operator(cost=1e-6)
def rarely(event: Event, text: str) -> bool:
    return event.attributes["n"] % 17 == 0


@operator(cost=1e-6)
def count(event: Event, n: Out[int]) -> Any:
    yield event.attributes["n"] % 7


@operator(cost=1e-6)
def fails(event: Event) -> bool:
    raise OSError("the service is away")


OPERATORS: list[Operator] = [often, sometimes, rarely, count, fails]


def engine(**subscriptions: str) -> Engine:
    made = Engine(operators=OPERATORS)
    for id, text in (subscriptions or SUBSCRIPTIONS).items():
        made.subscribe(id, text)
    return made


def events(low: int, high: int) -> list[Event]:
    return [Event(id=str(n), source="test", attributes={"n": n}) for n in range(low, high)]


def counts(learning: Learning) -> dict[str, dict[str, float]]:
    """By text, without what a clock has measured."""
    return {
        row["text"].decode(): {name: row[name] for name in COUNTS if name != "seconds"}
        for row in learning.rows.to_pylist()
    }


def assert_alike(found: Learning, expected: Learning) -> None:
    assert found.events == expected.events
    known, wanted = counts(found), counts(expected)
    assert known.keys() == wanted.keys()
    for text, row in wanted.items():
        assert known[text] == pytest.approx(row, abs=1e-9), text


def learning_of(seed: int) -> Learning:
    """Random counts, of texts that several share."""
    rng = random.Random(seed)
    rows = [
        {"text": f"p({rng.randrange(6)})".encode(), **{name: float(rng.randrange(50)) for name in COUNTS}}
        for _ in range(4)
    ]
    return merged([Learning(Learning().rows.from_pylist(rows, Learning().rows.schema), rng.randrange(100))])


def test_one_half_then_the_other_is_the_whole() -> None:
    halves = engine()
    whole = LearningRecorder(halves._checker.table.predicates)
    halves.publish_many(events(0, 120))
    first = halves.learnt()
    halves.publish_many(events(120, 300))
    second = halves.learnt()
    assert_alike(first.then(second), whole.take())
    assert len(halves.learnt()) == 0
    counted = counts(first)["often()"]
    assert counted["wanted"] == 120 >= counted["calls"] == counted["told"] > 30
    assert counted["trials"] < counted["told"], "older sights count less"
    assert counts(first)["fails()"]["failures"] > 0


def test_the_order_of_workers_is_irrelevant() -> None:
    parts = [learning_of(seed) for seed in range(8)]
    expected = merged(parts)
    for seed in range(5):
        random.Random(seed).shuffle(parts)
        assert_alike(merged(parts), expected)
    assert_alike(merged([merged(parts[:3]), merged(parts[3:])]), expected)
    assert_alike(merged([*parts, Learning()]), expected)


def test_one_stretch_after_another_in_any_grouping() -> None:
    a, b, c = (learning_of(seed) for seed in range(3))
    assert_alike(a.then(b).then(c), a.then(b.then(c)))


def test_what_came_since_is_the_rest() -> None:
    a, b = learning_of(1), learning_of(2)
    assert_alike(a.then(b).since(a), b)
    assert len(a.since(a)) == 0
    assert a.since(a.then(b)) is a


def test_workers_beside_each_other_teach_what_one_alone_would_have_learnt() -> None:
    alone, taught = engine(), engine()
    alone.publish_many(events(0, 400))
    workers = []
    for low in range(0, 400, 100):
        worker = engine()
        worker.publish_many(events(low, low + 100))
        workers.append(worker.learnt())
    taught.learn(merged(workers))
    expected, found = selectivities(alone), selectivities(taught)
    assert expected.keys() == found.keys()
    assert found == pytest.approx(expected, abs=0.1)
    own, others = alone._checker.table.predicates.learnt, taught._checker.table.predicates.learnt
    for name in ("wanted", "calls"):  # how often each was told hangs on what was known before
        assert getattr(own, name).sum() == pytest.approx(getattr(others, name).sum(), rel=0.1)
    assert np.all(others.trials <= FULL_MEMORY * 1.001), "what is known too well is never learnt anew"
    assert [trials > 300 for trials in others.operator_trials] == [True, True, True, False, True]  # one fails
    assert taught._checker.table.predicates.events == 400


def selectivities(engine: Engine) -> dict[str, float]:
    predicates = engine._checker.table.predicates
    trials = np.maximum(predicates.learnt.trials, 1e-9)
    return {
        text: hits / count
        for text, hits, count in zip(predicates.texts, predicates.learnt.hits, trials, strict=True)
    }


def test_what_was_taught_is_not_told_again() -> None:
    teacher, taught = engine(), engine()
    teacher.publish_many(events(0, 50))
    lesson = teacher.learnt()
    taught.publish_many(events(50, 60))
    taught.learn(lesson)
    taught.publish_many(events(60, 70))
    found = counts(taught.learnt())
    assert found["often()"]["wanted"] == 20
    taught.learn(Learning())
    assert len(taught.learnt()) == 0


def test_a_fold_loses_and_doubles_nothing() -> None:
    folded = engine()
    folded.publish_many(events(0, 30))
    before = LearningRecorder.whole(folded._checker.table.predicates)
    folded.unsubscribe("b")
    folded._index.fold()
    after = folded._checker.table.predicates
    assert set(after.texts) == {"often()", "sometimes(3)", "count(?1) AND ?1 > 4", "fails()", "rarely('x')"}
    whole = counts(before)
    assert counts(LearningRecorder.whole(after)) == {
        t: row for t, row in whole.items() if t != "count(?1) AND ?1 > 2"
    }
    folded.publish_many(events(30, 60))
    found = counts(folded.learnt())
    assert found["often()"]["wanted"] == 60
    assert found["count(?1) AND ?1 > 2"] == pytest.approx(
        {**whole["count(?1) AND ?1 > 2"], **aged(whole["count(?1) AND ?1 > 2"], 30)}
    )


def aged(row: dict[str, float], events: float) -> dict[str, float]:
    return {name: row[name] * freshness(events) for name in ("hits", "trials")}


def test_of_texts_nobody_asks_for_an_engine_learns_what_they_say_of_the_operator() -> None:
    teacher, taught = engine(t="WHERE sometimes(2)"), engine(t="WHERE sometimes(5)")
    teacher.publish_many(events(0, 100))
    taught.learn(teacher.learnt())
    learnt = taught._checker.table.predicates.learnt
    assert learnt.trials.tolist() == [0.0]
    assert (learnt.operator_hits[0], learnt.operator_trials[0]) == (50.0, 100.0)


def test_costs_are_means_over_all_calls() -> None:
    taught = engine(t="WHERE often()")
    rows = [{"text": b"often()", **dict.fromkeys(COUNTS, 0.0), "calls": 30.0, "seconds": 6.0}]
    lesson = Learning(Learning().rows.from_pylist(rows, Learning().rows.schema), 30.0)
    predicates = taught._checker.table.predicates
    learn(predicates, lesson)
    assert predicates.learnt.seconds.tolist() == pytest.approx([0.2])
    learn(predicates, lesson)
    assert predicates.learnt.calls.tolist() == [60.0]
    assert predicates.learnt.seconds.tolist() == pytest.approx([0.2])


def test_bytes_round_trip() -> None:
    learning = learning_of(3)
    assert_alike(Learning.from_bytes(learning.to_bytes()), learning)
    assert_alike(Learning.from_bytes(Learning(events=2.5).to_bytes()), Learning(events=2.5))
    for wrong in (b"", b"nonsense", learning.to_bytes()[:50]):
        with pytest.raises(IndexFileError, match="remove the file"):
            Learning.from_bytes(wrong)
