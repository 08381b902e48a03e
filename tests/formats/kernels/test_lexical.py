"""Numbers and instants read from bytes are those that `values` reads from text."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.examples import examples
from tidings.formats.kernels.lexical import LONG, NO, YES, read_instant, read_number
from tidings.model import values

_digits = st.text("0123456789", max_size=22)
_numbers = st.one_of(
    st.from_regex(r"[+-]?[0-9]{0,20}\.?[0-9]{0,20}([eE][+-]?[0-9]{0,4})?", fullmatch=True),
    st.decimals(allow_nan=True).map(str),
    st.floats().map(repr),
    st.integers().map(str),
    st.text("0123456789+-.eE ", max_size=12),
    st.builds("{}.{}".format, _digits, _digits),
)
_fields = st.builds(
    "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}".format,
    st.integers(0, 9999), st.integers(0, 13), st.integers(0, 32), st.integers(0, 25), st.integers(0, 61), st.integers(0, 61),
)  # fmt: skip
_fractions = st.one_of(st.just(""), st.text("0123456789", max_size=14).map(".{}".format))
_zones = st.sampled_from(
    ["", "Z", "z", "+01:00", "-23:59", "+99:99", "+1:00", "+0100", "+01:0", "+01:000", "-"]
)
_dates = st.dates().map(str)
_near_misses = st.builds(
    lambda text, at, char, lost: text[:at] + char + text[at + lost :],
    st.one_of(_fields, _dates, st.datetimes().map(lambda moment: moment.isoformat())),
    st.integers(0, 28),
    st.sampled_from(["", "0", "9", "-", ":", "T", " ", ".", "é"]),
    st.integers(0, 2),
)
_instants = st.one_of(
    st.builds("{}{}{}".format, _fields, _fractions, _zones),
    st.builds("{}{}".format, _dates, _zones),
    _near_misses,
)


def blob(text: str) -> tuple[np.ndarray, int, int]:
    """`text` in the middle of other bytes, which must not be looked at."""
    return np.frombuffer(b"9" + text.encode() + b"9", dtype=np.uint8), 1, 1 + len(text.encode())


@examples(150)
@given(_numbers)
@example("")
@example(".")
@example("+")
@example("-.e1")
@example("1e")
@example("5.")
@example("5.e3")
@example("-0")
@example("0e999")
@example("1" * 400)
@example("1" * 401)
@example("0" * 500 + "1")
@example("1e-999")
@example("999999999999999999")
@example("1000000000000000000")
@example("١٢")
def test_numbers(text: str) -> None:
    expected = values.number(text)
    status, mantissa, exponent, approximation = read_number(*blob(text))
    if status == LONG:
        return  # left to `values`, whatever it says
    assert (status == YES) == (expected is not None)
    assert status in (YES, NO)
    if expected is not None:
        assert Fraction(int(mantissa)) * Fraction(10) ** int(exponent) == expected
        assert mantissa % 10 or not mantissa  # equal numbers are equal pairs
        assert float(expected) == pytest.approx(approximation, rel=1e-14)


@given(st.integers(-(10**18) + 1, 10**18 - 1), st.integers(-200, 200))
def test_ordinary_numbers_are_never_left_to_others(mantissa: int, exponent: int) -> None:
    assert read_number(*blob(f"{mantissa}e{exponent}"))[0] == YES


@examples(150)
@given(_instants)
@example("2004-02-29")
@example("2100-02-29")
@example("2000-02-29T23:59:59.999999999999Z")
@example("0001-01-01T00:00:00+99:99")
@example("0000-01-01")
@example("9999-12-31T23:59:59-99:99")
@example("2004-01-31T")
@example("2004-01-31T10")
@example("2004-01-31T10:00:")
@example("2004-01-31T10:00.5")
@example("2004-01-31T24:00:00")
@example("1969-12-31T23:59:59.5Z")
def test_instants(text: str) -> None:
    expected = values.instant(text)
    is_one, micros = read_instant(*blob(text))
    assert bool(is_one) == (expected is not None)
    if expected is not None:
        assert micros == expected


@given(st.datetimes())
def test_every_moment_python_can_write_is_read(moment: datetime) -> None:
    assert read_instant(*blob(moment.isoformat()))[0]
