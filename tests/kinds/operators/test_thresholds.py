"""Many comparisons at once say what the one comparison of values says, or nothing."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tidings.formats.namespaces import XSD
from tidings.kinds.operators.kernels.layout import FALSE, TRUE
from tidings.kinds.operators.thresholds import Thresholds
from tidings.model import values
from tidings.model.terms import Iri, Literal

EDGES = [0, 1, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**60 + 1, 10**400, 5, -3]
PARTS = [0.1, 0.5, -0.0, 1e-320, 5e-324, 1.7976931348623157e308, 9007199254740993.0, 0.30000000000000004]

NUMBERS: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(EDGES),
    st.integers(),
    st.sampled_from(PARTS),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(allow_nan=False, allow_infinity=False, places=3),
    st.fractions(),
)
VALUES = st.one_of(
    NUMBERS,
    st.booleans(),
    st.sampled_from(["5", "0.1", "1e3", "x", "", "true", "2004-01-31"]),
    st.sampled_from([Literal("5", XSD + "integer"), Literal("5"), Iri("urn:5")]),
)


def written(number: object) -> Literal:
    if isinstance(number, float):
        return Literal(repr(number), XSD + "double")
    return Literal(str(number), XSD + ("integer" if isinstance(number, int) else "decimal"))


CONSTANTS = st.one_of(
    NUMBERS.filter(lambda n: not isinstance(n, Fraction)).map(written),
    # The exact digits of a double, which are not how it is written.
    st.sampled_from(PARTS).map(lambda number: Literal(format(Decimal(number), "f"), XSD + "decimal")),
    st.sampled_from(
        [Literal("5"), Literal("true", XSD + "boolean"), Iri("urn:5"), Literal("x", XSD + "integer")]
    ),
)
TESTS = st.tuples(st.integers(0, 1), st.sampled_from(sorted(values.OPERATORS)), CONSTANTS)


def truths_of(tests: Iterable[Any], rows: list[tuple[Any, ...]]) -> list[int]:
    wanted = list(tests)
    thresholds = Thresholds()
    thresholds.grow(len(wanted))
    numbers = np.arange(len(wanted))
    assert thresholds.unknown(numbers).tolist() == numbers.tolist()
    for number, test in enumerate(wanted):
        thresholds.note(number, test)
    assert thresholds.unknown(numbers).tolist() == []
    return [int(truth) for truth in thresholds.truths(numbers, rows)]


@examples(100)
@given(st.lists(TESTS, min_size=1, max_size=5), st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=3))
def test_many_at_once_are_told_as_one_by_one(tests: list[Any], rows: list[tuple[Any, ...]]) -> None:
    for truth, (position, op, constant) in zip(
        truths_of(([test] for test in tests), rows), tests, strict=True
    ):
        expected = any(values.compare(row[position], op, constant) for row in rows)
        assert truth in (0, TRUE if expected else FALSE), (position, op, constant)


@pytest.mark.parametrize(
    ("rows", "test", "truth"),
    [
        ([(60,)], (0, ">", written(50)), TRUE),
        ([(50,)], (0, ">", written(50)), FALSE),
        ([(20,), (60,)], (0, ">", written(50)), TRUE),
        ([(0.1,)], (0, ">", written(Decimal("0.1"))), FALSE),
        ([(0.1,)], (0, "=", written(Decimal("0.1"))), TRUE),
        ([("a", 7.5)], (1, "<=", written(8)), TRUE),
        ([(2**53,)], (0, "<", written(2**53)), FALSE),
        # The double nearest to a tenth is more than a tenth, which 0.1 is.
        ([(0.1,)], (0, "<", written(Decimal.from_float(0.1))), 0),
        # What doubles do not hold, and what is no number, is not told here.
        ([(2**53 + 1,)], (0, "=", written(2**53)), 0),
        ([(1,)], (0, "=", written(2**53 + 1)), 0),
        ([(True,)], (0, "=", written(1)), 0),
        ([("60",)], (0, ">", written(50)), 0),
        ([(60,), (Decimal(60),)], (0, ">", written(50)), 0),
        ([("x",)], (0, "=", Literal("x")), 0),
        ([(60,)] * 17, (0, ">", written(50)), 0),
    ],
)
def test_what_is_told_and_what_is_left(rows: list[tuple[Any, ...]], test: Any, truth: int) -> None:
    assert truths_of([[test]], rows) == [truth]


def test_any_answer_and_something_else() -> None:
    nothing, both = [], [(0, ">", written(1)), (0, "<", written(9))]
    assert truths_of([nothing, None, both], [(5,)]) == [TRUE, 0, 0]
    assert truths_of([nothing], [()]) == [TRUE]


def test_predicates_that_come_later_find_room() -> None:
    thresholds = Thresholds()
    thresholds.grow(1)
    thresholds.note(0, [(0, ">", written(1))])
    thresholds.grow(1000)
    assert thresholds.unknown(np.arange(1000)).tolist() == list(range(1, 1000))
    assert thresholds.truths(np.array([0]), [(2,)]).tolist() == [TRUE]
