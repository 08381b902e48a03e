"""Filters against the interval / k-index baseline and one-by-one evaluation, on ABE-Gen's parameters."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.filter_baselines import Contender, Interval, OneByOne
from benchmarks.filter_workloads import ABE_GEN, Workload, make
from benchmarks.measure import Figure, best, ratios
from benchmarks.tidings_filters import Tidings

OURS, INTERVAL, ALONE = "Tidings", "interval / k-index", "one by one"
_CONTENDERS = {OURS: Tidings, INTERVAL: Interval, ALONE: OneByOne}
_SIZES = (100_000, 300_000, 1_000_000, 3_000_000)


def run(scale: float) -> Iterator[Figure]:
    times: dict[str, list[float]] = {name: [] for name in _CONTENDERS}
    for size in _SIZES:
        workload = make(replace(ABE_GEN, expressions=max(1000, round(size * scale))))
        for name, contender in _CONTENDERS.items():
            times[name].append(_per_event(contender(workload), workload))
    first = times[OURS][0]
    yield Figure(
        name="filters-abe",
        title="Matching arbitrary expressions of depth 1 to 4, by their number",
        x_label="expressions",
        y_label="time of one event, relative",
        x=list(_SIZES),
        series={name: ratios(taken, first) for name, taken in times.items()},
        reference=f"{first * 1e6:.0f} µs an event, the leftmost point of Tidings",
        published="A-Tree: matching times up to 99 % lower than those of earlier algorithms for any expression",
        log_x=True,
        log_y=True,
        seed=ABE_GEN.seed,
    )


def _per_event(contender: Contender, workload: Workload, budget: float = 1.0) -> float:
    """Processor seconds of one event, read before, best of five; as many events as the budget allows a run."""
    one = contender.prepare(workload, 1)
    contender.match(one)
    spent = best(lambda: contender.match(one), runs=1, clock=time.process_time)
    count = max(1, min(len(workload.events), int(budget / max(spent, 1e-6))))
    prepared = contender.prepare(workload, count)
    contender.match(prepared)
    return best(lambda: contender.match(prepared), clock=time.process_time) / count
