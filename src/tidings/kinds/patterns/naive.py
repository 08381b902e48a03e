"""Defines what a pattern means: slow, obvious, complete.

The tests compare the index with it, the benchmarks use it as a baseline, and `explain` evaluates with it. A condition
is solved against a graph by trying every triple; the solutions are the bindings that satisfy it (a homomorphism: two
variables may be bound to one node). G-ToPSS 3.3, with the corrections of docs/papers.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from tidings.formats.namespaces import RDF, RDFS
from tidings.language import conditions
from tidings.language.query import And, Condition, IsA, Node, Or, Parameter, TriplePattern, Variable, leaves
from tidings.model import values
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Iri, Literal, Term, Triple

Binding = Mapping[str, Term]
TYPE = Iri(RDF + "type")


def expand(triples: Iterable[Triple], taxonomy: Taxonomy) -> set[Triple]:
    """The graph with what it implies: members of containers are related like their container, and what a
    property relates, the properties above it relate too."""
    graph = set(triples)
    members = [t for t in graph if isinstance(t[1], Iri) and _is_membership(t[1].value)]
    graph |= {(container, Iri(RDFS + "member"), member) for container, _, member in members}
    held: dict[Term, list[Term]] = {}
    for container, _, member in members:
        held.setdefault(container, []).append(member)
    graph |= {(s, p, member) for s, p, o in list(graph) for member in held.get(o, ()) if not _is_member(p)}
    above = taxonomy.super_properties()
    return graph | {(s, Iri(q), o) for s, p, o in graph if isinstance(p, Iri) for q in above.get(p.value, ())}


def _is_membership(iri: str) -> bool:
    number = iri.removeprefix(RDF + "_")
    return number != iri and number.isdecimal() and number.isascii()


def _is_member(p: Term) -> bool:
    return isinstance(p, Iri) and (_is_membership(p.value) or p.value == RDFS + "member")


def solve(
    condition: Condition,
    graph: Collection[Triple],
    taxonomy: Taxonomy,
    attributes: Mapping[str, Any] | None = None,
    binding: Binding | None = None,
) -> Iterator[dict[str, Term]]:
    """The bindings under which `condition` holds for an expanded graph; repeated if found in several ways."""
    binding = binding or {}
    if isinstance(condition, TriplePattern):
        for triple in graph:
            if (extended := _unify(condition, triple, binding)) is not None:
                yield extended
    elif isinstance(condition, And) and condition.parts:
        # Triples first: a test can only be decided when its variables are bound.
        first, *rest = sorted(condition.parts, key=lambda part: not _has_triples(part))
        for extended in solve(first, graph, taxonomy, attributes, binding):
            yield from solve(And(tuple(rest)), graph, taxonomy, attributes, extended)
    elif isinstance(condition, Or) and _has_triples(condition):
        for part in condition.parts:
            yield from solve(part, graph, taxonomy, attributes, binding)
    elif holds(condition, binding, graph, taxonomy, attributes or {}):
        yield dict(binding)


def holds(
    condition: Condition,
    binding: Binding,
    graph: Iterable[Triple],
    taxonomy: Taxonomy,
    attributes: Mapping[str, Any],
) -> bool:
    """Whether a condition without triples holds under a binding."""

    def is_a(leaf: IsA) -> bool:
        term = binding.get(leaf.operand.name)
        if term is None or isinstance(leaf.cls, Parameter):
            return False
        return taxonomy.is_a_in(graph, term, leaf.op, leaf.cls.value)

    return conditions.holds(condition, attributes, binding, is_a)


def _has_triples(condition: Condition) -> bool:
    return any(isinstance(leaf, TriplePattern) for leaf in leaves(condition))


def _unify(pattern: TriplePattern, triple: Triple, binding: Binding) -> dict[str, Term] | None:
    extended = dict(binding)
    for node, term in zip((pattern.subject, pattern.property, pattern.object), triple, strict=True):
        if not _agrees(node, term, extended):
            return None
    return extended


def _agrees(node: Node, term: Term, binding: dict[str, Term]) -> bool:
    if isinstance(node, Variable):
        return binding.setdefault(node.name, term) == term
    return values.compare(term, "=", node) if isinstance(node, Literal) else node == term
