"""The ways of a subscription as containment sees them: triples without literals, and what is known of every term.

A literal in a triple matches by value and a variable by term, so every occurrence of a literal is a variable of its own
that is equal to it: `(?a, p, 5), (?b, q, 5)` does not say that both have the same object.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from tidings.containment.implication import IT, Known, bare, implied_by_iri, subject
from tidings.containment.naive import Edge, closed
from tidings.formats.namespaces import RDF
from tidings.language.alternatives import MAX_ALTERNATIVES, alternatives
from tidings.language.query import (
    And,
    Attribute,
    Call,
    Comparison,
    Condition,
    IsA,
    Node,
    Or,
    Query,
    TriplePattern,
    Variable,
    has_calls,
    variables,
)
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Iri, Literal

TYPE = Iri(RDF + "type")


@dataclass(eq=False)
class FrozenWay:
    """One way to satisfy a subscription. No test is an AND, and one that is an OR has calls or is too large to be divided."""

    edges: tuple[Edge, ...]
    tests: tuple[Condition, ...]
    taxonomy: Taxonomy
    literals: dict[Variable, Literal] = field(default_factory=dict)
    """The variables that stand for literals."""

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        return tuple(test for test in self.tests if isinstance(test, Call))

    @cached_property
    def in_edges(self) -> frozenset[Variable]:
        return frozenset(node for edge in self.edges for node in edge if isinstance(node, Variable))

    @cached_property
    def bound(self) -> frozenset[Variable]:
        """The variables that have a value: those of triples, and those of calls that have to hold."""
        return self.in_edges | {v for call in self.calls for v in variables(call)}

    @cached_property
    def hides_calls(self) -> bool:
        """Whether variables meet calls under OR or NOT: which of them are bound is then open."""
        return any(has_calls(t) and variables(t) for t in self.tests if not isinstance(t, Call))

    @cached_property
    def content(self) -> tuple[frozenset[Edge], frozenset[Condition]]:
        """What makes two ways the same, literals being compared as they are written."""

        def written(node: Node) -> Node:
            return self.literals.get(node, node) if isinstance(node, Variable) else node

        edges = frozenset((written(s), written(p), written(o)) for s, p, o in self.edges)
        return edges, frozenset(self.tests[len(self.literals) :])

    @cached_property
    def closed_edges(self) -> tuple[Edge, ...]:
        """The triples and those that subPropertyOf adds."""
        found = (closed((s, self.resolved(p), o), self.taxonomy) for s, p, o in self.edges)
        return tuple(dict.fromkeys([*self.edges, *(edge for edges in found for edge in edges)]))

    @cached_property
    def edges_by_property(self) -> dict[Node, list[Edge]]:
        found: dict[Node, list[Edge]] = {}
        for edge in self.closed_edges:
            found.setdefault(self.resolved(edge[1]), []).append(edge)
        return found

    @cached_property
    def is_contradictory(self) -> bool:
        """Whether no event can satisfy it. Where that is not certain, False."""
        if not self.hides_calls and any(
            isinstance(subject(test), Variable) and subject(test) not in self.bound for test in self.tests
        ):
            return True  # a condition on a variable without a value
        alone = (t for t in self.tests if isinstance(subject(t), Attribute))
        resources = {node for s, p, _ in self.edges for node in (s, p)}  # no literal stands there
        return any(Known.of((test,)).is_contradictory for test in alone) or any(
            known.is_contradictory or (name in resources and not known.may_be_resource)
            for name, known in self._conditions.items()
        )

    @cached_property
    def _conditions(self) -> dict[Variable, Known]:
        """What the tests say of every variable."""
        by_variable: dict[Variable, list[Condition]] = {}
        for test in self.tests:
            if isinstance(name := subject(test), Variable):
                by_variable.setdefault(name, []).append(bare(test, name))
        return {name: Known.of(tests) for name, tests in by_variable.items()}

    def resolved(self, node: Node) -> Node:
        """The IRI that a variable must be, if it must be one."""
        if isinstance(node, Variable) and (known := self._conditions.get(node)):
            return known.resource or node
        return node

    @cached_property
    def _types(self) -> dict[Node, set[str]]:
        """The classes that triples give to terms."""
        types: dict[Node, set[str]] = {}
        for s, p, o in self.closed_edges:
            if p == TYPE and isinstance(cls := self.resolved(o), Iri):
                types.setdefault(self.resolved(s), set()).add(cls.value)
        return types

    @cached_property
    def _known(self) -> dict[Node, Known]:
        return {}

    def known(self, node: Variable) -> Known:
        """What tests and types say of a variable."""
        if node not in self._known:
            types = sorted(self._types.get(node, ()))
            typed = [IsA(IT, op, Iri(cls)) for cls in types for op in ("=", ">=")]
            tests = self._conditions[node].conditions if node in self._conditions else ()
            self._known[node] = Known.of((*tests, *typed))
        return self._known[node]

    def implies(self, node: Node, condition: Condition) -> bool:
        """Whether a term of this way satisfies a bare condition in every event that satisfies the way."""
        if isinstance(node, Variable) and self.known(node).implies(condition, self.taxonomy):
            return True
        iri = self.resolved(node)
        types = self._types.get(iri, ())
        return isinstance(iri, Iri) and implied_by_iri(iri, condition, types, self.taxonomy)


def is_of_tables(query: Query) -> bool:
    """Whether a subscription is about rows of tables, so that no single event decides. A `FROM` with a condition counts as a
    stream's."""
    return bool(query.joined) or (query.stream is not None and query.where == And(()) and query.via is None)


def frozen_ways(query: Query, taxonomy: Taxonomy) -> list[FrozenWay]:
    """The ways to satisfy a query, its ORs divided as far as they give no more than `MAX_ALTERNATIVES`."""
    found: list[FrozenWay] = []
    for way in alternatives(query):
        divided = _disjuncts(And(way.tests)) or [way.tests]
        found += [_frozen(way.edges, tests, taxonomy) for tests in divided]
    return found


def _disjuncts(condition: Condition) -> list[tuple[Condition, ...]]:
    """The conjunctions of which one has to hold; none if they are too many."""
    if isinstance(condition, And):
        product: list[tuple[Condition, ...]] = [()]
        for part in condition.parts:
            right = _disjuncts(part)
            if not 0 < len(product) * len(right) <= MAX_ALTERNATIVES:
                right = [(part,)]
            product = [one + other for one in product for other in right]
        return product
    if isinstance(condition, Or) and not has_calls(condition):
        return [way for part in condition.parts for way in _disjuncts(part)]
    return [(condition,)]


def _frozen(edges: tuple[TriplePattern, ...], tests: tuple[Condition, ...], taxonomy: Taxonomy) -> FrozenWay:
    literals: dict[Variable, Literal] = {}
    frozen: list[Edge] = []
    for edge in edges:
        node = edge.object
        if isinstance(node, Literal):
            node = Variable(f"'{len(literals)}")  # no name in a text has a quote
            literals[node] = edge.object  # type: ignore[assignment]
        frozen.append((edge.subject, edge.property, node))
    equal = [Comparison(name, "=", literal) for name, literal in literals.items()]
    return FrozenWay(tuple(frozen), (*equal, *dict.fromkeys(tests)), taxonomy, literals)
