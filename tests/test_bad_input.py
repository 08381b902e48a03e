"""Bad input gets a sentence and loses nothing else: an error row for an event, an error for a subscription."""

from __future__ import annotations

import json
import re
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings import Engine, Event, EventError, Network, SubscriptionError, TidingsError
from tidings.formats.documents import MAX_BYTES
from tidings.kinds.networks.faults import NetworkError

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


def filters(*texts: str, networks: dict[str, Network] | None = None) -> Engine:
    engine = Engine(networks=networks)
    for number, text in enumerate(texts):
        engine.subscribe(str(number), text)
    return engine


def told(engine: Engine, attributes: dict[str, Any], source: str = "") -> list[int]:
    """The subscriptions that match an event: alone, in a batch, as a JSON line and by explain, all alike."""
    event = Event(id="e", source=source, attributes=attributes)
    ids = sorted(int(str(n.subscription)) for n in engine.publish(event))
    line = json.dumps({"id": "e", **({"source": source} if source else {}), **attributes})
    for table in (engine.publish_many([event]), engine.publish_lines(line.encode())):
        assert sorted(map(int, table["subscription"].to_pylist())) == ids
    explained = [i for i in range(len(engine)) if engine.explain(str(i), event).verdict == "match"]
    assert explained == ids
    return ids


def test_more_predicates_than_are_read() -> None:
    many = " OR ".join(f"a = {i}" for i in range(10_001))
    with pytest.raises(SubscriptionError, match="more than 10,000 predicates"):
        Engine().subscribe("s", f"WHERE {many}")
    with pytest.raises(NetworkError, match="more than 10,000 predicates"):
        Network().add_node("a", many)


def test_many_options_in_any_order() -> None:
    options = ", ".join(str(i * 7919 % 10_007) for i in range(10_000))
    engine = filters(f"WHERE a IN ({options})", f"WHERE a NOT IN ({options})")
    left_out = {i * 7919 % 10_007 for i in range(10_000, 10_007)}
    assert told(engine, {"a": 1}) == [0]
    assert told(engine, {"a": sorted(left_out)}) == [1]
    assert told(engine, {"a": [1, 10_007]}) == [0, 1]


def test_numbers_at_the_edge_of_floats() -> None:
    engine = filters(
        "WHERE a = 9007199254740993",
        "WHERE a = 9007199254740992",
        "WHERE a > 9007199254740992",
        "WHERE a + 1 = 9007199254740994",
        "WHERE NOT a = 5",
    )
    assert told(engine, {"a": 2**53}) == [1, 4]
    assert told(engine, {"a": float(2**53)}) == [1, 4]
    assert told(engine, {"a": 2**53 + 1}) == [0, 2, 3, 4]
    assert told(engine, {"a": str(2**53 + 1)}) == [0, 2, 3, 4]
    assert told(engine, {"a": 2**64}) == [2, 4]
    for nothing in (float("nan"), float("inf"), None, True, {"x": 1}, "NaN", "x" * (1 << 20)):
        assert told(engine, {"a": nothing}) == [4]


def test_texts_of_a_megabyte() -> None:
    engine = filters(
        "WHERE a = 'q'",
        "WHERE a STARTS WITH 'qq'",
        "WHERE a LIKE '%q'",
        "WHERE a MATCHES 'q$'",
        "WHERE a CONTAINS 'QQ' IGNORE CASE",
        "WHERE a > 'q'",
        "WHERE NOT a = 'q'",
    )
    assert told(engine, {"a": "q" * (1 << 20)}) == [1, 2, 3, 4, 5, 6]
    assert told(engine, {"q" * (1 << 20): 1}) == [6]


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("`a.b`", {"a": {"b": 1}}),
        ("`a.b`", {"a.b": 1}),
        ("a.0", {"a": {"0": 1}}),
        ("`a``b`", {"a`b": 1}),
        ("` `", {" ": 1}),
        ("`a\nb`", {"a\nb": 1}),
        ('`\\"`', {'\\"': 1}),
        ("`.`", {".": 1}),
        ("`a..b`", {"a": {"": {"b": 1}}}),
        ("select", {"select": 1}),
        ("`exists`", {"exists": 1}),
        ("`true`", {"true": 1}),
        ("日本", {"日本": 1}),
        ("attributes.data", {"attributes": {"data": 1}}),
    ],
)
def test_odd_names_of_attributes(name: str, attributes: dict[str, Any]) -> None:
    engine = filters(f"WHERE {name} = 1", f"WHERE NOT {name} = 1", f"WHERE MISSING {name}")
    assert told(engine, attributes) == [0]
    assert told(engine, {"other": 1}) == [1, 2]


def test_attributes_named_like_the_envelope_are_further_values() -> None:
    engine = filters("WHERE source = 'p'", "WHERE source = 'z'", "WHERE type.x = 1", "WHERE id = 'e'")
    for attributes, ids in (
        ({"source": "z"}, [0, 1, 3]),
        ({"type": {"x": 1}}, [0, 2, 3]),
        ({"id": None}, [0, 3]),
    ):
        event = Event(id="e", source="p", attributes=attributes)
        assert sorted(int(str(n.subscription)) for n in engine.publish(event)) == ids
        assert sorted(map(int, engine.publish_many([event])["subscription"].to_pylist())) == ids


