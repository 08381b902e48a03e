"""Events and their tables."""

from __future__ import annotations

import base64
import json
from datetime import date, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest

from tidings import Event, EventError
from tidings.formats.rdf import NTRIPLES
from tidings.model.event import EVENT_SCHEMA, to_table

TURTLE = "@prefix : <urn:tidings:> . :a :p 'x' ."
NT = b'<urn:tidings:a> <urn:tidings:p> "x" .\n'
RDF_XML = """<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="urn:tidings:">
<rdf:Description rdf:about="urn:tidings:a"><p>x</p></rdf:Description></rdf:RDF>"""
JSON_LD = '{"@id": "urn:tidings:a", "urn:tidings:p": "x"}'


@pytest.mark.parametrize(
    ("data", "format"),
    [
        (TURTLE, "turtle"),
        (TURTLE, "text/turtle; charset=utf-8"),
        (TURTLE.encode(), "TTL"),
        (NT, "nt"),
        (NT, NTRIPLES),
        (RDF_XML, "rdfxml"),
        (RDF_XML, "application/rdf+xml"),
        (JSON_LD, "jsonld"),
        (JSON_LD, "application/ld+json"),
        (NT.decode().replace(" .", " <urn:graph> ."), "nquads"),
        ("<urn:g> { <urn:tidings:a> <urn:tidings:p> 'x' }", "trig"),
    ],
)
def test_every_syntax_gives_one_graph(data: str | bytes, format: str) -> None:
    event = Event.from_rdf(data, format, source="here", type="t")
    assert (event.data, event.datacontenttype, event.source, event.type) == (NT, NTRIPLES, "here", "t")
    assert event.graph() == NT
    raw = Event(datacontenttype=format, data=data.encode() if isinstance(data, str) else data)
    assert raw.graph() == NT


def test_relative_addresses_need_a_base() -> None:
    assert (
        b"<http://example.org/a>"
        in Event.from_rdf("<a> <p> <b> .", "turtle", base="http://example.org/").data
    )
    with pytest.raises(EventError, match="not readable as Turtle"):
        Event.from_rdf("<a> <p> <b> .", "turtle")


def test_an_id_is_the_hash_of_the_content() -> None:
    first, second = Event(attributes={"a": 1, "b": 2}), Event(attributes={"b": 2, "a": 1}, source="elsewhere")
    assert first.id == second.id
    others = [Event(attributes={"a": 1}), Event(data=b"x"), Event(datacontenttype="x"), Event()]
    assert len({first.id, *(event.id for event in others)}) == 5
    assert Event(id="mine").id == "mine"


def test_a_cloud_event_with_json_data() -> None:
    event = Event.from_cloudevent(
        {"specversion": "1.0", "id": "1", "source": "s", "type": "t", "time": "2004-01-31T10:00:00Z", "ext": 5,
         "datacontenttype": "application/json", "data": {"topic": "x", "ext": 6}}
    )  # fmt: skip
    assert (event.id, event.source, event.type, event.time) == ("1", "s", "t", "2004-01-31T10:00:00Z")
    assert event.attributes == {"topic": "x", "ext": 5}  # the envelope's own come first
    assert json.loads(event.data) == {"topic": "x", "ext": 6}


@pytest.mark.parametrize(
    "data", [{"data": TURTLE}, {"data_base64": base64.b64encode(TURTLE.encode()).decode()}]
)
def test_a_cloud_event_with_a_graph(data: dict[str, Any]) -> None:
    assert Event.from_cloudevent({"datacontenttype": "text/turtle", **data}).graph() == NT


def test_a_cloud_event_with_json_ld() -> None:
    event = Event.from_cloudevent({"datacontenttype": "application/ld+json", "data": json.loads(JSON_LD)})
    assert event.graph() == NT
    assert event.attributes == {}


