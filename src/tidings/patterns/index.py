"""The index of patterns: immutable arrays, matched against batches of graphs.

A row is filed under its rarest clause alone: the edge, value, range, text or class that the fewest rows share.
An event leads to the rows filed under what it holds, and those are verified in full (kernels/). The papers
count over all clauses instead; that is a baseline in the benchmarks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tidings.arrays import folders
from tidings.arrays.hashing import table_size
from tidings.patterns.constants import RankedConstants
from tidings.patterns.graphs import GraphBatch
from tidings.patterns.kernels import filing, ranking
from tidings.patterns.kernels.layout import (
    BLOCK,
    CLASS,
    EXHAUSTED,
    KINDS,
    POINT,
    SP,
    SPO,
    TAGGED,
    TEST,
    Access,
    Atoms,
    Classes,
    Found,
    Graphs,
    Index,
    Programs,
    Rows,
    Space,
    Terms,
)
from tidings.patterns.kernels.matching import match_graphs
from tidings.patterns.table import OPS, PatternTable
from tidings.patterns.texts import TextTests
from tidings.taxonomy import Taxonomy, local_name
from tidings.terms import RDF, escape, from_ntriples

STEP_BUDGET = 100_000
BINDING_LIMIT = 1_000
_TEXT_OPS = ("LIKE", "CONTAINS", "MATCHES")
_SAMPLE = 4096  # ranges of a property that are looked at to tell how many overlap
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
        for array in arrays.values():
            array.flags.writeable = (
                False  # one type of array for the compiled loops, mapped from a file or not
            )
        self.arrays, self.facts = arrays, facts
        self.constants = RankedConstants(arrays, facts)
        self.texts = TextTests([tuple(test) for test in facts["tests"]])
        self.index = Index(
            programs=_gather(Programs, arrays, "program_"),
            rows=_gather(Rows, arrays, "row_"),
            atoms=_gather(Atoms, arrays, "atom_"),
            access=_gather(Access, arrays, "access_", by_test=bool(arrays["access_used"][POINT:].any())),
            classes=_gather(Classes, arrays, "class_", type_property=facts["type_property"]),
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
        asked = [constants[i][1:-1] for i in atoms[atoms[:, 0] >= OPS.index("ISA <="), 1]]
        type_property = table.terms.number(f"<{RDF}type>") if asked else -1
        classes = taxonomy.compile(asked)
        labels = _labels(taxonomy, classes.class_of) if asked else {}
        ranked, resolved, text_place = RankedConstants.build(constants, atoms, labels, table.terms)
        arrays.update(ranked.arrays)
        tests = _resolve_tests(resolved, atoms, constants, classes.class_of)
        arrays.update(_class_arrays(table, taxonomy, classes, labels, text_place, bool(asked)))
        arrays.update({f"vocabulary_{name}": array for name, array in table.terms.freeze().items()})
        arrays.update({f"atom_{name}": array for name, array in resolved._asdict().items()})
        arrays.update(_program_arrays(table))
        arrays.update(table.freeze())
        arrays["row_shape"] = np.frombuffer(table.row_shape, dtype=np.int32).copy()
        arrays["row_start"] = _narrow(np.frombuffer(table.row_start, dtype=np.int64))
        arrays["row_slots"] = np.frombuffer(table.slots, dtype=np.int32).copy()
        arrays["variables"] = np.array([len(s.variables) for s in table.shapes], dtype=np.int32)
        arrays["every"] = np.array(table.every, dtype=np.bool_)
        arrays["later"] = np.array(table.later, dtype=np.bool_)
        arrays["modes"] = _modes(table, bool(asked))
        arrays.update(_access_arrays(arrays, len(table.terms)))
        arrays["text_properties"] = np.zeros(len(table.terms), dtype=np.bool_)
        programs, rows = _gather(Programs, arrays, "program_"), _gather(Rows, arrays, "row_")
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
        columns = [
            np.concatenate(column) if pieces else np.zeros(0, np.int32)
            for column in zip(*pieces, strict=True)
        ]
        if not pieces:
            columns = [np.zeros(0, np.int32)] * 5
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
        sizes = np.zeros(count, dtype=np.int64)
        tests: list[int] = []
        for t in terms.tolist():
            if batch.blob[batch.term_low[t]] != ord("_"):
                term = from_ntriples(batch.text(t))
                held = self.texts.satisfied(term.text if hasattr(term, "text") else term.value)  # type: ignore[union-attr]
                sizes[t] = len(held)
                tests += held
        np.cumsum(sizes, out=first[1:])
        return first, np.array(tests, dtype=np.int32)

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
        return cls(arrays, facts)


def _gather(kind: Any, arrays: Mapping[str, np.ndarray], prefix: str, **rest: Any) -> Any:
    return kind(**rest, **{name: arrays[prefix + name] for name in kind._fields if name not in rest})


def _room(answers: int) -> Found:
    return Found(
        event=np.empty(answers, dtype=np.int32),
        row=np.empty(answers, dtype=np.int32),
        verdict=np.empty(answers, dtype=np.int8),
        first=np.zeros(answers + 1, dtype=np.int64),
        binding=np.empty(8 * answers + 4096, dtype=np.int32),
    )


def _narrow(array: np.ndarray) -> np.ndarray:
    fits = not len(array) or array[-1] <= np.iinfo(np.int32).max
    return array.astype(np.int32) if fits else array.copy()


def _starts(sizes: Iterable[int]) -> np.ndarray:
    return _narrow(np.concatenate([[0], np.cumsum(np.fromiter(sizes, dtype=np.int64))]).astype(np.int64))


def _program_arrays(table: PatternTable) -> dict[str, np.ndarray]:
    def stack(pieces: list[np.ndarray], width: int) -> np.ndarray:
        return np.concatenate([np.zeros((0, width), dtype=np.int16), *pieces])

    shapes = table.shapes
    return {
        "program_step_first": _starts(len(s.steps) for s in shapes),
        "program_steps": stack([s.steps for s in shapes], 6),
        "program_code_first": _starts(len(s.code) for s in shapes),
        "program_code": stack([s.code for s in shapes], 4),
        "program_option_first": _starts(len(s.options) for s in shapes),
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


def _labels(taxonomy: Taxonomy, class_of: Mapping[str, int]) -> dict[str, list[int]]:
    labels: dict[str, list[int]] = {}
    for iri, number in class_of.items():
        for label in taxonomy.labels(iri) or (local_name(iri),):
            labels.setdefault(label, []).append(number)
    return labels


def _resolve_tests(
    resolved: Atoms, atoms: np.ndarray, constants: list[str], class_of: Mapping[str, int]
) -> list[tuple[str, str]]:
    """Fills in the atoms that are text tests or is-a tests; returns the text tests."""
    tests: dict[tuple[str, str], int] = {}
    for i in np.flatnonzero(atoms[:, 0] > OPS.index("KIND")):
        op, constant = OPS[atoms[i, 0]], constants[atoms[i, 1]]
        if op in _TEXT_OPS:
            pattern = from_ntriples(constant)
            number = tests.setdefault((op, pattern.text), len(tests))  # type: ignore[union-attr]
            resolved.space[i], resolved.low[i] = TEST, number
        else:
            resolved.space[i], resolved.low[i] = CLASS, class_of[constant[1:-1]]
            resolved.high[i] = _ISA_OPS.index(op)
    return list(tests)


def _class_arrays(
    table: PatternTable,
    taxonomy: Taxonomy,
    classes: Any,
    labels: Mapping[str, list[int]],
    text_place: Mapping[str, int],
    asked: bool,
) -> dict[str, np.ndarray]:
    """The taxonomy by number of term; empty when no subscription asks for a class."""
    typed: dict[int, list[int]] = {}
    own: dict[int, int] = {}
    if asked:
        for iri, number in classes.class_of.items():
            own[table.terms.number(f"<{iri}>")] = number
        for iri, types in taxonomy.instances().items():
            typed[table.terms.number(f"<{iri}>")] = [classes.class_of[cls] for cls in types]
    terms = len(table.terms) if asked else 0
    number_array = np.full(terms, -1, dtype=np.int32)
    for term, number in own.items():
        number_array[term] = number
    by_text: dict[int, list[int]] = {text_place[escape(label)]: numbers for label, numbers in labels.items()}
    return {
        "class_number": number_array,
        **_lists("class_typed", typed, terms),
        **_lists("class_label", by_text, len(text_place)),
        "class_interval_first": classes.interval_start if asked else np.zeros(1, dtype=np.int64),
        "class_interval_low": classes.interval_low if asked else np.zeros(0, dtype=np.int64),
        "class_interval_high": classes.interval_high if asked else np.zeros(0, dtype=np.int64),
        "class_parent_first": classes.parent_start if asked else np.zeros(1, dtype=np.int64),
        "class_parents": classes.parent if asked else np.zeros(0, dtype=np.int64),
    }


def _lists(name: str, lists: Mapping[int, list[int]], count: int) -> dict[str, np.ndarray]:
    sizes = np.zeros(count, dtype=np.int64)
    for i, items in lists.items():
        sizes[i] = len(items)
    flat = [item for i in sorted(lists) for item in lists[i]]
    return {f"{name}_first": _starts(sizes), name: np.array(flat, dtype=np.int32)}


def _access_arrays(arrays: Mapping[str, np.ndarray], terms: int) -> dict[str, np.ndarray]:
    """Files every row under its cheapest access option."""
    programs, rows = _gather(Programs, arrays, "program_"), _gather(Rows, arrays, "row_")
    atoms = _gather(Atoms, arrays, "atom_")
    counts = np.zeros(min(table_size(16 * len(rows.shape)), 1 << 22), dtype=np.int32)
    filing.count_keys(programs, rows, atoms, counts)
    ranges = _ranges(programs, rows, atoms, terms, None)
    coverage = _coverage(ranges, terms)
    chosen, used = np.full(len(rows.shape), -1, dtype=np.int64), np.zeros(KINDS, dtype=np.bool_)
    about = np.empty(len(rows.shape), dtype=np.int32)
    filing.choose_options(programs, rows, atoms, counts, coverage, chosen, about, used)
    rows = _gathered(rows, programs.width, about)
    nothing = np.zeros(0, dtype=np.uint64)
    size = filing.file_rows(programs, rows, atoms, chosen, nothing, rows.start[:0].copy())
    keys, posted = np.empty(size, dtype=np.uint64), np.empty(size, dtype=rows.start.dtype)
    filing.file_rows(programs, rows, atoms, chosen, keys, posted)
    order = np.argsort(keys)
    keys, postings = keys[order], posted[order]
    first = np.append(np.flatnonzero(np.diff(keys, prepend=np.uint64(0))), size).astype(np.int32)
    distinct = keys[first[:-1]]
    table = np.zeros((1 << max(3, (len(distinct) * 4 // 3).bit_length()), 2), dtype=np.uint64)
    filing.key_table(distinct, first, postings, table)
    points = np.zeros(4, dtype=np.bool_)
    points[:] = used[POINT]
    points[np.setdiff1d(np.arange(4), atoms.space)] = False
    filed = _ranges(programs, rows, atoms, terms, chosen)
    return {
        "row_start": rows.start,
        "row_slots": rows.slots,
        "access_used": used,
        "access_points": points,
        "access_table": table,
        "access_first": first,
        "access_postings": postings,
        "access_always": rows.start[chosen < 0],
        **_range_arrays(filed, terms),
    }


def _gathered(rows: Rows, widths: np.ndarray, about: np.ndarray) -> Rows:
    """The rows with those about one subject side by side: an event is about few subjects, and then the rows it
    leads to lie in few places of memory."""
    start, slots = np.empty_like(rows.start), np.empty_like(rows.slots)
    filing.gather_rows(
        rows, widths, about, np.zeros(int(about.max(initial=0)) + 3, dtype=np.int64), start, slots
    )
    return Rows(rows.shape, start, slots)


def _ranges(
    programs: Programs, rows: Rows, atoms: Atoms, terms: int, chosen: np.ndarray | None
) -> np.ndarray:
    """(group, low, high, row) of every range that rows could be filed under, or are by `chosen`.

    A group is a property's number for ranges of values, that number plus the number of terms for texts.
    """
    chosen = np.zeros(0, dtype=np.int64) if chosen is None else chosen
    size = filing.list_ranges(programs, rows, atoms, terms, chosen, np.zeros((0, 4), dtype=np.int64))
    out = np.empty((size, 4), dtype=np.int64)
    filing.list_ranges(programs, rows, atoms, terms, chosen, out)
    return out


def _coverage(ranges: np.ndarray, terms: int) -> np.ndarray:
    """How many ranges of a group hold a typical value: one drawn from the ends of the ranges themselves."""
    coverage = np.zeros(2 * terms)
    for group, low, high in _groups(ranges):
        every = max(1, len(low) // _SAMPLE)
        count, low, high = len(low), low[::every], high[::every]
        ends = np.sort(np.concatenate([low, high]))
        held = np.searchsorted(ends, high, side="right") - np.searchsorted(ends, low, side="left")
        coverage[group] = held.mean() / len(ends) * count
    return coverage


def _groups(ranges: np.ndarray) -> Iterable[tuple[int, np.ndarray, np.ndarray]]:
    alike = len(ranges) and ranges[0, 0] == ranges[:, 0].min() == ranges[:, 0].max()
    ordered = ranges if alike else ranges[np.argsort(ranges[:, 0], kind="stable")]
    distinct, first = np.unique(ordered[:, 0], return_index=True)
    for group, begin, end in zip(distinct.tolist(), first, np.append(first, len(ordered))[1:], strict=True):
        yield group, ordered[begin:end, 1], ordered[begin:end, 2]


def _range_arrays(ranges: np.ndarray, terms: int) -> dict[str, np.ndarray]:
    ordered = ranges[np.lexsort((-ranges[:, 2], ranges[:, 1], ranges[:, 0]))]
    distinct, first = np.unique(ordered[:, 0], return_index=True)
    range_of = np.full(2 * terms if len(ranges) else 0, -1, dtype=np.int32)
    range_of[distinct] = np.arange(len(distinct), dtype=np.int32)
    high = ordered[:, 2].astype(np.int32)
    block = 1 << BLOCK
    padded = np.concatenate([high, np.full(-len(high) % block, -1, dtype=np.int32)])
    return {
        "access_range_of": range_of,
        "access_range_first": np.append(first, len(ordered)).astype(np.int64),
        "access_range_low": ordered[:, 1].astype(np.int32),
        "access_range_high": high,
        "access_range_row": ordered[:, 3].astype(np.int64),
        "access_range_block": padded.reshape(-1, block).max(axis=1, initial=-1).astype(np.int32),
    }
