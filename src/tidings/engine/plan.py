"""A query -> what each stage has to settle.

The condition becomes alternatives, one for each way through its ORs over triples. A way without triples is a filter,
which the index of filters settles. Any other has a pattern, which the index of patterns files and settles, and a
residual: conditions on attributes, and between two variables, that are settled afterwards on the few pairs that are
left. So `topic = 'x' OR (?i, rss:title, ?t)` is right. What has calls in it, or variables that calls bind, is settled
by operators, for pairs that nothing else refuses: to the stages before, it is true. A place in a network is settled
by its route, before any operator is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tidings.errors import SubscriptionError
from tidings.kinds.filters.shape import FilterShape, compile_filter
from tidings.kinds.operators.functions.catalogue import Catalogue
from tidings.kinds.operators.naive import has_calls
from tidings.kinds.operators.program import Program, compile_program, conjuncts
from tidings.kinds.patterns.shape import Pattern, PatternShape, compile_pattern
from tidings.language.parameters import lift, parameters
from tidings.language.query import (
    And,
    Comparison,
    Condition,
    Not,
    Or,
    Parameter,
    Query,
    TextTest,
    TriplePattern,
    Variable,
    leaves,
    variables,
)
from tidings.language.shapes import Shapes
from tidings.model.terms import Iri, Literal, from_ntriples, ntriples
from tidings.model.values import constant_view

MAX_ALTERNATIVES = 256
_REMEMBERED_PLANS = 100_000


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to satisfy a query."""

    pattern: Pattern
    residual: tuple[Condition, ...]
    calls: Condition | None = None
    """What operators have to settle."""

    @property
    def bound(self) -> frozenset[Variable]:
        """The variables that triples bind."""
        return frozenset().union(*(variables(edge) for edge in self.pattern.edges))

    @property
    def is_filter(self) -> bool:
        """Whether it asks for no triple."""
        return not self.pattern.edges

    @property
    def filter(self) -> Condition:
        """All that a way without triples asks for."""
        parts = (*self.pattern.tests, *self.residual)
        return parts[0] if len(parts) == 1 else And(parts)

    @property
    def is_open(self) -> bool:
        """Whether nothing but operators can refuse an event."""
        return self.is_filter and self.calls is not None and self.filter == And(())

    @property
    def every(self) -> bool:
        """Whether the residual looks at variables, so that it must see all their bindings."""
        return any(variables(condition) for condition in self.residual)


@dataclass(frozen=True, slots=True)
class Plan:
    """A query's alternatives and their compiled shapes, for all texts that differ in their constants only."""

    query: Query
    ways: tuple[Alternative, ...]
    shapes: tuple[PatternShape | FilterShape, ...]
    programs: tuple[Program | None, ...]

    @property
    def is_broad(self) -> bool:
        """Whether nearly every event would match: a way without a constant and without a condition."""
        return self.query.via is None and any(
            way.calls is None
            and (
                way.filter == And(())
                if isinstance(shape, FilterShape)
                else not shape.width and not way.residual
            )
            for shape, way in zip(self.shapes, self.ways, strict=True)
        )


def make_plan(query: Query, catalogue: Catalogue, literals: Collection[Parameter] = ()) -> Plan:
    """The plan of a query; `literals` are the parameters that will be literals, not IRIs."""
    if query.joined:
        raise SubscriptionError(
            f"the subscription joins {query.stream!r} with {query.joined[0].name!r}, which are no tables here; "
            "declare them, as in Engine(tables=[Table(...), ...])"
        )
    ways = alternatives(query)
    for way in ways:
        if way.calls is not None:
            catalogue.check_query(way.calls, way.bound)
    programs = (
        compile_program(way.calls, way.bound, catalogue.find, query.select) if way.calls is not None else None
        for way in ways
    )
    shapes = (
        compile_filter(way.filter) if way.is_filter else compile_pattern(way.pattern, literals)
        for way in ways
    )
    return Plan(query, ways, tuple(shapes), tuple(programs))


