"""Converts the spelling of a term to the term.

Quoted texts, IRIs, numbers and dates mean the same everywhere. A bare word in a triple is a name in the default
prefix, percent-encoded, so `RSS Filter` is <urn:tidings:RSS%20Filter>; in a call it is a plain text. A lexicon is a set of prefixes and
remembers what it has read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from tidings.errors import did_you_mean
from tidings.formats.namespaces import XSD
from tidings.language.faults import Misread
from tidings.language.query import Node, Parameter, Variable
from tidings.language.syntax.bounded_cache import BoundedCache
from tidings.language.syntax.prefixes import WELL_KNOWN
from tidings.language.syntax.tokens import BOOLEAN, DATE, NUMBER, PARAMETER
from tidings.language.syntax.units import is_quantity, join_quantity, quantity
from tidings.model.terms import Iri, Literal
from tidings.model.values import instant

_REMEMBERED = 1_000_000
_PARAMETER = re.compile(PARAMETER)
_NUMBER = re.compile(NUMBER)
_DATE = re.compile(DATE)
_BOOLEAN = re.compile(BOOLEAN, re.IGNORECASE)
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|urn:")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PREFIXED = re.compile(r"([^\W\d][\w.-]*)?:(?!\s)(.*)", re.DOTALL)
# A bare word of a call is a text unless it is one of these, which mean what they mean in a triple.
_BARE = re.compile(r"\s*+[^\s?<'\"]")
_MEANT = re.compile(
    rf"{PARAMETER}|{NUMBER}|{DATE}|(?i:{BOOLEAN})|(?:{_ABSOLUTE.pattern}).*|{_PREFIXED.pattern}", re.DOTALL
)
_STRING = re.compile(r"""(['"])(.*)\1(?:@([A-Za-z0-9-]+)|\^\^(.+))?""", re.DOTALL)
_ESCAPE = re.compile(r"""''|""|\\(?:([nrt\\'"])|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))""")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_NOT_IN_IRI = re.compile(r"""[\x00-\x20<>"{}|\\^`\x7f-\x9f\ufffe\uffff\ufdd0-\ufdef]""")
_TO_ENCODE = re.compile(_NOT_IN_IRI.pattern + "|%(?![0-9A-Fa-f]{2})")


class Lexicon:
    """The meaning of words under a set of prefixes."""

    def __init__(self, prefixes: Mapping[str, str] | None = None) -> None:
        self.prefixes = {**WELL_KNOWN, **(prefixes or {})}
        self.terms = BoundedCache(self._read, _REMEMBERED)
        self._arguments = BoundedCache(self._read_argument, _REMEMBERED)

    def with_prefix(self, prefix: str, iri: str) -> Lexicon:
        return Lexicon({**self.prefixes, prefix: iri})

    def term(self, text: str) -> Node:
        """The term spelled `text` in a triple; constants elsewhere are spelled the same."""
        return self.terms[text]

    def _read(self, text: str) -> Node:
        text = text.strip()
        first = text[0]
        if first == "?":
            return Variable(text[1:])
        if first == "<":
            return self.iri(text[1:-1])
        if first in "'\"":
            return self.string(text)
        if _PARAMETER.fullmatch(text):
            return Parameter(text[1:])
        if _NUMBER.fullmatch(text):
            kind = "double" if "e" in text or "E" in text else "decimal" if "." in text else "integer"
            return Literal(text, XSD + kind)
        if _DATE.fullmatch(text):
            if instant(text) is None:
                raise Misread(f"{text!r} is not a date of the calendar", "dates are written like 2004-01-31")
            return Literal(text, XSD + ("dateTime" if "T" in text else "date"))
        if _BOOLEAN.fullmatch(text):
            return Literal(text.lower(), XSD + "boolean")
        return self.name(text)

    def argument(self, text: str) -> Node:
        """The term spelled `text` in a call: as in a triple, but a number may have a unit, and a bare word is a text."""
        return self._arguments[text]

    def _read_argument(self, text: str) -> Node:
        if not _BARE.match(text):
            return self.terms[text]
        text = " ".join(text.split())
        try:
            if is_quantity(text):
                return quantity(text)
            if joined := join_quantity(text):
                raise Misread(f"{text!r} has a blank before its unit", f"write {joined}")
            return self.terms[text] if _MEANT.fullmatch(text) else Literal(text)
        except Misread as fault:
            raise Misread(fault.what, f"{fault.advice} (if it is a text, put quotes around it)") from None

    def name(self, text: str) -> Iri:
        """The IRI that a bare word or `prefix:name` stands for."""
        if _ABSOLUTE.match(text) and text.partition(":")[0] not in self.prefixes:
            return self.iri(text)
        if found := _PREFIXED.fullmatch(text):
            prefix = found[1] or ""
            if prefix == "_":
                raise Misread(f"{text} names a blank node", "write a ?variable, which matches any node")
            if prefix not in self.prefixes:
                known = sorted(name for name in self.prefixes if name)
                otherwise = f"known prefixes are {', '.join(known)}; a full IRI is written <{prefix}:...>"
                raise Misread(f"unknown prefix {prefix!r}", did_you_mean(prefix, known, otherwise))
            return self.iri(self.prefixes[prefix] + _encode(found[2]))
        return self.iri(self.prefixes[""] + _encode(text))

    def iri(self, text: str) -> Iri:
        if found := _NOT_IN_IRI.search(text):
            raise Misread(f"an IRI cannot hold {found[0]!r}", "write it percent-encoded, a blank as %20")
        if not _SCHEME.match(text):
            raise Misread(f"<{text}> is not an absolute IRI", "it has to start with a scheme such as http://")
        return Iri(text)

    def string(self, text: str) -> Literal:
        quote, body, language, datatype = _STRING.fullmatch(text).groups()  # type: ignore[union-attr]
        if "\\" in body or quote in body:
            body = _ESCAPE.sub(lambda m: _unescape(m, quote), body)
        if datatype is None:
            return Literal(body, None, language.lower() if language else None)
        kind = self.iri(datatype[1:-1]) if datatype[0] == "<" else self.name(datatype)
        return Literal(body, None if kind.value == XSD + "string" else kind.value)


def _unescape(found: re.Match[str], quote: str) -> str:
    letter, short, long = found.groups()
    if letter:
        return _ESCAPED.get(letter, letter)
    if short or long:
        code = int(short or long, 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise Misread(
                f"{found[0]} is not a character", "characters end at \\U0010FFFF, without D800 to DFFF"
            )
        return chr(code)
    return quote if found[0][0] == quote else found[0]


def _encode(word: str) -> str:
    """A bare word as part of an IRI: runs of blanks become one, what an IRI cannot hold is percent-encoded."""
    word = " ".join(word.split())
    return _TO_ENCODE.sub(lambda m: "".join(f"%{byte:02X}" for byte in m[0].encode()), word)


@cache
def _re2_options() -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    return options


def expression_fault(expression: str) -> str | None:
    """Why RE2, which never backtracks, does not take a regular expression; None if it does."""
    import re2

    try:
        re2.compile(expression, _re2_options())
    except re2.error as error:
        reason = error.args[0]
        return (reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason))[:100]
    return None


def network_fault(network: str) -> str | None:
    """Why a text writes no network of addresses such as 10.0.0.0/8, with advice; None if it does."""
    import ipaddress

    try:
        ipaddress.ip_network(network, strict=False)
    except ValueError as error:
        address, slash, length = network.partition("/")
        try:
            widest = ipaddress.ip_address(address).max_prefixlen
        except ValueError:
            return "write an address and a length, such as 10.0.0.0/8 or 2001:db8::/32"
        if slash and not length.isdecimal():
            return f"after the / stands the number of fixed bits, 0 to {widest}"
        return f"the length of its prefix is 0 to {widest}" if slash else str(error)
    return None
