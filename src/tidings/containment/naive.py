"""Defines containment of patterns: slow, obvious, complete.

Of patterns without literals and conditions, A contains B exactly if A's triples can be mapped into B's, each variable to one
term wherever it occurs (a homomorphism), B's triples being closed under subPropertyOf. Containers are left out: what they
imply depends on triples that B need not have. RSS cluster, 4.2, for whole graphs rather than edge by edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from tidings.kinds.patterns.naive import expand, solve
from tidings.language.query import Node, Query, TriplePattern, Variable, variables
from tidings.model.batch import attributes_of
from tidings.model.event import Event
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Iri, read_graph

Edge = tuple[Node, Node, Node]


def homomorphisms(
    a: Sequence[TriplePattern], b: Sequence[TriplePattern], taxonomy: Taxonomy
) -> Iterator[dict[Variable, Node]]:
    """Every map from A's variables to B's terms under which each triple of A is one that B has, or implies."""
    triples = {
        edge
        for pattern in b
        for edge in closed((pattern.subject, pattern.property, pattern.object), taxonomy)
    }
    terms = sorted({node for edge in triples for node in edge}, key=repr)
    names = list(dict.fromkeys(name for pattern in a for name in variables(pattern)))
    for chosen in product(terms, repeat=len(names)):
        mapping: dict[Variable, Node] = dict(zip(names, chosen, strict=True))

        def image(node: Node, mapping: dict[Variable, Node] = mapping) -> Node:
            return mapping[node] if isinstance(node, Variable) else node

        if all((image(t.subject), image(t.property), image(t.object)) in triples for t in a):
            yield mapping


def closed(edge: Edge, taxonomy: Taxonomy) -> Iterator[Edge]:
    """A triple and those with the properties above its own."""
    yield edge
    if isinstance(edge[1], Iri):
        for above in taxonomy.properties_above(edge[1].value):
            yield edge[0], Iri(above), edge[2]


def matches(query: Query, event: Event, taxonomy: Taxonomy) -> bool:
    """Whether an event satisfies the condition of a subscription without operators, by the definition of the kinds."""
    graph = expand(read_graph(event.graph()), taxonomy)
    return next(solve(query.where, graph, taxonomy, attributes_of(event)), None) is not None