class Planner:
    """Texts -> plans and the constants for them, with one plan for the texts of one shape."""

    def __init__(self, prefixes: Mapping[str, str] | None, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._shapes = Shapes(prefixes)
        self._plans: dict[tuple[int, tuple[bool, ...]], Plan] = {}
        self._checked: set[str] = set()

    def shape(self, text: str) -> tuple[Query, tuple[str, ...]]:
        """The query that a text shares with others, and its constants for the parameters 0, 1, … in N-Triples form."""
        return self._shapes.read(text)

    def read(self, query: Query, constants: tuple[str, ...]) -> tuple[Plan, dict[str, str]]:
        """The plan of a shape and the constants by parameter."""
        key = (id(query), tuple([constant[0] == '"' for constant in constants]))
        plan = self._plans.get(key)
        if plan is None:
            if not constants:
                _check_alone(query)
            literals = {Parameter(str(i)) for i, literal in enumerate(key[1]) if literal}
            if len(self._plans) >= _REMEMBERED_PLANS:
                self._plans.clear()
            # A plan keeps its query, so that the query's id stays its own.
            plan = self._plans[key] = make_plan(query, self._catalogue, literals)
        for constant in constants:
            if constant[-1] == ">" and constant[0] == '"' and constant not in self._checked:
                check_constant(constant)
                self._checked.add(constant)
        return plan, {str(i): constant for i, constant in enumerate(constants)}


def _check_alone(query: Query) -> None:
    """Checks a query that was not taken apart into a shape and its constants."""
    if names := parameters(query):
        raise SubscriptionError(
            f"${names[0]} has no value here; write a constant, or give a table to subscribe_table"
        )
    for constant in lift(query)[1]:
        check_constant(ntriples(constant))


def check_constant(text: str) -> None:
    """Refuses a typed literal that says nothing, such as "abc"^^xsd:integer."""
    literal = from_ntriples(text)
    if isinstance(literal, Literal) and constant_view(literal) is None:
        raise SubscriptionError(
            f"{literal.text!r} is not a value of the type <{literal.datatype}>; mend one of them"
        )


def alternatives(query: Query) -> tuple[Alternative, ...]:
    """The ways to satisfy a query."""
    if not any(isinstance(leaf, TriplePattern) for leaf in leaves(query.where)):
        return _without_triples(query)
    return tuple(_alternative(way, query) for way in _alternatives(query.where))


def _without_triples(query: Query) -> tuple[Alternative, ...]:
    """The parts of an OR that need no operator are a filter of their own: what it finds, no operator is asked about."""
    where = query.where
    if not has_calls(where):
        return (_filter(where, query),)
    parts = where.parts if isinstance(where, Or) else (where,)
    cheap = tuple(part for part in parts if not has_calls(part) and not variables(part))
    if not cheap:
        return (_alternative(conjuncts(where), query),)
    rest = tuple(part for part in parts if part not in cheap)
    asked = Or(rest) if len(rest) > 1 else rest[0]
    return (
        _filter(Or(cheap) if len(cheap) > 1 else cheap[0], query),
        _alternative(conjuncts(asked), query),
    )


def _filter(where: Condition, query: Query) -> Alternative:
    return Alternative(Pattern((), (), query.select), (where,))


def _alternative(parts: Sequence[Condition], query: Query) -> Alternative:
    edges = tuple(dict.fromkeys(part for part in parts if isinstance(part, TriplePattern)))
    tests: list[Condition] = [part for part in parts if not isinstance(part, TriplePattern)]
    bound = frozenset().union(*(variables(edge) for edge in edges))
    calls: list[Condition] = []
    if any(map(has_calls, tests)):
        calls = [test for test in tests if has_calls(test) or not bound.issuperset(variables(test))]
        tests = [test for test in tests if test not in calls]
        tests += [access for test in calls if (access := _access(test)) is not None]
    residual = tuple(test for test in tests if any(map(_is_later, leaves(test))))
    own = tuple(test for test in tests if test not in residual)
    asked = (calls[0] if len(calls) == 1 else And(tuple(calls))) if calls else None
    return Alternative(Pattern(edges, own, query.select), residual, asked)


def _access(condition: Condition) -> Condition | None:
    """What has to hold of an event's attributes so that a condition with calls can; None if nothing has to."""
    if not has_calls(condition):
        return None if variables(condition) else condition
    if isinstance(condition, And):
        parts = tuple(access for part in conjuncts(condition) if (access := _access(part)) is not None)
        return None if not parts else parts[0] if len(parts) == 1 else And(parts)
    if isinstance(condition, Or):
        ways = [_access(part) for part in condition.parts]
        return None if None in ways else Or(tuple(ways))  # type: ignore[arg-type]
    return None


def _is_later(leaf: Condition) -> bool:
    """Whether a leaf is none that the index of patterns settles: it compares one variable with constants."""
    if isinstance(leaf, Comparison):
        return not (isinstance(leaf.left, Variable) and isinstance(leaf.right, Iri | Literal | Parameter))
    if isinstance(leaf, TextTest) and leaf.op not in ("LIKE", "CONTAINS", "MATCHES"):
        return True
    return not isinstance(getattr(leaf, "operand", None), Variable)


def _alternatives(condition: Condition) -> list[tuple[Condition, ...]]:
    if isinstance(condition, And):
        product: list[tuple[Condition, ...]] = [()]
        for part in condition.parts:
            product = [left + right for left in product for right in _alternatives(part)]
            _check(product)
        return product
    if isinstance(condition, Or) and any(isinstance(leaf, TriplePattern) for leaf in leaves(condition)):
        union = [way for part in condition.parts for way in _alternatives(part)]
        _check(union)
        return union
    if isinstance(condition, Not) and any(isinstance(leaf, TriplePattern) for leaf in leaves(condition)):
        raise SubscriptionError(
            "a triple cannot stand under NOT; negate a condition on its variables instead"
        )
    return [(condition,)]


def _check(ways: list[tuple[Condition, ...]]) -> None:
    if len(ways) > MAX_ALTERNATIVES:
        raise SubscriptionError(
            f"the ORs over triples give more than {MAX_ALTERNATIVES} combinations; split the subscription"
        )
