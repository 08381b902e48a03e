"""Graph constraints, Figures 12, 13 and 14: evaluation and first result by the selectivity of expressions."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import Figure, ratios
from benchmarks.network_bars import runs
from benchmarks.network_runs import AUTO, GENERAL, INDEX, LABELS, SEARCH, SKIPPING, Runs, mean
from benchmarks.network_workloads import SELECTIVITIES

PAPERS_EVALUATION = 20e-6  # seconds of evaluating one expression without the index, as published


def run(scale: float) -> Iterator[Figure]:
    queries = max(50, round(1000 * scale))
    found = [runs(name, queries) for name in SELECTIVITIES]
    first = mean(found[0].whole[AUTO])
    facts = {
        "x": [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1],
        "x_label": "selectivity of the expressions",
        "log_x": True,
        "seed": 2011,
    }
    whole = {
        **{
            LABELS[name]: [mean(one.whole[name]) for one in found]
            for name in (AUTO, GENERAL, SKIPPING, SEARCH)
        },
        "BFS at 20 µs an expression": [
            mean(one.whole[SEARCH]) + PAPERS_EVALUATION * mean(one.verified[SEARCH]) for one in found
        ],
    }
    yield Figure(
        name="network-12",
        title="Evaluation without and with the index, by selectivity",
        y_label="time of one event, relative",
        series={name: ratios(taken, first) for name, taken in whole.items()},
        reference=f"{first * 1e6:.0f} µs an event, the leftmost point of auto",
        published="BFS is faster while few nodes are reached, slower from 1/2 on: an expression took it 20 µs",
        log_y=True,
        **facts,
    )
    yield Figure(
        name="network-13",
        title="Evaluation while the index is read and after, by selectivity",
        y_label="time of one event, relative",
        series=_series(found, (AUTO, GENERAL, SKIPPING, INDEX), "whole", first),
        reference=f"{first * 1e6:.0f} µs an event, the leftmost point of auto",
        published="Figure 6 beside the index baseline; the text gives no values and the curves are lost",
        log_y=True,
        **facts,
    )
    first = mean(found[0].first[AUTO])
    yield Figure(
        name="network-14",
        title="Time to the first result, by selectivity",
        y_label="time to the first result, relative",
        series=_series(found, (AUTO, GENERAL, SKIPPING, INDEX), "first", first),
        reference=f"{first * 1e6:.0f} µs, the leftmost point of auto",
        published="Figure 6 is about 50 % faster to the first result than the index baseline",
        log_y=True,
        **facts,
    )


def _series(found: list[Runs], names: tuple[str, ...], kind: str, first: float) -> dict[str, list[float]]:
    return {LABELS[name]: ratios([mean(getattr(one, kind)[name]) for one in found], first) for name in names}
