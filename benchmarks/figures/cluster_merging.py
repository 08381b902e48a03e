"""RSS cluster, Figures 9(e), 9(g) and 9(h): false positives, entries in front and time by merge percentage.

The merge percentage is the share of subscriptions that should not be in front. The paper's merging begins with all subscriptions in front,
ours with those that no other contains.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.cluster import ours
from benchmarks.cluster.node import Graphs
from benchmarks.cluster.runs import (
    SEEDS,
    Points,
    divided,
    everywhere,
    merging_server,
    our_stages,
    sampled,
    stages,
    summaries,
)
from benchmarks.cluster.server import Pipeline
from benchmarks.cluster.workload import Parameters, Workload, make
from benchmarks.measure import Figure
from tidings.containment import forest
from tidings.containment.merging import merge
from tidings.containment.summaries import Summaries as OurSummaries
from tidings.storage.division import Placement

THEIRS, OURS = "RSS cluster, merging", "Tidings, merging"
PERCENTAGES = (10, 50, 70, 90, 99)
_UNMERGED = (10, 50)  # containment alone leaves as few in front
VARIANTS = {
    OURS: (False, False),
    f"{OURS} by a sample": (True, False),
    f"{OURS} by a sample, apart": (True, True),
}
"""Whether a sample of events says what matches together, and whether that lies in different parts."""
BACK_ENDS = 6
_PUBLICATIONS = 20_000
_TEXT_ONLY = "The curve is lost; what is published is read from the text."


def run(scale: float) -> Iterator[Figure]:
    wrong, sizes, times = Points(), Points(), Points()
    for seed in SEEDS:
        count = round(100_000 * scale)
        _merge(make(Parameters(subscriptions=count, matches=max(1, 100 * scale), seed=seed)), sizes, times)
        small = make(Parameters(subscriptions=round(10_000 * scale), matches=max(1, 100 * scale), seed=seed))
        _false_positives(small, round(_PUBLICATIONS * scale), wrong)
    yield wrong.figure(
        f"1 % of all pairs of {round(_PUBLICATIONS * scale):,} publications and back-ends",
        name="cluster-9e",
        title=f"False positives by merge percentage, {round(10_000 * scale):,} subscriptions, {BACK_ENDS} back-ends",
        x_label="merge percentage",
        y_label="visits of a back-end without a match, %",
        published="0.13 % at 90 % merging",
        published_series={THEIRS: [0.13 if x == 90 else None for x in PERCENTAGES]},
        note=_TEXT_ONLY,
    )
    yield sizes.figure(
        "an entry",
        name="cluster-9g",
        title=f"Entries in front by merge percentage, {count:,} subscriptions",
        x_label="merge percentage",
        y_label="subscriptions and mergers in front",
        published="629 at 99 %, of fewer than 62,900 subscriptions; more than the subscriptions x (1 - percentage)",
        note=f"{_TEXT_ONLY} How many subscriptions there were is not said. Half of the subscriptions are contained in others, so that Tidings "
        "has nothing to merge up to 50 %.",
    )
    reference = times.medians()[THEIRS][0]
    yield times.figure(
        f"{reference:.2f} s, the first point of RSS cluster",
        reference,
        name="cluster-9h",
        title=f"CPU time of merging by merge percentage, {count:,} subscriptions",
        x_label="merge percentage",
        y_label="time, relative",
        published="grows with the merge percentage",
        note="Summaries are collected before, as the paper says, and so is the forest of containment of Tidings.",
    )


def _merge(workload: Workload, sizes: Points, times: Points) -> None:
    """Merges the subscriptions of one workload to each percentage."""
    count = workload.parameters.subscriptions
    found = summaries(workload, everywhere(workload))
    engine = ours.engine(workload)
    roots = forest.parents(engine) < 0
    for percentage in PERCENTAGES:
        end = round(count * (100 - percentage) / 100)
        server = merging_server(workload, BACK_ENDS)
        start = time.process_time()
        server.merge(found, end)
        times.add(THEIRS, percentage, time.process_time() - start)
        sizes.add(THEIRS, percentage, len(server.index))
        start = time.process_time()
        made = merge(engine, roots, end)
        times.add(OURS, percentage, time.process_time() - start)
        merged = int((made.merger >= 0).sum())
        sizes.add(OURS, percentage, int(roots.sum()) - merged + len(made.mergers))


def _false_positives(workload: Workload, publications: int, wrong: Points) -> None:
    edges = workload.publications(publications, seed=2)
    graphs, found = Graphs.of(edges), summaries(workload, everywhere(workload))
    engine, events = ours.engine(workload), ours.events(workload, edges)
    parents = forest.parents(engine)
    our_summaries = OurSummaries.collect(engine, ours.events(workload, sampled(workload)))
    shares: dict[str, float] = {}
    for percentage in PERCENTAGES:
        server = merging_server(workload, BACK_ENDS)
        server.merge(found, round(workload.parameters.subscriptions * (100 - percentage) / 100))
        wrong.add(THEIRS, percentage, 100 * stages(Pipeline(server), graphs, 1).false_positives)
        for name, (sample, apart) in VARIANTS.items():
            if percentage not in _UNMERGED[1:]:
                placement = Placement("contain", BACK_ENDS, percentage, apart)
                given = our_summaries if sample else None
                with divided(engine, placement, np.asarray(parents), given) as index:
                    shares[name] = 100 * our_stages(index, events, 1).false_positives
            wrong.add(name, percentage, shares[name])
