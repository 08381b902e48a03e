"""The index of patterns: immutable arrays, matched against batches of graphs.

A row is filed under its rarest clause alone: the edge, value, range, text or class that the fewest rows share.
An event leads to the rows filed under what it holds, and those are verified in full (kernels/). G-ToPSS 4 counts
over all clauses instead; that is a baseline in the benchmarks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tidings.arrays import folders
from tidings.formats.namespaces import RDF
from tidings.kinds.patterns.access_tables import access_arrays
from tidings.kinds.patterns.classes import class_arrays, class_labels
from tidings.kinds.patterns.constants import RankedConstants
from tidings.kinds.patterns.graphs import GraphBatch
from tidings.kinds.patterns.integrity import refuse_damage
from tidings.kinds.patterns.kernels import filing, ranking
from tidings.kinds.patterns.kernels.layout import (
    CLASS,
    EXHAUSTED,
    POINT,
    SP,
    SPO,
    TAGGED,
    TEST,
    Access,
    AnswerArrays,
    Atoms,
    Classes,
    Graphs,
    Index,
    PatternRows,
    Programs,
    Space,
    Terms,
    gather,
    narrow,
    starts,
)
from tidings.kinds.patterns.kernels.matching import match_graphs
from tidings.kinds.patterns.table import OPS, PatternTable
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import from_ntriples
from tidings.model.text_sets import TextTests
from tidings.model.values import text_of

STEP_BUDGET = 100_000
BINDING_LIMIT = 1_000
_ISA_OPS = ("ISA <=", "ISA >=", "ISA =")


@dataclass(frozen=True, slots=True)
class Matches:
    """Answers for one chunk: answer i says that `row` (of `event` in the chunk) matched, or ran out of steps.

    The terms bound to the variables of its shape are binding[first[i]:first[i + 1]].
    """

    event: np.ndarray
    row: np.ndarray
    undecided: np.ndarray
    first: np.ndarray
    binding: np.ndarray


class PatternIndex:
    """Build, match, save, load."""

    def __init__(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        for array in arrays.values():  # one type for the compiled loops, mapped from a file or not
            array.flags.writeable = False
        self.arrays, self.facts = arrays, facts
        self.constants = RankedConstants(arrays, facts)
        self.texts = TextTests([tuple(test) for test in facts["tests"]])
        self.index = Index(
            programs=gather(Programs, arrays, "program_"),
            rows=gather(PatternRows, arrays, "row_"),
            atoms=gather(Atoms, arrays, "atom_"),
            access=gather(Access, arrays, "access_", by_test=bool(arrays["access_used"][POINT:].any())),
            classes=gather(Classes, arrays, "class_", type_property=facts["type_property"]),
            modes=arrays["modes"],
            variables=arrays["variables"],
            every=arrays["every"],
            budget=STEP_BUDGET,
            limit=BINDING_LIMIT,
        )

    def __len__(self) -> int:
        return len(self.arrays["row_shape"])

    @property
    def nbytes(self) -> int:
        return folders.size(self.arrays)

    # ------------------------------------------------------------------ building

    @classmethod
    def build(cls, table: PatternTable, taxonomy: Taxonomy | None = None) -> PatternIndex:
        taxonomy = Taxonomy() if taxonomy is None else taxonomy
        arrays: dict[str, np.ndarray] = {}
        atoms, constants = table.atom_columns(), list(table.constants.numbers)
        asked = [constants[i][1:-1] for i in atoms[np.isin(atoms[:, 0], list(map(OPS.index, _ISA_OPS))), 1]]
        type_property = table.terms.number(f"<{RDF}type>") if asked else -1
        classes = taxonomy.compile(asked)
        labels = class_labels(taxonomy, classes.class_of) if asked else {}
        ranked, resolved, text_place = RankedConstants.build(constants, atoms, labels, table.terms)
        arrays.update(ranked.arrays)
        tests = _resolve_tests(resolved, atoms, constants, classes.class_of)
        arrays.update(class_arrays(table, taxonomy, classes, labels, text_place, bool(asked)))
        arrays.update({f"vocabulary_{name}": array for name, array in table.terms.freeze().items()})
        arrays.update({f"atom_{name}": array for name, array in resolved._asdict().items()})
        arrays.update(_program_arrays(table))
        arrays.update(table.freeze())
        arrays["row_shape"] = np.frombuffer(table.row_shape, dtype=np.int32).copy()
        arrays["row_start"] = narrow(np.frombuffer(table.row_start, dtype=np.int64))
        arrays["row_slots"] = np.frombuffer(table.slots, dtype=np.int32).copy()
        arrays["variables"] = np.array([len(s.variables) for s in table.shapes], dtype=np.int32)
        arrays["every"] = np.array(table.every, dtype=np.bool_)
        arrays["modes"] = _modes(table, bool(asked))
        arrays.update(access_arrays(arrays, len(table.terms)))
        arrays["text_properties"] = np.zeros(len(table.terms), dtype=np.bool_)
        programs, rows = gather(Programs, arrays, "program_"), gather(PatternRows, arrays, "row_")
        facts = {
            **ranked.facts,
            "tests": tests,
            "text_anywhere": bool(filing.mark_texts(programs, rows, resolved, arrays["text_properties"])),
            "tagged": bool((resolved.space == TAGGED).any()),
            "type_property": type_property,
            "variables": [list(shape.variables) for shape in table.shapes],
            "select": [list(shape.select) for shape in table.shapes],
        }
        return cls(arrays, facts)

    # ------------------------------------------------------------------ matching

    def match(self, batch: GraphBatch, every: bool = False) -> Matches:
        """The rows that hold for each graph of the batch, with their first bindings, or with all of them."""
        terms = self._terms(batch)
        graphs = Graphs(batch.subjects, batch.properties, batch.objects, batch.first)
        space = self._space(batch)
        index = self.index
        if every:
            index = index._replace(every=np.ones_like(index.every))
            index.every.flags.writeable = False
        event, last = 0, len(batch)
        room = 1024 + 256 * last
        pieces: list[tuple[np.ndarray, ...]] = []
        while event < last:
            found = _room(room)
            stopped, count = match_graphs(event, graphs, terms, index, space, found)
            size = found.first[count]
            pieces.append((found.event[:count], found.row[:count], found.verdict[:count],
                           np.diff(found.first[: count + 1]), found.binding[:size]))  # fmt: skip
            event = stopped
            if event < last:  # out of room: the event it stopped in is matched again
                space.seen.fill(-1)
                room *= 4
        columns = [np.concatenate(column) for column in zip(*pieces, strict=True)]
        columns = columns or [np.zeros(0, np.int32)] * 5
        first = np.concatenate([[0], np.cumsum(columns[3])])
        return Matches(columns[0], columns[1], columns[2] == EXHAUSTED, first, columns[4])

    def _terms(self, batch: GraphBatch) -> Terms:
        """What the batch's terms are to this index."""
        n = len(batch.term_low)
        blob, low, high = batch.blob, batch.term_low, batch.term_high
        known_blob, known_start, known_slots = (
            self.arrays[f"vocabulary_{name}"] for name in ("blob", "start", "slots")
        )
        number = np.empty(n, dtype=np.int32)
        ranking.number_terms(blob, low, high, batch.term_hash, known_blob, known_start, known_slots, number)
        suffixes = np.full(n if self.facts["tagged"] else 0, -1, dtype=np.int32)
        if self.facts["tagged"]:
            ranking.number_suffixes(blob, low, high, known_blob, known_start, known_slots, suffixes)
        value, words = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
        is_iri, unsure = np.empty(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
        ranking.rank_terms(blob, low, high, self.constants.kernel, value, words, is_iri, unsure)
        for t in np.flatnonzero(unsure):
            exact = self.constants.exact_ranks(batch.text(int(t)))
            value[t] = exact[0]
            if exact[1] >= 0:
                words[t] = exact[1]
        first, tests = self._text_tests(batch, number)
        return Terms(number, suffixes, value, words, is_iri, first, tests)

    def _text_tests(self, batch: GraphBatch, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The text tests that hold, for the terms that a tested variable can be bound to."""
        count = len(batch.term_low)
        first = np.zeros(count + 1, dtype=np.int64)
        if not self.texts.tests:
            return first, np.zeros(0, dtype=np.int32)
        looked = self.arrays["text_properties"]
        if self.facts["text_anywhere"]:
            terms = np.arange(count)
        else:
            p = number[batch.properties]
            inside = np.zeros(len(p), dtype=np.bool_)
            inside[p < len(looked)] = looked[p[p < len(looked)]]
            terms = np.unique(batch.objects[inside])
        tested = [t for t in terms.tolist() if batch.blob[batch.term_low[t]] != ord("_")]
        texts = [text_of(from_ntriples(batch.text(t))) or "" for t in tested]
        held = self.texts.satisfied_by(texts)
        sizes = np.zeros(count, dtype=np.int64)
        sizes[tested] = list(map(len, held))
        np.cumsum(sizes, out=first[1:])
        return first, np.array([test for each in held for test in each], dtype=np.int32)

    def _space(self, batch: GraphBatch) -> Space:
        edges = int(np.diff(batch.first).max(initial=0)) + 1
        buckets = 1 << max(3, int(2 * edges).bit_length())
        steps, variables = self.arrays["program_step_first"], int(self.arrays["variables"].max(initial=0))
        rows = len(self)
        classes = len(self.arrays["class_interval_first"]) - 1
        return Space(
            head=np.empty((8, buckets), dtype=np.int32),
            next=np.empty((8, edges), dtype=np.int32),
            edge=np.empty((3, edges), dtype=np.int32),
            known=np.empty((3, edges), dtype=np.int32),
            bound=np.zeros(variables + 1, dtype=np.int32),
            register=np.zeros(
                variables + int(self.arrays["program_width"].max(initial=0)) + 1, dtype=np.int32
            ),
            cursor=np.empty(int(np.diff(steps).max(initial=0)) + 2, dtype=np.int32),
            seen=np.full(rows, -1, dtype=np.int32),
            keys=np.empty(edges, dtype=np.uint64),
            candidates=np.empty(2 * rows + 1, dtype=np.int64),
            looks=np.full(1, -1, dtype=np.int32),
            touched=np.zeros(1, dtype=np.int64),
            stack=np.empty(classes + 1, dtype=np.int32),
            visited=np.zeros(classes + 1, dtype=np.int64),
        )

    # ------------------------------------------------------------------ files

    def save(self, folder: Path) -> None:
        folders.save(folder, self.arrays, self.facts)

    @classmethod
    def load(cls, folder: Path) -> PatternIndex:
        arrays, facts = folders.load(folder)
        index = cls(arrays, facts)
        refuse_damage(folder, index.index, arrays, facts)
        return index


def _room(answers: int) -> AnswerArrays:
    return AnswerArrays(
        event=np.empty(answers, dtype=np.int32),
        row=np.empty(answers, dtype=np.int32),
        verdict=np.empty(answers, dtype=np.int8),
        first=np.zeros(answers + 1, dtype=np.int64),
        binding=np.empty(8 * answers + 4096, dtype=np.int32),
    )


def _program_arrays(table: PatternTable) -> dict[str, np.ndarray]:
    def stack(pieces: list[np.ndarray], width: int) -> np.ndarray:
        return np.concatenate([np.zeros((0, width), dtype=np.int16), *pieces])

    shapes = table.shapes
    return {
        "program_step_first": starts(len(s.steps) for s in shapes),
        "program_steps": stack([s.steps for s in shapes], 6),
        "program_code_first": starts(len(s.code) for s in shapes),
        "program_code": stack([s.code for s in shapes], 4),
        "program_option_first": starts(len(s.options) for s in shapes),
        "program_options": stack([s.options for s in shapes], 4),
        "program_width": np.array([s.width for s in shapes], dtype=np.int32),
    }


def _modes(table: PatternTable, classes: bool) -> np.ndarray:
    modes = np.zeros(8, dtype=np.bool_)
    modes[SPO] = True
    modes[SP] = classes
    for shape in table.shapes:
        modes[shape.steps[:, 3] & 7] = True
    return modes


def _resolve_tests(
    resolved: Atoms, atoms: np.ndarray, constants: list[str], class_of: Mapping[str, int]
) -> list[tuple[str, str]]:
    """Fills in the atoms that are text tests or is-a tests; returns the text tests."""
    tests: dict[tuple[str, str], int] = {}
    for i in np.flatnonzero(atoms[:, 0] > OPS.index("KIND")):
        op, constant = OPS[atoms[i, 0]], constants[atoms[i, 1]]
        if op not in _ISA_OPS:
            pattern = from_ntriples(constant)
            number = tests.setdefault((op, pattern.text), len(tests))  # type: ignore[union-attr]
            resolved.space[i], resolved.low[i] = TEST, number
        else:
            resolved.space[i], resolved.low[i] = CLASS, class_of[constant[1:-1]]
            resolved.high[i] = _ISA_OPS.index(op)
    return list(tests)
