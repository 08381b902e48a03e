from __future__ import annotations

import random
from datetime import UTC, date, datetime

import pytest

from tests.kinds.joins.cases import DOMAINS, GRAPHS, some_query, some_tables
from tidings.errors import SubscriptionError
from tidings.kinds.joins.schema.order_keys import HIGHEST, LOWEST, key_of
from tidings.kinds.joins.schema.shape import ALL, EMPTY, JoinShape, Range, admits, is_empty, read
from tidings.kinds.joins.schema.table import Table
from tidings.language.parser import parse

TABLES = {
    table.name: table
    for table in (
        Table(
            "stocks",
            {"symbol": "text", "per": "integer", "price": "number", "note": "text"},
            ["symbol"],
            ["note"],
        ),
        Table("reviews", {"symbol": "text", "rating": "integer", "by": "integer", "listed": "boolean"}),
        Table("people", {"id": "integer", "born": "date", "seen": "timestamp", "symbol": "text"}, ["id"]),
        Table("sites", {"host": "text", "owner": "integer"}),
    )
}
BOTH = "SELECT * FROM stocks JOIN reviews USING (symbol)"


def shape_of(text):
    return read(parse(text), TABLES)[0]


def range_of(condition, table="stocks"):
    shape, ranges = read(parse(f"SELECT * FROM {table} WHERE {condition}"), TABLES)
    assert len(shape.selections) == 1
    return ranges[0]


def number(value):
    return key_of("number", value)


def test_a_shape_is_what_subscriptions_share():
    text = BOTH + " WHERE stocks.per BETWEEN 45 AND 70 AND reviews.rating >= 6"
    shape, ranges = read(parse(text), TABLES)
    assert shape == JoinShape(("stocks", "reviews"), (((0, 0), (1, 0)),), ((0, 1), (1, 1)))
    assert ranges == (Range(45, 70), Range(6, HIGHEST))
    other, _ = read(parse(BOTH + " WHERE rating IN (1, 2) AND per = 5 AND per > 3"), TABLES)
    assert other == shape
    assert shape.one_key


def test_one_table_is_a_join_too():
    shape, ranges = read(parse("SELECT * FROM stocks WHERE per > 50"), TABLES)
    assert shape == JoinShape(("stocks",), (), ((0, 1),))
    assert ranges == (Range(51, HIGHEST),)
    assert shape.one_key


def test_a_using_column_stands_for_all_it_equates():
    three = BOTH + " JOIN people USING (symbol)"
    shape, ranges = read(parse(three + " WHERE symbol = 'A' AND people.symbol < 'B'"), TABLES)
    assert shape.variables == (((0, 0), (1, 0), (2, 3)),)
    assert shape.selections == ((0, 0), (1, 0), (2, 3))
    key = key_of("text", "A")
    assert ranges == (Range(key, key, (), "A", "A"),) * 3
    assert shape.one_key


def test_equalities_are_gathered_into_variables():
    chain = shape_of(f"{BOTH} JOIN people ON reviews.by = people.id JOIN sites ON owner = id")
    assert chain.variables == (((0, 0), (1, 0)), ((1, 2), (2, 0), (3, 1)))
    assert not chain.one_key
    cycle = shape_of(f"{BOTH} JOIN people ON by = id AND people.symbol = stocks.symbol")
    assert cycle.variables == (((0, 0), (1, 0), (2, 3)), ((1, 2), (2, 0)))
    later = (
        "SELECT * FROM stocks JOIN sites ON host = symbol JOIN people ON owner = id AND host = people.symbol"
    )
    assert shape_of(later).variables == (((0, 0), (1, 0), (2, 3)), ((1, 1), (2, 0)))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("per > 4", Range(5, HIGHEST)),
        ("per > 4.5", Range(5, HIGHEST)),
        ("per >= 4.5", Range(5, HIGHEST)),
        ("per < 4.5", Range(LOWEST, 4)),
        ("per <= -4.5", Range(LOWEST, -5)),
        ("per = 5.0", Range(5, 5)),
        ("per = 4.5", EMPTY),
        ("per IN (3, 4.5, 1, 3)", Range(1, 3, (1, 3))),
        ("per IN (3, 4.5)", Range(3, 3)),
        ("per IN (1, 2, 3, 4) AND per BETWEEN 2 AND 3.5", Range(2, 3, (2, 3))),
        ("per IN (1, 2, 3) AND per IN (2, 4, 3)", Range(2, 3, (2, 3))),
        ("per IN (1, 2) AND per > 1", Range(2, 2)),
        ("per BETWEEN 5 AND 4", EMPTY),
        ("per > 4 AND per < 5", EMPTY),
        ("per > 9223372036854775807", EMPTY),
        ("per < 9223372036854775807", Range(LOWEST, HIGHEST - 1)),
        ("per <= 9999999999999999999", ALL),
        ("per >= -9999999999999999999", ALL),
        ("per <= -9999999999999999999", EMPTY),
        ("per = 9999999999999999999", EMPTY),
        ("5 < per", Range(6, HIGHEST)),
        ("price > 0.1", Range(number(0.1) + 1, HIGHEST)),
        ("price <= 1e300", Range(LOWEST, number(1e300))),
        ("price < 1e999", Range(LOWEST, number(float("inf")) - 1)),
        ("price > -1e999", Range(number(float("-inf")) + 1, HIGHEST)),
        ("price = 0", Range(0, 0)),
        ("price IN (-1, 1)", Range(number(-1.0), number(1.0), (number(-1.0), number(1.0)))),
    ],
)
def test_ranges_of_numbers_are_exact(condition, expected):
    assert range_of(condition) == expected
    assert is_empty(expected) == (expected == EMPTY)


