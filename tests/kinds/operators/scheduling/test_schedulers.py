"""Schedulers: the contract of all six, plain restatements of those that go along an order, and what Adaptive spares."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

from tests.kinds.operators.rows import Asked, Predicates, Tree, World, all_rows, random_tree, table_of
from tidings.kinds.operators.evaluator import FRONTIER
from tidings.kinds.operators.kernels.layout import AWAITED, FALSE, TRUE
from tidings.kinds.operators.scheduling.docket import Docket
from tidings.kinds.operators.scheduling.schedulers import (
    Adaptive,
    CheapestFirst,
    LikeliestFirst,
    Naive,
    Scheduler,
    Sequential,
    SubOrder,
)
from tidings.kinds.operators.table import OperatorTable

ALL = [Adaptive, Naive, Sequential, SubOrder, CheapestFirst, LikeliestFirst]
CASES = 25
WORKLOADS = 60
Row = list[str]


@pytest.mark.parametrize("limit", [1, FRONTIER])
@pytest.mark.parametrize("kind", ALL)
def test_each_evaluation_is_offered_once_if_needed_until_all_is_decided(
    kind: Callable[[], Scheduler], limit: int
) -> None:
    for seed in range(CASES):
        rng = random.Random(f"contract {seed}")
        predicates = Predicates(rng, rng.choice([8, 20, 60]))
        trees = [random_tree(predicates, rng.randint(0, 2), 0.1) for _ in range(rng.randint(1, 25))]
        scheduler = kind()
        docket = Docket(table_of(trees), all_rows(trees), scheduler.shared)
        scheduler.open(docket)
        world = World(rng, docket, trees)
        world.know_at_once()
        world.confirm()
        offered: list[int] = []
        fresh = True
        while docket.undecided:
            evs = scheduler.next(docket, limit).tolist()
            if not evs:
                # On the way gates may have come to wait, and what an order has passed by may matter again.
                assert docket.arrays.counters[AWAITED] or not fresh
                world.confirm()
                docket.rewind()
                fresh = True
                continue
            assert len(evs) <= limit
            fresh = False
            if scheduler.shared:
                assert {world.evaluation(ev) for ev in evs} <= world.needed
            offered += evs
            world.answer(evs)
            world.confirm()
        assert len(set(offered)) == len(offered)
        assert docket.verdicts.tolist() == world.verdicts
        assert 0 not in world.verdicts


class Workload:
    """Conjunctions over shared predicates with known selectivities and costs, and one event's truths."""

    def __init__(self, seed: object, rows: int = 0, predicates: int = 0, longest: int = 4) -> None:
        rng = self.rng = random.Random(f"workload {seed}")
        pool = Predicates(rng, predicates or rng.randint(3, 9), shared=1, at_once=0)
        self.trees = pool.conjunctions(rows or rng.randint(1, 8), longest)
        self.rows: list[Row] = [[leaf.predicate for leaf in tree.leaves()] for tree in self.trees]
        self.table = table_of(self.trees)
        texts = self.table.predicates.texts
        self.p = {text: rng.choice([0.05, 0.3, 0.5, 0.8, 0.95]) for text in texts}
        self.cost = {text: rng.choice([1e-3, 2e-3, 1e-2]) for text in texts}
        self.truth = {text: rng.random() < self.p[text] for text in texts}
        know(self.table, self.p, self.cost)

    def run(self, scheduler: Scheduler, limit: int = 1) -> list[str]:
        """The predicates in the order in which they are evaluated."""
        docket = Docket(self.table, all_rows(self.trees), scheduler.shared)
        scheduler.open(docket)
        world = World(self.rng, docket, self.trees, failing=0)
        world.truth = {text: TRUE if truth else FALSE for text, truth in self.truth.items()}
        before = [column.copy() for column in self.table.predicates.learnt]
        evaluated: list[str] = []
        while docket.undecided:
            evs = scheduler.next(docket, limit).tolist()
            evaluated += [world.predicate(int(docket.predicates(ev)[0])) for ev in evs]
            world.answer(evs)
        for column, values in zip(self.table.predicates.learnt, before, strict=True):
            column[:] = values  # what is known stays what it was, whoever comes next
        assert [verdict == TRUE for verdict in docket.verdicts] == [
            all(self.truth[name] for name in row) for row in self.rows
        ]
        return evaluated

    def spent(self, evaluated: list[str]) -> float:
        return sum(self.cost[name] for name in evaluated)

    def optimum(self) -> int:
        """The fewest predicates that decide every row, for one who knows all truths beforehand."""
        whole = {name for row in self.rows if all(map(self.truth.get, row)) for name in row}
        false = [{name for name in row if not self.truth[name]} for row in self.rows]
        wanted = [names for names in false if names]
        candidates = sorted(set().union(*wanted))
        for size in range(len(candidates) + 1):
            for chosen in combinations(candidates, size):
                if all(names.intersection(chosen) for names in wanted):
                    return len(whole) + size
        raise AssertionError


