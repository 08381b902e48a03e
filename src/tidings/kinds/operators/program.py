"""A condition with calls -> gates and leaves: what can be decided of a subscription by truth values alone.

An AND or OR of the condition is a gate; a leaf is a predicate, which is a call with the conditions on its own
variables, or a condition without calls and variables, which is known at once. A gate is false, or true, as soon as a
child makes it so. Where variables join several children the truth of the children is necessary, not sufficient: such
a gate is *confirmed* by the definition (naive.py) once no child is false. What hangs on variables from outside is
left out of the gates and left to the confirmation of the gate that binds them. Sub-Order 2.2, with OR and NOT.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any

from tidings.kinds.operators.functions.operator import Operator
from tidings.language.parameters import parameters, substitute
from tidings.language.printer import condition_text, term_text
from tidings.language.query import (
    And,
    Call,
    Condition,
    Not,
    Or,
    Parameter,
    Query,
    Variable,
    conjuncts,
    has_calls,
    leaves,
    variables,
)
from tidings.language.stored_conditions import filled
from tidings.model.terms import from_ntriples

Find = Callable[[str], Operator]


class Text:
    """A text with parameters: its fixed pieces, and between them the names of what comes there."""

    __slots__ = ("_pieces", "condition")

    def __init__(self, condition: Condition) -> None:
        self.condition = condition
        query = Query(condition)
        marked = {name: Parameter(f"\0{name}\0") for name in parameters(query)}
        where = substitute(query, marked).where  # type: ignore[arg-type]
        self._pieces = re.split("\\$\0([^\0]*)\0", condition_text(where))

    def filled(self, values: Mapping[str, str]) -> str:
        """The text with constants, which are given in N-Triples form."""
        if len(self._pieces) == 1:
            return self._pieces[0]
        pieces = list(self._pieces)
        pieces[1::2] = [_constant_text(values[name]) for name in pieces[1::2]]
        return "".join(pieces)


@lru_cache(maxsize=100_000)
def _constant_text(ntriples: str) -> str:
    return term_text(from_ntriples(ntriples))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A child of a gate that is no gate. `evaluation` is None for what is known at once."""

    gate: int
    negated: bool
    predicate: Text
    evaluation: Text | None
    names: tuple[str, ...] = ()
    """The variables that an answer's values are bound to, "" for those that are not reported."""


@dataclass(slots=True)
class Gate:
    """`condition` is what the gate stands for; the first gate is the root."""

    condition: Condition
    is_or: bool
    parent: int = -1
    negated: bool = False
    confirmed: bool = False
    size: int = 0


@dataclass(frozen=True, slots=True)
class Program:
    """The gates and leaves of a condition; parents come before their children."""

    condition: Condition
    gates: list[Gate] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    others: list[Text] = field(default_factory=list)
    """The calls that are no leaves."""
    binds: bool = False
    """Whether it has variables, or triples beside it have, so that a match has bindings."""
    joins: bool = False
    """Whether it looks at variables that triples bind."""

    @property
    def is_plain(self) -> bool:
        """Whether it is an AND of calls that share no variable, so that each binds its own."""
        return len(self.gates) == 1 and not self.gates[0].confirmed

    def filled(self, values: Mapping[str, Any]) -> Program:
        """The program with constants for its parameters, but for the texts of its leaves."""
        if not values:
            return self
        gates = [replace(gate, condition=filled((gate.condition,), values)[0]) for gate in self.gates]
        return replace(self, condition=filled((self.condition,), values)[0], gates=gates)


def compile_program(
    condition: Condition, outer: frozenset[Variable], find: Find, select: Sequence[Variable] | None = None
) -> Program:
    """The program of a condition with calls; `outer` are the variables that triples bind, `select` those that are
    reported, None for all."""
    names = frozenset(variables(condition))
    program = Program(condition, binds=bool(names | outer), joins=bool(names & outer))
    compiler = _Compiler(program, find, select)
    compiler.conjunction(And((condition,)) if not isinstance(condition, And) else condition, outer)
    calls = (leaf for leaf in leaves(condition) if isinstance(leaf, Call))
    program.others.extend(Text(call) for call in calls if call not in compiler.placed)
    return program


