"""Runs a scenario: all schemes see the same changes of the same server, each with a network of its own.

The zones of a content-addressable network are divided for the messages of its scheme, by a sample from before those that are measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from tidings.dissemination.network.can import SERVER, ContentAddressable
from tidings.dissemination.schemes import SCHEMES, Message
from tidings.dissemination.schemes.server import Server
from tidings.dissemination.simulator.networks import ForwardingTree, Network
from tidings.dissemination.simulator.scenario import Overlay, Scenario
from tidings.dissemination.simulator.simulation import Simulation
from tidings.dissemination.simulator.topology import Floats, Topology
from tidings.dissemination.simulator.workload import Drawn

_SAMPLE = 300  # messages that zones are divided by
_WARM = 300  # changes before those that are measured


@dataclass(frozen=True, slots=True)
class Result:
    """What a change costs on average under one scheme; stress is bytes sent."""

    scheme: str
    value: Any
    """Of the setting that is swept."""
    messages: float
    traffic: float
    hops: float
    server_stress: float
    node_stress: float
    """The busiest node beside the server."""
    latency_hops: float
    latency_ms: float
    last_hop: float
    fetches: float


Progress = Callable[[int, int, str], None]


def _quiet(done: int, total: int, what: str) -> None:
    """No progress is shown."""


def run(scenario: Scenario, value: Any = None, progress: Progress = _quiet) -> list[Result]:
    """Runs one scenario; its sweep, if it has one, is for the caller."""
    drawn = Drawn(scenario.workload)
    server, changes = drawn.server, drawn.changes()
    schemes = [SCHEMES[name](server) for name in scenario.schemes]
    samples: dict[str, list[Message]] = {scheme.name: [] for scheme in schemes}
    for change in islice(changes, min(_WARM, 2 * scenario.workload.r_rows)):
        for step in server.steps(change):
            for scheme in schemes:
                samples[scheme.name] += scheme.step(step)
    latency = _latency(scenario.network, progress)
    simulations = {}
    for scheme in schemes:
        network = _network(scenario.network, server, samples.pop(scheme.name))
        simulations[scheme] = Simulation(
            server,
            network,
            caches=None if scheme.name.startswith("Enum") else scenario.caches,
            latency=latency,
            loss=scenario.loss,
            seed=scenario.network.seed,
        )
    total = scenario.workload.changes
    for number, change in enumerate(islice(changes, total)):
        is_churn = scenario.network.churn > 0 and number % scenario.network.churn == 0 and number > 0
        for simulation in simulations.values():
            simulation.totals.changes += 1
            if is_churn:
                simulation.churn()
        for step in server.steps(change):
            for scheme, simulation in simulations.items():
                for message in scheme.step(step):
                    simulation.send(message, scheme.name)
        progress(number + 1, total, "changes")
    return [_result(scheme.name, value, simulation) for scheme, simulation in simulations.items()]


def _network(overlay: Overlay, server: Server, sample: list[Message]) -> Network:
    if overlay.kind == "tree":
        return ForwardingTree(server, overlay.nodes, overlay.seed)
    np.random.default_rng(overlay.seed).shuffle(sample)
    described = [message for message in sample if message.targets is None]
    return ContentAddressable(server, overlay.nodes, described[:_SAMPLE])


def _latency(overlay: Overlay, progress: Progress) -> Floats | None:
    if not overlay.routers:
        return None
    topology = Topology(overlay.routers, overlay.seed)
    return topology.overlay(overlay.nodes, lambda done: progress(done, overlay.nodes, "shortest paths"))


def _result(scheme: str, value: Any, simulation: Simulation) -> Result:
    totals = simulation.totals
    others = totals.stress[SERVER + 1 :]
    return Result(
        scheme,
        value,
        totals.each(totals.messages),
        totals.each(totals.traffic),
        totals.each(totals.hops),
        totals.each(float(totals.stress[SERVER])),
        totals.each(float(others.max(initial=0))),
        totals.mean_depth,
        totals.mean_delay,
        totals.each(totals.last_hop),
        totals.each(totals.fetches),
    )
