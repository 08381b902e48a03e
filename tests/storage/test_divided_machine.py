"""A divided index through a life of changes: it answers as an undivided engine that was told the same, in every version."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.storage.test_divided import CODE, Family, answers
from tidings.model.event import to_table
from tidings.storage import versions
from tidings.storage.division import Division, Placement
from tidings.storage.versions import Change, Version

PLACEMENTS = [Placement("split", 2), Placement("contain", 2), Placement("contain", 2, merge=90)]
IDS = [f"s{number}" for number in range(24)]
PAST, FUTURE = "2001-01-01", "2090-01-01"


class DividedLife(RuleBasedStateMachine):
    """`model` is one engine; the index is folded now and then, and sometimes with little memory."""

    @initialize(seed=st.integers(0, 10_000), placement=st.sampled_from(PLACEMENTS))
    def begin(self, seed: int, placement: Placement) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.family = Family(random.Random(seed))
        self.model = self.family.engine(16)
        self.events = self.family.events(5)
        self.old: tuple[Version, Counter[tuple[Any, ...]]] | None = None
        sample = to_table(self.family.events(5))
        versions.publish(self.root, self.model, placement=placement, sample=sample)

    @rule(
        ids=st.lists(st.sampled_from(IDS), min_size=1, max_size=4),
        until=st.sampled_from([None, PAST, FUTURE]),
    )
    def add_or_replace(self, ids: list[str], until: str | None) -> None:
        changes = [Change(id, self.family.grow(id), until) for id in ids]
        versions.append(self.root, changes, operators=CODE)
        for change in changes:
            assert isinstance(change.text, str)
            self.model.subscribe(change.id, change.text, valid_until=until)

    @rule(ids=st.lists(st.sampled_from(IDS), min_size=1, max_size=4))
    def remove(self, ids: list[str]) -> None:
        versions.append(self.root, [Change(id, None) for id in ids], operators=CODE)
        for id in ids:
            self.model.unsubscribe(id)

    @rule()
    def fold(self) -> None:
        versions.compact(self.root, operators=CODE)

    @rule(little=st.booleans())
    def ask(self, little: bool) -> None:
        version = versions.current(self.root)
        division = Division.read(self.root / f"v{version.base}")
        assert division is not None
        room = division.front.bytes + max(piece.bytes for piece in division.parts)
        index = versions.open(self.root, version, operators=CODE, memory=room if little else None)
        expected = answers(self.model, self.events)
        assert answers(index, self.events) == expected
        assert len(index) == len(self.model)
        assert [id in index for id in IDS] == [id in self.model for id in IDS]
        self.old = self.old or (version, expected)

    @precondition(lambda self: self.old is not None)
    @rule()
    def ask_an_old_version(self) -> None:
        assert self.old is not None
        version, expected = self.old
        assert answers(versions.open(self.root, version, operators=CODE), self.events) == expected

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            if self.old is not None:
                self.ask(little=False)
            self.folder.cleanup()


def run(examples: int, steps: int) -> None:
    quick = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    DividedLife.TestCase.settings = quick
    DividedLife.TestCase().runTest()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_life_of_changes() -> None:
    run(examples=2, steps=10)


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_many_lives_of_changes() -> None:
    run(examples=200, steps=30)
