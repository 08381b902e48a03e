"""Networks as a kind: of subscriptions at a node of a network (`VIA … AT …`) those are kept whose event gets there.

An event is published at the node that its `source` names. It is walked through each network once, however many
subscriptions wait there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np

from tidings.errors import SubscriptionError
from tidings.kinds.networks.explain import route
from tidings.kinds.networks.network import Network
from tidings.language.alternatives import Way
from tidings.language.likely_mistakes import missing_node
from tidings.language.query import KindCondition, Via
from tidings.model.batch import Batch
from tidings.model.explanation import Clause
from tidings.model.notification import COST
from tidings.model.pairs import Pairs


class Networks:
    """The kind that takes the VIA of a way."""

    name, role = "networks", "check"
    conditions: tuple[type[KindCondition], ...] = ()

    def __init__(self, networks: dict[str, Network]) -> None:
        self.networks = networks

    def compile(self, way: Way) -> tuple[Via | None, Way]:
        return way.via, replace(way, via=None)

    def builder(self) -> Places:
        return Places(self.networks)

    def load(self, folder: Path) -> Places:
        """The places that `Places.save` wrote; the networks themselves are loaded before, by `load_networks`."""
        places = Places(self.networks)
        for stored in json.loads((folder / "places.json").read_text()):
            places.add(Via(*stored), None)
        return places

    def explain(self, via: Via, source: str, attributes: Mapping[str, Any]) -> tuple[Clause, ...]:
        """The valid path to a place in a network, or the frontier where every path to it was cut."""
        return tuple(route(via, self.networks.get(via.network), source, attributes))


class Places:
    """The nodes at which subscriptions are placed, each once: a row is a node of a network."""

    binds = False

    def __init__(self, networks: Mapping[str, Network]) -> None:
        self._networks = networks
        self._places: dict[Via, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def prepare(self, via: Via, values: Mapping[str, str]) -> None:
        """Refuses a place in a network that is not there."""
        if via.network not in self._networks:
            known = ", ".join(sorted(self._networks)) or "none"
            raise SubscriptionError(
                f"there is no network {via.network!r}; the engine's networks are: {known}. Give it to the engine first"
            )
        if via.node not in self._networks[via.network]:
            raise SubscriptionError(missing_node(via.network, via.node, self._networks[via.network]))

    def add(self, via: Via, prepared: None) -> int:
        return self._places.setdefault(via, len(self._places))

    def add_many(self, via: Via, columns: object, count: int) -> np.ndarray:
        self.prepare(via, {})
        return np.full(count, self.add(via, None), dtype=np.int32)

    def keep(self, rows: np.ndarray) -> None:
        places = list(self._places)
        self._places = {places[row]: number for number, row in enumerate(rows.tolist())}

    def check(self, batch: Batch, pairs: Pairs, rows: np.ndarray) -> Pairs:
        return pairs.take(self._arrive(batch, pairs.event, rows))

    def _arrive(self, batch: Batch, event: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Whether each event gets to its place; -1 is nowhere in a network."""
        keep, places = rows < 0, list(self._places)
        waiting = np.flatnonzero(~keep).tolist()
        for name in {places[rows[i]].network for i in waiting}:
            network = self._networks.get(name)
            if network is None:
                continue
            mine = [i for i in waiting if places[rows[i]].network == name]
            reached = _walk(batch, sorted({int(event[i]) for i in mine}), network)
            for i in mine:
                node = places[rows[i]].node
                keep[i] = node in network and network.number(node) in reached[int(event[i])]
        return keep

    def remarks(self, batch: Batch, pairs: Pairs, rows: np.ndarray) -> dict[int, dict[str, str]]:
        """By the position of a pair at a place in a network with costs the cost of the cheapest valid path: `NETWORK.cost`."""
        answered, places = np.flatnonzero((rows >= 0) & (pairs.doubt < 0)), list(self._places)
        names = {places[row].network for row in np.unique(rows[answered]).tolist()}
        costly = {
            name: network for name in names if (network := self._networks.get(name)) and network.has_costs
        }
        if not costly:
            return {}
        waiting: dict[tuple[str, int], dict[int, str]] = {}
        for i in answered.tolist():
            if (via := places[rows[i]]).network in costly:
                waiting.setdefault((via.network, int(pairs.event[i])), {})[i] = via.node
        remarks = {}
        for (name, event), nodes in waiting.items():
            source, attributes = batch.source(event), batch.attributes(event)
            if source is None or source not in costly[name] or attributes is None:
                continue
            costs = costly[name].costs(source, attributes, nodes.values())
            for i, node in nodes.items():
                if node in costs:
                    remarks[i] = {f"{name}{COST}": f"{costs[node]:.15g}"}
        return remarks

    def save(self, folder: Path) -> None:
        (folder / "places.json").write_text(json.dumps([list(astuple(via)) for via in self._places]))


def _walk(batch: Batch, rows: list[int], network: Network) -> dict[int, set[int]]:
    """The nodes that the events of these rows reach."""
    reached: dict[int, set[int]] = {row: set() for row in rows}
    walked = [
        row
        for row in rows
        if (source := batch.source(row)) is not None
        and source in network
        and batch.attributes(row) is not None
    ]
    sources = [batch.source(row) or "" for row in walked]
    events, numbers = network.reached(sources, [batch.attributes(row) or {} for row in walked])
    for event, number in zip(events.tolist(), numbers.tolist(), strict=True):
        reached[walked[event]].add(number)
    return reached


def save_networks(networks: Mapping[str, Network], root: Path) -> None:
    """Writes networks beside an index, by number: the name of a network need not be one of a folder."""
    (root / "networks.json").write_text(json.dumps(list(networks), indent=1))
    for number, network in enumerate(networks.values()):
        network.save(root / "networks" / str(number))


def load_networks(root: Path) -> dict[str, Network]:
    """What `save_networks` wrote."""
    names = json.loads((root / "networks.json").read_text())
    return {name: Network.load(root / "networks" / str(number)) for number, name in enumerate(names)}
