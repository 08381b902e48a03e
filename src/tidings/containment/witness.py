"""An event made to match a subscription, as small and as general as can be: every variable is a term of its own.

Whatever contains the subscription matches the event too, so matching it against an index finds all candidates; that an event
is matched proves nothing. Calls of operators and VIA are taken to hold. An event is only returned if the
definition says that it satisfies the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Any

from tidings.containment.frozen_ways import TYPE, FrozenWay, frozen_ways, is_of_tables
from tidings.containment.implication import IT, Known, bare, subject
from tidings.containment.samples import plain_value, terms
from tidings.errors import EventError
from tidings.formats.namespaces import XSD
from tidings.formats.rdf import NTRIPLES
from tidings.kinds.patterns.naive import expand, holds
from tidings.language import conditions
from tidings.language.query import (
    AnyElement,
    Attribute,
    Comparison,
    Condition,
    Exists,
    IsA,
    Missing,
    Node,
    Not,
    Query,
    Variable,
    conjuncts,
    has_calls,
    leaves,
    operands,
    variables,
)
from tidings.model.batch import attributes_of
from tidings.model.event import Event
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Iri, Literal, Term, Triple, ntriples

_WAYS, _CHOICES, _COMBINATIONS = 32, 12, 200  # that are tried at most
_NUMBERS: tuple[Term, ...] = tuple(Literal(text, XSD + "integer") for text in ("1", "2", "100", "-100", "0"))


def witness(query: Query, taxonomy: Taxonomy) -> Event | None:
    """An event that matches a subscription; None if none is found."""
    return next(witnesses(query, taxonomy), None)


def witnesses(
    query: Query, taxonomy: Taxonomy, variants: int = 1, hints: Sequence[Term] = ()
) -> Iterator[Event]:
    """Events that match a subscription in its different ways. Each further variant has other values, of the `hints` if
    they satisfy it."""
    if is_of_tables(query):
        return
    ways = [way for way in frozen_ways(query, taxonomy) if not way.is_contradictory and not way.hides_calls]
    for variant in range(variants):
        for way in ways[:_WAYS]:
            if (event := _Making(way, variant, hints).event()) is not None:
                yield event


class _Making:
    """The making of one event for one way."""

    def __init__(self, way: FrozenWay, variant: int, hints: Sequence[Term]) -> None:
        self._way, self._variant, self._hints = way, variant, hints
        # What calls bind is not looked at.
        self._tests = [t for t in way.tests if not has_calls(t) and way.in_edges.issuperset(variables(t))]
        self._joint = [t for t in self._tests if _is_joint(t)]

    def event(self) -> Event | None:
        related = {name for test in self._joint for name in _names(test)}
        choices: dict[Variable | Attribute, list[Any]] = {}
        used: set[Term] = set()
        for place, name in enumerate(sorted(self._way.in_edges, key=lambda name: name.name), 1):
            found = list(islice(self._terms(name, name in related), _CHOICES))
            if not found:
                return None
            first = self._variant * place % len(found)
            found = found[first:] + found[:first]
            # Each variable has a term of its own if there is one: equal literals are spelt in different ways.
            own = next((term for term in found if term not in used), found[0])
            used.add(own)
            choices[name] = found if name in related else [own]
        fixed = attribute_values(
            [test for test in self._tests if not variables(test)], self._variant, self._hints
        )
        for attribute in sorted((n for n in related if isinstance(n, Attribute)), key=lambda n: n.path):
            more = [[], *([plain_value(number)] for number in _NUMBERS)]
            choices[attribute] = [[*fixed.get(attribute.path, ()), *values] for values in more]
        for chosen in islice(product(*choices.values()), _COMBINATIONS):
            values = dict(zip(choices, chosen, strict=True))
            binding = {name.name: term for name, term in values.items() if isinstance(name, Variable)}
            attributes = {**fixed, **{n.path: v for n, v in values.items() if isinstance(n, Attribute)}}
            if (event := self._event(binding, attributes)) is not None:
                return event
        return None

    def _terms(self, name: Variable, is_related: bool) -> Iterator[Term]:
        """The terms that satisfy all conditions on one variable alone."""
        own = [bare(t, name) for t in self._tests if not _is_joint(t) and variables(t) == (name,)]
        places = [edge.index(name) for edge in self._way.edges if name in edge]
        known = Known.of(own)
        classes = [test.cls for test in own if isinstance(test, IsA)]
        own_iri = Iri(f"urn:tidings:any:{name.name}")
        found = [*terms(known, self._hints), own_iri, *(cls for cls in classes if isinstance(cls, Iri))]
        if known.may_be_resource:
            found.insert(0, own_iri)  # what is most general: no kind of literal is required
        for term in dict.fromkeys([*_NUMBERS, *found] if is_related else found):
            if isinstance(term, Literal) and min(places) < 2:
                continue  # only an object is a literal
            if all(self._is_satisfied(test, term) for test in own):
                yield term

    def _is_satisfied(self, test: Condition, term: Term) -> bool:
        """ISA is left to the types that the event will give the term."""

        def is_a(leaf: IsA) -> bool:
            return isinstance(leaf.cls, Iri) and (
                isinstance(term, Iri) or self._way.taxonomy.is_a(term, leaf.op, leaf.cls.value)
            )

        if isinstance(test, IsA):
            return is_a(test)
        if any(isinstance(leaf, IsA) for leaf in leaves(test)):
            return True  # under NOT: seen in the end
        return conditions.holds(test, {}, {IT.name: term}, is_a)

    def _event(self, binding: dict[str, Term], attributes: dict[str, Any]) -> Event | None:
        def image(node: Node) -> Term:
            found = binding[node.name] if isinstance(node, Variable) else node
            assert isinstance(found, Iri | Literal)
            return found

        graph: list[Triple] = [(image(s), image(p), image(o)) for s, p, o in self._way.edges]
        taxonomy = self._way.taxonomy
        for test in self._tests:
            if isinstance(test, IsA) and isinstance(test.cls, Iri):
                term = binding[test.operand.name]
                if not taxonomy.is_a_in(graph, term, test.op, test.cls.value):
                    graph.append((term, TYPE, test.cls))
        lines = dict.fromkeys(f"{' '.join(map(ntriples, triple))} .\n" for triple in graph)
        event = Event(
            attributes={path: v[0] if len(v) == 1 else v for path, v in attributes.items() if v},
            datacontenttype=NTRIPLES if graph else "",
            data="".join(lines).encode(),
        )
        try:
            event.graph()
        except EventError:  # such as an IRI that only a query made by a program can have
            return None
        closed, document = expand(graph, taxonomy), attributes_of(event)
        is_match = all(holds(test, binding, closed, taxonomy, document) for test in self._tests)
        return event if is_match else None


def _is_joint(test: Condition) -> bool:
    """Whether a test relates several names, or one to the results of arithmetic."""
    return subject(test) is None and bool(_names(test))


def _names(test: Condition) -> set[Variable | Attribute]:
    if isinstance(test, Comparison):
        return {*operands(test.left), *operands(test.right)}
    operand = getattr(test, "operand", None)
    return set() if operand is None else set(operands(operand))


def attribute_values(
    tests: Sequence[Condition], variant: int = 0, hints: Sequence[Term] = ()
) -> dict[str, list[Any]]:
    """By path a value for each condition: several values are what is most general."""
    values: dict[str, list[Any]] = {}
    there = [test.attribute for test in tests if isinstance(test, Exists)]
    there += [t.part.attribute for t in tests if isinstance(t, Not) and isinstance(t.part, Missing)]
    for test in tests:
        if isinstance(test, AnyElement):
            inner = attribute_values(conjuncts(test.condition), variant, hints)
            start = f"{test.name}."
            members = {p.removeprefix(start): v[0] for p, v in inner.items() if p.startswith(start)}
            alone = inner.get(test.name) or [True]
            values.setdefault(test.attribute.path, []).append(members or alone[0])
            values |= {p: v for p, v in inner.items() if not p.startswith(start) and p != test.name}
        elif isinstance(attribute := subject(test), Attribute):
            wanted = bare(test, attribute)
            found = map(plain_value, terms(Known.of((wanted,)), hints))
            some = (v for v in found if v is not None and conditions.holds(wanted, {}, {IT.name: v}))
            fitting = list(islice(some, None if variant else 1))  # the first variant needs no more
            if fitting and (chosen := fitting[variant % len(fitting)]) not in (
                known := values.setdefault(attribute.path, [])
            ):
                known.append(chosen)
    for attribute in there:
        values.setdefault(attribute.path, [True])
    return values
