"""Completes the text of a subscription: attribute names and values, classes, prefixes, operators, tables, networks.

Names and values are learnt from a bounded sample of the published events; completions are suggestions and not
exact.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidings.engine.engine import Engine
from tidings.errors import TidingsError
from tidings.language.syntax.prefixes import WELL_KNOWN
from tidings.model.event import Event
from tidings.model.terms import plain, read_graph
from tidings.service.subscriptions.class_search import ClassSearch

MOST = 20  # completions at a time
_NAMES, _VALUES, _DEPTH, _GRAPH = 2_000, 50, 4, 200
_LONGEST = 60  # of a value that is worth completing

_WORD = re.compile(r"[\w:.?<>/#-]*\Z")
# Possessive wherever two parts could share characters: a line of blanks would be divided among them in every way.
_QUOTED = re.compile(
    r"(?<![\w.?])([\w.?]++)\s*+(?:=|!=|IN\s*+\([^()]*|CONTAINS|SEARCH|STARTS\s++WITH|LIKE)\s*+'([^']*)\Z",
    re.IGNORECASE,
)
# An attribute or a variable where a condition begins, and what is typed of the comparison after it.
_NAMED = re.compile(
    r"(?:\b(?:WHERE|AND|OR|NOT)\s++|\(\s*+)(\??[^\W\d][\w.]*+)\s++([a-z]*+|[<>=!]++)\Z", re.IGNORECASE
)
_COMPARED = re.compile(
    r"(?<![\w.?])([\w.?]++)\s*+(?:[=<>]|[!<>]=|<>|(?:NOT\s++)?IN\s*+\((?:[^()]*,)?|CONTAINS\s|SEARCH\s|(?:STARTS|ENDS)\s++WITH\s"
    r"|LIKE\s|BETWEEN\s)\s*+([\w.]*+)\Z",
    re.IGNORECASE,
)
_BARE = re.compile(r"-?\d+(?:\.\d+)?|true|false")  # values that are written without quotes
_OBJECT = re.compile(r"\([^(),]++,([^(),]++),\s*+'([^']*)\Z")
_ISA = re.compile(r"\bISA\s*(?:>=|<=|=)?\s*\S*\Z", re.IGNORECASE)
_VIA = re.compile(r"\bVIA\s+[\w-]*\Z", re.IGNORECASE)
_AT = re.compile(r"\bVIA\s+([\w-]+)\s+AT\s+'?([^']*)\Z", re.IGNORECASE)
_TABLE = re.compile(r"\b(?:FROM|JOIN)\s+\w*\Z", re.IGNORECASE)
_PREDICATE = re.compile(r"\([^(),]++,[^(),]*\Z")
_IN_TRIPLE = re.compile(r"\([^()]*\Z")
_VARIABLE = re.compile(r"\?\w+")
_SIMPLE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")

COMPARISONS = {
    "= ": "is this value",
    "!= ": "is another value",
    "< ": "is less",
    "<= ": "is at most",
    "> ": "is more",
    ">= ": "is at least",
    "IN (": "is one of several: IN ('a', 'b')",
    "BETWEEN ": "BETWEEN 18 AND 35",
    "CONTAINS ": "CONTAINS 'goal'",
    "SEARCH ": "words: SEARCH 'solar \"wind power\" -nuclear'",
    "STARTS WITH ": "STARTS WITH 'Breaking'",
    "ENDS WITH ": "ENDS WITH '.pdf'",
    "LIKE ": "LIKE 'A%'",
    "MATCHES ": "MATCHES '(?i)night train'",
    "IS NULL": "is not there",
}
KEYWORDS = {
    "AND": "both hold",
    "OR": "one of both holds",
    "NOT": "it does not hold",
    "BETWEEN": "age BETWEEN 18 AND 35",
    "IN": "geo IN ('CA', 'NY')",
    "LIKE": "name LIKE 'A%'",
    "CONTAINS": "title CONTAINS 'goal'",
    "SEARCH": "title SEARCH 'solar OR \"wind power\"'",
    "STEMMED": "title SEARCH 'running shoes' STEMMED 'english'",
    "STARTS WITH": "title STARTS WITH 'Breaking'",
    "ENDS WITH": "file ENDS WITH '.pdf'",
    "MATCHES": "title MATCHES '(?i)night train'",
    "EXISTS": "EXISTS price",
    "ISA": "?kind ISA ex:Sport",
    "SELECT": "SELECT ?title WHERE …",
    "WHERE": "WHERE topic = 'sport'",
    "ANY": "ANY offer IN offers SATISFIES (offer.price < 10)",
    "VIA": "VIA exchange AT 'acme'",
    "FROM": "FROM stocks JOIN reviews USING (symbol)",
}


@dataclass(frozen=True, slots=True)
class Completion:
    """One suggestion. `text` replaces the characters from `start` to the caret."""

    text: str
    kind: str  # attribute, comparison, value, variable, property, class, prefix, operator, table, network, node, keyword
    detail: str
    start: int


class EventVocabulary:
    """Names of attributes and properties that events had, with some of their values."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.attributes: dict[str, dict[str, None]] = {}
        self.properties: dict[str, dict[str, None]] = {}

    def observe(self, events: Iterable[Event]) -> None:
        """Learns from events; unreadable events are ignored."""
        with self._lock:
            for event in events:
                for envelope in ("source", "type"):
                    if text := getattr(event, envelope):
                        _note(self.attributes, envelope, text)
                for path, value in _paths(event.attributes, "", 0):
                    _note(self.attributes, path, value)
                try:
                    for triple in read_graph(event.graph())[:_GRAPH] if event.datacontenttype else ():
                        _note(self.properties, plain(triple[1]), plain(triple[2]))
                except (TidingsError, ValueError, TypeError):
                    continue

    def seen(self) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """Attributes and properties, each with values."""
        with self._lock:
            return (
                {name: list(values) for name, values in self.attributes.items()},
                {name: list(values) for name, values in self.properties.items()},
            )


