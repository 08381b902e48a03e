"""Runs of a cluster on one machine: each stage and each node alone, in CPU time.

Throughput is computed as that of a pipeline whose stages run at once on machines of their own: 1 / the CPU time of an event in the stage that
takes longest. Messages between machines are not in it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.cluster.node import Graphs, Node
from benchmarks.cluster.patterns import Patterns
from benchmarks.cluster.server import Pipeline, Server
from benchmarks.cluster.summaries import Summaries
from benchmarks.cluster.workload import Workload
from benchmarks.measure import Figure, best
from benchmarks.workloads import Edges
from tidings import Engine
from tidings.storage.divided_index import DividedIndex, Forwards
from tidings.storage.division import Division, Placement, divide

SEEDS = (2007, 2008, 2009)
_SAMPLED = 10  # publications of a feed, in the mean
_LARGEST = 20_000  # sample
_RUNS = 2


class Stages(NamedTuple):
    """CPU seconds of an event: in front, and at each node, whether it visits that or not."""

    front: float
    nodes: tuple[float, ...]
    visits: float
    """Nodes that an event visits, in the mean."""
    false_positives: float
    """Visits of nodes where nothing matches, of all pairs of event and node."""

    @property
    def throughput(self) -> float:
        """Events a second, with every stage on a machine of its own."""
        return 1 / max(self.front, *self.nodes)

    @property
    def total(self) -> float:
        return self.front + sum(self.nodes)


class Points:
    """Values of several seeds, by series and x."""

    def __init__(self) -> None:
        self._values: dict[str, dict[float, list[float]]] = {}

    def add(self, series: str, x: float, value: float) -> None:
        self._values.setdefault(series, {}).setdefault(x, []).append(value)

    def last(self, series: str) -> float:
        """The one that was added last."""
        return list(self._values[series].values())[-1][-1]

    def medians(self, reference: float = 1) -> dict[str, list[float]]:
        return {
            name: [float(f"{np.median(found) / reference:.4g}") for found in by_x.values()]
            for name, by_x in self._values.items()
        }

    def spread(self, reference: float = 1) -> dict[str, list[tuple[float, float]]]:
        return {
            name: [
                (float(f"{min(found) / reference:.4g}"), float(f"{max(found) / reference:.4g}"))
                for found in by_x.values()
            ]
            for name, by_x in self._values.items()
        }

    def figure(self, reference: str, value: float = 1, **more: Any) -> Figure:
        """One of medians in multiples of a value, which is the `reference`, with the range of the seeds; every series has every x."""
        return Figure(
            x=list(next(iter(self._values.values()))),
            series=self.medians(value),
            spread=self.spread(value),
            reference=f"{reference}; medians of three seeds, the band is their range",
            **more,
        )


def cpu(run: Callable[[], object], runs: int = _RUNS) -> float:
    """CPU seconds, the best of some runs."""
    return best(run, runs, time.process_time)


def everywhere(workload: Workload) -> Node:
    """One machine with all subscriptions."""
    return Node(workload.subscriptions, np.arange(workload.parameters.subscriptions), workload.value)


def containing_server(workload: Workload, nodes: int) -> Server:
    """A server that has checked each subscription for containment."""
    server = Server(_copy(workload.subscriptions), workload.value, nodes)
    for s in range(workload.parameters.subscriptions):
        server.insert(s)
    return server


def merging_server(workload: Workload, nodes: int) -> Server:
    """A server that has all subscriptions in its index, none checked for containment."""
    server = Server(_copy(workload.subscriptions), workload.value, nodes, contains=False)
    for s in range(workload.parameters.subscriptions):
        server.insert(s)
    return server


def _copy(patterns: Patterns) -> Patterns:
    """Mergers are added to the copy."""
    return Patterns(*(column.copy() for column in patterns.columns))


def summaries(workload: Workload, node: Node) -> Summaries:
    """Of a sample of publications that are not measured."""
    sample = Graphs.of(sampled(workload))
    found = Summaries()
    found.collect(sample, node.match(sample), workload.value)
    return found


def sampled(workload: Workload) -> Edges:
    return workload.publications(min(_LARGEST, _SAMPLED * len(workload.feeds.share)), seed=1)


def stages(pipeline: Pipeline, graphs: Graphs, runs: int = _RUNS) -> Stages:
    """Those of the paper's algorithms."""
    count, found = len(graphs.subject), list[np.ndarray]()
    _, visits = pipeline.front(graphs)
    front = cpu(lambda: pipeline.front(graphs), runs)
    nodes, useful = [], 0
    for node in range(pipeline.server.nodes):
        nodes.append(cpu(lambda node=node: found.append(pipeline.back(node, graphs, visits)), runs))  # type: ignore[misc]
        useful += len(np.unique(found[-1][:, 0]))
    wrong = (int(visits.sum()) - useful) / visits.size
    return Stages(front / count, tuple(taken / count for taken in nodes), float(visits.sum()) / count, wrong)


@contextmanager
def divided(engine: Engine, placement: Placement, *more: object) -> Iterator[DividedIndex]:
    """An engine's subscriptions as a divided index. `more` are its parents and its summaries."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "v1"
        division: Division = divide(engine, base, placement, *more)  # type: ignore[arg-type]
        yield DividedIndex.open(base, division)


def our_stages(index: DividedIndex, events: pa.Table, runs: int = _RUNS) -> Stages:
    """Those of a divided index: events are read in each stage."""
    count, parts = events.num_rows, len(index.division.parts)
    forwarded, found = list[Forwards](), list[pa.Table]()
    front = cpu(lambda: forwarded.append(index.forwards(events)), runs)
    forwards, nodes, useful = forwarded[-1], [], 0
    for part in range(parts):
        some = events.take(pa.array(forwards.event[forwards.part == part]))
        index.part(part)  # opens it
        nodes.append(cpu(lambda part=part, some=some: found.append(index.match_part(part, some)), runs))  # type: ignore[misc]
        useful += len(found.pop()["event"].unique())
    wrong = (len(forwards.event) - useful) / (count * parts)
    return Stages(front / count, tuple(taken / count for taken in nodes), len(forwards.event) / count, wrong)
