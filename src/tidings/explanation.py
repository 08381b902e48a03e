"""Why an event matches a subscription or does not, in words.

A filter is shown as the tree it is. A pattern's clauses are tried jointly from the first on: for a match every
clause is shown with what it was bound to; otherwise the longest run of clauses that did hold together, and the
first clause that had no support.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tidings import conditions
from tidings.errors import EventError
from tidings.event import Event, to_table
from tidings.filters.clauses import Clause, clauses, seen
from tidings.language.printer import condition_text
from tidings.language.query import Condition, Query, TriplePattern, Via, leaves, variables
from tidings.network.network import Network
from tidings.patterns import naive
from tidings.plan import alternatives
from tidings.stages import event_attributes
from tidings.taxonomy import Taxonomy
from tidings.terms import Term, Triple, plain, read_graph

MAX_BINDINGS = 1000
MAX_CUTS = 20


@dataclass(frozen=True, slots=True)
class Explanation:
    """`verdict` is "match", "no match", "undecided" (too much to look through) or "error"; `str()` is for reading.

    There an arrow marks the clauses that decided, where others stand beside them.
    """

    subscription: str
    verdict: str
    clauses: tuple[Clause, ...] = ()
    bindings: dict[str, str] = field(default_factory=dict)
    message: str = ""

    def __str__(self) -> str:
        lines = [f"{self.subscription}: {self.verdict}" + (f" ({self.message})" if self.message else "")]
        marks = {True: "✓", False: "✗", None: "·"}
        for clause in self.clauses:
            evidence = f"   {clause.evidence}" if clause.evidence else ""
            arrow = "   ←" if clause.decides else ""
            lines.append(f"  {'  ' * clause.depth}{marks[clause.held]} {clause.text}{evidence}{arrow}")
        return "\n".join(lines)


def explain(
    id: str, query: Query, event: Event, taxonomy: Taxonomy, networks: Mapping[str, Network]
) -> Explanation:
    """The tree of a filter; for a pattern the alternative that went furthest; then the way through a network."""
    try:
        triples = read_graph(event.graph())
        attributes = event_attributes(to_table([event]), 0)
    except EventError as error:
        return Explanation(id, "error", message=str(error))
    found = _content(id, query, triples, attributes, taxonomy)
    if query.via is None:
        return found
    route = tuple(_route(query.via, event.source, attributes, networks))
    verdict = found.verdict if route[0].held else "no match"
    return replace(found, verdict=verdict, clauses=found.clauses + route)


def _route(
    via: Via, source: str, attributes: Mapping[str, Any], networks: Mapping[str, Network]
) -> Iterator[Clause]:
    """The valid path to a place in a network, or the frontier where every path to it was cut."""
    text, network = f"VIA {via.network} AT '{via.node}'", networks.get(via.network)
    if network is None or via.node not in network:
        yield Clause(text, False, "there is no such place any more")
    elif source not in network:
        yield Clause(text, False, f"the event's source {source!r} is no node of this network")
    elif steps := network.path(source, attributes, via.node):
        yield Clause(text, True, " → ".join([source, *(step.node for step in steps)]))
        before = source
        for step in steps:
            if step.edge_where:
                yield Clause(step.edge_where, True, f"the edge {before} → {step.node}", 1)
            if step.node_where:
                yield Clause(step.node_where, True, step.node, 1)
            before = step.node
    else:
        cuts = network.frontier(source, attributes, via.node)
        yield Clause(text, False, "every path is cut" if cuts else f"no path leads there from {source}")
        for cut in cuts[:MAX_CUTS]:
            edge = isinstance(cut.place, tuple)
            place = f"the edge {cut.place[0]} → {cut.place[1]}" if edge else f"{cut.place}"
            yield Clause(cut.where, False, f"cut at {place}", 1)
        if len(cuts) > MAX_CUTS:
            yield Clause(f"… and {len(cuts) - MAX_CUTS:,} more", None, "", 1)


def _content(
    id: str, query: Query, triples: Iterable[Triple], attributes: Mapping[str, Any], taxonomy: Taxonomy
) -> Explanation:
    if not any(isinstance(leaf, TriplePattern) for leaf in leaves(query.where)):
        verdict = "match" if conditions.holds(query.where, attributes) else "no match"
        return Explanation(id, verdict, clauses(query.where, attributes))
    graph = naive.expand(triples, taxonomy)
    best: tuple[int, list[Condition], dict[str, Term], bool] | None = None
    for way in alternatives(query):
        tried: list[Condition] = [*way.pattern.edges, *way.pattern.tests, *way.residual]
        held, binding, cut = _longest(tried, graph, taxonomy, attributes)
        if best is None or held - len(tried) > best[0] - len(best[1]):
            best = (held, tried, binding, cut)
    assert best is not None
    return _tell(id, query, attributes, *best)


def _longest(
    tried: Sequence[Condition], graph: set[Any], taxonomy: Taxonomy, attributes: Mapping[str, Any]
) -> tuple[int, dict[str, Term], bool]:
    """How many clauses, from the first on, hold jointly, bindings that show it, and whether some were left out."""
    bindings: list[dict[str, Term]] = [{}]
    cut = False
    for count, clause in enumerate(tried):
        extended = [
            new for binding in bindings for new in naive.solve(clause, graph, taxonomy, attributes, binding)
        ]
        if not extended:
            return count, bindings[0], cut
        cut = cut or len(extended) > MAX_BINDINGS
        bindings = extended[:MAX_BINDINGS]
    return len(tried), bindings[0], cut


def _tell(
    id: str,
    query: Query,
    attributes: Mapping[str, Any],
    held: int,
    tried: list[Condition],
    binding: dict[str, Term],
    cut: bool,
) -> Explanation:
    told: list[Clause] = []
    shown: set[str] = set()
    for number, clause in enumerate(tried):
        if number > held:
            told.append(Clause(condition_text(clause), None))
        elif number == held:
            told.append(Clause(condition_text(clause), False, _lacking(clause, binding, attributes)))
        else:
            new = [v.name for v in variables(clause) if v.name in binding and v.name not in shown]
            shown.update(new)
            evidence = [f"?{name} = {plain(binding[name])}" for name in new]
            told.append(Clause(condition_text(clause), True, _joined([*evidence, seen(clause, attributes)])))
    if held < len(tried) and cut:
        message = f"of more than {MAX_BINDINGS:,} ways to bind the clauses before, the first were looked at"
        return Explanation(id, "undecided", tuple(told), message=message)
    if held < len(tried):
        return Explanation(id, "no match", tuple(told))
    names = [v.name for v in query.select] if query.select else list(binding)
    return Explanation(id, "match", tuple(told), {n: plain(binding[n]) for n in names if n in binding})


def _lacking(clause: Condition, binding: dict[str, Term], attributes: Mapping[str, Any]) -> str:
    bound = [f"?{v.name} = {plain(binding[v.name])}" for v in variables(clause) if v.name in binding]
    if isinstance(clause, TriplePattern):
        return "no such triple" + (f" with {', '.join(bound)}" if bound else "")
    return _joined(
        ["does not hold" + (f" for {', '.join(bound)}" if bound else ""), seen(clause, attributes)]
    )


def _joined(evidence: Sequence[str]) -> str:
    return ", ".join(filter(None, evidence))