class Completer:
    """Completes texts from an engine, its classes and the vocabulary of events."""

    def __init__(self, engine: Engine, class_search: ClassSearch, vocabulary: EventVocabulary) -> None:
        self._engine, self._class_search, self._vocabulary = engine, class_search, vocabulary

    def complete(self, text: str, at: int) -> list[Completion]:
        """The completions at the caret, best first."""
        before = text[: max(0, min(at, len(text)))]
        attributes, properties = self._vocabulary.seen()
        if found := _AT.search(before):
            network = self._engine.networks.get(found[1])
            nodes = (name for name, _ in (network.nodes() if network is not None else ()))
            return _ranked(
                found[2], ((f"'{n}'", n, "node", found[1]) for n in nodes), found.start(2) - ("'" in found[0])
            )
        if found := _OBJECT.search(before):
            said = found[1].strip()
            values = properties.get(self._iri(said), [])
            return _ranked(found[2], ((f"{v}'", v, "value", said) for v in values), found.start(2))
        if (found := _QUOTED.search(before)) and before.count("'") % 2:
            values = attributes.get(found[1], [])
            return _ranked(found[2], ((f"{v}'", v, "value", found[1]) for v in values), found.start(2))
        if before.count("'") % 2:
            return []  # inside a text that we know nothing of
        if (found := _NAMED.search(before)) and _is_compared(found, before):
            named = COMPARISONS if found[1][0] != "?" else {**COMPARISONS, "ISA ": "?kind ISA ex:Sport"}
            return _ranked(
                found[2], ((c, c, "comparison", said) for c, said in named.items()), found.start(2)
            )
        if found := _COMPARED.search(before):
            values = attributes.get(found[1], [])
            written = ((v if _BARE.fullmatch(v) else f"'{v}'", v, "value", found[1]) for v in values)
            if ranked := _ranked(found[2], written, found.start(2)):
                return ranked
        word = _WORD.search(before)
        assert word is not None  # it may be empty
        return _ranked(word[0], self._candidates(before, text, attributes, properties), word.start())

    def _candidates(
        self, before: str, text: str, attributes: Mapping[str, list[str]], properties: Mapping[str, list[str]]
    ) -> Iterator[tuple[str, str, str, str]]:
        """(text, what is compared with the word, kind, detail)"""
        if _VIA.search(before):
            yield from ((name, name, "network", "a network") for name in self._engine.networks)
            return
        if _ISA.search(before):
            for named in self._class_search.all():
                yield named.written, f"{named.written} {named.label}", "class", named.label
            return
        tables = self._engine.joins.tables
        if _TABLE.search(before) and tables:
            for name, table in tables.items():
                yield name, name, "table", ", ".join(table.names)
            return
        for variable in dict.fromkeys(_VARIABLE.findall(text)):
            yield variable, variable, "variable", "a variable of this text"
        if _PREDICATE.search(before):
            for iri, values in properties.items():
                yield (
                    self._class_search.written(iri),
                    self._class_search.written(iri),
                    "property",
                    _sample_of(values),
                )
        if _IN_TRIPLE.search(before):
            for prefix, iri in {**WELL_KNOWN, **self._engine.prefixes}.items():
                if prefix:
                    yield f"{prefix}:", f"{prefix}:", "prefix", iri
            return
        for path, values in attributes.items():
            if _SIMPLE.fullmatch(path):
                yield path, path, "attribute", _sample_of(values)
        for name, table in tables.items():
            for column, kind in table.columns.items():
                yield f"{name}.{column}", f"{name}.{column}", "attribute", kind
        for operator in self._engine.operators:
            yield f"{operator.name}(", operator.name, "operator", operator.signature
        for keyword, detail in KEYWORDS.items():
            yield keyword, keyword, "keyword", detail

    def _iri(self, written: str) -> str:
        if written.startswith("<"):
            return written.strip("<>")
        prefix, colon, name = written.partition(":")
        spaces = {**WELL_KNOWN, **self._engine.prefixes}
        return spaces.get(prefix, "") + name if colon else spaces[""] + written


