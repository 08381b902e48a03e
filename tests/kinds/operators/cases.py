"""Seeded random operators, events and subscriptions over a small vocabulary, so that calls are shared and join.

An operator is a table: a pure function of the event's number and the inputs, drawn when it is first asked for. So the
definition, the engine and a database can be told the same. A `Case` makes everything else from a `random.Random`;
`CASES` gives it one by Hypothesis, which can then make a failing case smaller.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tidings.formats.namespaces import XSD
from tidings.kinds.operators import naive
from tidings.kinds.operators.functions.operator import Operator, Out, operator
from tidings.kinds.operators.functions.outcome import Outcome
from tidings.kinds.patterns import naive as patterns
from tidings.language import conditions
from tidings.language.printer import to_text
from tidings.language.query import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    Condition,
    Leaf,
    Not,
    OneOf,
    Operand,
    Or,
    Query,
    TextTest,
    TriplePattern,
    Variable,
    has_calls,
    leaves,
    variables,
)
from tidings.model.event import Event
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Iri, Literal, Triple, ntriples

NUMBERS = [0, 1, 2, 3, 4]
TEXTS = ["a", "b"]
DOMAIN: list[Any] = [*NUMBERS, *TEXTS]
PLACES = ["Bronx", "Queens"]
PROPERTIES = [Iri("urn:property:p"), Iri("urn:property:q")]
COMPARISONS = ["=", "!=", "<", "<=", ">", ">="]
VARIABLES = [Variable(name) for name in "xyzw"]
# The parameters of each operator: i an input, o an Out. Those with an Out are asked for most.
SIGNATURES = {
    "calm": "",
    "busy": "",
    "dark": "",
    "near": "i",
    "count": "o",
    "people": "o",
    "size": "io",
    "link": "io",
    "pair": "oo",
    "way": "oio",
    "meet": "iio",
}
_MOST_SOLUTIONS = 2_000


@dataclass
class Case:
    """Operators, events and conditions; `asked` counts what the operators were asked for.

    `failing` is the share of outcomes that fail, `triples` that of conditions with triples; if
    `mixed`, some operators are async and some take batches. `world` changes what those would have said, and nothing else:
    without failures the case is one that is possible for all that is known.
    """

    rng: random.Random
    subscriptions: int = 6
    events: int = 2
    depth: int = 4
    failing: float = 0.1
    triples: float = 0.0
    mixed: bool = False
    world: int | None = None
    attributes: list[dict[str, Any]] = field(init=False)
    graphs: list[list[Triple]] = field(init=False)
    conditions: list[Condition] = field(init=False)
    operators: dict[str, Operator] = field(init=False)
    asked: Counter[tuple[int, str, tuple[Any, ...]]] = field(init=False, default_factory=Counter)
    _seed: int = field(init=False)

    def __post_init__(self) -> None:
        rng = self.rng
        self._seed = rng.randrange(1 << 30)
        self.attributes = [
            {"n": n, "a": rng.choice(NUMBERS), "b": rng.choice(NUMBERS), "tag": rng.choice(TEXTS)}
            for n in range(self.events)
        ]
        self.graphs = [_graph(rng) if self.triples else [] for _ in range(self.events)]
        self.conditions = [self._condition() for _ in range(self.subscriptions)]
        self.operators = {name: self._operator(name, kinds) for name, kinds in SIGNATURES.items()}

    @property
    def texts(self) -> list[str]:
        return [to_text(Query(one)) for one in self.conditions]

    def event(self, n: int) -> Event:
        """An event, with its graph if it has one."""
        lines = "".join(f"{ntriples(s)} {ntriples(p)} {ntriples(o)} .\n" for s, p, o in self.graphs[n])
        about = {"id": f"e{n}", "source": "cases", "attributes": self.attributes[n]}
        return Event.from_rdf(lines, "nt", **about) if lines else Event(**about)

    def rows(self, n: int, name: str, inputs: tuple[Any, ...]) -> list[tuple[Any, ...]] | None:
        """What the table of an operator has for an event and inputs; None if it fails."""
        drawn = random.Random(f"{self._seed} {n} {name} {inputs!r}")
        fails, says = drawn.random() < self.failing, drawn.random()
        if fails and self.world is None:
            return None
        if fails:
            drawn = random.Random(f"{self.world} {n} {name} {inputs!r}")
            says = drawn.random()
        width = SIGNATURES[name].count("o")
        if says < (0.25 if width else 0.5):
            return []
        if not width:
            return [()]
        # Numbers are more frequent than texts: most conditions ask for them.
        pool = [*NUMBERS, *NUMBERS, *TEXTS]
        return [tuple(drawn.choice(pool) for _ in range(width)) for _ in range(drawn.choice([1, 1, 2, 3]))]

    def answer(self, n: int) -> naive.Answer:
        """The outcomes that the definition is told."""

        def outcome(call: Call, inputs: tuple[Any, ...]) -> Outcome:
            rows = self.rows(n, call.name, self.operators[call.name].read_inputs(inputs))
            return Outcome(error=f"{call.name} is down") if rows is None else Outcome(tuple(rows))

        return outcome

    def holds(self, n: int) -> naive.Holds:
        def holds(leaf: Leaf, binding: Mapping[str, Any]) -> bool:
            return conditions.holds(leaf, self.attributes[n], binding)

        return holds

    def solutions(self, i: int, n: int) -> Iterator[naive.Solution]:
        """All solutions of a condition for an event, by the definition."""
        for triples, rest in split(self.conditions[i]):
            for binding in self.bindings(triples, n):
                yield from self.solved(rest, binding, n)

    def bindings(self, triples: tuple[TriplePattern, ...], n: int) -> list[dict[str, Any]]:
        """What triples bind; nothing, once, if there are none."""
        return list(patterns.solve(And(triples), self.graphs[n], Taxonomy())) if triples else [{}]

    def solved(self, rest: Condition, binding: Mapping[str, Any], n: int) -> Iterator[naive.Solution]:
        """The solutions of a condition without triples."""
        return naive.solve(rest, binding, self.operators.__getitem__, self.answer(n), self.holds(n))

    def verdict(self, i: int, n: int) -> str | None:
        return verdict_of(self.solutions(i, n))

    def _condition(self) -> Condition:
        rng, depth = self.rng, self.rng.randrange(self.depth + 1)
        if rng.random() >= self.triples:
            return condition(rng, depth)
        found = [TriplePattern(Variable("s"), rng.choice(PROPERTIES), v) for v in rng.sample(VARIABLES, 2)]
        bound = frozenset(v for triple in found for v in (triple.object,) if isinstance(v, Variable))
        whole = And((*found, condition(rng, depth, bound)))
        return Or((whole, condition(rng, depth))) if rng.random() < 0.2 else whole

    def _operator(self, name: str, kinds: str) -> Operator:
        def ask(event: Event, *arguments: Any) -> Any:
            inputs = tuple(value for value, kind in zip(arguments, kinds, strict=True) if kind == "i")
            return said(event, *inputs)

        async def ask_later(event: Event, *arguments: Any) -> Any:
            await asyncio.sleep(0)
            return ask(event, *arguments)

        def ask_all(calls: list[tuple[Any, ...]], *arguments: Any) -> list[Any]:
            return [said(*call) for call in calls]

        def said(event: Event, *inputs: Any) -> Any:
            n = event.attributes["n"]
            self.asked[n, name, inputs] += 1
            rows = self.rows(n, name, inputs)
            if rows is None:
                raise RuntimeError(f"{name} is down")
            if "o" not in kinds:
                return bool(rows)
            return [row[0] for row in rows] if kinds.count("o") == 1 else rows

        style = self.rng.choice([ask, ask_later, ask_all]) if self.mixed else ask
        plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
        own = [
            inspect.Parameter(f"p{position}", plain, annotation=Out if kind == "o" else Any)
            for position, kind in enumerate(kinds)
        ]
        style.__signature__ = inspect.Signature([inspect.Parameter("event", plain), *own])  # type: ignore[attr-defined]
        return operator(name=name, cost=0.001 * (1 + len(name) % 3), batch=style is ask_all)(style)


def verdict_of(solutions: Iterable[naive.Solution]) -> str | None:
    doubts = [solution.doubt for solution in solutions]
    return "match" if None in doubts else "undecided" if doubts else None


def condition(rng: random.Random, depth: int, bound: frozenset[Variable] = frozenset()) -> Condition:
    """A condition with a call whose AND, OR and NOT nest up to `depth` deep and which has few solutions."""
    while True:
        found, _ = _condition(rng, depth, bound)
        if has_calls(found) and _most(found) <= _MOST_SOLUTIONS:
            return found


def closed(rng: random.Random, depth: int) -> Condition:
    """A condition of calls that are true, false or unknown, without variables."""
    if depth == 0 or rng.random() < 0.2:
        name = rng.choice(["calm", "busy", "dark", "near"])
        return Call(name, tuple(_place(rng) for _ in SIGNATURES[name]))
    if rng.random() < 0.3:
        return Not(closed(rng, depth - 1))
    parts = tuple(closed(rng, depth - 1) for _ in range(rng.choice([2, 2, 3])))
    return rng.choice([And, Or])(parts)


CASES = st.builds(
    Case,
    st.randoms(use_true_random=False),
    subscriptions=st.integers(1, 5),
    events=st.integers(1, 3),
    depth=st.integers(0, 4),
    failing=st.sampled_from([0.0, 0.1, 0.4]),
    triples=st.sampled_from([0.0, 0.5]),
)


def _condition(
    rng: random.Random, depth: int, bound: frozenset[Variable]
) -> tuple[Condition, frozenset[Variable]]:
    """A condition and the variables that it surely binds, if those of `bound` are."""
    kind = rng.random()
    if kind > 0.95:
        return _test(rng, bound), bound
    if depth == 0 or kind < 0.12:
        return _conjunction(rng, rng.choice([1, 1, 2, 3]), bound)
    if kind < 0.3:
        return Not(_condition(rng, depth - 1, bound)[0]), bound
    if kind < 0.6:
        ways = [_condition(rng, depth - 1, bound) for _ in range(rng.choice([2, 2, 3]))]
        return Or(tuple(way for way, _ in ways)), frozenset.intersection(*(binds for _, binds in ways))
    parts = []
    for _ in range(rng.choice([2, 2, 3])):
        part, bound = _condition(rng, depth - 1, bound)
        parts.append(part)
    if rng.random() < 0.5:
        # A variable of one part of an OR alone is bound in some solutions only.
        parts.append(_test(rng, bound if rng.random() < 0.7 else bound.union(*map(_met, parts))))
    rng.shuffle(parts)
    return And(tuple(parts)), bound


def _conjunction(
    rng: random.Random, calls: int, bound: frozenset[Variable]
) -> tuple[Condition, frozenset[Variable]]:
    parts: list[Condition] = []
    for _ in range(calls):
        call, bound = _call(rng, bound)
        parts.append(call)
    parts += [_test(rng, bound) for _ in range(rng.choice([0, 1, 1, 2]))]
    rng.shuffle(parts)
    return (parts[0] if len(parts) == 1 else And(tuple(parts))), bound


def _call(rng: random.Random, bound: frozenset[Variable]) -> tuple[Call, frozenset[Variable]]:
    name = rng.choice(list(SIGNATURES))
    arguments: list[Variable | Literal] = []
    binds: set[Variable] = set()
    for kind in SIGNATURES[name]:
        if kind == "o" and rng.random() < 0.85:
            variable = rng.choice(VARIABLES)
            arguments.append(variable)
            binds.add(variable)
        elif kind == "o":
            arguments.append(literal(rng.choice(DOMAIN)))
        elif bound and rng.random() < 0.6:
            arguments.append(rng.choice(_sorted(bound)))
        else:
            arguments.append(_place(rng))
    return Call(name, tuple(arguments)), bound | binds


def _test(rng: random.Random, bound: frozenset[Variable]) -> Condition:
    """A condition without calls, on attributes and variables."""
    names: list[Operand] = _sorted(bound)
    operand: Operand = (
        rng.choice([Attribute("a"), Attribute("b")]) if not names or rng.random() < 0.3 else rng.choice(names)
    )
    other: Operand = rng.choice([*names, Attribute("a")])
    kind = rng.randrange(10)
    if kind < 4:
        return Comparison(operand, rng.choice(COMPARISONS), literal(rng.choice(DOMAIN)))
    if kind < 5:
        return Comparison(operand, rng.choice(COMPARISONS), other)
    if kind < 6:
        twice = Arithmetic(rng.choice("+-*"), literal(rng.choice([1, 2])), other)
        return Comparison(operand, rng.choice(COMPARISONS), twice)
    if kind < 7:
        return Between(operand, literal(rng.choice([0, 1, 2])), literal(rng.choice([2, 3, 4])))
    if kind < 8:
        return OneOf(operand, tuple(map(literal, rng.sample(DOMAIN, 2))), rng.random() < 0.3)
    if kind < 9:
        return TextTest(rng.choice([operand, Attribute("tag")]), "LIKE", literal(rng.choice(["a%", "%"])))
    parts = (_test(rng, bound), _test(rng, bound))
    return rng.choice([Or(parts), And(parts), Not(parts[0])])


def _met(condition: Condition) -> frozenset[Variable]:
    """The variables of calls outside of NOT."""
    if isinstance(condition, And | Or):
        return frozenset().union(*map(_met, condition.parts))
    return frozenset(variables(condition)) if isinstance(condition, Call) else frozenset()


def _sorted(names: frozenset[Variable]) -> list[Any]:
    return sorted(names, key=lambda variable: variable.name)


def _graph(rng: random.Random) -> list[Triple]:
    nodes = [Iri(f"urn:node:{i}") for i in range(2)]
    return [(rng.choice(nodes), rng.choice(PROPERTIES), literal(rng.choice(DOMAIN))) for _ in range(6)]


def split(condition: Condition) -> Iterator[tuple[tuple[TriplePattern, ...], Condition]]:
    """The triples of each way, and all that is beside them."""
    if not any(isinstance(leaf, TriplePattern) for leaf in leaves(condition)):
        yield (), condition
    elif isinstance(condition, Or):
        for part in condition.parts:
            yield from split(part)
    elif isinstance(condition, And):
        found = tuple(part for part in condition.parts if isinstance(part, TriplePattern))
        yield found, And(tuple(part for part in condition.parts if part not in found))


def literal(value: Any) -> Literal:
    return Literal(str(value), XSD + "integer") if isinstance(value, int) else Literal(value)


def _place(rng: random.Random) -> Literal:
    return literal(rng.choice([*PLACES, *PLACES, 1, 2]))


def _most(condition: Condition) -> int:
    """A bound on the number of solutions that the definition looks at."""
    if isinstance(condition, Call):
        return 3 if "o" in SIGNATURES[condition.name] else 1
    if isinstance(condition, Not):
        return _most(condition.part)
    if isinstance(condition, Or):
        return sum(map(_most, condition.parts))
    product = 1
    for part in condition.parts if isinstance(condition, And) else ():
        product *= _most(part)
    return product
