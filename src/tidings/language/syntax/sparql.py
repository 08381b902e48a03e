"""Parses the SPARQL subset (basic graph patterns and FILTER) to the same query tree.

A filter is combined with the pattern by AND. `!` is pushed down to the comparisons, as SPARQL's errors require:
`!(?x = 5)` holds for values that are not 5 and, like `?x != 5`, not for a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from threading import Lock
from typing import Any, TypeVar

from lark import Lark, Token, UnexpectedInput

from tidings.errors import SubscriptionError
from tidings.formats.namespaces import RDF
from tidings.language.faults import Misread, describe_terminals, error_at, quoted, syntax_error, unbound_error
from tidings.language.query import (
    And,
    Comparison,
    Condition,
    Constant,
    Node,
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
from tidings.language.syntax.grammar import check_depth, flat
from tidings.language.syntax.lexicon import Lexicon, expression_fault
from tidings.language.syntax.operands import MAX_NESTING, too_deep
from tidings.language.syntax.predicates import REVERSED
from tidings.language.syntax.tokens import (
    ABSOLUTE,
    BOOLEAN,
    CALLED,
    DATE,
    IRI,
    NUMBER,
    PARAMETER,
    PNAME,
    SPARQL_WORDS,
    STRING,
    VARIABLE,
)
from tidings.model.terms import Iri, Literal

NEGATED = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
T = TypeVar("T")
_CALLED = re.compile(CALLED)
_PARENTHESES = re.compile(r"""'(?:[^'\\]++|\\.|'')*+'|"(?:[^"\\]++|\\.|"")*+"|[()]""", re.DOTALL)
# Name -> (priority, spelling): the lexer takes the first that fits, so the more specific ones come first.
_TERMINALS = {
    "ABSOLUTE": (8, ABSOLUTE),
    "PNAME": (7, PNAME),
    "DATE": (6, DATE),
    "NUMBER": (5, NUMBER),
    "IRI": (5, IRI),
    "STRING": (5, STRING),
    "VARIABLE": (5, VARIABLE),
    "PARAMETER": (5, PARAMETER),
    "BOOLEAN": (4, f"(?i:{BOOLEAN})"),
}
_LOCK = Lock()


def read_sparql(text: str, lexicon: Lexicon) -> Query:
    """The query of a SPARQL text."""
    _check_parentheses(text)
    lark, builder = _parser()
    # The parser's callbacks belong to one builder: one text at a time.
    with _LOCK:
        builder.text, builder.lexicon = text, lexicon
        try:
            query: Query = lark.parse(text)  # type: ignore[assignment]
        except UnexpectedInput as error:
            raise _syntax_error(text, error) from None
    check_depth(query.where, text)
    _check_variables(query, text, lark)
    return query


@cache
def _parser() -> tuple[Lark, SparqlBuilder]:
    builder = SparqlBuilder()
    rules = files(__package__).joinpath("sparql.lark").read_text("utf-8")
    terminals = [f"{name}.{priority}: /{regex}/" for name, (priority, regex) in _TERMINALS.items()]
    # A leading underscore keeps a word out of the tree.
    words = [
        rf"_{word}.4: /{word}(?![\w.])/i"
        for word in (*sorted(SPARQL_WORDS), "SELECT", "WHERE", "IN", "NOT", "CONTAINS")
    ]
    lark = Lark(
        "\n".join([rules, *terminals, *words]),
        parser="lalr",
        lexer="contextual",
        transformer=builder,
        maybe_placeholders=False,
    )
    return lark, builder


def _check_parentheses(text: str) -> None:
    if text.count("(") <= MAX_NESTING:
        return
    depth = 0
    for found in _PARENTHESES.finditer(text):
        if found[0] == "(":
            depth += 1
            if depth > MAX_NESTING:
                raise too_deep(text, found.start())
        elif found[0] == ")":
            depth -= 1


