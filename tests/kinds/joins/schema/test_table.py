from __future__ import annotations

import json
import pickle
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from tidings.errors import EventError, TidingsError
from tidings.kinds.joins.schema.table import TYPES, Table, TableError, by_name

EVERY = Table("every", {kind: kind for kind in TYPES})
MOMENT = datetime(2004, 1, 31, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("column", "given", "value", "text"),
    [
        ("integer", 5, 5, "5"),
        ("integer", 2**63 - 1, 2**63 - 1, "9223372036854775807"),
        ("integer", -(2**63) + 1, -(2**63) + 1, "-9223372036854775807"),
        ("number", 1, 1.0, "1.0"),
        ("number", -0.0, 0.0, "0.0"),
        ("number", 1e300, 1e300, "1e+300"),
        ("text", '\u00e9"\n', '\u00e9"\n', '"\u00e9\\"\\n"'),
        ("boolean", False, False, "false"),
        ("date", "2004-01-31", date(2004, 1, 31), '"2004-01-31"'),
        ("date", date(2004, 1, 31), date(2004, 1, 31), '"2004-01-31"'),
        ("timestamp", "2004-01-31T10:00:00Z", MOMENT, '"2004-01-31T10:00:00.000000Z"'),
        ("timestamp", "2004-01-31T11:00+01:00", MOMENT, '"2004-01-31T10:00:00.000000Z"'),
        ("timestamp", "2004-01-31", MOMENT.replace(hour=0), '"2004-01-31T00:00:00.000000Z"'),
        ("timestamp", datetime(2004, 1, 31, 10), MOMENT, '"2004-01-31T10:00:00.000000Z"'),
        (
            "timestamp",
            datetime(2004, 1, 31, 9, 0, 0, 5, tzinfo=timezone(timedelta(hours=-1))),
            MOMENT.replace(microsecond=5),
            '"2004-01-31T10:00:00.000005Z"',
        ),
        ("timestamp", datetime(1, 1, 1), datetime(1, 1, 1, tzinfo=UTC), '"0001-01-01T00:00:00.000000Z"'),
        ("text", None, None, "null"),
    ],
)
def test_a_value_is_read_and_written(column, given, value, text):
    row = EVERY.read({column: given})
    found = row[TYPES.index(column)]
    assert found == value
    assert type(found) is type(value)
    assert [cell for cell in row if cell is not None] == ([] if value is None else [value])
    written = EVERY.text(row)
    assert f'"{column}":{text}' in written
    assert list(json.loads(written)) == list(TYPES)
    assert EVERY.read(json.loads(written)) == row, "the text reads as the row"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"integer": 2**63}, "63 bits"),
        ({"integer": -(2**63)}, "63 bits"),
        ({"integer": True}, "whole number"),
        ({"integer": 5.0}, "whole number"),
        ({"integer": "5"}, "whole number"),
        ({"number": float("nan")}, "finite"),
        ({"number": float("inf")}, "finite"),
        ({"number": 10**400}, "finite"),
        ({"number": False}, "finite"),
        ({"text": 5}, "text"),
        ({"text": "\ud800"}, "Unicode"),
        ({"boolean": 1}, "true or false"),
        ({"date": "2004-02-30"}, "2004-01-31"),
        ({"date": "20040131"}, "2004-01-31"),
        ({"date": MOMENT}, "2004-01-31"),
        ({"timestamp": "today"}, "2004-01-31T10"),
        ({"timestamp": 5}, "2004-01-31T10"),
        ({"timestamp": "0001-01-01T00:00:00+01:00"}, "2004-01-31T10"),
        ({"unknown": 5}, "no column 'unknown'; its columns are integer, number"),
        ({"text": ["x"] * 1000}, "every.text is .*; the column needs a text"),
    ],
)
def test_a_wrong_row_is_refused_in_a_sentence(row, words):
    with pytest.raises(EventError, match=words) as error:
        EVERY.read(row)
    assert len(str(error.value)) < 200


def test_a_key_needs_values():
    table = Table("t", {"a": "integer", "b": "text", "c": "text"}, key=["b", "a"])
    row = table.read({"a": 1, "b": "x"})
    assert row == (1, "x", None)
    assert table.key_of(row) == ("x", 1)
    with pytest.raises(EventError, match="has no b; every column of the key"):
        table.read({"a": 1})
    assert Table("t", {"a": "integer"}).key_of((1,)) == (1,)


def test_tables_are_values():
    table = Table("t", {"a": "integer", "b": "text"}, ["a"], ["b"])
    assert table == Table("t", {"a": "integer", "b": "text"}, ("a",), ("b",))
    assert len({table, Table("t", {"a": "integer", "b": "text"}, ("a",), ("b",))}) == 1
    assert pickle.loads(pickle.dumps(table)) == table
    assert pickle.loads(pickle.dumps(table)).names == ("a", "b")
    assert repr(table) == "Table(name='t', columns={'a': 'integer', 'b': 'text'}, key=('a',), payload=('b',))"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("", {"a": "text"}), "no name"),
        (("t", {}), "no columns"),
        (("t", ["a"]), "no columns"),
        (("t", {"": "text"}), "has the name ''"),
        (("t", {3: "text"}), "has the name 3"),
        (("t", {"a": "int"}), "t.a has the type 'int'; a type is one of integer"),
        (("t", {"a": "text"}, ["b"]), "key of 't' names 'b'; its columns are a"),
        (("t", {"a": "text"}, [], ["b"]), "payload of 't' names 'b'"),
        (("t", {"a": "text"}, "a"), r"is a text; give a list such as \['a'\]"),
        (("t", {"a": "text"}, ["a", "a"]), "names a column twice"),
    ],
)
def test_a_table_that_cannot_be(arguments, words):
    with pytest.raises(TableError, match=words) as error:
        Table(*arguments)
    assert isinstance(error.value, TidingsError)


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        (Table("t", {"a": "text"}), "give a list"),
        ({"t": Table("t", {"a": "text"})}, "'t' is no table"),
        ([Table("t", {"a": "text"}), Table("t", {"b": "text"})], "two tables 't'"),
    ],
)
def test_tables_that_have_no_names_of_their_own(tables, words):
    with pytest.raises(TableError, match=words):
        by_name(tables)
