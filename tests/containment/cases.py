"""Seeded random pairs of subscriptions, one a generalised copy of the other, and events made from witnesses.

A copy is mostly wider, and sometimes changed so that it need not be. An event is a witness with its values spelt otherwise, in
lists and containers, with more types and triples: whether it still matches the definition decides.
"""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tidings.formats.namespaces import RDF, XSD
from tidings.formats.rdf import NTRIPLES
from tidings.language.query import (
    And,
    AnyElement,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Condition,
    Exists,
    Folded,
    IsA,
    Missing,
    Not,
    OneOf,
    Or,
    Query,
    TextTest,
    TriplePattern,
    Variable,
    leaves,
    variables,
)
from tidings.model.event import Event
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Blank, Iri, Literal, Term, Triple, ntriples, read_graph
from tidings.model.values import number

NODES = [Iri(f"urn:n{i}") for i in range(4)]
PROPERTIES = [Iri(f"urn:p{i}") for i in range(4)]
CLASSES = [Iri(f"urn:C{i}") for i in range(5)]
TYPE = Iri(RDF + "type")
VARIABLES = [Variable(name) for name in "abcd"]
ATTRIBUTES = [Attribute(path) for path in ("x", "y", "user.age", "tags")]
INTEGERS = [Literal(str(n), XSD + "integer") for n in (1, 2, 3, 5, 8)]
TEXTS = [Literal(text) for text in ("red", "Red", "dark red", "5", "C1", "10.0.0.1", "2004-01-31", "")]
CONSTANTS: list[Literal] = [
    *INTEGERS,
    *TEXTS,
    Literal("2.5", XSD + "decimal"),
    Literal("red", None, "en"),
    Literal("2004-01-31", XSD + "date"),
    Literal("true", XSD + "boolean"),
    Literal("red", "urn:colour"),
]
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


def taxonomy(rng: random.Random) -> Taxonomy:
    found = Taxonomy()
    for i, cls in enumerate(CLASSES):
        found.add_class(cls.value, [other.value for other in CLASSES[:i] if rng.random() < 0.5])
    found.add_instance(NODES[0].value, [rng.choice(CLASSES).value])
    found.add_instance(CLASSES[4].value, [CLASSES[1].value])  # a class that is an instance
    found.add_property(PROPERTIES[0].value, [PROPERTIES[1].value])
    if rng.random() < 0.3:
        found.add_property(PROPERTIES[2].value, [TYPE.value])
    if rng.random() < 0.3:
        found.add_property(PROPERTIES[3].value, [RDF + "_1"])
    return found


def edge(rng: random.Random) -> TriplePattern:
    subject = rng.choice(VARIABLES if rng.random() < 0.8 else NODES)
    if rng.random() < 0.15:
        return TriplePattern(subject, TYPE, rng.choice(CLASSES))
    place: Any = rng.choice(PROPERTIES if rng.random() < 0.9 else VARIABLES)
    if rng.random() < 0.05:
        place = Iri(RDF + "_1")
    object_ = rng.choice(rng.choice([VARIABLES, VARIABLES, NODES, CONSTANTS, INTEGERS]))
    return TriplePattern(subject, place, object_)


SEARCHES = [
    "red",
    "red OR green",
    "red dark",
    '"dark red"',
    "red -dark",
    "red -(dark green)",
    "green OR (red -dark)",
]


def test(rng: random.Random, operand: Any, constants: list[Any]) -> Condition:
    """A condition on one variable or attribute."""
    if isinstance(operand, Variable) and rng.random() < 0.2:
        return IsA(operand, rng.choice(["<=", "<=", ">=", "="]), rng.choice(CLASSES))
    folded = Folded(operand) if rng.random() < 0.15 else operand
    form = rng.randrange(10)
    if form < 5:
        return Comparison(folded, rng.choice(OPERATORS), rng.choice(constants))
    if form == 5:
        low, high = sorted(rng.sample(INTEGERS, 2), key=lambda literal: int(literal.text))
        return Between(folded, low, high)
    if form < 8:
        return OneOf(folded, tuple(rng.sample(constants, rng.choice((1, 2, 3)))), rng.random() < 0.4)
    if form == 8:
        pattern = rng.choice(["r", "re", "ed", "d", "%d", "r%", "%a%"])
        op = rng.choice(["STARTS", "ENDS", "CONTAINS", "LIKE"])
        return TextTest(folded, op, Literal(pattern))
    op, pattern = rng.choice(
        [
            ("MATCHES", "^r"),
            ("CIDR", "10.0.0.0/8"),
            ("CIDR", "10.0.0.0/24"),
            *[("SEARCH", search) for search in SEARCHES],
        ]
    )
    return TextTest(operand, op, Literal(pattern))