def know(table: OperatorTable, p: dict[str, float], cost: dict[str, float]) -> None:
    """Makes a table believe in selectivities and costs."""
    learnt, predicates = table.predicates.learnt, table.predicates
    for number, text in enumerate(predicates.texts):
        learnt.trials[number], learnt.hits[number] = 1e6, 1e6 * p[text]
        evaluation = int(predicates.pred_eval.all[number])
        learnt.calls[evaluation], learnt.seconds[evaluation] = 1.0, cost[text]


def row_by_row(rows: list[Row], truth: dict[str, bool], shared: bool) -> list[str]:
    """Rows one after another, each up to its first false predicate; what is known is not asked again.

    Shared: a row with a predicate that is known to be false is not begun.
    """
    evaluated: list[str] = []
    for row in rows:
        if shared and any(name in evaluated and not truth[name] for name in row):
            continue
        for name in row:
            if name not in evaluated:
                evaluated.append(name)
            if not truth[name]:
                break
    return evaluated


@pytest.mark.parametrize("seed", range(CASES))
def test_naive_goes_row_by_row_as_written(seed: int) -> None:
    workload = Workload(seed)
    assert workload.run(Naive()) == row_by_row(workload.rows, workload.truth, shared=False)


@pytest.mark.parametrize("seed", range(CASES))
def test_databases_order_each_row_by_itself(seed: int) -> None:
    workload = Workload(seed)
    cheapest = [sorted(row, key=lambda name: workload.cost[name]) for row in workload.rows]
    assert workload.run(CheapestFirst()) == row_by_row(cheapest, workload.truth, shared=False)
    rank = {name: round(workload.cost[name] / (1 - workload.p[name]), 6) for name in workload.p}
    likeliest = row_by_row(
        [sorted(row, key=lambda name: rank[name]) for row in workload.rows], workload.truth, shared=False
    )
    evaluated = workload.run(LikeliestFirst())
    if len({rank[name] for name in evaluated}) == len(evaluated):  # of two that are equal either may be first
        assert evaluated == likeliest


@pytest.mark.parametrize("seed", range(CASES))
def test_sub_order_goes_along_its_own_order(seed: int) -> None:
    workload = Workload(seed)
    scheduler = SubOrder()
    docket = Docket(workload.table, all_rows(workload.trees))
    order = scheduler.rows(docket).tolist()
    assert sorted(order) == list(range(len(workload.rows)))
    texts = [workload.table.predicates.texts[number] for number in docket.arrays.pred_id.tolist()]
    key = dict(zip(texts, scheduler.keys(docket).tolist(), strict=False))
    chains = [sorted(workload.rows[row], key=lambda name: key[name]) for row in order]
    assert workload.run(scheduler) == row_by_row(chains, workload.truth, shared=True)


@pytest.mark.parametrize("seed", range(CASES))
def test_sequential_needs_no_more_than_its_bound(seed: int) -> None:
    for number in range(8):
        workload = Workload(f"{seed} {number}")
        longest = max(map(len, workload.rows))
        assert workload.optimum() <= len(workload.run(Sequential())) <= longest * workload.optimum()


def test_nobody_beats_hindsight_and_adaptive_comes_close() -> None:
    spent = dict.fromkeys(ALL, 0.0)
    for seed in range(WORKLOADS):
        workload = Workload(f"spent {seed}", rows=20, predicates=30, longest=5)
        for kind in ALL:
            evaluated = workload.run(kind())
            spent[kind] += workload.spent(evaluated)
            if seed < 10:
                assert len(evaluated) >= workload.optimum()
    assert spent[Adaptive] < 1.01 * min(spent.values())
    assert spent[Adaptive] < 0.95 * spent[LikeliestFirst] < 0.95 * spent[CheapestFirst]
    assert spent[Adaptive] < 0.75 * spent[Naive]


