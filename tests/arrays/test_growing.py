"""A growing column holds what a list holds, and is read without a copy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.arrays.growing import Growing

NUMBERS = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=40)


@given(NUMBERS, st.lists(NUMBERS, max_size=12))
def test_it_holds_what_a_list_holds(first: list[int], more: list[list[int]]) -> None:
    column, expected = Growing(np.int32, first), list(first)
    for some in more:
        column.extend(some)
        expected += some
        for one in some[:2]:
            column.append(one)
            expected.append(one)
        assert len(column) == len(expected)
        assert column.all.tolist() == expected
        assert column.all.dtype == np.int32


def test_what_is_written_into_it_stays() -> None:
    column = Growing(np.float64, [1.0, 2.0])
    column.all[1] = 5.0
    for number in range(100):
        column.append(number)
    assert column.all[:3].tolist() == [1.0, 5.0, 0.0]


def test_it_takes_a_copy_of_what_it_is_given() -> None:
    given_array = np.arange(3, dtype=np.int32)
    column = Growing(np.int32, given_array)
    column.all[0] = 9
    assert given_array.tolist() == [0, 1, 2]


def test_appending_one_by_one_takes_no_copy_each() -> None:
    column, moved = Growing(np.int64), 0
    for number in range(10_000):
        before = column.all.__array_interface__["data"][0] if len(column) else None
        column.append(number)
        moved += before is not None and column.all.__array_interface__["data"][0] != before
    assert moved < 20


def test_a_number_too_large_is_refused_and_nothing_is_added() -> None:
    column = Growing(np.int8, [1])
    with pytest.raises(OverflowError):
        column.append(1000)
    assert column.all.tolist() == [1]


def test_names_from_a_generator() -> None:
    assert Growing(np.int32, (n * n for n in range(4))).all.tolist() == [0, 1, 4, 9]
