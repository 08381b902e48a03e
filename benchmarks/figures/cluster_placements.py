"""CPU time of an event, and the parts that it visits, for an index that is replicated, split, or divided by containment.

One process runs the stages one after the other, the front and each part, so the time is that of all machines together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.cluster import ours
from benchmarks.cluster.runs import Points, Stages, cpu, divided, our_stages, sampled
from benchmarks.cluster.workload import Parameters, make
from benchmarks.measure import Figure
from tidings import Engine
from tidings.containment import forest
from tidings.containment.summaries import Summaries
from tidings.storage.division import Placement

REPLICATE = "replicate"
PARTS = 8
SEEDS = (2007,)
RATES = (0.001, 0.01, 0.1, 1.0)
"""Matching subscriptions, in percent."""
PLACEMENTS = {
    "split": Placement("split", PARTS),
    "contain": Placement("contain", PARTS),
    "contain, apart": Placement("contain", PARTS, apart=True),
    "contain, 70 % merged": Placement("contain", PARTS, merge=70),
}
_PUBLICATIONS = 1_000


class Measured(NamedTuple):
    """`parts` is how many parts an event visits, in the mean; `front` and `total` are CPU seconds of an event."""

    rate: float
    placement: str
    front: float
    total: float
    parts: float
    front_share: float


def table(subscriptions: int, rate: float, seed: int = 2007) -> list[Measured]:
    """The placements of one workload, in which `rate` percent of the subscriptions match an event."""
    workload = make(Parameters(subscriptions=subscriptions, matches=subscriptions * rate / 100, seed=seed))
    engine = ours.engine(workload)
    events = ours.events(workload, workload.publications(_PUBLICATIONS, seed=2))
    engine.publish_many(events)
    whole = cpu(lambda: engine.publish_many(events)) / events.num_rows
    measured = [Measured(rate, REPLICATE, whole, whole, 1, 1)]
    parents = np.asarray(forest.parents(engine))
    found = Summaries.collect(engine, ours.events(workload, sampled(workload)))
    for name, placement in PLACEMENTS.items():
        stages, share = placed(engine, events, placement, parents, found)
        measured.append(Measured(rate, name, stages.front, stages.total, stages.visits, share))
    return measured


def placed(
    engine: Engine, events: pa.Table, placement: Placement, parents: np.ndarray, summaries: Summaries
) -> tuple[Stages, float]:
    """The stages of a placement, and the share of subscriptions in its front."""
    with divided(engine, placement, parents, summaries) as index:
        in_front = index.division.front.subscriptions + index.division.mergers
        return our_stages(index, events), in_front / len(engine)


def run(scale: float) -> Iterator[Figure]:
    subscriptions = round(100_000 * scale)
    times, visits = Points(), Points()
    for seed in SEEDS:
        for rate in RATES:
            for found in table(subscriptions, rate, seed):
                times.add(found.placement, rate, found.total)
                if found.placement != REPLICATE:
                    visits.add(found.placement, rate, found.parts)
    reference = times.medians()[REPLICATE][0]
    seeds = (
        f"medians of {len(SEEDS)} seeds, the band is their range" if len(SEEDS) > 1 else f"seed {SEEDS[0]}"
    )
    yield Figure(
        name="cluster-placements",
        title=f"CPU time of an event, {subscriptions:,} subscriptions in {PARTS} parts",
        x_label="matching subscriptions, %",
        y_label="CPU time of all stages, relative",
        x=list(RATES),
        series=times.medians(reference),
        spread=times.spread(reference),
        reference=f"{reference * 1e6:.0f} µs, the first point of replicate; {seeds}",
        published="not measured there",
        log_x=True,
        log_y=True,
        note="All stages in one process, one after the other. An event is read in the front and in each part that it visits.",
    )
    yield Figure(
        name="cluster-visits",
        title=f"Parts that an event visits, of {PARTS}, {subscriptions:,} subscriptions",
        x_label="matching subscriptions, %",
        y_label="parts visited, mean",
        x=list(RATES),
        series=visits.medians(),
        spread=visits.spread(),
        reference=f"a part; {seeds}",
        published="not measured there",
        log_x=True,
    )
