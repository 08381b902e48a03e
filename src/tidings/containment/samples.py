"""Values that are likely to satisfy conditions: for each set a few keys at its ends and within, and terms that have such a
view.

Nothing here has to be right: the caller keeps what the definition says satisfies the conditions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import zip_longest
from typing import Any

from tidings.containment.implication import Known
from tidings.containment.value_sets import ValueSet, is_text
from tidings.formats.namespaces import XSD
from tidings.language.query import TextTest
from tidings.model.search import expression as search
from tidings.model.terms import Iri, Literal, Term
from tidings.model.text_tests import is_search, network
from tidings.model.values import BOOLEAN, INSTANT, NUMBER, RESOURCE, TEXT

_DAY = 86_400_000_000
_FAR = 1_000_003  # beyond the bounds that other subscriptions are likely to have
_WORDS = ("any", "a", "Zz", "zz", "")
_NO_IRI = re.compile(r'[\s<>"{}|^`\\%]')
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.")
_MARKS = re.compile(r"\(\?[a-z]+\)|\\[AzbB]|[\^$]")
_WILD = re.compile(r"\\([%_\\])|(%)|(_)", re.DOTALL)


def terms(known: Known, hints: Iterable[Term] = ()) -> Iterator[Term]:
    """Terms that may satisfy all that is known of a value: one at its bounds first, then the `hints`, then others."""
    found = _likely_terms(known)
    if (first := next(found, None)) is not None:
        yield first
    yield from hints
    yield from found
    yield from (Literal("any"), number_term(Fraction(_FAR)))


def _likely_terms(known: Known) -> Iterator[Term]:
    for alternative in known.alternatives:
        rows = [_set_terms(one) for one in alternative.values()]
        for term in (term for row in zip_longest(*rows) for term in row if term is not None):
            yield term
            if len(rows) > 1 and isinstance(term, Literal):
                yield Literal(term.text)  # a plain text has views of several kinds
    for text in _texts([test for test in known.conditions if isinstance(test, TextTest)]):
        yield Literal(text)
        if not _NO_IRI.search(text):
            yield from map(Iri, filter(_SCHEME.match, (text, f"{text}:any", f"urn:{text}")))
        yield Literal(text.upper())


def _set_terms(known: ValueSet) -> Iterator[Term]:
    """Terms with a view in a set, then the same spelt otherwise."""
    keys = list(_keys(known))
    found = [term for key in keys if (term := _term(known.kind, key)) is not None]
    yield from found
    for term in found:
        if known.kind == NUMBER and isinstance(term, Literal):
            yield Literal(term.text)
            yield Literal(f"0{term.text}" if term.text.isdecimal() else f"{term.text}e0", XSD + "double")
        elif known.kind == TEXT and isinstance(term, Literal):
            yield Literal(term.text.upper() if known.fold else term.text, None, "en")
            yield Literal(term.text.upper() if known.fold else term.text)


def _keys(known: ValueSet) -> Iterator[Any]:
    if known.points is not None:
        yield from sorted(known.points)
        return
    low = None if known.low is None else known.low[0]
    high = None if known.high is None else known.high[0]
    if known.kind == NUMBER:
        found: Iterable[Any] = _numbers(low, high, Fraction(1), known.excluded)
    elif known.kind == INSTANT:
        found = map(int, _numbers(low, high, Fraction(_DAY), known.excluded))
    elif known.kind == BOOLEAN:
        found = (True, False)
    elif known.kind == RESOURCE:
        found = ("urn:tidings:any", *(f"{iri}-" for iri in known.excluded))
    else:
        near = [
            text
            for bound in (low, high, *sorted(known.excluded))
            if bound is not None
            for text in _near(bound)
        ]
        found = (*near, *_WORDS)
    yield from dict.fromkeys(filter(known.has, found))


def _numbers(low: Any, high: Any, step: Fraction, excluded: Iterable[Any]) -> Iterator[Fraction]:
    if low is not None and high is not None:
        yield from (Fraction(low), Fraction(high), Fraction(low + high) / 2, (Fraction(low) * 3 + high) / 4)
    if low is not None:
        yield from (low + step, Fraction(low), low + _FAR * step)
    if high is not None:
        yield from (high - step, Fraction(high), high - _FAR * step)
    for key in sorted(excluded):
        yield from (key + step, key - step)
    yield from (Fraction(0), _FAR * step, -_FAR * step)


def _near(text: str) -> tuple[str, ...]:
    return text, f"{text}a", f"{text} ", text[:-1]


def _term(kind: str, key: Any) -> Term | None:
    if kind == RESOURCE:
        return Iri(key)
    if kind == NUMBER:
        return number_term(key)
    if kind == BOOLEAN:
        return Literal("true" if key else "false", XSD + "boolean")
    if kind == INSTANT:
        try:
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=key)
        except OverflowError:
            return None
        return Literal(moment.isoformat().replace("+00:00", "Z"), XSD + "dateTime")
    if is_text(kind):
        return Literal(key, None, kind.partition("@")[2] or None)
    return Literal(key, kind)


def number_term(key: Fraction) -> Literal:
    if key.denominator == 1:
        return Literal(str(key.numerator), XSD + "integer")
    # Constants are decimal, and so are their sums and halves.
    return Literal(f"{Decimal(key.numerator) / Decimal(key.denominator):f}", XSD + "decimal")


def _texts(tests: list[TextTest]) -> Iterator[str]:
    """Texts that may pass all tests: their parts put together in the order that beginnings and ends require."""
    if not tests:
        return
    parts: dict[str, list[str]] = {}
    for test in tests:
        if isinstance(test.pattern, Literal):
            op = "SEARCH" if is_search(test.op) else test.op
            parts.setdefault(op, []).append(_example(op, test.pattern.text))
    starts = max(parts.get("STARTS", [""]), key=len)
    ends = max(parts.get("ENDS", [""]), key=len)
    middle = [text for op in ("LIKE", "MATCHES", "CIDR", "CONTAINS", "SEARCH") for text in parts.get(op, ())]
    yield starts + "".join(middle) + ends
    yield starts + " ".join(["", *middle, ""]) + ends
    yield from middle
    yield from (starts, ends)


def _example(op: str, pattern: str) -> str:
    if op == "LIKE":
        return _WILD.sub(lambda found: found[1] or ("" if found[2] else "a"), pattern)
    if op == "MATCHES":  # an expression that is a text but for its anchors
        return re.sub(r"\\(.)", r"\1", _MARKS.sub("", pattern))
    if op == "CIDR":
        return str(network(pattern).network_address)
    if op == "SEARCH":
        return search.example(search.read_search(pattern))
    return pattern


def plain_value(term: Term) -> object | None:
    """The JSON value that compares as a term does; None if there is none."""
    if not isinstance(term, Literal) or term.language:
        return None
    if term.datatype in (XSD + "integer", XSD + "decimal"):
        exact = Fraction(term.text)
        if exact.denominator == 1:
            return int(exact)
        try:
            nearest = float(exact)
        except OverflowError:
            return term.text
        return nearest if Fraction(repr(nearest)) == exact else term.text
    if term.datatype == XSD + "boolean":
        return term.text in ("true", "1")
    return term.text if term.datatype in (None, XSD + "dateTime") else None
