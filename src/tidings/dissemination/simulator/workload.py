"""Draws tables, subscriptions and changes of a scenario, as Select-joins does: Table 2 and Section 6.

R(id, b, a, payload) and S(id, b, c, payload) are joined on b. Ranges on a and c lie around two centres each. Rows of a join value
lie around a mean of their own; the numbers of S rows for a join value follow Zipf's law, and 30 % of the values have none. A change
inserts a row into R or deletes the oldest one, in turn, so that R keeps its size.

With three tables the join is a chain: S has a column d more, by which T(id, d, e, payload) is joined, and changes go round all tables. S is
filtered by R or by T, which costs less by the parametric model (Appendix D); the longer semijoins of Appendix F are by both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from tidings.dissemination.costs import TableStatistics, parametric
from tidings.dissemination.decomposition import decompose
from tidings.dissemination.schemes.message import Longs
from tidings.dissemination.schemes.server import Change, Server
from tidings.dissemination.schemes.signature import Edge, Side, Signature, binary
from tidings.kinds.joins.schema.table import Row, Table

DOMAIN = 100_000
_JOINING, _ZIPF = 0.7, 0.8
_R, _S = (30_000, 70_000, 10_000, 20_000, 5_000), (15_000, 85_000, 6_000, 6_000, 5_000)
"""Of ranges: low and high centre, their deviation, width and its deviation."""
_COLUMNS = {"r": ["id", "b", "a"], "s": ["id", "b", "c", "d"], "t": ["id", "d", "e"]}


@dataclass(frozen=True, slots=True)
class Workload:
    tables: int = 2
    """2, or 3: a chain."""
    subscriptions: int = 10_000
    r_rows: int = 16_000
    s_rows: int = 5_100
    t_rows: int = 5_100
    """Of the third table."""
    join_values: int = 100
    payload: int = 100
    """Bytes of each row's payload."""
    changes: int = 1_000
    """How many are measured."""
    seed: int = 1


class Drawn:
    """A server with the subscriptions and rows of a workload, and its changes, which go on as long as they are taken."""

    def __init__(self, workload: Workload) -> None:
        self._rng = np.random.default_rng(workload.seed)
        self._workload = workload
        columns = _COLUMNS if workload.tables == 3 else {name: _COLUMNS[name][:3] for name in "rs"}
        self.server = Server(
            Table(
                name,
                dict.fromkeys(numbers, "integer") | {"payload": "text"},
                key=["id"],
                payload=["payload"],
            )
            for name, numbers in columns.items()
        )
        self._subscribe()
        values = workload.join_values
        side = np.where(self._rng.permutation(values) % 2, 25_000, 75_000)
        self._means = {
            "r": (self._rng.normal(side, 3_000), 8_000),
            "s": (self._rng.normal(50_000, 10_000, values), 3_000),
        }
        self._ids = 0
        self._oldest: dict[str, deque[Row]] = {name: deque() for name in columns}
        weight = np.zeros(values)
        joining = max(1, round(values * _JOINING))
        weight[self._rng.permutation(values)[:joining]] = 1 / np.arange(1, joining + 1) ** _ZIPF
        self._weight = weight / weight.sum()
        chosen = self._rng.choice(values, workload.s_rows, p=self._weight)
        self.server.load("s", [self._next("s", int(value)) for value in chosen])
        self.server.load("r", [self._next("r") for _ in range(workload.r_rows)])
        if workload.tables == 3:
            self._means["t"] = (self._rng.normal(side, 3_000), 8_000)
            self.server.load("t", [self._next("t") for _ in range(workload.t_rows)])
        self.server.build()

    def _subscribe(self) -> None:
        r, s = Side("r", (1,), 2), Side("s", (1,), 2)
        limits = [self._ranges(_R), self._ranges(_S)]
        if self._workload.tables == 2:
            self.server.subscribe(binary(r, s), limits)
            return
        edges = (Edge(0, 1, r.join, s.join), Edge(1, 2, (3,), (1,)))
        chain = Signature(("r", "s", "t"), edges, (2, 2, 2))
        rows = {"r": self._workload.r_rows, "s": self._workload.s_rows, "t": self._workload.t_rows}
        statistics = TableStatistics(
            dict.fromkeys(rows, 1 / 3),
            {
                side: max(1.0, rows[side.table] / self._workload.join_values)
                for table in rows
                for form in chain.semijoins(table)
                for side in form
            },
        )
        chosen = decompose([chain], lambda form: parametric(form, statistics))[chain]
        self.server.subscribe(chain, [*limits, self._ranges(_R)], chosen)

    def changes(self) -> Iterator[Change]:
        for table in cycle(self.server.tables if self._workload.tables == 3 else "r"):
            drawn = int(self._rng.choice(len(self._weight), p=self._weight)) if table == "s" else None
            yield Change(table, new=self._next(table, drawn))
            yield Change(table, old=self._oldest[table].popleft())

    def _next(self, table: str, value: int | None = None) -> Row:
        """A new row, of the next join value if none is given."""
        value = self._ids % self._workload.join_values if value is None else value
        means, deviation = self._means[table]
        at = int(np.clip(round(self._rng.normal(means[value], deviation)), 0, DOMAIN))
        self._ids += 1
        payload = f"{table}{self._ids}".ljust(self._workload.payload, ".")[: self._workload.payload]
        is_middle = table == "s" and self._workload.tables == 3
        further = (int(self._rng.integers(len(self._weight))),) if is_middle else ()
        self._oldest[table].append((self._ids, value, at, *further, payload))
        return self._oldest[table][-1]

    def _ranges(self, shape: tuple[int, int, int, int, int]) -> tuple[Longs, Longs]:
        low, high, spread, width, deviation = shape
        count, rng = self._workload.subscriptions, self._rng
        centre = rng.normal(np.where(rng.random(count) < 0.5, low, high), spread)
        half = np.abs(rng.normal(width, deviation, count)) / 2
        ends = (np.clip(np.rint(end), 0, DOMAIN).astype(np.int64) for end in (centre - half, centre + half))
        return next(ends), next(ends)
