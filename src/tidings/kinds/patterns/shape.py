"""Compiles a pattern to a shape: a small program that all patterns share which differ only in their constants.

A row of the index is a shape and its constants, so a thousand texts of one shape share one program.

    slots     constants of a row: first the terms of its edges, then its tests (atoms)
    steps     the edges in the order in which they are joined, each found by what is bound by then
    code      the tests that become decidable after a step, as jumps: (variable, slot, if true, if false)
    options   the ways to file a row besides its edges: by a test on an object; options of one group form one way
              (an IN is filed under each of its values)

Edges that share no variable form separate parts, which are matched independently: a pattern of unconnected edges costs
the sum of its parts, not their product.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from tidings.errors import SubscriptionError
from tidings.kinds.patterns.kernels.layout import (
    ACCEPT,
    ALL,
    ISA,
    PO,
    POINT,
    RANGE,
    REJECT,
    REPEATED,
    SO,
    SP,
    SPO,
    TEXT,
    O,
    P,
    S,
)
from tidings.language.query import (
    And,
    Between,
    Comparison,
    Condition,
    Constant,
    IsA,
    Leaf,
    Not,
    OneOf,
    Or,
    Parameter,
    TextTest,
    TriplePattern,
    Variable,
    variables,
)
from tidings.model.terms import Literal
from tidings.model.text_tests import is_search

_PREFERENCE = {SPO: 0, SP: 1, PO: 1, SO: 2, S: 3, O: 3, P: 4, ALL: 5}
_RANGES = frozenset({"<", "<=", ">", ">=", "BETWEEN"})

MAX_EDGES = 1000
MAX_COMPARISONS = 29_000  # with three terms for each edge they are numbered in 16 bits
MAX_OPTIONS = 1000  # one good way to file a row is enough


@dataclass(frozen=True, slots=True)
class Pattern:
    """Edges that must all be there, and conditions on their variables that must all hold, jointly."""

    edges: tuple[TriplePattern, ...]
    tests: tuple[Condition, ...] = ()
    select: tuple[Variable, ...] | None = None  # None: all of them


@dataclass(frozen=True, slots=True)
class Atom:
    """One test of a variable against constants: op is a comparison, BETWEEN, KIND, LIKE, …, `ISA <=`."""

    op: str
    constants: tuple[Constant, ...]


@dataclass(slots=True)
class PatternShape:
    """A compiled pattern; `terms` and `atoms` say what each slot of a row has to be filled with.

    A shape read back from an index has its programs and the counts of its slots, which is all that its rows need.
    """

    variables: tuple[str | None, ...] = ()
    select: tuple[int, ...] = ()  # the variables in notifications, in the order of SELECT
    terms: list[Constant] = field(default_factory=list)
    atoms: list[Atom] = field(default_factory=list)
    steps: np.ndarray = field(default_factory=lambda: np.zeros((0, 6), dtype=np.int16))
    code: np.ndarray = field(default_factory=lambda: np.zeros((0, 4), dtype=np.int16))
    options: np.ndarray = field(default_factory=lambda: np.zeros((0, 4), dtype=np.int16))

    term_count: int = 0
    width: int = 0
    never: bool = False  # no event can match: a condition is false whatever is bound

    def key(self) -> tuple[object, ...]:
        """Equal keys for shapes whose rows mean the same by the same slots."""
        programs = (self.steps.tobytes(), self.code.tobytes(), self.options.tobytes())
        return (
            self.variables,
            self.select,
            *programs,
            self.term_count,
            self.width,
            tuple(self.terms),
            tuple(self.atoms),
        )


def compile_pattern(pattern: Pattern, literals: Collection[Parameter] = ()) -> PatternShape:
    """The shape of `pattern`. A literal that stands as an object is matched by value: it becomes a variable
    without a name and a test `= literal`; so does a parameter that is one of `literals`."""
    if len(pattern.edges) > MAX_EDGES:
        raise SubscriptionError(
            f"the pattern has {len(pattern.edges):,} triples, over {MAX_EDGES:,}; split the subscription"
        )
    return _Compiler(pattern, literals).shape


class _Compiler:
    def __init__(self, pattern: Pattern, literals: Collection[Parameter]) -> None:
        self.shape = PatternShape()
        self.literals = literals
        self.slots: dict[Variable, int] = {}
        self.term_slots: dict[Constant, int] = {}
        self.atom_slots: dict[Atom, int] = {}
        tests = list(pattern.tests)
        edges = list(dict.fromkeys(self._edge(edge, tests) for edge in pattern.edges))
        self.tests = [(test, frozenset(self._variables(test))) for test in tests]
        self.code: list[tuple[int, int, int, int]] = []
        # Without variables of these edges a test is a constant: unbound variables satisfy nothing.
        self.shape.never = any(
            not vs and self._emit(test, ACCEPT, REJECT) == REJECT for test, vs in self.tests
        )
        self.shape.variables = tuple(None if v.name.startswith(" ") else v.name for v in self.slots)
        chosen = [v for v in (pattern.select or self.slots) if v in self.slots]
        self.shape.select = tuple(self.slots[v] for v in chosen if not v.name.startswith(" "))
        self.steps: list[tuple[int, ...]] = []
        for part in self._parts(edges):
            self._join(part)
        self.options: list[tuple[int, ...]] = []
        self._file(edges)
        self._order_terms()
        # Atoms come behind all terms; until now they were numbered from zero.
        base = len(self.shape.terms)
        code = np.array(self.code, dtype=np.int16).reshape(-1, 4)
        code[:, 1] += base
        options = np.array(self.options, dtype=np.int16).reshape(-1, 4)
        options[:, 3] += base
        self.shape.steps = np.array(self.steps, dtype=np.int16).reshape(-1, 6)
        self.shape.code, self.shape.options = code, options
        self.shape.term_count, self.shape.width = base, base + len(self.shape.atoms)

    def _order_terms(self) -> None:
        """Numbers the terms as the steps need them, so that a row that fails early is read no further."""
        new_slot: dict[int, int] = {}
        for step in self.steps:
            for ref in step[:3]:
                if ref >= 0:
                    new_slot.setdefault(ref, len(new_slot))
        self.shape.terms = [self.shape.terms[old] for old in new_slot]
        new_slot.update({ref: ref for ref in range(-len(self.slots), 0)})
        self.steps = [(new_slot[s], new_slot[p], new_slot[o], *rest) for s, p, o, *rest in self.steps]
        self.options = [(group, kind, new_slot[p], atom) for group, kind, p, atom in self.options]

    def _edge(self, edge: TriplePattern, tests: list[Condition]) -> tuple[int, int, int]:
        return (
            self._node(edge.subject, tests),
            self._node(edge.property, tests),
            self._node(edge.object, tests),
        )

    def _node(self, node: Variable | Constant, tests: list[Condition]) -> int:
        """A reference: a slot of the row when >= 0, else ~variable."""
        if isinstance(node, Variable):
            return ~self.slots.setdefault(node, len(self.slots))
        if isinstance(node, Literal) or node in self.literals:
            hidden = Variable(f" {len(self.slots)}")
            tests.append(Comparison(hidden, "=", node))
            return ~self.slots.setdefault(hidden, len(self.slots))
        if node not in self.term_slots:
            self.term_slots[node] = len(self.shape.terms)
            self.shape.terms.append(node)
        return self.term_slots[node]

    def _variables(self, test: Condition) -> Iterable[int]:
        return (self.slots[v] for v in variables(test) if v in self.slots)

    def _parts(self, edges: Sequence[tuple[int, int, int]]) -> list[list[tuple[int, int, int]]]:
        """Edges grouped by the variables they share, directly or through a test; cheap groups first."""
        parent = list(range(len(self.slots)))

        def root(v: int) -> int:
            while parent[v] != v:
                v = parent[v]
            return v

        links = [[~ref for ref in edge if ref < 0] for edge in edges] + [list(vs) for _, vs in self.tests]
        for linked in links:
            for v in linked[1:]:
                parent[root(v)] = root(linked[0])
        parts: dict[int, list[tuple[int, int, int]]] = {}
        for number, (edge, inside) in enumerate(zip(edges, links, strict=False)):
            parts.setdefault(root(inside[0]) if inside else -1 - number, []).append(edge)
        return sorted(parts.values(), key=len)

    def _join(self, part: list[tuple[int, int, int]]) -> None:
        """Appends the steps of one part: each time the edge that the variables bound so far narrow down most."""
        first = len(self.steps)
        if len(part) == 1 and min(part[0]) >= 0:
            self.steps.append((*part[0], SPO, ACCEPT, first + 1))
            return
        bound: set[int] = set()
        tested = {v for _, vs in self.tests if len(vs) == 1 for v in vs}
        left = list(part)
        while left:
            edge = min(left, key=partial(self._cost, bound, tested))
            left.remove(edge)
            mode = self._mode(edge, bound)
            before = frozenset(bound)
            bound |= {~ref for ref in edge if ref < 0}
            due = [test for test, vs in self.tests if vs <= bound and not vs <= before]
            entry = self._emit(And(tuple(due)), ACCEPT, REJECT) if due else ACCEPT
            repeated = len({ref for ref in edge if ref < 0}) < sum(ref < 0 for ref in edge)
            self.steps.append((*edge, mode + REPEATED * repeated, entry, 0))
        last = len(self.steps)
        self.steps[first:] = [(*step[:5], last) for step in self.steps[first:]]

    def _cost(self, bound: set[int], tested: set[int], edge: tuple[int, int, int]) -> tuple[int, int]:
        """The sort key for the next edge: first edges with more bound terms, then those that bind more tested variables."""
        binds_tested = len({~ref for ref in edge if ref < 0} & tested - bound)
        return _PREFERENCE[self._mode(edge, bound)], -binds_tested

    @staticmethod
    def _mode(edge: tuple[int, int, int], bound: set[int]) -> int:
        s, p, o = edge
        return 4 * (s >= 0 or ~s in bound) + 2 * (p >= 0 or ~p in bound) + (o >= 0 or ~o in bound)

    def _emit(self, condition: Condition, true: int, false: int) -> int:
        """Appends code for `condition`, back to front; returns where it starts."""
        if isinstance(condition, And):
            for part in reversed(condition.parts):
                true = self._emit(part, true, false)
            return true
        if isinstance(condition, Or):
            for part in reversed(condition.parts):
                false = self._emit(part, true, false)
            return false
        if isinstance(condition, Not):
            return self._emit(condition.part, false, true)
        if _operand(condition) not in self.slots:
            return false
        if isinstance(condition, OneOf):
            equal = [Atom("=", (option,)) for option in condition.options]
            slot = self.slots[_operand(condition)]
            if not condition.negated:
                for atom in reversed(equal):
                    false = self._instruction(slot, atom, true, false)
                return false
            for atom in reversed(equal):
                true = self._instruction(slot, atom, false, true)
            for atom in reversed([Atom("KIND", (option,)) for option in condition.options]):
                false = self._instruction(slot, atom, true, false)
            return false
        return self._instruction(self.slots[_operand(condition)], _atom(condition), true, false)

    def _instruction(self, slot: int, atom: Atom, true: int, false: int) -> int:
        self.code.append((slot, self._atom_slot(atom), true, false))
        if len(self.code) > MAX_COMPARISONS:
            raise SubscriptionError(
                f"the conditions have more than {MAX_COMPARISONS:,} comparisons; split the subscription"
            )
        return len(self.code) - 1

    def _atom_slot(self, atom: Atom) -> int:
        if atom not in self.atom_slots:
            self.atom_slots[atom] = len(self.shape.atoms)
            self.shape.atoms.append(atom)
        return self.atom_slots[atom]

    def _file(self, edges: Iterable[tuple[int, int, int]]) -> None:
        """The access options: (group, kind, slot of the property, slot of the test)."""
        conjuncts = [test for test, vs in self.tests if len(vs) == 1 and not isinstance(test, And | Or | Not)]
        group = 0
        for _, p, o in edges if conjuncts else ():
            for test in conjuncts:
                if p < 0 or o >= 0 or self.slots[_operand(test)] != ~o or len(self.options) >= MAX_OPTIONS:
                    continue
                if isinstance(test, OneOf) and not test.negated and len(test.options) <= 64:
                    for option in test.options:
                        self.options.append((group, POINT, p, self.atom_slots[Atom("=", (option,))]))
                elif (kind := _access(test)) is not None:
                    self.options.append((group, kind, p, self.atom_slots[_atom(test)]))
                group += 1


def _operand(leaf: Leaf) -> Variable:
    operand = leaf.left if isinstance(leaf, Comparison) else leaf.operand  # type: ignore[union-attr]
    assert isinstance(operand, Variable)
    return operand


def _access(leaf: Leaf) -> int | None:
    """The access option of a test on an object: by one value, by a range, by a text or by a class."""
    op = _atom(leaf).op if not isinstance(leaf, OneOf) else "NOT IN"
    if op == "=":
        return POINT
    if op in _RANGES:
        return RANGE
    if op in ("LIKE", "CONTAINS", "MATCHES") or is_search(op):
        return TEXT
    return ISA if op == "ISA <=" else None


def _atom(leaf: Leaf) -> Atom:
    if isinstance(leaf, Comparison):
        return Atom(leaf.op, (leaf.right,))  # type: ignore[arg-type]
    if isinstance(leaf, Between):
        return Atom("BETWEEN", (leaf.low, leaf.high))
    if isinstance(leaf, TextTest):
        return Atom(leaf.op, (leaf.pattern,))
    assert isinstance(leaf, IsA)
    return Atom(f"ISA {leaf.op}", (leaf.cls,))
