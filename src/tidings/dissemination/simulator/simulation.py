"""Sends a scheme's messages through a simulated network, and adds up what they cost. Select-joins, 6.

Plain messages take one compiled loop each. Where nodes keep payloads, every visit runs the node that relays run: strips
payloads, acknowledges, fetches what was purged. A packet that is lost is sent again; an acknowledgment that is lost is not. The
next message starts when the one before has arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tidings.dissemination.kernels import paths
from tidings.dissemination.network.can import SERVER, Visits
from tidings.dissemination.network.node import Node, Waiting
from tidings.dissemination.network.payloads import Directory, Repository
from tidings.dissemination.packet import ID_BYTES, Packet, row_packet
from tidings.dissemination.schemes.message import Longs, Message
from tidings.dissemination.schemes.server import Server
from tidings.dissemination.schemes.sizes import NUMBER, size_of_all
from tidings.dissemination.simulator.networks import Network
from tidings.dissemination.simulator.topology import Floats

_CLIENTS = -1  # the link to the subscribers of a node
REFERENCE = ID_BYTES + NUMBER  # bytes of a payload's id and source, and of an acknowledgment or a request


@dataclass(slots=True)
class Totals:
    """What messages cost so far. Bytes are those of `sizes.py`."""

    changes: int = 0
    messages: int = 0
    """Messages that the server injected; one for each subscription where they are enumerated."""
    traffic: int = 0
    """Bytes times overlay links, with what was fetched."""
    hops: int = 0
    """Packets between overlay nodes."""
    deliveries: int = 0
    """Packets from nodes to subscribers: the last hop."""
    last_hop: int = 0
    """Bytes of these."""
    depth: float = 0.0
    """Overlay links up to a node of a subscription, summed over deliveries."""
    delay: float = 0.0
    """Milliseconds, likewise."""
    fetches: int = 0
    """Payloads that nodes had to ask for."""
    fetched_from_server: int = 0
    acknowledgments: int = 0
    lost: int = 0
    stress: Longs = field(default_factory=lambda: np.zeros(0, np.int64))
    """Bytes that each node sends to others; the server is the first."""

    def each(self, total: float) -> float:
        """A total as an average over all changes."""
        return total / max(1, self.changes)

    @property
    def mean_depth(self) -> float:
        return self.depth / max(1, self.deliveries)

    @property
    def mean_delay(self) -> float:
        return self.delay / max(1, self.deliveries)


@dataclass(frozen=True, slots=True)
class Caches:
    """Which nodes keep payloads (a share of them, drawn at random), and how much they keep."""

    share: float = 1.0
    directory: int = 512 << 10
    repository: int = 400
    names_lost: bool = True
    """Lost rows go without their payloads, which subscribers have. The paper's do not."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Probabilities."""

    packet: float = 0.0
    acknowledgment: float = 0.0


class _Planned:
    """The router of a simulated node: its links for a message come from the plan of the whole way."""

    reads_payload = False

    def __init__(self) -> None:
        self.links: list[int] = []

    def matches(self, packet: Packet, sender: int | None) -> Sequence[int]:
        return self.links


