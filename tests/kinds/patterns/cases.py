"""Seeded random graphs and patterns over a small vocabulary, so that most patterns have something to match."""

from __future__ import annotations

import random

from tidings.formats.namespaces import RDF, XSD
from tidings.language.query import (
    And,
    Between,
    Comparison,
    Condition,
    IsA,
    Not,
    OneOf,
    Or,
    Query,
    TextTest,
    TriplePattern,
    Variable,
    variables,
)
from tidings.model.taxonomy import Taxonomy
from tidings.model.terms import Blank, Iri, Literal, Term, Triple

NODES = [Iri(f"urn:tidings:n{i}") for i in range(6)]
PROPERTIES = [Iri(f"urn:tidings:p{i}") for i in range(4)]
CLASSES = [Iri(f"urn:tidings:C{i}") for i in range(5)]
INTEGERS = [Literal(str(i), XSD + "integer") for i in range(1, 6)]
TEXTS = [Literal(text) for text in ("red", "green", "dark red", "Zürich")]
SEARCHES = [
    ("SEARCH", "red -dark"),
    ("SEARCH", '"dark red" OR zurich'),
    ("SEARCH", "tidings -n1"),
    ("SEARCH english", "greens OR reds"),
]
ODD_VALUES = [
    Literal("3"),
    Literal("03.0", XSD + "decimal"),
    Literal("2.5"),
    Literal("9007199254740993", XSD + "integer"),
    Literal("9007199254740992", XSD + "integer"),
    Literal("12345678901234567890.5"),
    Literal("1e2", XSD + "double"),
    Literal("abc", XSD + "integer"),
    Literal("2004-01-31"),
    Literal("2004-01-31T10:00:00Z", XSD + "dateTime"),
    Literal("2004-01-31T11:00:00+01:00", XSD + "dateTime"),
    Literal("true", XSD + "boolean"),
    Literal("1", XSD + "boolean"),
    Literal("red", None, "en"),
    Literal("rot", None, "de"),
    Literal("red", "urn:colour"),
    Literal('say "hi"\n'),
    Literal(""),
]
WELL_TYPED = [value for value in ODD_VALUES if value.text != "abc"]
VARIABLES = [Variable(name) for name in "xyz"]


def taxonomy(rng: random.Random) -> Taxonomy:
    found = Taxonomy()
    for i, cls in enumerate(CLASSES):
        above = [other.value for other in CLASSES[:i] if rng.random() < 0.4]
        found.add_class(cls.value, above, label=rng.choice([None, "red", "green"]))
    for node in NODES[:3]:
        found.add_instance(node.value, [rng.choice(CLASSES).value])
    if rng.random() < 0.5:
        found.add_property(PROPERTIES[0].value, [PROPERTIES[1].value])
    return found


def graph(rng: random.Random, simple: bool = False) -> list[Triple]:
    """`simple`: nodes, integers and texts alone, which SPARQL compares as Tidings does."""
    objects: list[Term] = [*NODES, *INTEGERS, *TEXTS]
    subjects: list[Term] = [*NODES]
    properties = list(PROPERTIES)
    if not simple:
        objects += [*ODD_VALUES, *CLASSES, Blank("b0"), Blank("b1")]
        subjects += [Blank("b0"), Blank("b1")]
        properties += [Iri(RDF + "type"), Iri(RDF + "_1"), Iri(RDF + "_2")]
    size = rng.choice([0, 3, 8, 15, 30])
    return [(rng.choice(subjects), rng.choice(properties), rng.choice(objects)) for _ in range(size)]


def query(rng: random.Random, simple: bool = False) -> Query:
    edges: list[Condition] = [_edge(rng, simple) for _ in range(rng.choice([1, 1, 2, 2, 3, 4]))]
    if not simple and rng.random() < 0.15:
        edges = [Or((edges[0], *edges[1:], _edge(rng, simple))), _edge(rng, simple)]
    bound = [v for edge in edges for v in variables(edge) if v.name != "p"]
    tests = [_condition(rng, bound, simple, 2) for _ in range(rng.choice([0, 1, 1, 2]) if bound else 0)]
    parts = tuple(dict.fromkeys([*edges, *tests]))
    return Query(parts[0] if len(parts) == 1 else And(parts))


def _edge(rng: random.Random, simple: bool) -> TriplePattern:
    subject = rng.choice([*VARIABLES, *VARIABLES, *NODES])
    property_ = rng.choice([*PROPERTIES, *PROPERTIES, *PROPERTIES, Variable("p"), rng.choice(VARIABLES)])
    literals = TEXTS if simple else [*TEXTS, *INTEGERS, *WELL_TYPED]
    object_ = rng.choice([*VARIABLES, *VARIABLES, *NODES, rng.choice(literals)])
    return TriplePattern(subject, property_, object_)


def _condition(rng: random.Random, bound: list[Variable], simple: bool, depth: int) -> Condition:
    kind = rng.random()
    if depth and kind < 0.15:
        return Or((_condition(rng, bound, simple, depth - 1), _condition(rng, bound, simple, depth - 1)))
    if depth and kind < 0.25:
        return Not(_condition(rng, bound, simple, depth - 1))
    if depth and kind < 0.3:
        return And((_condition(rng, bound, simple, depth - 1), _condition(rng, bound, simple, depth - 1)))
    variable = rng.choice(bound)
    constants = [*INTEGERS, *INTEGERS, *TEXTS, *NODES]
    if not simple:
        constants += WELL_TYPED
    if kind < 0.55:
        return Comparison(variable, rng.choice(["=", "!=", "<", "<=", ">", ">="]), rng.choice(constants))
    if kind < 0.65:
        return Between(variable, *rng.sample(INTEGERS if simple else constants, 2))
    if kind < 0.75:
        options = tuple(rng.sample(constants, rng.choice([1, 2, 3])))
        return OneOf(variable, options, rng.random() < 0.4)
    if kind < 0.85 or simple:
        op, pattern = rng.choice(
            [
                ("LIKE", "%red"),
                ("LIKE", "_ed"),
                ("CONTAINS", "re"),
                ("CONTAINS", ""),
                ("MATCHES", "^(red|n1)"),
                ("MATCHES", "[0-9]+$"),
                *(() if simple else SEARCHES),
            ]
        )
        return TextTest(variable, op, Literal(pattern))
    if kind < 0.95:
        return IsA(variable, rng.choice(["<=", "<=", ">=", "="]), rng.choice([*CLASSES, NODES[5]]))
    return Comparison(variable, rng.choice(["=", "<", "!="]), rng.choice(bound))
