"""Draws tables, subscriptions and changes of a scenario, as Select-joins does: Table 2 and Section 6.

R(id, b, a, payload) and S(id, b, c, payload) are joined on b. Ranges on a and c lie around two centres each. Rows of a join value
lie around a mean of their own; the numbers of S rows for a join value follow Zipf's law, and 30 % of the values have none. A change
inserts a row into R or deletes the oldest one, in turn, so that R keeps its size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tidings.dissemination.schemes.message import Longs
from tidings.dissemination.schemes.server import Change, Server
from tidings.dissemination.schemes.signature import Side, binary
from tidings.kinds.joins.schema.table import Row, Table

DOMAIN = 100_000
_JOINING, _ZIPF = 0.7, 0.8
_R, _S = (30_000, 70_000, 10_000, 20_000, 5_000), (15_000, 85_000, 6_000, 6_000, 5_000)
"""Of ranges: low and high centre, their deviation, width and its deviation."""


@dataclass(frozen=True, slots=True)
class Workload:
    subscriptions: int = 10_000
    r_rows: int = 16_000
    s_rows: int = 5_100
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
        columns = {"id": "integer", "b": "integer"}
        tables = [
            Table(name, columns | {column: "integer", "payload": "text"}, key=["id"], payload=["payload"])
            for name, column in (("r", "a"), ("s", "c"))
        ]
        self.server = Server(tables)
        signature = binary(Side("r", (1,), 2), Side("s", (1,), 2))
        self.server.subscribe(signature, [self._ranges(_R), self._ranges(_S)])
        values = workload.join_values
        side = np.where(self._rng.permutation(values) % 2, 25_000, 75_000)
        self._means = {
            "r": (self._rng.normal(side, 3_000), 8_000),
            "s": (self._rng.normal(50_000, 10_000, values), 3_000),
        }
        self._ids = 0
        self._oldest: deque[Row] = deque()
        weight = np.zeros(values)
        joining = max(1, round(values * _JOINING))
        weight[self._rng.permutation(values)[:joining]] = 1 / np.arange(1, joining + 1) ** _ZIPF
        chosen = self._rng.choice(values, workload.s_rows, p=weight / weight.sum())
        self.server.load("s", (self._row("s", int(value)) for value in chosen))
        self.server.load("r", [self._next_of_r() for _ in range(workload.r_rows)])
        self.server.build()

    def changes(self) -> Iterator[Change]:
        while True:
            yield Change("r", new=self._next_of_r())
            yield Change("r", old=self._oldest.popleft())

    def _next_of_r(self) -> Row:
        self._oldest.append(self._row("r", self._ids % self._workload.join_values))
        return self._oldest[-1]

    def _row(self, table: str, value: int) -> Row:
        means, deviation = self._means[table]
        at = int(np.clip(round(self._rng.normal(means[value], deviation)), 0, DOMAIN))
        self._ids += 1
        payload = f"{table}{self._ids}".ljust(self._workload.payload, ".")[: self._workload.payload]
        return (self._ids, value, at, payload)

    def _ranges(self, shape: tuple[int, int, int, int, int]) -> tuple[Longs, Longs]:
        low, high, spread, width, deviation = shape
        count, rng = self._workload.subscriptions, self._rng
        centre = rng.normal(np.where(rng.random(count) < 0.5, low, high), spread)
        half = np.abs(rng.normal(width, deviation, count)) / 2
        ends = (np.clip(np.rint(end), 0, DOMAIN).astype(np.int64) for end in (centre - half, centre + half))
        return next(ends), next(ends)
