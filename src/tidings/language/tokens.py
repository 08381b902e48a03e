"""How the tokens are spelled, for both grammars and for the splitter of shapes, which must agree on them.

A triple is one token, so that its bare terms may hold blanks, `#` or `/` without disturbing the rest of the
language. Every repetition that could be tried again in vain is possessive: no text makes a token slow to reject.
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
NUMBER = r"[+-]?(?:\d++(?:\.\d++)?|\.\d++)(?:[eE][+-]?\d++)?(?!\w)"
_SUFFIX = rf"(?:@[A-Za-z]++(?:-[A-Za-z0-9]++)*+|\^\^(?:{IRI}|{PNAME}))?"
STRING = rf"""(?:'(?:[^'\\]++|\\[\s\S]|'')*+'|"(?:[^"\\]++|\\[\s\S]|"")*+"){_SUFFIX}"""
BOOLEAN = r"(?:true|false)(?![\w.:])"

_BARE = r"""[^\s(),?'"<>=!][^(),?'"<>=!]*+"""
TERM = rf"\s*+(?:{_BARE}|{VARIABLE}\s*+|{IRI}\s*+|{STRING}\s*+)"
TRIPLE = rf"\({TERM},{TERM},{TERM}\)"
# Runs of triples are one token too, so that most of a pattern is read in one step: joined by AND anywhere but right
# after NOT, joined by commas where nothing but a comma or the end follows (an OR would take the last triple away).
CONJUNCTS = rf"{TRIPLE}(?:\s*+(?i:AND|SUCHTHAT)\s*+{TRIPLE})*"
TRIPLES = rf"{TRIPLE}(?:\s*+(?:,|(?i:AND|SUCHTHAT))\s*+{TRIPLE})*(?=\s*+(?:[,}}]|\Z))"

# Name -> (priority, spelling): the lexer takes the first that fits, so the more specific ones come first.
TERMINALS: dict[str, tuple[int, str]] = {
    "TRIPLES": (11, TRIPLES),
    "CONJUNCTS": (10, CONJUNCTS),
    "TRIPLE": (9, TRIPLE),
    "ABSOLUTE": (8, ABSOLUTE),
    "PNAME": (7, PNAME),
    "DATE": (6, DATE),
    "NUMBER": (5, NUMBER),
    "IRI": (5, IRI),
    "STRING": (5, STRING),
    "VARIABLE": (5, VARIABLE),
    "PARAMETER": (5, PARAMETER),
    "QUOTED_NAME": (5, QUOTED_NAME),
    "BOOLEAN": (4, f"(?i:{BOOLEAN})"),
    "CLASS": (1, CLASS),
    "NAME": (1, NAME),
}
# A leading underscore keeps a word out of the tree; the tests' own names stay in it.
KEYWORDS = (
    "_SELECT _DISTINCT _FROM _WHERE _AND _OR _SUCHTHAT _NOT _BETWEEN _IN _ISA _EXISTS LIKE CONTAINS MATCHES "
    "_PREFIX _FILTER _REGEX _STRSTARTS _STRENDS _STR"
).split()

DEFINITIONS = "\n".join(
    [f"{name}.{priority}: /{regex}/" for name, (priority, regex) in TERMINALS.items()]
    + [rf"{word}.4: /{word.lstrip('_')}(?![\w.])/i" for word in KEYWORDS]
)