def test_the_table() -> None:
    table = to_table([Event(attributes={"a": 1}), Event.from_rdf(TURTLE, "turtle", time="2004-01-31")])
    assert table.schema == EVENT_SCHEMA
    assert table["attributes"].to_pylist() == ['{"a": 1}', None]
    assert to_table([]).schema == EVENT_SCHEMA
    assert isinstance(to_table([]), pa.Table)


def test_attributes_that_json_has_no_form_for() -> None:
    values = {
        "d": date(2004, 1, 31),
        "t": datetime(2004, 1, 31, 10),
        "n": Decimal("2.5"),
        "s": {"b", "a"},
        "b": b"x",
    }
    row = Event(attributes=MappingProxyType(values)).row()
    assert json.loads(row["attributes"]) == {
        "d": "2004-01-31",
        "t": "2004-01-31T10:00:00",
        "n": "2.5",
        "s": ["a", "b"],
        "b": "b'x'",
    }


_loop: dict[str, Any] = {}
_loop["self"] = _loop


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": 5},
        {"id": "\ud800"},
        {"source": "\ud800"},
        {"source": None},
        {"type": b"t"},
        {"time": datetime(2004, 1, 31)},
        {"datacontenttype": None},
        {"data": "text"},
        {"data": None},
        {"attributes": [1]},
        {"attributes": {1: 2}},
        {"attributes": {"a": {(1, 2): 3}}},
        {"attributes": _loop},
    ],
)
def test_what_is_no_event_is_refused_with_a_sentence(wrong: dict[str, Any]) -> None:
    with pytest.raises(EventError) as caught:
        Event(**wrong)
    assert "\n" not in str(caught.value)


def test_changes_of_tables_are_events() -> None:
    event = Event.insert("stocks", {"symbol": "A"}, source="exchange", sequence=7, id="x")
    assert (event.type, event.source, event.id) == ("tidings.insert", "exchange", "x")
    assert event.attributes == {"table": "stocks", "row": {"symbol": "A"}, "sequence": 7}
    update = Event.update("stocks", MappingProxyType({"symbol": "A"}), {"symbol": "B"})
    assert update.type == "tidings.update"
    assert update.attributes == {"table": "stocks", "row": {"symbol": "A"}, "before": {"symbol": "B"}}
    assert "before" not in Event.update("stocks", {"symbol": "A"}).attributes
    assert Event.delete("stocks", {"symbol": "A"}).type == "tidings.delete"
    request = Event.snapshot("s1", source="client")
    assert (request.type, request.source) == ("tidings.snapshot", "client")
    assert request.attributes == {"subscription": "s1"}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Event.insert("", {}), "give its name as a text, not ''"),
        (lambda: Event.delete(None, {}), "give its name as a text, not None"),  # type: ignore[arg-type]
        (lambda: Event.insert("stocks", [1]), "a row is a dict from columns to values, not list"),  # type: ignore[arg-type]
        (lambda: Event.update("stocks", {}, 5), "a row is a dict from columns to values, not int"),  # type: ignore[arg-type]
        (lambda: Event.insert("stocks", {}, sequence=True), "a sequence is an integer, not True"),
        (lambda: Event.insert("stocks", {}, sequence="7"), "a sequence is an integer, not '7'"),  # type: ignore[arg-type]
        (lambda: Event.snapshot(""), "give its id as a text, not ''"),
    ],
)
def test_a_change_of_a_table_is_checked(make: Any, words: str) -> None:
    with pytest.raises(EventError, match=words):
        make()


@pytest.mark.parametrize("time", [0, False, b"", []])
def test_an_empty_time_that_is_no_text_is_refused(time: object) -> None:
    with pytest.raises(EventError, match="time is a string"):
        Event(id="e", time=time)  # type: ignore[arg-type]


def test_data_may_be_any_mapping() -> None:
    event = Event.from_cloudevent({"id": "e", "data": MappingProxyType({"n": 1, "a": "x"})})
    assert json.loads(event.row()["attributes"]) == json.loads(event.data) == {"n": 1, "a": "x"}
    assert Event.from_cloudevent({"id": "e", "data": {}}).row()["attributes"] is None
