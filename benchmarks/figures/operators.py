"""Sub-Order, Figures 4 to 8: evaluations an event, under both models of events.

All costs are equal here, so ordering by cost alone is ordering as written: its line is that of naive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from benchmarks.measure import Figure
from benchmarks.operator_runs import LABELS, NAIVE, SEQUENTIAL, SUB_ORDER, Run, hindsight, measure
from benchmarks.operator_workloads import (
    CHOSEN,
    FIGURES,
    INDEPENDENT,
    LENGTHS,
    MODELS,
    POPULARITIES,
    PREDICATES,
    SUBSCRIPTIONS,
    Parameters,
    make,
)

EVENTS = 50
_WORDS = {
    INDEPENDENT: "truth values independent",
    CHOSEN: "the predicates of 0.2 % of the subscriptions hold",
}
_UNSAID = "How truth values were drawn is not published, so counts differ from the published ones; ratios are compared."


@dataclass(frozen=True, slots=True)
class _Plan:
    title: str
    x_label: str
    x: tuple[float, ...]
    published: str
    counts: dict[str, dict[float, float]] = field(default_factory=dict)
    """What the text gives, by contender and x; the curves themselves are lost."""


_PLANS = {
    4: _Plan(
        "Evaluations by number of subscriptions, uniform popularity",
        "subscriptions",
        SUBSCRIPTIONS,
        "80K: Sequential 7,761, Sub-Order 7,037, almost 80 % below naive, which grows linearly",
        {SEQUENTIAL: {80_000: 7_761}, SUB_ORDER: {80_000: 7_037}},
    ),
    5: _Plan(
        "Evaluations by number of subscriptions, Zipf popularity",
        "subscriptions",
        SUBSCRIPTIONS,
        "the trend of Figure 4, Sequential and Sub-Order still better",
    ),
    6: _Plan(
        "Evaluations by number of predicates, Zipf popularity",
        "predicates",
        PREDICATES,
        "30K: naive 16,251, Sequential 3,267, Sub-Order 1,977",
        {NAIVE: {30_000: 16_251}, SEQUENTIAL: {30_000: 3_267}, SUB_ORDER: {30_000: 1_977}},
    ),
    7: _Plan(
        "Evaluations by length of the longest subscription, Zipf popularity",
        "predicates in the longest subscription",
        LENGTHS,
        "Sequential 1,593 to 1,784, naive near 5,000; Sub-Order comes nearer to Sequential as subscriptions grow",
        {NAIVE: dict.fromkeys(LENGTHS, 5_000), SEQUENTIAL: {5: 1_593, 11: 1_784}},
    ),
    8: _Plan(
        "Evaluations by popularity of predicates",
        "exponent of Zipf's law (0: uniform popularity)",
        tuple(exponent or 0 for exponent in POPULARITIES.values()),
        "Sequential and Sub-Order do better the less even popularity is",
    ),
}


def run(scale: float) -> Iterator[Figure]:
    for number, plan in _PLANS.items():
        for model in MODELS:
            found = [measure(point.scaled(scale), model, EVENTS) for point in FIGURES[number]]
            notes = [_UNSAID, *_beside(plan, found), *_limits(plan, FIGURES[number][-1])]
            yield Figure(
                name=f"operators-{number}-{model}",
                title=f"{plan.title};\n{_WORDS[model]}",
                x_label=plan.x_label,
                y_label="evaluations of one event",
                x=list(plan.x),
                series={name: [round(one.evaluations[name], 1) for one in found] for name in LABELS},
                reference=f"an evaluation; means of {EVENTS} events",
                published=plan.published,
                published_series={
                    name: [counts.get(x) for x in plan.x] for name, counts in plan.counts.items()
                },
                note=" ".join(notes) if scale == 1 else "",
            )


def _beside(plan: _Plan, found: list[Run]) -> Iterator[str]:
    """Ours beside the published ratios, at the last point."""
    last = plan.x[-1]
    names = [name for name in (NAIVE, SEQUENTIAL, SUB_ORDER) if last in plan.counts.get(name, {})]
    for one, other in pairwise(names):
        theirs = plan.counts[other][last] / plan.counts[one][last]
        ours = found[-1].evaluations[other] / found[-1].evaluations[one]
        yield f"At {last:,}, {other} / {one} is {theirs:.2f} as published and {ours:.2f} here."


def _limits(plan: _Plan, point: Parameters) -> Iterator[str]:
    """Where no truth values would give the published counts, so that the subscriptions must have been others."""
    workload = make(point)
    used, nothing = len(np.unique(workload.member)), np.zeros(point.predicates, np.bool_)
    fewest = hindsight(workload, nothing, workload.by_predicate()).sum()
    last = plan.x[-1]
    published = [counts[last] for counts in plan.counts.values() if last in counts]
    if published and max(published) > 1.05 * used:
        yield (
            f"The published {max(published):,} evaluations are more than the {used:,} different predicates that "
            f"{point.subscriptions:,} subscriptions have here: popularity was more even there."
        )
    if published and min(published) < fewest:
        yield (
            f"The published {min(published):,} are fewer than the {fewest:,} with which hindsight proves that nothing "
            "matches when no predicate holds, which suggests that subscriptions shared more there."
        )
