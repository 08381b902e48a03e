"""Queries as SPARQL, where it can say the same: every comparison is guarded by the type it asks for."""

from __future__ import annotations

from tidings.formats.namespaces import XSD
from tidings.language.query import (
    And,
    Between,
    Comparison,
    Condition,
    Not,
    OneOf,
    Or,
    Query,
    TextTest,
    TriplePattern,
    Variable,
    variables,
)
from tidings.model.terms import Iri, Literal, ntriples
from tidings.model.text_tests import regular_expression


def to_sparql(query: Query) -> str:
    parts = query.where.parts if isinstance(query.where, And) else (query.where,)
    edges = [part for part in parts if isinstance(part, TriplePattern)]
    names = dict.fromkeys(v.name for edge in edges for v in variables(edge))
    body = " . ".join(" ".join(map(_node, (e.subject, e.property, e.object))) for e in edges)
    filters = "".join(f" FILTER({_test(part)})" for part in parts if not isinstance(part, TriplePattern))
    select = " ".join(f"?{name}" for name in names) or "*"
    return f"SELECT DISTINCT {select} WHERE {{ {body} {filters} }}"


def _node(node: object) -> str:
    return f"?{node.name}" if isinstance(node, Variable) else ntriples(node)  # type: ignore[arg-type]


def _test(condition: Condition) -> str:
    match condition:
        case And(parts):
            return "(" + " && ".join(map(_test, parts)) + ")"
        case Or(parts):
            return "(" + " || ".join(map(_test, parts)) + ")"
        case Not(part):
            return f"(!{_test(part)})"
        case Comparison(left, op, right):
            return _compare(f"?{left.name}", op, right)
        case Between(operand, low, high):
            name = f"?{operand.name}"
            return f"({_compare(name, '>=', low)} && {_compare(name, '<=', high)})"
        case OneOf(operand, options, negated):
            name = f"?{operand.name}"
            equal = "(" + " || ".join(_compare(name, "=", option) for option in options) + ")"
            if not negated:
                return equal
            return "((" + " || ".join(_guard(name, option) for option in options) + f") && !{equal})"
        case TextTest(operand, op, pattern):
            expression = (
                regular_expression(op, pattern.text)
                .replace("(?s)", "")
                .replace("\\A", "^")
                .replace("\\z", "$")
            )
            name = f"?{operand.name}"
            return f'(!isBlank({name}) && REGEX(STR({name}), {ntriples(Literal(expression))}, "s"))'
    raise TypeError(condition)


def _guard(name: str, constant: Iri | Literal) -> str:
    if isinstance(constant, Iri):
        return f"isIRI({name})"
    if constant.datatype == XSD + "integer":
        return f"isNumeric({name})"
    return f"(isLiteral({name}) && DATATYPE({name}) = <{XSD}string>)"


def _compare(name: str, op: str, constant: Iri | Literal) -> str:
    if isinstance(constant, Iri) and op not in ("=", "!="):
        return "false"
    return f"({_guard(name, constant)} && {name} {op} {ntriples(constant)})"
