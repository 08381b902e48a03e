"""Replaces the constants of a query by `$parameters`, and parameters by constants.

`lift` takes the constants out, `substitute` puts constants in: they are inverse. The order of constants is that of the
tree from left to right, which is their order in the text. A regular expression is no constant here, because it is
checked and compiled when the text is parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from tidings.errors import SubscriptionError
from tidings.language.query import (
    And,
    AnyElement,
    Arithmetic,
    Between,
    Call,
    Comparison,
    Condition,
    IsA,
    Not,
    OneOf,
    Or,
    Parameter,
    Query,
    TextTest,
    TriplePattern,
    leaves,
)
from tidings.language.syntax.lexicon import expression_fault, network_fault
from tidings.model.search.expression import search_fault
from tidings.model.terms import Iri, Literal, from_ntriples, ntriples
from tidings.model.text_tests import is_search
from tidings.model.values import NUMBER, constant_view

Replace = Callable[[Any], Any]
_CONSTANT = (Iri, Literal)


@lru_cache(maxsize=1024)
def _numbered(number: int) -> Parameter:
    return Parameter(str(number))


def lift(query: Query) -> tuple[Query, tuple[Iri | Literal, ...]]:
    """`query` with parameters 0, 1, … for its constants, and the constants."""
    constants: list[Iri | Literal] = []

    def number(term: Any) -> Any:
        if not isinstance(term, _CONSTANT):
            return term
        constants.append(term)
        return _numbered(len(constants) - 1)

    lifted = Query(_rebuilt(query.where, number), query.select, query.stream, query.via, query.joined)
    return lifted, tuple(constants)


def substitute(query: Query, values: Mapping[str, Iri | Literal]) -> Query:
    """`query` with the constants of `values` for its parameters; parameters without a value stay."""

    def fill(term: Any) -> Any:
        return values.get(term.name, term) if isinstance(term, Parameter) else term

    where = _rebuilt(query.where, fill)
    _check_places(where)
    return Query(where, query.select, query.stream, query.via, query.joined)


def parameters(query: Query) -> tuple[str, ...]:
    """The names of the parameters in the order in which they first appear."""
    names: dict[str, None] = {}

    def note(term: Any) -> Any:
        if isinstance(term, Parameter):
            names[term.name] = None
        return term

    _rebuilt(query.where, note)
    return tuple(names)


def check_constants(query: Query) -> None:
    """Refuses a query that has parameters, or a constant that says nothing: one that is subscribed to as it is."""
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
            f"{literal.text!r} is not a value of the type <{literal.datatype}>; correct one of them"
        )


def _rebuilt(condition: Any, replace: Replace) -> Any:
    """`condition` with `replace` applied to every place where a constant can stand, from left to right."""
    rebuild = _REBUILD.get(type(condition))
    return condition if rebuild is None else rebuild(condition, replace)


def _text_test(test: TextTest, replace: Replace) -> TextTest:
    if test.op == "MATCHES" and isinstance(test.pattern, Literal):
        return test
    return TextTest(test.operand, test.op, replace(test.pattern))


_REBUILD: dict[type, Callable[[Any, Replace], Condition]] = {
    TriplePattern: lambda c, r: TriplePattern(r(c.subject), r(c.property), r(c.object)),
    And: lambda c, r: And(tuple([_rebuilt(part, r) for part in c.parts])),
    Or: lambda c, r: Or(tuple([_rebuilt(part, r) for part in c.parts])),
    Not: lambda c, r: Not(_rebuilt(c.part, r)),
    Comparison: lambda c, r: Comparison(_operand(c.left, r), c.op, _operand(c.right, r)),
    Between: lambda c, r: Between(_operand(c.operand, r), r(c.low), r(c.high)),
    OneOf: lambda c, r: OneOf(_operand(c.operand, r), tuple([r(option) for option in c.options]), c.negated),
    IsA: lambda c, r: IsA(c.operand, c.op, r(c.cls)),
    TextTest: _text_test,
    Call: lambda c, r: Call(c.name, tuple([r(argument) for argument in c.arguments])),
    AnyElement: lambda c, r: AnyElement(c.name, c.attribute, _rebuilt(c.condition, r)),
}


def _operand(term: Any, replace: Replace) -> Any:
    if type(term) is Arithmetic:
        return Arithmetic(term.op, _operand(term.left, replace), _operand(term.right, replace))
    return replace(term)


def _check_places(condition: Condition) -> None:
    """Refuses constants where the language would not have let them be written."""
    for leaf in leaves(condition):
        if isinstance(leaf, TriplePattern):
            for role, node in (("subject", leaf.subject), ("property", leaf.property)):
                if isinstance(node, Literal):
                    raise SubscriptionError(
                        f"{node.text!r} is given for the {role} of a triple; it has to be an IRI"
                    )
        elif isinstance(leaf, IsA) and isinstance(leaf.cls, Literal):
            raise SubscriptionError(f"{leaf.cls.text!r} is given for a class; it has to be an IRI")
        elif isinstance(leaf, TextTest):
            _check_pattern(leaf)
        elif isinstance(leaf, AnyElement):
            _check_places(leaf.condition)
        elif isinstance(leaf, Comparison):
            _check_numbers(leaf.left)
            _check_numbers(leaf.right)
        elif isinstance(leaf, Between | OneOf):
            _check_numbers(leaf.operand)


def _check_pattern(test: TextTest) -> None:
    pattern: Any = test.pattern
    if not isinstance(pattern, _CONSTANT):
        return
    if isinstance(pattern, Iri) or pattern.datatype or pattern.language:
        raise SubscriptionError(f"{ntriples(pattern)} is given for a {test.op}; it has to be a plain text")
    if test.op == "MATCHES" and (reason := expression_fault(pattern.text)):
        raise SubscriptionError(f"{pattern.text!r} is not a regular expression; RE2 says: {reason}")
    if is_search(test.op) and (fault := search_fault(pattern.text)):
        raise SubscriptionError(f"{pattern.text!r} is not a search: {fault.what}; {fault.advice}")
    if test.op == "CIDR" and (reason := network_fault(pattern.text)):
        raise SubscriptionError(f"{pattern.text!r} is not a network of addresses; {reason}")


def _check_numbers(term: object) -> None:
    if isinstance(term, Arithmetic):
        for side in (term.left, term.right):
            _check_numbers(side)
            if isinstance(side, _CONSTANT) and ((view := constant_view(side)) is None or view[0] != NUMBER):
                raise SubscriptionError(f"{ntriples(side)} is given for arithmetic; it has to be a number")
