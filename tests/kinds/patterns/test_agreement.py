"""The index agrees with the definition, and both agree with an engine nobody here wrote."""

from __future__ import annotations

import random

import pyoxigraph as ox
import pytest

from tests.examples import seeds
from tests.kinds.patterns import cases
from tests.kinds.patterns.sparql import to_sparql
from tidings.engine.engine import Engine
from tidings.kinds.patterns import naive
from tidings.language.printer import to_text
from tidings.language.query import Query, variables
from tidings.model.event import Event
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Iri, Literal, Triple, ntriples, plain

QUERIES, GRAPHS = 20, 5


def event(graph: list[Triple]) -> Event:
    lines = "".join(f"{ntriples(s)} {ntriples(p)} {ntriples(o)} .\n" for s, p, o in graph)
    return Event.from_rdf(lines, "nt", source="test")


def definition(query: Query, graph: list[Triple], taxonomy: Taxonomy) -> set[tuple[tuple[str, str], ...]]:
    """All answers by naive.py, as sorted (variable, plain text) pairs."""
    names = {v.name for v in variables(query.where)}
    found = naive.solve(query.where, naive.expand(graph, taxonomy), taxonomy)
    return {tuple(sorted((n, plain(t)) for n, t in binding.items() if n in names)) for binding in found}


@pytest.mark.parametrize("seed", seeds(30, 100))
def test_index_agrees_with_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    taxonomy = cases.taxonomy(rng)
    engine = Engine(taxonomy=taxonomy)
    queries = {f"q{i}": cases.query(rng) for i in range(QUERIES)}
    assert engine.subscribe_many((id, to_text(query)) for id, query in queries.items()) == []
    graphs = [cases.graph(rng) for _ in range(GRAPHS)]
    events = [event(graph) for graph in graphs]
    every: dict[tuple[str, int], set[tuple[tuple[str, str], ...]]] = {}
    for number, published in enumerate(events):
        for n in engine.publish(published, all_bindings=True):
            assert n.verdict == "match"
            every.setdefault((n.subscription or "", number), set()).add(tuple(sorted(n.bindings.items())))
    first = [
        {n.subscription: tuple(sorted(n.bindings.items())) for n in engine.publish(published)}
        for published in events
    ]
    for id, query in queries.items():
        for number, graph in enumerate(graphs):
            expected = definition(query, graph, taxonomy)
            assert every.get((id, number), set()) == expected, to_text(query)
            assert (id in first[number]) == bool(expected), to_text(query)
            assert not expected or first[number][id] in expected


@pytest.mark.parametrize("seed", seeds(30, 100))
def test_index_agrees_with_sparql(seed: int) -> None:
    rng = random.Random(1000 + seed)
    engine = Engine()
    queries = {f"q{i}": cases.query(rng, simple=True) for i in range(QUERIES)}
    assert engine.subscribe_many((id, to_text(query)) for id, query in queries.items()) == []
    for _ in range(GRAPHS):
        graph = cases.graph(rng, simple=True)
        store = ox.Store()
        store.extend(ox.Quad(*map(_oxigraph, triple)) for triple in graph)
        found: dict[str, set[tuple[str, ...]]] = {}
        for n in engine.publish(event(graph), all_bindings=True):
            found.setdefault(n.subscription or "", set()).add(tuple(sorted(n.bindings.items())))
        for id, query in queries.items():
            solutions = store.query(to_sparql(query))
            names = [v.value for v in solutions.variables]
            expected = {tuple(sorted((n, s[n].value) for n in names)) for s in solutions}
            assert found.get(id, set()) == expected, to_sparql(query)


def _oxigraph(term: object) -> ox.NamedNode | ox.Literal:
    if isinstance(term, Iri):
        return ox.NamedNode(term.value)
    assert isinstance(term, Literal)
    return ox.Literal(term.text, datatype=ox.NamedNode(term.datatype) if term.datatype else None)
