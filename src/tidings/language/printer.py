"""Prints a query as a text that parses to the same query.

IRIs are written in full, so the text needs no prefixes; parentheses are written only where the tree needs them.
"""

from __future__ import annotations

import re

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
    Constant,
    Exists,
    Folded,
    IsA,
    JoinedTable,
    KindCondition,
    Not,
    OneOf,
    Operand,
    Or,
    Parameter,
    Query,
    TextTest,
    TriplePattern,
    Variable,
)
from tidings.language.syntax.tokens import DATE, NAME, NUMBER, SPARQL_WORDS, WORDS
from tidings.model.terms import Iri, Literal
from tidings.model.text_tests import is_search, search_language
from tidings.model.values import instant

_NAME = re.compile(NAME)
_NUMBER = re.compile(NUMBER)
_DATE = re.compile(DATE)
_RESERVED = WORDS | SPARQL_WORDS | {"TRUE", "FALSE"}
_BONDS = {"+": 1, "-": 1, "*": 2, "/": 2}
_SPELLED = {"STARTS": "STARTS WITH", "ENDS": "ENDS WITH", "CIDR": "IN CIDR"}
_ESCAPES = {"\\": "\\\\", "'": "''", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_TO_ESCAPE = re.compile(r"[\\'\n\r\t]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def to_text(query: Query) -> str:
    """`query` in Tidings' own language."""
    clauses = []
    if query.select is not None:
        clauses.append("SELECT " + ", ".join(f"?{variable.name}" for variable in query.select))
    if query.stream is not None:
        clauses.append(f"FROM {_name(query.stream)}")
    clauses += [f"JOIN {_name(table.name)} {_join_text(table)}" for table in query.joined]
    if query.where != And(()):
        clauses.append(f"WHERE {condition_text(query.where)}")
    if query.via is not None:
        clauses.append(f"VIA {_name(query.via.network)} AT {_quoted(query.via.node)}")
    return " ".join(clauses)


def _join_text(table: JoinedTable) -> str:
    if table.on:
        return "ON " + " AND ".join(f"{term_text(left)} = {term_text(right)}" for left, right in table.on)
    return f"USING ({', '.join(_name(column, dotted=False) for column in table.using)})"


def condition_text(condition: Condition) -> str:
    """The text of a condition, as after WHERE."""
    if isinstance(condition, And):
        return " AND ".join(_inner(part) for part in condition.parts)
    if isinstance(condition, Or):
        return " OR ".join(_inner(part) for part in condition.parts)
    if isinstance(condition, Not):
        return f"NOT {_inner(condition.part)}"
    if isinstance(condition, TriplePattern):
        nodes = (condition.subject, condition.property, condition.object)
        return f"({', '.join(term_text(node) for node in nodes)})"
    if isinstance(condition, Comparison):
        return _suffixed(condition.left, f"{condition.op} {term_text(condition.right)}")
    if isinstance(condition, Between):
        return _suffixed(
            condition.operand, f"BETWEEN {term_text(condition.low)} AND {term_text(condition.high)}"
        )
    if isinstance(condition, OneOf):
        options = ", ".join(term_text(option) for option in condition.options)
        return _suffixed(condition.operand, f"{'NOT IN' if condition.negated else 'IN'} ({options})")
    if isinstance(condition, TextTest):
        word = _SPELLED.get(condition.op, condition.op)
        if is_search(condition.op) and (language := search_language(condition.op)):
            return _suffixed(
                condition.operand, f"SEARCH {term_text(condition.pattern)} STEMMED {_quoted(language)}"
            )
        return _suffixed(condition.operand, f"{word} {term_text(condition.pattern)}")
    if isinstance(condition, IsA):
        word = "ISA" if condition.op == "<=" else f"ISA {condition.op}"
        return f"{term_text(condition.operand)} {word} {term_text(condition.cls)}"
    if isinstance(condition, Call):
        return f"{_name(condition.name)}({', '.join(term_text(term) for term in condition.arguments)})"
    if isinstance(condition, AnyElement):
        inner = condition_text(condition.condition)
        return f"ANY {_name(condition.name)} IN {_name(condition.attribute.path)} SATISFIES ({inner})"
    if isinstance(condition, KindCondition):
        return str(condition)
    word = "EXISTS" if isinstance(condition, Exists) else "MISSING"
    return f"{word} {term_text(condition.attribute)}"


def term_text(term: Operand | Constant) -> str:
    """The text of a variable, an attribute, a constant, or an arithmetic expression."""
    if isinstance(term, Variable):
        return f"?{term.name}"
    if isinstance(term, Parameter):
        return f"${term.name}"
    if isinstance(term, Attribute):
        return _name(term.path)
    if isinstance(term, Iri):
        return f"<{term.value}>"
    if isinstance(term, Arithmetic):
        bond = _BONDS[term.op]
        return f"{_bound(term.left, bond)} {term.op} {_bound(term.right, bond + 1)}"
    return term_text(term.operand) if isinstance(term, Folded) else _literal(term)


def _bound(term: Operand | Constant, bond: int) -> str:
    """A side of an operation, in parentheses if what is in it binds less closely than `bond`."""
    text = term_text(term)
    return f"({text})" if isinstance(term, Arithmetic) and _BONDS[term.op] < bond else text


def _suffixed(operand: Operand, rest: str) -> str:
    return f"{term_text(operand)} {rest}" + (" IGNORE CASE" if isinstance(operand, Folded) else "")


def _inner(condition: Condition) -> str:
    text = condition_text(condition)
    return f"({text})" if isinstance(condition, And | Or) else text


def _name(name: str, dotted: bool = True) -> str:
    if _NAME.fullmatch(name) and name.upper() not in _RESERVED and (dotted or "." not in name):
        return name
    return "`" + name.replace("`", "``") + "`"


def _literal(literal: Literal) -> str:
    text, datatype = literal.text, literal.datatype
    if datatype and datatype == _bare_datatype(text):
        return text
    quoted = _quoted(text)
    if literal.language:
        return f"{quoted}@{literal.language}"
    return f"{quoted}^^<{datatype}>" if datatype else quoted


def _quoted(text: str) -> str:
    escaped = _TO_ESCAPE.sub(lambda m: _ESCAPES[m[0]], text)
    return "'" + _CONTROL.sub(lambda m: f"\\u{ord(m[0]):04X}", escaped) + "'"


def _bare_datatype(text: str) -> str | None:
    """The datatype that `text` has when it is written without quotes."""
    if _NUMBER.fullmatch(text):
        return XSD + ("double" if "e" in text.lower() else "decimal" if "." in text else "integer")
    if _DATE.fullmatch(text) and instant(text) is not None:
        return XSD + ("dateTime" if "T" in text else "date")
    return XSD + "boolean" if text in ("true", "false") else None
