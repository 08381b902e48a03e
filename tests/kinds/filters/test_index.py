"""The index of filters answers as the definition does, however events and rows come to it.

A party of `test_agreement` reads events as JSON, as documents of Python's or as columns. The rest is what only an
index can get wrong: rows added and removed, skipping, code that is wide, room that runs out, files.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.examples import examples, seeds
from tests.kinds.filters import cases
from tests.kinds.filters.test_agreement import Pairs, assert_agree, database, definition
from tidings.formats.kernels.json import occurrences_of, read_objects
from tidings.formats.namespaces import XSD
from tidings.kinds.filters.attribute_reader import AttributeReader
from tidings.kinds.filters.columns import read_events
from tidings.kinds.filters.index import FilterIndex
from tidings.kinds.filters.kernels import layout
from tidings.kinds.filters.shape import compile_filter
from tidings.kinds.filters.table import FilterTable
from tidings.language.query import (
    And,
    Attribute,
    Between,
    Comparison,
    Condition,
    Exists,
    Folded,
    Missing,
    Not,
    OneOf,
    Or,
    Parameter,
    TextTest,
)
from tidings.model.terms import Iri, Literal, ntriples

Events = Sequence[Mapping[str, Any]]


def table_of(conditions: Sequence[Condition]) -> FilterTable:
    table = FilterTable()
    for condition in conditions:
        shape = compile_filter(condition)
        table.add(table.add_shape(shape), shape.texts({}))
    return table


def index_of(conditions: Sequence[Condition]) -> FilterIndex:
    return FilterIndex.build(table_of(conditions))


def matched(index: FilterIndex, pairs: layout.AttributePairs) -> Pairs:
    """(row, event) of all matches; none is there twice."""
    matches = index.match(pairs)
    found = list(zip(matches.row.tolist(), matches.event.tolist(), strict=True))
    assert len(set(found)) == len(found)
    assert (index.space.slots == layout.ABSENT).all()
    assert not index.space.seen.any()
    return set(found)


def pairs_of_texts(index: FilterIndex, texts: Sequence[bytes], events: Events) -> layout.AttributePairs:
    stop = np.cumsum([len(text) for text in texts], dtype=np.int64)
    start = stop - np.array([len(text) for text in texts], dtype=np.int64)
    found = read_objects(np.frombuffer(b"".join(texts), dtype=np.uint8), start, stop, index.paths)
    assert not found.errors
    return AttributeReader(index).pairs(found, lambda event: events[event])


def pairs_of(index: FilterIndex, events: Events) -> layout.AttributePairs:
    found = occurrences_of(list(events), index.paths)
    return AttributeReader(index).pairs(found, lambda event: events[event])


def from_json(conditions: Sequence[Condition], events: Events) -> Pairs:
    index = index_of(conditions)
    return matched(index, pairs_of_texts(index, [json.dumps(event).encode() for event in events], events))


def from_documents(conditions: Sequence[Condition], events: Events) -> Pairs:
    index = index_of(conditions)
    return matched(index, pairs_of(index, events))


def from_json_column(conditions: Sequence[Condition], events: Events) -> Pairs:
    index = index_of(conditions)
    reader = AttributeReader(index)
    column = pa.array(["{}", *(json.dumps(event, ensure_ascii=False) for event in events)]).slice(1)
    found = read_events(pa.table({"attributes": column}), reader.wanted)
    return matched(index, reader.pairs(found, lambda event: events[event]))


def from_columns(conditions: Sequence[Condition], events: Events) -> Pairs:
    """From columns of the types that `cases` gives its flat attributes and its lists."""
    types = {
        "BIGINT": pa.int64(),
        "DOUBLE": pa.float64(),
        "HUGEINT": pa.decimal128(38, 0),
        "VARCHAR": pa.string(),
        "BOOLEAN": pa.bool_(),
        "DATE": pa.string(),
        "VARCHAR[]": pa.list_(pa.string()),
        "DOUBLE[]": pa.list_(pa.float64()),
        "STRUCT(price DOUBLE, colour VARCHAR)[]": pa.list_(
            pa.struct({"price": pa.float64(), "colour": pa.string()})
        ),
    }
    of_sql = {name: kind for name, (kind, _) in cases.COLUMNS.items()} | cases.LISTS
    columns = {}
    for name, kind in of_sql.items():
        given = [event.get(name) for event in events]
        if kind == "HUGEINT":
            given = [None if value is None else Decimal(value) for value in given]
        columns[name] = pa.array(given, types[kind])
    index = index_of(conditions)
    reader = AttributeReader(index)
    found = read_events(pa.table(columns), reader.wanted)
    return matched(index, reader.pairs(found, lambda event: events[event]))


@pytest.mark.parametrize("seed", seeds(2, 6))
@pytest.mark.parametrize("party", [from_json, from_documents, from_json_column])
def test_agrees_with_the_definition(party: Callable[..., Pairs], seed: int) -> None:
    rng = random.Random(seed)
    conditions = [cases.condition(rng, rng.choice([0, 0, 1, 2, 3])) for _ in range(400)]
    events = [cases.attributes(rng) for _ in range(30)]
    assert_agree(party, definition, conditions, events)


@pytest.mark.parametrize("seed", seeds(1, 3))
@pytest.mark.parametrize("party", [from_json, from_columns])
def test_agrees_with_a_database(party: Callable[..., Pairs], seed: int) -> None:
    rng = random.Random(seed)
    conditions = [cases.condition(rng, rng.choice([0, 0, 1, 2, 3]), flat=True) for _ in range(260)]
    assert_agree(party, database, conditions, [cases.attributes(rng, flat=True) for _ in range(25)])
    rng = random.Random(100 + seed)
    conditions = [cases.condition(rng, rng.choice([0, 0, 1, 2]), lists=True) for _ in range(150)]
    assert_agree(party, database, conditions, [cases.attributes(rng, lists=True) for _ in range(25)])


# Numbers of any size and spelling, as JSON and the language write them.
_SPELLED = [
    "5",
    "5.0",
    "5e0",
    "50e-1",
    "0.5E+1",
    "-0",
    "0",
    "-0.0",
    "1e2",
    "100.0",
    "100",
    "9007199254740992",
]
_SPELLED += [
    "9007199254740993",
    "9007199254740993.0",
    "123456789012345678901234567890",
    "0.1",
    "1e-1",
    "2e-250",
]
_SPELLED += ["123456789012345678901234567890.5", "-123456789012345678901234567890", "1e300", "1e-300", "2.5"]
_TEXTS = [
    "",
    "5",
    "5.0",
    " 5",
    "+5",
    "5.",
    ".5",
    "1e2",
    "true",
    "2004-01-31",
    "2004-01-31T00:00:00Z",
    "2004-02-30",
]
_TEXTS += [
    "red",
    "Red",
    "rED",
    "ß",
    "SS",
    "Straße",
    "\U0001f600",
    "\uffff",
    "\ud7ff",
    "e\u0301",
    "é",
    "\u0130",
    "a\0b",
]
_TEXTS += ["2004-01-30T23:30:00-00:30", "123456789012345678901234567890", "1" * 401, "0x10", "٣", "nan"]
_NAMES = ["a", "b", "c.d", "c"]

_numbers = st.one_of(
    st.sampled_from(_SPELLED),
    st.integers(-(10**40), 10**40).map(str),
    st.integers(-5, 5).map(str),
    st.tuples(st.integers(-99, 99), st.integers(-12, 12)).map(lambda p: f"{p[0]}e{p[1]}"),
)
_texts = st.one_of(st.sampled_from(_TEXTS), st.text(max_size=4))
_scalars = st.one_of(
    _numbers,
    _texts.map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.sampled_from(["null", "true", "false", "{}", "[]", "NaN"]),
)
_values = st.recursive(
    _scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
        inner.map(lambda value: f'{{"d": {value}}}'),
    ),
    max_leaves=4,
)
_documents = st.dictionaries(st.sampled_from(_NAMES), _values, max_size=4).map(
    lambda members: "{" + ", ".join(f'"{name}": {value}' for name, value in members.items()) + "}"
)
_constants = st.one_of(
    _numbers.map(lambda text: Literal(text, XSD + "decimal")),
    _texts.map(Literal),
    st.sampled_from(["2004-01-31", "2004-02-29"]).map(lambda text: Literal(text, XSD + "date")),
    st.sampled_from(["true", "false", "1", "0"]).map(lambda text: Literal(text, XSD + "boolean")),
    st.sampled_from(
        [
            Iri("urn:tidings:x"),
            Literal("red", language="en"),
            Literal("x", "urn:tidings:t"),
            Literal("x", XSD + "integer"),
        ]
    ),
)
_attributes = st.sampled_from(_NAMES).map(Attribute)
_operands = st.one_of(_attributes, _attributes, _attributes.map(Folded))
_leaves = st.one_of(
    st.builds(Comparison, _operands, st.sampled_from(cases.COMPARISONS), _constants),
    st.builds(Between, _operands, _constants, _constants),
    st.builds(OneOf, _operands, st.lists(_constants, min_size=1, max_size=4).map(tuple), st.booleans()),
    st.builds(TextTest, _operands, st.sampled_from(["STARTS", "ENDS", "CONTAINS"]), _texts.map(Literal)),
    st.builds(Exists, _attributes),
    st.builds(Missing, _attributes),
)
_conditions = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, min_size=1, max_size=4).map(lambda parts: And(tuple(parts))),
        st.lists(inner, min_size=1, max_size=4).map(lambda parts: Or(tuple(parts))),
    ),
    max_leaves=6,
)


def meant(text: str) -> dict[str, Any]:
    """A document in which numbers are what is written."""
    return json.loads(text, parse_float=Decimal)  # type: ignore[no-any-return]


@examples(40, suppress_health_check=list(HealthCheck))
@given(st.lists(_conditions, min_size=1, max_size=12), st.lists(_documents, min_size=1, max_size=6))
def test_agrees_on_any_values(conditions: list[Condition], texts: list[str]) -> None:
    events = [meant(text) for text in texts]
    index = index_of(conditions)
    encoded = [text.encode(errors="surrogatepass") for text in texts]
    found = matched(index, pairs_of_texts(index, encoded, events))
    assert found == matched(index, pairs_of(index, events)) == definition(conditions, events)


def test_values_of_one_event_are_not_those_of_the_next() -> None:
    """Several values are looked at where they stand, and what stands behind them is another event's."""
    a = Attribute("a")
    one, three = cases.constant(1), cases.constant(3)
    conditions = [
        And((Comparison(a, "=", one), Comparison(a, "=", three))),
        And((Comparison(a, "<=", one), OneOf(a, (three,)))),
        Not(Comparison(a, "=", three)),
        OneOf(a, (one, cases.constant(2)), True),
        And((Exists(a), Not(Between(a, three, three)))),
    ]
    events = [{"a": [1, 2]}, {"a": 3}, {"a": [2, 1]}, {"a": [3, 3]}, {"a": "1"}, {"a": ["3", "x"]}, {"a": 1}]
    assert_agree(from_json, definition, conditions, events)


