from __future__ import annotations

import math
from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.kinds.joins.schema.order_keys import ARROW, HIGHEST, LOWEST, NULL, key_of, keys_of

TEXT = st.text(st.sampled_from("a\0b\x7f\u00e9\u20ac\U0001f600z"), max_size=12)
VALUES = {
    "integer": st.integers(-(2**63) + 1, 2**63 - 1),
    "number": st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0),
    "text": TEXT | st.text(),
    "boolean": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(UTC)),
}


@pytest.mark.parametrize("kind", VALUES)
def test_keys_have_the_order_of_the_values(kind):
    @given(VALUES[kind], VALUES[kind])
    def check(value, other):
        low, high = sorted((value, other))
        assert NULL < LOWEST <= key_of(kind, low) <= key_of(kind, high) <= HIGHEST
        if kind != "text":
            assert (key_of(kind, value) == key_of(kind, other)) == (value == other)

    check()


@pytest.mark.parametrize("kind", VALUES)
def test_keys_of_columns_are_those_of_their_values(kind):
    @given(st.lists(VALUES[kind] | st.none(), max_size=20), st.integers(0, 3))
    def check(values, start):
        array = pa.array(values, ARROW[kind]).slice(start)
        expected = [key_of(kind, value) for value in values[start:]]
        assert keys_of(kind, array).tolist() == expected
        assert keys_of(kind, array).dtype == np.int64

    check()


def test_keys_of_other_arrow_types():
    assert keys_of("integer", pa.array([1, None], pa.int16())).tolist() == [1, NULL]
    assert keys_of("number", pa.array([1.5], pa.float32())).tolist() == [key_of("number", 1.5)]
    assert keys_of("text", pa.array(["ab", None], pa.large_string())).tolist() == [key_of("text", "ab"), NULL]
    dictionary = pa.array(["ab", "c", "ab"]).dictionary_encode()
    assert keys_of("text", dictionary).tolist() == [key_of("text", text) for text in ("ab", "c", "ab")]
    assert keys_of("date", pa.nulls(2)).tolist() == [NULL, NULL]


def test_known_keys():
    assert key_of("number", -0.0) == key_of("number", 0.0) == 0
    assert key_of("number", math.nextafter(1.0, 2)) == key_of("number", 1.0) + 1
    assert key_of("number", math.nextafter(-1.0, -2)) == key_of("number", -1.0) - 1
    assert key_of("number", 5e-324) == 1
    assert key_of("number", -5e-324) == -2, "-1 would be -0.0"
    assert key_of("text", "") == LOWEST
    assert key_of("text", "stocks-1") == key_of("text", "stocks-10") < key_of("text", "stocks-2")
    assert key_of("boolean", True) == 1
    assert key_of("date", date(1970, 1, 2)) == 1
    assert key_of("timestamp", datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)) == -1
    assert key_of("integer", None) == NULL
