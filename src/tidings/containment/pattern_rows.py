"""Containment of the patterns in an index, in columns: no text is read and no query is built.

A row is a *conjunction* if all of its tests compare one variable with constants and all have to hold. Its witness is a
graph: its triples, with an IRI of its own for every variable, or a literal that satisfies the tests on the variable.
If a conjunction A matches the witness of B, its binding maps A's variables to terms of B. A contains B if A's tests follow
from what B tests of these terms; there is nothing more to show (contains.py). If they do not, another mapping
may do: the caller has to look at such a pair in full.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tidings.arrays.hashing import hash_spans
from tidings.arrays.vocabulary import StoredTexts, join_texts
from tidings.containment.pattern_tests import PatternTests, ranges
from tidings.formats.namespaces import RDF
from tidings.kinds.patterns.graphs import GraphBatch, expand
from tidings.kinds.patterns.index import PatternIndex
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Term, from_ntriples

_ROWS_AT_ONCE = 1 << 13
_MEMBER = f"<{RDF}_"
_MEMBERSHIP = re.compile(re.escape(_MEMBER) + "[0-9]+>")
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class Pairs(NamedTuple):
    """`container[i]` matches the witness of `row[i]`, and `is_proven[i]` says that it contains it. Containers are numbered as in the
    index that they were looked for in."""

    row: np.ndarray
    container: np.ndarray
    is_proven: np.ndarray


class _Texts(NamedTuple):
    """Texts end to end: where each begins, and their hashes."""

    blob: np.ndarray
    start: np.ndarray
    hashes: np.ndarray


class PatternRows:
    """The rows of an index of patterns. `have_witnesses` says of which rows containers can be looked for here."""

    def __init__(self, index: PatternIndex, taxonomy: Taxonomy) -> None:
        arrays = self._arrays = index.arrays
        self._above: Mapping[str, tuple[str, ...]] = taxonomy.super_properties()
        self._shape, self._start, self._slots = (
            arrays[f"row_{name}"] for name in ("shape", "start", "slots")
        )
        self._step_first, self._steps = arrays["program_step_first"], arrays["program_steps"]
        self._vocabulary = len(arrays["vocabulary_start"]) - 1
        self._most_variables = int(arrays["variables"].max(initial=0))
        self._taxonomy = taxonomy

    def __len__(self) -> int:
        return len(self._shape)

    @cached_property
    def tests(self) -> PatternTests:
        return PatternTests(self._arrays, self._taxonomy)

    @property
    def triples(self) -> np.ndarray:
        """How many triples each row has."""
        return np.diff(self._step_first)[self._shape]

    def triples_of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The triples of rows, end to end: the position in `rows` of each, and its terms: the number of a constant, or
        ~variable."""
        shape, count = self._shape[rows], self.triples[rows]
        refs = self._steps[ranges(self._step_first[shape], count), :3].astype(np.int64)
        of = np.repeat(np.arange(len(rows)), count)
        return of, np.where(refs >= 0, self._slot(self._start[rows][of][:, None] + refs), refs)

    def term(self, number: int) -> Term:
        """A constant of triples."""
        texts = StoredTexts(self._arrays["vocabulary_blob"], self._arrays["vocabulary_start"])
        return from_ntriples(texts[number])

    def first_equal(self, rows: np.ndarray) -> np.ndarray:
        """Of each of these rows the place of the first of them that is the same up to names, and so matches the same graphs. Of
        two that only have the same hash, the second counts as different."""
        shape, start = self._shape[rows], self._start[rows].astype(np.int64)
        program, width = self._programs[shape], self._arrays["program_width"][shape]
        hashes = program.astype(np.uint64)
        for column in range(int(width.max(initial=0))):
            longer = np.flatnonzero(width > column)
            mixed = (hashes[longer] ^ self._slots[start[longer] + column].astype(np.uint64)) * _MULTIPLIER
            hashes[longer] = mixed ^ (mixed >> np.uint64(29))
        _, first, of = np.unique(hashes, return_index=True, return_inverse=True)
        same = first[of]
        again = np.flatnonzero(same != np.arange(len(rows)))
        is_same = program[again] == program[same[again]]  # and so of the same width
        pairs = again[is_same]
        count = width[pairs].astype(np.int64)
        differs = self._slots[ranges(start[pairs], count)] != self._slots[ranges(start[same[pairs]], count)]
        is_same[np.flatnonzero(is_same)[np.repeat(np.arange(len(pairs)), count)[differs]]] = False
        same[again[~is_same]] = again[~is_same]
        return same

    @cached_property
    def _programs(self) -> np.ndarray:
        """Of each shape a number that those of the same steps and tests have too."""
        numbers: dict[tuple[bytes, bytes], int] = {}
        code, code_first = self._arrays["program_code"], self._arrays["program_code_first"]
        bounds = zip(pairwise(self._step_first.tolist()), pairwise(code_first.tolist()), strict=True)
        found = (
            numbers.setdefault((self._steps[a:b].tobytes(), code[c:d].tobytes()), len(numbers))
            for (a, b), (c, d) in bounds
        )
        return np.fromiter(found, dtype=np.int64, count=len(self._step_first) - 1)

    def have_witnesses(self, rows: np.ndarray) -> np.ndarray:
        """Of some rows: each is a conjunction without members of containers, and a literal satisfies the tests on each of
        its tested variables, which are objects."""
        found = self._is_plain[rows]
        found[found] = self.tests.have_literals(rows[found])
        return found

    @cached_property
    def _is_plain(self) -> np.ndarray:
        """Of each row: it is a conjunction without members of containers."""
        found = self.tests.is_conjunction.copy()
        blob = self._arrays["vocabulary_blob"]
        if _MEMBER.encode() not in blob.tobytes():
            return found
        texts = StoredTexts(blob, self._arrays["vocabulary_start"])
        members = [number for number, text in enumerate(texts) if _MEMBERSHIP.fullmatch(text)]
        rows = np.repeat(np.arange(len(self)), self.triples)
        property = self._steps[ranges(self._step_first[self._shape], self.triples), 1]
        number = self._slot(self._start[rows] + property)
        found[rows[(property >= 0) & np.isin(number, members)]] = False
        return found

    def _slot(self, at: np.ndarray) -> np.ndarray:
        """What stands there; anything at the place of a variable, which is before the slots of the row, or of the first one."""
        return self._slots[np.maximum(at, 0)]

    # ------------------------------------------------------------------ matching

    def containers(self, rows: np.ndarray, index: PatternIndex, row_of: np.ndarray) -> Iterator[Pairs]:
        """The rows of an index that match the witnesses of these rows, which must have some; a row is among its own. The
        index has rows of this one, which `row_of` numbers."""
        assert self.have_witnesses(rows).all()
        texts = _behind(self._named, self.tests.literal_texts())
        number = np.zeros(len(texts.hashes), dtype=np.int32)
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            chunk = rows[first : first + _ROWS_AT_ONCE]
            batch, terms = self._graphs(chunk, texts, number)
            found = index.match(expand(batch, self._above))
            container = row_of[found.row]
            is_proven = ~found.undecided & self.tests.is_conjunction[container]
            first_test, variables, slots = self.tests.columns
            shape = self._shape[container]
            count = np.diff(first_test)[shape] * is_proven
            answer = np.repeat(np.arange(len(found.row)), count)
            test = ranges(first_test[shape], count)
            bound = found.binding[found.first[answer] + variables[test]]
            # What subPropertyOf has added is no term of the row: nothing is known of it.
            term = np.where(bound < len(terms), terms[np.minimum(bound, len(terms) - 1)], -1)
            atom = self._slots[self._start[container[answer]] + slots[test]]
            is_proven[answer[~self._implies(term, atom)]] = False
            yield Pairs(chunk[found.event], found.row, is_proven)

    def _implies(self, term: np.ndarray, atom: np.ndarray) -> np.ndarray:
        iri = np.where(term < self._vocabulary, term, -1)
        literal = np.maximum(term - self._vocabulary - self._most_variables, -1)
        return self.tests.implies(iri, literal, atom)

    def _graphs(self, rows: np.ndarray, texts: _Texts, number: np.ndarray) -> tuple[GraphBatch, np.ndarray]:
        """The witnesses of rows, and which terms they have: those of the vocabulary come first, then IRIs that stand for
        variables, then literals. `number` is scratch, with a place for each term."""
        shape, count = self._shape[rows], self.triples[rows]
        refs = self._steps[ranges(self._step_first[shape], count), :3].astype(np.int64)
        of = np.repeat(np.arange(len(rows)), count)
        variables = self._arrays["variables"][shape].astype(np.int64)
        first_variable = np.concatenate([[0], np.cumsum(variables)])
        term_of_variable = self._vocabulary + ranges(np.zeros(len(rows), np.int64), variables)
        place, variable, literal = self.tests.literals_of(rows)
        tested = first_variable[place] + variable
        term_of_variable[tested] = self._vocabulary + self._most_variables + literal
        constant = self._slot(self._start[rows][of][:, None] + refs)
        at = np.where(refs < 0, first_variable[of][:, None] + ~refs, -1)
        term = np.where(refs >= 0, constant, np.append(term_of_variable, 0)[at])
        # By marks, not by sorting: that took as long as all matching.
        number[term] = 1
        terms = np.flatnonzero(number)
        number[terms] = np.arange(len(terms))
        subjects, properties, objects = (number[term[:, i]] for i in range(3))
        number[terms] = 0
        first = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        low, high = texts.start[terms], texts.start[terms + 1]
        hashes = texts.hashes[terms]
        return GraphBatch(0, texts.blob, low, high, hashes, subjects, properties, objects, first), terms

    @cached_property
    def _named(self) -> _Texts:
        """The terms of all rows, and IRIs for variables."""
        known, start = self._arrays["vocabulary_blob"], self._arrays["vocabulary_start"]
        name, whole = "urn:tidings:any", known.tobytes()
        while f"<{name}:".encode() in whole:
            name += "-"
        nothing = _Texts(known, start, np.zeros(0, np.uint64))
        return _behind(nothing, (f"<{name}:{variable}>" for variable in range(self._most_variables)))


def _behind(texts: _Texts, more: Iterator[str]) -> _Texts:
    """Texts with more behind them. The hashes that are known stay."""
    blob, start = join_texts(more)
    both = np.concatenate([texts.blob, blob])
    both.flags.writeable = False  # as bytes that were read are: the loops are compiled for these
    starts = np.concatenate([texts.start, len(texts.blob) + start[1:]]).astype(np.int64)
    new = np.empty(len(starts) - 1 - len(texts.hashes), dtype=np.uint64)
    hash_spans(both, starts[len(texts.hashes) :], new)
    return _Texts(both, starts, np.concatenate([texts.hashes, new]))
