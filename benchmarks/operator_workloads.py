"""Subscriptions over expensive predicates, as Sub-Order's Section 5 draws them, and the two kinds of events.

A predicate's popularity is a weight, uniform in [0, 1] or by Zipf's law; a subscription is 3 to 5 (11) different
predicates drawn by weight. How truth values were drawn is not published, so there are two models: INDEPENDENT, where
every predicate holds with a chance of its own, Beta distributed and moved as a whole until 0.2 % of the subscriptions
are expected to match; and CHOSEN, where the predicates of 0.2 % of the subscriptions, drawn anew for each event, hold
and no others. Under CHOSEN some subscriptions match without having been chosen, many where few predicates are popular.
Everything follows from the seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

Model = Literal["independent", "chosen"]
INDEPENDENT: Model = "independent"
CHOSEN: Model = "chosen"
MODELS: tuple[Model, ...] = (INDEPENDENT, CHOSEN)

# Table 1.
SHORTEST = 3
MATCHING = 0.002
EVENTS = 1000

# The chances before they are moved: mean 0.2, standard deviation 0.12; far apart, it is 0.25. Moved, the mean is 0.16
# to 0.22 for those of the figures.
AROUND, FAR_APART = (2.0, 8.0), (0.3, 1.2)
# Unequal costs are lognormal. What "by a factor of 100" means for a lognormal is a matter of reading: these are the
# standard deviations of the logarithm for each. The first one is meant where nothing else is said; 3.7 is how far from
# the mean the furthest of 5,000 normal values is.
FACTOR = "the 95th percentile is 100 times the 5th"
SPREADS = {
    FACTOR: np.log(100) / (2 * 1.645),
    "the dearest is 100 times the cheapest": np.log(100) / (2 * 3.7),
    "one standard deviation up is 100 times one down": np.log(100) / 2,
    "one standard deviation is a factor of 100": np.log(100),
}


@dataclass(frozen=True, slots=True)
class Parameters:
    """One point of a figure; `zipf` is the exponent, None for uniform weights, `spread` is that of the costs,
    `chances` are the parameters of the Beta distribution."""

    subscriptions: int = 20_000
    predicates: int = 5_000
    zipf: float | None = 1.0
    longest: int = 5
    spread: float = 0.0
    chances: tuple[float, float] = AROUND
    seed: int = 2007

    def scaled(self, scale: float) -> Parameters:
        """The same, with `scale` times as many subscriptions and predicates."""
        return replace(
            self,
            subscriptions=max(50, round(self.subscriptions * scale)),
            predicates=max(25, round(self.predicates * scale)),
        )


@dataclass(frozen=True, slots=True)
class Workload:
    """Subscription s is the conjunction of the predicates member[first[s] : first[s + 1]], in no order."""

    parameters: Parameters
    first: Ints
    member: Ints
    chance: Floats
    cost: Floats

    def __len__(self) -> int:
        return len(self.first) - 1

    def by_predicate(self) -> tuple[Ints, Ints]:
        """(first, rows): predicate t is in the subscriptions rows[first[t] : first[t + 1]]."""
        rows = np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.first))
        order = np.argsort(self.member, kind="stable")
        edges = np.arange(self.parameters.predicates + 1)
        return np.searchsorted(self.member[order], edges).astype(np.int32), rows[order]

    def selectivities(self, model: Model) -> Floats:
        """How likely each predicate holds under a model."""
        if model == INDEPENDENT:
            return self.chance
        popularity = np.bincount(self.member, minlength=self.parameters.predicates)
        missed: Floats = (1 - MATCHING) ** popularity
        return 1 - missed

    def truths(self, model: Model, events: int = EVENTS, first: int = 0) -> Iterator[Bools]:
        """What each predicate says about each event; event i is the same however many are asked for."""
        for event in range(first, first + events):
            yield self._truth(model, np.random.default_rng((self.parameters.seed, event)))

    def _truth(self, model: Model, rng: np.random.Generator) -> Bools:
        if model == INDEPENDENT:
            return rng.random(len(self.chance)) < self.chance
        truth = np.zeros(len(self.chance), np.bool_)
        chosen = rng.choice(len(self), round(MATCHING * len(self)), replace=False)
        for row in chosen.tolist():
            truth[self.member[self.first[row] : self.first[row + 1]]] = True
        return truth

    def matches(self, truth: Bools) -> Bools:
        """Which subscriptions match."""
        return np.logical_and.reduceat(truth[self.member], self.first[:-1])

    def with_other_chances(self, seed: int) -> Workload:
        """The same subscriptions when all selectivities have changed."""
        rng = np.random.default_rng(seed)
        return replace(self, chance=_chances(self.first, self.member, rng.permutation(self.chance)))


def make(parameters: Parameters) -> Workload:
    """The workload of one point."""
    rng = np.random.default_rng(parameters.seed)
    count = parameters.predicates
    if parameters.zipf is None:
        weight = rng.random(count)
    else:
        weight = 1 / np.arange(1, count + 1) ** parameters.zipf
    lengths = rng.integers(SHORTEST, parameters.longest + 1, parameters.subscriptions)
    first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    member = _draw(weight / weight.sum(), first, rng)
    chance = _chances(first, member, rng.beta(*parameters.chances, count))
    cost = np.exp(rng.normal(0, 1, count) * parameters.spread)
    return Workload(parameters, first, member, chance, cost)


def _draw(share: Floats, first: Ints, rng: np.random.Generator) -> Ints:
    """Members by weight, none twice in a subscription: those drawn a second time are drawn again."""
    upto = np.cumsum(share)
    rows = np.repeat(np.arange(len(first) - 1, dtype=np.int64), np.diff(first))
    member = np.empty(len(rows), np.int64)
    again = np.ones(len(rows), np.bool_)
    while again.any():
        member[again] = np.searchsorted(upto, rng.random(int(again.sum())) * upto[-1], side="right")
        keys = rows * len(share) + member
        _, kept = np.unique(keys, return_index=True)
        again[:] = True
        again[kept] = False
    return member.astype(np.int32)


def _chances(first: Ints, member: Ints, drawn: Floats) -> Floats:
    """The odds of all multiplied by the one factor with which MATCHING of the subscriptions are expected to match."""
    low, high = -6.0, 6.0
    odds = drawn / (1 - drawn)
    for _ in range(60):
        factor = np.exp((low + high) / 2)
        chance: Floats = factor * odds / (1 + factor * odds)
        if np.multiply.reduceat(chance[member], first[:-1]).mean() < MATCHING:
            low = (low + high) / 2
        else:
            high = (low + high) / 2
    return chance


# The points of Figures 4 to 8.
SUBSCRIPTIONS = (2_000, 10_000, 20_000, 40_000, 60_000, 80_000)
PREDICATES = (2_000, 5_000, 10_000, 20_000, 30_000)
LENGTHS = (5, 7, 9, 11)
POPULARITIES: dict[str, float | None] = {"uniform": None, "Zipf 0.8": 0.8, "Zipf 1": 1.0, "Zipf 1.2": 1.2}
FIGURES: dict[int, tuple[Parameters, ...]] = {
    4: tuple(Parameters(count, 40_000, None) for count in SUBSCRIPTIONS),
    5: tuple(Parameters(count, 40_000, 1.0) for count in SUBSCRIPTIONS),
    6: tuple(Parameters(20_000, count, 1.0) for count in PREDICATES),
    7: tuple(Parameters(20_000, 5_000, 1.0, longest) for longest in LENGTHS),
    8: tuple(Parameters(20_000, 5_000, zipf) for zipf in POPULARITIES.values()),
}
