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
from dataclasses import replace
from functools import cached_property
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from tidings.arrays.hashing import hash_span
from tidings.arrays.vocabulary import StoredTexts, join_texts
from tidings.containment.implication import IT, Known, implied_by_iri
from tidings.containment.samples import terms
from tidings.formats.namespaces import RDF
from tidings.kinds.patterns.graphs import GraphBatch, expand
from tidings.kinds.patterns.index import PatternIndex
from tidings.kinds.patterns.kernels.layout import ACCEPT, REJECT, VALUE, WORDS
from tidings.kinds.patterns.table import OP_NUMBER, OPS
from tidings.language import conditions
from tidings.language.query import Between, Comparison, Condition, TextTest, Variable
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Iri, Literal, Term, from_ntriples, ntriples

_ROWS_AT_ONCE = 1 << 13
_SPELLINGS = 8  # of literals that satisfy the same tests, for several variables of one pattern
_MEMBERSHIP = re.compile(re.escape(f"<{RDF}_") + "[0-9]+>")
_Tests = tuple[int, ...]
NONE = -1


class Pairs(NamedTuple):
    """`container[i]` matches the witness of `row[i]`, and `is_proven[i]` says that it contains it. Containers are numbered as in the
    index that they were looked for in."""

    row: np.ndarray
    container: np.ndarray
    is_proven: np.ndarray