class Simulation:
    """`deliver` is called with each packet that reaches a node's subscribers, and their numbers."""

    def __init__(
        self,
        server: Server,
        network: Network,
        *,
        caches: Caches | None = None,
        latency: Floats | None = None,
        loss: Loss | None = None,
        seed: int = 0,
        deliver: Callable[[Message | Packet, Longs], None] | None = None,
    ) -> None:
        self.server = server
        self.network = network
        self.totals = Totals(stress=np.zeros(max(network.nodes) + 1, np.int64))
        self.caches = caches
        self._latency = latency if latency is not None else np.empty((0, 0))
        self.loss = loss or Loss()
        self._rng = np.random.default_rng(seed)
        self._deliver = deliver
        self._nodes: dict[int, Node[int]] = {}
        self._payloads: dict[bytes, bytes] = {}  # those of the server
        self._sequence = 0

    def send(self, message: Message, scheme: str) -> None:
        """Injects a message, or sends it to each subscription where these are enumerated."""
        if message.targets is not None:
            self._unicast(message, message.targets)
            return
        self.totals.messages += 1
        for visits in self.network.visits(message, named=self._deliver is not None):
            if self.caches is None and not self.loss.packet:
                self._cross(message, visits)
            else:
                self._walk(message, scheme, visits)

    def churn(self) -> None:
        """A node leaves, chosen at random, and another one joins."""
        others = [node for node in self.network.nodes if node != SERVER]
        if others:
            gone = int(self._rng.choice(others))
            self.network.leave(gone)
            self._nodes.pop(gone, None)
            for node in self._nodes.values():
                node.forget(gone)
        joined = self.network.join()
        self.totals.stress = np.append(
            self.totals.stress, np.zeros(max(0, joined + 1 - len(self.totals.stress)), np.int64)
        )

    def _unicast(self, message: Message, targets: Longs) -> None:
        totals, copies = self.totals, len(targets)
        totals.messages += copies
        totals.traffic += message.bytes
        totals.stress[SERVER] += message.bytes
        totals.hops += copies
        totals.deliveries += copies
        totals.last_hop += message.bytes
        totals.depth += copies
        if len(self._latency):
            nodes = self.network.node_of(message.form)[targets] % len(self._latency)
            totals.delay += float(self._latency[SERVER, nodes].sum())
        if self._deliver is not None:
            self._deliver(message, targets)

    def _cross(self, message: Message, visits: Visits) -> None:
        """The way of a message that is the same on every link."""
        totals = self.totals
        depth, arrival = np.empty(len(visits.nodes), np.int64), np.empty(len(visits.nodes))
        latency = self._latency[:0] if len(self._latency) <= int(visits.nodes.max()) else self._latency
        hops = paths.account(visits, latency, message.size, totals.stress, depth, arrival)
        totals.hops += hops
        totals.traffic += hops * message.size
        self._arrived(visits, message.size, depth, arrival)
        if self._deliver is not None:
            self._deliver(message, visits.subscriptions)

    def _arrived(self, visits: Visits, size: int, depth: Any, arrival: Any) -> None:
        count = int(visits.counts.sum())
        self.totals.deliveries += count
        self.totals.last_hop += count * size
        self.totals.depth += float(visits.counts @ depth)
        self.totals.delay += float(visits.counts @ arrival)

    def _walk(self, message: Message, scheme: str, visits: Visits) -> None:
        """The way of a packet whose payloads are left out where they can be."""
        self._sequence += 1
        names_lost = self.caches is not None and self.caches.names_lost
        packet = row_packet(message, scheme, self.server.tables, self._sequence, names_lost=names_lost)
        sizes = {}
        for payload in packet.payloads:
            if payload.content is not None:
                self._payloads[payload.id] = payload.content
            whole = message.rows[payload.row]
            bulky = self.server.tables[whole.table].payload
            places = map(self.server.tables[whole.table].names.index, bulky)
            sizes[payload.id] = size_of_all(whole.row[place] for place in places)
        _Walk(self, packet, message.size - sum(sizes[payload.id] for payload in packet.payloads), sizes).run(
            visits
        )

    def node(self, number: int) -> Node[int]:
        found = self._nodes.get(number)
        if found is None:
            caches = self.caches or Caches(share=0.0)
            # The server knows all payloads, and what it sends is what is measured.
            keeps = caches.share > 0 and (number == SERVER or self._rng.random() < caches.share)
            found = self._nodes[number] = Node(
                str(number) if number != SERVER else "",
                _Planned(),
                keeps_payloads=keeps,
                directory=Directory(caches.directory),
                repository=Repository(caches.repository),
            )
            found.add_client(_CLIENTS)
        return found

    def delay(self, sender: int, receiver: int) -> float:
        inside = max(sender, receiver) < len(self._latency)
        return float(self._latency[sender, receiver]) if inside else 0.0

    def times_lost(self, probability: float) -> int:
        """How often in a row something is lost."""
        return int(self._rng.geometric(1 - probability)) - 1 if probability else 0

    def fetch(
        self, waiting: Waiting[int], at: int, sizes: dict[bytes, int]
    ) -> tuple[list[bytes], int, float]:
        """Contents that a node lacks, each from the first that has it; links and milliseconds of the longest wait."""
        totals, contents, links, longest = self.totals, [], 0, 0.0
        for missing in waiting.missing:
            asked, taken = 0, 0.0
            for source in missing.sources:
                number = int(source) if source else SERVER
                asked += 2
                taken += self.delay(at, number) + self.delay(number, at)
                totals.traffic += REFERENCE
                totals.stress[at] += REFERENCE
                found = self._payloads[missing.id] if number == SERVER else self._content(number, missing.id)
                if found is not None:
                    contents.append(found)
                    totals.traffic += sizes[missing.id]
                    totals.stress[number] += sizes[missing.id]
                    totals.fetches += 1
                    totals.fetched_from_server += number == SERVER
                    break
            totals.hops += asked
            links, longest = max(links, asked), max(longest, taken)
        return contents, links, longest

    def _content(self, number: int, id: bytes) -> bytes | None:
        return self._nodes[number].payload(id) if number in self._nodes else None

    def delivered(self, packet: Packet, subscriptions: Longs) -> None:
        if self._deliver is not None:
            self._deliver(packet, subscriptions)


