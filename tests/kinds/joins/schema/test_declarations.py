"""Tables in a file: two forms, one meaning, and a sentence for each mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidings.kinds.joins.schema.declarations import read_tables
from tidings.kinds.joins.schema.table import Table, TableError

STOCKS = Table("stocks", {"symbol": "text", "per": "number", "note": "text"}, ["symbol"], ["note"])
REVIEWS = Table("reviews", {"symbol": "text", "rating": "number"})


def test_toml_and_json_declare_the_same(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(
        '[stocks]\ncolumns = { symbol = "text", per = "number", note = "text" }\nkey = ["symbol"]\npayload = ["note"]\n'
        '[reviews.columns]\nsymbol = "text"\nrating = "number"\n'
    )
    (tmp_path / "t.json").write_text(
        json.dumps(
            {
                "stocks": {"columns": dict(STOCKS.columns), "key": ["symbol"], "payload": ["note"]},
                "reviews": {"columns": dict(REVIEWS.columns)},
            }
        )
    )
    assert read_tables(tmp_path / "t.toml") == read_tables(tmp_path / "t.json") == [STOCKS, REVIEWS]
    assert list(read_tables(tmp_path / "t.toml")[0].columns) == ["symbol", "per", "note"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "declares no table; write"),
        ("stocks = 3", "stocks is 3, which declares no table"),
        ("[stocks]", "table 'stocks' has no columns; write"),
        ('[stocks]\ncolumns = ["a"]', "table 'stocks' has no columns; write"),
        ('[stocks]\ncolums = { a = "text" }', "'colums', which is not known; did you mean 'columns'?"),
        ('[stocks]\ncolumns = { a = "string" }', "stocks.a has the type 'string'; a type is one of"),
        ("[stocks]\ncolumns = { a = 3 }", "stocks.a has the type 3; a type is one of"),
        ('[stocks]\ncolumns = { a = { b = "text" } }', "stocks.a has the type"),
        (
            '[stocks]\ncolumns = { a = "text" }\nkey = "a"',
            "the key of table 'stocks' is 'a'; give a list of columns such as ['a']",
        ),
        ('[stocks]\ncolumns = { a = "text" }\nkey = 3', "the key of table 'stocks' is 3; give a list"),
        (
            '[stocks]\ncolumns = { a = "text" }\nkey = [3]',
            "the key of table 'stocks' is [3]; give a list of columns",
        ),
        (
            '[stocks]\ncolumns = { a = "text" }\nkey = [["a"]]',
            "the key of table 'stocks' is [['a']]; give a list of columns",
        ),
        (
            '[stocks]\ncolumns = { a = "text" }\nkey = ["b"]',
            "the key of 'stocks' names 'b'; its columns are a",
        ),
        ('[stocks]\ncolumns = { a = "text" }\n[stocks]', "is not readable as TOML"),
        ("\udcff", "is not readable as TOML"),
    ],
)
def test_a_mistake_is_a_sentence_with_the_file(content: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "tables.toml"
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(TableError) as error:
        read_tables(path)
    assert str(error.value).startswith(str(path))
    assert told in str(error.value)


def test_other_mistakes(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("[1]")
    with pytest.raises(TableError, match="declares no table"):
        read_tables(tmp_path / "t.json")
    (tmp_path / "t.json").write_text("[" * 100_000)
    with pytest.raises(TableError, match="is not readable as JSON"):
        read_tables(tmp_path / "t.json")
    with pytest.raises(TableError, match="No such file"):
        read_tables(tmp_path / "none.toml")
