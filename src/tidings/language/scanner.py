"""A text of our own language -> its tokens and their kinds, all at once.

Places are not kept: only an error needs one, and finds it by scanning again. What follows the first thing that is
no token is one token more (REST), so that scanning is linear in any text.

Where the context decides, words are joined to what they decide about: `IN (` opens a list, never a triple, and
`?x ISA Sport-Team` ends with a class. An IRI never stands right behind an operand, where `<` compares.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidings.language.remembered import Remembered
from tidings.language.tokens import (
    ABSOLUTE,
    CLASS,
    COMPARE,
    DATE,
    IRI,
    NAME,
    PARAMETER,
    PNAME,
    QUOTED_NAME,
    STRING,
    TRIPLE,
    UNSIGNED,
    VARIABLE,
    WORDS,
)

END = "$END"
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
# The first that fits is taken. Most words are names that nothing of an IRI follows, so these come first. What looks
# behind keeps `a-a-a-…` from being tried as the start of `a-a-a-…:x` at each of its letters.
_SPELLED = (
    ("IN_LIST", r"(?i:IN)\s*+\("),
    ("NAME", rf"{NAME}(?![:+.-])"),
    ("TRIPLE", TRIPLE),
    ("DATE", DATE),
    ("NUMBER", UNSIGNED),
    ("SYMBOL", r"[(){},*+/-]"),
    ("STRING", STRING),
    ("IRI", rf"(?!<>){IRI}"),
    ("COMPARE", COMPARE),
    (
        "IS_A",
        rf"{VARIABLE}\s++(?i:ISA)\b\s*+(?:[<>]?=\s*+)?+(?:{IRI}|{ABSOLUTE}|{PNAME}|{PARAMETER}|{CLASS})",
    ),
    ("VARIABLE", VARIABLE),
    ("ABSOLUTE", rf"(?<![\w+.-]){ABSOLUTE}"),
    ("PNAME", rf"(?<![\w.-]){PNAME}"),
    ("NAME_BEFORE", NAME),
    ("QUOTED_NAME", QUOTED_NAME),
    ("PARAMETER", PARAMETER),
    ("REST", r"\S[\s\S]*+"),
)
_TOKENS = re.compile("|".join(spelling for _, spelling in _SPELLED))
_BEHIND_OPERAND = re.compile("|".join(spelling for name, spelling in _SPELLED if name != "IRI"))
_KIND = re.compile("|".join(f"(?P<{name}>{spelling})" for name, spelling in _SPELLED))
_OPERANDS = frozenset(
    "NAME QUOTED_NAME VARIABLE NUMBER STRING DATE BOOLEAN PARAMETER PNAME ABSOLUTE IRI RPAR".split()
) | (WORDS - set("WHERE AND OR SUCHTHAT NOT BETWEEN".split()))


def _kind(token: str) -> str:
    kind = _KIND.fullmatch(token).lastgroup  # type: ignore[union-attr]
    if kind == "NAME":
        word = token.upper()
        return word if word in WORDS else "BOOLEAN" if word in ("TRUE", "FALSE") else kind
    return _SYMBOLS[token] if kind == "SYMBOL" else kind  # type: ignore[return-value]


_KINDS = Remembered(_kind, _REMEMBERED)


def scan(text: str) -> tuple[list[str], list[str]]:
    """The tokens of a text and their kinds; a word of the language is of its own kind. Three ends stand behind."""
    tokens = _TOKENS.findall(text)
    kinds = list(map(_KINDS.__getitem__, tokens))
    if "IRI" in kinds:
        tokens = [found[0] for found in _matches(text)]
        kinds = list(map(_KINDS.__getitem__, tokens))
    tokens += ("", "", "")
    kinds += (END, END, END)
    return tokens, kinds


def places(text: str) -> list[int]:
    """Where the tokens of a text begin; its end stands where the text does."""
    end = len(text.rstrip())
    return [found.start() for found in _matches(text)] + [end, end, end]


def _matches(text: str) -> Iterator[re.Match[str]]:
    position, tokens = 0, _TOKENS
    while found := tokens.search(text, position):
        yield found
        position = found.end()
        tokens = _BEHIND_OPERAND if _KINDS[found[0]] in _OPERANDS else _TOKENS
