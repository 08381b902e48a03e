"""However subscriptions come and go, there are not many more clusters than are needed, and nobody is forgotten."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tidings import Engine, Event, Table
from tidings.kinds.joins.index.index import JoinIndex
from tidings.kinds.joins.index.stabbing import cluster

TABLES = [Table("r", {"k": "integer", "a": "integer"}), Table("s", {"k": "integer", "c": "integer"})]


@pytest.fixture(autouse=True)
def small_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.kinds.joins.index.levels.RECENT", 4)
    monkeypatch.setattr("tidings.kinds.joins.index.levels.MIDDLE_AT_LEAST", 16)
    monkeypatch.setattr("tidings.kinds.joins.index.levels.MIDDLE_SHARE", 1 / 4)
    monkeypatch.setattr("tidings.kinds.joins.index.levels._LOOK_AGAIN", 1)
    monkeypatch.setattr("tidings.kinds.joins.index.index.FEW", 1)


def _fewest(engine: Engine, numbers: np.ndarray) -> int:
    """The clusters that the live ones among some subscriptions need: by the ranges of S where R changes, and of R."""
    subscriptions = engine.joins.subscriptions
    bounds = subscriptions.bounds_of(numbers[subscriptions.live[numbers]], 2)
    return sum(len(cluster(bounds["low"][:, s].copy(), bounds["high"][:, s].copy())[1]) for s in (0, 1))


def _clusters(index: JoinIndex) -> int:
    return int(index.arrays["sides"]["clusters"].sum())


@pytest.mark.parametrize("seed", range(4))
def test_clusters_stay_near_the_fewest(seed: int) -> None:
    rng = random.Random(seed)
    engine, ids = Engine(tables=TABLES), list[str]()
    levels, used = engine.joins.levels, set[str]()
    for step in range(400):
        growing = step // 100 % 2 == 0  # waves: witnesses must go, too
        for _ in range(rng.randint(1, 5)):
            does = rng.choices(("add", "replace", "remove"), (6, 3, 1) if growing else (1, 2, 6))[0]
            if does == "remove" and ids:
                engine.unsubscribe(ids.pop(rng.randrange(len(ids))))
                continue
            if does == "add" or not ids:
                ids.append(f"{step} {rng.random()}")
            low, most = rng.randrange(300), rng.randrange(300)
            where = f"a BETWEEN {low} AND {low + rng.randrange(30)} AND c BETWEEN {most} AND {most + rng.randrange(9)}"
            engine.subscribe(ids[-1], f"SELECT * FROM r JOIN s USING (k) WHERE {where}")
        levels.indexes(engine.joins.correlator.rows)
        every = np.flatnonzero(engine.joins.subscriptions.live)
        held = np.concatenate([levels.base.numbers, levels.middle.numbers, levels.recent.numbers])
        assert set(every.tolist()) <= set(held.tolist())
        assert len(held) == len(set(held.tolist())), "each in one level"
        for index in (levels.base, levels.middle):
            assert _clusters(index) <= 2 * _fewest(engine, index.numbers)
            assert len(index.numbers) <= 2 * np.count_nonzero(engine.joins.subscriptions.live[index.numbers])
        assert _clusters(levels.recent.index) == 0
        assert _clusters(levels.base) + _clusters(levels.middle) <= 4 * _fewest(engine, every)
        used |= {name for name in ("base", "middle", "recent") if len(getattr(levels, name).numbers)}
    assert used == {"base", "middle", "recent"}
    assert _clusters(levels.fold()) == _fewest(engine, every), "in one index there are the fewest"


def test_there_is_room_for_all_that_one_change_can_affect() -> None:
    """Shapes over the same tables in another order have their clusters in another order than their sides."""
    engine = Engine(tables=TABLES)
    for number in range(120):
        tables = "r JOIN s" if number % 3 else "s JOIN r"
        where = f"a >= {-number} AND c >= {-number}"
        engine.subscribe(str(number), f"SELECT * FROM {tables} USING (k) WHERE {where}")
    levels = engine.joins.levels
    levels.fold()
    assert levels.base.largest == 80
    engine.publish(Event.insert("r", {"k": 1, "a": 1}))
    assert len(engine.publish(Event.insert("s", {"k": 1, "c": 1}))) == 120
