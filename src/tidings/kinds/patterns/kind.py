"""Graph patterns as a kind: they take the triples of a way, and the tests that compare one of their variables with
constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa

from tidings.arrays.spans import pick, plain_texts
from tidings.errors import EventError
from tidings.formats import rdf
from tidings.formats.documents import MAX_BYTES, is_utf8
from tidings.kinds.patterns import graphs
from tidings.kinds.patterns.graphs import GraphBatch
from tidings.kinds.patterns.index import Matches, PatternIndex
from tidings.kinds.patterns.shape import Pattern, PatternShape, compile_pattern
from tidings.kinds.patterns.table import OPS, PatternTable
from tidings.language.alternatives import Way
from tidings.language.query import (
    Comparison,
    Condition,
    KindCondition,
    Parameter,
    TextTest,
    Variable,
    leaves,
    variables,
)
from tidings.model.batch import CONTENT, Batch
from tidings.model.pairs import NONE, Found
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Iri, Literal, Term, Triple, from_ntriples

_OUT_OF_STEPS = "the pattern has too many partial matches in this event; make it more specific"
_REMEMBERED = 100_000


@dataclass(frozen=True, slots=True)
class PatternPart:
    """The pattern of a way; `every` if a later step has to see all bindings of its variables."""

    shape: PatternShape
    every: bool

    @property
    def is_broad(self) -> bool:
        """Whether it has no constant and no test."""
        return not self.shape.width


class Patterns:
    """The kind of subscription that matches triples."""

    name, role = "patterns", "find"
    conditions: tuple[type[KindCondition], ...] = ()

    def __init__(self, taxonomy: Taxonomy) -> None:
        self.taxonomy = taxonomy
        self.above = taxonomy.super_properties()

    def compile(self, way: Way) -> tuple[PatternPart | None, Way]:
        if not way.edges:
            return None, way
        rest = tuple(filter(is_residual, way.tests))
        own = tuple(test for test in way.tests if test not in rest)
        shape = compile_pattern(Pattern(way.edges, own, way.select), way.literals)
        every = way.joins or any(variables(test) for test in rest)
        return PatternPart(shape, every), replace(way, edges=(), tests=rest)

    def builder(self) -> PatternBuilder:
        return PatternBuilder(self, PatternTable())

    def load(self, folder: Path) -> PatternBuilder:
        return PatternBuilder(self, None, PatternFinder(PatternIndex.load(folder), self.above))


def is_residual(test: Condition) -> bool:
    """Whether the index cannot settle a test: it settles comparisons of one variable with constants."""
    return any(map(_is_later, leaves(test)))


def _is_later(leaf: Condition) -> bool:
    if isinstance(leaf, Comparison):
        return not (isinstance(leaf.left, Variable) and isinstance(leaf.right, Iri | Literal | Parameter))
    if isinstance(leaf, TextTest) and leaf.op not in OPS:
        return True
    return not isinstance(getattr(leaf, "operand", None), Variable)


class PatternBuilder:
    """Patterns of one segment; what comes from a folder becomes a table when it is first extended."""

    def __init__(
        self, kind: Patterns, table: PatternTable | None, finder: PatternFinder | None = None
    ) -> None:
        self._kind, self._table, self._finder = kind, table, finder
        self._shapes: dict[int, tuple[PatternPart, int]] = {}

    def __len__(self) -> int:
        return len(self.finder().index) if self._table is None else len(self._table)

    @property
    def table(self) -> PatternTable:
        if self._table is None:
            index = self.finder().index
            self._table = PatternTable.thaw(index.arrays, index.facts)
        return self._table

    def prepare(self, part: PatternPart, values: Mapping[str, str]) -> Mapping[str, str]:
        return values

    def add(self, part: PatternPart, values: Mapping[str, str]) -> int:
        if part.shape.never:
            return NONE
        self.table.add(self._shape(part), values)
        self._finder = None
        return len(self.table) - 1

    def add_many(
        self, part: PatternPart, columns: Mapping[str, tuple[np.ndarray, list[str]]], count: int
    ) -> int:
        if part.shape.never:
            return NONE
        self.table.add_many(self._shape(part), columns, count)
        self._finder = None
        return len(self.table) - count

    def _shape(self, part: PatternPart) -> int:
        known = self._shapes.get(id(part))
        if known is None:
            if len(self._shapes) >= _REMEMBERED:
                self._shapes.clear()
            # With the part: its id stays its own.
            known = self._shapes[id(part)] = part, self.table.add_shape(part.shape, part.every)
        return known[1]

    def extend(self, other: PatternBuilder, rows: np.ndarray) -> None:
        self.table.extend(other.table, rows)
        self._finder = None

    def finder(self) -> PatternFinder:
        if self._finder is None:
            index = PatternIndex.build(self.table, self._kind.taxonomy)
            self._finder = PatternFinder(index, self._kind.above)
        return self._finder

    def save(self, folder: Path) -> None:
        self.finder().index.save(folder)


class PatternFinder:
    """Finds the patterns that events' graphs satisfy, by the index."""

    binds = True

    def __init__(self, index: PatternIndex, above: Mapping[str, tuple[str, ...]]) -> None:
        self.index, self._above = index, above
        self.several = bool(index.arrays["every"].any())

    def find(self, batch: Batch) -> Found:
        found = [Found.certain(np.zeros(0, np.int32), np.zeros(0, np.int32))]
        for chunk in graphs_of(batch, self._above):
            matches = self.index.match(chunk, every=batch.every)
            doubt = np.full(len(matches.row), NONE, dtype=np.int32)
            if matches.undecided.any():
                doubt[matches.undecided] = batch.doubt(_OUT_OF_STEPS)
            first = batch.bindings.add(PatternBindings(matches, chunk, self))
            binding = np.arange(first, first + len(matches.row), dtype=np.int32)
            event = matches.event + np.int32(chunk.first_row)
            found.append(Found(event, matches.row, doubt, binding))
        return Found(*map(np.concatenate, zip(*found, strict=True)))

    @cached_property
    def selected(self) -> tuple[pa.Array, np.ndarray, np.ndarray, np.ndarray]:
        """What notifications need: names, and by shape where its selected variables are, and their names."""
        variables, select = self.index.facts["variables"], self.index.facts["select"]
        names: dict[str, int] = {}
        first = np.concatenate([[0], np.cumsum([len(slots) for slots in select])]).astype(np.int64)
        slots = np.array([slot for chosen in select for slot in chosen], dtype=np.int64)
        numbers = np.array(
            [
                names.setdefault(variables[shape][slot], len(names))
                for shape, chosen in enumerate(select)
                for slot in chosen
            ],
            dtype=np.int32,
        )
        return pa.array(list(names), pa.string()), first, slots, numbers