def attribute_test(rng: random.Random) -> Condition:
    attribute = rng.choice(ATTRIBUTES)
    form = rng.randrange(12)
    if form < 7:
        return test(rng, attribute, [c for c in CONSTANTS if not c.language and c.datatype != "urn:colour"])
    if form == 7:
        return rng.choice([Exists, Missing])(attribute)
    if form == 8:
        return Not(test(rng, attribute, INTEGERS))
    if form == 9:
        element = And(
            (Comparison(Attribute("e"), ">", INTEGERS[0]), Comparison(Attribute("e"), "<", INTEGERS[4]))
        )
        return AnyElement("e", attribute, element)
    if form == 10:
        return Comparison(Arithmetic("+", attribute, INTEGERS[0]), ">", rng.choice(INTEGERS))
    return Comparison(attribute, rng.choice(OPERATORS), rng.choice(ATTRIBUTES))


def way(rng: random.Random) -> list[Condition]:
    edges: list[Condition] = [edge(rng) for _ in range(rng.choice((0, 1, 2, 3)))]
    edges += _trapping_edges(rng) if rng.random() < 0.3 else []
    bound = list(dict.fromkeys(v for part in edges for v in variables(part)))
    parts = list(dict.fromkeys(edges))
    parts += _trap(rng, [v for v in bound if all(v == part.object for part in edges if v in variables(part))])  # type: ignore[union-attr]
    resources = {v for part in edges for v in (part.subject, part.property)}  # type: ignore[union-attr]
    for variable in bound:
        for _ in range(rng.choice((0, 0, 1, 1, 2))):
            rare = variable in resources and rng.random() < 0.95  # a literal is no subject
            leaf = test(rng, variable, NODES if rare else rng.choice([INTEGERS, CONSTANTS, NODES]))
            parts.append(Not(leaf) if rng.random() < 0.1 else leaf)
    if len(bound) > 1 and rng.random() < 0.15:
        parts.append(Comparison(bound[0], rng.choice(OPERATORS), bound[1]))
    for _ in range(rng.choice((0, 0, 1, 2)) if edges else rng.choice((1, 2, 3))):
        parts.append(attribute_test(rng))
    return parts


def _trapping_edges(rng: random.Random) -> list[Condition]:
    """Equal literals twice, which are not one term; or a member of a container."""
    a, b, c = rng.sample(VARIABLES, 3)
    first, second = rng.choices(PROPERTIES, k=2)
    if rng.random() < 0.5:
        literal = rng.choice(INTEGERS)
        return [TriplePattern(a, first, literal), TriplePattern(b, second, literal)]
    return [TriplePattern(a, first, b), TriplePattern(b, Iri(RDF + "_1"), c)]


def _trap(rng: random.Random, bound: list[Variable]) -> list[Condition]:
    """Two bounds, which are about one value of a variable and about any two of an attribute."""
    if rng.random() < 0.7:
        return []
    operand: Any = rng.choice([*bound, *ATTRIBUTES])
    low, high = sorted(rng.sample(INTEGERS, 2), key=lambda literal: int(literal.text))
    return [Comparison(operand, ">=", low), Comparison(operand, "<=", high)]


def joined(rng: random.Random, ways: list[list[Condition]]) -> Query:
    each: list[Condition] = [part[0] if len(part) == 1 else And(tuple(part)) for part in ways]
    return Query(each[0] if len(each) == 1 else Or(tuple(each)))


def pair(rng: random.Random, known: Taxonomy) -> tuple[Query, Query]:
    """A subscription that may contain another, and the other."""
    narrow = [way(rng) for _ in range(rng.choice((1, 1, 1, 2)))]
    wide = [wider(rng, part, known) for part in narrow]
    if rng.random() < 0.2:
        wide.append(way(rng))
    rng.shuffle(wide)
    return joined(rng, wide), joined(rng, narrow)


def wider(rng: random.Random, parts: list[Condition], known: Taxonomy) -> list[Condition]:
    """A copy with less in it, weaker conditions and other names."""
    names = dict(
        zip(VARIABLES, rng.sample([Variable(name) for name in "pqrstu"], len(VARIABLES)), strict=True)
    )
    parts = _fused(rng, parts)
    edges = [part for part in parts if isinstance(part, TriplePattern) and rng.random() < 0.8]
    found: list[Condition] = [_wider_edge(rng, part, known) for part in edges]
    bound = {v for part in found for v in variables(part)}
    for part in parts:
        if isinstance(part, TriplePattern) or rng.random() < 0.3 or not bound.issuperset(variables(part)):
            continue
        found.append(part if isinstance(part, Not) else weaker(rng, part, known))
    if rng.random() < 0.1:
        found.append(attribute_test(rng))
    for part in list(found):
        if isinstance(part, TriplePattern) and isinstance(part.object, Literal | Iri) and rng.random() < 0.2:
            free = Variable("v")
            found[found.index(part)] = replace(part, object=free)
            found.append(Comparison(free, rng.choice(("=", ">=", "<=", "!=")), part.object))
            break
    found = [renamed(part, names) for part in found]
    if found and rng.random() < 0.2 and isinstance(found[0], TriplePattern):
        twice = {v: Variable(f"{v.name}2") for v in variables(found[0])}
        found.append(renamed(found[0], twice))  # a triple more, and nothing more required
    return found or [Or((Exists(ATTRIBUTES[0]), Not(Exists(ATTRIBUTES[0]))))]


