"""Bad input gets a sentence and loses nothing else: an error row for an event, an error for a subscription."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings import Engine, Event, EventError, SubscriptionError, TidingsError
from tidings.documents import MAX_BYTES

GOOD = "<urn:tidings:a> <urn:tidings:p> 'ä€' ."
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def rdf_xml(body: str, prolog: str = "") -> str:
    return (
        f'{prolog}<rdf:RDF xmlns:rdf="{RDF}" xmlns="urn:tidings:">'
        f'<rdf:Description rdf:about="urn:tidings:a"><p>{body}</p></rdf:Description></rdf:RDF>'
    )


BOMB = "<!DOCTYPE x [" + '<!ENTITY a0 "ha">' + "".join(
    f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12)
) + "]>"  # fmt: skip
QUADRATIC = f'<!DOCTYPE x [<!ENTITY a "{"x" * 50_000}">]>'
EXTERNAL = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]>'
PARAMETER = '<!DOCTYPE x [<!ENTITY % a SYSTEM "http://localhost:1/x.dtd"> %a;]>'

BAD_DOCUMENTS: dict[str, tuple[str, bytes]] = {
    "malformed turtle": ("text/turtle", b"<urn:a> <urn:p> ."),
    "malformed triples": ("application/n-triples", b"<urn:a> <urn:p> .\n"),
    "half a good graph": ("application/n-triples", b'<urn:tidings:a> <urn:tidings:p> "lost" .\nbroken\n'),
    "malformed quads": ("application/n-quads", b"x"),
    "malformed trig": ("application/trig", b"{"),
    "malformed json-ld": ("application/ld+json", b'{"@id": '),
    "json-ld with a remote context": (
        "application/ld+json",
        b'{"@context": "http://localhost:1/c", "@id": "urn:a"}',
    ),
    "json-ld nested too deep": ("application/ld+json", b"[" * 100_000 + b"]" * 100_000),
    "malformed xml": ("application/rdf+xml", b"<rdf:RDF"),
    "xml that is not rdf": ("application/rdf+xml", b"<html><body></html>"),
    "xml nested too deep": ("application/rdf+xml", rdf_xml("<a>" * 50_000).encode()),
    "entity bomb": ("application/rdf+xml", rdf_xml("&a11;", BOMB).encode()),
    "quadratic entities": ("application/rdf+xml", rdf_xml("&a;" * 5000, QUADRATIC).encode()),
    "external entity": ("application/rdf+xml", rdf_xml("&a;", EXTERNAL).encode()),
    "parameter entity": ("application/rdf+xml", rdf_xml("&a;", PARAMETER).encode()),
    "unknown entity": ("application/rdf+xml", rdf_xml("&nowhere;").encode()),
    "wrong bytes in turtle": ("text/turtle", b"<urn:a> <urn:p> '\xe9' ."),
    "wrong bytes in triples": ("application/n-triples", b'<urn:a> <urn:p> "\xe9" .\n'),
    "a character cut in two": ("application/n-triples", '<urn:a> <urn:p> "é'.encode()[:-1]),
    "wrong bytes in xml": ("application/rdf+xml", rdf_xml("\xe9").encode("latin-1")),
    "unknown encoding": (
        "application/rdf+xml",
        b'<?xml version="1.0" encoding="klingon"?>' + rdf_xml("é").encode("latin-1"),
    ),
    "an encoding that is none": (
        "application/rdf+xml",
        b'<?xml version="1.0" encoding="zlib"?>' + rdf_xml("é").encode("latin-1"),
    ),
    "too large": ("text/turtle", b"#" * (MAX_BYTES + 1)),
    "too large triples": ("application/n-triples", b"#" * (MAX_BYTES + 1)),
    "relative address": ("text/turtle", b"<a> <p> <b> ."),
    "triple terms": ("text/turtle", b"<urn:a> <urn:p> <<( <urn:a> <urn:p> <urn:b> )>> ."),
    "zeros": ("application/n-triples", b"\0" * 100),
    "a wrong media type": ("application/rdf+xml", GOOD.encode()),
}


def is_sentence(text: str | None) -> bool:
    return (
        bool(text) and "Traceback" not in str(text) and "\n" not in str(text).strip() and len(str(text)) < 600
    )


@pytest.fixture(scope="module")
def engine() -> Engine:
    engine = Engine()
    engine.subscribe("s", "SELECT ?y WHERE (a, p, ?y)")
    engine.subscribe("a", "WHERE n = 1")
    return engine


def good(id: str) -> Event:
    return Event(id=id, datacontenttype="text/turtle", data=GOOD.encode())


def test_bad_documents_among_good_ones(engine: Engine) -> None:
    """All of them in one batch, each between two good events."""
    events = [good("first")]
    for name, (media_type, data) in BAD_DOCUMENTS.items():
        events += [Event(id=name, datacontenttype=media_type, data=data), good(f"after {name}")]
    rows = engine.publish_many(events).to_pylist()
    matched = {row["event"] for row in rows if row["verdict"] == "match"}
    assert matched == {"first", *(f"after {name}" for name in BAD_DOCUMENTS)}
    errors = {row["event"]: row for row in rows if row["verdict"] == "error"}
    assert errors.keys() == BAD_DOCUMENTS.keys()
    for name, row in errors.items():
        assert row["subscription"] is None
        assert is_sentence(row["message"]), f"{name}: {row['message']}"


@pytest.mark.parametrize("name", BAD_DOCUMENTS)
def test_a_bad_document_alone(engine: Engine, name: str) -> None:
    media_type, data = BAD_DOCUMENTS[name]
    event = Event(datacontenttype=media_type, data=data)
    (told,) = engine.publish(event)
    assert told.verdict == "error"
    assert engine.explain("s", event).verdict == "error"
    with pytest.raises(EventError):
        Event.from_rdf(data, media_type)


@pytest.mark.parametrize(
    ("media_type", "data"),
    [
        ("application/rdf+xml", rdf_xml("ä€", '<?xml version="1.0" encoding="utf-16"?>').encode("utf-16")),
        ("application/rdf+xml", rdf_xml("ä€").encode("utf-16")),
        ("application/rdf+xml", rdf_xml("ä€", '<?xml version="1.0" encoding="windows-1252"?>').encode("cp1252")),
        ("application/rdf+xml", rdf_xml("ä€", '<?xml version="1.0" encoding="ISO-8859-15"?>').encode("iso-8859-15")),
        ("application/rdf+xml", rdf_xml("ä€").encode("utf-8-sig")),
        ("application/rdf+xml", rdf_xml("ä&euro;", '<!DOCTYPE x [<!ENTITY euro "&#8364;">]>').encode()),
        ("application/rdf+xml", rdf_xml("ä€", "<!DOCTYPE rdf:RDF>").encode()),
        ("application/rdf+xml; charset=utf-8", rdf_xml("ä€").encode()),
        ("Text/Turtle", GOOD.encode("utf-8-sig")),
        ("text/turtle", GOOD.encode("utf-16")),
        ("application/n-triples", '<urn:tidings:a> <urn:tidings:p> "ä€" .'.encode("utf-16")),
        ("application/n-triples", '<urn:tidings:a> <urn:tidings:p> "\\u00E4\\u20AC" . # é\r\n'.encode()),
    ],
)  # fmt: skip
def test_odd_but_good_documents_are_read(engine: Engine, media_type: str, data: bytes) -> None:
    (told,) = engine.publish(Event(datacontenttype=media_type, data=data))
    assert (told.verdict, told.bindings) == ("match", {"y": "ä€"}), told.message


@pytest.mark.parametrize(
    "media_type", ["", "text/plain", "application/octet-stream", "turtle-ish", ";", "text/turtlé"]
)
def test_content_of_other_types_has_no_graph(engine: Engine, media_type: str) -> None:
    assert engine.publish(Event(datacontenttype=media_type, data=GOOD.encode())) == []
    with pytest.raises(EventError, match="unknown RDF format"):
        Event.from_rdf(GOOD, media_type)


@given(
    st.binary(max_size=60),
    st.sampled_from(["text/turtle", "application/n-triples", "application/rdf+xml", "application/ld+json"]),
)
def test_no_bytes_are_a_traceback(data: bytes, media_type: str) -> None:
    engine = Engine()
    engine.subscribe("s", "WHERE (a, p, ?y)")
    rows = engine.publish_many(
        [Event(id="bad", datacontenttype=media_type, data=data), good("good")]
    ).to_pylist()
    assert {"good"} <= {row["event"] for row in rows if row["verdict"] == "match"}
    assert all(is_sentence(row["message"]) for row in rows if row["verdict"] == "error")


CLOUD_EVENTS: list[Any] = [
    5,
    None,
    [],
    "text",
    {"id": 5},
    {"id": "\ud800"},
    {"source": "\ud800"},
    {"source": ["a"]},
    {"time": 1_000_000},
    {"datacontenttype": {}},
    {"data_base64": 5},
    {"data_base64": "@@"},
    {"data_base64": "é"},
    {"n": {(1, 2): 3}},
    {"data": {1: 2, "n": 3}},
]


@pytest.mark.parametrize("obj", CLOUD_EVENTS, ids=repr)
def test_what_is_no_cloud_event(obj: Any) -> None:
    with pytest.raises(EventError) as caught:
        Event.from_cloudevent(obj)
    assert is_sentence(str(caught.value))


@pytest.mark.parametrize(
    ("obj", "verdicts"),
    [
        ({}, []),
        ({"n": 1}, ["match"]),
        ({"data": {"n": 1}}, ["match"]),
        ({"data": {"n": 1}, "datacontenttype": "text/plain"}, []),
        ({"data": {"n": [0, 1]}}, ["match"]),
        ({"data": {"n": {"n": 1}}}, []),
        ({"data": [1]}, []),
        ({"data": 5}, []),
        ({"data": "text"}, []),
        ({"data": None, "n": 1.0}, ["match"]),
        ({"n": float("nan")}, []),
        ({"n": float("inf")}, []),
        ({"n": 10**400}, []),
        ({"n": "1"}, ["match"]),
        ({"n": "\ud800"}, []),
        ({"n": True}, []),
        ({"n": 1, "time": "yesterday"}, ["match"]),
        ({"n": 1, "time": ""}, ["match"]),
        ({"n": 1, "data": "broken", "datacontenttype": "text/turtle"}, ["match", "error"]),
        ({"data": "\ud800", "datacontenttype": "text/turtle"}, ["error"]),
    ],
    ids=repr,
)
def test_odd_cloud_events_are_events(engine: Engine, obj: dict[str, Any], verdicts: list[str]) -> None:
    assert [n.verdict for n in engine.publish(Event.from_cloudevent(obj))] == verdicts


def test_attributes_that_are_no_json_object_are_that_events_error(engine: Engine) -> None:
    table = pa.table({"id": list("abcde"), "attributes": ['{"n": 1}', "{", "[1]", "5", '{"n": 1}']})
    rows = engine.publish_many(table).to_pylist()
    assert [(row["event"], row["verdict"]) for row in rows] == [
        ("a", "match"),
        ("e", "match"),
        ("b", "error"),
        ("c", "error"),
        ("d", "error"),
    ]


BAD_TEXTS = [
    "",
    " ",
    "SELECT",
    "WHERE",
    "WHERE (",
    "WHERE (?x, p)",
    "WHERE (?x, p, ?y",
    "WHERE (?x, p, ?y) AND",
    "WHERE (?x, p, ?y) AND ?z > 5",
    "SELECT ?z WHERE (?x, p, ?y)",
    "WHERE (?x, nowhere:p, ?y)",
    "WHERE ('a', p, ?y)",
    "WHERE (?x, 'p', ?y)",
    "WHERE (?x, p, ?y) AND ?y MATCHES '('",
    "WHERE (?x, p, ?y) AND ?y MATCHES '(a)\\1'",
    "WHERE (?x, p, ?y) AND ?y > 'abc'^^xsd:integer",
    "WHERE (?x, p, 'unclosed)",
    "WHERE (?x, p, '\\uD800')",
    "WHERE (?x, p, '\ud800')",
    "WHERE (?x, <not an iri>, ?y)",
    "WHERE NOT (?x, p, ?y)",
    "SELECT ?x WHERE { ?x ",
    "SELECT ?x WHERE { ?x foo:p ?y }",
    "WHERE " + "(" * 5000,
    "WHERE " + "NOT " * 5000 + "a = 1",
    "WHERE a = 1 " * 3,
    "\0",
    "WHERE (?x, p, $y)",
    "WHERE (?x, p, ?y) AND ?y > $0 AND ?y < 5",
    "SELECT * { ?x ?p 'abc'^^xsd:integer }",
]


@pytest.mark.parametrize("text", BAD_TEXTS, ids=lambda text: repr(text[:40]))
def test_a_bad_subscription_is_refused_with_a_sentence(text: str) -> None:
    engine = Engine()
    with pytest.raises(SubscriptionError) as caught:
        engine.subscribe("bad", text)
    assert is_sentence(str(caught.value))
    assert "bad" not in engine


@given(st.text(st.sampled_from("WHERE SELECT(?x,p)='<>\"{}AND$1.5@^:\\\n\0é"), max_size=40))
def test_no_text_is_a_traceback(text: str) -> None:
    engine = Engine()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for candidate in (text, f"WHERE {text}", f"WHERE (?x, p, {text})", f"SELECT * {{ {text} }}"):
            try:
                engine.subscribe("s", candidate)
            except TidingsError as error:
                assert is_sentence(str(error))
    engine.subscribe("t", "WHERE (a, p, ?y)")
    assert "t" in {n.subscription for n in engine.publish(good("g"))}


@pytest.mark.parametrize("id", ["", None, 5, b"s", "\ud800"])
def test_an_id_that_no_table_can_hold(id: Any) -> None:
    engine = Engine()
    engine.subscribe("s", "WHERE (a, p, ?y)")
    with pytest.raises(SubscriptionError, match="id"):
        engine.subscribe(id, "WHERE (a, p, ?y)")
    assert [n.subscription for n in engine.publish(good("g"))] == ["s"]


def test_messages_are_json() -> None:
    """What a bad event says can be told on: no half characters, no endless echo of the input."""
    engine = Engine()
    engine.subscribe("s", "WHERE (a, p, ?y)")
    data = b"<urn:a> <urn:p> " + b"x" * 100_000
    (told,) = engine.publish(Event(datacontenttype="text/turtle", data=data))
    assert len(json.dumps(told.message)) < 1000