def test_constants_of_one_value_are_one_constant() -> None:
    spelled = [
        Literal(text, XSD + kind) for text, kind in (("5", "integer"), ("5.0", "decimal"), ("5e0", "double"))
    ]
    a = Attribute("a")
    conditions: list[Condition] = [Comparison(a, op, each) for each in spelled for op in cases.COMPARISONS]
    conditions += [OneOf(a, tuple(spelled)), OneOf(a, tuple(spelled), True), Between(a, *spelled[:2])]
    index = index_of(conditions)
    assert len(index.scales.mantissa) == 1
    events = [{"a": 5}, {"a": 5.0}, {"a": "5.00"}, {"a": Decimal("0.5e1")}, {"a": 4.9999}, {"a": [4, 6]}, {}]
    assert matched(index, pairs_of(index, events)) == definition(conditions, events)


def test_not_in_of_mixed_kinds_looks_at_one_value_with_all_its_views() -> None:
    options = [cases.constant(5), cases.constant("5"), cases.constant("red"), cases.constant(True)]
    options.append(Literal("2004-01-31", XSD + "date"))
    conditions: list[Condition] = []
    for mask in range(1, 1 << len(options)):
        chosen = tuple(option for i, option in enumerate(options) if mask >> i & 1)
        conditions += [OneOf(Attribute("a"), chosen, True), Not(OneOf(Attribute("a"), chosen, True))]
    values: list[Any] = [
        5,
        "5",
        "5.0",
        6,
        "6",
        "red",
        "x",
        True,
        False,
        "2004-01-31",
        "2004-02-01",
        {},
        None,
        [],
    ]
    events = [{"a": value} for value in values]
    events += [{"a": [one, other]} for one in values for other in values]
    assert_agree(from_json, definition, conditions, events)