def test_bad_lines_among_good_ones(engine: Engine) -> None:
    good = b'{"id": "good", "n": 1}'
    bad = [
        b'{"n": "\xff\xfe"}',
        b'{"\xff": 1, "n": 1}',
        b'{"n": ' + b"[" * 5000 + b"1" + b"]" * 5000 + b"}",
        b'{"n": ' + b'{"n": ' * 5000 + b"1" + b"}" * 5000 + b"}",
        b'{"n": ' + b"9" * 5000 + b"}",
        b'{"n": 01}',
        b'{"n": +1}',
        b'{"n": 0x1}',
        b'{"n": 1,}',
        b"{'n': 1}",
        b'{"n": 1}{"n": 1}',
        b'{"n": "\\x", "m": 1}',
        b'[{"n": 1}]',
        b'{"n":',
    ]
    rows = engine.publish_lines(b"\n".join(line for one in bad for line in (one, good))).to_pylist()
    assert [row["event"] for row in rows if row["verdict"] == "match"] == ["good"] * len(bad)
    errors = [row for row in rows if row["verdict"] == "error"]
    assert [row["event"] for row in errors] == [str(2 * i + 1) for i in range(len(bad))]
    assert all(is_sentence(row["message"]) and row["subscription"] is None for row in errors)


def test_places_in_networks_that_are_changed_replaced_and_removed(tmp_path: Path) -> None:
    network = Network()
    for node, where in (("p", None), ("i", "x > 5"), ("s", "NOT y = 1")):
        network.add_node(node, where)
    network.add_edge("p", "i")
    network.add_edge("i", "s", "z IS NULL")
    engine = filters("VIA n AT 's'", "WHERE x < 10 VIA n AT s", "WHERE x < 10", networks={"n": network})
    assert told(engine, {"x": 7}, "p") == [0, 1, 2]
    assert told(engine, {"x": 99}, "p") == [0]
    assert told(engine, {"x": 7, "z": 0}, "p") == told(engine, {"x": 7}, "nowhere") == [2]
    engine.save(tmp_path)
    engine = Engine.load(tmp_path)
    assert told(engine, {"x": 7}, "p") == [0, 1, 2]
    engine.networks["n"].set_where("i", "x > 50")
    assert told(engine, {"x": 7}, "p") == [2]
    engine.networks["n"].remove_node("s")
    assert told(engine, {"x": 99}, "p") == []
    engine.networks["n"].add_node("s")
    engine.networks["n"].add_edge("p", "s")
    assert told(engine, {"x": 7}, "p") == [0, 1, 2]
    del engine.networks["n"]
    assert told(engine, {"x": 7}, "p") == [2]


