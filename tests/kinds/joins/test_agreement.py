"""An engine, the definition, DuckDB and replicas agree after every change, whatever else a user does meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kinds.joins.world import Tally, World

STEPS = 40


@pytest.fixture(params=[64, 1], ids=["looked through", "trees"])
def small_levels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handful of subscriptions fills all levels; they are in trees, or looked through."""
    monkeypatch.setattr("tidings.kinds.joins.index.levels.RECENT", 2)
    monkeypatch.setattr("tidings.kinds.joins.index.levels.MIDDLE_AT_LEAST", 4)
    monkeypatch.setattr("tidings.kinds.joins.index.levels._LOOK_AGAIN", 2)
    monkeypatch.setattr("tidings.kinds.joins.index.index.FEW", request.param)


@pytest.mark.usefixtures("small_levels")
def test_after_every_change(worlds: int, tmp_path: Path) -> None:
    tally = Tally()
    for seed in range(worlds):
        world = World(seed, tmp_path / str(seed))
        for _ in range(STEPS):
            world.step()
        tally += world.tally
    print(tally)
    assert tally.changes > 60 * worlds
    assert tally.notified > tally.changes // 4
    assert min(tally.joined, tally.sql, tally.gaps, tally.late, tally.refused) > 0