def _fused(rng: random.Random, parts: list[Condition]) -> list[Condition]:
    """What looks the same and is not: one condition of two bounds, one variable for equal literals, the member of a
    container in the place of the container."""
    found = list(parts)
    lows = [part for part in parts if isinstance(part, Comparison) and part.op == ">="]
    highs = [part for part in parts if isinstance(part, Comparison) and part.op == "<="]
    for low in lows:
        for high in highs:
            fits = isinstance(low.right, Literal) and isinstance(high.right, Literal)
            if low.left == high.left and fits and low in found and high in found and rng.random() < 0.7:
                found[found.index(low)] = Between(low.left, low.right, high.right)
                found.remove(high)
    edges = [part for part in found if isinstance(part, TriplePattern)]
    for literal in INTEGERS:
        if sum(part.object == literal for part in edges) > 1 and rng.random() < 0.7:
            for part in edges:
                if part.object == literal:
                    found[found.index(part)] = replace(part, object=Variable("l"))
    for outer in edges:
        for inner in edges:
            held = inner.property == Iri(RDF + "_1") and inner.subject == outer.object
            if held and outer in found and inner in found and rng.random() < 0.7:
                found[found.index(outer)] = replace(outer, object=inner.object)
                found.remove(inner)
    return found


def renamed(condition: Any, names: dict[Variable, Variable]) -> Any:
    if isinstance(condition, Variable):
        return names.get(condition, condition)
    fields = getattr(condition, "__dataclass_fields__", None)
    if fields is None or isinstance(condition, Iri | Literal):
        return condition
    return replace(condition, **{name: renamed(getattr(condition, name), names) for name in fields})


def _wider_edge(rng: random.Random, part: TriplePattern, known: Taxonomy) -> TriplePattern:
    if isinstance(part.property, Iri) and rng.random() < 0.3:
        above = known.properties_above(part.property.value)
        part = replace(part, property=Iri(rng.choice(above))) if above else part
    if isinstance(part.subject, Iri) and rng.random() < 0.2:
        part = replace(part, subject=Variable("w"))
    return part


def weaker(rng: random.Random, part: Condition, known: Taxonomy) -> Condition:
    """A condition that is mostly implied."""
    if rng.random() < 0.3:
        return part
    if isinstance(part, Comparison) and not isinstance(part.right, Iri | Literal):
        swapped = replace(part, left=part.right, right=part.left)
        return rng.choice([part, replace(part, op=rng.choice(OPERATORS)), swapped])
    if isinstance(part, Comparison | OneOf) and rng.random() < 0.2:
        return _other_case(part)
    if isinstance(part, Comparison | Between) and rng.random() < 0.2:
        operand = part.left if isinstance(part, Comparison) else part.operand
        spelt = [Literal(constant.text) for constant in INTEGERS]
        options = [*rng.sample(INTEGERS, 1), *rng.sample([*spelt, *CONSTANTS], 2)]
        return OneOf(operand, tuple(options), negated=True)
    if isinstance(part, IsA) and isinstance(part.cls, Iri):
        above = (*known.classes_above(part.cls.value), *(cls.value for cls in CLASSES))
        return replace(part, op=rng.choice((part.op, "<=", "=")), cls=Iri(rng.choice(above)))
    if isinstance(part, Comparison) and isinstance(part.right, Literal):
        if part.op == "=":
            options = (part.right, *rng.sample(CONSTANTS, 2))
            other = Comparison(part.left, rng.choice(OPERATORS), rng.choice([part.right, *CONSTANTS]))
            return rng.choice(
                [OneOf(part.left, options), other, TextTest(part.left, "CONTAINS", Literal("e"))]
            )
        other_op = rng.choice((part.op, part.op.rstrip("=") + "=", "!="))
        return replace(part, op=other_op, right=rng.choice([part.right, *INTEGERS]))
    if isinstance(part, OneOf) and rng.random() < 0.7:
        if part.negated:
            return replace(part, options=part.options[: rng.randint(1, len(part.options))])
        return replace(part, options=(*part.options, rng.choice(CONSTANTS)))
    if isinstance(part, TextTest) and part.op in ("STARTS", "ENDS", "CONTAINS"):
        op, text = rng.choice((part.op, "CONTAINS")), part.pattern.text  # type: ignore[union-attr]
        return replace(part, op=op, pattern=Literal(text[:1] if op == "STARTS" else text[-1:]))
    if isinstance(part, TextTest) and part.op == "SEARCH" and rng.random() < 0.7:
        return replace(part, pattern=Literal(rng.choice(SEARCHES)))
    operand = getattr(part, "operand", None) or getattr(part, "left", None)
    if isinstance(operand, Attribute) and rng.random() < 0.5:
        return Exists(operand)
    if isinstance(operand, Variable | Attribute):
        return test(rng, operand, CONSTANTS)
    return part


