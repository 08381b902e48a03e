"""Programs that belong to nobody any more are left out, and nothing else changes."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from tests.kinds.operators.cases import Case
from tidings.engine.engine import Engine
from tidings.kinds.operators.predicates import renumbered

pytestmark = pytest.mark.filterwarnings("ignore::tidings.engine.engine.BroadSubscription")


@pytest.mark.parametrize("seed", range(12))
def test_a_folded_engine_has_what_one_without_the_removed_has(seed: int, tmp_path: Path) -> None:
    case = Case(random.Random(f"kept {seed}"), subscriptions=12, events=3, triples=0.3)
    removed = random.Random(seed).sample(range(12), 6)
    engine, fresh = Engine(operators=case.operators), Engine(operators=case.operators)
    for i, text in enumerate(case.texts):
        engine.subscribe(f"s{i}", text)
        if i not in removed:
            fresh.subscribe(f"s{i}", text)
    events = [case.event(n) for n in range(3)]
    engine.publish_many(events)
    for i in removed:
        engine.unsubscribe(f"s{i}")
    before = rows(engine, events)
    engine.save(tmp_path)
    kept, expected = engine._checker.table, fresh._checker.table
    assert kept.predicates.texts == expected.predicates.texts
    assert kept.predicates.evaluation_texts == expected.predicates.evaluation_texts
    assert list(kept.predicates.operators.numbers) == list(expected.predicates.operators.numbers)
    assert kept.predicates.checked == expected.predicates.checked
    for name, column in kept.programs._asdict().items():
        assert column.tolist() == getattr(expected.programs, name).tolist(), name
    assert kept.binds.tolist() == expected.binds.tolist()
    assert rows(engine, events) == before == rows(fresh, events)
    loaded = Engine.load(tmp_path, operators=case.operators)
    assert rows(loaded, events) == before


def rows(engine: Engine, events: list) -> list[tuple]:
    """Who is told what, whatever the bindings."""
    notifications = engine.publish_many(events).to_pylist()
    return sorted((row["event"], row["subscription"], row["verdict"]) for row in notifications)


def test_what_was_learnt_stays_with_its_text(tmp_path: Path) -> None:
    case = Case(random.Random("learnt"), subscriptions=12, events=3)
    engine = Engine(operators=case.operators)
    engine.subscribe_many((f"s{i}", text) for i, text in enumerate(case.texts))
    engine.publish_many([case.event(n) for n in range(3)])
    whole = by_text(engine)
    for i in range(0, 12, 2):
        engine.unsubscribe(f"s{i}")
    engine.save(tmp_path)
    kept = by_text(engine)
    assert 0 < len(kept) < len(whole)
    assert kept.items() <= whole.items()
    assert by_text(Engine.load(tmp_path, operators=case.operators)) == kept


def by_text(engine: Engine) -> dict[str, tuple]:
    predicates, learnt = engine._checker.table.predicates, engine._checker.table.predicates.learnt
    counts = zip(learnt.hits, learnt.trials, learnt.moment, learnt.wanted, learnt.told, strict=True)
    found: dict[str, tuple] = dict(zip(predicates.texts, counts, strict=True))
    calls = zip(learnt.calls, learnt.seconds, learnt.failures, strict=True)
    return found | dict(zip((f"{text} =" for text in predicates.evaluation_texts), calls, strict=True))


def test_subscriptions_that_come_and_go_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.engine.index.FOLD_AT_LEAST", 5)
    case = Case(random.Random("churn"), subscriptions=30, events=1)
    engine = Engine(operators=case.operators)
    for text in case.texts * 2:
        engine.subscribe("the one", text)
        engine.publish(case.event(0))
    assert len(engine._checker.table) < 2 * len(case.texts)


def test_renumbering() -> None:
    used, places = renumbered(np.array([7, 3, -1, 7, 5, 3]))
    assert used.tolist() == [7, 3, 5]
    assert places.tolist() == [0, 1, -1, 0, 2, 1]
    used, places = renumbered(np.array([], dtype=np.int32))
    assert used.tolist() == places.tolist() == []
    used, places = renumbered(np.array([-1, -1]))
    assert (used.tolist(), places.tolist()) == ([], [-1, -1])
