"""A template and a table: every value stands for the constant one would write."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.kernels.strategies import document, texts
from tidings import Engine, Event, SubscriptionError
from tidings.formats.namespaces import XSD
from tidings.formats.rdf import NTRIPLES
from tidings.language.parser import parse
from tidings.language.query import And, Comparison, TextTest
from tidings.model.terms import Iri, Literal, Term

P = Iri("urn:tidings:p")


def matched(engine: Engine, value: Term) -> list[str | None]:
    event = Event(datacontenttype=NTRIPLES, data=document([(Iri("urn:s"), P, value)]))
    return sorted(n.subscription or "" for n in engine.publish(event))


def table(**columns: Any) -> pa.Table:
    """With ids t0, t1, … unless it has its own."""
    count = len(next(iter(columns.values())))
    return pa.table({"id": [f"t{i}" for i in range(count)]} | columns)


def engine_of(template: str, **columns: Any) -> Engine:
    engine = Engine(prefixes={"ex": "http://example.org/"})
    engine.subscribe_table(template, table(**columns))
    return engine


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        (pa.array([4, 5, 6]), Literal("5"), ["t1"]),
        (pa.array([4, 5, 6], pa.uint8()), Literal("5.0"), ["t1"]),
        (pa.array([4.5, 5.25, 1e300]), Literal("5.25"), ["t1"]),
        (pa.array([4.5, 0.1, 1e300]), Literal("0.1", XSD + "decimal"), ["t1"]),
        (pa.array([Decimal("1.10"), Decimal("2.20")]), Literal("1.1"), ["t0"]),
        (pa.array([True, False]), Literal("0", XSD + "boolean"), ["t1"]),
        (pa.array([date(2004, 1, 31), date(2005, 1, 1)]), Literal("2004-01-31T00:00:00Z"), ["t0"]),
        (pa.array([date(2004, 1, 31), date(2005, 1, 1)], pa.date64()), Literal("2004-01-31"), ["t0"]),
        (pa.array([datetime(2004, 1, 31, 10)], pa.timestamp("ns")), Literal("2004-01-31T10:00:00"), ["t0"]),
        (pa.array([datetime(2004, 1, 31, 10)], pa.timestamp("s", "Europe/Berlin")), Literal("2004-01-31T11:00:00+01:00"), ["t0"]),
        (pa.array([1], pa.timestamp("ns")), Literal("1970-01-01"), ["t0"]),  # finer than a microsecond
        (pa.array(["5", "x"]), Literal("5"), ["t0"]),  # a text is a text
        (pa.array(["5", "x"]), Literal("5", XSD + "integer"), []),
        (pa.array(["x", "é\n"], pa.large_string()), Literal("é\n", None, "fr"), ["t1"]),
        (pa.array(["x", "y", "x"]).dictionary_encode(), Literal("x"), ["t0", "t2"]),
        (pa.chunked_array([["x"], ["y"], ["x"]]), Literal("x"), ["t0", "t2"]),
    ],
)  # fmt: skip
def test_values_in_conditions(column: pa.Array, value: Literal, expected: list[str]) -> None:
    engine = engine_of("WHERE (?x, p, ?y) AND ?y = $value", value=column)
    assert matched(engine, value) == expected
    again = Engine()
    for i in range(len(column)):
        again.subscribe(f"t{i}", engine.text(f"t{i}"))
    assert matched(again, value) == expected


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        (["ex:a", "<urn:b>", "urn:c", "plain name"], Iri("http://example.org/a"), ["t0"]),
        (["ex:a", "<urn:b>", "urn:c", "plain name"], Iri("urn:b"), ["t1"]),
        (["ex:a", "<urn:b>", "urn:c", "plain name"], Iri("urn:tidings:plain%20name"), ["t3"]),
        (["http://example.org/a", "urn:b"], Iri("urn:b"), ["t1"]),
        (["'a'", "'a'@en", "'5'^^xsd:integer"], Literal("a", None, "en"), ["t0", "t1"]),
        (["'a'", "5", "2.50"], Literal("2.5"), ["t2"]),
    ],
)
def test_values_in_triples_are_read_as_terms(column: list[str], value: Term, expected: list[str]) -> None:
    assert matched(engine_of("WHERE (?x, p, $value)", value=column), value) == expected


@given(st.lists(texts, min_size=1, max_size=5))
def test_any_text_comes_through_and_is_written_so_that_it_reads_back(words: list[str]) -> None:
    engine = engine_of("WHERE (?x, p, ?y) AND ?y = $word AND ?y CONTAINS $word", word=pa.array(words))
    for i, word in enumerate(words):
        where = parse(engine.text(f"t{i}")).where
        assert isinstance(where, And)
        written = [part for part in where.parts if isinstance(part, Comparison | TextTest)]
        assert written[0].right == written[1].pattern == Literal(word)  # type: ignore[union-attr]
        assert matched(engine, Literal(word)) == [f"t{k}" for k, other in enumerate(words) if other == word]


def test_a_table_replaces_what_is_there_and_can_be_replaced() -> None:
    engine = Engine()
    engine.subscribe("t1", "WHERE (?x, p, 'old')")
    engine.subscribe_table("WHERE (?x, p, $v)", table(v=["'a'", "'b'"]))
    assert len(engine) == 2
    assert matched(engine, Literal("old")) == []
    engine.subscribe_table("WHERE (?x, p, $v)", table(v=["'c'"]))
    engine.subscribe("t1", "WHERE (?x, p, 'new')")
    assert [matched(engine, Literal(v)) for v in ("a", "b", "c", "new")] == [[], [], ["t0"], ["t1"]]


def test_an_empty_table() -> None:
    engine = engine_of("WHERE (?x, p, ?y) AND ?y > $v", v=pa.array([], pa.int64()))
    assert len(engine) == 0
    engine.subscribe("s", "WHERE (?x, p, ?y)")
    engine.subscribe_table("WHERE (?x, p, ?y) AND ?y > $v", table(v=[1, 9]))
    assert matched(engine, Literal("5")) == ["s", "t0"]
    assert '"9"' in engine.text("t1")


def test_alternatives_and_several_parameters() -> None:
    engine = engine_of(
        "WHERE ((?x, $p, $v) OR (?x, p, $v)) AND topic = $t", p=["q", "r"], v=["a", "b"], t=["x", "y"]
    )
    event = Event.from_rdf("<urn:s> <urn:tidings:p> <urn:tidings:b> .", "turtle", attributes={"topic": "y"})
    assert [n.subscription for n in engine.publish(event)] == ["t1"]


CONDITION = "WHERE (?x, p, ?y) AND ?y = $v"


@pytest.mark.parametrize(
    ("template", "columns", "sentence"),
    [
        (CONDITION, {"w": [1]}, "no column 'v'"),
        (CONDITION, {"v": [None]}, "no value in row 0"),
        (CONDITION, {"v": [[1]]}, "type list"),
        (CONDITION, {"v": pa.array([1], pa.time64("us"))}, "type time64"),
        (CONDITION, {"v": [float("nan")]}, "has nan"),
        (CONDITION, {"v": [float("inf")]}, "has inf"),
        (CONDITION, {"v": pa.array([10**17], pa.timestamp("ms"))}, "no dateTime"),
        (CONDITION, {"v": pa.array([10**7], pa.date32())}, "no date"),
        (CONDITION, {"v": [1, 2], "id": ["a", "a"]}, "'a' stands twice"),
        (CONDITION, {"v": [1, 2], "id": ["a", None]}, "is missing"),
        (CONDITION, {"v": [1], "id": [["a"]]}, "column 'id'"),
        ("WHERE (?x, p, $v)", {"v": ["ex:a", "'a'"]}, "mixes IRIs and literals"),
        ("WHERE (?x, p, $v)", {"v": ["nowhere:a"]}, "unknown prefix 'nowhere'"),
        ("WHERE (?x, p, $v)", {"v": ["?z"]}, "no IRI or literal"),
        ("WHERE (?x, p, $v)", {"v": [" "]}, "no IRI or literal"),
        ("WHERE (?x, p, $v)", {"v": ["'abc'^^xsd:integer"]}, "not a value of the type"),
        ("WHERE ($v, p, ?y)", {"v": ["'a'"]}, "subject"),
        ("WHERE (?x, $v, ?y)", {"v": [5]}, "property"),
        ("WHERE (?x, p, ?y) AND ?y ISA $v", {"v": ["'a'"]}, "class"),
        ("WHERE (?x, p, ?y) AND ?y LIKE $v", {"v": [5]}, "plain text"),
        ("WHERE (?x, p, ?y) AND ?y MATCHES $v", {"v": ["a", "("]}, "not a regular expression"),
        ("WHERE (((", {"v": [1]}, "at 1:"),
        ("WHERE " + " AND ".join(f"((?x, a{i}, $v) OR (?x, b{i}, $v))" for i in range(9)), {"v": ["a"]}, "combinations"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told_and_changes_nothing(
    template: str, columns: dict[str, Any], sentence: str
) -> None:
    engine = Engine(prefixes={"ex": "http://example.org/"})
    engine.subscribe("t0", "WHERE (?x, p, 'old')")
    engine.subscribe("a", "WHERE (?x, p, 'old')")
    with pytest.raises(SubscriptionError, match=sentence):
        engine.subscribe_table(template, table(**columns))
    assert matched(engine, Literal("old")) == ["a", "t0"]