class PatternBindings:
    """The bindings of the matches in one chunk of graphs."""

    def __init__(self, matches: Matches, chunk: GraphBatch, finder: PatternFinder) -> None:
        self._matches, self._chunk, self._finder = matches, chunk, finder

    def __len__(self) -> int:
        return len(self._matches.row)

    def terms(self, number: int) -> dict[str, Term]:
        matches, index = self._matches, self._finder.index
        names = index.facts["variables"][int(index.arrays["row_shape"][int(matches.row[number])])]
        terms = matches.binding[matches.first[number] : matches.first[number + 1]]
        bound = zip(names, terms, strict=True)
        return {name: from_ntriples(self._chunk.text(int(t))) for name, t in bound if name is not None}

    def texts(self, numbers: np.ndarray) -> pa.MapArray:
        matches, chunk = self._matches, self._chunk
        names, first, slots, name_numbers = self._finder.selected
        shape = self._finder.index.arrays["row_shape"][matches.row[numbers]]
        offsets = np.zeros(len(numbers) + 1, dtype=np.int32)
        np.cumsum((first[shape + 1] - first[shape]) * ~matches.undecided[numbers], out=offsets[1:])
        terms, keys = np.empty(offsets[-1], dtype=np.int32), np.empty(offsets[-1], dtype=np.int32)
        pick(offsets, first[shape], slots, name_numbers, matches.first[numbers], matches.binding, terms, keys)
        texts = plain_texts(chunk.blob, chunk.term_low, chunk.term_high, terms)
        return pa.MapArray.from_arrays(pa.array(offsets), names.take(pa.array(keys)), texts)


def graphs_of(batch: Batch, above: Mapping[str, tuple[str, ...]]) -> list[GraphBatch]:
    """The graphs of a batch, read once for the finders of base and tail."""
    if "graphs" not in batch.shared:
        documents = _documents(batch)
        batch.graphs = cast("list[bytes | None]", documents)
        read = graphs.read(documents, _canonical, batch.errors)
        chunks = batch.shared["graphs"] = [graphs.expand(chunk, above) for chunk in read]
        starts = [chunk.first_row for chunk in chunks]

        def triples(row: int) -> list[Triple]:
            chunk = chunks[int(np.searchsorted(starts, row, side="right")) - 1]
            return chunk.triples(row - chunk.first_row)

        batch.triples = triples
    found: list[GraphBatch] = batch.shared["graphs"]
    return found


def _documents(batch: Batch) -> list[bytes]:
    """The graph of each event as N-Triples, empty where it has none; what cannot be read goes to the batch's errors."""
    events = batch.events
    if not {CONTENT, "datacontenttype"} <= set(events.column_names):
        return [b""] * len(batch)
    documents: list[bytes] = []
    types, contents = batch.texts("datacontenttype").to_pylist(), events[CONTENT].to_pylist()
    known = batch.graphs or [None] * len(batch)
    for row, (graph, media_type, data) in enumerate(zip(known, types, contents, strict=True)):
        document = graph or b""
        if graph is None and data and rdf.is_rdf(media_type):
            if isinstance(data, str):
                data = data.encode()
            try:
                document = data if _is_clean(data, media_type) else rdf.canonical(data, media_type)
            except EventError as error:
                batch.errors[row] = str(error)
        documents.append(document)
    return documents


def _canonical(data: bytes) -> bytes:
    return rdf.canonical(data, rdf.NTRIPLES)


def _is_clean(data: bytes, media_type: str) -> bool:
    """Whether N-Triples can be tried without a parser: whether they are canonical is found out when read."""
    return media_type == rdf.NTRIPLES and len(data) <= MAX_BYTES and is_utf8(data)
