"""Joins on the command line: tables from a file, changes in any form, what is gained and lost."""

import json
import re

import pyarrow.parquet as pq
import pytest

from tidings.storage import versions

from .conftest import EXAMPLES, tidings

STOCKS = EXAMPLES / "stocks"
QUESTIONS = STOCKS / "subscriptions.txt"


def test_the_example_of_stocks_and_reviews():
    result = tidings("match", "-s", QUESTIONS, STOCKS / "changes.ndjson")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "halts      (h1)" in lines
    # The quote of AMZN moves from X3 to X1 and X2, and its two reviews go with it.
    moved = [line for line in lines if line.endswith("(u2)")]
    assert [line[:14] + line[14:].partition("  ")[0] for line in moved] == [
        *["X1         5  + stocks", "X1         5  + reviews", "X1         5  + reviews"],
        *["X2         4  + stocks", "X2         4  + reviews", "X2         4  + reviews"],
        *["X3         3  - stocks", "X3         3  - reviews", "X3         3  - reviews"],
        *["old hands  3  + stocks", "old hands  3  + reviews"],
        "dear       2  - stocks",
    ]
    assert "X1         4  - stocks  symbol GOOG  per 51.7  (u1)" in lines
    assert "X1         4  + stocks  symbol GOOG  per 52.1  (u1)" in lines
    assert result.stderr == "16 events against 6 subscriptions: 24 notifications\n"


def test_change_events_of_debezium_and_one_that_comes_late():
    result = tidings("match", "-s", QUESTIONS, STOCKS / "debezium.ndjson")
    told = [re.sub(r"  (symbol|id|analyst) .*", "", line) for line in result.stdout.splitlines()]
    assert told[:4] == [
        *[
            "X1         1  + reviews",
            "X1         1  + stocks",
            "X2         1  + reviews",
            "X2         1  + stocks",
        ]
    ]
    assert "old hands  1  + analysts" in told
    assert f"! {STOCKS / 'debezium.ndjson'}:6: the change has sequence 1020, which its source has passed" in (
        result.stderr
    )
    assert "6 events against" in result.stderr


def test_ndjson_and_parquet_hold_sequence_part_and_rows(tmp_path):
    changes = STOCKS / "changes.ndjson"
    lines = tidings("match", "-s", QUESTIONS, "-f", "ndjson", changes).stdout.splitlines()
    told = [json.loads(line) for line in lines]
    assert [set(one) & {"part", "sequence", "changes"} for one in told if one["subscription"] == "halts"] == [
        set()
    ]
    first = next(one for one in told if one["subscription"] == "X1")
    assert (first["part"], first["sequence"], first["verdict"]) == ("0/1", 1, "match")
    assert first["changes"][1] == {"table": "stocks", "change": "+", "row": {"symbol": "GOOG", "per": 51.7}}
    assert (
        tidings("match", "-s", QUESTIONS, "-f", "parquet", "-o", tmp_path / "o.parquet", changes).exit_code
        == 0
    )
    rows = pq.read_table(tmp_path / "o.parquet").to_pylist()
    assert [(one["subscription"], one.get("sequence")) for one in told] == [
        (row["subscription"], row["sequence"]) for row in rows
    ]


def test_joined_rows_from_standard_input():
    changes = (STOCKS / "changes.ndjson").read_bytes()
    result = tidings("match", "-s", QUESTIONS, "--joined", "-", stdin=changes)
    assert (
        "X1         1  + stocks  symbol GOOG  per 51.7  ⋈ reviews  id 2  symbol GOOG  analyst Tom  rating 6.0  (r2)"
        in result.stdout
    )
    assert "dear       1  + stocks  symbol AMZN  per 92.8  (s3)" in result.stdout
    assert result.stdout.count("⋈ analysts") == 5


