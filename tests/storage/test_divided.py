"""An index whose subscriptions are divided answers as the undivided one does, and need not be open as a whole."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kinds.contract.kinds import KINDS, Kind
from tidings import Engine, Event
from tidings.errors import TidingsError
from tidings.language.parser import parse
from tidings.language.printer import to_text
from tidings.language.query import And
from tidings.storage.divided_index import DividedIndex
from tidings.storage.division import Division, Placement, divide

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SPLIT, CONTAIN = Placement("split", 3), Placement("contain", 3)
Answers = Counter[tuple[Any, ...]]


def answers(engine: Engine, events: list[Event]) -> Answers:
    """Every binding of every answer; of what cannot be decided or read, that it is so."""
    found: Answers = Counter()
    for row in engine.publish_many(events, all_bindings=True).to_pylist():
        bindings = tuple(sorted(row["bindings"] or ()))
        found[row["subscription"], row["event"], row["verdict"], bindings, row["sequence"]] += 1
    return found


def verdicts(engine: Engine, events: list[Event]) -> Counter[tuple[Any, ...]]:
    rows = engine.publish_many(events).to_pylist()
    return Counter((row["subscription"], row["event"], row["verdict"]) for row in rows)


class Family:
    """Subscriptions of a kind, and of some of them one that contains them, because it is a part of their text."""

    def __init__(self, kind: Kind, rng: random.Random, count: int) -> None:
        self.kind, self.rng = kind, rng
        self.engine = Engine(taxonomy=kind.taxonomy(rng), operators=kind.operators)
        self.parents: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        while len(self.texts) < count:
            self.grow(f"s{len(self.texts)}")
        self.engine.subscribe_many(self.texts.items())

    def grow(self, id: str) -> str:
        """The text of one more, which may be contained in one of the others."""
        text, parent = self.kind.text(self.rng), None
        if self.texts and self.rng.random() < 0.7:
            parent = self.rng.choice(list(self.texts))
            above, further = parse(self.texts[parent]), parse(text)
            text = to_text(replace(above, where=And((above.where, further.where))))
        try:
            Engine(operators=self.kind.operators).subscribe(id, text)
        except TidingsError:  # too many ways
            return self.grow(id)
        self.texts[id] = text
        self.parents.pop(id, None)
        if parent is not None:
            self.parents[id] = parent
        return text

    def forest(self, engine: Engine) -> np.ndarray:
        """Of each subscription of an index the number of the nearest that contains it and is in the index."""
        subscriptions = engine.index.subscriptions
        numbers = np.flatnonzero(np.frombuffer(bytes(subscriptions.live), dtype=np.bool_)).tolist()
        place = {id: at for at, id in enumerate(subscriptions.id_list(numbers))}
        found = []
        for id in place:
            above = self.parents.get(id)
            while above is not None and above not in place:
                above = self.parents.get(above)
            found.append(-1 if above is None else place[above])
        return np.array(found, dtype=np.int64)


def opened(base: Path, memory: int | None = None, **code: Any) -> DividedIndex:
    division = Division.read(base)
    assert division is not None
    return DividedIndex.open(base, division, memory=memory, **code)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_a_divided_index_answers_as_the_undivided(kind: Kind, seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    family = Family(kind, rng, 40)
    events = [kind.event(rng) for _ in range(8)]
    expected, plain = answers(family.engine, events), verdicts(family.engine, events)
    for placement in (SPLIT, CONTAIN):
        base = tmp_path / placement.place
        divide(family.engine, base, placement, family.forest(family.engine))
        index = opened(base, operators=kind.operators)
        assert len(index) == len(family.engine)
        assert answers(index, events) == expected
        assert verdicts(index, events) == plain
        for event in events:
            one_by_one = {(n.subscription, n.verdict) for n in index.publish(event)}
            assert one_by_one == {(n.subscription, n.verdict) for n in family.engine.publish(event)}
    assert answers(family.engine, events) == expected  # it was not changed
