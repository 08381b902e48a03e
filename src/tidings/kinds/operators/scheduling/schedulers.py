"""Schedulers choose the next evaluations of a docket: four algorithms with one contract, and two common baselines.

An engine uses `Adaptive`. `Naive`, `Sequential` and `SubOrder` are those of Sub-Order 5.2, 4.1 and 4.2; they follow an
order of rows, and of predicates within a row. All give the same answers; they differ in what they evaluate.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Protocol

import numpy as np

from tidings.kinds.operators.kernels import choosing, opening
from tidings.kinds.operators.scheduling.chains import Chains, insert, order_chains
from tidings.kinds.operators.scheduling.docket import Docket
from tidings.kinds.operators.table import OperatorTable

FEW = 0.01  # of the rows; inserting one takes milliseconds, ordering all of 80,000 a second


class Scheduler(Protocol):
    """Chooses a docket's next evaluations."""

    shared: bool
    """Whether an answer is applied at once to every row that needs it."""

    def open(self, docket: Docket) -> None:
        """Prepares a new docket."""

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
    """One row after another in their order, each predicate as written; known answers are not evaluated again."""

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
    """Rows in the order of their linked chains, found for all rows of an engine together.

    A few new rows are inserted into that order; when there are many, all rows are ordered again.
    """

    shared = True

    def __init__(self) -> None:
        self._table: OperatorTable | None = None
        self._chains = Chains(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32))
        self._p = self._cost = np.zeros(0)

    def rows(self, docket: Docket) -> np.ndarray:
        table, known = docket.table, len(self._chains.order)
        if table is not self._table or len(table) - known > FEW * known:
            self._table = table
            self._p, self._cost = _estimates(table)
            self._chains = order_chains(*_members(table, 0), self._p, self._cost)
        elif len(table) > known:
            # What is known was sorted by older estimates, which the new rows are compared by as well.
            p, cost = _estimates(table)
            p[: len(self._p)], cost[: len(self._cost)] = self._p, self._cost
            self._p, self._cost = p, cost
            first, member = _members(table, known)
            for low, high in pairwise(first.tolist()):
                self._chains = insert(self._chains, member[low:high], self._p, self._cost)
        rank = np.empty(len(table), dtype=np.int64)
        rank[self._chains.order] = np.arange(len(table))
        return np.argsort(rank[docket.rows], kind="stable").astype(np.int32)


def _members(table: OperatorTable, since: int) -> tuple[np.ndarray, np.ndarray]:
    """The predicates of the rows from one on: where each row's begin, and their numbers."""
    programs, rows = table.programs, len(table) - since
    first = programs.leaf_first[since:].astype(np.int64)
    asked = programs.leaf_asked[first[0] :] >> 1
    # A predicate is in a chain once, and one that needs no evaluation is in none.
    row = np.repeat(np.arange(rows), np.diff(first))
    pairs = np.unique(np.stack([row, asked], axis=1)[programs.pred_eval[asked] >= 0], axis=0)
    starts = np.concatenate([[0], np.cumsum(np.bincount(pairs[:, 0], minlength=rows))])
    return starts, pairs[:, 1].astype(np.int32)


def _estimates(table: OperatorTable) -> tuple[np.ndarray, np.ndarray]:
    """The selectivities and the costs of all predicates."""
    programs, predicates = table.programs, table.predicates
    p, cost = np.zeros(len(programs.pred_eval)), np.ones(len(programs.pred_eval))
    opening.estimates(programs, predicates.learnt, predicates.events, p, cost)
    return p, cost