def test_a_snapshot_is_asked_for_by_an_event(tmp_path, monkeypatch):
    path = tmp_path / "changes.ndjson"
    path.write_text(
        '{"insert": "stocks", "row": {"symbol": "GOOG", "per": 95}}\n'
        '{"type": "tidings.snapshot", "subscription": "dear"}\n'
    )
    monkeypatch.chdir(tmp_path)  # a long path would be cut
    result = tidings("match", "-s", QUESTIONS, path.name)
    assert result.stdout.splitlines() == [
        "dear  1  + stocks  symbol GOOG  per 95.0  (changes.ndjson:1)",
        "dear  1  snapshot: 1 row",
        "dear  1  + stocks  symbol GOOG  per 95.0  (changes.ndjson:2)",
    ]


def test_tables_may_come_from_the_command_line_and_in_json(tmp_path):
    (tmp_path / "q.txt").write_text("dear: SELECT * FROM stocks WHERE per > 90\n")
    (tmp_path / "t.json").write_text('{"stocks": {"columns": {"symbol": "text", "per": "number"}}}')
    (tmp_path / "c.ndjson").write_text('{"insert": "stocks", "row": {"symbol": "GOOG", "per": 95}}\n')
    arguments = ("-s", tmp_path / "q.txt", tmp_path / "c.ndjson")
    assert tidings("match", *arguments, "--tables", tmp_path / "t.json").stdout.startswith(
        "dear  1  + stocks  symbol GOOG  per 95.0  ("
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"insert": "stock", "row": {"symbol": "A"}}', ":2: there is no table 'stock'; did you mean 'stocks'?"),
        ('{"insert": "stocks", "row": {"symbol": "A", "per": "x"}}', ":2: stocks.per is 'x'; the column needs a finite"),
        ('{"insert": "stocks", "row": {"per": 1}}', ":2: a row of table 'stocks' has no symbol"),
        ('{"insert": "stocks", "row": {"symbol": "A", "pre": 1}}', ":2: table 'stocks' has no column 'pre'"),
        ('{"delete": "stocks", "row": {"symbol": "A"}}', ":2: table 'stocks' has no such row to delete"),
        ('{"insert": "stocks", "row": {"symbol": "GOOG"}}', ":2: a row of table 'stocks' with this key is there"),
        ('{"insert": "stocks", "row": 3}', ":2: "),
        ('{"insert": "stocks"}', ":2: "),
    ],
)  # fmt: skip
def test_a_faulty_change_is_told_with_its_line_and_the_others_count(line, told, tmp_path):
    path = tmp_path / "c.ndjson"
    good = '{{"insert": "stocks", "row": {{"symbol": "{}", "per": 95}}}}\n'
    path.write_text(good.format("GOOG") + line + "\n" + good.format("YHOO"))
    result = tidings("match", "-s", QUESTIONS, path)
    assert f"! {path}{told}" in result.stderr
    assert [line[:10] for line in result.stdout.splitlines()] == ["dear  1  +", "dear  2  +"]
    assert "2 events against" in result.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("bad: SELECT * FROM stocks JOIN reviews USING (sybol)", ":3: bad: "),
        ("bad: SELECT * FROM stocks JOIN shares USING (symbol)", "there is no table 'shares'"),
        ("bad: SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per > 1 OR rating > 2", "put together by AND"),
        ("never: SELECT * FROM stocks WHERE per > 5 AND per < 4", "'never' will never match"),
    ],
)  # fmt: skip
def test_a_faulty_join_is_a_sentence(text, told, tmp_path):
    path = tmp_path / "q.txt"
    path.write_text(f"@tables {STOCKS / 'tables.toml'}\ndear: SELECT * FROM stocks WHERE per > 90\n{text}\n")
    result = tidings("match", "-s", path, STOCKS / "changes.ndjson")
    assert (result.exit_code, told in result.stderr, "Warning" in result.stderr) == (0, True, False)
    assert result.stdout.startswith("dear  1  + stocks")