@pytest.mark.parametrize("seed", range(3))
def test_a_cursor_finds_what_matching_finds(seed: int) -> None:
    rng = random.Random(seed)
    conditions = [cases.condition(rng, rng.choice([0, 0, 1, 2])) for _ in range(600)]
    events = [cases.attributes(rng) for _ in range(8)]
    index = index_of(conditions)
    pairs = pairs_of(index, events)
    found = matched(index, pairs)
    for event in range(len(events)):
        rows = sorted(row for row, of_event in found if of_event == event)
        cursor = index.cursor(pairs, event)
        assert [row for row in range(len(conditions)) if cursor.holds(row)] == rows
        met, n = [], 0
        while (n := cursor.seek(n)) >= 0:
            met.append(n)
            n += 1
        assert met == rows
        cursor, n = index.cursor(pairs, event), 0
        while n < len(conditions) + 3:
            expected = next((row for row in rows if row >= n), -1)
            assert cursor.seek(n) == cursor.seek(n) == expected
            n += rng.choice([1, 2, 7, 50, 200])
        assert cursor.seek(n) == -1


def test_a_cursor_over_nothing() -> None:
    index = index_of([])
    assert matched(index, pairs_of(index, [{"a": 1}, {}])) == set()
    assert index.cursor(pairs_of(index, [{"a": 1}]), 0).seek(0) == -1
    index = index_of([Exists(Attribute("a"))])
    assert matched(index, pairs_of(index, [])) == set()
    assert index.cursor(pairs_of(index, [{}]), 0).seek(0) == -1


