"""Text -> query. One parser for Tidings' own language and one for the SPARQL subset, both made when first needed.

A text is SPARQL if it starts with PREFIX, or if a brace follows its SELECT or WHERE and no condition of our own
stands right behind that brace.
Parsing is iterative and nesting is bounded, so no text ends in anything but a query or a `SubscriptionError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import islice
from threading import Lock

from lark import Lark, Token, UnexpectedInput

from tidings.errors import SubscriptionError
from tidings.language.builder import TRIPLE_TERMS, Builder
from tidings.language.faults import did_you_mean, error_at, syntax_error
from tidings.language.lexicon import Lexicon
from tidings.language.query import And, Condition, Not, Or, Query, TriplePattern, Variable, variables
from tidings.language.sparql import SparqlBuilder
from tidings.language.tokens import DEFINITIONS, NAME, QUOTED_NAME, VARIABLE

MAX_LENGTH = 1_000_000
MAX_NESTING = 100
# Of our own language is what opens with a parenthesis, NOT, EXISTS, or a name or variable before a comparison.
_OWN = (
    rf"\s*+(?:\(|(?:NOT|EXISTS)\b|(?:{VARIABLE}|{NAME}|{QUOTED_NAME})\s*+"
    r"(?:[=!>]|<(?![A-Za-z][^\s<>]*>)|(?:BETWEEN|NOT|IN|LIKE|CONTAINS|MATCHES|ISA)\b))"
)
_SPARQL = re.compile(
    rf"(?:\s|#[^\n]*+\n)*+(?:(?:PREFIX|BASE)\b|(?:SELECT\b[\s*?\w,]*?)?\bWHERE\s*+\{{(?!{_OWN})"
    rf"|SELECT\b[\s*?\w]*+\{{(?!{_OWN}))",
    re.IGNORECASE,
)
_PARENTHESES = re.compile(r"""'(?:[^'\\]++|\\.|'')*+'|"(?:[^"\\]++|\\.|"")*+"|[()]""", re.DOTALL)
_LOCK = Lock()
_KNOWN = Lexicon()


def parse(text: str, prefixes: Mapping[str, str] | None = None) -> Query:
    """The query that `text` asks; `prefixes` are added to the well-known ones."""
    return read(text, Lexicon(prefixes) if prefixes else _KNOWN)


def read(text: str, lexicon: Lexicon) -> Query:
    """The same, for a caller who reads many texts and keeps the lexicon."""
    if len(text) > MAX_LENGTH:
        advice = (
            f"at most {MAX_LENGTH:,} are read; $parameters and a table make many subscriptions of one text"
        )
        raise error_at(text, MAX_LENGTH, f"the text has {len(text):,} characters", advice)
    _check_characters(text)
    _check_parentheses(text)
    lark, builder = _parser("sparql" if _SPARQL.match(text) else "grammar")
    # The parser's callbacks belong to one builder: one text at a time.
    with _LOCK:
        builder.text, builder.lexicon = text, lexicon
        try:
            query: Query = lark.parse(text)  # type: ignore[assignment]
        except UnexpectedInput as error:
            raise _syntax_error(text, error) from None
        _check_tree(query, text, lark)
        return query


@cache
def _parser(grammar: str) -> tuple[Lark, Builder]:
    builder = SparqlBuilder() if grammar == "sparql" else Builder()
    rules = files(__package__).joinpath(f"{grammar}.lark").read_text("utf-8")
    lark = Lark(
        rules + DEFINITIONS,
        parser="lalr",
        lexer="contextual",
        transformer=builder,
        maybe_placeholders=False,
    )
    return lark, builder


def _check_characters(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        advice = "give the text in Unicode, without halves of surrogate pairs"
        raise error_at(text, error.start, "found half a character", advice) from None


def _check_parentheses(text: str) -> None:
    if text.count("(") <= MAX_NESTING:
        return
    depth = 0
    for found in _PARENTHESES.finditer(text):
        if found[0] == "(":
            depth += 1
            if depth > MAX_NESTING:
                raise _too_deep(text, found.start())
        elif found[0] == ")":
            depth -= 1


def _too_deep(text: str, offset: int) -> SubscriptionError:
    what = f"conditions are nested more than {MAX_NESTING} deep"
    return error_at(text, offset, what, "leave out the parentheses that AND and OR do not need")


def _check_tree(query: Query, text: str, lark: Lark) -> None:
    """Bounds the depth, refuses triples under NOT and variables that no triple binds."""
    bound: set[Variable] = set()
    used: list[Variable] = list(query.select or ())
    triples = 0
    stack: list[tuple[Condition, int, bool]] = [(query.where, 0, False)]
    while stack:
        node, depth, negated = stack.pop()
        if isinstance(node, TriplePattern):
            if negated:
                offset = next(islice(_triple_places(lark, text), triples, None))
                what = "a triple cannot stand under NOT"
                raise error_at(
                    text, offset, what, "negate a condition on a variable instead, as in NOT ?x = 5"
                )
            triples += 1
            for term in (node.subject, node.property, node.object):
                if isinstance(term, Variable):
                    bound.add(term)
        elif isinstance(node, And | Or | Not):
            if depth >= MAX_NESTING:
                raise _too_deep(text, 0)
            inner = (node.part,) if isinstance(node, Not) else node.parts
            under_not = negated or isinstance(node, Not)
            stack.extend((part, depth + 1, under_not) for part in reversed(inner))
        else:
            used.extend(variables(node))
    if triples:
        for variable in used:
            if variable not in bound:
                raise _unbound(variable, bound, text, lark)


def _unbound(variable: Variable, bound: set[Variable], text: str, lark: Lark) -> SubscriptionError:
    written = f"?{variable.name}"
    token = next(token for token in _tokens(lark, text) if token.type == "VARIABLE" and token == written)
    known = sorted(f"?{name.name}" for name in bound)
    otherwise = f"the triples have {', '.join(known)}" if known else "the triples have no variables"
    return error_at(
        text,
        token.start_pos or 0,
        f"variable {written} is in no triple",
        did_you_mean(written, known, otherwise),
    )


def _triple_places(lark: Lark, text: str) -> Iterator[int]:
    for token in _tokens(lark, text):
        if token.type in ("TRIPLE", "CONJUNCTS", "TRIPLES"):
            yield from ((token.start_pos or 0) + found.start() for found in TRIPLE_TERMS.finditer(token))


def _tokens(lark: Lark, text: str) -> Iterator[Token]:
    """The tokens of a text that parses, read again to find a place."""
    return iter(lark.parse_interactive(text).exhaust_lexer())


def _syntax_error(text: str, error: UnexpectedInput) -> SubscriptionError:
    token = getattr(error, "token", None)
    at_end = token is not None and token.type == "$END"
    offset = len(text.rstrip()) if at_end else error.pos_in_stream
    return syntax_error(text, offset or 0, error.interactive_parser.accepts())