def test_tables_that_cannot_be_read(tmp_path):
    (tmp_path / "q.txt").write_text("@tables none.toml\ndear: SELECT * FROM stocks WHERE per > 90\n")
    result = tidings("match", "-s", tmp_path / "q.txt", STOCKS / "changes.ndjson")
    assert (result.exit_code, f"{tmp_path / 'none.toml'}: No such file" in result.stderr) == (1, True)
    result = tidings("match", "-s", tmp_path / "q.txt", "--tables", QUESTIONS, STOCKS / "changes.ndjson")
    assert (result.exit_code, "is not readable as TOML" in result.stderr) == (1, True)


def test_joins_without_tables_and_a_line_that_is_not_known(tmp_path):
    (tmp_path / "q.txt").write_text("a: WHERE x = 1\nb: SELECT * FROM stocks JOIN reviews USING (symbol)\n")
    result = tidings("match", "-s", tmp_path / "q.txt", STOCKS / "changes.ndjson")
    assert "! no tables are declared; name a file that does by --tables FILE" in result.stderr
    (tmp_path / "q.txt").write_text("@table tables.toml\na: WHERE x = 1\n")
    result = tidings("match", "-s", tmp_path / "q.txt", STOCKS / "changes.ndjson")
    assert f"{tmp_path / 'q.txt'}:1: '@table tables.toml' is not known; write @prefix" in result.stderr


def test_an_index_has_its_tables_and_takes_joins(tmp_path):
    root = tmp_path / "index"
    built = tidings("index", "build", root, "-s", QUESTIONS)
    assert built.stdout == f"{root} is now v1+0: 6 subscriptions\n"
    added = tidings(
        "index", "add", root, "cheap", "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per < 20"
    )
    assert added.exit_code == 0, added.output
    bad = tidings("index", "add", root, "bad", "SELECT * FROM stocks JOIN views USING (symbol)")
    assert (bad.exit_code, "there is no table 'views'; did you mean 'reviews'?" in bad.stderr) == (1, True)
    empty = tidings("index", "add", root, "never", "SELECT * FROM stocks WHERE per < 2 AND per > 3")
    assert "will never match" in empty.stderr
    removed = tidings("index", "remove", root, "X2")
    assert (removed.exit_code, removed.stderr) == (0, "")
    shown = " ".join(tidings("index", "show", root).stdout.split())
    assert "tables stocks (symbol, per), reviews (id, symbol, analyst, rating, report), analysts" in shown
    assert "subscriptions that join tables 6" in shown
    result = tidings("match", "-s", root, STOCKS / "changes.ndjson")
    assert {line.split()[0] for line in result.stdout.splitlines()} == {"X1", "X3", "old", "dear", "halts"}
    assert tidings("index", "compact", root).stdout == f"{root} is now v2+0: 7 subscriptions\n"
    assert len(versions.open(root, versions.current(root)).joins) == 6
    refused = tidings("match", "-s", root, "--tables", STOCKS / "tables.toml", STOCKS / "changes.ndjson")
    assert "leave the options out" in refused.stderr


def test_explain_shows_each_change_with_the_rows_before_it():
    result = tidings("explain", "-s", QUESTIONS, "-i", "X1", "--event", "u2", STOCKS / "changes.ndjson")
    assert result.stdout.splitlines()[1:] == [
        "X1: match (gains 3 rows)",
        "  ✗ goes: stocks  symbol 'AMZN'  per 92.8",
        "    ✗ stocks.per BETWEEN 45 AND 70   stocks.per is 92.8",
        "    · rows of reviews with the same symbol",
        "  ✓ comes: stocks  symbol 'AMZN'  per 55.0",
        "    ✓ stocks.per BETWEEN 45 AND 70   stocks.per is 55.0",
        "    ✓ rows of reviews with the same symbol   2 rows join it",
        "  ✓ gains stocks  symbol 'AMZN'  per 55.0",
        "  ✓ gains reviews  id 22  symbol 'AMZN'  analyst 'Ida'  rating 7.2",
        "  ✓ gains reviews  id 23  symbol 'AMZN'  analyst 'Tom'  rating 7.8",
    ]