def test_the_order_of_rows_and_events_is_irrelevant() -> None:
    rng = random.Random(3)
    conditions = [cases.condition(rng, rng.choice([0, 1, 2])) for _ in range(200)]
    events = [cases.attributes(rng) for _ in range(30)]
    index = index_of(conditions)
    whole = matched(index, pairs_of(index, events))
    assert whole
    for event, attributes in enumerate(events):  # a batch is its events, one by one
        alone = matched(index, pairs_of(index, [attributes]))
        assert {row for row, _ in alone} == {row for row, of_event in whole if of_event == event}
    order = rng.sample(range(len(conditions)), len(conditions))
    moved = rng.sample(range(len(events)), len(events))
    other = index_of([conditions[i] for i in order])
    found = matched(other, pairs_of(other, [events[j] for j in moved]))
    assert {(order[i], moved[j]) for i, j in found} == whole


@pytest.mark.parametrize("seed", range(4))
def test_rows_come_and_go(seed: int) -> None:
    """Any way to a set of rows leads to the same answers: added one by one, folded from others, frozen between."""
    rng = random.Random(seed)
    table, alive = FilterTable(), dict[int, Condition]()
    events = [cases.attributes(rng) for _ in range(12)]
    owner, owners = 0, list[int]()  # owners[row] of `table`; a number, once given, is not given again
    for _ in range(25):
        action = rng.random()
        if action < 0.5:
            for _ in range(rng.randrange(1, 30)):
                condition = cases.condition(rng, rng.choice([0, 1, 2]))
                shape = compile_filter(condition)
                table.add(table.add_shape(shape), shape.texts({}))
                alive[owner] = condition
                owners.append(owner)
                owner += 1
        elif action < 0.6 and alive:
            for gone in rng.sample(sorted(alive), rng.randrange(len(alive) + 1)):
                del alive[gone]
        elif action < 0.9:
            renumbered = np.full(owner + 1, -1, dtype=np.int64)
            kept = sorted(alive)
            renumbered[kept] = np.arange(len(kept))
            live = np.flatnonzero([number in alive for number in owners])
            folded = FilterTable() if rng.random() < 0.5 else table_of([Exists(Attribute("zzz"))] * 2)
            already = [-1] * len(folded)
            folded.extend(table, live)
            table = folded
            alive = {i: alive[number] for i, number in enumerate(kept)}
            owners = already + [int(renumbered[number]) for number in owners if renumbered[number] >= 0]
            owner = len(alive)
        else:
            table = FilterTable.thaw(table.freeze(), [list(key) for key in table.keys])
        assert len(table) == len(owners)
    index = FilterIndex.build(table)
    found = matched(index, pairs_of(index, events))
    kept = sorted(alive)
    expected = definition([alive[number] for number in kept], events)
    assert {(owners[i], j) for i, j in found if owners[i] in alive} == {(kept[i], j) for i, j in expected}
    assert len(kept) > 20
    assert expected


