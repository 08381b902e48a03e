"""Operators' workloads through the product: a workload becomes a table of programs, and every scheduler decides the same
events, with the truths given so that no operator is called.

Selectivities and costs are known to all schedulers, unless it is said that they learn. What is counted is evaluations,
or the sum of their costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks import operator_kernels
from benchmarks.operator_workloads import Bools, Floats, Ints, Model, Parameters, Workload, make
from tidings import Engine
from tidings.arrays.vocabulary import join_texts
from tidings.kinds.operators.functions.operator import operator
from tidings.kinds.operators.kernels import chains as chain_kernels
from tidings.kinds.operators.kernels.layout import TRUE, Learnt
from tidings.kinds.operators.predicates import BY_EVALUATION, BY_PREDICATE
from tidings.kinds.operators.scheduling import chains
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

NAIVE, SEQUENTIAL, SUB_ORDER, ADAPTIVE = "naive", "Sequential", "Sub-Order", "Adaptive"
CHEAPEST, LIKELIEST, HINDSIGHT = "cost alone", "cost / (1 - selectivity)", "hindsight"
SCHEDULERS: dict[str, type[Scheduler]] = {
    NAIVE: Naive,
    CHEAPEST: CheapestFirst,
    LIKELIEST: LikeliestFirst,
    SEQUENTIAL: Sequential,
    SUB_ORDER: SubOrder,
    ADAPTIVE: Adaptive,
}
LABELS = (*SCHEDULERS, HINDSIGHT)
# So many sights that no prior counts.
_CERTAIN = 1e12
_TEXTS = ("calls_", "names_", "operators_")
# A predicate that always holds would have no order by cost / (1 - selectivity).
_ALMOST_ALWAYS = 1 - 1e-12


@operator(cost=1.0)
def holds(event: object, number: int) -> bool:
    """Stands for every predicate; truths are given, so nobody calls it."""
    raise AssertionError("truths are given")


@dataclass(frozen=True, slots=True)
class Spent:
    evaluations: int
    cost: float


class Replay:
    """A workload in a table of its own. Without a model, nothing is known of its predicates."""

    def __init__(self, workload: Workload, model: Model | None) -> None:
        self.workload = workload
        known = None if model is None else np.minimum(workload.selectivities(model), _ALMOST_ALWAYS)
        self.table = make_table(workload, known)
        self.rows = np.arange(len(workload), dtype=np.int32)

    @property
    def selectivities(self) -> Floats:
        learnt: Learnt = self.table.predicates.learnt
        return learnt.hits / learnt.trials

    def decide(self, scheduler: Scheduler, truth: Bools, limit: int = 1, learns: bool = False) -> Spent:
        """Decides all subscriptions for one event; fails if an answer is wrong."""
        predicates = self.table.predicates
        if learns:
            predicates.events += 1.0
        docket = Docket(self.table, self.rows, scheduler.shared)
        scheduler.open(docket)
        out = np.empty(limit, dtype=np.int32)
        if isinstance(scheduler, Adaptive):
            spent = operator_kernels.replay_best(
                docket.arrays, docket.programs, docket.learnt, docket.now, truth, limit, learns, out
            )
        else:
            assert isinstance(scheduler, Naive)
            rows, leaves = docket.row_order, docket.leaf_order
            spent = operator_kernels.replay_walk(
                docket.arrays, rows, leaves, scheduler.shared, scheduler.past, truth, out
            )
        assert ((docket.verdicts == TRUE) == self.workload.matches(truth)).all(), "a wrong answer"
        assert docket.undecided == 0, "something is left undecided"
        return Spent(*spent)


def make_table(workload: Workload, known: Floats | None) -> OperatorTable:
    """The subscriptions as programs of one AND each; `known` are the selectivities.

    Made of the arrays of a table with one row: all rows are like it but for their predicates.
    """
    count, size = workload.parameters.predicates, len(workload)
    texts, start = join_texts(f"holds({number})" for number in range(count))
    engine = Engine(operators=[holds])
    engine.subscribe("one", "{holds(0), holds(1), holds(2)}")
    one = engine._checker.table.freeze()
    arrays = {name: np.repeat(column[:1], size) for name, column in one.items() if len(column) == 1}
    arrays |= {
        name: np.repeat(column[:1], len(workload.member)) for name, column in one.items() if "leaf" in name
    }
    arrays |= {name: column for name, column in one.items() if name.startswith(_TEXTS) or "operator_" in name}
    arrays |= {field: np.zeros(count) for field in (*BY_PREDICATE, *BY_EVALUATION)}
    arrays |= {
        "gate_first": np.arange(size + 1),
        "gate_size": np.diff(workload.first),
        "leaf_first": workload.first,
        "leaf_asked": workload.member << 1,
        "pred_eval": np.arange(count),
        "eval_operator": np.zeros(count),
        "events": np.zeros(1),
        "evaluations_blob": texts,
        "evaluations_start": start,
        "predicates_blob": texts,
        "predicates_start": start,
        "seconds": workload.cost,
        "calls": np.ones(count),
    }
    if known is not None:
        arrays |= {"hits": known * _CERTAIN, "trials": np.full(count, _CERTAIN)}
    return OperatorTable.thaw(arrays, engine._checker.table.find)


def hindsight(workload: Workload, truth: Bools, rows_of: tuple[Ints, Ints]) -> Bools:
    """The predicates that prove every answer, chosen by somebody who knows them all: an upper bound on the fewest.

    `rows_of` is `workload.by_predicate()`.
    """
    count = len(truth)
    needed = np.zeros(count, np.bool_)
    decided, hits, heap = np.zeros(len(workload), np.bool_), np.zeros(count, np.int64), np.empty((count, 2))
    operator_kernels.certify(
        workload.first, workload.member, *rows_of, truth, workload.cost, decided, hits, heap, needed
    )
    return needed


def lower_bound(workload: Workload, truth: Bools, rounds: int = 60) -> float:
    """A cost that nobody can stay below, knowing the event or not."""
    count = len(truth)
    paid, load, slack = np.zeros(len(workload)), np.zeros(count), np.zeros(count)
    return float(
        operator_kernels.bound(
            workload.first,
            workload.member,
            truth,
            workload.cost,
            rounds,
            paid,
            load,
            slack,
            np.zeros(count, np.bool_),
        )
    )


class PrintedSubOrder(SubOrder):
    """Sub-Order with unequal costs as its 4.3 is printed: costs count in the differences of two chains, "the rest
    remains the same", so a chain goes by selectivity alone."""

    def __init__(self, replay: Replay) -> None:
        super().__init__()
        workload, p = replay.workload, replay.selectivities
        alike = np.ones(len(p))
        first = workload.first
        member = chains.sort_members(first, workload.member, p, alike)
        reach, spent = np.empty(len(member)), np.empty(len(member))
        chain_kernels.walk_chains(first, member, p, workload.cost, reach, spent)
        row = np.repeat(np.arange(len(workload), dtype=np.int32), np.diff(first))
        slot = np.lexsort((np.arctan2(spent, reach), member))
        source, target = np.empty(len(slot), np.int32), np.empty(len(slot), np.int32)
        saving = np.empty(len(slot))
        count = chain_kernels.compare_neighbours(
            slot, row, first, member, 1 / (1 - p), p, workload.cost, chains.NEIGHBOURS, source, target, saving
        )
        following, preceding = np.full((2, len(workload)), -1, np.int32)
        end = np.arange(len(workload), dtype=np.int32)
        chain_kernels.join_paths(
            np.argsort(-saving[:count], kind="stable"), source, target, following, preceding, end
        )
        heads = np.flatnonzero(preceding < 0).astype(np.int32)
        mean, order = np.empty(len(heads)), np.empty(len(workload), np.int32)
        precedence = chains._precedence(row, member, p, reach, spent, len(workload))
        chain_kernels.average_paths(heads, following, precedence, mean)
        chain_kernels.lay_paths(heads[np.argsort(-mean, kind="stable")], following, order)
        self._rank = np.argsort(order)

    def keys(self, docket: Docket) -> Floats:
        return docket.arrays.pred["p"][: docket.pred_count].copy()


@dataclass(frozen=True, slots=True)
class Run:
    """One point of a figure under one model: the mean evaluations and the mean cost of an event, by contender."""

    evaluations: dict[str, float]
    cost: dict[str, float]

    def ratio(self, name: str, other: str) -> float:
        return self.cost[name] / self.cost[other]


@cache
def measure(parameters: Parameters, model: Model, events: int) -> Run:
    """Every contender on the same events."""
    workload = make(parameters)
    replay, rows_of = Replay(workload, model), workload.by_predicate()
    schedulers = {name: kind() for name, kind in SCHEDULERS.items()}
    spent: dict[str, list[Spent]] = {name: [] for name in LABELS}
    for truth in workload.truths(model, events):
        for name, scheduler in schedulers.items():
            spent[name].append(replay.decide(scheduler, truth))
        needed = hindsight(workload, truth, rows_of)
        spent[HINDSIGHT].append(Spent(int(needed.sum()), float(workload.cost[needed].sum())))
    return Run(
        {name: float(np.mean([one.evaluations for one in all_])) for name, all_ in spent.items()},
        {name: float(np.mean([one.cost for one in all_])) for name, all_ in spent.items()},
    )
