"""G-ToPSS, Figures 9(b), 9(e) and 9(f): matching time by number and size of subscriptions and by matches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.contenders import COUNTING, GTOPSS, OURS, compared, scaled
from benchmarks.measure import Figure
from benchmarks.workloads import make

_SIZES = ((3, 4), (4, 6), (5, 8), (6, 10), (7, 12))


def run(scale: float) -> Iterator[Figure]:
    base = scaled(GTOPSS, scale)
    yield compared(
        {
            n: make(scaled(GTOPSS, scale * n / GTOPSS.subscriptions))
            for n in (10_000, 20_000, 30_000, 40_000, 50_000)
        },
        (OURS, COUNTING),
        name="gtopss-9b",
        title="Matching time by number of subscriptions, 0.1 % of them matching",
        x_label="subscriptions",
        published="grows in proportion: structure matching and constraints alike",
    )
    yield compared(
        {m: make(replace(base, subscription_size=(k, m))) for k, m in _SIZES},
        (OURS, COUNTING),
        name="gtopss-9e",
        title="Matching time by size of subscriptions",
        x_label="edges in a subscription",
        published="almost doubles from 4 to 8 edges; edges matter, nodes do not",
    )
    yield compared(
        {
            percent: make(replace(base, matches=max(1, round(base.subscriptions * percent / 100))))
            for percent in (0.1, 0.2, 0.5, 1, 2)
        },
        (OURS, COUNTING),
        name="gtopss-9f",
        title="Matching time by share of matching subscriptions",
        x_label="matching subscriptions, %",
        published="grows very rapidly with the number of matches",
    )
