"""Builds the error messages for texts that cannot be parsed: the position, what was found, what would be right.

The lexicon and the builders raise a `Misread` without a position; the parser adds it. Syntax errors use the words of
LANGUAGE.md, never the names of tokens.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from tidings.errors import SubscriptionError, did_you_mean
from tidings.language.syntax.tokens import QUOTED_NAME, STRING, TRIPLE

# What a phrase speaks for: the words that might have been meant where it is expected.
_PHRASES: dict[str, tuple[str, str]] = {
    "CONDITION": (
        "a condition such as (?x, dc:title, ?t) or topic = 'finance'",
        "NOT EXISTS MISSING ANY",
    ),
    "COMPARISON": (
        "a comparison (= != < <= > >= BETWEEN, IN, LIKE, CONTAINS, SEARCH or MATCHES)",
        "NOT BETWEEN IN LIKE ILIKE CONTAINS STARTS ENDS MATCHES SEARCH IS",
    ),
    "VALUE": ("a value (5, 'text', 2004-01-31, <iri>)", ""),
    "SUM": ("a number, a name such as topic, a ?variable or '('", ""),
    "CLASS": ("a class such as Sport or ex:Sport", ""),
    "ADDRESS": ("an IRI (<iri> or prefix:name)", ""),
    "NAME": ("a name such as topic", ""),
    "VARIABLE": ("a ?variable", ""),
    "PARAMETER": ("a $parameter", ""),
    "IRI": ("an <iri>", ""),
    "PNAME": ("a prefix:name", ""),
    "STRING": ("a 'quoted text'", ""),
    "LANGUAGE": ("a language in quotes such as 'german'", ""),
    "NUMBER": ("a number", ""),
    "COMPARE": ("one of = != < <= > >=", ""),
    "ISA_COMPARE": ("one of <= >= =", ""),
    "A": ("a", ""),
    "BANGS": ("!", ""),
    "BARS": ("||", ""),
    "AMPERSANDS": ("&&", ""),
    "COMMA": ("','", ""),
    "SEMICOLON": ("';'", ""),
    "DOT": ("'.'", ""),
    "LPAR": ("'('", ""),
    "RPAR": ("')'", ""),
    "LBRACE": ("'{'", ""),
    "RBRACE": ("'}'", ""),
    "STAR": ("*", ""),
    "TABLE": ("the name of a table", ""),
    "COLUMN": ("a column such as symbol", ""),
    "USING": ("USING (column, ...)", "USING"),
    "ON": ("ON a.x = b.y", "ON"),
    "EQUALITY": ("equal columns such as a.x = b.y", ""),
    "TABLES": ("", "JOIN INNER"),
    "MORE": ("", "SUCHTHAT IGNORE STEMMED VIA"),  # right too, but not the first thing to think of
    "PLACE": ("", "VIA"),
    "$END": ("the end of the text", ""),
}
# Tokens of the SPARQL grammar that one phrase says at once, if all of the first set are acceptable.
_VALUES = {"STRING", "NUMBER", "DATE", "BOOLEAN"}
_ADDRESSES = {"IRI", "ABSOLUTE", "PNAME", "PARAMETER"}
_GROUPS: tuple[tuple[set[str], set[str], str], ...] = (
    (_VALUES, _VALUES | _ADDRESSES, "VALUE"),
    ({"IRI", "PNAME"}, _ADDRESSES, "ADDRESS"),
)
_WORD = re.compile(rf"{STRING}|[?$]?\w+|\S?")
_QUOTED_NAME = re.compile(QUOTED_NAME)
_TRIPLE = re.compile(TRIPLE)
BEYOND_SUBSET = set(
    "OPTIONAL UNION GRAPH BIND VALUES MINUS SERVICE GROUP ORDER LIMIT OFFSET HAVING ASK CONSTRUCT DESCRIBE BASE".split()
)


class Misread(Exception):
    """Something wrong inside a token: `what` was given, and `advice` on what would be right."""

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column, both from 1, of a position in the text."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def error_at(text: str, offset: int, what: str, advice: str) -> SubscriptionError:
    line, column = line_and_column(text, offset)
    error = SubscriptionError(f"{what} at {line}:{column}; {advice}")
    error.line, error.column = line, column
    return error


def unbound_error(
    variable: str, bound: Iterable[str], text: str, offset: int, calls: bool = False
) -> SubscriptionError:
    """The error for a variable that no triple binds, and no call of a text with `calls`."""
    known = sorted(bound)
    where, all_of = ("triple or call", "triples and calls") if calls else ("triple", "triples")
    otherwise = f"the {all_of} have {', '.join(known) or 'no variables'}"
    advice = did_you_mean(variable, known, otherwise)
    return error_at(text, offset, f"variable {variable} is in no {where}", advice)


def quoted(text: str) -> str:
    """A piece of the text as a message quotes it: on one line, shortened."""
    text = " ".join(text[:200].split())
    return repr(text if len(text) <= 40 else text[:37] + "...")


def syntax_error(text: str, offset: int, acceptable: Collection[str]) -> SubscriptionError:
    """The error for the token at `offset`, where only the `acceptable` words and phrases could have stood."""
    word = _WORD.match(text, offset)[0]  # type: ignore[index]
    if not text.strip():
        return error_at(text, 0, "the text is empty", "write a subscription such as WHERE topic = 'finance'")
    if not word:
        return error_at(text, offset, "the text ends", _expected(acceptable))
    if word in "'\"" or (word == "`" and not _QUOTED_NAME.match(text, offset)):
        return error_at(text, offset, f"the quote {word} is never closed", f"close it with another {word}")
    if word.upper() in BEYOND_SUBSET and "CONDITION" not in acceptable:
        advice = "the SPARQL subset has SELECT, WHERE, triples and FILTER only"
        return error_at(text, offset, f"{word.upper()} is not understood", advice)
    if word.upper() == "ISA" and "COMPARISON" in acceptable:
        return error_at(text, offset, "ISA stands after something else than a variable", "write ?x ISA Sport")
    if word.upper() == "STEMMED":
        advice = "write title SEARCH 'running shoes' STEMMED 'english'"
        return error_at(text, offset, "STEMMED stands after something else than a search", advice)
    if offset and text.startswith("==", offset - 1):
        return error_at(text, offset - 1, "found '=='", "write =")
    if (opening := _broken_triple(text, offset)) is not None:
        inside = re.compile(r"\([^()]*\)?").match(text, opening)[0]  # type: ignore[index]
        advice = "a triple is (subject, property, object); put quotes around texts and <> around IRIs with ? = ! ( ) ,"
        return error_at(text, opening, f"{quoted(inside)} is not a triple", advice)
    meant = [option for name in acceptable for option in _PHRASES.get(name, ("", name))[1].split()]
    return error_at(
        text, offset, f"found {quoted(word)}", did_you_mean(word.upper(), meant, _expected(acceptable))
    )


def describe_terminals(terminals: Iterable[str]) -> list[str]:
    """Terminals of the SPARQL grammar as words and phrases."""
    left, phrases = {name.lstrip("_") for name in terminals}, []
    for needed, spoken_for, phrase in _GROUPS:
        if needed <= left:
            left -= spoken_for
            phrases.append(phrase)
    return phrases + sorted(left, key=lambda name: _PHRASES.get(name, (name,))[0])


def _expected(acceptable: Iterable[str]) -> str:
    words = [phrase for name in acceptable if (phrase := _PHRASES.get(name, (name,))[0])]
    return "expected " + (words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1])


def _broken_triple(text: str, offset: int) -> int | None:
    """The offset of the innermost open parenthesis around `offset`, if its commas show that a triple was meant."""
    opening = text.rfind("(", 0, offset + 1)
    if (
        opening < 0
        or ")" in text[opening:offset]
        or re.search(r"(?i)\b(?:IN|USING)\s*$", text[max(0, opening - 20) : opening])
    ):
        return None
    if re.search(r"\w$", text[:opening][-1:]):
        return None
    inside = re.compile(r"\(([^()]*)\)?").match(text, opening)
    if _TRIPLE.match(text, opening):
        return None
    return opening if inside is not None and "," in inside[1] else None
