"""Changes are found in events of every form, in order; what is wrong with one is told there and nowhere else."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings import Engine
from tidings.errors import EventError
from tidings.formats.json_lines import read_lines
from tidings.kinds.joins.changes.changes import (
    DELETE,
    INSERT,
    TRUNCATE,
    UPDATE,
    Changes,
    changes_of,
    read_changes,
)
from tidings.kinds.joins.changes.sequences import NONE
from tidings.kinds.joins.schema.table import Table
from tidings.model.event import Event, to_table

STOCKS = Table(
    "stocks",
    {
        "symbol": "text",
        "per": "number",
        "lots": "integer",
        "open": "boolean",
        "day": "date",
        "at": "timestamp",
    },
    key=["symbol"],
)
REVIEWS = Table("reviews", {"symbol": "text", "rating": "integer"})
TABLES = [STOCKS, REVIEWS]
ROW = {"symbol": "A", "per": 50, "lots": 3, "open": True, "day": "2004-01-31", "at": "2004-01-31T10:00:00Z"}
TEXT = STOCKS.text(STOCKS.read(ROW))
WORDS = {INSERT: "insert", UPDATE: "update", DELETE: "delete", TRUNCATE: "truncate"}

ByEvent = dict[int, tuple[str, str, str | None, str | None] | str]


def by_event(changes: Changes) -> ByEvent:
    """Event -> (operation, table, new row, old row), or the sentence that refuses it."""
    found: ByEvent = dict(changes.errors)
    for i in range(len(changes)):
        table = int(changes.table[i])
        texts = changes.images[table].texts
        new, old = (int(rows[i]) for rows in (changes.new, changes.old))
        assert int(changes.event[i]) not in found
        found[int(changes.event[i])] = (
            WORDS[int(changes.op[i])],
            TABLES[table].name,
            texts[new].as_py() if new >= 0 else None,
            texts[old].as_py() if old >= 0 else None,
        )
    assert changes.event.tolist() == sorted(changes.event.tolist())
    for images, table_ in zip(changes.images, TABLES, strict=True):
        rows = zip(*(column.to_pylist() for column in images.columns), strict=True)
        assert [table_.text(row) for row in rows] == images.texts.to_pylist()
    return found


def lines(*objects: object) -> pa.Table:
    return read_lines("\n".join(json.dumps(o) if not isinstance(o, str) else o for o in objects).encode())


def sentence(event: object) -> str:
    """What is said of one event; the same if it is one of many, which are not disturbed."""
    good = {"insert": "stocks", "row": ROW}
    alone = by_event(read_changes(lines(event), TABLES))[0]
    among = by_event(read_changes(lines(*[good] * 50, event, *[good] * 50), TABLES))
    assert among.pop(50) == alone
    assert set(among.values()) == {("insert", "stocks", TEXT, None)}
    assert len(among) == 100
    assert isinstance(alone, str)
    return alone


@pytest.mark.parametrize("copies", [1, 100])
def test_events_that_people_make(copies: int) -> None:
    events = [
        Event.insert(
            "stocks", {**ROW, "day": date(2004, 1, 31), "at": datetime(2004, 1, 31, 10, tzinfo=UTC)}
        ),
        Event.update("stocks", ROW),
        Event.update("stocks", ROW, {"symbol": "B"}),
        Event.delete("stocks", {"symbol": "A"}),
        Event(attributes={"table": "stocks", "row": ROW}),
        Event.update("reviews", {"symbol": "A", "rating": 2}, {"symbol": "A"}, source="here", sequence=7),
    ]
    changes = read_changes(to_table(events * copies), TABLES)
    key = STOCKS.text(STOCKS.read({"symbol": "A"}))
    other = STOCKS.text(STOCKS.read({"symbol": "B"}))
    expected = [
        ("insert", "stocks", TEXT, None),
        ("update", "stocks", TEXT, None),
        ("update", "stocks", TEXT, other),
        ("delete", "stocks", None, key),
        None,
        ("update", "reviews", '{"symbol":"A","rating":2}', '{"symbol":"A","rating":null}'),
    ] * copies
    assert by_event(changes) == {position: change for position, change in enumerate(expected) if change}
    images = changes.images[0]
    assert [text in (key, other) for text in images.texts.to_pylist()] == images.partial.tolist()
    assert not changes.images[1].partial.any()
    assert changes.source.to_pylist() == ["", "", "", "", "here"] * copies
    assert changes.sequence.tolist() == [NONE, NONE, NONE, NONE, 7] * copies


@pytest.mark.parametrize("copies", [1, 100])
def test_lines(copies: int) -> None:
    documents = [
        {"type": "tidings.insert", "table": "stocks", "row": ROW, "sequence": 1, "id": 5, "note": [1]},
        {"insert": "stocks", "row": ROW, "source": "x"},
        {"update": "stocks", "row": ROW, "before": None},
        {"delete": "stocks", "before": ROW},
        {"op": "insert", "table": "stocks", "row": ROW},
        {"truncate": "reviews"},
        {"insert": "coin", "price": 5},
        {"type": "stock", "insert": "stocks", "row": ROW},
        {"topic": "finance"},
    ]
    changes = read_changes(lines(*documents * copies), TABLES)
    expected = [
        ("insert", "stocks", TEXT, None),
        ("insert", "stocks", TEXT, None),
        ("update", "stocks", TEXT, None),
        ("delete", "stocks", None, TEXT),
        ("insert", "stocks", TEXT, None),
        ("truncate", "reviews", None, None),
        None,
        None,
        None,
    ] * copies
    assert by_event(changes) == {position: change for position, change in enumerate(expected) if change}
    assert changes.sequence.tolist()[:2] == [1, NONE]
    assert changes.source.to_pylist()[:2] == ["", "x"]


def test_a_snapshot_is_asked_for() -> None:
    events = [Event.snapshot("s1"), Event.insert("stocks", ROW), Event(type="tidings.snapshot")]
    changes = read_changes(to_table(events), TABLES)
    assert changes.snapshots == [(0, "s1")]
    assert by_event(changes) == {
        1: ("insert", "stocks", TEXT, None),
        2: "a request for a snapshot has no 'subscription'; give the subscription's id",
    }


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"insert": "stoks", "row": ROW}, "no table 'stoks'; did you mean 'stocks'?"),
        ({"insert": "x", "row": ROW}, "no table 'x'; the tables are: stocks, reviews"),
        ({"type": "tidings.insert", "row": ROW}, "names no table"),
        ({"type": "tidings.upsert", "table": "stocks", "row": ROW}, "'tidings.upsert'; give insert"),
        ({"op": "upsert", "table": "stocks", "row": ROW}, "the change is 'upsert'; give insert"),
        ({"insert": "stocks", "row": {**ROW, "price": None}}, "no column 'price'"),
        ({"insert": "stocks", "row": {**ROW, "per": "high"}}, "stocks.per is 'high'; the column needs a finite number"),
        ({"insert": "stocks", "row": {**ROW, "lots": 1.5}}, "stocks.lots is 1.5"),
        ({"insert": "stocks", "row": {**ROW, "lots": 2**63}}, "stocks.lots is 9223372036854775808"),
        ({"insert": "stocks", "row": {**ROW, "lots": -(2**63)}}, "stocks.lots is -9223372036854775808"),
        ({"insert": "stocks", "row": {**ROW, "per": float("nan")}}, "stocks.per is nan"),
        ('{"insert": "stocks", "row": {"symbol": "A", "per": 1e999}}', "stocks.per is inf"),
        ({"insert": "stocks", "row": {**ROW, "symbol": "\ud800"}}, "a text in Unicode"),
        ({"insert": "stocks", "row": {**ROW, "day": "2004-02-30"}}, "stocks.day is '2004-02-30'"),
        ({"insert": "stocks", "row": {**ROW, "day": 12000}}, "stocks.day is 12000"),
        ({"insert": "stocks", "row": {**ROW, "at": "today"}}, "stocks.at is 'today'"),
        ({"insert": "stocks", "row": {"per": 1}}, "has no symbol; every column of the key"),
        ({"insert": "stocks", "row": {}}, "has no symbol"),
        ({"insert": "stocks", "row": [ROW]}, "the row of table 'stocks' is [{"),
        ({"insert": "stocks", "row": 5}, "the row of table 'stocks' is 5; give an object"),
        ({"insert": "stocks", "row": None}, "has no row; give it as an object"),
        ({"insert": "stocks"}, "has no row; give it as an object"),
        ({"insert": "stocks", "row": ROW, "truncate": "stocks"}, "another operation beside 'truncate'"),
        ({"delete": "stocks"}, "a delete of table 'stocks' has no row; give the row, or its key"),
        ({"delete": "stocks", "row": {"per": 5}}, "has no symbol"),
        ({"update": "stocks", "row": ROW, "before": {"per": 5}}, "has no symbol"),
        ({"update": "stocks", "row": ROW, "before": 5}, "the row of table 'stocks' is 5"),
        ({"update": "reviews", "row": {"rating": 5}}, "which has no key, needs the row as it was; give it as 'before'"),
        ({"insert": "stocks", "row": ROW, "sequence": "7"}, "sequence is '7'; give an integer"),
        ({"insert": "stocks", "row": ROW, "sequence": 7.5}, "sequence is '7.5'; give an integer"),
        ({"insert": "stocks", "row": ROW, "sequence": [7]}, "sequence is no number; give an integer"),
        ({"insert": "stocks", "row": ROW, "sequence": 10**19}, "give an integer of at most 18 digits"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_sentence(event: object, words: str) -> None:
    assert words in sentence(event)


def test_a_broken_line_that_was_to_be_a_change() -> None:
    events = pa.table({"type": ["tidings.insert", "news"], "attributes": ['{"table": "stocks", "row"', "{"]})
    changes = read_changes(events, TABLES)
    assert list(changes.errors) == [0]
    assert "give a JSON object" in changes.errors[0]
    assert len(changes) == 0


def test_a_name_twice_counts_as_python_reads_it() -> None:
    twice = '{"insert": "stocks", "row": {"symbol": "B", "symbol": "A"}}'
    text = STOCKS.text(STOCKS.read({"symbol": "A"}))
    for count in (1, 100):
        assert set(by_event(read_changes(lines(*[twice] * count), TABLES)).values()) == {
            ("insert", "stocks", text, None)
        }


NUMBERS = st.integers(-(2**64), 2**64) | st.floats(allow_nan=True, allow_infinity=True)
ANYTHING = st.none() | st.booleans() | NUMBERS | st.text(max_size=5) | st.just([1]) | st.just({})
LIKELY: dict[str, st.SearchStrategy[Any]] = {
    "symbol": st.sampled_from(["A", "é", "\\", '"']),
    "per": st.integers(0, 99) | st.floats(0, 1e20),
    "lots": st.integers(0, 9),
    "open": st.booleans(),
    "day": st.dates().map(str),
    "at": st.datetimes().map(lambda at: at.isoformat() + "Z") | st.sampled_from(["2004-01-31", "2004-01-31T10:00+02:00"]),
    "rating": st.integers(0, 9),
}  # fmt: skip


@st.composite
def events_of(draw: st.DrawFn) -> dict[str, Any]:
    table = draw(st.sampled_from(TABLES))
    odd = draw(st.integers(0, 40)) == 0
    images = {}
    for member in ("row", "before"):
        if draw(st.integers(0, 9)) > (member == "before") * 5:
            images[member] = {name: draw(LIKELY[name]) for name in table.names if draw(st.integers(0, 9))}
            if table is STOCKS:
                images[member].setdefault("symbol", "A")
    if odd and images:
        image = images[draw(st.sampled_from(sorted(images)))]
        image[draw(st.sampled_from([*table.names, "other"]))] = draw(ANYTHING)
    operation = draw(st.sampled_from(["insert", "update", "delete"]))
    if draw(st.booleans()):
        return {operation: table.name, **images}
    return {"type": f"tidings.{operation}", "table": table.name, **images}


@settings(max_examples=25, deadline=None)
@given(st.lists(events_of(), min_size=1, max_size=20))
def test_many_at_once_are_read_as_one_by_one(events: list[dict[str, Any]]) -> None:
    copies = 100  # one form of one table needs some dozens to be read at once
    at_once = by_event(read_changes(lines(*events * copies), TABLES))
    for position, event in enumerate(events):
        alone = by_event(read_changes(lines(event), TABLES))
        for copy in (0, copies - 1):
            assert at_once.get(copy * len(events) + position) == alone.get(0), event


# -- columns


def structs(values: list[Any], table: Table = REVIEWS) -> pa.Array:
    kinds = {"text": pa.string(), "integer": pa.int64(), "number": pa.float64()}
    fields = [(name, kinds[kind]) for name, kind in table.columns.items() if kind in kinds]
    return pa.array(values, pa.struct(fields))


@pytest.mark.parametrize("copies", [1, 100])
@pytest.mark.parametrize("as_text", [False, True])
def test_rows_in_columns(copies: int, as_text: bool) -> None:
    before, after = {"symbol": "A", "rating": 1}, {"symbol": "A", "rating": 2}

    def column(values: list[Any]) -> pa.Array:
        return pa.array([v and json.dumps(v) for v in values], pa.string()) if as_text else structs(values)

    events = pa.table(
        {
            "source": ["x"] * 5 * copies,
            "type": ["insert", "tidings.update", "delete", "insert", "news"] * copies,
            "table": ["reviews", "reviews", "reviews", None, "reviews"] * copies,
            "row": column([before, after, after, before, None] * copies),
            "before": column([None, before, None, None, None] * copies),
            "sequence": [1, 2, None, None, None] * copies,
        }
    )
    changes = read_changes(events, TABLES)
    first, second = '{"symbol":"A","rating":1}', '{"symbol":"A","rating":2}'
    expected = [
        ("insert", "reviews", first, None),
        ("update", "reviews", second, first),
        ("delete", "reviews", None, second),
        None,
        None,
    ] * copies
    assert by_event(changes) == {position: change for position, change in enumerate(expected) if change}
    assert changes.sequence.tolist() == [1, 2, NONE] * copies
    assert set(changes.source.to_pylist()) == {"x"}


def test_one_struct_for_several_tables() -> None:
    union = pa.struct([("symbol", pa.string()), ("rating", pa.int64()), ("per", pa.float64())])
    rows = [{"symbol": "A", "per": 5.0}, {"symbol": "A", "rating": 5}, {"symbol": "A", "rating": 5}] * 80
    events = pa.table(
        {"op": ["c"] * 240, "table": ["stocks", "reviews", "stocks"] * 80, "row": pa.array(rows, union)}
    )
    found = by_event(read_changes(events, TABLES))
    assert found[1] == ("insert", "reviews", '{"symbol":"A","rating":5}', None)
    assert found[0] == ("insert", "stocks", STOCKS.text(STOCKS.read({"symbol": "A", "per": 5})), None)
    assert "no column 'rating'" in str(found[2])


def test_texts_that_are_no_objects_do_not_run_into_each_other() -> None:
    rows = ['{"symbol":"A"}', '{"symbol":"}', '{"}', '{}{"symbol":"B"}', "5", *['{"symbol":"C"}'] * 100]
    events = pa.table({"op": ["insert"] * 105, "table": ["reviews"] * 105, "row": rows})
    changes = read_changes(events, TABLES)
    assert sorted(changes.errors) == [1, 2, 3, 4]
    assert changes.images[1].texts.to_pylist().count('{"symbol":"C","rating":null}') == 100


def test_sequences_in_columns_are_integers() -> None:
    events = pa.table({"op": ["insert"], "table": ["reviews"], "row": structs([{}]), "sequence": [1.5]})
    assert read_changes(events, TABLES).errors == {
        0: "the change's sequence is 1.5; give an integer of at most 18 digits, or leave it out"
    }


def test_columns_that_are_typed_already() -> None:
    rows = pa.table({"symbol": ["A", "B"] * 50, "per": [1.5, None] * 50})
    changes = changes_of(TABLES, "stocks", rows, source="x", sequence=np.arange(100))
    assert changes.new.tolist() == list(range(100))
    assert changes.images[0].texts[0].as_py() == STOCKS.text(STOCKS.read({"symbol": "A", "per": 1.5}))
    assert changes.sequence.tolist() == list(range(100))
    updates = changes_of(TABLES, STOCKS, rows, UPDATE, rows)
    assert set(by_event(updates).values()) == {
        ("update", "stocks", text, text) for text in changes.images[0].texts.to_pylist()[:2]
    }
    deletes = changes_of(TABLES, "stocks", rows, DELETE)
    assert deletes.old.tolist() == list(range(100))
    assert (deletes.new == -1).all()
    wrong = changes_of(TABLES, "reviews", pa.table({"rating": [1.0, None] * 50}))
    assert sorted(wrong.errors) == list(range(0, 100, 2))
    with pytest.raises(EventError, match="give one for each"):
        changes_of(TABLES, "stocks", rows, UPDATE, rows.slice(1))
    assert "did you mean 'stocks'" in changes_of(TABLES, "stock", rows).errors[0]


def test_batches_one_behind_the_other() -> None:
    parts = [
        read_changes(lines({"insert": "stocks", "row": ROW}, {"insert": "x", "row": {}}), TABLES),
        read_changes(lines({"type": "tidings.snapshot", "subscription": "s"}), TABLES),
        read_changes(
            lines({"delete": "reviews", "row": {"rating": 1}}, {"delete": "stocks", "row": ROW}), TABLES
        ),
    ]
    whole = Changes.concat(parts)
    review = '{"symbol":null,"rating":1}'
    assert {key: value for key, value in by_event(whole).items() if not isinstance(value, str)} == {
        0: ("insert", "stocks", TEXT, None),
        3: ("delete", "reviews", None, review),
        4: ("delete", "stocks", None, TEXT),
    }
    assert list(whole.errors) == [1]
    assert whole.snapshots == [(2, "s")]


def test_slices_chunks_and_other_texts() -> None:
    rows = [{"symbol": "A", "rating": number} for number in range(400)]
    table = lines(*({"insert": "reviews", "row": row} for row in rows))
    expected = [REVIEWS.text(REVIEWS.read(row)) for row in rows]
    for low, high in ((0, 200), (100, 300), (200, 400)):
        assert (
            read_changes(table.slice(low, high - low), TABLES).images[1].texts.to_pylist()
            == expected[low:high]
        )
    chunked = pa.concat_tables([table.slice(300), table.slice(100, 200)])
    assert read_changes(chunked, TABLES).images[1].texts.to_pylist() == expected[300:] + expected[100:300]
    for kind in (pa.string(), pa.string_view()):
        other = pa.table({"attributes": table["attributes"].cast(kind)})
        assert read_changes(other, TABLES).images[1].texts.to_pylist() == expected
    both = pa.table(
        {
            "table": ["reviews", None] * 200,
            "op": ["c"] * 400,
            "row": structs(rows),
            **dict(zip(table.column_names, table.columns, strict=True)),
        }
    )
    assert read_changes(both, TABLES).event.tolist() == list(range(400))
    columns = both.select(["table", "op", "row"])
    picked = read_changes(columns.slice(100, 200), TABLES)
    assert picked.images[1].texts.to_pylist() == expected[100:300:2]


def test_nothing_to_read() -> None:
    for events in (to_table([]), lines(), pa.table({"a": [1, 2]}), to_table([Event(attributes={"a": 1})])):
        changes = read_changes(events, TABLES)
        assert (len(changes), changes.errors, changes.snapshots) == (0, {}, [])
        assert [len(images) for images in changes.images] == [0, 0]


def test_a_broken_line_is_told_once() -> None:
    lines = b'{"insert": "stocks", "row": {"symbol": "A"}}\n{"insert": "stocks"\n'
    for texts in (["FROM stocks WHERE per > 1"], ["FROM stocks WHERE per > 1", "WHERE per > 5"]):
        engine = Engine(tables=TABLES)
        for number, text in enumerate(texts):
            engine.subscribe(str(number), text)
        notifications = engine.publish_lines(lines).to_pylist()
        assert [(row["event"], row["verdict"]) for row in notifications] == [("2", "error")]
