"""Whether one subscription contains another: every event that matches B also matches A. "No" where that is not certain.

It is certain if every way to satisfy B is one to satisfy A: A's triples can be mapped into B's (a homomorphism), each
condition of A follows from what B says of the terms that its variables are mapped to (implication.py), and each one
on an attribute from one condition of B. NOT, MISSING, arithmetic, ANY … SATISFIES and calls have to be the same, up to
the names of variables. RSS cluster, 4.2, with the corrections of docs/papers.md.

`FROM` is taken as the name of a stream. Subscriptions to changes of tables contain only their equals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tidings.containment.frozen_ways import FrozenWay, frozen_ways, is_of_tables
from tidings.containment.implication import Known, bare, gives_value, replaced, subject
from tidings.containment.naive import Edge
from tidings.language.printer import term_text
from tidings.language.query import (
    Attribute,
    Call,
    Condition,
    Exists,
    Node,
    Query,
    Variable,
    has_calls,
    variables,
)
from tidings.model.event import Event
from tidings.model.taxonomy import Taxonomy

MAX_STEPS = 20_000
"""Attempts to map a triple, for one way of A and one of B; a pattern that needs more is said not to contain the other."""

Terms = dict[Variable, Node]
Goal = Edge | Call


@dataclass(frozen=True, slots=True)
class Containment:
    """Whether A contains B. If so, `mapping` is the proof: for each way to satisfy B the terms of B that A's variables are
    mapped to, as texts. If not, `counterexample` is an event that matches B and not A; without one it is not certain that
    there is any."""

    holds: bool
    mapping: tuple[Mapping[str, str], ...] = ()
    counterexample: Event | None = None

    def __bool__(self) -> bool:
        return self.holds

    @property
    def is_certain(self) -> bool:
        return self.holds or self.counterexample is not None


NO = Containment(False)


def contains(a: Query, b: Query, taxonomy: Taxonomy) -> Containment:
    """Whether every event that matches `b` matches `a`, with the mapping that proves it; NO also means not sure."""
    if is_of_tables(a) or is_of_tables(b):
        return Containment(True, ({},)) if a == b else NO
    if a.stream not in (None, b.stream) or a.via not in (None, b.via):
        return NO
    proofs: list[Mapping[str, str]] = []
    wider = frozen_ways(a, taxonomy)
    for narrower in frozen_ways(b, taxonomy):
        if narrower.is_contradictory:
            continue  # no event comes this way
        found = (mapping for way in wider if (mapping := _mapped(way, narrower)) is not None)
        if (mapping := next(found, None)) is None:
            return NO
        proofs.append(_texts(mapping, narrower))
    # Of a subscription that nothing can match everything is true, and nothing is of use.
    return Containment(True, tuple(proofs)) if proofs else NO


def _texts(mapping: Terms, way: FrozenWay) -> dict[str, str]:
    return {
        name.name: term_text(way.literals.get(node, node) if isinstance(node, Variable) else node)
        for name, node in mapping.items()
    }


def _mapped(a: FrozenWay, b: FrozenWay) -> Terms | None:
    """The mapping of A's variables under which A follows from B; without the variables that stand for literals."""
    if a.content == b.content:
        return {name: name for name in sorted(a.bound - a.literals.keys(), key=lambda name: name.name)}
    if a.hides_calls or not all(_is_given(test, b) for test in a.tests if not variables(test)):
        return None
    if any(name not in a.bound for test in a.tests for name in variables(test)):
        return None
    found = _Search(a, b).run()
    return None if found is None else {n: node for n, node in found.items() if n not in a.literals}


def _is_given(test: Condition, b: FrozenWay) -> bool:
    """Whether a test without variables follows from one test of B: an attribute may have several values."""
    if test in b.tests:
        return True
    if isinstance(test, Exists):
        return any(gives_value(other, test.attribute) for other in b.tests)
    attribute = subject(test)
    if not isinstance(attribute, Attribute):
        return False
    wanted = bare(test, attribute)
    return any(
        Known.of((bare(other, attribute),)).implies(wanted, b.taxonomy)
        for other in b.tests
        if subject(other) == attribute
    )


class _TooManySteps(Exception):
    pass


