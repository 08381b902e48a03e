"""A query -> its ways, and of each way the part that every kind has taken.

`compile` is folded over the kinds: networks take the VIA, operators the tests with calls, patterns the triples, kinds of
the user's own their conditions, filters the tests that are left if nothing else finds the way. What a finder leaves
over is checked by the definition.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tidings.engine.contracts import Compiling
from tidings.errors import SubscriptionError
from tidings.language.alternatives import Way, alternatives
from tidings.language.parameters import check_constant, check_constants
from tidings.language.query import And, Parameter, Query
from tidings.language.shapes import Shapes
from tidings.language.stored_conditions import Template

_REMEMBERED_PLANS = 100_000
EVERY_EVENT, RESIDUALS = "every_event", "residuals"


@dataclass(frozen=True, slots=True)
class WayPlan:
    """The kind that finds a way and its part, and the parts of the kinds that check it."""

    finder: str
    part: Any
    checks: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The plans of a query's ways, for all texts that differ in their constants only."""

    query: Query
    ways: tuple[WayPlan, ...]

    @property
    def has_checks(self) -> bool:
        return any(way.checks for way in self.ways)

    @property
    def is_broad(self) -> bool:
        """Whether nearly every event would match: a way without a constant and without a condition."""
        return any(not way.checks and way.part.is_broad for way in self.ways)


def make_plan(query: Query, kinds: Sequence[Compiling], literals: Collection[Parameter] = ()) -> Plan:
    """The plan of a query; `literals` are the parameters that will be literals, not IRIs."""
    if query.joined:
        raise SubscriptionError(
            f"the subscription joins {query.stream!r} with {query.joined[0].name!r}, which are no tables here; "
            "declare them, as in Engine(tables=[Table(...), ...])"
        )
    check_condition(query)
    return Plan(
        query,
        tuple(_plan(replace(way, literals=frozenset(literals)), kinds) for way in alternatives(query)),
    )


def check_condition(query: Query) -> None:
    """Refuses `FROM name` alone, which is for tables."""
    if query.stream is not None and query.where == And(()) and query.via is None:
        raise SubscriptionError(
            f"the subscription has no condition, and {query.stream!r} is no table here; write one behind WHERE, or declare"
            " the table"
        )


def _plan(way: Way, kinds: Sequence[Compiling]) -> WayPlan:
    finder: tuple[str, Any] | None = None
    checks: list[tuple[str, Any]] = []
    for kind in kinds:
        if kind.role == "check":
            part, way = kind.compile(way)
            if part is not None:
                checks.append((kind.name, part))
    for kind in kinds:
        if kind.role == "find" and finder is None:
            part, way = kind.compile(way)
            finder = None if part is None else (kind.name, part)
    assert finder is not None, "filters take whatever is left"
    if way.tests:
        checks.insert(0, (RESIDUALS, Template(way.tests)))
    name, part = finder
    if name == kinds[-1].name and part.is_broad and any(check != "networks" for check, _ in checks):
        name, part = EVERY_EVENT, None
    return WayPlan(name, part, tuple(checks))


class Planner:
    """Texts -> plans and the constants for them, with one plan for the texts of one shape."""

    def __init__(self, prefixes: Mapping[str, str] | None, kinds: Sequence[Compiling]) -> None:
        self._kinds = kinds
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
                check_constants(query)
            literals = {Parameter(str(i)) for i, literal in enumerate(key[1]) if literal}
            if len(self._plans) >= _REMEMBERED_PLANS:
                self._plans.clear()
            # A plan keeps its query, so that the query's id stays its own.
            plan = self._plans[key] = make_plan(query, self._kinds, literals)
        for constant in constants:
            if constant[-1] == ">" and constant[0] == '"' and constant not in self._checked:
                check_constant(constant)
                self._checked.add(constant)
        return plan, {str(i): constant for i, constant in enumerate(constants)}
