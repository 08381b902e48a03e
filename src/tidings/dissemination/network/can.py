"""A content-addressable network of many nodes: who gets a message, over which nodes. Select-joins, Appendix A.

A subscription is a point in the space of each form that it has; a node owns a zone of every space and the points in it. A message
enters at the server's node, goes to the anchor of its region and from there to all zones of the region, to each once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.dissemination.kernels import zones as kernels
from tidings.dissemination.network.regions import Region, Space, concerns, space_of
from tidings.dissemination.network.zones import Ints, Zones
from tidings.dissemination.schemes.message import Form, Longs, Message
from tidings.dissemination.schemes.population import Population
from tidings.dissemination.schemes.server import Server
from tidings.dissemination.schemes.signature import Semijoin, Signature
from tidings.errors import SubscriptionError

_NONE = np.empty(0, np.int64)
SERVER = 0  # the node beside which the server is


class Visits(NamedTuple):
    """The nodes that a message visits, in an order in which each comes behind the one that sends to it."""

    nodes: Ints
    parents: Ints
    """Positions of the senders; -1 where the message is injected. A node may follow itself: that costs nothing."""
    counts: Longs
    """How many subscriptions of each node take the message there."""
    subscriptions: Longs
    """Their numbers, node after node; none where only their counts were asked for."""


class Inhabited(NamedTuple):
    """The points of a space, zone after zone, as the loops take them."""

    points: Longs
    forms: Longs
    numbers: Longs
    first: Ints
    common: Longs
    """Of each zone the forms that all its points have."""


def forms_of(population: Population) -> list[Semijoin | Signature]:
    """What the subscriptions of a population are registered for."""
    return [population.signature, *population.semijoins]


class Area:
    """A space with its zones and points. Forms that share it have a bit each."""

    def __init__(
        self, space: Space, forms: Sequence[Semijoin | Signature], server: Server, sample: Sequence[Message]
    ) -> None:
        self.space = space
        self.forms = list(forms)
        numbers: list[Longs] = []
        masks: list[Longs] = []
        points = [np.empty((0, space.dimensions), np.int64)]
        for population in server.populations:
            own = [(1 << bit, form) for bit, form in enumerate(self.forms) if form in forms_of(population)]
            if own:
                slots = [population.signature.tables.index(table) for table, _ in space.axes]
                ends = [(population.low(slot), population.high(slot)) for slot in slots]
                points.append(np.column_stack([end for pair in ends for end in pair]))
                numbers.append(population.numbers)
                # An empty range is covered by points of a skyline with X > Y, and wants nothing of a semijoin.
                held = np.all([low <= high for low, high in ends], axis=0)
                joined = sum(bit for bit, form in own if isinstance(form, Signature))
                masks.append(np.where(held, sum(bit for bit, _ in own), joined).astype(np.int64))
        none = np.empty(0, np.int64)
        self.numbers = np.concatenate([none, *numbers])
        self.masks = np.concatenate([none, *masks])
        if server.gone:
            self.masks[np.isin(self.numbers, list(server.gone))] = 0
        regions = [region for message in sample if (region := space.region(message)) is not None]
        self.zones = Zones(np.concatenate(points), SERVER, regions)
        self._inhabited: Inhabited | None = None

    @property
    def inhabited(self) -> Inhabited:
        if self._inhabited is None:
            order = np.argsort(self.zones.zone_of, kind="stable")
            counts = np.bincount(self.zones.zone_of, minlength=len(self.zones))
            first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
            common = np.full(len(self.zones), -1, np.int64)
            np.bitwise_and.at(common, self.zones.zone_of, self.masks)
            self._inhabited = Inhabited(
                self.zones.points[order], self.masks[order], self.numbers[order], first, common
            )
        return self._inhabited

    def join(self, node: int) -> None:
        self.zones.join(node)
        self._inhabited = None

    def unsubscribe(self, number: int) -> None:
        self.masks[self.numbers == number] = 0
        self._inhabited = None

    def visits(self, region: Region, form: Form, named: bool) -> Visits:
        wanted = sum(1 << bit for bit, other in enumerate(self.forms) if concerns(form, self.space, other))
        start = self.zones.at_corner(SERVER)
        tree, inhabited = self.zones.tree(region, start), self.inhabited
        self.zones.visits[tree.zones] += 1
        counts, subscriptions = np.empty(len(tree.zones), np.int64), _NONE
        if named:
            points, forms, numbers, first, _ = inhabited
            found = np.empty(len(points), np.int32)
            total = kernels.delivered(points, forms, first, region, wanted, tree.zones, found, counts)
            subscriptions = numbers[found[:total]]
        else:
            kernels.counted(inhabited, self.zones.arrays, region, wanted, tree.zones, counts)
        before = len(tree.path) - 1  # the last of the path is the root of the tree
        nodes = self.zones.owner[np.concatenate([tree.path[:-1], tree.zones])]
        parents = np.concatenate([np.arange(-1, before - 1, dtype=np.int32), tree.parents + before])
        if before:
            parents[before] = before - 1
        counts = np.concatenate([np.zeros(before, np.int64), counts])
        return Visits(nodes, parents.astype(np.int32), counts, subscriptions)


class ContentAddressable:
    """The whole network: nodes that join and leave, subscriptions of a server, ways of messages."""

    def __init__(self, server: Server, nodes: int = 1, sample: Sequence[Message] = ()) -> None:
        """`sample` are messages as they will come: zones are divided so that few of them are visited by each."""
        self._server = server
        self._sample = sample
        self.nodes = list(range(nodes))
        self._next = nodes
        self._areas: dict[Space, Area] = {}
        self._of_form: dict[Form, list[Area]] = {}

    def join(self) -> int:
        """A node takes over a part of the zone with the highest load, in every space; its number."""
        for area in self._areas.values():
            area.join(self._next)
        self.nodes.append(self._next)
        self._next += 1
        return self.nodes[-1]

    def leave(self, node: int) -> None:
        """A node's zones go to neighbours. The server's node stays."""
        if node == SERVER or node not in self.nodes:
            raise SubscriptionError(f"node {node} cannot leave: it is the server's, or not there")
        for area in self._areas.values():
            area.zones.leave(node)
        self.nodes.remove(node)

    def unsubscribe(self, number: int) -> None:
        for area in self._areas.values():
            area.unsubscribe(number)

    def visits(self, message: Message, named: bool = True) -> Iterator[Visits]:
        """The ways of a message, one in every space that it concerns; with the numbers of subscriptions if `named`."""
        for area in self._areas_of(message.form):
            region = area.space.region(message)
            if region is not None:
                yield area.visits(region, message.form, named)

    def node_of(self, form: Form) -> npt.NDArray[np.int32]:
        """Of every subscription the node that it is registered at, for messages of a form that enumerate them."""
        found = np.zeros(self._server.count, np.int32)
        for area in self._areas_of(form):
            found[area.numbers] = area.zones.owner[area.zones.zone_of]
        return found

    def _areas_of(self, form: Form) -> list[Area]:
        if form not in self._of_form:
            spaces = dict.fromkeys(
                space_of(registered)
                for population in self._server.populations
                for registered in forms_of(population)
                if concerns(form, space_of(registered), registered)
            )
            self._of_form[form] = [self._area(space) for space in spaces]
        return self._of_form[form]

    def _area(self, space: Space) -> Area:
        if space not in self._areas:
            forms = dict.fromkeys(
                form
                for population in self._server.populations
                for form in forms_of(population)
                if space_of(form) == space
            )
            sample = [
                message
                for message in self._sample
                if any(concerns(message.form, space, form) for form in forms)
            ]
            area = self._areas[space] = Area(space, list(forms), self._server, sample)
            for node in self.nodes[1:]:
                area.join(node)
        return self._areas[space]
