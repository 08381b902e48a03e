"""A query -> its ways: one for each way through its ORs over triples.

Every kind of subscription takes from a way what it can settle and gives the rest back (`Kind.compile`), so
`topic = 'x' OR (?i, rss:title, ?t)` is two ways, a filter and a pattern.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidings.errors import SubscriptionError
from tidings.language.query import (
    And,
    Condition,
    Not,
    Or,
    Parameter,
    Query,
    TriplePattern,
    Variable,
    Via,
    conjuncts,
    has_calls,
    leaves,
    variables,
)

MAX_ALTERNATIVES = 256


@dataclass(frozen=True, slots=True)
class Way:
    """One way to satisfy a query: all of its triples and tests hold, and the event reaches the node of `via`. No test is an
    AND: their parts are tests of their own.

    A kind gives back the way without what it has taken. `joins` says that what was taken looks at variables of
    triples, so that all their bindings have to be found, not the first. `literals` are the parameters that will be
    literals, not IRIs.
    """

    edges: tuple[TriplePattern, ...] = ()
    tests: tuple[Condition, ...] = ()
    select: tuple[Variable, ...] | None = None
    via: Via | None = None
    joins: bool = False
    literals: frozenset[Parameter] = frozenset()

    @property
    def bound(self) -> frozenset[Variable]:
        """The variables that triples bind."""
        return frozenset().union(*(variables(edge) for edge in self.edges))

    @property
    def condition(self) -> Condition:
        """All tests as one condition."""
        return self.tests[0] if len(self.tests) == 1 else And(self.tests)


def alternatives(query: Query) -> tuple[Way, ...]:
    """The ways to satisfy a query, at most `MAX_ALTERNATIVES`."""
    if any(isinstance(leaf, TriplePattern) for leaf in leaves(query.where)):
        return tuple(_way(parts, query) for parts in _products(query.where))
    where = query.where
    if not has_calls(where):
        return (_way(tuple(conjuncts(where)), query),)
    # The parts of an OR that need no operator are a way of their own: for what it finds, no operator is called.
    parts = where.parts if isinstance(where, Or) else (where,)
    cheap = tuple(part for part in parts if not has_calls(part) and not variables(part))
    if not cheap:
        return (_way(tuple(conjuncts(where)), query),)
    rest = tuple(part for part in parts if part not in cheap)
    return tuple(
        _way(tuple(conjuncts(disjuncts[0])) if len(disjuncts) == 1 else (Or(disjuncts),), query)
        for disjuncts in (cheap, rest)
    )


def _way(parts: tuple[Condition, ...], query: Query) -> Way:
    edges = tuple(dict.fromkeys(part for part in parts if isinstance(part, TriplePattern)))
    tests = tuple(part for part in parts if not isinstance(part, TriplePattern))
    return Way(edges, tests, query.select, query.via)


def _products(condition: Condition) -> list[tuple[Condition, ...]]:
    if isinstance(condition, And):
        product: list[tuple[Condition, ...]] = [()]
        for part in condition.parts:
            product = [left + right for left in product for right in _products(part)]
            _check_number(product)
        return product
    has_triples = any(isinstance(leaf, TriplePattern) for leaf in leaves(condition))
    if isinstance(condition, Or) and has_triples:
        union = [way for part in condition.parts for way in _products(part)]
        _check_number(union)
        return union
    if isinstance(condition, Not) and has_triples:
        raise SubscriptionError(
            "a triple cannot stand under NOT; negate a condition on its variables instead"
        )
    return [(condition,)]


def _check_number(ways: list[tuple[Condition, ...]]) -> None:
    if len(ways) > MAX_ALTERNATIVES:
        raise SubscriptionError(
            f"the ORs over triples give more than {MAX_ALTERNATIVES} combinations; split the subscription"
        )
