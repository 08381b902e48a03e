"""Tidings beside the baselines: the same workload, the same timing, results as ratios of one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from benchmarks.baselines import AsVariables, Contender, Counting, OneByOne, Sparql
from benchmarks.measure import Figure, best, ratios
from benchmarks.tidings_index import Tidings
from benchmarks.workloads import Parameters, Workload

OURS, COUNTING, OPS = "Tidings", "counting (G-ToPSS)", "as variables (OPS)"
ALONE, SPARQL = "one by one", "SPARQL, one query each"
CONTENDERS: dict[str, Callable[[Workload], Contender]] = {
    OURS: Tidings,
    COUNTING: Counting,
    OPS: AsVariables,
    ALONE: OneByOne,
    SPARQL: Sparql,
}

# Texts of 250 structures, as an application's forms make them. Table 1 of G-ToPSS has subscriptions of (5, 35),
# which no publication of (35, 90) contains 30 times; they have (5, 10) here as in RSS cluster.
CLUSTER = Parameters(shapes=250)
GTOPSS = replace(CLUSTER, subscriptions=30_000, matches=30, publication_size=(35, 90))


def scaled(parameters: Parameters, scale: float) -> Parameters:
    """As many times the subscriptions and the matches."""
    return replace(
        parameters,
        subscriptions=max(200, round(parameters.subscriptions * scale)),
        matches=max(1, round(parameters.matches * scale)),
    )


def per_publication(contender: Contender, workload: Workload, budget: float = 1.0) -> float:
    """Seconds of matching one publication, best of five, with as many publications as the budget allows a run."""
    one = contender.prepare(workload, 1)
    contender.match(one)
    start = time.perf_counter()
    contender.match(one)
    spent = max(time.perf_counter() - start, 1e-6)
    count = max(1, min(len(workload.publications), int(budget / spent)))
    prepared = contender.prepare(workload, count)
    return best(lambda: contender.match(prepared)) / count


def compared(points: Mapping[float, Workload], names: tuple[str, ...], **facts: Any) -> Figure:
    """The figure of matching times of contenders over the workloads `points`, in multiples of our first time."""
    times: dict[str, list[float]] = {name: [] for name in names}
    for workload in points.values():
        for name in names:
            times[name].append(per_publication(CONTENDERS[name](workload), workload))
    first = times[OURS][0]
    return Figure(
        x=list(points),
        y_label="time of one publication, relative",
        series={name: ratios(taken, first) for name, taken in times.items()},
        reference=f"{first * 1e6:.1f} µs a publication, the leftmost point of Tidings",
        **facts,
    )