class PatternRows:
    """The rows of an index of patterns. `have_witnesses` says of which rows containers can be looked for here."""

    def __init__(self, index: PatternIndex, taxonomy: Taxonomy) -> None:
        arrays = self._arrays = index.arrays
        self._taxonomy = taxonomy
        self._above: Mapping[str, tuple[str, ...]] = taxonomy.super_properties()
        self._shape, self._start, self._slots = (
            arrays[f"row_{name}"] for name in ("shape", "start", "slots")
        )
        self._step_first, self._steps = arrays["program_step_first"], arrays["program_steps"]
        self._texts = StoredTexts(arrays["vocabulary_blob"], arrays["vocabulary_start"])
        self._constants = StoredTexts(arrays["table_constant_blob"], arrays["table_constant_start"])
        self._atoms: np.ndarray = arrays["table_atoms"]
        self._conditions: dict[int, Condition] = {}
        self._known: dict[_Tests, Known] = {}
        self._spellings: dict[_Tests, list[str]] = {}
        self._resources_of: dict[int, frozenset[int]] = {}
        self._implied: dict[tuple[int, int], bool] = {}
        # Literals that stand for tested variables, and the tests that each satisfies.
        self._literals: dict[tuple[_Tests, int], int] = {}
        self._tests_of: list[_Tests] = []
        self._variables: dict[
            int, list[tuple[int, int]]
        ] = {}  # of a row: tested variables, and their literals

    def __len__(self) -> int:
        return len(self._shape)

    @property
    def triples(self) -> np.ndarray:
        """How many triples each row has."""
        return np.diff(self._step_first)[self._shape]

    def triples_of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The triples of rows, end to end: the position in `rows` of each, and its terms: the number of a constant, or
        ~variable."""
        shape, count = self._shape[rows], self.triples[rows]
        refs = self._steps[_ranges(self._step_first[shape], count), :3].astype(np.int64)
        of = np.repeat(np.arange(len(rows)), count)
        return of, np.where(refs >= 0, self._slot(self._start[rows][of][:, None] + refs), refs)

    def tests_of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The tests of those rows that are conjunctions, end to end: the position in `rows` of each, its variable and its atom."""
        first, variables, slots = self._test_columns
        count = np.diff(first)[self._shape[rows]] * self.is_conjunction[rows]
        of, test = np.repeat(np.arange(len(rows)), count), _ranges(first[self._shape[rows]], count)
        return of, variables[test], self._slots[self._start[rows][of] + slots[test]]

    def is_equality(self, atoms: np.ndarray) -> np.ndarray:
        """Of each atom whether it compares with = alone, as a literal in a triple does."""
        found: np.ndarray = self._atoms[atoms, 0] == OP_NUMBER["="]
        return found

    def weakest(self, atoms: np.ndarray) -> int:
        """One of the atoms that all others imply; -1 if there is none."""
        space, low, high, hole = (
            self._arrays[f"atom_{name}"][atoms] for name in ("space", "low", "high", "hole")
        )
        if np.any(space != space[0]) or space[0] not in (VALUE, WORDS):
            return NONE
        widest = np.flatnonzero((low == low.min()) & (high == high.max()) & (hole < 0))
        return int(atoms[widest[0]]) if len(widest) else NONE

    def condition(self, atom: int, operand: Variable) -> Condition:
        """A test of a variable."""
        made = self._condition(atom)
        if isinstance(made, Comparison):
            return replace(made, left=operand)
        assert isinstance(made, Between | TextTest)
        return replace(made, operand=operand)

    def term(self, number: int) -> Term:
        """A constant of triples."""
        return from_ntriples(self._texts[number])

    def key(self, row: int) -> bytes:
        """Equal for rows that match the same graphs because they are the same up to names."""
        shape, start = int(self._shape[row]), int(self._start[row])
        width = int(self._arrays["program_width"][shape])
        return self._programs[shape] + self._slots[start : start + width].tobytes()

    @cached_property
    def _programs(self) -> list[bytes]:
        numbers: dict[tuple[bytes, bytes], int] = {}
        code, code_first = self._arrays["program_code"], self._arrays["program_code_first"]
        return [
            numbers.setdefault((self._steps[a:b].tobytes(), code[c:d].tobytes()), len(numbers)).to_bytes(4)
            for (a, b), (c, d) in zip(
                pairwise(self._step_first.tolist()), pairwise(code_first.tolist()), strict=True
            )
        ]

    @cached_property
    def _tests(self) -> list[tuple[tuple[int, int], ...] | None]:
        """Of each shape (variable, slot) of every test; None if not all of its tests simply have to hold."""
        code, first = self._arrays["program_code"], self._arrays["program_code_first"].tolist()
        found: list[tuple[tuple[int, int], ...] | None] = [()] * (len(first) - 1)
        for shape in np.flatnonzero(np.diff(first)).tolist():
            entries = self._steps[self._step_first[shape] : self._step_first[shape + 1], 4].tolist()
            found[shape] = _conjuncts(entries, code[first[shape] : first[shape + 1]].tolist())
        return found

    @cached_property
    def is_conjunction(self) -> np.ndarray:
        """Of each row; one with ISA is none, because types matter then."""
        found = np.array([tests is not None for tests in self._tests], dtype=np.bool_)[self._shape]
        first, _, slots = self._test_columns
        count = np.diff(first)[self._shape]
        rows = np.repeat(np.arange(len(self)), count)
        atoms = self._slots[self._start[rows] + slots[_ranges(first[self._shape], count)]]
        found[rows[self._atoms[atoms, 0] >= OP_NUMBER["ISA <="]]] = False
        return found

    @cached_property
    def _test_columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The tests of all shapes, end to end: where each shape's begin, variables, slots."""
        tests = [each or () for each in self._tests]
        first = np.concatenate([[0], np.cumsum([len(each) for each in tests])]).astype(np.int64)
        columns = np.array([test for each in tests for test in each], dtype=np.int64).reshape(-1, 2)
        return first, columns[:, 0], columns[:, 1]

    def have_witnesses(self, rows: np.ndarray) -> np.ndarray:
        """Of some rows: each is a conjunction without members of containers, and a literal satisfies the tests on each of
        its tested variables, which are objects."""
        found = self._is_plain[rows]
        for place in np.flatnonzero(found & self._is_tested[self._shape[rows]]).tolist():
            row = int(rows[place])
            found[place] = row in self._variables or self._choose_literals(row)
        return found

    @cached_property
    def _is_tested(self) -> np.ndarray:
        return np.array([bool(tests) for tests in self._tests], dtype=np.bool_)

    @cached_property
    def _is_plain(self) -> np.ndarray:
        """Of each row: it is a conjunction without members of containers."""
        found = self.is_conjunction.copy()
        members = [number for number, text in enumerate(self._texts) if _MEMBERSHIP.fullmatch(text)]
        if members:
            rows = np.repeat(np.arange(len(self)), self.triples)
            property = self._steps[_ranges(self._step_first[self._shape], self.triples), 1]
            number = self._slot(self._start[rows] + property)
            found[rows[(property >= 0) & np.isin(number, members)]] = False
        return found

    def _choose_literals(self, row: int) -> bool:
        """Gives each tested variable of a row a literal that no other has; False if there is none."""
        shape, start = int(self._shape[row]), int(self._start[row])
        tests: dict[int, list[int]] = {}
        for variable, slot in self._tests[shape] or ():
            tests.setdefault(variable, []).append(int(self._slots[start + slot]))
        if not self._resources(shape).isdisjoint(tests):
            return False
        used, chosen = set[str](), list[tuple[int, int]]()
        for variable, atoms in tests.items():
            key = tuple(sorted(atoms))
            spelt = enumerate(self._spelt(key, len(used) + 1))
            number, text = next(((n, text) for n, text in spelt if text not in used), (NONE, ""))
            if number == NONE:
                return False
            used.add(text)
            if (key, number) not in self._literals:
                self._literals[key, number] = len(self._tests_of)
                self._tests_of.append(key)
            chosen.append((variable, self._literals[key, number]))
        self._variables[row] = chosen
        return True

    def _resources(self, shape: int) -> frozenset[int]:
        """The variables of a shape that are subjects or properties, and therefore no literals."""
        if shape not in self._resources_of:
            refs = self._steps[self._step_first[shape] : self._step_first[shape + 1], :2].ravel().tolist()
            self._resources_of[shape] = frozenset(~ref for ref in refs if ref < 0)
        return self._resources_of[shape]

    def _spelt(self, tests: _Tests, count: int) -> list[str]:
        """The first `count` literals, in N-Triples form, that satisfy tests; fewer if there are no more."""
        known = self._spellings.get(tests)
        if known is None or len(known) < count <= _SPELLINGS:
            self._known[tests] = Known.of(map(self._condition, tests))
            found = dict.fromkeys(map(ntriples, islice(self._fitting(tests), count)))
            self._spellings[tests] = list(found)
        return self._spellings[tests]

    def _fitting(self, tests: _Tests) -> Iterator[Literal]:
        """Where an IRI is wanted there are none: no literal compares with it."""
        for term in terms(self._known[tests]):
            if isinstance(term, Literal) and all(
                _holds(test, term) for test in self._known[tests].conditions
            ):
                yield term

    def _condition(self, atom: int) -> Condition:
        if atom not in self._conditions:
            op, low, high = self._atoms[atom].tolist()
            first, last = (from_ntriples(self._constants[number]) for number in (low, high))
            assert isinstance(first, Iri | Literal)
            assert isinstance(last, Iri | Literal)
            if OPS[op] == "BETWEEN":
                made: Condition = Between(IT, first, last)
            elif op < OP_NUMBER["BETWEEN"]:
                made = Comparison(IT, OPS[op], first)
            else:
                assert isinstance(first, Literal)
                made = TextTest(IT, OPS[op], first)
            self._conditions[atom] = made
        return self._conditions[atom]

    def _slot(self, at: np.ndarray) -> np.ndarray:
        """What stands there; anything at the place of a variable, which is before the slots of the row, or of the first one."""
        return self._slots[np.maximum(at, 0)]

    # ------------------------------------------------------------------ matching

    def containers(self, rows: np.ndarray, index: PatternIndex, row_of: np.ndarray) -> Iterator[Pairs]:
        """The rows of an index that match the witnesses of these rows, which must have some; a row is among its own. The
        index has rows of this one, which `row_of` numbers."""
        assert self.have_witnesses(rows).all()
        texts = self._terms()
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            chunk = rows[first : first + _ROWS_AT_ONCE]
            batch, numbers = self._graphs(chunk, *texts)
            expanded = expand(batch, self._above)
            found = index.match(expanded)
            container = row_of[found.row]
            is_proven = ~found.undecided & self.is_conjunction[container]
            first_test, variables, slots = self._test_columns
            shape = self._shape[container]
            count = np.diff(first_test)[shape] * is_proven
            answer = np.repeat(np.arange(len(found.row)), count)
            test = _ranges(first_test[shape], count)
            bound = found.binding[found.first[answer] + variables[test]]
            # What subPropertyOf has added is no term of the row: nothing is known of it.
            term = np.where(bound < len(numbers), numbers[np.minimum(bound, len(numbers) - 1)], -1)
            atom = self._slots[self._start[container[answer]] + slots[test]]
            is_proven[answer[~self._implies(term, atom)]] = False
            yield Pairs(chunk[found.event], found.row, is_proven)

    def _graphs(
        self, rows: np.ndarray, blob: np.ndarray, start: np.ndarray, hashes: np.ndarray
    ) -> tuple[GraphBatch, np.ndarray]:
        """The witnesses of rows, and of each term of theirs its number: those of the vocabulary first, then IRIs that stand
        for variables, then literals."""
        shape, count = self._shape[rows], self.triples[rows]
        refs = self._steps[_ranges(self._step_first[shape], count), :3].astype(np.int64)
        of = np.repeat(np.arange(len(rows)), count)
        variables = self._arrays["variables"][shape].astype(np.int64)
        first_variable = np.concatenate([[0], np.cumsum(variables)])
        term_of_variable = len(self._texts) + _ranges(np.zeros(len(rows), np.int64), variables)
        first_literal = len(self._texts) + self._most_variables
        for place in np.flatnonzero(self._is_tested[shape]).tolist():
            for variable, literal in self._variables[int(rows[place])]:
                term_of_variable[first_variable[place] + variable] = first_literal + literal
        constant = self._slot(self._start[rows][of][:, None] + refs)
        at = np.where(refs < 0, first_variable[of][:, None] + ~refs, -1)
        filled = np.append(term_of_variable, 0)[at]
        distinct, numbers = np.unique(np.where(refs >= 0, constant, filled), return_inverse=True)
        columns = numbers.reshape(refs.shape).astype(np.int32)
        subjects, properties, objects = (np.ascontiguousarray(columns[:, i]) for i in range(3))
        first = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        low, high = start[distinct], start[distinct + 1]
        return GraphBatch(
            0, blob, low, high, hashes[distinct], subjects, properties, objects, first
        ), distinct

    @cached_property
    def _most_variables(self) -> int:
        return int(self._arrays["variables"].max(initial=0))

    @cached_property
    def _named(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The texts of the terms of all rows, and of IRIs for variables; where each begins, and their hashes."""
        known = self._arrays["vocabulary_blob"]
        name = "urn:tidings:any"
        while f"<{name}:".encode() in known.tobytes():
            name += "-"
        blob, start = join_texts(f"<{name}:{variable}>" for variable in range(self._most_variables))
        return _behind(known, self._arrays["vocabulary_start"], np.zeros(0, np.uint64), blob, start)

    def _terms(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same, with the literals."""
        return _behind(*self._named, *join_texts(self._spellings[tests][n] for tests, n in self._literals))

    def _implies(self, term: np.ndarray, atom: np.ndarray) -> np.ndarray:
        """Whether what is known of a term implies a test, for each pair of them."""
        found = self._implies_by_rank(term, atom)
        open = np.flatnonzero(~found)
        keys, which = np.unique(term[open] * (len(self._atoms) + 1) + atom[open], return_inverse=True)
        pairs = zip(*(side.tolist() for side in np.divmod(keys, len(self._atoms) + 1)), strict=True)
        found[open] = np.array([self._implies_one(*pair) for pair in pairs], dtype=np.bool_)[which]
        return found

    def _implies_by_rank(self, term: np.ndarray, atom: np.ndarray) -> np.ndarray:
        """The same where a literal stands for a variable with one test. An index decides a comparison by the rank of a
        value: it is in an interval. So a test implies another if its interval is within that of the other."""
        alone = np.array([tests[0] if len(tests) == 1 else NONE for tests in self._tests_of] or [NONE])
        literal = term - len(self._texts) - self._most_variables
        known = np.where(literal >= 0, alone[np.maximum(literal, 0)], NONE)
        space, low, high, hole = (self._arrays[f"atom_{name}"] for name in ("space", "low", "high", "hole"))
        is_within = (low[atom] <= low[known]) & (high[known] <= high[atom])
        is_whole = (hole[atom] < 0) & np.isin(space[atom], (VALUE, WORDS))
        found: np.ndarray = (known >= 0) & (space[atom] == space[known]) & is_whole & is_within
        return found

    def _implies_one(self, term: int, atom: int) -> bool:
        key = term, atom
        if key not in self._implied:
            literal = term - len(self._texts) - self._most_variables
            if 0 <= term < len(self._texts):
                iri = from_ntriples(self._texts[term])
                holds = isinstance(iri, Iri) and implied_by_iri(
                    iri, self._condition(atom), (), self._taxonomy
                )
            elif literal >= 0:
                holds = self._known[self._tests_of[literal]].implies(self._condition(atom), self._taxonomy)
            else:
                holds = False
            self._implied[key] = holds
        return self._implied[key]


def _conjuncts(entries: list[int], code: list[list[int]]) -> tuple[tuple[int, int], ...] | None:
    """(variable, slot) of each test of a program in which every test leads on if it holds, and to the end if not."""
    found: list[tuple[int, int]] = []
    for entry in entries:
        while entry != ACCEPT:
            if entry < 0 or code[entry][3] != REJECT:
                return None
            found.append((code[entry][0], code[entry][1]))
            entry = code[entry][2]
    return tuple(found)


def _behind(
    blob: np.ndarray, start: np.ndarray, hashes: np.ndarray, more: np.ndarray, more_start: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Texts with more behind them, and the hashes of all; `hashes` are those that are known."""
    both = np.concatenate([blob, more])
    both.flags.writeable = False  # as bytes that were read are: the loops are compiled for these
    starts = np.concatenate([start, len(blob) + more_start[1:]]).astype(np.int64)
    new = [hash_span(both, a, b) for a, b in pairwise(starts[len(hashes) :].tolist())]
    return both, starts, np.concatenate([hashes, np.array(new, dtype=np.uint64)])


def _ranges(first: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The numbers first[i], first[i] + 1, … of every range, one range after the other."""
    before = np.cumsum(count) - count
    ranges: np.ndarray = np.repeat(first - before, count) + np.arange(int(count.sum()))
    return ranges


def _holds(test: Condition, term: Literal) -> bool:
    return conditions.holds(test, {}, {IT.name: term})
