"""The operators' workloads are drawn as Sub-Order says, every contender gives the right answers, hindsight proves them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from benchmarks.figures import operators
from benchmarks.measure import keep
from benchmarks.operator_runs import (
    ADAPTIVE,
    HINDSIGHT,
    LABELS,
    NAIVE,
    SCHEDULERS,
    SEQUENTIAL,
    PrintedSubOrder,
    Replay,
    hindsight,
    lower_bound,
    measure,
)
from benchmarks.operator_workloads import (
    CHOSEN,
    FACTOR,
    FAR_APART,
    FIGURES,
    INDEPENDENT,
    MATCHING,
    MODELS,
    SHORTEST,
    SPREADS,
    Bools,
    Model,
    Parameters,
    Workload,
    make,
)
from benchmarks.report import write
from tidings.kinds.operators.scheduling.schedulers import Adaptive

SMALL = Parameters(2_000, 500, 1.0)
UNEQUAL = replace(SMALL, spread=SPREADS[FACTOR])
TINY = Parameters(12, 10, None)


def proves(workload: Workload, truth: Bools, known: Bools) -> bool:
    """Whether what is known of an event decides every subscription: a false predicate, or all of them."""
    false = np.logical_or.reduceat((known & ~truth)[workload.member], workload.first[:-1])
    whole = np.logical_and.reduceat((known & truth)[workload.member], workload.first[:-1])
    return bool((false | whole).all())


def cheapest_proof(workload: Workload, truth: Bools) -> float:
    """By trying all sets of predicates."""
    count, best = len(truth), np.inf
    for size in range(count + 1):
        for chosen in combinations(range(count), size):
            known = np.zeros(count, np.bool_)
            known[list(chosen)] = True
            if proves(workload, truth, known):
                best = min(best, float(workload.cost[known].sum()))
    return best


def test_subscriptions_have_different_predicates_and_all_lengths() -> None:
    workload = make(replace(SMALL, longest=7))
    lengths = np.diff(workload.first)
    assert np.unique(lengths).tolist() == list(range(SHORTEST, 8))
    assert np.bincount(lengths)[SHORTEST:].min() > 0.8 * len(workload) / 5
    for row in range(len(workload)):
        members = workload.member[workload.first[row] : workload.first[row + 1]]
        assert len(set(members.tolist())) == len(members)


def test_popularity_is_uniform_or_follows_zipf() -> None:
    even, zipf = (make(replace(SMALL, subscriptions=20_000, zipf=exponent)) for exponent in (None, 1.0))
    counts = np.bincount(even.member, minlength=500)
    assert counts.max() < 3 * counts.mean()  # weights are uniform in [0, 1]
    assert counts.min() < 0.2 * counts.mean()
    counts = np.bincount(zipf.member, minlength=500)
    # The head is flattened: no subscription has a predicate twice.
    assert counts[:10].sum() > 0.3 * counts.sum()
    assert 0.7 < counts[40] / counts[80] / 2 < 1.3


@pytest.mark.parametrize("zipf", [None, 1.0])
def test_as_many_match_as_published(zipf: float | None) -> None:
    workload = make(replace(SMALL, subscriptions=20_000, predicates=5_000, zipf=zipf))
    share = np.mean([workload.matches(truth).mean() for truth in workload.truths(INDEPENDENT, 200)])
    assert 0.7 * MATCHING < share < 1.4 * MATCHING
    assert 0.1 < workload.chance.mean() < 0.3
    for truth in workload.truths(CHOSEN, 5):
        assert workload.matches(truth).mean() >= MATCHING


@pytest.mark.parametrize("model", MODELS)
def test_selectivities_are_what_truths_show(model: Model) -> None:
    workload = make(SMALL)
    shown = np.mean(list(workload.truths(model, 600)), axis=0)
    assert abs(shown - workload.selectivities(model)).max() < 0.1
    assert abs(shown.mean() - workload.selectivities(model).mean()) < 0.01


@pytest.mark.parametrize("model", MODELS)
def test_all_follows_from_the_seed(model: Model) -> None:
    one, two, other = make(UNEQUAL), make(UNEQUAL), make(replace(UNEQUAL, seed=1))
    for name in ("first", "member", "chance", "cost"):
        assert (getattr(one, name) == getattr(two, name)).all()
    assert not np.array_equal(one.member, other.member)
    three, last = list(one.truths(model, 3)), list(two.truths(model, 1, first=2))
    assert (three[2] == last[0]).all()
    assert (three[1] != three[2]).any()


def test_costs_differ_by_a_factor_of_100() -> None:
    cost = make(replace(UNEQUAL, predicates=5_000)).cost
    low, high = np.quantile(cost, [0.05, 0.95])
    assert 85 < high / low < 115
    assert (make(SMALL).cost == 1).all()


def test_changed_selectivities_match_as_often() -> None:
    workload = make(SMALL)
    other = workload.with_other_chances(seed=3)
    assert abs(np.corrcoef(workload.chance, other.chance)[0, 1]) < 0.2
    expected = np.multiply.reduceat(other.chance[other.member], other.first[:-1]).mean()
    assert expected == pytest.approx(MATCHING, rel=1e-6)


def test_figures_have_the_published_sizes() -> None:
    largest = FIGURES[4][-1]
    assert (largest.subscriptions, largest.predicates, largest.zipf, largest.longest) == (
        80_000,
        40_000,
        None,
        5,
    )
    assert [point.longest for point in FIGURES[7]] == [5, 7, 9, 11]
    assert FIGURES[6][-1].predicates == 30_000


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [SMALL, UNEQUAL, replace(SMALL, zipf=None, longest=9)])
@pytest.mark.parametrize("model", MODELS)
def test_hindsight_proves_every_answer(parameters: Parameters, model: Model) -> None:
    workload = make(parameters)
    for truth in workload.truths(model, 5):
        needed = hindsight(workload, truth, workload.by_predicate())
        assert proves(workload, truth, needed)
        bound, cost = lower_bound(workload, truth), workload.cost[needed].sum()
        assert 0.3 * cost < bound <= cost * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_hindsight_and_bound_beside_all_proofs(seed: int, spread: float) -> None:
    workload = make(replace(TINY, seed=seed, spread=spread))
    rng = np.random.default_rng(seed)
    for truth in (rng.random(10) < 0.3, rng.random(10) < 0.7, np.zeros(10, np.bool_), np.ones(10, np.bool_)):
        needed = hindsight(workload, truth, workload.by_predicate())
        fewest = cheapest_proof(workload, truth)
        assert proves(workload, truth, needed)
        assert lower_bound(workload, truth) <= fewest + 1e-9
        # A greedy hitting set of rows costs at most 1 + 1/2 + ... + 1/12 times the cheapest.
        assert fewest - 1e-9 <= workload.cost[needed].sum() <= 3.11 * fewest


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [SMALL, UNEQUAL])
@pytest.mark.parametrize("model", MODELS)
def test_every_contender_decides_and_none_beats_the_bound(parameters: Parameters, model: Model) -> None:
    found = measure(parameters, model, 3)
    workload = make(parameters)
    least = np.mean([lower_bound(workload, truth) for truth in workload.truths(model, 3)])
    assert list(found.cost) == list(LABELS)
    assert min(found.cost.values()) >= least
    assert found.cost[ADAPTIVE] <= 1.2 * found.cost[HINDSIGHT]
    assert found.evaluations[SEQUENTIAL] < found.evaluations[NAIVE]


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEDULERS)
def test_several_at_once_decide_the_same(name: str) -> None:
    workload = make(SMALL)
    replay, scheduler = Replay(workload, INDEPENDENT), SCHEDULERS[name]()
    for truth in workload.truths(INDEPENDENT, 2):
        one, many = (replay.decide(scheduler, truth, limit) for limit in (1, 64))
        assert one.evaluations <= many.evaluations * 1.05
        assert many.evaluations <= one.evaluations * 1.1


@pytest.mark.slow
def test_printed_sub_order_is_that_of_equal_costs() -> None:
    """Chains by selectivity alone are chains by cost / (1 - selectivity) when costs are equal."""
    workload = make(SMALL)
    replay = Replay(workload, INDEPENDENT)
    for truth in workload.truths(INDEPENDENT, 2):
        assert replay.decide(PrintedSubOrder(replay), truth) == replay.decide(
            SCHEDULERS["Sub-Order"](), truth
        )


@pytest.mark.slow
def test_learning_comes_near_knowledge() -> None:
    workload = make(replace(SMALL, zipf=None, chances=FAR_APART))
    learner, knower, scheduler = Replay(workload, None), Replay(workload, INDEPENDENT), Adaptive()

    def excess() -> float:
        """How many times the evaluations of one who knows."""
        truths = list(workload.truths(INDEPENDENT, 20, first=200))
        ours, theirs = (
            sum(replay.decide(scheduler, truth).evaluations for truth in truths)
            for replay in (learner, knower)
        )
        return ours / theirs

    assert excess() > 1.03
    for truth in workload.truths(INDEPENDENT, 200):
        learner.decide(scheduler, truth, learns=True)
    assert excess() < 1.02


@pytest.mark.slow
def test_a_figure_is_kept_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "EVENTS", 2)
    results = tmp_path / "results"
    figure = next(operators.run(0.02))
    assert keep(figure, results).exists()
    assert set(figure.series) == set(LABELS)
    write(results, tmp_path / "docs" / "benchmarks.md")
    page = (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "Sub-Order 4, independent" in page
    assert "7,037" in page