def test_many_rows_of_one_shape_are_those_rows() -> None:
    rng = random.Random(9)
    folded = TextTest(Folded(Attribute("s")), "STARTS", Parameter("text"))
    condition = Or(
        (
            And((Comparison(Attribute("i"), ">", Parameter("low")), folded)),
            Comparison(Attribute("x"), "=", Parameter("low")),
            Comparison(Attribute("i"), "<", Attribute("j")),
        )
    )
    shape = compile_filter(condition)
    lows = [ntriples(cases.constant(value)) for value in cases.INTEGERS]
    texts = [ntriples(cases.constant(value)) for value in (*cases.TEXTS, "\U0010ffff")]
    codes = np.array([[rng.randrange(len(lows)), rng.randrange(len(texts))] for _ in range(300)])
    many, single = FilterTable(), FilterTable()
    number = many.add_shape(shape)
    columns = {"low": (codes[:, 0], lows), "text": (codes[:, 1], texts)}
    many.add_many(number, shape, columns, 300)
    number = single.add_shape(shape)
    for low, text in codes.tolist():
        single.add(number, shape.texts({"low": lows[low], "text": texts[text]}))
    events = [cases.attributes(rng) for _ in range(30)] + [{"i": 100, "s": "\U0010ffffx"}]
    answers = []
    for table in (many, single):
        index = FilterIndex.build(table)
        answers.append(matched(index, pairs_of(index, events)))
    assert answers[0] == answers[1]
    assert any(event == 30 for _, event in answers[0])


def test_an_index_is_what_was_saved(tmp_path: Path) -> None:
    rng = random.Random(12)
    conditions = [cases.condition(rng, rng.choice([0, 1, 2])) for _ in range(300)]
    conditions.append(Comparison(Attribute("big"), "<", cases.constant(10**30)))
    events = [cases.attributes(rng) for _ in range(20)]
    index = index_of(conditions)
    index.save(tmp_path)
    opened = FilterIndex.load(tmp_path)
    assert len(opened) == len(conditions)
    assert opened.nbytes == index.nbytes
    assert matched(opened, pairs_of(opened, events)) == definition(conditions, events)
    index_of([]).save(tmp_path / "empty")
    assert len(FilterIndex.load(tmp_path / "empty")) == 0


def test_nan_and_infinity_compare_with_nothing() -> None:
    a = Attribute("a")
    conditions = [Comparison(a, op, cases.constant(0)) for op in cases.COMPARISONS]
    conditions += [
        Exists(a),
        OneOf(a, (cases.constant(0),), True),
        Missing(a),
        Comparison(a, "=", Literal("NaN")),
    ]
    for value in (math.nan, math.inf, -math.inf, Decimal("NaN")):
        index = index_of(conditions)
        assert {row for row, _ in matched(index, pairs_of(index, [{"a": value}]))} == {6}
    index = index_of(conditions)
    texts = [b'{"a": NaN}', b'{"a": -Infinity}', b'{"a": [Infinity]}']
    assert matched(index, pairs_of_texts(index, texts, [{}] * 3)) == {(6, 0), (6, 1), (6, 2)}
