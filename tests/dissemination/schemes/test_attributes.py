"""One selection attribute of several: the choice, and that subscribers who apply the rest have the result."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from tests.kinds.joins.cases import some_query, some_row, some_tables
from tidings.dissemination.decomposition import decompose
from tidings.dissemination.schemes import SCHEMES, Change, Server
from tidings.dissemination.schemes.attributes import choose, held_share, relax
from tidings.dissemination.schemes.client import Client
from tidings.kinds.joins import naive
from tidings.kinds.joins.schema.ranges import Range
from tidings.kinds.joins.schema.shape import read
from tidings.kinds.joins.schema.table import Table
from tidings.language.parser import parse


def test_the_share_of_pairs() -> None:
    keys, low, high = np.array([5, 1, 3]), np.array([1, 4, 6]), np.array([3, 4, 5])
    assert held_share(keys, low, high) == 2 / 9


def test_the_attribute_whose_ranges_hold_least_is_chosen() -> None:
    table = Table("t", {"near": "integer", "far": "number", "name": "text"})
    rng = np.random.default_rng(1)
    rows = [(int(rng.integers(10)), float(rng.integers(1_000)), "x") for _ in range(50)]
    wide = np.array([[0, 9]] * 20)  # longer in keys or not, it holds everything
    narrow = np.array([[0, 2**62]] * 20)
    narrow[:, 0] = np.iinfo(np.int64).max // 2
    assert choose(table, [0, 1, 2], rows, {0: wide, 1: narrow, 2: wide}, rng) == 1
    assert choose(table, [0, 2], rows, {0: wide, 2: wide}, rng) == 0
    assert choose(table, [2], rows, {2: wide}, rng) is None


def test_texts_are_left_to_the_subscribers() -> None:
    tables = {
        "a": Table("a", {"name": "text", "k": "integer"}),
        "b": Table("b", {"k": "integer", "n": "integer"}),
    }
    query = parse("SELECT * FROM a JOIN b USING (k) WHERE name = 'x' AND n IN (1, 3)")
    shape, ranges = read(query, tables)
    rows = {"a": [("x", 1)], "b": [(1, 1), (1, 2)]}
    found = relax(shape, [ranges], tables, rows, np.random.default_rng(1))
    assert found.signature.selections == (None, 1)
    assert [found.left[0]("b", row) for row in rows["b"]] == [True, False]
    assert (found.ranges[1][0][0], found.ranges[1][1][0]) == (1, 3)
    assert isinstance(ranges[0], Range)


@pytest.mark.parametrize("seed", range(8))
def test_every_scheme_gives_every_client_its_result(seed: int) -> None:
    """Random tables of all types, joins of all kinds and conditions, against the definition of what a join is told."""
    rng, draw = random.Random(seed), np.random.default_rng(seed)
    tables = {table.name: table for table in some_tables(rng, rng.choice((2, 3, 4)))}
    begin = {name: [table.read(some_row(rng, table)) for _ in range(4)] for name, table in tables.items()}
    server = Server(tables.values())
    clients: list[tuple[Client, tuple]] = []
    for _ in range(6):
        shape, ranges = read(some_query(rng, list(tables.values())).query, tables)
        found = relax(shape, [ranges], tables, begin, draw)
        forms = decompose([found.signature], lambda form: float(draw.random()))[found.signature]
        (number,) = server.subscribe(found.signature, found.ranges, forms)
        clients.append((server.subscription(number), found.left[0], shape, ranges))
    schemes = {name: scheme(server) for name, scheme in SCHEMES.items()}
    copies = {name: [Client(one, left) for one, left, _, _ in clients] for name in schemes}
    seen = 0
    for _ in range(100):
        table = tables[rng.choice(list(tables))]
        present = server.contents()[table.name]
        new = (
            table.read(some_row(rng, table))
            if (len(present) < 6 and rng.random() < 0.7) or not present
            else None
        )
        old = rng.choice(present) if present and (new is None or rng.random() < 0.4) else None
        for step in server.steps(Change(table.name, new, old)):
            for name, scheme in schemes.items():
                for message in scheme.step(step):
                    for client in copies[name]:
                        client.receive(message)
        rows = {name: Counter(there) for name, there in server.contents().items()}
        for place, (_, _, shape, ranges) in enumerate(clients):
            result = naive.result(shape, ranges, rows)
            for name in schemes:
                assert copies[name][place].result() == result, name
            seen += len(result)
    assert seen  # or nothing was tested