class _Search:
    """The search for a homomorphism, by backtracking: next comes the triple that can be mapped in the fewest ways."""

    def __init__(self, a: FrozenWay, b: FrozenWay) -> None:
        self._a, self._b, self._left = a, b, MAX_STEPS
        self._own: dict[Variable, list[Condition]] = {}
        self._joint: list[Condition] = []
        for test in a.tests:
            if isinstance(name := subject(test), Variable):
                self._own.setdefault(name, []).append(bare(test, name))
            elif variables(test) and not has_calls(test):
                self._joint.append(test)
        self._fits: dict[tuple[Variable, Node], bool] = {}

    def run(self) -> Terms | None:
        try:
            return self._extend({}, [*self._a.edges, *self._a.calls])
        except _TooManySteps:
            return None

    def _extend(self, mapping: Terms, goals: list[Goal]) -> Terms | None:
        if not goals:
            return mapping if self._agrees_on_calls(mapping) else None
        options = [(list(self._images(goal, mapping)), at) for at, goal in enumerate(goals)]
        images, at = min(options, key=lambda option: len(option[0]))
        rest = goals[:at] + goals[at + 1 :]
        for image in images:
            if (found := self._extend(image, rest)) is not None:
                return found
        return None

    def _images(self, goal: Goal, mapping: Terms) -> Iterator[Terms]:
        """The mapping extended so that a triple or a call of A is one of B, in every way."""
        for image in self._candidates(goal):
            if not self._left:
                raise _TooManySteps
            self._left -= 1
            if isinstance(goal, Call):
                assert isinstance(image, Call)
                extended = self._called(goal, image, mapping)
            else:
                assert not isinstance(image, Call)
                extended = self._united(goal, image, mapping)
            if extended is not None:
                yield extended
                if len(extended) == len(mapping):
                    return  # other images would give the same

    def _candidates(self, goal: Goal) -> Sequence[Goal]:
        if isinstance(goal, Call):
            return self._b.calls
        if isinstance(goal[1], Variable):
            return self._b.closed_edges
        return self._b.edges_by_property.get(goal[1], ())

    def _united(self, edge: Edge, image: Edge, mapping: Terms) -> Terms | None:
        extended = mapping
        for node, term in zip(edge, image, strict=True):
            if not isinstance(node, Variable):
                if self._b.resolved(term) != node:
                    return None
            elif node in extended:
                if self._b.resolved(extended[node]) != self._b.resolved(term):
                    return None
            elif not self._fit(node, term):
                return None
            else:
                extended = {**extended, node: term}
        return extended if self._holds_jointly(mapping, extended) else None

    def _called(self, call: Call, image: Call, mapping: Terms) -> Terms | None:
        """Calls are the same up to names. What a call alone has bound is no term of a triple, but a value of its own."""
        if call.name != image.name or len(call.arguments) != len(image.arguments):
            return None
        extended = dict(mapping)
        for argument, other in zip(call.arguments, image.arguments, strict=True):
            if not (isinstance(argument, Variable) and isinstance(other, Variable)):
                if argument != other:
                    return None
                continue
            is_term = argument in self._a.in_edges
            if is_term != (other in self._b.in_edges) or not self._fit(argument, other):
                return None
            if extended.setdefault(argument, other) != other:
                return None
        return extended if self._holds_jointly(mapping, extended) else None

    def _fit(self, name: Variable, term: Node) -> bool:
        """Whether a term of B satisfies the conditions that A has on this variable alone."""
        key = (name, term)
        if key not in self._fits:
            self._fits[key] = all(self._b.implies(term, test) for test in self._own.get(name, ()))
        return self._fits[key]

    def _holds_jointly(self, before: Terms, mapping: Terms) -> bool:
        """Whether B has the other tests of A, of which all variables have been mapped by now."""
        if len(mapping) == len(before):
            return True
        return all(
            replaced(test, mapping) in self._b.tests
            for test in self._joint
            if mapping.keys() >= set(variables(test)) > before.keys() & set(variables(test))
        )

    def _agrees_on_calls(self, mapping: Terms) -> bool:
        """Whether what calls alone bind is bound alike on both sides. Of a variable in several calls the first gives the
        value and the others agree with it, the text 5 with the number 5: then all calls have to be the same, in order."""
        names = [name for name in mapping if name not in self._a.in_edges]
        images = {mapping[name] for name in names}
        if len(images) < len(names):
            return False
        counts = Counter(name for call in self._b.calls for name in set(variables(call)))
        if all(counts[name] == 1 for name in images if isinstance(name, Variable)):
            return True
        return [replaced(call, mapping) for call in self._a.calls] == list(self._b.calls)
