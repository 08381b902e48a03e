"""RSS cluster, Figure 9(a): time of an index lookup by number of subscriptions, at a fixed share of matches.

Beside it, up to a million, the same with a fixed number of matches: what grows is the answer, not the search.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.contenders import CLUSTER, COUNTING, OURS, compared, scaled
from benchmarks.measure import Figure
from benchmarks.workloads import make


def run(scale: float) -> Iterator[Figure]:
    yield compared(
        {
            n: make(scaled(CLUSTER, scale * n / CLUSTER.subscriptions))
            for n in (20_000, 40_000, 60_000, 80_000, 100_000)
        },
        (OURS, COUNTING),
        name="cluster-9a",
        title="Lookup time by number of subscriptions, 0.1 % of them matching",
        x_label="subscriptions",
        published="grows in proportion to the matches",
    )
    yield compared(
        {
            n: make(replace(CLUSTER, subscriptions=round(n * scale), matches=max(1, round(100 * scale))))
            for n in (25_000, 100_000, 400_000, 1_000_000)
        },
        (OURS, COUNTING),
        name="cluster-9a-million",
        title="Lookup time up to a million subscriptions, 100 of them matching",
        x_label="subscriptions",
        published="not measured there",
        log_x=True,
        log_y=True,
    )
