"""Scans a text of our own language into tokens and their kinds, all at once.

Offsets are not kept: only an error needs one, and finds it by scanning again. Everything after the first invalid
character is one more token (REST), so that scanning is linear in any text.

Where the context decides, words are part of the token that they decide about: `IN (` and `USING (` open a list, never a
triple, and `?x ISA Sport-Team` ends with a class. An IRI never follows an operand directly; there `<` compares.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from tidings.language.syntax.bounded_cache import BoundedCache
from tidings.language.syntax.tokens import (
    ABSOLUTE,
    CALL,
    CLASS,
    COMPARE,
    DATE,
    IRI,
    NAME,
    NUMBER,
    PARAMETER,
    PNAME,
    QUANTITY,
    QUOTED_NAME,
    STRING,
    TRIPLE,
    UNSIGNED,
    VARIABLE,
    WORDS,
)

END = "$END"
# The kinds that hold conditions together, whatever their spelling.
JOINTS = frozenset({"WHERE", "AND", "OR", "NOT", "IN_LIST", "USING_LIST"})
_REMEMBERED = 200_000
_SYMBOLS = {
    "(": "LPAR",
    ")": "RPAR",
    "{": "LBRACE",
    "}": "RBRACE",
    ",": "COMMA",
    "*": "STAR",
    "+": "PLUS",
    "-": "MINUS",
    "/": "SLASH",
}
# The first that fits is taken; the nameless ones spell what comes most often in a way that is quick to tell. What
# looks behind keeps `a-a-a-…` from being tried as the start of `a-a-a-…:x` at each of its letters.
_SPELLED = (
    ("IN_LIST", r"[iI][nN]\s*+\("),
    ("USING_LIST", r"[uU][sS][iI][nN][gG]\s*+\("),
    ("", rf"{NAME}(?![:+.(-])|[,)=]|\d++(?![\w.:%-])"),
    # where a sign is no operator
    ("", rf"[+-](?:(?<=[(,=<>].)|(?<=[(,=<>]\s.))(?:{UNSIGNED}|{QUANTITY})"),
    ("TRIPLE", TRIPLE),
    ("DATE", DATE),
    ("NUMBER", UNSIGNED),
    ("SYMBOL", r"[(){},*+/-]"),
    ("STRING", STRING),
    ("IRI", rf"(?!<>){IRI}"),
    ("COMPARE", COMPARE),
    ("QUANTITY", QUANTITY),
    (
        "IS_A",
        rf"{VARIABLE}\s++(?i:ISA)\b\s*+(?:[<>]?=\s*+)?+(?:{IRI}|{ABSOLUTE}|{PNAME}|{PARAMETER}|{CLASS})",
    ),
    ("VARIABLE", VARIABLE),
    ("CALL", CALL),
    ("", rf"{NAME}(?=\()"),
    ("ABSOLUTE", rf"(?<![\w+.-]){ABSOLUTE}"),
    ("PNAME", rf"(?<![\w.-]){PNAME}"),
    ("NAME", NAME),
    ("QUOTED_NAME", QUOTED_NAME),
    ("PARAMETER", PARAMETER),
    ("REST", r"\S[\s\S]*+"),
)


def _any_of(*left_out: str) -> re.Pattern[str]:
    spellings = "|".join(spelling for name, spelling in _SPELLED if name not in left_out)
    return re.compile(rf"\s*+({spellings})")


_TOKENS = _any_of()
_BEHIND_OPERAND = _any_of("IRI")
_ALONE = {name: spelling for name, spelling in _SPELLED if name} | {
    "NUMBER": NUMBER,
    "QUANTITY": rf"[+-]?{QUANTITY}",
}
_KIND = re.compile("|".join(f"(?P<{name}>{spelling})" for name, spelling in _ALONE.items()))
_OPERANDS = frozenset(
    "NAME QUOTED_NAME VARIABLE NUMBER QUANTITY STRING DATE BOOLEAN PARAMETER PNAME ABSOLUTE IRI RPAR".split()
) | (WORDS - set("WHERE AND OR SUCHTHAT NOT BETWEEN".split()))


def _kind(token: str) -> str:
    kind = _KIND.fullmatch(token).lastgroup  # type: ignore[union-attr]
    if kind == "NAME":
        word = token.upper()
        return word if word in WORDS else "BOOLEAN" if word in ("TRUE", "FALSE") else kind
    return _SYMBOLS[token] if kind == "SYMBOL" else kind  # type: ignore[return-value]


_KINDS = BoundedCache(_kind, _REMEMBERED)
kind_of = _KINDS.__getitem__


def tokens_of(text: str) -> list[str]:
    """The tokens of a text that has no IRI outside of triples."""
    return _TOKENS.findall(text.rstrip())


def scan(text: str, tokens: list[str] | None = None) -> tuple[list[str], list[str]]:
    """The tokens of a text and their kinds; a word of the language is of its own kind. Three ends stand behind.

    `tokens` are those of the text, if `tokens_of` has found them before.
    """
    tokens = tokens_of(text) if tokens is None else tokens
    kinds = list(map(kind_of, tokens))
    if "IRI" in kinds:
        tokens = [found[1] for found in _matches(text)]
        kinds = list(map(kind_of, tokens))
    return [*tokens, "", "", ""], [*kinds, END, END, END]


def token_offset(text: str, at: int) -> int:
    """The offset of a token in the text; that of the token after the last one is the end of the text."""
    found = next(islice(_matches(text), at, None), None)
    return len(text.rstrip()) if found is None else found.start(1)


def tokens_with_offsets(text: str) -> Iterator[tuple[str, int]]:
    """The tokens of a text, each with its offset."""
    return ((found[1], found.start(1)) for found in _matches(text))


def _matches(text: str) -> Iterator[re.Match[str]]:
    text = text.rstrip()
    position, tokens = 0, _TOKENS
    while found := tokens.match(text, position):
        yield found
        position = found.end()
        tokens = _BEHIND_OPERAND if kind_of(found[1]) in _OPERANDS else _TOKENS
