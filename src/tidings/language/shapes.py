"""Texts of one shape share one parse.

One regular expression splits a text into its constants and the rest. The rest, with the kind of each constant, is
the shape; a shape is parsed once, by its first text, and later texts of it only bring their constants. The first
text also proves the split: the constants found in its tree must be the ones that were split off, otherwise its
shape is not shared and every text of it is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidings.language.faults import Misread
from tidings.language.lexicon import Lexicon, network_fault
from tidings.language.parameters import lift, parameters
from tidings.language.parser import read
from tidings.language.query import Query
from tidings.language.tokens import ABSOLUTE, BOOLEAN, CLASS, DATE, IRI, NUMBER, PNAME, STRING, TERM
from tidings.terms import Iri, Literal, ntriples
from tidings.values import BOOLEAN as BOOLEANS
from tidings.values import INSTANT, TEXT, constant_view
from tidings.values import NUMBER as NUMBERS

_REMEMBERED_SHAPES = 100_000
_REMEMBERED_TOKENS = 1_000_000

# The terms of a triple keep their opening "(" or ",", so that `(ISA x,` is never taken for `ISA x`. An expression
# after MATCHES belongs to the shape: it is compiled when the shape is parsed. So does a node after AT. A network after
# CIDR is a constant that must be one.
# The look ahead and behind spares most positions the trial of every kind of constant: twice as fast.
_SPLIT = re.compile(
    rf"(\({TERM})(,{TERM})(,{TERM})\)"
    rf"|(?<![\w.?:$@`+-])((?=[\w'\"<:+.-])(?:(?i:MATCHES|AT|CIDR)\s*+{STRING}|(?i:AT)\s++{NUMBER}|{STRING}|{ABSOLUTE}|{IRI}"
    rf"|(?i:ISA)\b\s*+(?:[<>]?=\s*+)?{CLASS}(?![\w:])|{PNAME}|{DATE}|{NUMBER}(?!\.)|(?i:{BOOLEAN})))"
)
_GROUPS = 4
_KEPT = re.compile(r"(?:MATCHES\s*['\"]|AT\s*['\".+\d-])", re.IGNORECASE)
_NETWORK = re.compile(rf"CIDR\s*({STRING})", re.IGNORECASE)
_ISA = re.compile(rf"ISA\b\s*([<>]?=)?\s*({CLASS})", re.IGNORECASE)
_EXPLICIT = re.compile(f"{IRI}|{ABSOLUTE}|{PNAME}")
_KINDS = {NUMBERS: "n", INSTANT: "d", BOOLEANS: "b", TEXT: "s"}


class Shapes:
    """Reads texts, many of which differ in their constants only."""

    def __init__(self, prefixes: Mapping[str, str] | None = None) -> None:
        self._lexicon = Lexicon(prefixes)
        self._queries: dict[str, Query] = {}
        self._distinct: dict[tuple[Query, str], Query] = {}
        # Of every token that was split off: its part in the shape, and the text of the constant if it is one.
        self._parts: dict[str | None, str] = {None: ""}
        self._constants: dict[str | None, str] = {}

    def read(self, text: str) -> tuple[Query, tuple[str, ...]]:
        """The query of the text's shape, and the constants for its parameters 0, 1, … in N-Triples form."""
        tokens = _SPLIT.split(text)
        pieces = tokens[:: _GROUPS + 1]
        del tokens[:: _GROUPS + 1]
        try:
            parts = self._parts
            pieces += [parts[token] for token in tokens]
        except KeyError:
            if "\0" in text or not self._learn(tokens):
                return read(text, self._lexicon)[0], ()
            pieces += [self._parts[token] for token in tokens]
        shape = "\0".join(pieces)
        known = self._constants
        constants = tuple([known[token] for token in tokens if token in known])
        query = self._queries.get(shape)
        if query is None:
            return self._parse(text, shape, constants)
        return query, constants

    def _parse(self, text: str, shape: str, constants: tuple[str, ...]) -> tuple[Query, tuple[str, ...]]:
        query, in_order = read(text, self._lexicon)
        lifted, found = lift(query)
        proven = in_order and tuple([ntriples(constant) for constant in found]) == constants
        if not proven or ("$" in text and parameters(query)):
            return query, ()
        if len(self._queries) >= _REMEMBERED_SHAPES:
            self._queries.clear()
            self._distinct.clear()
        # Texts that differ in blanks or spelling only still share one query, if their constants are of the same kinds.
        kinds = "".join([_kind(constant) for constant in found])
        shared = self._queries[shape] = self._distinct.setdefault((lifted, kinds), lifted)
        return shared, constants

    def _learn(self, tokens: list[str | None]) -> bool:
        """Takes in the tokens that are new; False if one of them means nothing under the known prefixes."""
        if len(self._parts) >= _REMEMBERED_TOKENS:
            self._parts = {None: ""}
            self._constants = {}
        for token in tokens:
            if token is None or token in self._parts:
                continue
            try:
                part, constant = self._meaning(token)
            except Misread:
                return False
            self._parts[token] = part
            if constant is not None:
                self._constants[token] = ntriples(constant)
        return True

    def _meaning(self, token: str) -> tuple[str, Iri | Literal | None]:
        """What a token is in the shape, and the constant it is, if it is one."""
        if _KEPT.match(token):
            return token, None
        if found := _NETWORK.fullmatch(token):
            network = self._lexicon.string(found[1])
            if network.datatype or network.language or network_fault(network.text):
                raise Misread("not a network", "")
            return "CIDR s", network
        if found := _ISA.fullmatch(token):
            return f"ISA {found[1] or '<='}", self._lexicon.name(found[2])
        spelled = token[1:].strip() if token[0] in "(," else token
        term = self._lexicon.term(spelled)
        if isinstance(term, Iri | Literal):
            # Bare words are apart: a list after IN takes `ex:a`, but not `a`.
            bare = isinstance(term, Iri) and not _EXPLICIT.fullmatch(spelled)
            return "w" if bare else _kind(term), term
        return spelled, None


def _kind(constant: Iri | Literal) -> str:
    """A letter for what the constant is compared as."""
    if isinstance(constant, Iri):
        return "i"
    if constant.language:
        return "l"
    view = constant_view(constant)
    return _KINDS.get(view[0], "t") if view is not None else "x"
