"""Graph constraints, Figures 15 and 16: evaluation and first result by the size of the graph, selectivity 1/4."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import Figure, ratios
from benchmarks.network_bars import SIZES, runs_of_size
from benchmarks.network_runs import AUTO, GENERAL, INDEX, LABELS, SKIPPING, mean


def run(scale: float) -> Iterator[Figure]:
    found = [runs_of_size(times, max(50, round(1000 * scale))) for times in SIZES]
    for name, kind, title, published in (
        (
            "network-15",
            "whole",
            "Evaluation, by size of the graph",
            "Figure 6 beside the index baseline; the text gives no values and the curves are lost",
        ),
        (
            "network-16",
            "first",
            "Time to the first result, by size of the graph",
            "Figure 6 grows more slowly than the index baseline",
        ),
    ):
        times = {
            LABELS[algorithm]: [mean(getattr(one, kind)[algorithm]) for one in found]
            for algorithm in (AUTO, GENERAL, SKIPPING, INDEX)
        }
        first = times[LABELS[AUTO]][0]
        yield Figure(
            name=name,
            title=title,
            x_label="size of the graph, 1 = 71,097 nodes",
            y_label="time of one event, relative"
            if kind == "whole"
            else "time to the first result, relative",
            x=list(SIZES),
            series={label: ratios(taken, first) for label, taken in times.items()},
            reference=f"{first * 1e6:.0f} µs, the leftmost point of auto",
            published=published,
            log_y=True,
            seed=2011,
        )