def test_ranges_of_other_types():
    day, moment = date(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC)
    days, micros = key_of("date", day), key_of("timestamp", moment)
    assert range_of("born > 2020-01-01", "people") == Range(days + 1, HIGHEST)
    assert range_of("born > 2020-01-01T10:00:00Z", "people") == Range(days + 1, HIGHEST)
    assert range_of("born <= '2020-01-01T10:00:00Z'", "people") == Range(LOWEST, days)
    assert range_of("born = 2020-01-01T10:00:00Z", "people") == EMPTY
    assert range_of("seen >= 2020-01-01", "people") == Range(micros, HIGHEST)
    assert range_of("seen < '2020-01-01T00:00:00.000001Z'", "people") == Range(LOWEST, micros)
    assert range_of("listed = true", "reviews") == Range(1, 1)
    assert range_of("listed IN (false, true)", "reviews") == Range(0, 1, (0, 1))


def test_texts_decide_where_keys_are_equal():
    low, high = "prefix-aa", "prefix-ab"
    key = key_of("text", low)
    assert key == key_of("text", high)
    between = range_of(f"symbol > '{low}' AND symbol <= '{high}'")
    assert between == Range(key, key, (), low, high, low_open=True)
    assert [text for text in (low, low + "x", high, high + "x") if admits(between, text)] == [low + "x", high]
    assert range_of(f"symbol < '{high}' AND symbol <= '{high}'").high_open
    assert range_of(f"symbol >= '{low}' AND symbol > '{low}'").low_open
    assert range_of(f"symbol > '{low}' AND symbol >= '{high}'") == Range(key, HIGHEST, (), high)
    assert range_of(f"symbol >= '{high}' AND symbol <= '{low}'") == EMPTY
    assert range_of(f"symbol > '{low}' AND symbol <= '{low}'") == EMPTY
    admitted = range_of(f"symbol IN ('{high}', 'z', '{low}') AND symbol >= '{low}' AND symbol < 'z'")
    assert admitted == Range(key, key, (low, high), low, high)
    assert admits(admitted, high)
    assert not admits(admitted, low + "a")
    assert range_of("symbol >= ''") == Range(LOWEST, HIGHEST, (), "")


def test_null_is_in_no_range():
    assert not admits(ALL, None)
    assert all(admits(ALL, value) for value in ("", 0, 0.0, False))


@pytest.mark.parametrize("kind", DOMAINS)
def test_ranges_admit_what_their_conditions_do(kind):
    """Against comparisons of Python values, which know nothing of keys."""
    rng = random.Random(kind)
    table = {"t": Table("t", {"x": kind})}

    def said(value):
        return repr(value) if kind in ("integer", "number") else "'" + str(value).replace("'", "''") + "'"

    compare = {
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
        "=": lambda a, b: a == b,
    }
    for _ in range(200):
        if kind == "boolean":
            tests = [("=", value) for value in rng.sample([True, False], rng.randint(1, 2))]
            text = " AND ".join(f"x = {str(value).lower()}" for _, value in tests)
        else:
            tests = [(rng.choice(list(compare)), rng.choice(DOMAINS[kind])) for _ in range(rng.randint(1, 3))]
            text = " AND ".join(
                f"x {op} {said(v).replace(' ', 'T').replace('+00:00', '')}" for op, v in tests
            )
        _, (found,) = read(parse(f"SELECT * FROM t WHERE {text}"), table)
        for value in DOMAINS[kind]:
            assert admits(found, value) == all(compare[op](value, other) for op, other in tests), text


