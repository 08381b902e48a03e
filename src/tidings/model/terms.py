"""RDF terms and their canonical text: the N-Triples form.

A graph is N-Triples bytes everywhere in Tidings, and a term is identified by its N-Triples text: in events, in the
vocabulary, in index files. Two terms are the same exactly when these texts are equal, so the texts written here must
be the ones pyoxigraph writes (a test compares them).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from tidings.errors import EventError
from tidings.formats.namespaces import XSD


@dataclass(frozen=True, slots=True)
class Iri:
    value: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal; `datatype` is None for a plain string, `language` is in lower case."""

    text: str
    datatype: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Blank:
    label: str


Term = Iri | Literal | Blank
Triple = tuple[Term, Term, Term]

_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_UNESCAPES = {value[1]: key for key, value in _ESCAPES.items()}
_TO_ESCAPE = re.compile('[\x00-\x1f"\\\\\x7f\ufffe\uffff]')
_ESCAPED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_TERM = re.compile(r'<([^>]*)>|_:(\S+)|"((?:[^"\\]|\\.)*)"(?:@([A-Za-z0-9-]+)|\^\^<([^>]*)>)?')


def escape(text: str) -> str:
    """`text` as it stands between the quotes of an N-Triples literal."""
    return _TO_ESCAPE.sub(lambda m: _ESCAPES.get(m[0]) or f"\\u{ord(m[0]):04X}", text)


def unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPED.sub(lambda m: _UNESCAPES[m[3]] if m[3] else chr(int(m[1] or m[2], 16)), text)


def ntriples(term: Term) -> str:
    """The canonical text of `term`."""
    if isinstance(term, Iri):
        return f"<{term.value}>"
    if isinstance(term, Blank):
        return f"_:{term.label}"
    if term.language:
        return f'"{escape(term.text)}"@{term.language}'
    if term.datatype and term.datatype != XSD + "string":
        return f'"{escape(term.text)}"^^<{term.datatype}>'
    return f'"{escape(term.text)}"'


def from_ntriples(text: str) -> Term:
    """The term whose canonical text is `text`."""
    found = _TERM.fullmatch(text)
    if found is None:
        raise EventError(f"{text!r} is not a term in N-Triples form")
    iri, blank, literal, language, datatype = found.groups()
    if iri is not None:
        return Iri(iri)
    if blank is not None:
        return Blank(blank)
    return Literal(unescape(literal), datatype, language)


def read_graph(data: bytes) -> list[Triple]:
    """The triples of a graph in canonical N-Triples form."""
    triples: list[Triple] = []
    for line in data.decode().split("\n"):
        parts = [m[0] for m in _TERM.finditer(line)]
        if len(parts) == 3:
            triples.append((from_ntriples(parts[0]), from_ntriples(parts[1]), from_ntriples(parts[2])))
        elif parts:
            raise EventError(f"{line!r} is not an N-Triples statement")
    return triples


def plain(term: Term) -> str:
    """The text of a term for people: an IRI's address, a literal's text."""
    if isinstance(term, Iri):
        return term.value
    if isinstance(term, Blank):
        return f"_:{term.label}"
    return term.text


def value_text(value: object) -> str:
    """The text of what a variable is bound to, a term or a value that an operator gave, for people."""
    if isinstance(value, Iri | Literal | Blank):
        return plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, date) else str(value)
