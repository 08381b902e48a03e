"""G-ToPSS, Figures 10(a) and 10(b): the counting algorithm against OPS, and OPS against no index at all."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.contenders import ALONE, COUNTING, GTOPSS, OPS, OURS, SPARQL, compared, scaled
from benchmarks.measure import Figure
from benchmarks.workloads import make


def run(scale: float) -> Iterator[Figure]:
    points = {
        n: make(scaled(GTOPSS, scale * n / GTOPSS.subscriptions))
        for n in (5_000, 10_000, 20_000, 30_000, 40_000)
    }
    yield compared(
        points,
        (OURS, COUNTING, OPS),
        name="gtopss-10a",
        title="Matching time beside OPS",
        x_label="subscriptions",
        published="OPS grows very rapidly, G-ToPSS always below it",
        log_y=True,
    )
    yield compared(
        {n: workload for n, workload in points.items() if n <= 20_000},
        (OURS, OPS, ALONE, SPARQL),
        name="gtopss-10b",
        title="Matching time beside no index at all",
        x_label="subscriptions",
        published="OPS far below the naive approach",
        log_y=True,
    )
