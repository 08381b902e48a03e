"""RSS cluster, Figures 9(i) and 10: throughput by the size of the cluster, and by merge percentage.

Two cores cannot show seven machines: the CPU time of an event in each stage and at each node is measured alone, and the throughput is
that of a pipeline of them (cluster/runs.py).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.cluster import ours
from benchmarks.cluster.node import Graphs
from benchmarks.cluster.runs import (
    SEEDS,
    Points,
    containing_server,
    cpu,
    divided,
    everywhere,
    merging_server,
    our_stages,
    sampled,
    stages,
    summaries,
)
from benchmarks.cluster.server import Pipeline, Server
from benchmarks.cluster.workload import Parameters, Workload, make
from benchmarks.measure import Figure
from tidings.containment import forest
from tidings.containment.summaries import Summaries as OurSummaries
from tidings.storage.division import Placement

CONTAINED, MERGED = "RSS cluster, containment", "RSS cluster, merging"
OURS_CONTAINED, OURS_MERGED = "Tidings, containment", "Tidings, merging"
_SIZES = (1, 3, 5, 7)
_MERGED = 70  # percent, in 9(i)
_PERCENTAGES = (10, 30, 50, 70, 90)
_BACK_ENDS = (2, 4)
_PUBLICATIONS = 400
_HOW = (
    "Computed as 1 / the CPU time of an event in the stage that takes longest, the server or one of the back-ends, each measured alone on one machine; "
    "messages between machines are not in it. A smaller index fits the processor's cache better, so a line may rise above the number of machines. Each line is relative to one machine with the same node. The curve is lost; what is published is read from the text."
)


def run(scale: float) -> Iterator[Figure]:
    by_size = Points()
    for seed in SEEDS:
        _by_size(make(_parameters(scale, 500, seed)), by_size)
    yield by_size.figure(
        "the throughput of one machine with the same node",
        name="cluster-9i",
        title=f"Throughput by machines, {round(100_000 * scale):,} subscriptions, 0.5 % matching",
        x_label="machines (one is the server)",
        y_label="throughput, relative to one machine",
        published="7 machines: 400 % with 70 % merging, more than 200 % with containment",
        published_series={
            MERGED: [4.0 if x == _SIZES[-1] else None for x in _SIZES],
            CONTAINED: [2.0 if x == _SIZES[-1] else None for x in _SIZES],
        },
        note=_HOW,
    )
    by_percentage = Points()
    for seed in SEEDS:
        _by_percentage(make(_parameters(scale, 1_000, seed)), by_percentage)
    theirs = f"{MERGED}, 4 back-ends"
    yield by_percentage.figure(
        "the throughput of one machine with the same node",
        name="cluster-10",
        title=f"Throughput by merge percentage, {round(100_000 * scale):,} subscriptions, 1 % matching",
        x_label="merge percentage",
        y_label="throughput, relative to one machine",
        published="4 times one machine at 90 % merging",
        published_series={theirs: [4.0 if x == _PERCENTAGES[-1] else None for x in _PERCENTAGES]},
        note=f"{_HOW} Half of the subscriptions are contained in others, so that Tidings has nothing to merge up to 50 %.",
    )


def _parameters(scale: float, matches: int, seed: int) -> Parameters:
    return Parameters(subscriptions=round(100_000 * scale), matches=max(1, matches * scale), seed=seed)


class _Single:
    """One machine with everything, theirs and ours, and what is asked of it."""

    def __init__(self, workload: Workload) -> None:
        edges = workload.publications(_PUBLICATIONS, seed=2)
        self.workload, self.graphs = workload, Graphs.of(edges)
        node = everywhere(workload)
        node.match(self.graphs)
        self.taken = cpu(lambda: node.match(self.graphs)) / _PUBLICATIONS
        self.summaries = summaries(workload, node)
        self.engine, self.events = ours.engine(workload), ours.events(workload, edges)
        self.engine.publish_many(self.events)
        self.our_taken = cpu(lambda: self.engine.publish_many(self.events)) / _PUBLICATIONS
        self.parents = forest.parents(self.engine)
        self.our_summaries = OurSummaries.collect(self.engine, ours.events(workload, sampled(workload)))

    def merged(self, percentage: int) -> Server:
        server = merging_server(self.workload, 1)
        server.merge(self.summaries, round(len(self.engine) * (100 - percentage) / 100))
        return server

    def speedup(self, server: Server, nodes: int) -> float:
        """The throughput of the paper's algorithms beside that of one machine."""
        server.deal(nodes)
        return self.taken * stages(Pipeline(server), self.graphs).throughput

    def our_speedup(self, parts: int, percentage: int = 0) -> float:
        placement = Placement("contain", parts, percentage, apart=True)
        with divided(self.engine, placement, np.asarray(self.parents), self.our_summaries) as index:
            return self.our_taken * our_stages(index, self.events).throughput


def _by_size(workload: Workload, points: Points) -> None:
    single = _Single(workload)
    contained, merged = containing_server(workload, 1), single.merged(_MERGED)
    for name in (CONTAINED, MERGED, OURS_CONTAINED, OURS_MERGED):
        points.add(name, 1, 1)
    for size in _SIZES[1:]:
        points.add(CONTAINED, size, single.speedup(contained, size - 1))
        points.add(MERGED, size, single.speedup(merged, size - 1))
        points.add(OURS_CONTAINED, size, single.our_speedup(size - 1))
        points.add(OURS_MERGED, size, single.our_speedup(size - 1, _MERGED))


def _by_percentage(workload: Workload, points: Points) -> None:
    single = _Single(workload)
    unmerged = {nodes: single.our_speedup(nodes) for nodes in _BACK_ENDS}
    for percentage in _PERCENTAGES:
        server = single.merged(percentage)
        has_to_merge = percentage > 100 * workload.parameters.overlap
        for nodes in _BACK_ENDS:
            points.add(f"{MERGED}, {nodes} back-ends", percentage, single.speedup(server, nodes))
            ours_taken = single.our_speedup(nodes, percentage) if has_to_merge else unmerged[nodes]
            points.add(f"{OURS_MERGED}, {nodes} back-ends", percentage, ours_taken)
