"""The tests in patterns of an index: literals that satisfy those on one variable, and whether they imply another test.

A literal is chosen once for all rows that have the same tests on the same variables, so rows cost no more than NumPy
takes for them. Implication is mostly a look at intervals: an index decides a comparison by the rank of a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import islice

import numpy as np

from tidings.arrays.vocabulary import StoredTexts
from tidings.containment.implication import IT, Known, implied_by_iri
from tidings.containment.samples import terms
from tidings.kinds.patterns.kernels.layout import ACCEPT, REJECT, VALUE, WORDS
from tidings.kinds.patterns.table import OP_NUMBER, OPS
from tidings.language import conditions
from tidings.language.query import Between, Comparison, Condition, TextTest, Variable
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Iri, Literal, from_ntriples, ntriples

NONE = -1
_ISA = [OP_NUMBER[op] for op in ("ISA <=", "ISA >=", "ISA =")]
_UNKNOWN = -2
_SPELLINGS = 8  # of literals that satisfy the same tests, for several variables of one pattern
_Tests = tuple[int, ...]
"""Numbers of atoms, ascending: those on one variable of a row."""


class PatternTests:
    """The tests of all rows; `literals` grow as rows are looked at."""

    def __init__(self, arrays: Mapping[str, np.ndarray], taxonomy: Taxonomy) -> None:
        self._arrays, self._taxonomy = arrays, taxonomy
        self._shape, self._start, self._slots = (
            arrays[f"row_{name}"] for name in ("shape", "start", "slots")
        )
        self._texts = StoredTexts(arrays["vocabulary_blob"], arrays["vocabulary_start"])
        self._constants = StoredTexts(arrays["table_constant_blob"], arrays["table_constant_start"])
        self._atoms: np.ndarray = arrays["table_atoms"]
        self._conditions: dict[int, Condition] = {}
        self._known: dict[_Tests, Known] = {}
        self._spellings: dict[_Tests, list[str]] = {}
        self._implied: dict[tuple[int, int, int], bool] = {}
        self._literals: dict[tuple[_Tests, int], int] = {}
        self._tests_of: list[_Tests] = []  # that a literal satisfies
        # choice[row] is a choice of literals for its tested variables; choice 0, of rows without tests, has none.
        self._choice = np.where(self._is_tested[self._shape], _UNKNOWN, 0).astype(np.int32)
        self._choices: dict[tuple[int, ...], int] = {(): 0}
        self._chosen: list[list[tuple[int, int]]] = [[]]

    @cached_property
    def of_shapes(self) -> list[tuple[tuple[int, int], ...] | None]:
        """Of each shape (variable, slot) of every test; None if not all of its tests simply have to hold."""
        steps, step_first = self._arrays["program_steps"], self._arrays["program_step_first"]
        code, first = self._arrays["program_code"], self._arrays["program_code_first"].tolist()
        found: list[tuple[tuple[int, int], ...] | None] = [()] * (len(first) - 1)
        for shape in np.flatnonzero(np.diff(first)).tolist():
            entries = steps[step_first[shape] : step_first[shape + 1], 4].tolist()
            found[shape] = _conjuncts(entries, code[first[shape] : first[shape + 1]].tolist())
        return found

    @cached_property
    def columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The tests of all shapes, end to end: where each shape's begin, variables, slots."""
        tests = [each or () for each in self.of_shapes]
        first = np.concatenate([[0], np.cumsum([len(each) for each in tests])]).astype(np.int64)
        columns = np.array([test for each in tests for test in each], dtype=np.int64).reshape(-1, 2)
        return first, columns[:, 0], columns[:, 1]

    @cached_property
    def _is_tested(self) -> np.ndarray:
        return np.diff(self.columns[0]) > 0

    @cached_property
    def is_conjunction(self) -> np.ndarray:
        """Of each row; one with ISA is none, because types matter then."""
        found = np.array([tests is not None for tests in self.of_shapes], dtype=np.bool_)[self._shape]
        first, _, slots = self.columns
        count = np.diff(first)[self._shape]
        rows = np.repeat(np.arange(len(self._shape)), count)
        atoms = self._slots[self._start[rows] + slots[ranges(first[self._shape], count)]]
        found[rows[np.isin(self._atoms[atoms, 0], _ISA)]] = False
        return found

    def of_rows(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The tests of those rows that are conjunctions, end to end: the position in `rows` of each, its variable and its atom."""
        first, variables, slots = self.columns
        count = np.diff(first)[self._shape[rows]] * self.is_conjunction[rows]
        of, test = np.repeat(np.arange(len(rows)), count), ranges(first[self._shape[rows]], count)
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

    # ------------------------------------------------------------------ literals

    def have_literals(self, rows: np.ndarray) -> np.ndarray:
        """Of some conjunctions whether a literal satisfies the tests on each tested variable, all of which are objects."""
        unknown = rows[self._choice[rows] == _UNKNOWN]
        count = np.diff(self.columns[0])[self._shape[unknown]]
        for tests in np.unique(count).tolist():
            self._choose(unknown[count == tests], tests)
        return self._choice[rows] >= 0

    def _choose(self, rows: np.ndarray, tests: int) -> None:
        """Chooses literals for rows with so many tests each, once for equal tests."""
        first, variables, slots = self.columns
        at = first[self._shape[rows]][:, None] + np.arange(tests)
        atoms = self._slots[self._start[rows][:, None] + slots[at]].astype(np.int64)
        same = np.where(self._tests_resources[self._shape[rows]], 0, 1)
        for column in (*variables[at].T, *atoms.T):
            same = np.unique(same * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1]
        _, example, of = np.unique(same, return_index=True, return_inverse=True)
        chosen = [
            NONE
            if self._tests_resources[self._shape[rows[each]]]
            else self._choice_of(variables[at[each]].tolist(), atoms[each].tolist())
            for each in example.tolist()
        ]
        self._choice[rows] = np.array(chosen, dtype=np.int32)[of]

    @cached_property
    def _tests_resources(self) -> np.ndarray:
        """Of each shape whether it tests a variable that is a subject or a property, and therefore no literal."""
        steps, step_first = self._arrays["program_steps"], self._arrays["program_step_first"]
        most = int(self._arrays["variables"].max(initial=0)) + 1
        shapes = np.arange(len(step_first) - 1)
        refs = steps[:, :2].astype(np.int64)
        of = np.repeat(shapes, np.diff(step_first))[:, None] * most
        first, variables, _ = self.columns
        tested = np.repeat(shapes, np.diff(first)) * most + variables
        found = np.zeros(len(shapes), dtype=np.bool_)
        found[tested[np.isin(tested, (of + ~refs)[refs < 0])] // most] = True
        return found

    def _choice_of(self, variables: list[int], atoms: list[int]) -> int:
        """A choice for tests on variables: each gets a literal that no other has. -1 if there is none."""
        key = (*variables, *atoms)
        if key not in self._choices:
            chosen = self._literals_for(variables, atoms)
            self._choices[key] = NONE if chosen is None else len(self._chosen)
            self._chosen += [] if chosen is None else [chosen]
        return self._choices[key]

    def _literals_for(self, variables: list[int], atoms: list[int]) -> list[tuple[int, int]] | None:
        tests: dict[int, list[int]] = {}
        for variable, atom in zip(variables, atoms, strict=True):
            tests.setdefault(variable, []).append(atom)
        used, chosen = set[str](), list[tuple[int, int]]()
        for variable, together in tests.items():
            key = tuple(sorted(together))
            spelt = enumerate(self._spelt(key, len(used) + 1))
            number, text = next(((n, text) for n, text in spelt if text not in used), (NONE, ""))
            if number == NONE:
                return None
            used.add(text)
            if (key, number) not in self._literals:
                self._literals[key, number] = len(self._tests_of)
                self._tests_of.append(key)
            chosen.append((variable, self._literals[key, number]))
        return chosen

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

    def literal_texts(self) -> Iterator[str]:
        """The literals that were chosen so far, by their numbers."""
        return (self._spellings[tests][number] for tests, number in self._literals)

    def literals_of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The tested variables of rows that have literals: the place of the row, the variable and its literal."""
        columns = np.array([pair for each in self._chosen for pair in each], dtype=np.int64).reshape(-1, 2)
        first = np.concatenate([[0], np.cumsum([len(each) for each in self._chosen])]).astype(np.int64)
        choice = self._choice[rows]
        count = np.diff(first)[choice]
        at = ranges(first[choice], count)
        return np.repeat(np.arange(len(rows)), count), columns[at, 0], columns[at, 1]

    # ------------------------------------------------------------------ implication

    def implies(self, iri: np.ndarray, literal: np.ndarray, atom: np.ndarray) -> np.ndarray:
        """Whether what is known of a term implies a test, for each pair of them: a term is an IRI of the vocabulary, or a
        literal that stands for a variable; -1: it is not."""
        found = self._implies_by_rank(literal, atom)
        open = np.flatnonzero(~found)
        triples = np.stack([iri[open], literal[open], atom[open]], axis=1)
        distinct, which = np.unique(triples, axis=0, return_inverse=True)
        holds = [self._implies_one(*triple) for triple in distinct.tolist()]
        found[open] = np.array(holds, dtype=np.bool_)[which]
        return found

    def _implies_by_rank(self, literal: np.ndarray, atom: np.ndarray) -> np.ndarray:
        """The same where a literal stands for a variable with one test. An index decides a comparison by the rank of a
        value: it is in an interval. So a test implies another if its interval is within that of the other."""
        alone = np.array([tests[0] if len(tests) == 1 else NONE for tests in self._tests_of] or [NONE])
        known = np.where(literal >= 0, alone[np.maximum(literal, 0)], NONE)
        space, low, high, hole = (self._arrays[f"atom_{name}"] for name in ("space", "low", "high", "hole"))
        is_within = (low[atom] <= low[known]) & (high[known] <= high[atom])
        is_whole = (hole[atom] < 0) & np.isin(space[atom], (VALUE, WORDS))
        found: np.ndarray = (known >= 0) & (space[atom] == space[known]) & is_whole & is_within
        return found

    def _implies_one(self, iri: int, literal: int, atom: int) -> bool:
        key = iri, literal, atom
        if key not in self._implied:
            holds = False
            if iri >= 0:
                term = from_ntriples(self._texts[iri])
                holds = isinstance(term, Iri) and implied_by_iri(
                    term, self._condition(atom), (), self._taxonomy
                )
            elif literal >= 0:
                holds = self._known[self._tests_of[literal]].implies(self._condition(atom), self._taxonomy)
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


def _holds(test: Condition, term: Literal) -> bool:
    return conditions.holds(test, {}, {IT.name: term})


def ranges(first: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The numbers first[i], first[i] + 1, … of every range, one range after the other."""
    before = np.cumsum(count) - count
    found: np.ndarray = np.repeat(first - before, count) + np.arange(int(count.sum()))
    return found