class _Compiler:
    def __init__(self, program: Program, find: Find, select: Sequence[Variable] | None) -> None:
        self.program, self.find, self.select = program, find, select
        self.placed: list[Call] = []

    def conjunction(
        self, condition: And, outer: frozenset[Variable], parent: int = -1, negated: bool = False
    ) -> None:
        """Adds the gate of an AND, and whatever stands under it."""
        parts = conjuncts(condition)
        number = self._gate(Gate(condition, False, parent, negated))
        gate = self.program.gates[number]
        binders = [part for part in parts if has_calls(part)]
        tests = [part for part in parts if not has_calls(part)]
        taken: set[int] = set()
        for part in binders:
            own = frozenset(variables(part))
            around = outer.union(*(variables(other) for other in binders if other is not part))
            if isinstance(part, Call) and not self._open(part):
                checks = [i for i, test in enumerate(tests) if _is_about(test, own - outer)]
                taken.update(checks)
                self._predicate(number, part, [tests[i] for i in checks], False)
                gate.confirmed |= bool(own & around)
            else:
                gate.confirmed |= not self._part(number, part, around)
        for i, test in enumerate(tests):
            if i in taken:
                continue
            if variables(test):
                gate.confirmed = True
            else:
                self._leaf(number, Leaf(number, False, Text(test), None))
        # What depends on outer variables cannot be confirmed here; the gate that binds them does so.
        if parent >= 0 and outer & frozenset(variables(condition)):
            gate.confirmed = False

    def _part(self, gate: int, part: Condition, outer: frozenset[Variable], negated: bool = False) -> bool:
        """Adds a child; False if its truth alone does not say what the condition says."""
        depends = bool(outer & frozenset(variables(part)))
        if isinstance(part, Not):
            # Under a NOT that depends on outer variables nothing is necessary.
            return not depends and self._part(gate, part.part, outer, not negated)
        if isinstance(part, Or):
            if depends and not all(self._stands(other, outer) for other in part.parts):
                return False
            number = self._gate(Gate(part, True, gate, negated))
            for other in part.parts:
                self._child(number, other, outer)
            return not depends
        if isinstance(part, And):
            self.conjunction(part, outer, gate, negated)
            return not depends
        if isinstance(part, Call):
            if self._open(part):
                return False
            self._predicate(gate, part, [], negated, reported=False)
            return not depends
        self._leaf(gate, Leaf(gate, negated, Text(part), None))
        return True

    def _child(self, gate: int, part: Condition, outer: frozenset[Variable]) -> None:
        """Adds a child of an OR, which has to be as a whole: what is more than its truth gets a gate to confirm it."""
        depends = bool(outer & frozenset(variables(part)))
        if isinstance(part, Call) and self._open(part) and not depends:
            self.conjunction(And((part,)), outer, gate)
        else:
            self._part(gate, part, outer)

    def _stands(self, part: Condition, outer: frozenset[Variable]) -> bool:
        """Whether something necessary is left of a part without what depends on outer variables."""
        if isinstance(part, Call):
            return not self._open(part)
        if not outer & frozenset(variables(part)):
            return True
        if isinstance(part, And):
            calls = [other for other in conjuncts(part) if has_calls(other)]
            around = [
                outer.union(*(variables(other) for other in calls if other is not call)) for call in calls
            ]
            return any(map(self._stands, calls, around))
        if isinstance(part, Or):
            return all(self._stands(other, outer) for other in part.parts)
        return False

    def _predicate(
        self, gate: int, call: Call, checks: Sequence[Condition], negated: bool, reported: bool = True
    ) -> None:
        """Adds a call as a leaf; `reported`: what it binds is in the notification; under a NOT nothing is."""
        self.placed.append(call)
        operator = self.find(call.name)
        names: dict[Variable, Variable] = {}
        for argument in operator.outs_of(call):
            if isinstance(argument, Variable):
                names.setdefault(argument, Variable(str(len(names) + 1)))
        renamed = _renamed(And((call, *checks)) if checks else call, names)
        inputs = iter(operator.inputs_of(call))
        outs = (Variable(str(number)) for number in range(1, len(call.arguments) + 1))
        arguments = tuple(next(outs) if p.is_out else next(inputs) for p in operator.parameters)
        reported_names = tuple(self._name(out) for out in operator.outs_of(call)) if reported else ()
        self._leaf(gate, Leaf(gate, negated, Text(renamed), Text(Call(call.name, arguments)), reported_names))

    def _name(self, out: object) -> str:
        reported = isinstance(out, Variable) and (self.select is None or out in self.select)
        return out.name if reported and isinstance(out, Variable) else ""

    def _open(self, call: Call) -> bool:
        """Whether the call is known under a binding only."""
        return any(isinstance(argument, Variable) for argument in self.find(call.name).inputs_of(call))

    def _leaf(self, gate: int, leaf: Leaf) -> None:
        self.program.gates[gate].size += 1
        self.program.leaves.append(leaf)

    def _gate(self, gate: Gate) -> int:
        if gate.parent >= 0:
            self.program.gates[gate.parent].size += 1
        self.program.gates.append(gate)
        return len(self.program.gates) - 1


def _is_about(test: Condition, own: frozenset[Variable]) -> bool:
    """Whether every leaf of a test looks at some of these variables, and at no others.

    A leaf on attributes alone may decide the test when the call fails that binds them.
    """
    return all(names and own.issuperset(names) for names in map(variables, leaves(test)))


def _renamed(node: Any, names: Mapping[Variable, Variable]) -> Any:
    """A condition, or a part of one, with other variables."""
    if isinstance(node, Variable):
        return names.get(node, node)
    if isinstance(node, tuple):
        return tuple(_renamed(part, names) for part in node)
    if is_dataclass(node):
        return type(node)(*(_renamed(getattr(node, f.name), names) for f in fields(node)))  # type: ignore[misc]
    return node
