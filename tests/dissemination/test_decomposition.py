"""Decompositions: the cheapest, and right whichever is chosen."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.dissemination.schemes.worlds import STAR, changes, ranges, star
from tidings.dissemination.decomposition import decompose
from tidings.dissemination.schemes import SCHEMES, Server, Signature, naive
from tidings.dissemination.schemes.client import Client
from tidings.dissemination.schemes.signature import Edge, Semijoin
from tidings.kinds.joins.schema.table import Table

MIX = [star("r"), star("r", "t"), star("r", "t", "u"), star("t", "u")]


def random_graph(rng: np.random.Generator, names: str) -> Signature:
    """A connected graph, now and then with cycles, on some of the tables."""
    tables = tuple(rng.permutation(list(names))[: int(rng.integers(2, len(names) + 1))].tolist())
    edges = [Edge(int(rng.integers(place)), place, (0,), (0,)) for place in range(1, len(tables))]
    for _ in range(int(rng.integers(3))):
        left, right = sorted(rng.integers(len(tables), size=2).tolist())
        if left < right and not any((edge.left, edge.right) == (left, right) for edge in edges):
            edges.append(Edge(left, right, (0,), (0,)))
    return Signature(tables, tuple(edges), (1,) * len(tables))


def test_greedy_is_the_best_of_all() -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        signatures = list(dict.fromkeys(random_graph(rng, "rstu") for _ in range(3)))
        counts = {signature: int(rng.integers(1, 100)) for signature in signatures}
        prices: dict[Semijoin, float] = {}

        def cost(form: Semijoin, prices=prices, rng=rng) -> float:
            return prices.setdefault(form, float(rng.integers(1, 20)))

        found = decompose(signatures, cost)
        best = sum(
            min(
                sum(cost(form) for form in choice) * counts[signature]
                for choice in product(*(tuple(signature.semijoins(t)) for t in signature.tables))
            )
            for signature in signatures
        )
        total = sum(cost(form) * counts[signature] for signature, forms in found.items() for form in forms)
        assert total == pytest.approx(best)
        for signature, forms in found.items():
            assert [form.base.table for form in forms] == list(signature.tables)


def run(server: Server, name: str, people: int, count: int, rng: np.random.Generator) -> None:
    scheme = SCHEMES[name](server)
    clients = [Client(server.subscription(number)) for number in range(people)]
    seen = 0
    for change in changes(rng, server, count, keys=2, rows=7):
        messages = scheme.messages(change)
        for client in clients:
            for message in messages:
                client.receive(message)
            assert client.result() == naive.join(client.subscription, server.tables, server.contents())
            seen += len(client.result())
    assert seen > people  # or nothing was tested


@pytest.mark.parametrize("name", SCHEMES)
def test_clients_join_what_they_get(name: str) -> None:
    """Whatever the decomposition, joining the binary semijoins gives the result of the whole join."""
    rng = np.random.default_rng(len(name))
    server = Server(STAR)
    decomposition = decompose(MIX, lambda form: float(rng.random()))
    for signature in MIX:
        server.subscribe(
            signature, [ranges(rng, 4, width=15) for _ in signature.tables], decomposition[signature]
        )
    run(server, name, 16, 80, rng)


@pytest.mark.parametrize("name", ["Ref-J", "Enum-J", "Enum-SJ", "Ref-SJ-Clu+"])
def test_a_join_graph_with_a_cycle(name: str) -> None:
    triangle = Signature(
        ("x", "y", "z"),
        (Edge(0, 1, (0,), (0,)), Edge(1, 2, (1,), (0,)), Edge(0, 2, (1,), (1,))),
        (2, 2, None),
    )
    tables = [Table(name, {"b": "integer", "b2": "integer", "a": "integer"}) for name in "xyz"]
    rng = np.random.default_rng(7)
    server = Server(tables)
    forms = decompose([triangle], lambda form: float(rng.random()))[triangle]
    everything = (np.zeros(8), np.zeros(8))
    server.subscribe(triangle, [ranges(rng, 8, width=15), ranges(rng, 8, width=15), everything], forms)
    run(server, name, 8, 80, rng)


@pytest.mark.parametrize("name", SCHEMES)
def test_one_table_alone(name: str) -> None:
    alone = Signature(("r",), (), (0,))
    rng = np.random.default_rng(2)
    server = Server([STAR[0]])
    server.subscribe(alone, [ranges(rng, 10)])
    assert decompose([alone], lambda form: 1.0) == {alone: ()}
    run(server, name, 10, 40, rng)
