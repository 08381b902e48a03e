"""Dockets against recursion over their trees: in any order of answers, with gates that are confirmed, moot or wide."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.kinds.operators.rows import Asked, Predicates, Tree, World, all_rows, random_tree, table_of
from tidings.kinds.operators.kernels.deciding import MOST_REPRICED
from tidings.kinds.operators.kernels.layout import AWAITING, FALSE, TRUE, UNKNOWN
from tidings.kinds.operators.scheduling.docket import Docket
from tidings.kinds.operators.scheduling.schedulers import Adaptive

CASES = 60


def opened(rng: random.Random, trees: list[Tree], rows: np.ndarray | None = None) -> World:
    docket = Docket(table_of(trees), all_rows(trees) if rows is None else rows)
    Adaptive().open(docket)
    world = World(rng, docket, trees)
    assert_consistent(world)
    world.know_at_once()
    return world


def assert_consistent(world: World) -> None:
    """What a docket counts is what its leaves say, and they say what the trees say."""
    docket, d = world.docket, world.docket.arrays
    verdicts = docket.verdicts.tolist()
    assert [0 if one == AWAITING else one for one in verdicts] == world.verdicts
    assert docket.undecided == world.verdicts.count(0)
    live = d.leaf["ev"][d.leaf["ev"] >= 0]
    counts = np.bincount(live, minlength=docket.ev_count + 1)
    assert d.ev["live"][: docket.ev_count + 1].tolist() == counts.tolist()
    gains = np.bincount(live, d.leaf["gain"][d.leaf["ev"] >= 0], docket.ev_count + 1)
    assert d.ev["gain"][: docket.ev_count] == pytest.approx(gains[: docket.ev_count], rel=1e-3, abs=1e-6)
    alone = (d.gate["left"] == 1) & (d.gate["parent"] < 0)
    forced = np.bincount(live, alone[d.leaf["gate"]][d.leaf["ev"] >= 0], docket.ev_count + 1)
    assert d.ev["forced"][: docket.ev_count].tolist() == forced[: docket.ev_count].tolist()
    wanted = {world.evaluation(ev) for ev in range(docket.ev_count) if counts[ev]}
    # What is known without an evaluation is told after opening.
    assert wanted == world.needed


@pytest.mark.parametrize("seed", range(CASES))
def test_answers_in_any_order_end_in_kleenes_truth(seed: int) -> None:
    rng = random.Random(f"docket {seed}")
    predicates = Predicates(rng, 14)
    trees = [random_tree(predicates, rng.randint(0, 3)) for _ in range(rng.randint(1, 12))]
    rows = np.array(rng.sample(range(len(trees)), rng.randint(1, len(trees))), np.int32)
    world = opened(
        rng, [trees[row] for row in rows.tolist()] if seed % 2 else trees, None if seed % 2 else rows
    )
    world.confirm(0.5)
    assert_consistent(world)
    evs = list(range(world.docket.ev_count))
    rng.shuffle(evs)
    while evs:
        chosen = [evs.pop() for _ in range(min(len(evs), rng.randint(1, 3)))]
        world.answer(chosen)
        world.confirm(0.5)
        assert_consistent(world)
    world.confirm()
    assert_consistent(world)
    assert world.docket.undecided == 0
    assert 0 not in world.verdicts
    assert not world.docket.arrays.ev["live"][: world.docket.ev_count].any()
    assert np.abs(world.docket.arrays.ev["gain"][: world.docket.ev_count]).max(initial=0) < 1e-6


def leaf(number: int, negated: bool = False) -> Asked:
    return Asked(f"p({number})", f"p({number})", negated)


def settled(tree: Tree, **truths: int) -> World:
    """A tree after answers to some predicates."""
    world = opened(random.Random(0), [tree])
    numbers = {world.evaluation(ev): ev for ev in range(world.docket.ev_count)}
    for name, truth in truths.items():
        predicate = f"p({name[1:]})"
        world.truth[predicate] = truth
        world.answer([numbers[predicate]])
        assert_consistent(world)
    return world


def test_a_false_child_settles_a_row_and_nothing_else_is_wanted() -> None:
    world = settled(Tree(children=[leaf(1), leaf(2), leaf(3)]), p2=FALSE)
    assert world.docket.verdicts.tolist() == [FALSE]
    assert world.needed == set()
    assert len(Adaptive().next(world.docket, 10)) == 0


def test_the_unknown_is_overruled_by_what_decides() -> None:
    row = Tree(children=[leaf(1), leaf(2)])
    assert settled(row, p1=UNKNOWN, p2=FALSE).docket.verdicts.tolist() == [FALSE]
    assert settled(row, p1=UNKNOWN, p2=TRUE).docket.verdicts.tolist() == [UNKNOWN]
    assert settled(row, p1=UNKNOWN).docket.undecided == 1
    row = Tree(children=[Tree(is_or=True, negated=True, children=[leaf(1), leaf(2, negated=True)])])
    assert settled(row, p1=UNKNOWN, p2=FALSE).docket.verdicts.tolist() == [FALSE]
    assert settled(row, p1=UNKNOWN, p2=TRUE).docket.verdicts.tolist() == [UNKNOWN]
    assert settled(row, p1=FALSE, p2=TRUE).docket.verdicts.tolist() == [TRUE]


def test_a_gate_that_waits_is_moot_when_its_row_is_decided() -> None:
    inner = Tree(confirmed=True, children=[leaf(1)])
    world = settled(Tree(is_or=True, children=[inner, leaf(2)]), p1=TRUE)
    assert world.docket.undecided == 1
    assert list(world.docket.awaiting()) == [(0, 1)]
    assert list(world.docket.awaiting()) == []
    assert world.docket.waits(0, 1)
    numbers = {world.evaluation(ev): ev for ev in range(2)}
    world.truth["p(2)"] = TRUE
    world.answer([numbers["p(2)"]])
    assert world.docket.verdicts.tolist() == [TRUE]
    assert not world.docket.waits(0, 1)
    world.docket.confirm(0, 1, FALSE)
    assert world.docket.verdicts.tolist() == [TRUE]
    assert world.docket.undecided == 0


@pytest.mark.parametrize(("value", "verdict"), [(TRUE, TRUE), (FALSE, FALSE), (UNKNOWN, UNKNOWN)])
def test_a_confirmation_decides_a_row_whose_children_hold(value: int, verdict: int) -> None:
    world = settled(Tree(confirmed=True, children=[leaf(1), leaf(2)]), p2=TRUE, p1=UNKNOWN)
    assert world.docket.verdicts.tolist() != [verdict]
    assert list(world.docket.awaiting()) == [(0, 0)]
    world.docket.confirm(0, 0, value)
    world.docket.confirm(0, 0, FALSE)
    assert world.docket.verdicts.tolist() == [verdict]
    assert settled(Tree(confirmed=True, children=[leaf(1), leaf(2)]), p1=FALSE).docket.undecided == 0


def test_a_gate_without_children_waits_from_the_start() -> None:
    docket = Docket(table_of([Tree(confirmed=True)]), np.array([0], np.int32))
    assert list(docket.awaiting()) == [(0, 0)]
    docket.confirm(0, 0, TRUE)
    assert (docket.undecided, docket.verdicts.tolist()) == (0, [TRUE])


@pytest.mark.parametrize("is_or", [False, True])
def test_a_gate_wider_than_what_is_priced_anew(is_or: bool) -> None:
    count = 2 * MOST_REPRICED + 9
    world = opened(random.Random(1), [Tree(is_or, children=[leaf(n) for n in range(count)])])
    world.truth = dict.fromkeys(world.truth, FALSE if is_or else TRUE)
    for done in range(count):
        assert world.docket.undecided == 1
        (ev,) = Adaptive().next(world.docket, 1).tolist()
        world.answer([ev])
        if done % 16 == 0 or count - done < 4:
            assert_consistent(world)
    assert world.docket.verdicts.tolist() == [FALSE if is_or else TRUE]


def test_no_rows_and_rows_that_need_nothing() -> None:
    docket = Docket(table_of([Tree(children=[leaf(1)])]), np.array([], np.int32))
    Adaptive().open(docket)
    assert (docket.undecided, docket.verdicts.tolist(), len(Adaptive().next(docket, 5))) == (0, [], 0)
    known = Tree(children=[Asked("a = 1", None), Asked("a = 2", None, True)])
    world = opened(random.Random(2), [known, known])
    assert world.docket.undecided == 0
    assert world.docket.verdicts.tolist() == world.verdicts


def test_scratch_is_left_as_it_was() -> None:
    table = table_of([random_tree(Predicates(random.Random(4), 30), 2) for _ in range(20)])
    Docket(table, np.arange(20, dtype=np.int32))
    assert all((scratch == -1).all() for scratch in table.scratch)
