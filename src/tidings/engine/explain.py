"""Why an event matches a subscription or does not, in words.

A filter is shown as the tree it is. A pattern's clauses are tried jointly from the first on: for a match every
clause is shown with what it was bound to; otherwise the longest run of clauses that did hold together, and the
first clause that had no support. Operators are asked as for this subscription alone, and only if nothing cheaper
refuses the event. For a subscription over tables, the rows of a change are shown with what they join.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from tidings.errors import EventError
from tidings.kinds.networks.kind import Networks
from tidings.kinds.operators.dry_run import DryRun
from tidings.kinds.operators.evaluator import Evaluator
from tidings.kinds.operators.explain import call_tree
from tidings.kinds.operators.kernels.layout import FALSE, TRUE, UNKNOWN
from tidings.kinds.operators.kind import split_calls
from tidings.kinds.operators.naive import Binding
from tidings.kinds.operators.program import Program, compile_program
from tidings.kinds.operators.undecided_pairs import value_text
from tidings.kinds.patterns import naive
from tidings.kinds.patterns.kind import is_residual
from tidings.language import conditions
from tidings.language.alternatives import Way, alternatives
from tidings.language.condition_tree import clauses, evidence_of, tree_clauses
from tidings.language.printer import condition_text
from tidings.language.query import (
    Condition,
    Parameter,
    Query,
    TriplePattern,
    Variable,
    has_calls,
    leaves,
    variables,
)
from tidings.model.batch import attributes_of_row
from tidings.model.event import Event, to_table
from tidings.model.explanation import Clause, Explanation
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Literal, Term, Triple, plain, read_graph

MAX_BINDINGS = 1000
_LEFT_OUT = f"of more than {MAX_BINDINGS:,} ways to bind the clauses before, the first were looked at"


class Explainer:
    """Explains by the definition, with what an engine knows."""

    def __init__(self, taxonomy: Taxonomy, networks: Networks, evaluator: Evaluator) -> None:
        self._taxonomy, self._networks, self._evaluator = taxonomy, networks, evaluator

    def explain(self, id: str, query: Query, event: Event) -> Explanation:
        """The tree of a filter; for a pattern the alternative that went furthest; then the way through a network."""
        try:
            view = _View(
                event, read_graph(event.graph()), attributes_of_row(to_table([event]), 0), self._taxonomy
            )
        except EventError as error:
            return Explanation(id, "error", message=str(error))
        via = query.via
        route = () if via is None else self._networks.explain(via, event.source, view.attributes)
        arrives = not route or bool(route[0].held)
        if has_calls(query.where):
            away = "" if arrives else f"{route[0].text}: {route[0].evidence}"
            found = _OperatorExplainer(id, query, view, self._evaluator).explain(away)
        else:
            found = _content(id, query, view)
        return replace(found, verdict=found.verdict if arrives else "no match", clauses=found.clauses + route)


class _View:
    """An event as conditions see it: its attributes, and its graph with what that implies."""

    def __init__(
        self, event: Event, triples: Iterable[Triple], attributes: Mapping[str, Any], taxonomy: Taxonomy
    ) -> None:
        self.event, self.attributes, self.taxonomy = event, attributes, taxonomy
        self.graph = naive.expand(triples, taxonomy)


def _content(id: str, query: Query, view: _View) -> Explanation:
    attributes = view.attributes
    if not any(isinstance(leaf, TriplePattern) for leaf in leaves(query.where)):
        verdict = "match" if conditions.holds(query.where, attributes) else "no match"
        return Explanation(id, verdict, clauses(query.where, attributes))
    ways = (
        _longest([*way.edges, *_ordered(way.tests)], view.graph, view.taxonomy, attributes)
        for way in alternatives(query)
    )
    best = max(ways, key=lambda tried: -tried.left)
    shown = _clauses_of(best, best.bindings[0], attributes)
    if best.left and best.cut:
        return Explanation(id, "undecided", shown, message=_LEFT_OUT)
    if best.left:
        return Explanation(id, "no match", shown)
    binding = best.bindings[0]
    return Explanation(id, "match", shown, {n: plain(binding[n]) for n in _selected(query, binding)})


class _Tried(NamedTuple):
    """Clauses of which the first `held` hold jointly, bindings that show it, and whether some were left out."""

    clauses: Sequence[Condition]
    held: int
    bindings: Sequence[Mapping[str, Term]]
    cut: bool

    @property
    def left(self) -> int:
        return len(self.clauses) - self.held


def _longest(
    tried: Sequence[Condition], graph: set[Any], taxonomy: Taxonomy, attributes: Mapping[str, Any]
) -> _Tried:
    bindings: Sequence[Mapping[str, Term]] = [{}]
    cut, near = False, _TripleIndex(graph)
    for count, clause in enumerate(tried):
        # No further than can be shown: three clauses over a graph of 2,000 triples have 8,000,000,000 ways.
        found = (
            new
            for binding in bindings
            for new in naive.solve(clause, near.candidates(clause, binding), taxonomy, attributes, binding)
        )
        extended = list(islice(found, MAX_BINDINGS + 1))
        if not extended:
            return _Tried(tried, count, bindings, cut)
        cut = cut or len(extended) > MAX_BINDINGS
        bindings = extended[:MAX_BINDINGS]
    return _Tried(tried, len(tried), bindings, cut)


class _TripleIndex:
    """Of a graph, the triples that can answer a clause under a binding, and a few more: nobody looks through all of a
    large graph for each of a thousand bindings."""

    def __init__(self, graph: set[Any]) -> None:
        self._graph = graph
        self._at: dict[tuple[int, Term], list[Any]] = {}
        for triple in graph:
            for place, term in enumerate(triple):
                self._at.setdefault((place, term), []).append(triple)

    def candidates(self, clause: Condition, binding: Mapping[str, Term]) -> Collection[Any]:
        if not isinstance(clause, TriplePattern):
            mixed = any(isinstance(leaf, TriplePattern) for leaf in leaves(clause))
            return self._graph if mixed else self._at.get((1, naive.TYPE), ())
        nodes = (clause.subject, clause.property, clause.object)
        known = (
            (place, binding.get(node.name) if isinstance(node, Variable) else node)
            for place, node in enumerate(nodes)
            if not isinstance(node, Literal | Parameter)  # of literals 1 and 1.0 are the same
        )
        some = [self._at.get((place, term), ()) for place, term in known if term is not None]
        return min(some, key=len, default=self._graph)


class _Way(NamedTuple):
    """A way with its tests apart: those that need no operator, and what operators have to decide."""

    edges: tuple[TriplePattern, ...]
    tests: tuple[Condition, ...]
    calls: Condition | None
    bound: frozenset[Variable]

    @classmethod
    def of(cls, way: Way) -> _Way:
        calls, rest = split_calls(way)
        return cls(way.edges, _ordered(rest), calls, way.bound)


def _ordered(tests: Iterable[Condition]) -> tuple[Condition, ...]:
    """Tests of variables alone before those that look at attributes."""
    return tuple(sorted(tests, key=is_residual))


class _OperatorExplainer:
    """A subscription with calls and one event: what cheaper parts leave open is decided aside, by operators."""

    def __init__(self, id: str, query: Query, view: _View, evaluator: Evaluator) -> None:
        self.id, self.query, self.view, self.attributes = id, query, view, view.attributes
        self.ways = [_Way.of(way) for way in alternatives(query)]
        self.is_filter = not any(isinstance(leaf, TriplePattern) for leaf in leaves(query.where))
        self.trial = DryRun(
            evaluator,
            view.event,
            lambda leaf, binding: naive.holds(leaf, binding, view.graph, view.taxonomy, self.attributes),
        )

    def explain(self, away: str) -> Explanation:
        """`away` says why the event does not even arrive, if it does not."""
        tried = [self._try(way) for way in self.ways]
        reached = [
            i for i, one in enumerate(tried) if not one.left and not away and self._is_open(self.ways[i])
        ]
        for i in reached:
            if self.ways[i].calls is None:  # nothing has to be asked
                return self._explanation(i, tried[i], TRUE, tried[i].bindings[0], "")
        if not reached:
            best = max(range(len(tried)), key=lambda i: -tried[i].left)
            return self._explanation(best, tried[best], FALSE, None, away)
        programs = [self._program(self.ways[i]) for i in reached]
        decided = self.trial.decide(programs, [tried[i].bindings for i in reached])
        truths = decided.truth.tolist()
        place = min(range(len(reached)), key=lambda place: (TRUE, UNKNOWN, FALSE).index(truths[place]))
        solutions = decided.solutions.get(place) or [{}]
        best = reached[place]
        solution = {**tried[best].bindings[0], **solutions[0]} if truths[place] == TRUE else None
        return self._explanation(best, tried[best], truths[place], solution, decided.messages.get(place, ""))

    def _try(self, way: _Way) -> _Tried:
        """What a way asks of triples and attributes; what its calls ask beside that is shown with them."""
        own = set(leaves(way.calls)) if way.calls is not None else set()
        tests = [
            test
            for test in way.tests
            if variables(test)
            or not own.issuperset(leaves(test))
            or not conditions.holds(test, self.attributes)
        ]
        shown = [] if self.is_filter else [*way.edges, *tests]
        return _longest(shown, self.view.graph, self.view.taxonomy, self.attributes)

    def _is_open(self, way: _Way) -> bool:
        """Whether the event's attributes leave a way to its operators."""
        tests = [test for test in way.tests if not variables(test)]
        return all(conditions.holds(test, self.attributes) for test in tests)

    def _program(self, way: _Way) -> Program:
        assert way.calls is not None
        return compile_program(way.calls, way.bound, self.trial.find)

    def _explanation(
        self, number: int, tried: _Tried, truth: int, solution: Binding | None, message: str
    ) -> Explanation:
        way, binding = self.ways[number], solution or tried.bindings[0]
        shown = _clauses_of(tried, binding, self.attributes)
        spared = message if truth == FALSE else ""
        if tried.left:
            lacks = condition_text(tried.clauses[tried.held])
            spared = spared or f"{lacks} {'is not there' if lacks.startswith('(') else 'does not hold'}"
        if way.calls is not None:
            tree = call_tree(
                self.query.where if self.is_filter else way.calls,
                self.trial,
                self.attributes,
                tried.bindings if solution is None else [_outer(solution, tried.bindings)],
                held={TRUE: True, FALSE: False}.get(truth),
                solution=solution,
                spared=spared,
            )
            shown += tree_clauses(tree)
        if truth == FALSE and tried.cut:
            return Explanation(self.id, "undecided", shown, message=_LEFT_OUT)
        if truth != TRUE or solution is None:
            verdict = "undecided" if truth == UNKNOWN else "no match"
            return Explanation(self.id, verdict, shown, message=message if truth == UNKNOWN else "")
        chosen = {name: value_text(solution[name]) for name in _selected(self.query, solution)}
        return Explanation(self.id, "match", shown, chosen)


def _outer(solution: Binding, bindings: Sequence[Binding]) -> Binding:
    """The binding by triples that a solution goes on from."""
    return next(b for b in bindings if all(solution[name] == value for name, value in b.items()))


def _selected(query: Query, binding: Mapping[str, Any]) -> list[str]:
    names = [v.name for v in query.select] if query.select else list(binding)
    return [name for name in names if name in binding]


def _clauses_of(
    tried: _Tried, binding: Mapping[str, Any], attributes: Mapping[str, Any]
) -> tuple[Clause, ...]:
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
                Clause(condition_text(clause), True, _joined([*evidence, evidence_of(clause, attributes)]))
            )
    return tuple(shown)


def _lacking(clause: Condition, binding: Mapping[str, Any], attributes: Mapping[str, Any]) -> str:
    bound = [f"?{v.name} = {value_text(binding[v.name])}" for v in variables(clause) if v.name in binding]
    if isinstance(clause, TriplePattern):
        return "no such triple" + (f" with {', '.join(bound)}" if bound else "")
    return _joined(
        ["does not hold" + (f" for {', '.join(bound)}" if bound else ""), evidence_of(clause, attributes)]
    )


def _joined(evidence: Sequence[str]) -> str:
    return ", ".join(filter(None, evidence))
