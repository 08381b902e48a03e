"""Small worlds in which everything meets: tables, random subscriptions and random changes, of few values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidings.dissemination.schemes import Change, Server, Side, Signature, binary
from tidings.dissemination.schemes.signature import Edge
from tidings.kinds.joins.schema.table import Row, Table

R = Table("r", {"a": "integer", "b": "integer", "payload": "text"})
S = Table("s", {"b": "integer", "c": "integer", "payload": "text"})
BINARY = binary(Side("r", (1,), 0), Side("s", (0,), 1))
VALUES = 12


def ranges(
    rng: np.random.Generator, count: int, empty: bool = True, width: int = VALUES // 2
) -> tuple[np.ndarray, np.ndarray]:
    """Ranges over the values; a few are points, a few are empty."""
    low = rng.integers(-1, VALUES, count) * (VALUES // 2) // width
    return low, low + rng.integers(-1 if empty else 0, width, count)


def binary_server(seed: int, subscriptions: int) -> Server:
    rng = np.random.default_rng(seed)
    server = Server([R, S])
    server.subscribe(BINARY, [ranges(rng, subscriptions), ranges(rng, subscriptions)])
    return server


def random_row(rng: np.random.Generator, table: Table, keys: int) -> Row:
    """A row of random numbers: few join values, so that rows meet; now and then a NULL, now and then an old row."""
    row: list[object] = []
    for name in table.names:
        if name == "payload":
            row.append("xyz"[int(rng.integers(3))] * 4)
        elif rng.random() < 0.03:
            row.append(None)
        else:
            row.append(int(rng.integers(keys if name.startswith("b") else VALUES)))
    return tuple(row)


def changes(
    rng: np.random.Generator, server: Server, count: int, keys: int = 2, rows: int = 8
) -> Iterator[Change]:
    """Inserts, deletes and updates of what is there then; about `rows` rows a table stay."""
    for _ in range(count):
        table = list(server.tables.values())[int(rng.integers(len(server.tables)))]
        present = server.contents()[table.name]
        what = rng.random()
        if present and what < 0.3:
            old = present[int(rng.integers(len(present)))]
            yield Change(table.name, random_row(rng, table, keys), old)
        elif present and (what < 0.6 or len(present) >= rows):
            yield Change(table.name, old=present[int(rng.integers(len(present)))])
        else:
            yield Change(table.name, new=random_row(rng, table, keys))


CENTRE = Table("s", {"b1": "integer", "b2": "integer", "b3": "integer", "c": "integer"})
STAR = [
    Table("r", {"a": "integer", "b": "integer"}),
    CENTRE,
    Table("t", {"b": "integer", "d": "integer"}),
    Table("u", {"b": "integer", "e": "integer"}),
]


def star(*others: str) -> Signature:
    """S joined with some of R, T and U, on a column for each."""
    joins = {
        "r": (0, 1, 0),
        "t": (1, 0, 1),
        "u": (2, 0, 1),
    }  # column of S, column of the other, its selection
    edges = tuple(
        Edge(0, place, (joins[name][0],), (joins[name][1],)) for place, name in enumerate(others, start=1)
    )
    return Signature(("s", *others), edges, (3, *(joins[name][2] for name in others)))
