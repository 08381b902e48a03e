"""From what the grammar recognised to the query tree, while it is being recognised.

The methods are named after the rules and aliases of grammar.lark and get what those hold. Conjunctions in
conjunctions and disjunctions in disjunctions are flattened, a constant moves to the right of its comparison.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from lark import Token

from tidings.language.faults import Misread, error_at, shown
from tidings.language.lexicon import Lexicon, expression_fault
from tidings.language.query import (
    And,
    Attribute,
    Between,
    Comparison,
    Condition,
    Constant,
    Exists,
    IsA,
    Node,
    Not,
    OneOf,
    Or,
    Parameter,
    Query,
    TextTest,
    TriplePattern,
    Variable,
)
from tidings.language.tokens import TERM
from tidings.terms import Iri, Literal

TRIPLE_TERMS = re.compile(rf"\(({TERM}),({TERM}),({TERM})\)")
T = TypeVar("T")
REVERSED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Builder:
    """Callbacks of the grammar. `lexicon` and `text` are those of the text being read."""

    lexicon: Lexicon
    text: str

    def start(self, children: list[Any]) -> Query:
        where = children[-1]
        select, stream = None, None
        for child in children[:-1]:
            if isinstance(child, tuple):
                select = child or None
            else:
                stream = child
        return Query(where, select, stream)

    def select(self, children: list[Token]) -> tuple[Variable, ...]:
        """The selected variables; none stands for `*`."""
        return tuple(dict.fromkeys(Variable(token[1:]) for token in children))

    def stream(self, children: list[Token]) -> str:
        return _name(children[0])

    def conjunction(self, children: list[Condition]) -> Condition:
        return And(tuple(_flat(children, And)))

    def disjunction(self, children: list[Condition]) -> Condition:
        return Or(tuple(_flat(children, Or)))

    def negation(self, children: list[Any]) -> Condition:
        return Not(children[0])

    def triples(self, children: list[Token]) -> Condition:
        token = children[0]
        term = self.lexicon.term
        found: list[Condition] = []
        for parts in TRIPLE_TERMS.finditer(token):
            subject, property, object = parts.groups()
            try:
                pattern = TriplePattern(term(subject), term(property), term(object))
            except Misread:
                # Only a text with a fault pays for knowing where its terms stand.
                for group in (1, 2, 3):
                    blanks = len(parts[group]) - len(parts[group].lstrip())
                    self.read(term, parts[group], (token.start_pos or 0) + parts.start(group) + blanks)
                raise
            if isinstance(pattern.subject, Literal) or isinstance(pattern.property, Literal):
                role = "subject" if isinstance(pattern.subject, Literal) else "property"
                what = f"a literal cannot be the {role} of a triple"
                advice = "only the object of a triple may be a text, a number or a date"
                raise error_at(self.text, (token.start_pos or 0) + parts.start(), what, advice)
            found.append(pattern)
        return found[0] if len(found) == 1 else And(tuple(found))

    def variable(self, children: list[Token]) -> Variable:
        return Variable(children[0][1:])

    def attribute(self, children: list[Token]) -> Attribute:
        return Attribute(_name(children[0]))

    def constant(self, children: list[Token]) -> Node:
        return self.read(self.lexicon.term, children[0], children[0].start_pos)

    def class_name(self, children: list[Token]) -> Iri:
        return self.read(self.lexicon.name, children[0], children[0].start_pos)

    def pattern(self, children: list[Token]) -> Literal | Parameter:
        token = children[0]
        term: Any = self.constant(children)
        if isinstance(term, Literal) and (term.datatype or term.language):
            advice = "leave out its language or datatype"
            raise error_at(self.text, token.start_pos or 0, "a pattern is a plain text", advice)
        return term

    def expression(self, children: list[Token]) -> Literal | Parameter:
        pattern = self.pattern(children)
        if isinstance(pattern, Literal):
            self.check_expression(pattern.text, children[0])
        return pattern

    def options(self, children: list[Constant]) -> tuple[Constant, ...]:
        return tuple(children)

    def comparison(self, children: list[Any]) -> Comparison:
        left, op, right = children
        return Comparison(left, "!=" if op == "<>" else str(op), right)

    def reversed_comparison(self, children: list[Any]) -> Comparison:
        left, op, right = children
        return Comparison(right, REVERSED["!=" if op == "<>" else str(op)], left)

    def between(self, children: list[Any]) -> Between:
        return Between(*children)

    def one_of(self, children: list[Any]) -> OneOf:
        return OneOf(children[0], children[1])

    def none_of(self, children: list[Any]) -> OneOf:
        return OneOf(children[0], children[1], negated=True)

    def text_test(self, children: list[Any]) -> TextTest:
        operand, word, pattern = children
        return TextTest(operand, word.upper(), pattern)

    def is_a(self, children: list[Any]) -> IsA:
        variable, *op, cls = children
        return IsA(Variable(variable[1:]), str(op[0]) if op else "<=", cls)

    def exists(self, children: list[Attribute]) -> Exists:
        return Exists(children[0])

    def read(self, reading: Callable[[str], T], text: str, offset: int | None) -> T:
        """`reading(text)`, whose fault, if any, is at `offset`."""
        try:
            return reading(text)
        except Misread as fault:
            raise error_at(self.text, offset or 0, fault.what, fault.advice) from None

    def check_expression(self, expression: str, token: Token) -> None:
        """Refuses an expression that RE2, which never backtracks, does not take."""
        if reason := expression_fault(expression):
            what = f"{shown(expression)} is not a regular expression"
            raise error_at(self.text, token.start_pos or 0, what, f"RE2 says: {reason}")


def _name(token: Token) -> str:
    return token[1:-1].replace("``", "`") if token[0] == "`" else str(token)


def _flat(parts: list[Condition], kind: type[And] | type[Or]) -> list[Condition]:
    flat: list[Condition] = []
    for part in parts:
        if isinstance(part, kind):
            flat.extend(part.parts)
        else:
            flat.append(part)
    return flat
