"""Conditions that are kept in an index for later steps, in columns: what texts of one shape share stands once.

A row is a template, conditions with parameters, and the numbers of its constants. So a hundred thousand residual
conditions of one shape cost some bytes each, and none is parsed when a row is needed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from tidings.arrays.bounds import are_texts, ascends, constants_fit
from tidings.arrays.vocabulary import Vocabulary, join_texts, thaw_texts
from tidings.language.parameters import parameters, substitute
from tidings.language.query import And, Condition, KindCondition, Query, Variable
from tidings.language.query_json import from_json, to_json
from tidings.model.terms import from_ntriples

_REMEMBERED = 10_000
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Template:
    """Conditions with parameters; for conditions with calls also the variables that triples bind, and those that the
    subscription selects (None: all)."""

    conditions: tuple[Condition, ...]
    bound: tuple[Variable, ...] = ()
    select: tuple[Variable, ...] | None = None

    @property
    def parameters(self) -> tuple[str, ...]:
        return parameters(Query(And(self.conditions)))


class StoredConditions:
    """Rows of conditions; `conditions` gives a row's with its constants."""

    def __init__(self) -> None:
        self.row_template = array("i")
        self._names: list[tuple[str, ...]] = []
        self._first = array("q", [0])
        self._constants = array("i")
        self._texts = Vocabulary()
        self._templates = Vocabulary()  # in JSON: those of arbitrary texts are as many as the texts
        self._decoded: dict[int, Template] = {}
        self._numbers: dict[int, tuple[Template, int]] = {}
        self._kinds: tuple[type[KindCondition], ...] = ()
        self._known: dict[int, tuple[Condition, ...]] = {}

    def __len__(self) -> int:
        return len(self.row_template)

    def add(self, template: Template, values: Mapping[str, str]) -> int:
        """A row; `values` are the N-Triples texts of the template's parameters."""
        number = self._template(template)
        self.row_template.append(number)
        self._constants.extend([self._texts.number(values[name]) for name in self._names[number]])
        self._first.append(len(self._constants))
        return len(self) - 1

    def add_many(
        self, template: Template, columns: Mapping[str, tuple[np.ndarray, list[str]]], count: int
    ) -> np.ndarray:
        """Many rows of one template: for each parameter the codes of the rows and the N-Triples texts they mean."""
        number, first = self._template(template), len(self)
        names = self._names[number]
        constants = np.empty((count, len(names)), dtype=np.int32)
        for i, name in enumerate(names):
            codes, texts = columns[name]
            constants[:, i] = self._texts.number_all(texts)[codes]
        self.row_template.frombytes(np.full(count, number, dtype=np.int32).tobytes())
        starts = len(self._constants) + len(names) * np.arange(1, count + 1, dtype=np.int64)
        self._first.frombytes(starts.tobytes())
        self._constants.frombytes(constants.tobytes())
        return np.arange(first, first + count, dtype=np.int32)

    def _template(self, template: Template) -> int:
        known = self._numbers.get(id(template))
        if known is None:
            number = self._templates.number(to_json((template.conditions, template.bound, template.select)))
            if number == len(self._names):
                self._names.append(template.parameters)
            _remember(self._decoded, number, template)
            # With the template: its id stays its own.
            known = _remember(self._numbers, id(template), (template, number))
        return known[1]

    def values(self, row: int) -> dict[str, Any]:
        """The constants of a row by the names of its parameters."""
        names = self._names[self.row_template[row]]
        numbers = self._constants[self._first[row] : self._first[row + 1]]
        return {name: from_ntriples(self._texts.text(n)) for name, n in zip(names, numbers, strict=True)}

    def template(self, number: int) -> Template:
        """What rows of this template share."""
        found = self._decoded.get(number)
        if found is None:
            text = self._templates.text(number)
            found = _remember(self._decoded, number, Template(*from_json(text, self._kinds)))
        return found

    def template_of(self, row: int) -> Template:
        return self.template(self.row_template[row])

    def conditions(self, row: int) -> tuple[Condition, ...]:
        """The conditions of a row."""
        found = self._known.get(row)
        if found is None:
            conditions = filled(self.template_of(row).conditions, self.values(row))
            found = _remember(self._known, row, conditions)
        return found

    def kept(self, rows: np.ndarray) -> StoredConditions:
        """Some of the rows, in this order."""
        made = StoredConditions()
        made._kinds = self._kinds
        made.extend(self, rows)
        return made

    def extend(self, other: StoredConditions, rows: np.ndarray) -> None:
        """Adds some rows of another, in this order."""
        used, position = np.unique(np.array(other.row_template, dtype=np.int32)[rows], return_inverse=True)
        numbers = self._templates.number_all([other._templates.text(number) for number in used.tolist()])
        for number, known in zip(used.tolist(), numbers.tolist(), strict=True):
            if known == len(self._names):
                self._names.append(other._names[number])
        self.row_template.frombytes(numbers[position].tobytes())
        first = np.array(other._first)
        sizes = first[rows + 1] - first[rows]
        ends = np.cumsum(sizes)
        at = np.repeat(first[rows] - (ends - sizes), sizes) + np.arange(sizes.sum())
        used, position = np.unique(np.array(other._constants, dtype=np.int32)[at], return_inverse=True)
        numbers = self._texts.number_all([other._texts.text(number) for number in used.tolist()])
        self._first.frombytes((len(self._constants) + ends).astype(np.int64).tobytes())
        self._constants.frombytes(numbers[position].tobytes())

    def freeze(self) -> dict[str, np.ndarray]:
        """The rows as arrays, for `thaw`."""
        arrays: dict[str, np.ndarray] = {}
        for name, texts in (("template", self._templates), ("constant", self._texts)):
            arrays[f"{name}_blob"], arrays[f"{name}_start"] = join_texts(texts.numbers)
        return arrays | {
            "row_template": np.array(self.row_template, dtype=np.int32),
            "row_first": np.array(self._first, dtype=np.int64),
            "row_constants": np.array(self._constants, dtype=np.int32),
        }

    @classmethod
    def thaw(
        cls, arrays: Mapping[str, np.ndarray], conditions: Iterable[type[KindCondition]] = ()
    ) -> StoredConditions:
        """What `freeze` gave; a ValueError if the arrays do not fit each other."""
        made = cls()
        made._kinds = tuple(conditions)
        for name in ("template", "constant"):
            blob, start = arrays[f"{name}_blob"], arrays[f"{name}_start"]
            if not ascends(start, len(blob)) or not are_texts(blob, start):
                raise ValueError(f"{name}_start does not fit its texts")
        if not constants_fit(arrays["constant_blob"], arrays["constant_start"]):
            raise ValueError("constant_blob has texts that are no constants")

        def texts(name: str) -> list[str]:
            return thaw_texts({"blob": arrays[f"{name}_blob"], "start": arrays[f"{name}_start"]})

        made._templates = Vocabulary(texts("template"))
        made._names = [made.template(number).parameters for number in range(len(made._templates))]
        made._texts = Vocabulary(texts("constant"))
        made._check(arrays["row_template"], arrays["row_first"], arrays["row_constants"])
        made.row_template = array("i", arrays["row_template"].tobytes())
        made._first = array("q", arrays["row_first"].tobytes())
        made._constants = array("i", arrays["row_constants"].tobytes())
        return made

    def _check(self, row: np.ndarray, first: np.ndarray, constants: np.ndarray) -> None:
        widths = np.array([len(names) for names in self._names], dtype=np.int64)
        fits = (
            bool(np.all((row >= 0) & (row < len(self._names))))
            and len(first) == len(row) + 1
            and first[0] == 0
            and first[-1] == len(constants)
            and bool(np.all(np.diff(first) == (widths[row] if len(row) else 0)))
            and bool(np.all((constants >= 0) & (constants < len(self._texts))))
        )
        if not fits:
            raise ValueError("the rows of stored conditions do not fit their templates")


def filled(conditions: tuple[Condition, ...], values: Mapping[str, Any]) -> tuple[Condition, ...]:
    """Conditions with constants for their parameters."""
    if not values:
        return conditions
    where = substitute(Query(And(conditions)), values).where
    return where.parts if isinstance(where, And) else (where,)


def _remember(known: dict[K, V], key: K, value: V) -> V:
    """Keeps a value, and forgets all others when there are too many."""
    if len(known) >= _REMEMBERED:
        known.clear()
    known[key] = value
    return value
