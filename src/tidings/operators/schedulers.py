"""Which evaluations come next: four ways to decide a docket, with one contract, and two that people meet elsewhere.

`Adaptive` is what an engine uses. `Naive`, `Sequential` and `SubOrder` are those of Sub-Order 5.2, 4.1 and 4.2; all go
along an order of rows, and of predicates within a row. All give the same answers; they differ in what they evaluate.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tidings.operators.chains import order_chains
from tidings.operators.docket import Docket
from tidings.operators.kernels import choosing, opening
from tidings.operators.table import OperatorTable


class Scheduler(Protocol):
    """Says what a docket's next evaluations are."""

    shared: bool
    """Whether an answer reaches every row that asks for it at once."""

    def open(self, docket: Docket) -> None:
        """Looks at a new docket."""

    def next(self, docket: Docket, limit: int) -> np.ndarray:
        """Up to `limit` evaluations; none if nothing is left to evaluate."""


class Adaptive:
    """At every step what is expected to settle most rows for its cost, counted over the rows still undecided.

    Several at once are for different rows, so that none would have been spared by another of them.
    """

    shared = True

    def open(self, docket: Docket) -> None:
        opening.line_up(docket.arrays, docket.ev_count)

    def next(self, docket: Docket, limit: int) -> np.ndarray:
        out = np.empty(limit, dtype=np.int32)
        return out[: choosing.choose_best(docket.arrays, limit, out)]


class Naive:
    """One row after another as they come, each predicate as written; what is known is not asked again."""

    shared, past = False, False

    def open(self, docket: Docket) -> None:
        docket.row_order = self.rows(docket)
        docket.leaf_order = np.empty(len(docket.arrays.leaf), dtype=np.int32)
        choosing.arrange(docket.arrays, len(docket.rows), self.keys(docket), docket.leaf_order)

    def rows(self, docket: Docket) -> np.ndarray:
        """The rows from first to last."""
        return np.arange(len(docket.rows), dtype=np.int32)

    def keys(self, docket: Docket) -> np.ndarray:
        """A number for each predicate; a row's come from the smallest to the largest, equal ones as written."""
        return np.zeros(docket.pred_count)

    def next(self, docket: Docket, limit: int) -> np.ndarray:
        out = np.empty(1, dtype=np.int32)
        rows, leaves = docket.row_order, docket.leaf_order
        return out[: choosing.choose_next(docket.arrays, rows, leaves, self.past, out)]


class Sequential(Naive):
    """A false predicate removes all rows that have it; a row that has begun is gone through to its end."""

    shared, past = True, True


class CheapestFirst(Naive):
    """Within a row the cheapest first, as databases order conditions that call functions."""

    def keys(self, docket: Docket) -> np.ndarray:
        d = docket.arrays
        ev = d.pred["ev"][: docket.pred_count]
        return np.where(ev >= 0, d.ev["cost"][ev], 0.0)


class LikeliestFirst(CheapestFirst):
    """Within a row by cost / (1 - selectivity), the best order for a row alone."""

    def keys(self, docket: Docket) -> np.ndarray:
        false = 1.0 - docket.arrays.pred["p"][: docket.pred_count]
        with np.errstate(divide="ignore", invalid="ignore"):
            keys = super().keys(docket) / np.maximum(false, 0.0)
        return np.nan_to_num(keys, nan=0.0, posinf=np.inf)


class SubOrder(LikeliestFirst):
    """Rows in the order of their linked chains, found for all rows of an engine together."""

    shared = True

    def __init__(self) -> None:
        self._table: OperatorTable | None = None
        self._rank = np.zeros(0, dtype=np.int64)

    def rows(self, docket: Docket) -> np.ndarray:
        if docket.table is not self._table or len(self._rank) < len(docket.table):
            self._table, self._rank = docket.table, _ranks(docket.table)
        return np.argsort(self._rank[docket.rows], kind="stable").astype(np.int32)


def _ranks(table: OperatorTable) -> np.ndarray:
    """The place of every row in the order of chains."""
    programs, learnt = table.programs, table.predicates.learnt
    first, asked = programs.leaf_first.astype(np.int64), programs.leaf_asked >> 1
    # A predicate stands in a chain once, and one that needs no evaluation in none.
    row = np.repeat(np.arange(len(table)), np.diff(first))
    pairs = np.unique(np.stack([row, asked], axis=1)[programs.pred_eval[asked] >= 0], axis=0)
    starts = np.concatenate([[0], np.cumsum(np.bincount(pairs[:, 0], minlength=len(table)))])
    p, cost = np.zeros(len(programs.pred_eval)), np.ones(len(programs.pred_eval))
    opening.estimates(programs, learnt, table.predicates.events, p, cost)
    order = order_chains(starts, pairs[:, 1].astype(np.int32), p, cost).order
    rank = np.empty(len(table), dtype=np.int64)
    rank[order] = np.arange(len(table))
    return rank
