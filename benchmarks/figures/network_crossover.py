"""Where breadth-first search, the index and SCC skipping win: by what evaluating one expression costs.

A compiled expression costs nanoseconds, the paper's 20 µs. Every expression that is run without the index is charged an
extra cost here, as an operator or a remote call would have it: added to the measured time, not waited for. What the
index tries itself is not charged, as in the paper, so the crossover is the earliest there can be.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import Figure, ratios
from benchmarks.network_bars import runs
from benchmarks.network_runs import AUTO, GENERAL, INDEX, LABELS, SEARCH, SKIPPING, mean

_COSTS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 20)  # µs


def run(scale: float) -> Iterator[Figure]:
    for name, selectivity in (("network-crossover", "1/4"), ("network-crossover-half", "1/2")):
        found = runs(selectivity, max(50, round(1000 * scale)))
        first = mean(found.whole[AUTO])
        series = {
            LABELS[algorithm]: ratios(
                [mean(found.whole[algorithm] + found.verified[algorithm] * cost * 1e-6) for cost in _COSTS],
                first,
            )
            for algorithm in (SEARCH, SKIPPING, GENERAL, INDEX)
        }
        yield Figure(
            name=name,
            title=f"What evaluating one expression may cost, selectivity {selectivity}",
            x_label="extra cost of an expression that is run without the index, µs",
            y_label="time of one event, relative",
            x=list(_COSTS),
            series=series,
            reference=f"{first * 1e6:.0f} µs an event, auto without an extra cost",
            published="at 20 µs an expression the index wins from about 2,000 reachable nodes on",
            log_x=True,
            log_y=True,
            seed=2011,
        )
