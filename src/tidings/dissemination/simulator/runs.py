"""Runs a scenario: all schemes see the same changes of the same server, each with a network of its own.

The zones of a content-addressable network are divided for the messages of its scheme, by a sample from before those that are measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from tidings.dissemination.network.can import SERVER, ContentAddressable
from tidings.dissemination.schemes import Message
from tidings.dissemination.schemes.server import Server
from tidings.dissemination.simulator.event_network import NETWORKS, EventNetwork
from tidings.dissemination.simulator.event_workload import DrawnEvents, Events
from tidings.dissemination.simulator.networks import ForwardingTree, Network, Tree
from tidings.dissemination.simulator.results import EventResult, Result, event_result_of, result_of
from tidings.dissemination.simulator.scenario import SCHEMES, Overlay, Scenario
from tidings.dissemination.simulator.simulation import Simulation
from tidings.dissemination.simulator.topology import Floats, Topology
from tidings.dissemination.simulator.workload import Drawn

_SAMPLE = 300  # messages that zones are divided by
_WARM = 300  # changes before those that are measured


Progress = Callable[[int, int, str], None]


def _quiet(done: int, total: int, what: str) -> None:
    """No progress is shown."""


def run(scenario: Scenario, value: Any = None, progress: Progress = _quiet) -> Sequence[Result]:
    """Runs one scenario; its sweep, if it has one, is for the caller."""
    if scenario.events is not None:
        return _run_events(scenario, scenario.events, value, progress)
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
    return [result_of(scheme.name, value, simulation.totals) for scheme, simulation in simulations.items()]


def _run_events(scenario: Scenario, wanted: Events, value: Any, progress: Progress) -> list[EventResult]:
    """The same events and subscriptions in every network."""
    latency, found = _latency(scenario.network, progress), []
    total = wanted.events * len(NETWORKS)
    for position, kind in enumerate(NETWORKS):
        tree = Tree(scenario.network.nodes, scenario.network.seed)
        network, drawn = EventNetwork(kind, tree, latency), DrawnEvents(wanted)
        rng = np.random.default_rng(scenario.network.seed)
        coming = _placed(drawn, tree, rng)
        network.update(dict(islice(coming, wanted.subscriptions)), ())
        oldest = 0
        for number, event in enumerate(islice(drawn.events(), wanted.events)):
            if scenario.network.churn and number and number % scenario.network.churn == 0:
                if others := [node for node in tree.nodes if node != SERVER]:
                    network.leave(int(rng.choice(others)))
                network.join()
            if wanted.turnover and number % wanted.turnover == 0:
                network.update(dict(islice(coming, 1)), (oldest,))
                oldest += 1
            network.publish(event, number)
            progress(position * wanted.events + number + 1, total, f"events, {kind}")
        registrations = network.registrations / (wanted.subscriptions + 2 * oldest)
        found.append(event_result_of(kind, value, network.totals, network.filters(), registrations))
    return found


def _placed(
    drawn: DrawnEvents, tree: Tree, rng: np.random.Generator
) -> Iterator[tuple[int, tuple[int, str]]]:
    """Subscriptions by number: the node of each, chosen at random, and its text."""
    for number, text in enumerate(drawn.texts()):
        yield number, (int(rng.choice(tree.nodes)), text)


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