def _is_compared(found: re.Match[str], before: str) -> bool:
    """Whether it is an attribute or a variable that was found: no keyword, and no subject of a triple."""
    is_subject = before[found.start()] == "(" and found[1].startswith("?")
    return not is_subject and found[1].upper() not in {*KEYWORDS, "MISSING", "TRUE", "FALSE"}


def _ranked(word: str, candidates: Iterable[tuple[str, str, str, str]], start: int) -> list[Completion]:
    """Candidates that begin with the word, then those that contain it; all of them if there is no word yet."""
    wanted = word.casefold()
    first, then = [], []
    for text, compared, kind, detail in candidates:
        folded = compared.casefold()
        if folded == wanted:
            continue  # it is there already
        if folded.startswith(wanted):
            first.append(Completion(text, kind, detail, start))
        elif wanted in folded:
            then.append(Completion(text, kind, detail, start))
    return (first + then)[:MOST]


def _paths(value: object, path: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        if depth < _DEPTH:
            for name, inner in value.items():
                yield from _paths(inner, f"{path}.{name}" if path else str(name), depth + 1)
    elif isinstance(value, list):
        for inner in value[:5]:
            if not isinstance(inner, Mapping):
                yield from _paths(inner, path, depth + 1)
    elif path:
        yield path, value if isinstance(value, str) else json.dumps(value, default=str)


def _note(known: dict[str, dict[str, None]], name: str, value: Any) -> None:
    if name not in known and len(known) >= _NAMES:
        return
    values = known.setdefault(name, {})
    if len(values) < _VALUES and 0 < len(value) <= _LONGEST and "'" not in value and "\n" not in value:
        values[value] = None


def _sample_of(values: list[str]) -> str:
    return ", ".join(values[:3]) + (", …" if len(values) > 3 else "")