def test_what_must_be_evaluated_comes_first() -> None:
    """The last predicate of a row is needed whatever the others say, however dear it is."""
    cheap, other, dear = (Asked(f"p({n})", f"p({n})") for n in range(3))
    trees = [Tree(children=[cheap, other]), Tree(children=[cheap, other]), Tree(children=[dear])]
    table = table_of(trees)
    know(table, {"p(0)": 0.1, "p(1)": 0.1, "p(2)": 0.9}, {"p(0)": 1e-6, "p(1)": 1e-6, "p(2)": 10.0})
    docket = Docket(table, all_rows(trees))
    scheduler = Adaptive()
    scheduler.open(docket)
    names = [table.predicates.evaluation_texts[int(docket.arrays.ev_id[ev])] for ev in range(3)]
    (first,) = scheduler.next(docket, 1).tolist()
    assert names[first] == "p(2)"
    (second,) = scheduler.next(docket, 1).tolist()
    docket.settle(np.array([second], np.int32), np.array([TRUE], np.int32), np.array([1e-6]))
    # One is true: now the other is the last of two rows.
    assert docket.arrays.ev["forced"].tolist()[:3].count(2) == 1


@pytest.mark.parametrize("seed", range(CASES))
def test_adaptive_takes_what_gains_most_for_its_cost(seed: int) -> None:
    workload = Workload(f"best {seed}", rows=20, predicates=12)
    docket = Docket(workload.table, all_rows(workload.trees))
    scheduler = Adaptive()
    scheduler.open(docket)
    world = World(workload.rng, docket, workload.trees)
    while docket.undecided:
        ev = docket.arrays.ev[: docket.ev_count].copy()
        (chosen,) = scheduler.next(docket, 1).tolist()
        left = (ev["live"] > 0) & (ev["state"] == 0)
        assert left[chosen]
        if ev["forced"][left].any():
            assert ev["forced"][chosen]
        else:  # buckets are a 32nd of a doubling wide
            worth = np.maximum(ev["gain"], 0) / ev["cost"]
            assert worth[chosen] >= worth[left].max() * 2 ** (-1 / 16)
        world.answer([chosen])


def test_a_frontier_holds_no_two_for_a_row_that_could_spare_one() -> None:
    several = 0
    for seed in range(CASES):
        workload = Workload(f"frontier {seed}", rows=25, predicates=40)
        docket = Docket(workload.table, all_rows(workload.trees))
        scheduler = Adaptive()
        scheduler.open(docket)
        world = World(workload.rng, docket, workload.trees)
        while docket.undecided:
            forced = docket.arrays.ev["forced"].copy()
            needed = [set(tree.needed(world.known, {})) for tree in workload.trees]
            chosen = scheduler.next(docket, FRONTIER).tolist()
            several += len(chosen) > 1
            free = {world.evaluation(ev) for ev in chosen if not forced[ev]}
            for leaves in needed:
                assert len(free & {leaf.evaluation for leaf in leaves}) <= 1
            world.answer(chosen)
    assert several > CASES


def test_a_frontier_costs_little_more_than_one_at_a_time() -> None:
    one = many = 0
    for seed in range(WORKLOADS):
        workload = Workload(f"rounds {seed}", rows=60, predicates=40)
        one += len(workload.run(Adaptive(), 1))
        many += len(workload.run(Adaptive(), FRONTIER))
    assert many <= 1.1 * one


def test_sub_order_takes_in_rows_that_came_later() -> None:
    scheduler = SubOrder()
    workload = Workload("first", rows=5)
    assert len(scheduler.rows(Docket(workload.table, all_rows(workload.trees)))) == 5
    more = Predicates(workload.rng, 5).conjunctions(20, 3)
    for tree in more:
        workload.table.add(*tree.program())
    rows = np.array([24, 3, 17], np.int32)
    docket = Docket(workload.table, rows)
    assert sorted(scheduler.rows(docket).tolist()) == [0, 1, 2]