@pytest.mark.parametrize("seed", range(30))
def test_shapes_of_random_joins_hang_together(seed):
    rng = random.Random(seed)
    tables = some_tables(rng)
    case = some_query(rng, tables, GRAPHS[seed % 4])
    assert parse(case.text) == case.query
    shape, ranges = read(case.query, {table.name: table for table in tables})
    assert len(shape.selections) == len(ranges)
    assert list(shape.selections) == sorted(set(shape.selections))
    assert list(shape.variables) == sorted(shape.variables)
    linked = {0}
    for _ in shape.tables:
        for places in shape.variables:
            assert list(places) == sorted(places)
            slots = [slot for slot, _ in places]
            assert len(set(slots)) == len(slots) > 1
            if linked & set(slots):
                linked |= set(slots)
    assert linked == set(range(len(shape.tables)))
    for found in ranges:
        assert LOWEST <= min(found.low, found.high) <= max(found.low, found.high) <= HIGHEST
        assert found == EMPTY or not is_empty(found)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT * FROM stock WHERE per > 1", "there is no table 'stock'; did you mean 'stocks'"),
        ("SELECT * FROM stocks JOIN nowhere USING (symbol)", "there is no table 'nowhere'"),
        (BOTH + " WHERE ratin > 5", "there is no column 'ratin'; did you mean 'rating'"),
        (
            BOTH + " WHERE stocks.ratin > 5",
            "table 'stocks' has no column 'ratin'; its columns are symbol",
        ),
        ("SELECT * FROM stocks JOIN reviews USING (per)", "table 'reviews' has no column 'per'"),
        (
            "SELECT * FROM stocks JOIN sites ON stocks.symbol = sites.hst",
            "table 'sites' has no column 'hst'; did you mean 'host'",
        ),
        (
            "SELECT * FROM stocks JOIN reviews ON stocks.symbol = reviews.symbol WHERE symbol = 'A'",
            "several tables",
        ),
        (
            "SELECT * FROM stocks JOIN sites ON host = symbol JOIN reviews USING (owner)",
            "'reviews' has no column",
        ),
        (
            "SELECT * FROM stocks JOIN sites ON host = symbol JOIN people ON owner = id JOIN reviews USING (symbol)",
            "'symbol' is a column of several tables; write stocks.symbol or people.symbol",
        ),
        ("SELECT * FROM stocks JOIN reviews ON symbol = symbol", "several tables"),
        ("SELECT * FROM stocks JOIN reviews ON stocks.per = stocks.price", "two columns of 'stocks'"),
        (
            "SELECT * FROM stocks JOIN reviews ON stocks.per = reviews.symbol",
            "integer, reviews.symbol of type text",
        ),
        ("SELECT * FROM stocks JOIN reviews ON price = rating", "number, reviews.rating of type integer"),
        ("SELECT * FROM stocks JOIN reviews ON per = rating AND per = by", "reviews.rating and reviews.by"),
        (
            "SELECT * FROM stocks JOIN reviews USING (symbol) JOIN sites ON stocks.per = reviews.by",
            "'sites' is joined on no column",
        ),
        ("SELECT * FROM stocks WHERE note = 'x'", "stocks.note is payload"),
        ("SELECT * FROM stocks JOIN sites ON note = host", "stocks.note is payload"),
        (BOTH + " WHERE per > 1 OR rating > 1", "OR stands"),
        (BOTH + " WHERE NOT per > 1", "NOT stands"),
        (BOTH + " WHERE per NOT IN (1, 2)", "NOT IN stands"),
        (BOTH + " WHERE symbol LIKE 'A%'", "LIKE stands"),
        (BOTH + " WHERE EXISTS per", "EXISTS stands"),
        (BOTH + " WHERE per != 1", "compared by !="),
        (BOTH + " WHERE per = rating", "no constant"),
        (BOTH + " WHERE per + 1 = 5", "something else than a column"),
        (BOTH + " WHERE per = 'five'", "type integer is compared with 'five'; it needs a number"),
        (BOTH + " WHERE symbol = 5", "type text is compared with 5; it needs a 'quoted text'"),
        (BOTH + " WHERE listed = 1", "type boolean is compared with 1; it needs true or false"),
        (BOTH + " WHERE listed > false", "no order"),
        ("SELECT * FROM people WHERE born > 5", "a date or time such as"),
        ("SELECT * FROM people WHERE born > 'today'", "'today'; it needs a date"),
        (BOTH + " WHERE per > $least", "least has no value yet"),
        ("SELECT * FROM stocks WHERE per > 1 VIA net AT 'x'", "leave VIA out"),
    ],
)
def test_what_a_join_cannot_ask(text, words):
    with pytest.raises(SubscriptionError, match=words.replace("$", r"\$")) as error:
        shape_of(text)
    assert "\n" not in str(error.value)
