"""Random query trees, as the language can express them: what parse(to_text(q)) == q is tested on.

Trees are flat (no conjunction in a conjunction), triples never stand under NOT, and every variable of a query with
triples or calls stands in one of them outside of NOT. Neither triples, calls nor variables stand in ANY … SATISFIES.
Tables are joined in any of them: which conditions a join takes is not the language's matter.
"""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from tidings.formats.namespaces import XSD
from tidings.language.query import (
    And,
    AnyElement,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    Condition,
    Exists,
    Folded,
    IsA,
    JoinedTable,
    Missing,
    Not,
    OneOf,
    Or,
    Parameter,
    Query,
    TextTest,
    TriplePattern,
    Variable,
    Via,
    leaves,
)
from tidings.language.query import variables as variables_of
from tidings.model.terms import Iri, Literal
from tidings.model.values import constant_view

NAMES = ("x", "y", "z", "item", "t_1", "é")
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")

variables = st.sampled_from(NAMES).map(Variable)
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
texts = st.one_of(
    st.sampled_from(["finance", "it's", 'say "hi"', "a\\b", "%_", "", "2005", "(a, b, c)", "\n"]), any_text
)
iris = st.builds(
    lambda start, rest: Iri(start + rest),
    st.sampled_from(["http://example.org/", "urn:tidings:", "https://é.example/a?b=c#", "mailto:", "x+y.z:"]),
    st.text(st.sampled_from("abzé09-._~:/?#[]@!$&'()*+,;=%20"), max_size=8),
)
numbers = st.one_of(
    st.integers(-(10**20), 10**20).map(lambda n: Literal(str(n), XSD + "integer")),
    st.decimals(-1000, 1000, places=2).map(lambda d: Literal(str(d), XSD + "decimal")),
    st.sampled_from(["1e3", "-2.5E-7", "+.5e1"]).map(lambda text: Literal(text, XSD + "double")),
    st.sampled_from(["007", "+5", "not a number", ""]).map(lambda text: Literal(text, XSD + "integer")),
)
instants = st.one_of(
    st.dates().map(lambda day: Literal(day.isoformat(), XSD + "date")),
    st.datetimes().map(lambda moment: Literal(moment.isoformat() + "Z", XSD + "dateTime")),
    st.sampled_from(["2004-02-30", "yesterday"]).map(lambda text: Literal(text, XSD + "date")),
)
plain_literals = texts.map(Literal)
literals = st.one_of(
    plain_literals,
    numbers,
    instants,
    st.sampled_from(["true", "false", "1", "maybe"]).map(lambda text: Literal(text, XSD + "boolean")),
    st.builds(Literal, texts, st.none(), st.sampled_from(["en", "de-at", "zh-hans-cn"])),
    st.builds(Literal, texts, iris.map(lambda iri: iri.value)),
)
constants = st.one_of(iris, literals)
parameters = st.sampled_from(["low", "0", "name_1"]).map(Parameter)
attributes = st.one_of(
    st.sampled_from(
        ["topic", "age", "user.age", "user-agent", "not", "EXISTS", "true", "from", "a b", "`", "2x", "ü"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
).map(Attribute)


def places(values: st.SearchStrategy[object], *, templates: bool) -> st.SearchStrategy[object]:
    """What can stand where a constant stands: in a template, a parameter too."""
    return st.one_of(values, parameters) if templates else values


@cache
def triples(*, templates: bool = False) -> st.SearchStrategy[TriplePattern]:
    nodes = st.one_of(variables, places(iris, templates=templates))
    return st.builds(TriplePattern, nodes, nodes, st.one_of(nodes, literals))


searches = st.sampled_from(["a", "it's", 'a OR "b c" -d', "-(x y) z", 'é "b\\c"']).map(Literal)
networks = st.sampled_from(["10.0.0.0/8", "192.168.1.77/24", "10.1.2.3", "2001:db8::/32", "::/0"]).map(
    Literal
)
element_names = st.sampled_from(["item", "any", "in", "a b", "ü", "satisfies"])


@cache
def arithmetic(*, templates: bool = False, free: bool = True) -> st.SearchStrategy[object]:
    """Sums and products in which an attribute or a variable takes part."""
    names = st.one_of(variables, attributes) if free else attributes
    amounts = numbers.filter(lambda literal: constant_view(literal) is not None)
    values = st.one_of(names, places(amounts, templates=templates))
    signs = st.sampled_from("+-*/")
    inner = st.recursive(values, lambda inner: st.builds(Arithmetic, signs, inner, inner), max_leaves=4)
    return st.one_of(st.builds(Arithmetic, signs, names, inner), st.builds(Arithmetic, signs, inner, names))


call_names = st.sampled_from(["locIn", "geo.within", "f", "filter", "any", "NOT", "true", "a b", "é"])


@cache
def calls(*, templates: bool = False) -> st.SearchStrategy[Call]:
    terms = st.one_of(variables, places(constants, templates=templates))
    return st.builds(Call, call_names, st.lists(terms, max_size=4).map(tuple))


@cache
def constraints(*, templates: bool = False, free: bool = True) -> st.SearchStrategy[Condition]:
    """Leaves that are no triples; without variables if not `free`."""
    names = st.one_of(variables, attributes) if free else attributes
    texts_of = st.one_of(names, names.map(Folded))
    sums = arithmetic(templates=templates, free=free)
    operands = st.one_of(names, texts_of, sums)
    values = places(constants, templates=templates)
    plain = places(plain_literals, templates=templates)
    expressions = st.sampled_from(["^a+$", "(?i)hello", r"\bword\b", "it's"]).map(Literal)
    text_tests = st.sampled_from(["LIKE", "CONTAINS", "STARTS", "ENDS"])
    classes = places(iris, templates=templates)
    return st.one_of(
        st.builds(Comparison, operands, st.sampled_from(OPERATORS), st.one_of(values, names, sums)),
        st.builds(Between, operands, values, values),
        st.builds(OneOf, operands, st.lists(values, min_size=1, max_size=4).map(tuple), st.booleans()),
        st.builds(TextTest, texts_of, text_tests, plain),
        st.builds(TextTest, names, st.just("MATCHES"), expressions),
        st.builds(TextTest, names, st.just("CIDR"), places(networks, templates=templates)),
        st.builds(
            TextTest,
            names,
            st.sampled_from(["SEARCH", "SEARCH german"]),
            places(searches, templates=templates),
        ),
        *([st.builds(IsA, variables, st.sampled_from(["<=", ">=", "="]), classes)] if free else []),
        st.builds(Exists, attributes),
        st.builds(Missing, attributes),
    )


def _joined(kind: type[And] | type[Or], parts: list[Condition]) -> Condition:
    flat: list[Condition] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, kind) else (part,))
    return kind(tuple(flat))


