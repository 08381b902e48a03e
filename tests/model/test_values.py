"""What values mean. The table of LANGUAGE.md is tested with the language; here are the rules behind it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.formats.namespaces import XSD
from tidings.model import values
from tidings.model.terms import Blank, Iri, Literal
from tidings.model.values import OPERATORS, between, compare, compare_values, none_of, one_of, text_of


def integer(value: int) -> Literal:
    return Literal(str(value), XSD + "integer")


@given(st.decimals(allow_nan=False, allow_infinity=False), st.decimals(allow_nan=False, allow_infinity=False))
def test_numbers_compare_exactly(a: Decimal, b: Decimal) -> None:
    if values.number(str(a)) is None or values.number(str(b)) is None:  # an exponent beyond three digits
        return
    for op, holds in OPERATORS.items():
        assert compare(Literal(str(a)), op, Literal(str(b), XSD + "decimal")) == holds(
            Fraction(a), Fraction(b)
        )


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_an_attribute_is_the_number_its_text_says(value: float) -> None:
    assert compare(value, "=", Literal(repr(value), XSD + "double"))
    assert compare_values(value, "=", repr(value))


def test_the_attributes_of_a_json_event() -> None:
    assert compare(0.1, "=", Literal("0.1", XSD + "decimal"))
    assert compare(5, "=", integer(5))
    assert compare("5", "=", integer(5))
    assert compare(True, "=", Literal("true", XSD + "boolean"))
    assert not compare(True, "=", integer(1))
    assert not compare(float("nan"), "!=", integer(1))
    assert not compare(float("inf"), ">", integer(1))
    assert not compare(None, "!=", integer(1))
    assert not compare({"a": 1}, "!=", integer(1))
    assert compare(Decimal("2.50"), "=", Literal("2.5", XSD + "decimal"))
    assert not compare(Decimal("NaN"), "!=", integer(1))
    assert compare(date(2004, 1, 31), "=", Literal("2004-01-31", XSD + "date"))
    assert compare(datetime(2004, 1, 31, 10, tzinfo=UTC), ">", Literal("2004-01-31", XSD + "date"))


@given(st.datetimes(), st.datetimes())
def test_instants_compare_on_the_time_line(a: datetime, b: datetime) -> None:
    for op, holds in OPERATORS.items():
        constant = Literal(b.isoformat(), XSD + "dateTime")
        assert compare(Literal(a.isoformat()), op, constant) == holds(a, b)
        assert compare(a, op, constant) == holds(a, b)


@given(st.text(), st.text())
def test_texts_compare_by_code_point(a: str, b: str) -> None:
    for op, holds in OPERATORS.items():
        assert compare(Literal(a), op, Literal(b)) == holds(a, b)
        assert compare(Literal(a, None, "en"), op, Literal(b)) == holds(a, b)  # the tag is not asked for


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize(
    ("value", "constant"),
    [
        (Literal("abc"), integer(5)),
        (integer(5), Literal("5")),
        (Iri("urn:a"), Literal("urn:a")),
        (Blank("b"), Literal("b")),
        (Literal("5", "urn:size"), integer(5)),
        (Literal("5", "urn:size"), Literal("5", "urn:other")),
        (Literal("Haus"), Literal("Haus", None, "de")),
        (Literal("Haus", None, "en"), Literal("Haus", None, "de")),
        (Literal("true"), Literal("true", XSD + "boolean")),
        (Literal("x", XSD + "integer"), integer(5)),
        (Literal("2004-01-31", XSD + "date"), integer(2004)),
    ],
)
def test_values_of_different_kinds_satisfy_nothing(value: object, op: str, constant: Literal) -> None:
    assert not compare(value, op, constant)


@pytest.mark.parametrize(
    ("value", "same", "other"),
    [
        (Iri("urn:b"), Iri("urn:b"), Iri("urn:a")),
        (Literal("1", XSD + "boolean"), Literal("true", XSD + "boolean"), Literal("false", XSD + "boolean")),
        (Literal("b", "urn:t"), Literal("b", "urn:t"), Literal("a", "urn:t")),
        (Literal("b", None, "de"), Literal("b", None, "de"), Literal("a", None, "de")),
    ],
)
def test_kinds_without_an_order(value: object, same: Literal, other: Literal) -> None:
    assert compare(value, "=", same)
    assert compare(value, "!=", other)
    assert not any(compare(value, op, c) for op in ("<", "<=", ">", ">=") for c in (same, other))
    assert not between(value, same, same)


def test_between_asks_one_view_for_both_bounds() -> None:
    assert between(Literal("7"), integer(5), integer(10))
    assert between(Literal("7"), Literal("6"), Literal("8"))
    assert not between(Literal("7"), integer(5), Literal("8"))
    assert not between(Literal("7"), integer(10), integer(5))


def test_in_and_not_in() -> None:
    assert one_of(Literal("7"), [integer(6), Literal("7.0", XSD + "decimal")])
    assert not one_of(Literal("7"), [])
    assert none_of(Literal("abc"), [integer(1), Literal("x")])
    assert not none_of(Literal("abc"), [integer(1)])
    assert not none_of(Literal("1"), [integer(1), Literal("x")])
    assert not none_of(None, [integer(1)])


def test_two_values_of_an_event_compare_by_the_first_kind_they_share() -> None:
    assert compare_values(Literal("10"), ">", Literal("9"))  # numbers, not texts
    assert compare_values(Literal("b", None, "en"), ">", Literal("a", None, "de"))
    assert not compare_values(Literal("a"), "!=", Iri("urn:a"))
    assert not compare_values(Blank("b"), "=", Blank("b"))


@given(st.text(), st.text())
def test_folding_disregards_the_case_of_texts(a: str, b: str) -> None:
    for op, holds in OPERATORS.items():
        assert compare(Literal(a), op, Literal(b), fold=True) == holds(a.casefold(), b.casefold())
    assert compare(Literal(a, None, "de"), "=", Literal(a.swapcase(), None, "de"), fold=True) == (
        a.casefold() == a.swapcase().casefold()
    )


def test_folding_leaves_other_kinds_as_they_are() -> None:
    moment = Literal("2004-01-31T10:00:00Z", XSD + "dateTime")
    assert compare("2004-01-31T10:00:00Z", "=", moment, fold=True)
    assert compare("1E2", "=", integer(100), fold=True)
    assert compare_values("2004-01-31T10:00:00Z", "=", "2004-01-31t10:00:00z", fold=True)
    assert not compare(Iri("urn:A"), "=", Iri("urn:a"), fold=True)
    assert between("B", Literal("a"), Literal("c"), fold=True)
    assert one_of("RED", [Literal("Red")], fold=True)
    assert not none_of("RED", [Literal("Red")], fold=True)
    assert none_of("RED", [Literal("Red")])


def test_numbers_of_any_python_type() -> None:
    third = Fraction(1, 3)
    assert compare_values(third, "<", 0.34)
    assert compare_values(third + third + third, "=", "1.0")
    assert compare(np.float64(0.1), "=", Literal("0.1", XSD + "decimal"))
    assert compare(10**4000, ">", integer(5))


def test_what_text_tests_look_at() -> None:
    assert text_of(Literal("a", "urn:t")) == "a"
    assert text_of(Iri("urn:a")) == "urn:a"
    assert text_of("x") == "x"
    assert text_of(Blank("b")) is text_of(5) is text_of(None) is None
