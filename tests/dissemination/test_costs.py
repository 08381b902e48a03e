"""Costs of semijoins: the formula is what it is derived from, and both estimates order the forms alike."""

from __future__ import annotations

import numpy as np
import pytest

from tests.dissemination.schemes.worlds import STAR, changes, ranges, star
from tidings.dissemination.costs import TableStatistics, measured, parametric, sampled
from tidings.dissemination.decomposition import decompose
from tidings.dissemination.schemes import Change, Semijoin, Server, Side
from tidings.dissemination.schemes.signature import Edge, Signature

R, S = Side("r", (0,), 1), Side("s", (0,), 1)


def simulated_share(j: int, rng: np.random.Generator) -> tuple[float, float]:
    """Of random ranges: the share that holds one of j random values, and that which holds one more and none of them."""
    values = np.sort(rng.random((20_000, j)), axis=1)
    one_more = rng.random(20_000)
    ends = np.sort(rng.random((20_000, 2)), axis=1)
    low, high = ends[:, :1], ends[:, 1:]
    holds = ((low <= values) & (values <= high)).any(axis=1)
    exposed = ~holds & (low[:, 0] <= one_more) & (one_more <= high[:, 0])
    return float(holds.mean()), float(exposed.mean())


@pytest.mark.parametrize("j", [1, 2, 5, 20])
def test_the_formula_is_what_uniform_ranges_give(j: int) -> None:
    holds, exposed = simulated_share(j, np.random.default_rng(j))
    only_base = TableStatistics({"r": 1.0, "s": 0.0}, {R: 3.0, S: float(j)})
    only_filtering = TableStatistics({"r": 0.0, "s": 1.0}, {R: 3.0, S: float(j)})
    assert parametric(Semijoin(R, S), only_base) == pytest.approx(holds / 3, rel=0.05)
    assert parametric(Semijoin(R, S), only_filtering) == pytest.approx(3 * exposed / 3, rel=0.1, abs=0.002)


def test_measured_statistics() -> None:
    server = Server(STAR)
    signature = star("r")
    one = (np.array([0]), np.array([9]))
    server.subscribe(signature, [one, one])
    server.load("r", [(1, 1), (2, 1), (3, 2)])
    server.load("s", [(1, 0, 0, 5)])
    found = measured(server, [Change("r", new=(1, 1))] * 3 + [Change("s", new=(1, 0, 0, 1))])
    assert found.change_share == {"r": 0.75, "s": 0.25, "t": 0.0, "u": 0.0}
    assert found.rows_a_value == {Side("s", (0,), 3): 1.0, Side("r", (1,), 0): 1.5}


def test_both_estimates_find_the_selective_neighbour() -> None:
    """S is joined with R, of which few rows have a join value, and T, of which many have: R lets less of S through."""
    rng = np.random.default_rng(5)
    signature = Signature(("s", "r", "t"), (Edge(0, 1, (0,), (1,)), Edge(0, 2, (1,), (0,))), (3, 0, 1))
    server = Server(STAR)
    every = [ranges(rng, 300, empty=False) for _ in signature.tables]
    forms = decompose([signature], lambda form: 0.0)[signature]
    server.subscribe(signature, every, forms)
    server.load("r", [(int(rng.integers(12)), key) for key in range(2)])
    server.load("t", [(key, int(rng.integers(12))) for key in range(2) for _ in range(30)])
    server.load("s", [(key, key, 0, int(rng.integers(12))) for key in (0, 1) for _ in range(5)])
    some = [Change("s", new=(key, key, 0, int(rng.integers(12)))) for key in (0, 1) for _ in range(20)]
    by_r, by_t = sorted(signature.semijoins("s"), key=str)
    statistics = measured(server, some)
    simulated = sampled(server, some, 200, rng)
    assert parametric(by_r, statistics) < parametric(by_t, statistics)
    assert simulated[by_r] < simulated[by_t]
    chosen = decompose([signature], lambda form: parametric(form, statistics))[signature]
    assert chosen[0] == by_r
    assert len(server.contents()["s"]) == 10  # a simulation leaves the server as it was


def test_nothing_sampled_costs_nothing() -> None:
    server = Server(STAR)
    rng = np.random.default_rng(1)
    server.subscribe(star("r"), [ranges(rng, 3), ranges(rng, 3)])
    assert set(sampled(server, [], 10, rng).values()) == {0.0}
    assert list(changes(rng, server, 0)) == []
