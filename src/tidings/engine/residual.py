"""Conditions that no index settles, decided by the definition, for the few pairs that are left.

Such are conditions on attributes beside triples, comparisons of two variables, and conditions of other kinds where
their own finder has not been used.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tidings.arrays import folders
from tidings.engine.contracts import Columns
from tidings.kinds.patterns import naive
from tidings.language.query import KindCondition
from tidings.language.stored_conditions import StoredConditions, Template
from tidings.model.batch import Batch
from tidings.model.pairs import Pairs
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Triple


class Residuals:
    """The kind that takes what is left of a way when a finder has been found for it."""

    name, role = "residuals", "check"
    conditions: tuple[type[KindCondition], ...] = ()

    def __init__(self, taxonomy: Taxonomy, known: tuple[type[KindCondition], ...]) -> None:
        self._taxonomy, self._known = taxonomy, known

    def builder(self) -> ResidualChecker:
        return ResidualChecker(StoredConditions(), self._taxonomy)

    def load(self, folder: Path) -> ResidualChecker:
        arrays, _ = folders.load(folder)
        return ResidualChecker(StoredConditions.thaw(arrays, self._known), self._taxonomy)


class ResidualChecker:
    """A row is the conditions of one way."""

    binds = False

    def __init__(self, conditions: StoredConditions, taxonomy: Taxonomy) -> None:
        self._conditions, self._taxonomy = conditions, taxonomy

    def __len__(self) -> int:
        return len(self._conditions)

    def prepare(self, part: Template, values: Mapping[str, str]) -> Mapping[str, str]:
        return values

    def add(self, part: Template, values: Mapping[str, str]) -> int:
        return self._conditions.add(part, values)

    def add_many(self, part: Template, columns: Columns, count: int) -> np.ndarray:
        return self._conditions.add_many(part, columns, count)

    def keep(self, rows: np.ndarray) -> None:
        self._conditions = self._conditions.kept(rows)

    def extend(self, other: ResidualChecker, rows: np.ndarray) -> None:
        """Adds some rows of another, behind its own."""
        self._conditions.extend(other._conditions, rows)

    def check(self, batch: Batch, pairs: Pairs, rows: np.ndarray) -> Pairs:
        keep = np.ones(len(pairs), dtype=np.bool_)
        graphs: dict[int, list[Triple]] = {}
        for i in np.flatnonzero((rows >= 0) & (pairs.doubt < 0)).tolist():
            event, binding = int(pairs.event[i]), int(pairs.binding[i])
            attributes = batch.attributes(event)
            if event not in graphs:
                graphs[event] = list(batch.triples(event))
            bound = batch.bindings.terms(binding) if binding >= 0 else {}
            keep[i] = attributes is not None and all(
                naive.holds(condition, bound, graphs[event], self._taxonomy, attributes)
                for condition in self._conditions.conditions(int(rows[i]))
            )
        return pairs if keep.all() else pairs.take(keep)

    def save(self, folder: Path) -> None:
        folders.save(folder, self._conditions.freeze(), {})
