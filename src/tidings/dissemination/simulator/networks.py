"""What the simulator needs of a network, and the plainest one: a tree of nodes with forwarding tables. Select-joins, A.

In a tree, every node is responsible for some subscriptions and forwards a message over a link if a subscription behind it wants it.
Exact forwarding tables decide just that, so the nodes that a message visits are those between the server and its audience.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tidings.dissemination.network.can import SERVER, Visits
from tidings.dissemination.schemes.filters import audience
from tidings.dissemination.schemes.message import Form, Message
from tidings.dissemination.schemes.server import Server
from tidings.errors import SubscriptionError

DEGREE = 8  # links to nodes below


class Network(Protocol):
    """Nodes have numbers that are given once; SERVER is always there."""

    nodes: list[int]

    def join(self) -> int:
        """A node more; its number."""

    def leave(self, node: int) -> None:
        """Others take over what it was responsible for."""

    def unsubscribe(self, number: int) -> None: ...

    def visits(self, message: Message, named: bool = True) -> Iterator[Visits]:
        """The ways of a message that is for all who want it; subscriptions have to be there only if `named`."""

    def node_of(self, form: Form) -> npt.NDArray[np.int32]:
        """The node of every subscription."""


class Tree:
    """Nodes below the server's; one that joins goes below one that has room, chosen at random, and has a higher number."""

    def __init__(self, nodes: int, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self.nodes = [SERVER]
        self.parents: dict[int, int] = {}
        self._next = 1
        self._room = [SERVER] * DEGREE
        for _ in range(1, nodes):
            self.join()

    def join(self) -> int:
        node, self._next = self._next, self._next + 1
        self.parents[node] = self._room.pop(int(self._rng.integers(len(self._room))))
        self._room += [node] * DEGREE
        self.nodes.append(node)
        return node

    def leave(self, node: int) -> None:
        """The nodes below go to its parent."""
        if node == SERVER or node not in self.parents:
            raise SubscriptionError(f"node {node} cannot leave: it is the server's, or not there")
        above = self.parents.pop(node)
        for child, parent in self.parents.items():
            if parent == node:
                self.parents[child] = above
        self._room = [other for other in self._room if other != node] + [above]
        self.nodes.remove(node)


class ForwardingTree(Tree):
    """A content-based network over a tree, for messages of schemes."""

    def __init__(self, server: Server, nodes: int, seed: int = 0) -> None:
        super().__init__(nodes, seed)
        self._server = server
        self._node_of = self._rng.choice(self.nodes, server.count).astype(np.int32)

    def leave(self, node: int) -> None:
        """Its subscriptions go to its parent, too."""
        above = self.parents.get(node, SERVER)
        super().leave(node)
        self._node_of[self._node_of == node] = above

    def unsubscribe(self, number: int) -> None:
        """The server knows who is gone."""

    def visits(self, message: Message, named: bool = True) -> Iterator[Visits]:
        wanting = audience(message, self._server)
        at = self._node_of[wanting]
        order = np.argsort(at, kind="stable")
        found, counts = np.unique(at, return_counts=True)
        position = {SERVER: 0}
        parents = [-1]
        for node in found.tolist():
            way = []
            while node not in position:
                way.append(node)
                node = self.parents[node]
            for below in reversed(way):
                parents.append(position[self.parents[below]])
                position[below] = len(position)
        nodes = np.fromiter(position, np.int32, len(position))
        of_node = dict(zip(found.tolist(), counts.tolist(), strict=True))
        # The subscriptions in the order of the visits.
        starts = dict(zip(found.tolist(), (np.cumsum(counts) - counts).tolist(), strict=True))
        parts = [order[starts[node] : starts[node] + of_node[node]] for node in position if node in of_node]
        listed = np.concatenate([np.empty(0, np.int64), *parts])
        each = np.array([of_node.get(node, 0) for node in position], np.int64)
        yield Visits(nodes, np.array(parents, np.int32), each, wanting[listed])

    def node_of(self, form: Form) -> npt.NDArray[np.int32]:
        return self._node_of