BAD_TABLES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "an unknown node": ({"id": ["a"]}, {"source": ["a"], "target": ["z"]}, "'z'"),
    "a node twice": ({"id": ["a", "a"]}, {"source": ["a"], "target": ["a"]}, "more than one node: 'a'"),
    "an edge twice": ({"id": ["a", "b"]}, {"source": ["a"] * 2, "target": ["b"] * 2}, "more than once"),
    "no id": ({"id": ["a", None]}, {"source": ["a"], "target": ["a"]}, "no id"),
    "no column": ({"name": ["a"]}, {"source": ["a"], "target": ["a"]}, "column 'id'"),
    "half an expression": ({"id": ["a"], "where": ["x >"]}, {"source": ["a"], "target": ["a"]}, "node 'a'"),
    "a pattern": ({"id": ["a"], "where": ["(?x, p, ?y)"]}, {"source": ["a"], "target": ["a"]}, "attributes"),
    "no cost": ({"id": ["a"], "cost": [float("nan")]}, {"source": ["a"], "target": ["a"]}, "nan"),
    "a cost below 0": ({"id": ["a"]}, {"source": ["a"], "target": ["a"], "cost": [-1.0]}, "-1"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_bad_network_is_refused_with_a_sentence(name: str) -> None:
    nodes, edges, part = BAD_TABLES[name]
    with pytest.raises(NetworkError) as caught:
        Network.from_tables(pa.table(nodes), pa.table(edges))
    assert part in str(caught.value)
    assert is_sentence(str(caught.value))


def test_constants_from_a_table_that_cannot_be_compared() -> None:
    for template, column, part in (
        ("WHERE a IN CIDR $v", ["10.0.0.0/8", "zz"], "'zz' is not a network"),
        ("WHERE a MATCHES $v", ["a", "("], "not a regular expression"),
        ("WHERE a SEARCH $v", ["a", "b -"], "'b -' is not a search: '-' holds no word"),
        ("WHERE a SEARCH $v STEMMED 'english'", ["a", "-b"], "only words that are excluded"),
        ("WHERE a SEARCH $v", [1, 2], "has to be a plain text"),
        ("WHERE a + $v = 6", ["1", "x"], "has to be a number"),
        ("WHERE a = $v", [5.0, float("nan")], "nan"),
        ("WHERE a = $v", [5, None], "no value in row 1"),
        ("WHERE a IN ($v)", [[1], [2]], "list"),
    ):
        engine = Engine()
        with pytest.raises(SubscriptionError, match=re.escape(part)):
            engine.subscribe_table(template, pa.table({"id": ["0", "1"], "v": column}))
        assert not len(engine)


@pytest.mark.parametrize(
    ("template", "column", "ids"),
    [
        ("WHERE a = $v IGNORE CASE", ["abc", "ABC", "b"], [0, 1]),
        ("WHERE a ILIKE $v", ["ab%", "_B_", "b"], [0, 1]),
        ("WHERE a SEARCH $v", ["ABC -d", "ab", "d OR abc"], [0, 2]),
        ("WHERE ip IN CIDR $v", ["10.0.0.0/8", "11.0.0.0/8", "10.1.2.3"], [0, 2]),
        ("WHERE ANY x IN l SATISFIES (x.p = $v AND n > $v)", [1, 5, 2], [0]),
        ("WHERE n + $v = 6", [1, 2, 3], [0]),
    ],
)
def test_forms_of_conditions_with_constants_from_a_table(
    template: str, column: list[Any], ids: list[int]
) -> None:
    engine = Engine()
    engine.subscribe_table(template, pa.table({"id": ["0", "1", "2"], "v": column}))
    assert told(engine, {"a": "ABC", "ip": "10.1.2.3", "l": [{"p": 1}, {"p": 5}], "n": 5}) == ids


def test_threads_that_publish_to_one_engine() -> None:
    """The first of them build what is not built yet."""
    texts = [f"WHERE a = {i % 50} AND NOT b = {i % 7} OR c LIKE '%x{i}%'" for i in range(500)]
    events = [Event(id=str(i), attributes={"a": i, "b": i % 9, "c": f"zx{i}z"}) for i in range(60)]
    quiet, shared = filters(*texts), filters(*texts)
    expected = [quiet.publish(event) for event in events]
    with ThreadPoolExecutor(4) as pool:
        assert all(
            found == expected for found in pool.map(lambda _: [*map(shared.publish, events)], range(4))
        )


def test_a_network_takes_no_parameter_and_is_as_it_was() -> None:
    network = Network()
    network.add_node("p")
    with pytest.raises(NetworkError, match=r"has \$b, which has no value here"):
        network.add_node("z", "x = 1 AND a = $b")
    network.add_node("q", "x = 2")
    network.add_edge("p", "q")
    assert list(network.evaluate("p", {"x": 1})) == []
    assert list(network.evaluate("p", {"x": 2})) == ["q"]


@pytest.mark.parametrize(
    ("number", "held"),
    [("1e0002", True), ("100e-00000", True), ("9" * 500, True), ("1e-400", False), ("1e400", False)],
)
def test_numbers_in_odd_forms_are_what_python_reads(number: str, held: bool) -> None:
    engine = Engine()
    engine.subscribe("more", "WHERE a > 5")
    engine.subscribe("not", "WHERE NOT a > 5")
    found = engine.publish_lines(f'{{"a": {number}}}')["subscription"].to_pylist()
    assert found == (["more"] if held else ["not"])


def test_subscribing_while_others_publish() -> None:
    engine = Engine()
    engine.subscribe("first", "WHERE a = 1")
    events = [Event(attributes={"a": 1})] * 3
    faults: list[Exception] = []

    def publish() -> None:
        try:
            for _ in range(30):
                assert len(engine.publish_many(events)) >= 3
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=publish) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(60):
        engine.subscribe(f"s{number}", f"WHERE a = {number}")
    for thread in threads:
        thread.join()
    assert faults == []


def test_what_is_no_event_is_told() -> None:
    with pytest.raises(EventError, match="not dict; try Event"):
        Engine().publish({"a": 1})  # type: ignore[arg-type]
    with pytest.raises(EventError, match="not dict; try Event"):
        Engine().publish_many([{"a": 1}])  # type: ignore[list-item]


def _doubled(*names: str) -> pa.Table:
    return pa.Table.from_arrays([pa.array(["a"])] * len(names), names=list(names))


@pytest.mark.parametrize(
    "take",
    [
        lambda engine: engine.publish_many(_doubled("x", "x")),
        lambda engine: engine.publish_many(_doubled("id", "id", "x").to_batches()[0]),
        lambda engine: engine.correlate(_doubled("id", "id")),
        lambda engine: engine.subscribe_table("WHERE x = $p", _doubled("id", "p", "p")),
        lambda engine: engine.subscribe_table("WHERE x = $p", _doubled("id", "id", "p")),
        lambda engine: Network.from_tables(_doubled("id", "where", "where"), _doubled("source", "target")),
        lambda engine: Network.from_tables(_doubled("id"), _doubled("source", "target", "target")),
    ],
)
def test_two_columns_of_one_name_are_told(take: Callable[[Engine], object]) -> None:
    engine = Engine()
    engine.subscribe("a", "WHERE x = 1")
    with pytest.raises(TidingsError, match="two columns '.*'; rename one of them, or leave it out"):
        take(engine)
