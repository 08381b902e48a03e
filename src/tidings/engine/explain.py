"""Explains why an event matches a subscription or does not, by the reasons that each kind gives for its part.

A filter is shown as the tree that it is (language/condition_tree.py), a pattern clause by clause
(kinds/patterns/explain.py). Operators are called for this subscription alone, and only if nothing cheaper refuses the
event. The path through a network comes last. Kinds that keep state explain their subscriptions themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from tidings.kinds.patterns import naive
from tidings.kinds.patterns.explain import CUT_SHORT, Attempt, EventView, attempt, clauses_of, ordered
from tidings.language import conditions
from tidings.language.alternatives import Way, alternatives
from tidings.language.condition_tree import clauses, tree_clauses
from tidings.language.printer import condition_text
from tidings.language.query import Condition, Query, TriplePattern, Variable, has_calls, leaves, variables
from tidings.model.batch import attributes_of_row
from tidings.model.event import Event, to_table
from tidings.model.explanation import Explanation
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import plain, read_graph, value_text


class Explainer:
    """Explains by the definition, with what an engine knows."""

    def __init__(self, taxonomy: Taxonomy, networks: Networks, evaluator: Evaluator) -> None:
        self._taxonomy, self._networks, self._evaluator = taxonomy, networks, evaluator

    def explain(self, id: str, query: Query, event: Event) -> Explanation:
        """The tree of a filter; for a pattern the alternative that went furthest; then the way through a network."""
        try:
            attributes = attributes_of_row(to_table([event]), 0)
            view = EventView(read_graph(event.graph()), attributes, self._taxonomy)
        except EventError as error:
            return Explanation(id, "error", message=str(error))
        via = query.via
        route = () if via is None else self._networks.explain(via, event.source, view.attributes)
        arrives = not route or bool(route[0].held)
        if has_calls(query.where):
            away = "" if arrives else f"{route[0].text}: {route[0].evidence}"
            found = _OperatorExplainer(id, query, event, view, self._evaluator).explain(away)
        else:
            found = _content(id, query, view)
        return replace(found, verdict=found.verdict if arrives else "no match", clauses=found.clauses + route)


def _content(id: str, query: Query, view: EventView) -> Explanation:
    attributes = view.attributes
    if not any(isinstance(leaf, TriplePattern) for leaf in leaves(query.where)):
        verdict = "match" if conditions.holds(query.where, attributes) else "no match"
        return Explanation(id, verdict, clauses(query.where, attributes))
    ways = (attempt([*way.edges, *ordered(way.tests)], view) for way in alternatives(query))
    best = max(ways, key=lambda tried: -tried.left)
    shown = clauses_of(best, best.bindings[0], attributes)
    if best.left and best.cut:
        return Explanation(id, "undecided", shown, message=CUT_SHORT)
    if best.left:
        return Explanation(id, "no match", shown)
    binding = best.bindings[0]
    return Explanation(id, "match", shown, {n: plain(binding[n]) for n in _selected(query, binding)})


class _SplitWay(NamedTuple):
    """A way with its tests apart: those that need no operator, and what operators have to decide."""

    edges: tuple[TriplePattern, ...]
    tests: tuple[Condition, ...]
    calls: Condition | None
    bound: frozenset[Variable]

    @classmethod
    def of(cls, way: Way) -> _SplitWay:
        calls, rest = split_calls(way)
        return cls(way.edges, ordered(rest), calls, way.bound)


class _OperatorExplainer:
    """A subscription with calls and one event: what cheaper parts leave open is decided aside, by operators."""

    def __init__(self, id: str, query: Query, event: Event, view: EventView, evaluator: Evaluator) -> None:
        self.id, self.query, self.view, self.attributes = id, query, view, view.attributes
        self.ways = [_SplitWay.of(way) for way in alternatives(query)]
        self.is_filter = not any(isinstance(leaf, TriplePattern) for leaf in leaves(query.where))
        self.trial = DryRun(
            evaluator,
            event,
            lambda leaf, binding: naive.holds(leaf, binding, view.graph, view.taxonomy, self.attributes),
        )

    def explain(self, away: str) -> Explanation:
        """`away` says why the event does not even arrive, if it does not."""
        tried = [self._try(way) for way in self.ways]
        reached = [
            i for i, way in enumerate(self.ways) if not tried[i].left and not away and self._is_open(way)
        ]
        for i in reached:
            if self.ways[i].calls is None:  # nothing has to be evaluated
                return self._explanation(i, tried[i], TRUE, tried[i].bindings[0], "")
        if not reached:
            best = max(range(len(tried)), key=lambda i: -tried[i].left)
            return self._explanation(best, tried[best], FALSE, None, away)
        programs = [self._program(self.ways[i]) for i in reached]
        decided = self.trial.decide(programs, [tried[i].bindings for i in reached])
        truths = decided.truth.tolist()
        case = min(range(len(reached)), key=lambda case: (TRUE, UNKNOWN, FALSE).index(truths[case]))
        solutions = decided.solutions.get(case) or [{}]
        best = reached[case]
        solution = {**tried[best].bindings[0], **solutions[0]} if truths[case] == TRUE else None
        return self._explanation(best, tried[best], truths[case], solution, decided.messages.get(case, ""))

    def _try(self, way: _SplitWay) -> Attempt:
        """The conditions of a way on triples and attributes; those on what its calls bind are shown with the calls."""
        own = set(leaves(way.calls)) if way.calls is not None else set()
        tests = [
            test
            for test in way.tests
            if variables(test)
            or not own.issuperset(leaves(test))
            or not conditions.holds(test, self.attributes)
        ]
        shown = [] if self.is_filter else [*way.edges, *tests]
        return attempt(shown, self.view)

    def _is_open(self, way: _SplitWay) -> bool:
        """Whether the event's attributes leave a way to its operators."""
        tests = [test for test in way.tests if not variables(test)]
        return all(conditions.holds(test, self.attributes) for test in tests)

    def _program(self, way: _SplitWay) -> Program:
        assert way.calls is not None
        return compile_program(way.calls, way.bound, self.trial.find)

    def _explanation(
        self, number: int, tried: Attempt, truth: int, solution: Binding | None, message: str
    ) -> Explanation:
        way, binding = self.ways[number], solution or tried.bindings[0]
        shown = clauses_of(tried, binding, self.attributes)
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
            return Explanation(self.id, "undecided", shown, message=CUT_SHORT)
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
