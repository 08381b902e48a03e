"""Random networks, and the same ones as naive.py takes them."""

from __future__ import annotations

import random
from typing import Any

from tidings import Network
from tidings.language.parser import parse
from tidings.language.query import Condition

ATTRIBUTES = "abcd"


def random_text(rng: random.Random) -> str:
    """An expression that about half of the events satisfy."""

    def leaf() -> str:
        name, value = rng.choice(ATTRIBUTES), rng.randrange(4)
        forms = (
            f"{name} = {value}",
            f"{name} != {value}",
            f"{name} >= {value}",
            f"{name} IN ({value}, {value + 1})",
            f"NOT {name} = {value}",
            f"EXISTS {name}",
        )
        return rng.choice(forms)

    return rng.choice(
        (leaf(), f"{leaf()} OR {leaf()}", f"{leaf()} AND {leaf()}", f"NOT ({leaf()} AND {leaf()})")
    )


def random_event(rng: random.Random) -> dict[str, Any]:
    event: dict[str, Any] = {name: rng.randrange(4) for name in ATTRIBUTES if rng.random() < 0.7}
    if rng.random() < 0.2:
        event["a"] = [rng.randrange(4), rng.randrange(4)]
    return event


class Twin:
    """A network and what it should be, changed together."""

    def __init__(self) -> None:
        self.network = Network()
        self.nodes: dict[str, Condition | None] = {}
        self.edges: dict[tuple[str, str], Condition | None] = {}
        self.costs: dict[str | tuple[str, str], float] = {}

    def add_node(self, name: str, where: str | None = None, cost: float = 0.0) -> None:
        self.network.add_node(name, where, cost)
        self.nodes[name], self.costs[name] = condition(where), cost

    def add_edge(self, source: str, target: str, where: str | None = None, cost: float = 0.0) -> None:
        self.network.add_edge(source, target, where, cost)
        self.edges[source, target], self.costs[source, target] = condition(where), cost

    def remove_node(self, name: str) -> None:
        self.network.remove_node(name)
        del self.nodes[name]
        for edge in [edge for edge in self.edges if name in edge]:
            del self.edges[edge]

    def remove_edge(self, source: str, target: str) -> None:
        self.network.remove_edge(source, target)
        del self.edges[source, target]

    def set_where(self, node_or_edge: str | tuple[str, str], where: str | None) -> None:
        self.network.set_where(node_or_edge, where)
        if isinstance(node_or_edge, str):
            self.nodes[node_or_edge] = condition(where)
        else:
            self.edges[node_or_edge] = condition(where)


def condition(where: str | None) -> Condition | None:
    return None if where is None else parse(f"WHERE {where}").where


def random_twin(
    rng: random.Random, nodes: int, density: float, acyclic: bool = False, costly: bool = False
) -> Twin:
    """Some nodes and edges have an expression; cycles, self-loops and unconnected parts unless acyclic."""
    twin = Twin()
    names = [f"n{i}" for i in range(nodes)]
    cost = (lambda: float(rng.randrange(4))) if costly else (lambda: 0.0)
    for name in rng.sample(names, len(names)):
        twin.add_node(name, random_text(rng) if rng.random() < 0.7 else None, cost())
    pairs = [(a, b) for a in range(nodes) for b in range(nodes) if not acyclic or a < b]
    for a, b in rng.sample(pairs, min(len(pairs), round(density * nodes))):
        twin.add_edge(names[a], names[b], random_text(rng) if rng.random() < 0.2 else None, cost())
    return twin
