"""A docket holds one event's undecided subscriptions: which evaluations are left, and what each of them decides.

A scheduler chooses evaluations by number, and `settle` takes their answers; gates that need more than truth values are
in `awaiting`, and `confirm` takes their truth. When nothing is undecided, `verdicts` has the truth of each row.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidings.kinds.operators.kernels import choosing, deciding, layout, opening
from tidings.kinds.operators.table import OperatorTable

_NONE = np.empty(0, dtype=np.int32)


class Docket:
    """`shared`: an answer is applied to every row that needs it at once, not only when the scheduler reaches the row."""

    def __init__(self, table: OperatorTable, rows: np.ndarray, shared: bool = True) -> None:
        self.table, self.rows, self.shared = table, rows, shared
        self.programs = table.programs
        self.learnt = table.predicates.learnt
        self.now = table.predicates.events
        gates, leaves = opening.sizes(self.programs, rows)
        preds = min(leaves, len(self.programs.pred_eval))
        evs = min(preds, len(self.programs.eval_operator))
        self.arrays = _arrays(len(rows), gates, leaves, preds, evs)
        self.row_order = self.leaf_order = _NONE
        """For schedulers that go along an order."""
        scratch = table.scratch
        self.pred_count, self.ev_count = opening.open_rows(
            self.programs, self.learnt, self.now, rows, *scratch, self.arrays
        )

    @property
    def undecided(self) -> int:
        """The number of undecided rows."""
        return int(self.arrays.counters[layout.UNDECIDED])

    @property
    def verdicts(self) -> np.ndarray:
        """The truth of each row, 0 where it is undecided."""
        return self.arrays.gate["state"][self.arrays.g0[:-1]]

    def known_at_once(self) -> np.ndarray:
        """The predicates that need no evaluation."""
        return np.flatnonzero(self.arrays.pred["ev"][: self.pred_count] < 0).astype(np.int32)

    def know(self, preds: np.ndarray, truths: np.ndarray) -> None:
        self.arrays.pred["truth"][preds] = truths
        choosing.know(self.arrays, preds)

    def settle(self, evs: np.ndarray, values: np.ndarray, seconds: np.ndarray) -> None:
        """Applies answers: a truth for all predicates of an evaluation, or 0 if each has its own already."""
        choosing.settle(self.arrays, self.programs, self.learnt, self.now, evs, values, seconds, self.shared)

    def predicates(self, ev: int) -> np.ndarray:
        """The predicates of an evaluation."""
        d = self.arrays
        return d.ev_pred[d.ev_first[ev] : d.ev_first[ev + 1]]

    def awaiting(self) -> Iterator[tuple[int, int]]:
        """The gates that began to wait for a confirmation since the last call: row, and gate within the row."""
        d = self.arrays
        waiting = d.awaited[: d.counters[layout.AWAITED]].tolist()
        d.counters[layout.AWAITED] = 0
        for gate in waiting:
            row = int(np.searchsorted(d.g0, gate, side="right")) - 1
            yield row, gate - int(d.g0[row])

    def waits(self, row: int, gate: int) -> bool:
        """Whether a gate still waits."""
        return bool(self.arrays.gate["state"][self.arrays.g0[row] + gate] == layout.AWAITING)

    def dismiss(self, row: int) -> None:
        """Leaves a row without an answer, unless it has one."""
        deciding.dismiss(self.arrays, int(self.arrays.g0[row]))

    def rewind(self) -> None:
        """Restarts the order from its beginning: a confirmation may need a leaf that was skipped."""
        self.arrays.counters[layout.AT_ROW] = self.arrays.counters[layout.AT_LEAF] = 0

    def confirm(self, row: int, gate: int, value: int) -> None:
        deciding.confirm(self.arrays, int(self.arrays.g0[row]) + gate, value)


def _arrays(rows: int, gates: int, leaves: int, preds: int, evs: int) -> layout.DocketArrays:
    return layout.DocketArrays(
        g0=np.empty(rows + 1, np.int32),
        gate=np.empty(gates, layout.GATE),
        leaf=np.empty(leaves, layout.LEAF),
        pred=np.empty(preds, layout.PREDICATE),
        pred_id=np.empty(preds, np.int32),
        pred_first=np.empty(preds + 1, np.int32),
        pred_leaf=np.empty(leaves, np.int32),
        ev=np.empty(evs + 1, layout.EVALUATION),
        ev_id=np.empty(evs, np.int32),
        ev_first=np.empty(evs + 1, np.int32),
        ev_pred=np.empty(preds, np.int32),
        bucket=np.empty(layout.BUCKETS, np.int32),
        # A gate that has a child less may bring evaluations in again.
        links=np.empty((evs + leaves, 2), np.int32),
        aside=np.empty(evs + leaves, np.int32),
        awaited=np.empty(gates + 1, np.int32),
        counters=np.empty(layout.COUNTERS, np.int64),
    )
