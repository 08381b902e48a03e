"""The SPARQL subset -> the same query tree: basic graph patterns and FILTER.

A filter joins the pattern by AND. `!` is pushed down to the comparisons, as SPARQL's errors demand:
`!(?x = 5)` holds for values that are not 5, and like `?x != 5` not for a text.
"""

from __future__ import annotations

from typing import Any

from lark import Token

from tidings.language.builder import Builder
from tidings.language.faults import error_at
from tidings.language.query import (
    And,
    Comparison,
    Condition,
    Node,
    Not,
    OneOf,
    Or,
    Query,
    TextTest,
    TriplePattern,
    Variable,
)
from tidings.terms import RDF, Iri, Literal

NEGATED = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class SparqlBuilder(Builder):
    """Callbacks of sparql.lark where they differ from those of Tidings' own grammar."""

    def start(self, children: list[Any]) -> Query:
        parts: list[Condition] = []
        select: tuple[Variable, ...] | None = None
        for child in children:
            if isinstance(child, tuple):
                select = child or None
            elif isinstance(child, list):
                parts.extend(child)
        if not parts:
            raise error_at(
                self.text, self.text.rfind("}"), "the pattern is empty", "write a triple such as ?x a ?type ."
            )
        return Query(self.conjunction(parts) if len(parts) > 1 else parts[0], select)

    def prefix(self, children: list[Token]) -> None:
        name, iri = children
        if not name.endswith(":") or name.count(":") > 1:
            raise error_at(
                self.text,
                name.start_pos or 0,
                f"{str(name)!r} is not a prefix",
                "write PREFIX ex: <http://...>",
            )
        value = self.read(self.lexicon.iri, iri[1:-1], iri.start_pos).value
        self.lexicon = self.lexicon.with_prefix(name[:-1], value)

    def block(self, children: list[list[Condition]]) -> list[Condition]:
        return [triple for triples in children for triple in triples]

    def subject(self, children: list[Any]) -> list[Condition]:
        subject, *properties = children
        return [TriplePattern(subject, verb, node) for verb, nodes in properties for node in nodes]

    def property(self, children: list[Node]) -> tuple[Node, list[Node]]:
        return children[0], children[1:]

    def rdf_type(self, children: list[Token]) -> Iri:
        return Iri(RDF + "type")

    def filter(self, children: list[Condition]) -> list[Condition]:
        return list(children)

    def negation(self, children: list[Any]) -> Condition:
        bangs, condition = children
        return _negated(condition) if bangs.count("!") % 2 else condition

    def regex(self, children: list[Any]) -> TextTest:
        operand, token, *flags = children
        expression = self.plain(token)
        if flags and (letters := self.plain(flags[0])):
            if set(letters) - set("ims"):
                advice = "the flags are i, m and s"
                raise error_at(self.text, flags[0].start_pos, f"unknown flags {letters!r}", advice)
            expression = f"(?{letters}){expression}"
        self.check_expression(expression, token)
        return TextTest(operand, "MATCHES", Literal(expression))

    def contains(self, children: list[Any]) -> TextTest:
        return TextTest(children[1], "CONTAINS", Literal(self.plain(children[2])))

    def starts(self, children: list[Any]) -> TextTest:
        return TextTest(children[0], "LIKE", Literal(_like(self.plain(children[1])) + "%"))

    def ends(self, children: list[Any]) -> TextTest:
        return TextTest(children[0], "LIKE", Literal("%" + _like(self.plain(children[1]))))

    def plain(self, token: Token) -> str:
        """The text of a string token; its language or datatype does not matter to a text test."""
        return self.read(self.lexicon.string, token, token.start_pos).text


def _like(text: str) -> str:
    """`text` as a LIKE pattern that means just this text."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _negated(condition: Condition) -> Condition:
    if isinstance(condition, And):
        return Or(tuple(_negated(part) for part in condition.parts))
    if isinstance(condition, Or):
        return And(tuple(_negated(part) for part in condition.parts))
    if isinstance(condition, Not):
        return condition.part
    if isinstance(condition, Comparison):
        return Comparison(condition.left, NEGATED[condition.op], condition.right)
    if isinstance(condition, OneOf):
        return OneOf(condition.operand, condition.options, not condition.negated)
    return Not(condition)
