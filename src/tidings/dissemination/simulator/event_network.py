"""A content-based network of events in one process: real nodes with forwarding tables, in a tree. Select-joins, 2.1 and Appendix A.

The nodes and tables are those of `network/`, and each decides by itself where an event goes on. Three networks can be compared: one
that floods, without tables; one whose nodes register every text towards the root; one that registers only what covers the others. All
deliver the same: to each subscriber exactly what its subscription matches. When a node leaves, its parent takes over its table.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np

from tidings.dissemination.network.can import SERVER
from tidings.dissemination.network.covering import Changed
from tidings.dissemination.network.forwarding_table import Entry, EveryText, ForwardingTable
from tidings.dissemination.network.node import Node
from tidings.dissemination.packet import Packet, event_packet
from tidings.dissemination.simulator.networks import Tree
from tidings.dissemination.simulator.simulation import Totals
from tidings.dissemination.simulator.topology import Floats
from tidings.dissemination.wire import encode
from tidings.model.event import Event

FLOODING, EVERY, COVERING = NETWORKS = ("flooding", "every filter", "covering")
_SUBSCRIBER = "subscriber "  # such links lead to subscribers, all others to nodes


class _Flooding(ForwardingTable):
    """Sends every event to all nodes below, and to the subscribers of the node that it matches."""

    def __init__(self, below: list[str]) -> None:
        super().__init__()
        self._below = below

    def matches(self, packet: Packet, sender: str | None) -> list[str]:
        return [*self._below, *super().matches(packet, sender)]


class EventNetwork:
    """`deliver` is called with each event that reaches a subscriber, and its number."""

    def __init__(
        self,
        kind: str,
        tree: Tree,
        latency: Floats | None = None,
        deliver: Callable[[Packet, int], None] = lambda packet, number: None,
    ) -> None:
        self._tree, self._deliver = tree, deliver
        self._latency = latency
        self.totals = Totals(stress=np.zeros(len(tree.nodes), np.int64))
        self.registrations = 0
        """Filters that nodes have registered or withdrawn at others."""
        self._below: dict[int, list[str]] = {node: [] for node in tree.nodes}
        for node, parent in tree.parents.items():
            self._below[parent].append(str(node))
        self._kind = kind
        self.tables: dict[int, ForwardingTable] = {}
        self.nodes: dict[int, Node[str]] = {}
        for node in tree.nodes:
            self._start(node)
        self._pending: defaultdict[int, tuple[list[Entry], list[Entry]]] = defaultdict(lambda: ([], []))
        self._live: dict[int, tuple[int, str]] = {}  # the node and the text of each subscription

    def _start(self, node: int) -> None:
        if self._kind == FLOODING:
            table: ForwardingTable = _Flooding(self._below[node])
        else:
            upwards = partial(self._ask, node) if node != SERVER else None
            table = ForwardingTable(upwards, upstream=EveryText() if self._kind == EVERY else None)
        self.tables[node] = table
        self.nodes[node] = Node(str(node), table, keeps_payloads=False)

    def _ask(self, node: int, changed: Changed) -> None:
        """A node registers and withdraws filters at its parent."""
        register, withdraw = self._pending[self._tree.parents[node]]
        register += [(str(node), text) for text in changed.register]
        withdraw += [(str(node), text) for text in changed.withdraw]
        self.registrations += len(changed.register) + len(changed.withdraw)

    def update(self, come: Mapping[int, tuple[int, str]], gone: Iterable[int]) -> None:
        """Subscriptions that come, with the node and the text of each, and the numbers of those that go."""
        ended = {number: self._live.pop(number) for number in gone}
        self._live |= come
        for side, subscriptions in enumerate((come, ended)):
            for number, (node, text) in subscriptions.items():
                self._pending[node][side].append((f"{_SUBSCRIBER}{number}", text))
        self._settle()

    def join(self) -> int:
        """A node more, without subscribers; its number."""
        node = self._tree.join()
        self._below[node] = []
        self._below[self._tree.parents[node]].append(str(node))
        self._start(node)
        self.totals.stress = np.append(
            self.totals.stress, np.zeros(node + 1 - len(self.totals.stress), np.int64)
        )
        return node

    def leave(self, node: int) -> None:
        """A node's subscribers, and the nodes below it, go to its parent."""
        above = self._tree.parents.get(node, SERVER)
        self._tree.leave(node)
        self._live = {
            number: (above if at == node else at, text) for number, (at, text) in self._live.items()
        }
        self._below[above].remove(str(node))
        self._below[above] += self._below.pop(node)
        del self.nodes[node]
        register, withdraw = self._pending[above]
        register += self.tables.pop(node).entries()
        withdraw += [entry for entry in self.tables[above].entries() if entry[0] == str(node)]
        self.registrations += sum(not link.startswith(_SUBSCRIBER) for link, _ in register)
        self._settle()

    def _settle(self) -> None:
        """What a node registers and withdraws reaches the root."""
        while self._pending:
            lowest = max(self._pending)  # a node has a higher number than its parent
            self.tables[lowest].update(*self._pending.pop(lowest))

    def filters(self) -> list[int]:
        """Of each node how many filters of the nodes below it has."""
        return [sum(map(self.tables[node].filters, below)) for node, below in self._below.items()]

    def publish(self, event: Event, sequence: int = 0) -> None:
        """An event enters at the root, and the next one when it has arrived everywhere."""
        packet, totals = event_packet(event, sequence), self.totals
        size = len(encode(packet))  # it is the same on every link
        totals.changes += 1
        totals.messages += 1
        waiting: deque[tuple[int, str | None, int, float]] = deque([(SERVER, None, 0, 0.0)])
        while waiting:
            at, sender, depth, arrival = waiting.popleft()
            for link, sent in self.nodes[at].receive(packet, sender).sends:
                if link.startswith(_SUBSCRIBER):
                    totals.deliveries += 1
                    totals.last_hop += size
                    totals.depth += depth
                    totals.delay += arrival
                    self._deliver(sent, int(link.removeprefix(_SUBSCRIBER)))
                    continue
                totals.hops += 1
                totals.traffic += size
                totals.stress[at] += size
                waiting.append((int(link), str(at), depth + 1, arrival + self._delay(at, int(link))))

    def _delay(self, sender: int, receiver: int) -> float:
        """Milliseconds; none to a node that joined later, which the topology does not have."""
        is_known = self._latency is not None and max(sender, receiver) < len(self._latency)
        return float(self._latency[sender, receiver]) if is_known else 0.0  # type: ignore[index]
