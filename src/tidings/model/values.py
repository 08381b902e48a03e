"""Defines what a value means; only this module compares two values.

A value has one or more *views*, each a kind and a key; a constant has exactly one. A comparison holds if a
view of the same kind satisfies it, and is false if there is none: a missing value, or one of another kind,
satisfies nothing, `!=` included. So the plain literal "2005" is the number 2005 for `> 2003` and the text
"2005" for `= '2005'`, which is what a feed's untyped `<year>2005</year>` needs.

Numbers are exact (`Fraction`), instants are microseconds since 1970 in UTC, texts order by code point.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tidings.formats.namespaces import XSD
from tidings.model.terms import Iri, Literal

NUMBER, INSTANT, BOOLEAN, TEXT, RESOURCE = "number", "instant", "boolean", "text", "resource"
ORDERED = frozenset({NUMBER, INSTANT, TEXT})
View = tuple[str, Any]

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_NUMERIC = frozenset(
    XSD + name
    for name in (
        "integer decimal float double long int short byte nonNegativeInteger positiveInteger nonPositiveInteger "
        "negativeInteger unsignedLong unsignedInt unsignedShort unsignedByte gYear"
    ).split()
)
_INSTANTS = frozenset({XSD + "date", XSD + "dateTime", XSD + "dateTimeStamp"})
_NUMBER = re.compile(r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,3})?", re.ASCII)
_INSTANT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,12}))?)?)?(Z|[+-]\d\d:\d\d)?", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def number(text: str) -> Fraction | None:
    """The exact number that `text` reads as, if it does."""
    return Fraction(text) if _NUMBER.fullmatch(text) else None


def instant(text: str) -> int | None:
    """Microseconds since 1970 of an ISO 8601 date or date and time; without a zone it is UTC."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    offset = timedelta()
    if zone and zone != "Z":
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6])) * (-1 if zone[0] == "-" else 1)
    try:
        moment = datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC
        )
    except ValueError:
        return None
    return (moment - _EPOCH - offset) // timedelta(microseconds=1) + int(((fraction or "") + "000000")[:6])


def boolean(text: str) -> bool | None:
    return {"true": True, "1": True, "false": False, "0": False}.get(text)


def views(value: object, fold: bool = False) -> tuple[View, ...]:
    """Everything `value` can be compared as: an RDF term, or a plain Python value of an attribute.

    `fold` disregards the case of its text, and of nothing else.
    """
    found = _views(value)
    return tuple((kind, key.casefold() if _is_text(kind) else key) for kind, key in found) if fold else found


def _is_text(kind: str) -> bool:
    return kind == TEXT or kind.startswith(f"{TEXT}@")


def _views(value: object) -> tuple[View, ...]:
    if isinstance(value, Literal):
        return _literal_views(value)
    if isinstance(value, Iri):
        return ((RESOURCE, value.value),)
    if isinstance(value, bool):
        return ((BOOLEAN, value),)
    if isinstance(value, int | Fraction):
        return ((NUMBER, Fraction(value)),)
    if isinstance(value, float):
        # As it is written: an attribute of 0.1 is a tenth, as it is in a literal and in a subscription.
        return ((NUMBER, Fraction(repr(float(value)))),) if value - value == 0 else ()
    if isinstance(value, Decimal):
        return ((NUMBER, Fraction(value)),) if value.is_finite() else ()
    if isinstance(value, date):
        moment = instant(value.isoformat())
        return ((INSTANT, moment),) if moment is not None else ()
    if isinstance(value, str):
        return _literal_views(Literal(value))
    return ()


def _literal_views(literal: Literal) -> tuple[View, ...]:
    text, datatype = literal.text, literal.datatype
    if literal.language:
        return ((f"text@{literal.language}", text), (TEXT, text))
    if datatype is None or datatype == XSD + "string":
        if (as_number := number(text)) is not None:
            return ((NUMBER, as_number), (TEXT, text))
        if (as_instant := instant(text)) is not None:
            return ((INSTANT, as_instant), (TEXT, text))
        return ((TEXT, text),)
    typed: View | None = None
    if datatype in _NUMERIC:
        typed = (NUMBER, number(text))
    elif datatype in _INSTANTS:
        typed = (INSTANT, instant(text))
    elif datatype == XSD + "boolean":
        typed = (BOOLEAN, boolean(text))
    else:
        return ((datatype, text),)
    return (typed,) if typed[1] is not None else ()


def constant_view(constant: Iri | Literal, fold: bool = False) -> View | None:
    """The one view a subscription's constant is compared by: as written, never as it might be read."""
    if (
        isinstance(constant, Literal)
        and not constant.language
        and constant.datatype in (None, XSD + "string")
    ):
        return (TEXT, constant.text.casefold() if fold else constant.text)
    found = views(constant, fold)
    return found[0] if found else None


def compare(value: object, op: str, constant: Iri | Literal, fold: bool = False) -> bool:
    """Whether `value op constant` holds; `fold`, here and below, disregards the case of texts."""
    return any(_holds(view, op, constant_view(constant, fold)) for view in views(value, fold))


def compare_values(left: object, op: str, right: object, fold: bool = False) -> bool:
    """Whether `left op right` holds for two values of an event, by the first kind they share."""
    others = dict(views(right, fold))
    for kind, key in views(left, fold):
        if kind in others:
            return _holds((kind, key), op, (kind, others[kind]))
    return False


def between(value: object, low: Iri | Literal, high: Iri | Literal, fold: bool = False) -> bool:
    """Whether one and the same view of `value` lies between both bounds, which are included."""
    bounds = constant_view(low, fold), constant_view(high, fold)
    return any(_holds(view, ">=", bounds[0]) and _holds(view, "<=", bounds[1]) for view in views(value, fold))


def one_of(value: object, options: Iterable[Iri | Literal], fold: bool = False) -> bool:
    return any(compare(value, "=", option, fold) for option in options)


def none_of(value: object, options: Iterable[Iri | Literal], fold: bool = False) -> bool:
    """`NOT IN`: comparable with at least one option, equal to none."""
    options = list(options)
    kinds = {view[0] for option in options if (view := constant_view(option))}
    return any(kind in kinds for kind, _ in views(value)) and not one_of(value, options, fold)


def _holds(view: View, op: str, other: View | None) -> bool:
    if other is None or view[0] != other[0]:
        return False
    if op not in ("=", "!=") and view[0] not in ORDERED:
        return False
    return OPERATORS[op](view[1], other[1])


def text_of(value: object) -> str | None:
    """The text that LIKE, CONTAINS and MATCHES test: a literal's text, an IRI's address; other values have none."""
    if isinstance(value, Literal):
        return value.text
    if isinstance(value, Iri):
        return value.value
    return value if isinstance(value, str) else None
