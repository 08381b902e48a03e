"""Workloads of joins for the figures: the binary one of `tidings bench joins`, and the mixes of Select-joins, 6.3."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from benchmarks.select_joins.workload import (
    DELETE,
    DOMAIN,
    INSERT,
    JOIN_VALUES,
    JOINING,
    SEED,
    UPDATE,
    Group,
    History,
    Parameters,
    Rows,
    Stream,
    TableDrawing,
    Workload,
    generators,
    group_of,
    make,
)

__all__ = [
    "DELETE",
    "DOMAIN",
    "INSERT",
    "JOINING",
    "R_ROWS",
    "SEED",
    "SUBSCRIPTIONS",
    "S_ROWS",
    "UPDATE",
    "Group",
    "Parameters",
    "Rows",
    "Stream",
    "Workload",
    "make",
    "make_general",
    "make_star",
    "make_stocks",
]

# The points of Figures 5, 7 and 8.
SUBSCRIPTIONS = (100_000, 300_000, 500_000, 1_000_000)
R_ROWS = (1_000, 6_000, 11_000, 16_000, 31_000)
S_ROWS = (100, 2_600, 5_100, 7_600, 10_100)


def make_general(subscriptions: int = 170_000, events: int = 4_000, seed: int = SEED) -> Workload:
    """R, S, T and U with 10, 70, 70 and 30 rows for each value of b, on which all are joined; each as likely to
    change."""
    drawn, rng = generators(seed)
    values = np.arange(JOIN_VALUES)
    tables = [
        TableDrawing(name, ("b",), rng.permutation(np.repeat(values, count))[:, None], JOIN_VALUES, rng)
        for name, count in {"r": 10, "s": 70, "t": 70, "u": 30}.items()
    ]
    history = History(tables, rng)
    while len(history.changes) < events:
        history.move(int(rng.integers(len(tables))))
    return Workload(history.rows(), _mix("{0} USING (b)", subscriptions, drawn), history.stream())


def make_star(subscriptions: int = 170_000, events: int = 4_000, seed: int = SEED) -> Workload:
    """S, a fact table of 25,000 rows that refer to three dimensions of 1,000 rows; one change in ten is an update of a
    dimension."""
    drawn, rng = generators(seed)
    size = 1_000
    tables = [TableDrawing(name, (), np.empty((size, 0), np.int64), size, rng) for name in "rtu"]
    tables.append(TableDrawing("s", ("r", "t", "u"), rng.integers(size, size=(25_000, 3)), size, rng))
    history = History(tables, rng)
    while len(history.changes) < events:
        history.update(int(rng.integers(3))) if rng.random() < 0.1 else history.move(3)
    return Workload(history.rows(), _mix("{0} ON s.{0} = {0}.id", subscriptions, drawn), history.stream())


def _mix(join: str, subscriptions: int, rng: np.random.Generator) -> tuple[Group, ...]:
    """5 : 5 : 5 : 2 of R-S, R-S-T, R-S-T-U and S-T-U."""
    shares = {"r": 5, "rt": 5, "rtu": 5, "tu": 2}
    counts = [round(subscriptions * share / 17) for share in shares.values()]
    firsts = accumulate(counts, initial=0)
    return tuple(
        group_of(" JOIN ".join(["s", *map(join.format, others)]), ("s", *others), count, rng, first)
        for others, count, first in zip(shares, counts, firsts, strict=False)
    )


class PriceDrawing(TableDrawing):
    """Ratios of prices and earnings: each stock's follows a random walk of 2 % a step, from a start of its own."""

    def __init__(
        self, name: str, joined: tuple[str, ...], keys: np.ndarray, values: int, rng: np.random.Generator
    ):
        self.last = rng.lognormal(np.log(20), 0.6, values)
        super().__init__(name, joined, keys, values, rng)

    def _image(self, number: int, joined: tuple[int, ...]) -> int:
        self.last[joined[0]] *= np.exp(self.rng.normal(0, 0.02))
        # A ratio of 0 to 100 is the whole domain.
        value = min(max(round(self.last[joined[0]] * DOMAIN / 100), 0), DOMAIN)
        self.images.append((number, *joined, value))
        return len(self.images) - 1


class RatingDrawing(TableDrawing):
    """Ratings from 1 to 5, spread over the domain and perturbed."""

    def _image(self, number: int, joined: tuple[int, ...]) -> int:
        rating = self.rng.choice(5, p=(0.05, 0.1, 0.35, 0.3, 0.2))
        value = min(max(round((rating + 0.5) * DOMAIN / 5 + self.rng.normal(0, 5_000)), 0), DOMAIN)
        self.images.append((number, *joined, value))
        return len(self.images) - 1


def make_stocks(subscriptions: int, events: int, seed: int = SEED) -> Workload:
    """In the place of the paper's data of Yahoo! Finance, which are not to be had: 100 stocks, 2,300 ratings, 147 days."""
    drawn, rng = generators(seed)
    group = group_of("r JOIN s USING (b)", ("r", "s"), subscriptions, drawn)
    stocks = np.arange(JOIN_VALUES)
    rated = rng.choice(stocks[: round(JOIN_VALUES * 0.7)], 2_300)
    tables: list[TableDrawing] = [
        PriceDrawing("r", ("b",), np.tile(stocks, 30)[:, None], JOIN_VALUES, rng),
        RatingDrawing("s", ("b",), rated[:, None], JOIN_VALUES, rng),
    ]
    history = History(tables, rng)
    while len(history.changes) < events:
        history.move(0)
    return Workload(history.rows(), (group,), history.stream())
