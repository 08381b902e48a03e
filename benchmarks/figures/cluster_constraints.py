"""RSS cluster, Figure 9(b): subscriptions of one structure with different constraints, 100 of them matching."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.contenders import CLUSTER, COUNTING, OURS, compared
from benchmarks.measure import Figure
from benchmarks.workloads import make_same_structure


def run(scale: float) -> Iterator[Figure]:
    counts = (1_000, 10_000, 25_000, 50_000, 100_000)
    yield compared(
        {
            n: make_same_structure(
                replace(CLUSTER, subscriptions=max(100, round(n * scale)), matches=max(2, round(100 * scale)))
            )
            for n in counts
        },
        (OURS, COUNTING),
        name="cluster-9b",
        title="Matching time, one structure with different constraints, 100 of them satisfied",
        x_label="subscriptions of one structure",
        published="G-ToPSS 2,500 ms at 100,000 subscriptions; constraint tables flat at about 20 ms: 125 to 1",
        published_series={
            "RSS cluster": [1.0] * len(counts),
            "G-ToPSS": [None] * (len(counts) - 1) + [125.0],
        },
        log_y=True,
    )
