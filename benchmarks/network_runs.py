"""Networks under the clock: the same queries by every algorithm, so that what disturbs one disturbs all.

A query's time is the best of five, each time in another order, because an algorithm leaves the caches to the next. What
is compared are the times of one query by two algorithms.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.network_workloads import Exchange
from tidings import Network

AUTO, GENERAL, SKIPPING, SEARCH, INDEX = "auto", "general", "scc-skip", "bfs", "index"
ALGORITHMS = (AUTO, GENERAL, SKIPPING, SEARCH, INDEX)
LABELS = {
    AUTO: "auto",
    GENERAL: "Figure 6",
    SKIPPING: "Figure 8, SCC skipping",
    SEARCH: "BFS",
    INDEX: "index first",
}
_RUNS = 5
Times = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Runs:
    """Of each algorithm, for every query: seconds to the end and to the first result (NaN if there is none),
    entities taken from the index, expressions run where they are reached, and results."""

    whole: dict[str, Times]
    first: dict[str, Times]
    retrieved: dict[str, Times]
    verified: dict[str, Times]
    results: dict[str, Times]

    def slowdown(self, name: str, other: str) -> float:
        """How many times the time of another algorithm: the median over queries."""
        return float(np.median(self.whole[name] / self.whole[other]))


def load(exchange: Exchange) -> Network:
    return Network.from_tables(exchange.node_table(), exchange.edge_table())


def measure(exchange: Exchange, algorithms: Sequence[str] = ALGORITHMS, queries: int | None = None) -> Runs:
    """Runs the queries of an exchange; fails if two algorithms do not agree on the results."""
    network, asked = load(exchange), exchange.queries()[:queries]
    kinds = ("whole", "first", "retrieved", "verified", "results")
    found = {kind: {name: np.full(len(asked), np.inf) for name in algorithms} for kind in kinds}
    for name in algorithms:  # what is compiled or built is not measured
        for publisher, event in asked[:20]:
            network.evaluate(publisher, event, name).numbers()
            next(network.evaluate(publisher, event, name), None)
    rng = np.random.default_rng(1)
    for i, (publisher, event) in enumerate(asked):
        for _ in range(_RUNS):
            for name in rng.permutation(algorithms).tolist():
                start = time.perf_counter()
                evaluation = network.evaluate(publisher, event, name)
                numbers = evaluation.numbers()
                taken = time.perf_counter() - start
                found["whole"][name][i] = min(found["whole"][name][i], taken)
                found["retrieved"][name][i] = evaluation.retrieved
                found["verified"][name][i] = evaluation.verified
                found["results"][name][i] = len(numbers)
                start = time.perf_counter()
                evaluation = network.evaluate(publisher, event, name)
                there = next(evaluation, None) is not None
                taken = time.perf_counter() - start
                evaluation.close()
                found["first"][name][i] = min(found["first"][name][i], taken) if there else np.nan
    results = [found["results"][name] for name in algorithms]
    assert all((one == results[0]).all() for one in results), "the algorithms do not agree"
    return Runs(**found)


def mean(values: Times) -> float:
    """The mean of those that are there."""
    there = values[~np.isnan(values)]
    return float(there.mean()) if len(there) else 0.0
