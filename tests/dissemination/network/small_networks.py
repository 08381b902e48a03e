"""Small networks in one process: real nodes, links that deliver at once, and clients that keep what they get."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from tidings.dissemination.network.node import Node, Outcome, Send
from tidings.dissemination.packet import Packet

Wanted = Callable[[Packet], bool]


class Table:
    """The plainest router: a list of predicates for each link."""

    reads_payload = False

    def __init__(self) -> None:
        self.filters: defaultdict[str, list[Wanted]] = defaultdict(list)

    def register(self, link: str, filter: Wanted) -> None:
        self.filters[link].append(filter)

    def withdraw(self, link: str, filter: Wanted) -> None:
        self.filters[link].remove(filter)

    def matches(self, packet: Packet, sender: str | None) -> list[str]:
        return [
            link
            for link, filters in self.filters.items()
            if link != sender and any(wanted(packet) for wanted in filters)
        ]


class Network:
    """A tree of nodes by name; the first is where packets enter, beside the server. Counts contents on each link."""

    def __init__(self, nodes: dict[str, Node[str]]) -> None:
        self.nodes = nodes
        self.parent: dict[str, str] = {}
        self.received: defaultdict[str, list[Packet]] = defaultdict(list)
        self.carried: list[tuple[str, str, bool]] = []
        self.fetched: list[tuple[str, str]] = []
        self.server: dict[bytes, bytes] = {}
        self.loses = lambda: False
        """Whether an acknowledgment is lost."""

    def connect(self, child: str, parent: str) -> None:
        self.parent[child] = parent

    def subscribe(self, client: str, at: str, wanted: Wanted) -> None:
        self.nodes[at].add_client(client)
        self.nodes[at].router.register(client, wanted)  # type: ignore[attr-defined]
        while at in self.parent:
            self.nodes[self.parent[at]].router.register(at, wanted)  # type: ignore[attr-defined]
            at = self.parent[at]

    def inject(self, packet: Packet) -> None:
        self.server.update({payload.id: payload.content for payload in packet.payloads})  # type: ignore[misc]
        entry = next(iter(self.nodes))
        self._follow(entry, self.nodes[entry].receive(packet, None))

    def _follow(self, at: str, outcome: Outcome[str]) -> None:
        for send in outcome.sends:
            self._send(at, send)
        if outcome.waiting is not None:
            contents = []
            for missing in outcome.waiting.missing:
                for source in missing.sources:
                    self.fetched.append((at, source))
                    found = self.nodes[source].payload(missing.id) if source else self.server[missing.id]
                    if found is not None:
                        contents.append(found)
                        break
            self._follow(at, self.nodes[at].resume(outcome.waiting, *contents))

    def _send(self, at: str, send: Send[str]) -> None:
        self.carried.append((at, send.link, bool(send.packet.payloads) and not send.packet.missing))
        if send.link not in self.nodes:
            assert not send.packet.missing
            self.received[send.link].append(send.packet)
            return
        outcome = self.nodes[send.link].receive(send.packet, at)
        for id in outcome.acknowledge:
            if not self.loses():
                self.nodes[at].acknowledge(send.link, id)
        self._follow(send.link, outcome)
