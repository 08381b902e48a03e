"""An engine with operators answers as the definition does: in batches, while subscriptions come and go, saved and loaded."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.examples import examples, seeds
from tests.kinds.operators import cases
from tests.kinds.operators.cases import Case
from tidings.engine.engine import Engine
from tidings.kinds.operators.naive import Solution
from tidings.language.query import Call, leaves
from tidings.model.notification import Notification
from tidings.model.terms import Blank, Iri, Literal, plain

pytestmark = pytest.mark.filterwarnings("ignore::tidings.engine.engine.BroadSubscription")
SEEDS, FEWER_SEEDS, EXAMPLES = seeds(10, 24), seeds(3, 6), 20


def _case(seed: object, **options: Any) -> Case:
    rng = random.Random(f"{seed}")
    failing = rng.choice([0, 0.1, 0.4])
    return Case(rng, **{"subscriptions": 8, "events": 4, "failing": failing, "triples": 0.3, **options})


def _engine(case: Case) -> Engine:
    engine = Engine(operators=case.operators)
    assert engine.subscribe_many((f"s{i}", text) for i, text in enumerate(case.texts)) == []
    return engine


def _publish(engine: Engine, case: Case) -> list[Notification]:
    return list(
        Notification.from_table(engine.publish_many([case.event(n) for n in range(len(case.attributes))]))
    )


def assert_right(case: Case, notifications: list[Notification], live: set[int] | None = None) -> None:
    """Each live subscription is told once, or not at all, of each event, with a binding or error of the definition."""
    found = {(n.subscription, n.event): n for n in notifications}
    assert len(found) == len(notifications)
    for i in range(len(case.conditions)):
        for n in range(len(case.attributes)):
            what = f"{case.texts[i]} on {case.attributes[n]} {case.graphs[n]}"
            notification = found.pop((f"s{i}", f"e{n}"), None)
            if live is not None and i not in live:
                assert notification is None, what
                continue
            assert (notification.verdict if notification else None) == case.verdict(i, n), what
            if notification is not None and notification.verdict == "match":
                certain = [s for s in case.solutions(i, n) if s.doubt is None]
                assert any(_has(solution, notification.bindings) for solution in certain), what
            elif notification is not None:
                # Which one of several that failed is not said.
                names = [leaf.name for leaf in leaves(case.conditions[i]) if isinstance(leaf, Call)]
                assert any(f"{name} is down" in (notification.message or "") for name in names), what
    assert not found


def _has(solution: Solution, bindings: dict[str, str]) -> bool:
    return all(_text(solution.binding.get(name)) == text for name, text in bindings.items())


def _text(value: object) -> str:
    return plain(value) if isinstance(value, Iri | Literal | Blank) else str(value)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_batch_is_answered_as_the_definition_says(seed: int) -> None:
    case = _case(seed)
    assert_right(case, _publish(_engine(case), case))
    assert set(case.asked.values()) <= {1}, "an evaluation is done once an event"


@pytest.mark.parametrize("seed", FEWER_SEEDS)
def test_async_operators_and_batches_change_no_answer(seed: int) -> None:
    case = _case(seed, mixed=True)
    assert_right(case, _publish(_engine(case), case))


@pytest.mark.parametrize("seed", FEWER_SEEDS)
def test_one_event_at_a_time_is_answered_alike(seed: int) -> None:
    case = _case(seed)
    engine = _engine(case)
    notifications = [
        notification for n in range(len(case.attributes)) for notification in engine.publish(case.event(n))
    ]
    assert_right(case, notifications)


@pytest.mark.parametrize("seed", FEWER_SEEDS)
def test_all_bindings_are_told(seed: int) -> None:
    case = _case(seed, failing=0, depth=1)
    engine = _engine(case)
    for n in range(len(case.attributes)):
        notifications = engine.publish(case.event(n), all_bindings=True)
        for i in range(len(case.conditions)):
            mine = [
                notification.bindings
                for notification in notifications
                if notification.subscription == f"s{i}"
            ]
            certain = list(case.solutions(i, n))
            assert all(any(_has(solution, bindings) for solution in certain) for bindings in mine)
            assert all(any(_has(solution, bindings) for bindings in mine) for solution in certain)


@pytest.mark.parametrize("seed", FEWER_SEEDS)
def test_subscriptions_come_and_go(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    case = _case(seed, subscriptions=12)
    engine, live = Engine(operators=case.operators), set[int]()
    for turn in range(4):
        for i in rng.sample(range(12), 6):
            if i in live and rng.random() < 0.5:
                assert engine.unsubscribe(f"s{i}")
                live.discard(i)
            else:  # one that is there is replaced
                engine.subscribe(f"s{i}", case.texts[i])
                live.add(i)
        assert_right(case, _publish(engine, case), live)
        if turn == 1:
            engine.save(tmp_path / "index")
            engine = Engine.load(tmp_path / "index", operators=case.operators)
            assert_right(case, _publish(engine, case), live)


@examples(EXAMPLES)
@given(cases.CASES)
def test_an_engine_agrees_with_the_definition_on_anything(case: Case) -> None:
    assert_right(case, _publish(_engine(case), case))
