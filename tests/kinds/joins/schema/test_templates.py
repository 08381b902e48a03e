"""A template filled from a table has the ranges of the texts that it stands for."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from tests.kinds.joins.cases import DOMAINS
from tidings.engine.engine import Engine
from tidings.errors import SubscriptionError
from tidings.kinds.joins.schema.order_keys import ARROW, HIGHEST
from tidings.kinds.joins.schema.ranges import EMPTY, Range
from tidings.kinds.joins.schema.shape import outline, read
from tidings.kinds.joins.schema.table import Table, plain
from tidings.kinds.joins.schema.templates import fill
from tidings.language.parser import parse

EVERY = {"every": Table("every", {kind: kind for kind in DOMAINS})}
ENDS = {"integer": [2**63 - 1, -(2**63) + 1], "number": [1.7976931348623157e308, -5e-324]}


def filled(where, **columns):
    _, selections = outline(parse(f"SELECT * FROM every WHERE {where}"), EVERY)
    return fill(selections, pa.table(columns))


def said(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return "'" + str(plain(value)).replace("'", "''") + "'"


@pytest.mark.parametrize("kind", DOMAINS)
@pytest.mark.parametrize(
    "form", ["{} = $a", "{} > $a", "{} >= $a AND {} < $b", "{} BETWEEN $a AND $b", "{} IN ($a, $b)"]
)
def test_ranges_are_those_of_the_texts(kind, form):
    if kind == "boolean" and ("<" in form or ">" in form or "BETWEEN" in form):
        pytest.skip("truth values have no order")
    rng = random.Random(form)
    domain = DOMAINS[kind] + ENDS.get(kind, [])
    columns = {name: [rng.choice(domain) for _ in range(60)] for name in "ab" if f"${name}" in form}
    template = form.replace("{}", kind)
    (found,) = filled(template, **{name: pa.array(column, ARROW[kind]) for name, column in columns.items()})
    by_rows = kind == "text" or "IN" in form
    assert (found.ranges is not None) == by_rows
    for row in range(60):
        text = template
        for name, column in columns.items():
            text = text.replace(f"${name}", said(column[row]))
        _, (expected,) = read(parse(f"SELECT * FROM every WHERE {text}"), EVERY)
        assert (found.low[row], found.high[row]) == (expected.low, expected.high), text
        assert found.ranges is None or found.ranges[row] == expected


def test_constants_and_parameters_limit_together():
    (found,) = filled("integer BETWEEN 3 AND $a AND integer > $b", a=[5, 2, 9], b=[1, 1, 4])
    assert list(zip(found.low, found.high, strict=True)) == [(3, 5), (EMPTY.low, EMPTY.high), (5, 9)]


def test_columns_of_other_types():
    halves = [4.5, 4.0]
    (found,) = filled("integer > $a", a=halves)
    assert found.ranges == [Range(5, HIGHEST)] * 2
    (found,) = filled("number > $a", a=pa.array([1], pa.int8()))
    assert found.ranges is None
    (found,) = filled("date <= $a", a=["2020-01-01", "2020-01-02"])
    assert found.high[1] == found.high[0] + 1
    (found,) = filled("timestamp >= $a", a=pa.array([datetime(2020, 1, 1)], pa.timestamp("s")))
    assert found.low[0] == datetime(2020, 1, 1, tzinfo=UTC).timestamp() * 1_000_000
    (found,) = filled("timestamp >= $a", a=[date(2020, 1, 1)])
    assert found.low[0] == datetime(2020, 1, 1, tzinfo=UTC).timestamp() * 1_000_000


def test_integers_that_a_column_cannot_hold():
    (found,) = filled("integer < $a", a=pa.array([2**64 - 1, 5], pa.uint64()))
    assert found.high.tolist() == [HIGHEST, 4]
    (found,) = filled("number < $a", a=[2**53 + 1, 5])
    assert found.high[0] > found.high[1]


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int8(), pa.string())])
def test_every_row_has_its_own_text(kind):
    engine = Engine(tables=EVERY.values())
    engine.subscribe_table(
        "FROM every WHERE text = $a", pa.table({"id": ["1", "2"], "a": pa.array(["x", "y"], kind)})
    )
    assert [engine.text(id) for id in ("1", "2")] == [f"FROM every WHERE text = '{a}'" for a in "xy"]


@pytest.mark.parametrize(
    ("where", "columns", "words"),
    [
        ("integer > $a", {"b": [1]}, "no column 'a'"),
        ("integer > $a", {"a": [1, None]}, "no value in 1 rows"),
        ("number > $a", {"a": [1.0, float("nan")]}, "not finite"),
        ("integer > $a", {"a": ["x"]}, "it needs a number"),
        ("text > $a", {"a": [5]}, "it needs a 'quoted text'"),
        ("boolean < $a", {"a": [True]}, "no order"),
        ("text = $a", {"a": [b"x"]}, "give numbers, texts"),
        ("integer IN ($a)", {"a": [[1]]}, "give numbers, texts"),
    ],
)
def test_what_does_not_fit_is_said(where, columns, words):
    with pytest.raises(SubscriptionError, match=words):
        filled(where, **columns)
