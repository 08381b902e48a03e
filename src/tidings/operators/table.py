"""The programs of an engine's subscriptions, a row each, in growing columns. See kernels/layout.py for a drawing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tidings.arrays.growing import Growing
from tidings.operators.kernels.layout import CONFIRMED, NEGATED, OR, Programs
from tidings.operators.predicates import Find, Predicates, renumbered
from tidings.operators.program import Program

_COLUMNS = {
    "gate_first": np.int32,
    "gate_kind": np.uint8,
    "gate_parent": np.int32,
    "gate_size": np.int32,
    "leaf_first": np.int32,
    "leaf_gate": np.int32,
    "leaf_asked": np.int32,
}


class OperatorTable:
    """Rows are added and never changed; a row that belongs to nobody any more is left out by `kept`."""

    def __init__(self, find: Find) -> None:
        self.find = find
        self.predicates = Predicates(find)
        self._columns = {name: Growing(dtype) for name, dtype in _COLUMNS.items()}
        self._columns["gate_first"].append(0)
        self._columns["leaf_first"].append(0)
        self._binds = Growing(np.bool_)
        self._scratch = [np.empty(0, dtype=np.int32)] * 2

    def __len__(self) -> int:
        return len(self._columns["gate_first"]) - 1

    @property
    def programs(self) -> Programs:
        columns = {name: column.all for name, column in self._columns.items()}
        predicates = self.predicates
        return Programs(
            **columns, pred_eval=predicates.pred_eval.all, eval_operator=predicates.eval_operator.all
        )

    @property
    def is_concurrent(self) -> bool:
        """Whether an operator is better asked about several events at once."""
        return any(
            (operator := self.find(name)).is_async or operator.batch
            for name in self.predicates.operators.numbers
        )

    @property
    def scratch(self) -> tuple[np.ndarray, np.ndarray]:
        """A place for every predicate and evaluation, all -1, for a docket while it is opened."""
        for at, wanted in enumerate((len(self.predicates.pred_eval), len(self.predicates.eval_operator))):
            if len(self._scratch[at]) < wanted:
                self._scratch[at] = np.full(2 * wanted, -1, dtype=np.int32)
        return self._scratch[0], self._scratch[1]

    @property
    def binds(self) -> np.ndarray:
        """Of each row whether it has variables."""
        return self._binds.all

    def add(self, program: Program, values: Mapping[str, str]) -> int:
        """A row; `values` are the N-Triples texts of the program's parameters."""
        # All texts first: one that cannot be made must leave nothing behind.
        texts = [
            (leaf.predicate.filled(values), leaf.evaluation.filled(values) if leaf.evaluation else None)
            for leaf in program.leaves
        ]
        number = self.predicates.number
        columns = self._columns
        columns["leaf_asked"].extend(
            [number(*text) << 1 | leaf.negated for text, leaf in zip(texts, program.leaves, strict=True)]
        )
        columns["leaf_gate"].extend([leaf.gate for leaf in program.leaves])
        columns["leaf_first"].append(len(columns["leaf_gate"]))
        columns["gate_kind"].extend(
            [gate.is_or * OR | gate.confirmed * CONFIRMED | gate.negated * NEGATED for gate in program.gates]
        )
        columns["gate_parent"].extend([gate.parent for gate in program.gates])
        columns["gate_size"].extend([gate.size for gate in program.gates])
        columns["gate_first"].append(len(columns["gate_kind"]))
        self._binds.append(program.binds)
        return len(self) - 1

    def kept(self, rows: np.ndarray) -> OperatorTable:
        """A table of some rows in this order, with the predicates they ask for and what was learnt of them."""
        made, old = OperatorTable(self.find), {name: column.all for name, column in self._columns.items()}
        gates, gate_first = _taken(old["gate_first"], rows)
        leaves, leaf_first = _taken(old["leaf_first"], rows)
        asked = old["leaf_asked"][leaves]
        used, places = renumbered(asked >> 1)
        made.predicates = self.predicates.kept(used)
        arrays = {
            **{name: old[name][gates] for name in ("gate_kind", "gate_parent", "gate_size")},
            "gate_first": gate_first,
            "leaf_first": leaf_first,
            "leaf_gate": old["leaf_gate"][leaves],
            "leaf_asked": places << 1 | asked & 1,
        }
        made._columns = {name: Growing(dtype, arrays[name]) for name, dtype in _COLUMNS.items()}
        made._binds = Growing(np.bool_, self._binds.all[rows])
        return made

    def freeze(self) -> dict[str, np.ndarray]:
        columns = {name: column.all for name, column in self._columns.items()}
        return {**columns, "binds": self._binds.all, **self.predicates.freeze()}

    @classmethod
    def thaw(cls, arrays: Mapping[str, np.ndarray], find: Find) -> OperatorTable:
        made = cls(find)
        made.predicates = Predicates.thaw(arrays, find)
        made._columns = {name: Growing(dtype, arrays[name]) for name, dtype in _COLUMNS.items()}
        made._binds = Growing(np.bool_, arrays["binds"])
        return made


def _taken(first: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the items of some rows are, and where those of each row begin among them."""
    sizes = first[rows + 1] - first[rows]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return np.repeat(first[rows] - starts[:-1], sizes) + np.arange(starts[-1]), starts