def _other_case(part: Any) -> Condition:
    name = "left" if isinstance(part, Comparison) else "operand"
    operand = getattr(part, name)
    if isinstance(operand, Arithmetic):
        return part
    return replace(part, **{name: operand.operand if isinstance(operand, Folded) else Folded(operand)})


def mutated(rng: random.Random, event: Event) -> Event:
    """The event with its values spelt otherwise and more around them."""
    attributes: dict[str, Any] = {}
    for path, value in event.attributes.items():
        values = value if isinstance(value, list) else [value]
        values = [_respelt(rng, one) for one in values]
        while rng.random() < 0.3:
            values.insert(
                rng.randrange(len(values) + 1), rng.choice([1, 4, 99, "red", "RED", "5", None, True])
            )
        value = [values] if rng.random() < 0.2 else values[0] if len(values) == 1 else values
        if "." in path and rng.random() < 0.5:
            outer, _, inner = path.partition(".")
            attributes[outer] = {inner: value}
        else:
            attributes[path] = value
    if rng.random() < 0.3:
        attributes.setdefault(rng.choice(ATTRIBUTES).path, rng.choice([1, 4, "red", "5", [], None]))
    graph = read_graph(event.data)
    triples: list[Triple] = []
    for s, p, o in graph:
        triples += _around(rng, s, p, _term(rng, o))
    while rng.random() < 0.5 and triples:
        subject = rng.choice(triples)[0]
        extra: Term = rng.choice(rng.choice([CLASSES, NODES, CONSTANTS]))
        triples.append((subject, rng.choice([TYPE, *PROPERTIES]), extra))
    lines = dict.fromkeys(f"{' '.join(map(ntriples, triple))} .\n" for triple in triples)
    return Event(
        attributes=attributes, datacontenttype=NTRIPLES if lines else "", data="".join(lines).encode()
    )


def _around(rng: random.Random, s: Term, p: Term, o: Term) -> list[Triple]:
    """A triple, or one whose object is a container that holds the object, or a container of it."""
    if rng.random() < 0.15 and p != TYPE:
        outer, inner = Blank(f"c{rng.randrange(99)}"), Blank(f"d{rng.randrange(99)}")
        if rng.random() < 0.3:
            return [
                (s, p, outer),
                (outer, Iri(RDF + "_1"), inner),
                (inner, Iri(RDF + "_2"), o),
                (s, p, inner),
            ]
        return [(s, p, outer), (outer, Iri(RDF + "_1"), o)]
    if p == PROPERTIES[1] and rng.random() < 0.3:
        return [(s, PROPERTIES[0], o)]
    if p == Iri(RDF + "_1") and rng.random() < 0.5:
        return [(s, PROPERTIES[3], o)]  # which may be a sub-property of it
    return [(s, p, o)]


def _term(rng: random.Random, term: Term) -> Term:
    if not isinstance(term, Literal) or rng.random() < 0.5:
        return term
    if term.datatype is None and not term.language:
        return rng.choice(
            [replace(term, language=rng.choice(["en", "de"])), replace(term, text=term.text.upper())]
        )
    if term.datatype in (XSD + "integer", XSD + "decimal") and (exact := number(term.text)) is not None:
        spelt = str(float(exact)) if rng.random() < 0.5 else f"{term.text}{'' if '.' in term.text else '.00'}"
        same = spelt if number(spelt) == exact else term.text
        return Literal(same, rng.choice([None, XSD + "double", XSD + "decimal"]))
    return Literal(term.text) if rng.random() < 0.5 else term


def _respelt(rng: random.Random, value: Any) -> Any:
    if rng.random() < 0.4 or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return rng.choice(
            [str(value), float(value) if Fraction(value) == Fraction(float(value)) else value, f"{value}e0"]
        )
    return value.upper() if isinstance(value, str) and rng.random() < 0.3 else value


def forms(query: Query) -> set[str]:
    """What a subscription is made of, to see that every form took part."""
    found: set[str] = set()
    for leaf in leaves(query.where):
        name = type(leaf).__name__
        found.add(f"{name} {leaf.op}" if isinstance(leaf, Comparison | TextTest | IsA) else name)
        if isinstance(leaf, OneOf) and leaf.negated:
            found.add("NOT IN")
    return found
