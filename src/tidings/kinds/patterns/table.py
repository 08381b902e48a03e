"""Patterns being collected: rows of a shape and its slots, in plain growing columns.

An index is built from a table and does not change; the table grows on.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tidings.arrays.vocabulary import Vocabulary, freeze_texts, thaw_texts
from tidings.kinds.patterns.kernels.layout import HEADER
from tidings.kinds.patterns.shape import Atom, PatternShape
from tidings.language.query import Parameter
from tidings.model.search.stems import LANGUAGES
from tidings.model.terms import ntriples

# Saved indexes have their numbers: a new one is added at the end.
OPS = (
    "=", "!=", "<", "<=", ">", ">=", "BETWEEN", "KIND", "LIKE", "CONTAINS", "MATCHES", "ISA <=", "ISA >=", "ISA =",
    "SEARCH", *(f"SEARCH {language}" for language in LANGUAGES),
)  # fmt: skip
OP_NUMBER = {op: number for number, op in enumerate(OPS)}


class PatternTable:
    """Rows, and the vocabulary of their terms and of the constants in their tests."""

    def __init__(self) -> None:
        self.terms = Vocabulary()
        self.constants = Vocabulary()
        self.shapes: list[PatternShape] = []
        self.every: list[bool] = []
        self._shape_numbers: dict[object, int] = {}
        self._texts: list[str] = []
        self.atoms: dict[tuple[int, int, int], int] = {}
        self.row_shape = array("i")
        self.row_start = array("q")
        self.slots = array("i")

    def __len__(self) -> int:
        return len(self.row_shape)

    def add_shape(self, shape: PatternShape, every: bool = False) -> int:
        """A shape to add rows of; with `every`, a later step needs all bindings."""
        key = (shape.key(), every)
        if key not in self._shape_numbers:
            self._shape_numbers[key] = len(self.shapes)
            self.shapes.append(shape)
            self.every.append(every)
        return self._shape_numbers[key]

    def add(self, shape: int, values: Mapping[str, str]) -> None:
        """A row: `values` are the N-Triples texts of its shape's parameters."""
        compiled = self.shapes[shape]
        self.slots.append(len(self.row_shape))
        self.slots.append(shape)
        self.row_shape.append(shape)
        self.row_start.append(len(self.slots))
        number = self.terms.number
        for term in compiled.terms:
            self.slots.append(number(values[term.name] if isinstance(term, Parameter) else ntriples(term)))
        for atom in compiled.atoms:
            self.slots.append(self._atom(atom, values))

    def add_many(self, shape: int, columns: Mapping[str, tuple[np.ndarray, list[str]]], count: int) -> None:
        """Many rows of one shape: for each parameter the codes of the rows and the N-Triples texts they mean."""
        compiled = self.shapes[shape]
        rows = np.empty((count, HEADER + compiled.width), dtype=np.int32)
        rows[:, 0] = np.arange(len(self), len(self) + count)
        rows[:, 1] = shape
        for i, term in enumerate(compiled.terms, start=HEADER):
            if isinstance(term, Parameter):
                codes, texts = columns[term.name]
                rows[:, i] = self.terms.number_all(texts)[codes]
            else:
                rows[:, i] = self.terms.number(ntriples(term))
        for i, atom in enumerate(compiled.atoms, start=HEADER + len(compiled.terms)):
            rows[:, i] = self._atom_column(atom, columns, count)
        first = len(self.slots) + HEADER
        self.row_start.frombytes((first + np.arange(count, dtype=np.int64) * rows.shape[1]).tobytes())
        self.row_shape.frombytes(np.full(count, shape, dtype=np.int32).tobytes())
        self.slots.frombytes(rows.tobytes())

    def _atom(self, atom: Atom, values: Mapping[str, str]) -> int:
        numbers = [
            self.constants.number(values[c.name] if isinstance(c, Parameter) else ntriples(c))
            for c in atom.constants
        ]
        key = (OP_NUMBER[atom.op], numbers[0], numbers[-1])
        return self.atoms.setdefault(key, len(self.atoms))

    def _atom_column(
        self, atom: Atom, columns: Mapping[str, tuple[np.ndarray, list[str]]], count: int
    ) -> np.ndarray:
        sides = []
        for constant in (atom.constants[0], atom.constants[-1]):
            if isinstance(constant, Parameter):
                codes, texts = columns[constant.name]
                sides.append(self.constants.number_all(texts).astype(np.int64)[codes])
            else:
                sides.append(np.full(count, self.constants.number(ntriples(constant)), dtype=np.int64))
        distinct, inverse = np.unique(sides[0] << 32 | sides[1], return_inverse=True)
        op, known = OP_NUMBER[atom.op], self.atoms
        atoms = [
            known.setdefault((op, pair >> 32, pair & 0xFFFFFFFF), len(known)) for pair in distinct.tolist()
        ]
        return np.array(atoms, dtype=np.int32)[inverse]

    def atom_columns(self) -> np.ndarray:
        """Atoms as rows of (op, first constant, last constant)."""
        return np.array(list(self.atoms), dtype=np.int32).reshape(-1, 3)

    def extend(self, other: PatternTable, kept: np.ndarray) -> None:
        """Adds the rows of `other` with these numbers, and no more of its vocabulary than they use."""
        shape = np.frombuffer(other.row_shape, dtype=np.int32)[kept]
        width = HEADER + np.array([s.width for s in other.shapes], dtype=np.int64)[shape]
        terms = HEADER + np.array([s.term_count for s in other.shapes], dtype=np.int64)[shape]
        first = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
        start = np.frombuffer(other.row_start, dtype=np.int64)[kept] - HEADER
        column = np.arange(first[-1]) - np.repeat(first[:-1], width)
        slots = np.frombuffer(other.slots, dtype=np.int32)[np.repeat(start, width) + column]
        is_term = (column >= HEADER) & (column < np.repeat(terms, width))
        is_atom = column >= np.repeat(terms, width)
        slots[is_term] = _renumber(slots[is_term], list(other.terms.numbers), self.terms.number)
        slots[is_atom] = _renumber(
            slots[is_atom], list(other.atoms), lambda atom: self._take_atom(other, atom)
        )
        numbers = _renumber(shape, list(range(len(other.shapes))), lambda i: self._take_shape(other, i))
        slots[first[:-1]] = np.arange(len(self), len(self) + len(kept))
        slots[first[:-1] + 1] = numbers
        self.row_start.frombytes((len(self.slots) + HEADER + first[:-1]).tobytes())
        self.row_shape.frombytes(numbers.astype(np.int32).tobytes())
        self.slots.frombytes(slots.tobytes())

    def _take_atom(self, other: PatternTable, atom: tuple[int, int, int]) -> int:
        texts = other.constant_texts
        op, a, b = atom
        key = (op, self.constants.number(texts[a]), self.constants.number(texts[b]))
        return self.atoms.setdefault(key, len(self.atoms))

    def _take_shape(self, other: PatternTable, number: int) -> int:
        return self.add_shape(other.shapes[number], other.every[number])

    @property
    def constant_texts(self) -> list[str]:
        if len(self._texts) != len(self.constants):
            self._texts = list(self.constants.numbers)
        return self._texts

    def freeze(self) -> dict[str, np.ndarray]:
        """What an index does not hold itself and `thaw` needs."""
        constants = freeze_texts(self.constants.numbers)
        return {
            "table_constant_blob": constants["blob"],
            "table_constant_start": constants["start"],
            "table_atoms": self.atom_columns(),
            "table_terms": np.array([s.term_count for s in self.shapes], dtype=np.int32),
        }

    @classmethod
    def thaw(cls, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> PatternTable:
        """The table an index was built from, to be extended."""
        table = cls()
        vocabulary = {name: arrays[f"vocabulary_{name}"] for name in ("blob", "start")}
        table.terms = Vocabulary(thaw_texts(vocabulary))
        constants = {name: arrays[f"table_constant_{name}"] for name in ("blob", "start")}
        table.constants = Vocabulary(thaw_texts(constants))
        table.atoms = {tuple(atom): i for i, atom in enumerate(arrays["table_atoms"].tolist())}

        def piece(name: str, i: int) -> np.ndarray:
            first = arrays[f"program_{name.rstrip('s')}_first"]
            return arrays[f"program_{name}"][first[i] : first[i + 1]]

        for i, (variables, select) in enumerate(zip(facts["variables"], facts["select"], strict=True)):
            shape = PatternShape(
                tuple(variables),
                tuple(select),
                [],
                [],
                piece("steps", i),
                piece("code", i),
                piece("options", i),
            )
            shape.term_count, shape.width = int(arrays["table_terms"][i]), int(arrays["program_width"][i])
            # Not by add_shape: without their terms and tests two shapes may look alike, and rows know them by number.
            table.shapes.append(shape)
            table.every.append(bool(arrays["every"][i]))
        table.row_shape.frombytes(arrays["row_shape"].tobytes())
        table.row_start.frombytes(arrays["row_start"].astype(np.int64).tobytes())
        table.slots.frombytes(arrays["row_slots"].tobytes())
        return table


def _renumber(numbers: np.ndarray, meaning: Sequence[Any], number: Callable[[Any], int]) -> np.ndarray:
    """`numbers` with each distinct one replaced by what `number` gives for its meaning."""
    distinct, inverse = np.unique(numbers, return_inverse=True)
    return np.array([number(meaning[i]) for i in distinct.tolist()], dtype=np.int32)[inverse]
