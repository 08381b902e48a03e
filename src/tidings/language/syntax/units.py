"""Converts numbers with units, `5000m`, `1.5km`, `20ms`, to plain numbers in the unit's base (m, s, kg, B).

The number is exact, whatever the unit: an integer if it is whole, a decimal otherwise. Units are case-sensitive: `MB` is
not `mB`.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal

from tidings.errors import did_you_mean
from tidings.formats.namespaces import XSD
from tidings.language.faults import Misread
from tidings.language.syntax.tokens import QUANTITY
from tidings.model.terms import Literal

# What is measured -> its units and how many of the base, the one of factor 1, each of them is.
UNITS: dict[str, dict[str, str]] = {
    "length": {"m": "1", "km": "1000", "cm": "0.01", "mm": "0.001", "ft": "0.3048", "mi": "1609.344"},
    "time": {
        "s": "1",
        "ms": "0.001",
        "us": "0.000001",
        "ns": "0.000000001",
        "min": "60",
        "h": "3600",
        "d": "86400",
    },
    "mass": {"kg": "1", "g": "0.001", "mg": "0.000001", "t": "1000", "lb": "0.45359237"},
    "bytes": {
        "B": "1",
        "kB": "1000",
        "MB": "1000000",
        "GB": "1000000000",
        "TB": "1000000000000",
        "KiB": "1024",
        "MiB": "1048576",
        "GiB": "1073741824",
        "TiB": "1099511627776",
    },
}
_FACTORS = {unit: Decimal(factor) for units in UNITS.values() for unit, factor in units.items()}
_PARTS = re.compile(r"([+-]?[\d.]+)(.+)")
_QUANTITY = re.compile(rf"[+-]?{QUANTITY}")
_SPLIT_QUANTITY = re.compile(r"([+-]?[\d.]+)\s+(\w+)")


def is_quantity(text: str) -> bool:
    """Whether a text is spelled like a number with a unit, known or not."""
    return _QUANTITY.fullmatch(text) is not None


def quantity(text: str) -> Literal:
    """The plain number that a number with a unit stands for."""
    number, unit = _PARTS.fullmatch(text).groups()  # type: ignore[union-attr]
    factor = _FACTORS.get(unit)
    if factor is None:
        raise Misread(f"unknown unit {unit!r}", _suggest(unit))
    product = Context(prec=len(number) + 20).multiply(Decimal(number), factor)
    written = format(product, "f")
    if "." in written:
        written = written.rstrip("0").rstrip(".")
    return Literal(written, XSD + ("decimal" if "." in written else "integer"))


def join_quantity(text: str) -> str | None:
    """`5km` if the text is `5 km`: a number and a known unit with a blank between."""
    found = _SPLIT_QUANTITY.fullmatch(text)
    return found[1] + found[2] if found and found[2] in _FACTORS else None


def _suggest(unit: str) -> str:
    for known in _FACTORS:
        if known.lower() == unit.lower():
            return f"did you mean '{known}'?"
    return did_you_mean(unit, _FACTORS, f"known units are {', '.join(_FACTORS)}", 0.75)