@cache
def conditions(*, templates: bool = False) -> st.SearchStrategy[Condition]:
    def negatable(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
        some = st.lists(inner, min_size=2, max_size=3)
        return st.one_of(
            some.map(lambda parts: _joined(And, parts)), some.map(lambda parts: _joined(Or, parts))
        )

    def nested(leaves: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
        return st.recursive(leaves, lambda inner: st.one_of(negatable(inner), inner.map(Not)), max_leaves=4)

    def elements(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
        return st.builds(AnyElement, element_names, attributes, nested(inner))

    asked = constraints(templates=templates, free=False)
    within = st.one_of(asked, elements(asked))
    values_only = nested(
        st.one_of(constraints(templates=templates), calls(templates=templates), elements(within))
    )
    return st.recursive(st.one_of(triples(templates=templates), values_only), negatable, max_leaves=6)


def bound_in(condition: Condition) -> set[str]:
    """The names of the variables that triples and calls outside of NOT have."""
    if isinstance(condition, And | Or):
        return {name for part in condition.parts for name in bound_in(part)}
    binds = isinstance(condition, TriplePattern | Call)
    return {variable.name for variable in variables_of(condition)} if binds else set()


table_names = st.sampled_from(
    [
        "stocks",
        "reviews",
        "join",
        "inner",
        "on",
        "using",
        "where",
        "a b",
        "AS",
        "left",
        "true",
        "market.daily",
    ]
)
columns = st.one_of(
    st.sampled_from(["symbol", "x", "a.b", "using", "and", "`", "a, b", "ü"]), any_text.filter(bool)
)


@st.composite
def joins(draw: st.DrawFn, first: str) -> tuple[JoinedTable, ...]:
    """Tables that can be joined to the first one."""
    names = draw(st.lists(table_names.filter(lambda name: name != first), max_size=3, unique=True))
    using = st.lists(columns, min_size=1, max_size=3, unique=True).map(tuple)
    pairs = st.lists(st.tuples(attributes, attributes), min_size=1, max_size=3).map(tuple)
    return tuple(
        JoinedTable(name, using=draw(using)) if draw(st.booleans()) else JoinedTable(name, on=draw(pairs))
        for name in names
    )


@st.composite
def queries(draw: st.DrawFn, *, templates: bool = False) -> Query:
    where = draw(conditions(templates=templates))
    found = list(leaves(where))
    if any(isinstance(leaf, TriplePattern | Call) for leaf in found):
        used = {variable.name for variable in variables_of(where)}
        missing = sorted(used - bound_in(where))
        binding = [TriplePattern(Variable(name), Iri("urn:tidings:p"), Variable(name)) for name in missing]
        where = _joined(And, [*binding, where]) if binding else where
        names = sorted(used)
    else:
        names = list(NAMES)
    select = (
        draw(st.none() | st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        if names
        else None
    )
    stream = draw(st.none() | st.sampled_from(["Publications", "where", "my stream", "join"]))
    joined = draw(joins(stream)) if stream is not None else ()
    via = draw(
        st.none()
        | st.builds(Via, st.sampled_from(["exchange", "via", "my network"]), st.one_of(texts, any_text))
    )
    if (via is not None or joined) and draw(st.booleans()):
        where, select = And(()), None
    return Query(where, tuple(map(Variable, select)) if select else None, stream, via, joined)
