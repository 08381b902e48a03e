"""Explains a pattern: its clauses are tried jointly, from the first on.

For a match every clause is shown with what it was bound to; otherwise the longest run of clauses that held together,
and the first clause that had no support.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from tidings.kinds.patterns import naive
from tidings.kinds.patterns.kind import is_residual
from tidings.language.condition_tree import evidence_of, search_reasons
from tidings.language.printer import condition_text
from tidings.language.query import Condition, Parameter, TriplePattern, Variable, leaves, variables
from tidings.model.explanation import Clause
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Iri, Literal, Term, Triple, plain, value_text

MAX_BINDINGS = 1000
_CHANNEL = Iri("http://purl.org/rss/1.0/channel")
CUT_SHORT = f"of more than {MAX_BINDINGS:,} ways to bind the clauses before, the first were looked at"


class EventView:
    """An event as conditions see it: its attributes, and its graph with what that implies."""

    def __init__(self, triples: Iterable[Triple], attributes: Mapping[str, Any], taxonomy: Taxonomy) -> None:
        self.attributes, self.taxonomy = attributes, taxonomy
        self.graph = naive.expand(triples, taxonomy)


class Attempt(NamedTuple):
    """Clauses of which the first `held` hold jointly, bindings that show it, and whether more bindings were left out."""

    clauses: Sequence[Condition]
    held: int
    bindings: Sequence[Mapping[str, Term]]
    cut: bool

    @property
    def left(self) -> int:
        return len(self.clauses) - self.held


def ordered(tests: Iterable[Condition]) -> tuple[Condition, ...]:
    """Tests of variables alone before those that look at attributes."""
    return tuple(sorted(tests, key=is_residual))


def attempt(clauses: Sequence[Condition], view: EventView) -> Attempt:
    """The longest run of clauses, from the first on, that hold together."""
    bindings: Sequence[Mapping[str, Term]] = [{}]
    cut, index = False, _TripleIndex(view.graph)
    for count, clause in enumerate(clauses):
        # No further than can be shown: three clauses over a graph of 2,000 triples have 8,000,000,000 bindings.
        found = (
            new
            for binding in bindings
            for new in naive.solve(
                clause, index.candidates(clause, binding), view.taxonomy, view.attributes, binding
            )
        )
        extended = list(islice(found, MAX_BINDINGS + 1))
        if not extended:
            return Attempt(clauses, count, bindings, cut)
        cut = cut or len(extended) > MAX_BINDINGS
        bindings = extended[:MAX_BINDINGS]
    return Attempt(clauses, len(clauses), bindings, cut)


class _TripleIndex:
    """Of a graph, the triples that can answer a clause under a binding, and a few more: looking through all of a large
    graph for each of a thousand bindings would take too long.

    They come in a fixed order, because the first binding is shown. What is about the channel of a feed comes last: it is in
    the graph of each item, and the item is meant."""

    def __init__(self, graph: set[Any]) -> None:
        channels = {
            subject for subject, predicate, kind in graph if (predicate, kind) == (naive.TYPE, _CHANNEL)
        }
        self._graph = sorted(graph, key=lambda triple: (triple[0] in channels, *map(plain, triple)))
        self._by_term: dict[tuple[int, Term], list[Any]] = {}
        for triple in self._graph:
            for position, term in enumerate(triple):
                self._by_term.setdefault((position, term), []).append(triple)

    def candidates(self, clause: Condition, binding: Mapping[str, Term]) -> Collection[Any]:
        if not isinstance(clause, TriplePattern):
            mixed = any(isinstance(leaf, TriplePattern) for leaf in leaves(clause))
            return self._graph if mixed else self._by_term.get((1, naive.TYPE), ())
        nodes = (clause.subject, clause.property, clause.object)
        known = (
            (position, binding.get(node.name) if isinstance(node, Variable) else node)
            for position, node in enumerate(nodes)
            if not isinstance(node, Literal | Parameter)  # of literals 1 and 1.0 are the same
        )
        lists = [self._by_term.get((position, term), ()) for position, term in known if term is not None]
        return min(lists, key=len, default=self._graph)


def clauses_of(
    tried: Attempt, binding: Mapping[str, Any], attributes: Mapping[str, Any]
) -> tuple[Clause, ...]:
    """The clauses of an attempt with their evidence under a binding."""
    shown: list[Clause] = []
    named: set[str] = set()
    for number, clause in enumerate(tried.clauses):
        if number > tried.held:
            shown.append(Clause(condition_text(clause), None))
        elif number == tried.held:
            shown.append(Clause(condition_text(clause), False, _lacking(clause, binding, attributes)))
        else:
            new = [v.name for v in variables(clause) if v.name in binding and v.name not in named]
            named.update(new)
            evidence = [f"?{name} = {value_text(binding[name])}" for name in new]
            shown.append(
                Clause(condition_text(clause), True, _listed([*evidence, evidence_of(clause, attributes)]))
            )
    return tuple(shown)


def _lacking(clause: Condition, binding: Mapping[str, Any], attributes: Mapping[str, Any]) -> str:
    bound = [f"?{v.name} = {value_text(binding[v.name])}" for v in variables(clause) if v.name in binding]
    if isinstance(clause, TriplePattern):
        return "no such triple" + (f" with {', '.join(bound)}" if bound else "")
    reasons = search_reasons(clause, attributes, binding) if bound else ""
    does_not = "does not hold" + (f" for {', '.join(bound)}" if bound else "")
    return _listed([f"{does_not}; {reasons}" if reasons else does_not, evidence_of(clause, attributes)])


def _listed(evidence: Sequence[str]) -> str:
    return ", ".join(filter(None, evidence))