class _Walk:
    """One packet on its way over real nodes."""

    def __init__(self, simulation: Simulation, packet: Packet, bare: int, sizes: dict[bytes, int]) -> None:
        """`bare`: bytes without payloads; `sizes`: of each payload."""
        self.simulation = simulation
        self.packet = packet
        self.bare = bare
        self.sizes = sizes

    def run(self, visits: Visits) -> None:
        nodes, parents, counts = visits.nodes.tolist(), visits.parents.tolist(), visits.counts.tolist()
        below: list[list[int]] = [[] for _ in nodes]
        for position, parent in enumerate(parents[1:], start=1):
            below[parent].append(position)
        depth, arrival = [0.0] * len(nodes), [0.0] * len(nodes)
        packets: list[Packet] = [self.packet] * len(nodes)
        first = 0
        for position, number in enumerate(nodes):
            sender = nodes[parents[position]] if position else number
            links = [child for child in below[position] if nodes[child] != number]
            found, waited = self._visit(
                number, sender, packets[position], [nodes[child] for child in links], counts[position] > 0
            )
            for child in below[position]:
                depth[child], arrival[child] = depth[position], arrival[position]
                packets[child] = packets[position]
            for child, (sent, is_late) in zip(links, found, strict=False):
                packets[child] = sent
                self._cross(number, sent)
                depth[child] += 1 + (waited[0] if is_late else 0)
                arrival[child] += self.simulation.delay(number, nodes[child]) + (waited[1] if is_late else 0)
            if counts[position]:
                own = visits.subscriptions[first : first + counts[position]]
                first += counts[position]
                sent, is_late = found[-1]
                late = waited if is_late else (0, 0.0)
                self._taken(sent, counts[position], depth[position] + late[0], arrival[position] + late[1])
                self.simulation.delivered(sent, own)

    def _visit(
        self, number: int, sender: int, packet: Packet, links: list[int], is_wanted: bool
    ) -> tuple[list[tuple[Packet, bool]], tuple[int, float]]:
        """The packet as it goes over each link, and last to subscribers, each with whether it had to wait; and how long."""
        simulation = self.simulation
        node = simulation.node(number)
        wanted = [*links, _CLIENTS] if is_wanted else links
        node.router.links = wanted  # type: ignore[attr-defined]
        outcome = node.receive(packet, sender if sender != number else None)
        for id in outcome.acknowledge:
            simulation.totals.acknowledgments += 1
            if not simulation.times_lost(simulation.loss.acknowledgment):
                simulation.node(sender).acknowledge(number, id)
        if outcome.waiting is None:
            return [(send.packet, False) for send in outcome.sends], (0, 0.0)
        contents, asked, taken = simulation.fetch(outcome.waiting, number, self.sizes)
        later = node.resume(outcome.waiting, *contents)
        early, late = iter(outcome.sends), iter(later.sends)
        waits = list(outcome.waiting.links or ())
        found = []
        for link in wanted:
            is_late = link in waits
            if is_late:
                waits.remove(link)
            found.append((next(late if is_late else early).packet, is_late))
        return found, (asked, taken)

    def _cross(self, sender: int, packet: Packet) -> None:
        totals = self.simulation.totals
        size = self._size(packet)
        lost = self.simulation.times_lost(self.simulation.loss.packet)
        totals.lost += lost
        totals.hops += 1 + lost
        totals.traffic += size * (1 + lost)
        totals.stress[sender] += size * (1 + lost)

    def _size(self, packet: Packet) -> int:
        there = sum(self.sizes[payload.id] for payload in packet.payloads if payload.content is not None)
        references = REFERENCE * len(packet.payloads) if self.simulation.caches is not None else 0
        return self.bare + there + references

    def _taken(self, packet: Packet, count: int, depth: float, arrival: float) -> None:
        totals = self.simulation.totals
        totals.deliveries += count
        totals.last_hop += count * self._size(packet)
        totals.depth += count * depth
        totals.delay += count * arrival
