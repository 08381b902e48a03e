"""Whatever the network, every subscriber gets exactly its messages, whole, and its client holds what naive joins say.

Random topologies (a content-addressable network or a tree), workloads and schemes, with caches that purge, nodes that keep no
payloads, nodes that leave and join, lost packets and lost acknowledgments.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.dissemination.schemes.worlds import BINARY, STAR, changes, ranges, star
from tidings.dissemination.network.can import ContentAddressable
from tidings.dissemination.network.payloads import Directory, Repository
from tidings.dissemination.packet import HeldPayloads, Packet
from tidings.dissemination.schemes import Change, Message, Server, audience, naive
from tidings.dissemination.schemes.client import Client
from tidings.dissemination.simulator.networks import ForwardingTree
from tidings.dissemination.simulator.scenario import LONG, SCHEMES
from tidings.dissemination.simulator.simulation import Caches, Loss, Simulation
from tidings.kinds.joins.schema.table import Table

R = Table("r", {"a": "integer", "b": "integer", "payload": "text"}, payload=["payload"])
S = Table("s", {"b": "integer", "c": "integer", "payload": "text"}, payload=["payload"])
PEOPLE = 20


def some_server(rng: np.random.Generator) -> Server:
    if rng.random() < 0.7:
        server = Server([R, S])
        server.subscribe(BINARY, [ranges(rng, PEOPLE), ranges(rng, PEOPLE)])
        return server
    server = Server(STAR)
    for others in (("r",), ("r", "t")):
        signature = star(*others)
        forms = [list(signature.semijoins(table)) for table in signature.tables]
        chosen = [form[int(rng.integers(len(form)))] for form in forms]
        server.subscribe(signature, [ranges(rng, PEOPLE // 2) for _ in signature.tables], chosen)
    return server


class World:
    """A random network with its clients, which compare what they get with what they should."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = np.random.default_rng(seed)
        self.server = some_server(rng)
        nodes = int(rng.integers(1, 30))
        names = list(SCHEMES)
        self.scheme = SCHEMES[names[int(rng.integers(len(names)))]](self.server)
        self.clients = [Client(self.server.subscription(number)) for number in range(PEOPLE)]
        self.held = [HeldPayloads() for _ in range(PEOPLE)]
        self.received: list[tuple[Message | Packet, np.ndarray]] = []
        caches = Caches(
            share=float(rng.choice([0.0, 0.5, 1.0])),
            directory=int(rng.choice([0, 20, 200, 100_000])),
            repository=int(rng.choice([0, 1, 3, 100])),
            names_lost=bool(rng.random() < 0.5),
        )
        self.simulation = Simulation(
            self.server,
            ContentAddressable(self.server, nodes)
            if rng.random() < 0.6 and self.scheme.name not in LONG
            else ForwardingTree(self.server, nodes, seed),
            caches=caches if rng.random() < 0.85 else None,
            loss=Loss(float(rng.choice([0, 0.2])), float(rng.choice([0, 0.5]))),
            seed=seed,
            deliver=self.take,
        )

        for number in self.simulation.network.nodes[1:]:
            self.restart(number)

    def restart(self, number: int) -> None:
        """A node forgets all payloads, and keeps as many as it likes from now on."""
        node = self.simulation.node(number)
        node.directory, node.repository = Directory(), Repository(int(self.rng.choice([0, 1, 2, 50])))

    def take(self, given: Message | Packet, subscriptions: np.ndarray) -> None:
        self.received.append((given, subscriptions))
        for number in subscriptions.tolist():
            message = self.held[number].message_of(given) if isinstance(given, Packet) else given
            assert self.clients[number].receive(message)

    def run(self, count: int) -> int:
        tables, got = dict(self.server.tables), 0
        for change in changes(self.rng, self.server, count):
            if self.rng.random() < 0.15:
                self.simulation.churn()
            elif self.rng.random() < 0.15:
                self.restart(int(self.rng.choice(self.simulation.network.nodes)))
            got += self.apply(change)
            for client in self.clients:
                assert client.result() == naive.join(client.subscription, tables, self.server.contents())
        return got

    def apply(self, change: Change) -> int:
        got = 0
        for message in self.scheme.messages(change):
            self.received.clear()
            self.simulation.send(message, self.scheme.name)
            reached = [number for _, numbers in self.received for number in numbers.tolist()]
            assert sorted(reached) == audience(message, self.server).tolist()
            got += len(reached)
        return got


def check(seeds: range) -> None:
    got = sum(World(seed).run(12) for seed in seeds)
    assert got > len(seeds)


def test_delivery() -> None:
    check(range(40))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_delivery_in_2000_worlds(part: int) -> None:
    check(range(1_000 + part * 100, 1_100 + part * 100))


def test_what_is_fetched_and_lost_happens() -> None:
    """The worlds above are of use only if they see purges, fetches and losses."""
    worlds = [World(seed) for seed in range(20)]
    for world in worlds:
        for change in changes(world.rng, world.server, 60):
            world.apply(change)
    totals = [world.simulation.totals for world in worlds]
    for name in ("fetches", "fetched_from_server", "acknowledgments", "lost", "hops"):
        assert sum(getattr(one, name) for one in totals) > 0, name
    assert sum(one.fetches - one.fetched_from_server for one in totals) > 0


def test_seeds_are_what_counts() -> None:
    first, again = World(5), World(5)
    assert first.run(10) == again.run(10)
    assert first.simulation.totals.traffic == again.simulation.totals.traffic