def _check_variables(query: Query, text: str, lark: Lark) -> None:
    """Refuses variables that no triple binds."""
    triples = And(tuple(leaf for leaf in leaves(query.where) if isinstance(leaf, TriplePattern)))
    bound = set(variables(triples))
    for variable in (*(query.select or ()), *variables(query.where)) if triples.parts else ():
        if variable not in bound:
            written = f"?{variable.name}"
            tokens = lark.parse_interactive(text).exhaust_lexer()  # read again to find the position
            token = next(token for token in tokens if token.type == "VARIABLE" and token == written)
            raise unbound_error(written, [f"?{name.name}" for name in bound], text, token.start_pos or 0)


def _syntax_error(text: str, error: UnexpectedInput) -> SubscriptionError:
    token = getattr(error, "token", None)
    at_end = token is not None and token.type == "$END"
    offset = len(text.rstrip()) if at_end else error.pos_in_stream or 0
    accepted = error.interactive_parser.accepts()
    if "_FILTER" in accepted and _CALLED.match(text, offset):
        advice = "write triples as (?x, dc:title, ?t) and join all with AND; calls can stand there"
        return error_at(text, offset, "a call cannot stand in SPARQL", advice)
    return syntax_error(text, offset, describe_terminals(accepted))


class SparqlBuilder:
    """Callbacks of sparql.lark, named after its rules and aliases, which get what those hold.

    `lexicon` and `text` are those of the text being read.
    """

    lexicon: Lexicon
    text: str

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

    def select(self, children: list[Token]) -> tuple[Variable, ...]:
        """The selected variables; none stands for `*`."""
        return tuple(dict.fromkeys(Variable(token[1:]) for token in children))

    def conjunction(self, children: list[Condition]) -> Condition:
        return And(flat(children, And))

    def disjunction(self, children: list[Condition]) -> Condition:
        return Or(flat(children, Or))

    def variable(self, children: list[Token]) -> Variable:
        return Variable(children[0][1:])

    def constant(self, children: list[Token]) -> Node:
        return self.read(self.lexicon.term, children[0], children[0].start_pos)

    def options(self, children: list[Constant]) -> tuple[Constant, ...]:
        return tuple(children)

    def comparison(self, children: list[Any]) -> Comparison:
        left, op, right = children
        return Comparison(left, str(op), right)

    def reversed_comparison(self, children: list[Any]) -> Comparison:
        left, op, right = children
        return Comparison(right, REVERSED[op], left)

    def one_of(self, children: list[Any]) -> OneOf:
        return OneOf(children[0], children[1])

    def none_of(self, children: list[Any]) -> OneOf:
        return OneOf(children[0], children[1], negated=True)

    def regex(self, children: list[Any]) -> TextTest:
        operand, token, *flags = children
        expression = self.plain(token)
        if flags and (letters := self.plain(flags[0])):
            if set(letters) - set("ims"):
                advice = "the flags are i, m and s"
                raise error_at(self.text, flags[0].start_pos, f"unknown flags {letters!r}", advice)
            expression = f"(?{letters}){expression}"
        if reason := expression_fault(expression):
            what = f"{quoted(expression)} is not a regular expression"
            raise error_at(self.text, token.start_pos, what, f"RE2 says: {reason}")
        return TextTest(operand, "MATCHES", Literal(expression))

    def contains(self, children: list[Any]) -> TextTest:
        return TextTest(children[0], "CONTAINS", Literal(self.plain(children[1])))

    def starts(self, children: list[Any]) -> TextTest:
        return TextTest(children[0], "LIKE", Literal(_like(self.plain(children[1])) + "%"))

    def ends(self, children: list[Any]) -> TextTest:
        return TextTest(children[0], "LIKE", Literal("%" + _like(self.plain(children[1]))))

    def plain(self, token: Token) -> str:
        """The text of a string token; its language or datatype does not matter to a text test."""
        return self.read(self.lexicon.string, token, token.start_pos).text

    def read(self, reading: Callable[[str], T], text: str, offset: int | None) -> T:
        """`reading(text)`, whose fault, if any, is at `offset`."""
        try:
            return reading(text)
        except Misread as fault:
            raise error_at(self.text, offset or 0, fault.what, fault.advice) from None


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
