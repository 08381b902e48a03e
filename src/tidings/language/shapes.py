"""Parses texts of one shape only once.

A text is split into its constants and the rest. The rest, with the kind of each constant, is the shape; a shape is
parsed once, with its first text, and later texts of it only contribute their constants. The first text also verifies
the split: the constants in its tree must be the ones that were split off, in their order; otherwise its shape is not
shared and every text of it is parsed.

A filter without variables is split into the tokens of the scanner. Texts with triples, and all unusual ones, are split
by a regular expression that takes the terms out of the triples too. A call is one part of a shape; its constants are
taken out as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from tidings.language.faults import Misread
from tidings.language.parameters import lift, parameters
from tidings.language.parser import read
from tidings.language.query import Query
from tidings.language.syntax.calls import pieces
from tidings.language.syntax.lexicon import Lexicon, network_fault
from tidings.language.syntax.scanner import JOINTS, kind_of, tokens_of
from tidings.language.syntax.tokens import (
    ABSOLUTE,
    BOOLEAN,
    CALL,
    CLASS,
    DATE,
    IRI,
    NUMBER,
    PNAME,
    QUANTITY,
    SPARQL_WORDS,
    STRING,
    TERM,
)
from tidings.language.syntax.units import is_quantity, quantity
from tidings.model.search.expression import search_fault
from tidings.model.terms import Iri, Literal, ntriples
from tidings.model.values import BOOLEAN as BOOLEANS
from tidings.model.values import INSTANT, TEXT, constant_view
from tidings.model.values import NUMBER as NUMBERS

_REMEMBERED_SHAPES = 100_000
_REMEMBERED_FILTERS = 10_000  # arbitrary expressions are as large as their texts, and seldom come twice
_REMEMBERED_TOKENS = 1_000_000

# The terms of a triple keep their opening "(" or ",", so that `(ISA x,` is never taken for `ISA x`; the columns
# after USING are no triple. An expression after MATCHES belongs to the shape: it is compiled when the shape is parsed.
# So do a node after AT and a language after STEMMED. A network after CIDR and a search are constants that must be right.
# The look ahead and behind spares most positions the trial of every kind of constant: twice as fast.
_TRIPLE = rf"(\((?<!(?i:USING)\()(?<!(?i:USING)\s\(){TERM})(,{TERM})(,{TERM})\)"
_CONSTANT = (
    rf"(?i:MATCHES|AT|CIDR|SEARCH|STEMMED)\s*+{STRING}|(?i:AT)\s++{NUMBER}|{STRING}|{ABSOLUTE}|{IRI}"
    rf"|(?i:ISA)\b\s*+(?:[<>]?=\s*+)?{CLASS}(?![\w:])|{PNAME}"
    rf"|(?=[\d+.-])(?:{DATE}|{NUMBER}(?!\.)|[+-]?{QUANTITY})|(?i:{BOOLEAN})"
)
_SPLIT = re.compile(rf"{_TRIPLE}|(?<![\w.?:$@`+-])((?=[\w'\"<:+.-])(?:{_CONSTANT}))")
# What SPARQL calls is no operator: there a bare word would be an error, not a text.
_CALL = rf"(?!(?i:{'|'.join(sorted(SPARQL_WORDS))})\(){CALL}"
_SPLIT_WITH_CALLS = re.compile(rf"{_TRIPLE}|(?<![\w.?:$@`+-])((?=[\w'\"<:+.`-])(?:{_CALL}|{_CONSTANT}))")
_MAY_CALL = re.compile(r"\((?<=[\w`]\()")
_GROUPS = 4
_KEPT = re.compile(r"(?:(?:MATCHES|STEMMED)\s*['\"]|AT\s*['\".+\d-])", re.IGNORECASE)
_CHECKED = re.compile(rf"(CIDR|SEARCH)\s*({STRING})", re.IGNORECASE)
_FAULTS: dict[str, Callable[[str], object]] = {"CIDR": network_fault, "SEARCH": search_fault}
_ISA = re.compile(rf"ISA\b\s*([<>]?=)?\s*({CLASS})", re.IGNORECASE)
_EXPLICIT = re.compile(f"{IRI}|{ABSOLUTE}|{PNAME}")
_IS_CALL = re.compile(CALL)
_CONSTANTS = frozenset({"NUMBER", "QUANTITY", "STRING", "DATE", "BOOLEAN", "PNAME", "ABSOLUTE"})
# An expression, a network, a search and a node are not like other texts.
_ELSEWHERE = frozenset({"TRIPLE", "IRI", "PARAMETER", "MATCHES", "CIDR", "SEARCH", "STEMMED", "AT", "REST"})
_KINDS = {NUMBERS: "n", INSTANT: "d", BOOLEANS: "b", TEXT: "s"}
_MARK = "\1"  # before the letter of a constant: a name may be the letter itself


class _Tokens:
    """A cache of tokens: their parts in a shape, and the N-Triples texts of the constants in them.

    A call may hold several constants; their texts are joined by a null character, which is in none of them.
    """

    def __init__(self, meaning: Callable[[str], tuple[str, Sequence[Iri | Literal]]]) -> None:
        self._meaning = meaning
        self.parts: dict[str | None, str] = {}
        self.constants: dict[str | None, str] = {}
        self.forget()

    def forget(self) -> None:
        self.parts.clear()
        self.constants.clear()
        self.parts[None] = ""
        # By its N-Triples text a constant, and a letter for what it is compared as.
        self.terms: dict[str, Iri | Literal] = {}
        self.kinds: dict[str, str] = {}
        self.has_joined = False

    def learn(self, tokens: Sequence[str | None]) -> bool:
        """Adds new tokens; False if one of them cannot be part of a shape."""
        if len(self.parts) >= _REMEMBERED_TOKENS:
            self.forget()
        for token in tokens:
            if token is None or token in self.parts:
                continue
            try:
                part, constants = self._meaning(token)
            except Misread:
                return False
            self.parts[token] = part
            written = [ntriples(constant) for constant in constants]
            if written:
                self.constants[token] = "\0".join(written)
                self.has_joined |= len(written) > 1
            for text, constant in zip(written, constants, strict=True):
                self.terms[text] = constant
                self.kinds[text] = _kind(constant)
        return True

    def in_order(self, found: Sequence[str]) -> tuple[str, ...]:
        """The constants of tokens one by one, from what `constants` has for these tokens."""
        return tuple("\0".join(found).split("\0")) if found and self.has_joined else tuple(found)


class Shapes:
    """Reads texts, many of which differ in their constants only."""

    def __init__(self, prefixes: Mapping[str, str] | None = None) -> None:
        self._lexicon = Lexicon(prefixes)
        self._filters: dict[str, Query] = {}
        self._queries: dict[str, Query] = {}
        self._distinct: dict[tuple[Query, str], Query] = {}
        self._scanned = _Tokens(self._scanned_meaning)
        self._split = _Tokens(self._split_meaning)

    def read(self, text: str) -> tuple[Query, tuple[str, ...]]:
        """The query of the text's shape, and the constants for its parameters 0, 1, … in N-Triples form."""
        if "?" not in text and "{" not in text:
            tokens = tokens_of(text)
            known = self._scanned
            try:
                shape = "\0".join(map(known.parts.__getitem__, tokens))
            except KeyError:
                if "\0" in text or _MARK in text or not known.learn(tokens):
                    return self._read(text)
                shape = "\0".join(map(known.parts.__getitem__, tokens))
            constants = known.in_order(tuple(filter(None, map(known.constants.get, tokens))))
            query = self._filters.get(shape)
            if query is not None:
                return query, constants
            lifted, whole = self._lifted(text, known, constants, tokens)
            if lifted is None:
                return whole, ()
            if len(self._filters) >= _REMEMBERED_FILTERS:
                self._filters.clear()
            self._filters[shape] = lifted
            return lifted, constants
        return self._read(text)

    def _read(self, text: str) -> tuple[Query, tuple[str, ...]]:
        tokens = (_SPLIT_WITH_CALLS if _MAY_CALL.search(text) else _SPLIT).split(text)
        rest = tokens[:: _GROUPS + 1]
        del tokens[:: _GROUPS + 1]
        known = self._split
        try:
            parts = known.parts
            rest += [parts[token] for token in tokens]
        except KeyError:
            if "\0" in text or _MARK in text or not known.learn(tokens):
                return read(text, self._lexicon)[0], ()
            rest += [parts[token] for token in tokens]
        shape = "\0".join(rest)
        texts = known.constants
        constants = known.in_order([texts[token] for token in tokens if token in texts])
        query = self._queries.get(shape)
        if query is not None:
            return query, constants
        lifted, whole = self._lifted(text, known, constants)
        if lifted is None:
            return whole, ()
        if len(self._queries) >= _REMEMBERED_SHAPES:
            self._queries.clear()
            self._distinct.clear()
        # Texts that differ in blanks or spelling only still share one query, if their constants are of the same kinds.
        kinds = "".join([known.kinds[constant] for constant in constants])
        shared = self._queries[shape] = self._distinct.setdefault((lifted, kinds), lifted)
        return shared, constants

    def _lifted(
        self, text: str, known: _Tokens, constants: tuple[str, ...], tokens: list[str] | None = None
    ) -> tuple[Query | None, Query]:
        """The query of the text's shape, if the constants prove to be its own, and the query of the text."""
        query, regular = read(text, self._lexicon, tokens)
        lifted, found = lift(query)
        proven = regular and found == tuple([known.terms[constant] for constant in constants])
        if not proven or ("$" in text and parameters(query)):
            return None, query
        return lifted, query

    def _scanned_meaning(self, token: str) -> tuple[str, Sequence[Iri | Literal]]:
        kind = kind_of(token)
        if kind in _CONSTANTS:
            term = quantity(token) if kind == "QUANTITY" else self._lexicon.term(token)
            assert isinstance(term, Iri | Literal)
            return _kind(term), (term,)
        if kind == "CALL":
            return self._call_meaning(token)
        if kind in _ELSEWHERE:
            raise Misread("what has to be split otherwise", "")
        return kind if kind in JOINTS else token, ()

    def _split_meaning(self, token: str) -> tuple[str, Sequence[Iri | Literal]]:
        """The part of the shape that a token is, and the constants in it."""
        if _KEPT.match(token):
            return token, ()
        if found := _CHECKED.fullmatch(token):
            word, constant = found[1].upper(), self._lexicon.string(found[2])
            if constant.datatype or constant.language or _FAULTS[word](constant.text):
                raise Misread("not a network or a search", "")
            return f"{word} s", (constant,)
        if found := _ISA.fullmatch(token):
            return f"ISA {found[1] or '<='}", (self._lexicon.name(found[2]),)
        if _IS_CALL.fullmatch(token):
            return self._call_meaning(token)
        if is_quantity(token):
            return f"{_MARK}n", (quantity(token),)
        spelled = token[1:].strip() if token[0] in "(," else token
        term = self._lexicon.term(spelled)
        if isinstance(term, Iri | Literal):
            # Bare words are apart: a list after IN takes `ex:a`, but not `a`.
            bare = isinstance(term, Iri) and not _EXPLICIT.fullmatch(spelled)
            return f"{_MARK}w" if bare else _kind(term), (term,)
        return spelled, ()

    def _call_meaning(self, token: str) -> tuple[str, Sequence[Iri | Literal]]:
        name, written = pieces(token)
        terms = [self._lexicon.argument(argument) for argument in written]
        constants = [term for term in terms if isinstance(term, Iri | Literal)]
        parts = [
            _kind(term) if isinstance(term, Iri | Literal) else argument.strip()
            for term, argument in zip(terms, written, strict=True)
        ]
        return f"{name}({','.join(parts)})", constants


def _kind(constant: Iri | Literal) -> str:
    """A letter for what the constant is compared as, behind a mark."""
    if isinstance(constant, Iri):
        return f"{_MARK}i"
    if constant.language:
        return f"{_MARK}l"
    view = constant_view(constant)
    return _MARK + (_KINDS.get(view[0], "t") if view is not None else "x")
