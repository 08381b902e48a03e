"""Schemes in a simulated network, for the bars and figures of Select-joins: the workload of the paper, 1,000 nodes, all in one pass.

Every scheme has a content-addressable network of its own, divided by a sample of its messages. What is measured once is kept, because
several figures look at the same point.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from benchmarks.join_schemes import CENTRE
from benchmarks.join_workloads import Parameters, Workload, make
from benchmarks.select_joins.trial import Decomposition, Trial
from tidings.dissemination.network.can import ContentAddressable
from tidings.dissemination.schemes import SCHEMES, Message
from tidings.dissemination.simulator.simulation import Caches, Simulation, Totals

NODES = 1_000
SAMPLE = 300  # messages that zones are divided by
CHANGES = 600
_FIRST = 300  # changes from which the sample is drawn


@dataclass(frozen=True, slots=True)
class Point:
    """What is simulated at one point of a figure. `repository` None: no node keeps payloads."""

    schemes: tuple[str, ...]
    parameters: Parameters
    payload: int = 100
    repository: int | None = None
    names_lost: bool = True
    nodes: int = NODES
    warm: int = 0
    """Changes between the sample and those that are measured, for the caches to fill."""


@dataclass(frozen=True, slots=True)
class Run:
    totals: Totals
    seconds: float


@cache
def simulate(point: Point) -> dict[str, Run]:
    """The totals of each scheme, by its name."""
    drawn = make(replace(point.parameters, events=_FIRST + point.warm + point.parameters.events))
    return through(drawn, point)


def through(
    workload: Workload, point: Point, decomposition: Decomposition | None = None, bare: Sequence[str] = ()
) -> dict[str, Run]:
    """A workload's changes through the network of each scheme."""
    centre = CENTRE if decomposition else None
    trial = Trial(workload, decomposition, centre, bare, payload=point.payload)
    schemes = [SCHEMES[name](trial.server) for name in point.schemes]
    samples: dict[str, list[Message]] = {name: [] for name in point.schemes}
    for change in trial.changes(0, _FIRST):
        for step in trial.server.steps(change):
            for scheme in schemes:
                samples[scheme.name] += [m for m in scheme.step(step) if m.targets is None]
    caches = None
    if point.repository is not None:
        caches = Caches(repository=point.repository, names_lost=point.names_lost)
    simulations, seconds = {}, dict.fromkeys(point.schemes, 0.0)
    for scheme in schemes:
        sample = samples.pop(scheme.name)
        np.random.default_rng(1).shuffle(sample)  # type: ignore[arg-type]
        network = ContentAddressable(trial.server, point.nodes, sample[:SAMPLE])
        for message in sample[:1]:
            list(network.visits(message))  # the zones are divided now, and not when the clock runs
        simulations[scheme] = Simulation(trial.server, network, caches=caches)
    for number, change in enumerate(trial.changes(_FIRST)):
        if number == point.warm:
            seconds = dict.fromkeys(point.schemes, 0.0)
            for simulation in simulations.values():
                simulation.totals = Totals(stress=np.zeros(point.nodes, np.int64))
        for simulation in simulations.values():
            simulation.totals.changes += 1
        for step in trial.server.steps(change):
            for scheme, simulation in simulations.items():
                messages = scheme.step(step)
                start = time.thread_time()
                for message in messages:
                    simulation.send(message, scheme.name)
                seconds[scheme.name] += time.thread_time() - start
    return {
        scheme.name: Run(simulation.totals, seconds[scheme.name])
        for scheme, simulation in simulations.items()
    }
