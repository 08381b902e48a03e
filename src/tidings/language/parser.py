"""Parses a text to a query: in Tidings' own language, or in the SPARQL subset.

A text is SPARQL if it starts with PREFIX, or if a brace follows its SELECT or WHERE and no condition of our own follows
that brace. Nesting is bounded, so every text gives a query or a `SubscriptionError`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidings.errors import SubscriptionError
from tidings.language.faults import error_at, unbound_error
from tidings.language.query import Query
from tidings.language.syntax.grammar import QueryParser, check_depth
from tidings.language.syntax.lexicon import Lexicon
from tidings.language.syntax.operands import MAX_NESTING
from tidings.language.syntax.tokens import CALLED, NAME, QUOTED_NAME, VARIABLE

MAX_LENGTH = 1_000_000
# Of our own language is what opens with a parenthesis, a sign, NOT and the like, a name or variable before a
# comparison, or a call.
_OWN = (
    rf"\s*+(?:[(+-]|(?:NOT|EXISTS|MISSING|ANY)\b|(?:{VARIABLE}|{NAME}|{QUOTED_NAME})\s*+"
    r"(?:[=!>+*/-]|<(?![A-Za-z][^\s<>]*>)"
    r"|(?:BETWEEN|NOT|IN|LIKE|ILIKE|CONTAINS|STARTS|ENDS|MATCHES|SEARCH|IS|ISA)(?![\w:]))"
    rf"|(?!FILTER\(){CALLED})"
)
_SPARQL = re.compile(
    rf"(?:\s|#[^\n]*+\n)*+(?:(?:PREFIX|BASE)\b|(?:SELECT\b[\s*?\w,]*?)?\bWHERE\s*+\{{(?!{_OWN})"
    rf"|SELECT\b[\s*?\w]*+\{{(?!{_OWN}))",
    re.IGNORECASE,
)
_KNOWN = Lexicon()


def parse(text: str, prefixes: Mapping[str, str] | None = None) -> Query:
    """The query of a text; `prefixes` are added to the well-known ones."""
    return read(text, Lexicon(prefixes) if prefixes else _KNOWN)[0]


def read(text: str, lexicon: Lexicon, tokens: list[str] | None = None) -> tuple[Query, bool]:
    """The same, for a caller who reads many texts, keeps the lexicon and may have the tokens already.

    Also whether another text with the same tokens but other constants has the same tree but for these constants,
    in the order of the text.
    """
    if len(text) > MAX_LENGTH:
        advice = (
            f"at most {MAX_LENGTH:,} are read; $parameters and a table make many subscriptions of one text"
        )
        raise error_at(text, MAX_LENGTH, f"the text has {len(text):,} characters", advice)
    if not text.isascii():
        _check_characters(text)
    if "{" in text and _SPARQL.match(text):
        from tidings.language.syntax.sparql import read_sparql

        return read_sparql(text, lexicon), True
    reading = QueryParser(text, lexicon, tokens)
    query = reading.query()
    if 2 * reading.deepest + 3 > MAX_NESTING:  # a parenthesis may hold an OR of ANDs
        check_depth(query.where, text)
    if reading.has_triples or reading.has_calls:
        for at in reading.used:
            if (written := reading.tokens[at].split()[0]) not in reading.bound:
                raise _unbound(reading, written, at)
        for at in reading.used_under_not:
            written = reading.tokens[at].split()[0]
            if written not in reading.bound and written not in reading.bound_under_not:
                raise _unbound(reading, written, at)
    return query, reading.regular


def _unbound(reading: QueryParser, written: str, at: int) -> SubscriptionError:
    offset = reading.offset(at)
    if written in reading.bound_under_not:
        advice = "outside of it the variable has no value; put all that is about it under the NOT"
        return error_at(reading.text, offset, f"{written} is bound under NOT only", advice)
    return unbound_error(written, reading.bound, reading.text, offset, reading.has_calls)


def _check_characters(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        advice = "give the text in Unicode, without halves of surrogate pairs"
        raise error_at(text, error.start, "found half a surrogate pair", advice) from None
