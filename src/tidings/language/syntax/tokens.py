"""Defines the spelling of tokens as regular expressions, for the scanner of our own language, the SPARQL grammar and
the splitter of shapes, which must agree on them.

A triple is one token and so is a call, so that their bare terms may contain blanks, `#` or `/`. Every repetition that
could backtrack in vain is possessive: no text makes a token slow to reject.
"""

from __future__ import annotations

VARIABLE = r"\?\w++"
PARAMETER = r"\$\w++"
IRI = r'<[^\x00-\x20<>"{}|\\^`]*+>'
PNAME = r"(?:[^\W\d][\w.-]*+)?:(?:[\w:%-](?:[\w:%.-]*[\w:%-])?)?"
ABSOLUTE = r"""[A-Za-z][A-Za-z0-9+.-]*+:\/\/[^\s(),;?'"<>=!{}|\\^`]++"""
NAME = r"[^\W\d]\w*+(?:\.\w++)*+"
QUOTED_NAME = r"`(?:[^`]|``)++`"
CLASS = r"[^\W\d]\w*+(?:[.#-]\w++)*+"
DATE = r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d++)?)?(?:Z|[+-]\d\d:\d\d)?)?(?![\w:.-])"
# The sign of a number is a token of its own where it might be an operator.
UNSIGNED = r"(?:\d++(?:\.\d++)?+|\.\d++)(?:[eE][+-]?\d++)?(?![\w%])"
NUMBER = rf"[+-]?{UNSIGNED}"
# A number with a unit behind it, known or not; `1e3` has none.
QUANTITY = rf"(?!{UNSIGNED})(?:\d++(?:\.\d++)?+|\.\d++)(?:[^\W\d]\w*+|%)"
_SUFFIX = rf"(?:@[A-Za-z]++(?:-[A-Za-z0-9]++)*+|\^\^(?:{IRI}|{PNAME}))?"
STRING = rf"""(?:'(?:[^'\\]++|\\[\s\S]|'')*+'|"(?:[^"\\]++|\\[\s\S]|"")*+"){_SUFFIX}"""
BOOLEAN = r"(?:true|false)(?![\w.:])"
COMPARE = r"!=|<>|<=|>=|=|<|>"

_BARE = r"""[^\s(),?'"<>=!][^(),?'"<>=!]*+"""
TERM = rf"\s*+(?:{_BARE}|{VARIABLE}\s*+|{IRI}\s*+|{STRING}\s*+)"
TRIPLE = rf"\({TERM},{TERM},{TERM}\)"

WORDS = frozenset(
    (
        "SELECT FROM WHERE VIA AT AND OR SUCHTHAT NOT BETWEEN IN CIDR LIKE ILIKE CONTAINS STARTS ENDS WITH MATCHES "
        "SEARCH STEMMED IGNORE CASE IS NULL EXISTS MISSING ANY SATISFIES ISA INNER JOIN USING ON"
    ).split()
)
SPARQL_WORDS = frozenset("DISTINCT PREFIX FILTER REGEX STRSTARTS STRENDS STR".split())
# `NOT(` and `true(` call nothing; a backquoted name may be any word. Where a call can stand, these are no words.
_UNCALLED = WORDS - {"INNER", "JOIN", "ON", "SEARCH", "STEMMED"}
CALLED = rf"(?:(?!(?i:{'|'.join(sorted(_UNCALLED))}|TRUE|FALSE)\(){NAME}|{QUOTED_NAME})\("
CALL = rf"{CALLED}(?:{TERM}(?:,{TERM})*+|\s*+)\)"
