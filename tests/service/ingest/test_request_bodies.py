"""Every form of an event gives the event; whatever else is posted gives a sentence, in bounded time."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tidings.errors import EventError
from tidings.model.event import Event
from tidings.service.ingest.request_bodies import (
    BATCH,
    MAX_EVENTS,
    STRUCTURED,
    ParsedBody,
    is_quick,
    read_events,
)

EVENT = {
    "specversion": "1.0",
    "id": "1",
    "source": "/s",
    "type": "t",
    "time": "2026-01-01T00:00:00Z",
    "extra": "e",
}
NDJSON = "application/x-ndjson"
TURTLE = b"<urn:a> <urn:b> 'c\xc3\xbc' ."
NTRIPLES = '<urn:a> <urn:b> "cü" .\n'.encode()
RSS = b"""<rss version="2.0"><channel><title>C</title><link>http://c.example/</link>
<item><guid>1</guid><title>One</title></item><item><guid>2</guid><title>Two</title></item></channel></rss>"""
RSS1 = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
<channel rdf:about="http://c.example/rdf"><title>C</title></channel>
<item rdf:about="http://c.example/1"><title>One</title></item></rdf:RDF>"""
RDFXML = b"""<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="urn:e#">
<rdf:Description rdf:about="urn:a"><e:b>c</e:b></rdf:Description></rdf:RDF>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>F</title>
<entry><id>urn:1</id><title>One</title></entry></feed>"""
JSON_FEED = {
    "version": "https://jsonfeed.org/version/1.1",
    "title": "F",
    "items": [{"id": "1", "title": "One"}],
}


def read(body: Any, kind: str, headers: dict[str, str] | None = None, source: str = "me") -> ParsedBody:
    if not isinstance(body, bytes):
        body = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return read_events(body, kind, headers or {}, source)


def one(body: Any, kind: str, headers: dict[str, str] | None = None) -> Event:
    found = read(body, kind, headers)
    assert found.rejected == []
    assert len(found.events) == 1
    return found.events[0]


def refused(body: Any, kind: str, headers: dict[str, str] | None = None) -> str:
    with pytest.raises(EventError) as caught:
        read(body, kind, headers)
    return str(caught.value)


# -- CloudEvents


@pytest.mark.parametrize(
    "kind", [STRUCTURED, "Application/CloudEvents+JSON; charset=UTF-8", "application/json", NDJSON]
)
def test_structured(kind: str) -> None:
    event = one({**EVENT, "data": {"a": 1}}, kind)
    assert event == Event("/s", {"a": 1, "extra": "e"}, "1", "t", EVENT["time"], "", b'{"a": 1}')


def test_structured_base64() -> None:
    event = one({**EVENT, "datacontenttype": "image/png", "data_base64": "AP8="}, STRUCTURED)
    assert (event.data, event.datacontenttype) == (b"\0\xff", "image/png")
    assert "not valid base64" in refused({**EVENT, "data_base64": "*"}, STRUCTURED)


def test_leniency() -> None:
    """No id: the hash of the content. No source: the publisher's. No type: none."""
    first, second = one({"data": {"a": 1}}, STRUCTURED), one({"data": {"a": 1}}, STRUCTURED)
    assert first == second
    assert (first.source, first.type, len(first.id)) == ("me", "", 32)
    assert one({"id": "1", "source": ""}, STRUCTURED).source == "me"


@pytest.mark.parametrize("version", ["0.3", "2.0", "", "1.", "10", 1.0, 1, ["1.0"], {}, False])
def test_other_versions_are_refused(version: Any) -> None:
    assert "1.0 is read" in refused({**EVENT, "specversion": version}, STRUCTURED)
    assert one({**EVENT, "specversion": "1.1"}, STRUCTURED).id == "1"


def test_a_batch() -> None:
    found = read([EVENT, {**EVENT, "id": "2"}], BATCH)
    assert [event.id for event in found.events] == ["1", "2"]
    assert read([], BATCH) == ([], [])
    assert "not an object" in refused(EVENT, BATCH)
    assert "not an array" in refused([EVENT], STRUCTURED)


def test_items_that_cannot_be_read_cost_no_other() -> None:
    bad = [{**EVENT, "id": 7}, 7, None, [EVENT], {**EVENT, "source": {}}, {**EVENT, "specversion": "0.1"}]
    found = read([EVENT, *bad, {**EVENT, "id": "2"}], BATCH)
    assert [event.id for event in found.events] == ["1", "2"]
    assert [place for place, _ in found.rejected] == [f"item {n}" for n in range(2, 8)]
    assert found.rejected[1] == ("item 3", "an event is a JSON object, not a number")


BINARY = {
    "ce-specversion": "1.0",
    "CE-Id": "1",
    "ce-source": "/s",
    "ce-type": "t",
    "ce-extra": "e",
    "accept": "*/*",
}


def test_binary_with_json() -> None:
    body = one({"a": 1}, "application/json; charset=utf-8", BINARY)
    assert body == Event("/s", {"a": 1, "extra": "e"}, "1", "t", None, "application/json", b'{"a": 1}')
    assert one([1, 2], "application/json", BINARY).data == b"[1, 2]"
    assert one(b"", "application/json", BINARY).data == b""
    assert one({"a": 1}, "application/vnd.x+json", BINARY).attributes["a"] == 1


def test_binary_with_anything() -> None:
    event = one(b"\0\xff", "image/png", BINARY)
    assert event == Event("/s", {"extra": "e"}, "1", "t", None, "image/png", b"\0\xff")
    assert one(b"", "", BINARY) == Event("/s", {"extra": "e"}, "1", "t")
    assert one(TURTLE, "text/turtle", BINARY).graph() == NTRIPLES
    assert one(RSS, "application/rss+xml", BINARY).data == RSS
    latin = one("Grüße".encode("latin-1"), "text/plain; charset=ISO-8859-1", BINARY)
    assert (latin.data, latin.datacontenttype) == ("Grüße".encode(), "text/plain")


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("plain", "plain"),
        ("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € 😀"),
        ("%2525", "%25"),
        ('"quoted \\"and\\" \\\\ escaped %E2%82%AC"', 'quoted "and" \\ escaped €'),
        ("100%", "100%"),
        ("  spaces ", "spaces"),
        ("gr\u00c3\u00bc\u00df".encode("latin-1").decode("latin-1"), "gr\u00c3\u00bc\u00df"),
        ("grün".encode().decode("latin-1"), "grün"),
    ],
)
def test_headers_are_decoded_once(value: str, meaning: str) -> None:
    assert one(b"", "", {**BINARY, "ce-subject": value}).attributes["subject"] == meaning


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ce-subject", "%ff"),
        ("ce-a_b", "1"),
        ("ce-", "1"),
        ("ce-data", "{}"),
        ("ce-ü", "1"),
        ("ce-specversion", "0.3"),
        ("ce-id", "a%0D%0Ab"),
    ],
)
def test_headers_that_cannot_be_read(name: str, value: str) -> None:
    assert refused(b"", "", {**BINARY, name: value})


def test_a_header_that_is_there_twice() -> None:
    assert "twice" in refused(b"", "", {"ce-id": "1", "Ce-Id": "2"})


# -- lines and plain JSON


def test_lines() -> None:
    body = b'\xef\xbb\xbf{"a": 1}\r\n\n  \n{"a": \n{"id": 5, "data": {"b": 2}}\n[]\n"\xff"\n{"specversion": "1.0", "id": "x"}'
    found = read(body, NDJSON)
    assert found.events[0].attributes == {"a": 1}
    assert found.events[1].attributes == {"id": 5, "data": {"b": 2}, "b": 2}
    assert (found.events[1].id, found.events[2].id) == ("5", "x")
    assert [place for place, _ in found.rejected] == ["line 4", "line 6", "line 7"]
    assert "not utf-8" in found.rejected[2][1]


def test_lines_of_cloudevents() -> None:
    found = read(b'{"id": "1", "data": {"a": 1}}\n{"id": 2}', "application/cloudevents+ndjson")
    assert found.events[0].attributes == {"a": 1}
    assert [place for place, _ in found.rejected] == ["line 2"]


def test_a_line_that_nests_too_deep_costs_itself_alone() -> None:
    body = b'{"a": 1}\n' + b'{"a":' * 300 + b"\n" + b"[" * 100_000 + b'\n{"a": 2}\n' * 2
    found = read(body, NDJSON)
    assert len(found.events) == 3
    assert [place for place, _ in found.rejected] == ["line 2", "line 3"]
    assert "nest deeper" in found.rejected[0][1]


def test_plain_json() -> None:
    event = one({"topic": "sport", "price": 12, "source": "/x", "type": 5}, "application/json")
    assert (event.source, event.type) == ("/x", "")
    assert event.attributes == {"topic": "sport", "price": 12, "type": 5}
    assert len(read([{"a": 1}, EVENT], "application/json").events) == 2
    assert "not a number" in refused(7, "application/json")
    assert one({"a": 1}, "application/vnd.example+json").attributes == {"a": 1}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1"])
def test_other_encodings(encoding: str) -> None:
    kind = "application/json; charset=" + ("iso-8859-1" if encoding == "latin-1" else "utf-8")
    assert one('{"a": "grün"}'.encode(encoding), kind).attributes == {"a": "grün"}


def test_lines_in_other_encodings() -> None:
    for encoding in ("utf-16-le", "latin-1"):
        found = read('{"a": "ü"}\n{"a": "ä"}'.encode(encoding), f"{NDJSON}; charset={encoding}")
        assert [event.attributes["a"] for event in found.events] == ["ü", "ä"]


@pytest.mark.parametrize(
    "charset", ["nonsense", "zlib", "punycode", "idna", "unicode_escape", "x" * 1000, "\0"]
)
def test_encodings_that_are_none(charset: str) -> None:
    for kind in ("application/json", "text/turtle", NDJSON, "application/xml"):
        assert refused(b"\xff{}", f"{kind}; charset={charset}")


# -- RDF and feeds


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (TURTLE, "text/turtle"),
        (TURTLE.decode().encode("latin-1"), 'text/turtle; charset="ISO-8859-1"'),
        (TURTLE, "text/n3"),
        (NTRIPLES, "application/n-triples; charset=utf-8"),
        (b'{"@id": "urn:a", "urn:b": "c\xc3\xbc"}', "application/ld+json"),
        (b"GRAPH <urn:g> { <urn:a> <urn:b> 'c\xc3\xbc' }", "application/trig"),
    ],
)
def test_a_graph_is_one_event(body: bytes, kind: str) -> None:
    event = one(body, kind)
    assert (event.data, event.datacontenttype, event.source) == (NTRIPLES, "application/n-triples", "me")
    assert one(body, kind).id == event.id


@pytest.mark.parametrize("kind", ["application/rdf+xml", "application/xml", "text/xml; charset=utf-8"])
def test_rdf_xml(kind: str) -> None:
    assert one(RDFXML, kind).data == b'<urn:a> <urn:e#b> "c" .\n'


def test_a_graph_that_cannot_be_read() -> None:
    assert "Turtle" in refused(b"<a", "text/turtle")
    assert refused(b"\xff", "text/turtle")
    assert refused(RDFXML[:-20], "application/rdf+xml")


@pytest.mark.parametrize(
    ("body", "kind", "count", "source"),
    [
        (RSS, "application/rss+xml", 2, "http://c.example/"),
        (RSS, "text/xml", 2, "http://c.example/"),
        (RSS.decode().encode("utf-16"), "application/xml", 2, "http://c.example/"),
        (RSS1, "application/xml", 1, "http://c.example/rdf"),
        (ATOM, "application/atom+xml;type=feed", 1, "urn:f"),
        (json.dumps(JSON_FEED).encode(), "application/feed+json", 1, None),
        (json.dumps(JSON_FEED).encode(), "application/json", 1, None),
    ],
)
def test_a_feed_is_one_event_an_item(body: bytes, kind: str, count: int, source: str | None) -> None:
    found = read(body, kind)
    assert (len(found.events), found.rejected) == (count, [])
    assert source is None or found.events[0].source == source
    assert found.events[0].type == "feed.item"
    assert b"One" in found.events[0].data


def test_what_is_no_feed() -> None:
    assert "not a feed" in refused(b"<html/>", "text/xml")
    assert refused(b"", "application/rss+xml")
    assert refused(b"[]", "application/feed+json")
    assert refused(b"[" * 100_000, "application/feed+json")


@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "nt", "xml", ";;", "\0"],
)
def test_kinds_that_nobody_reads(kind: str) -> None:
    with pytest.raises(EventError, match="are read") as caught:
        read(b"{}", kind)
    assert caught.value.status == 415  # type: ignore[attr-defined]
    assert "application/cloudevents+avro" in refused(b"", "application/cloudevents+avro")


# -- hostile


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ('{"a": NaN}', "JSON has no NaN"),
        ('{"a": [{"b": -Infinity}]}', "JSON has no -Infinity"),
        ('{"a": 1e999}', "too large"),
        ('{"a": -1e999}', "too large"),
        (f'{{"a": {"9" * 5_000}}}', "too large"),
        ('{"a": 1, "a": 2}', "two members 'a'"),
        ('{"x": [{"id": 1, "id": 1}]}', "two members 'id'"),
        ('{"a": "\\ud800"}', "half a surrogate pair"),
        ('{"\\udfff": 1}', "half a surrogate pair"),
        ('{"id": "a\\nb"}', "control character"),
        ('{"source": "a\\u0000b"}', "control character"),
        ('{"type": "%s"}' % ("x" * 5_000), "at most 4,096"),
        ('{"specversion": "1.0", "time": 5}', "must be a string"),
    ],
)
def test_values_that_json_does_not_have(value: str, sentence: str) -> None:
    assert sentence in refused(value, "application/json")
    found = read(f'[{{"a": 1}}, {value}, {{"a": 2}}]', "application/json")
    assert [event.attributes["a"] for event in found.events] == [1, 2]
    assert found.rejected[0][0] == "item 2"
    assert sentence in found.rejected[0][1]
    assert read(f'{{"a": 1}}\n{value}\n', NDJSON).rejected[0][0] == "line 2"
    if not value.startswith('{"id') and '"s' not in value and "type" not in value:
        assert sentence in refused(value, "application/json", BINARY)


def test_whole_characters_in_halves_are_whole() -> None:
    assert one('{"a": "\\ud83d\\ude00"}', "application/json").attributes == {"a": "😀"}
    assert (
        one('{"a": 123456789012345678901234567890}', "application/json").row()["attributes"].endswith("890}")
    )


BOMB = (
    b"""<!DOCTYPE x [<!ENTITY a "%s">%s]><rss><channel><item><title>&z;</title></item></channel></rss>"""
    % (
        b"ha" * 50,
        b"".join(b'<!ENTITY %c "%s">' % (n, b"&%c;" % (n - 1) * 20) for n in range(ord("b"), ord("z") + 1)),
    )
)
EXTERNAL = b"""<!DOCTYPE x [<!ENTITY x SYSTEM "file:///etc/passwd">]><rss><channel><item><title>&x;</title></item></channel></rss>"""


@pytest.mark.parametrize("kind", ["application/rss+xml", "application/xml", "application/rdf+xml"])
@pytest.mark.parametrize("body", [BOMB, EXTERNAL, b"<a>" * 50_000, b"<!--" * 50_000, b"<" * 200_000])
def test_documents_that_would_grow(body: bytes, kind: str) -> None:
    began = time.perf_counter()
    assert refused(body, kind)
    assert time.perf_counter() - began < 20


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'[{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}]",
    ],
)
@pytest.mark.parametrize(
    "kind", ["application/json", STRUCTURED, BATCH, "application/ld+json", "application/feed+json"]
)
def test_json_that_nests_deep(body: bytes, kind: str) -> None:
    assert "nest deeper" in refused(body, kind)


def test_too_many_events_are_refused_and_soon() -> None:
    many = 400_000
    began = time.perf_counter()
    for body, kind in (
        (b"{}\n" * many, NDJSON),
        (b"[" + b"{}," * many + b"{}]", "application/json"),
        (b"<rss><channel>" + b"<item><guid>1</guid></item>" * (many // 4), "application/rss+xml"),
        (
            b'{"version": "https://jsonfeed.org/version/1", "items": [' + b"{}," * many + b"{}]}",
            "application/feed+json",
        ),
    ):
        assert f"more than {MAX_EVENTS:,} {'items' if 'xml' in kind else 'events'}" in refused(body, kind)
    assert read(b"\n" * 5_000_000, NDJSON) == ([], [])
    assert time.perf_counter() - began < 30


KINDS = [STRUCTURED, BATCH, NDJSON, "application/json", "application/feed+json", "application/rss+xml", "text/xml", "text/turtle", "application/n-triples", "application/rdf+xml", "application/ld+json", "text/plain"]  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.sampled_from([*EVENT, "data", "data_base64", "items"]) | st.text(), inner)
    ),
    max_leaves=8,
)
bodies = st.binary() | values.map(lambda value: json.dumps(value).encode()) | st.lists(values).map(
    lambda lines: b"\n".join(json.dumps(line).encode() for line in lines)
)  # fmt: skip


@examples(50)
@given(
    bodies,
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(["ce-id", "ce-type", "ce-x"]), st.text(), max_size=1),
)
def test_whatever_is_posted_gives_events_or_sentences(
    body: bytes, kind: str, headers: dict[str, str]
) -> None:
    try:
        found = read(body, kind, headers)
    except EventError as error:
        assert str(error)
        return
    for event in found.events:
        assert event.source
        json.loads(event.row()["attributes"] or "{}", parse_constant=lambda word: 1 / 0)
        json.dumps(dict(event.attributes), ensure_ascii=False).encode()


def test_feeds_do_not_grow_out_of_bounds() -> None:
    """What is said once, of the channel or of what all items lead to, is in each event."""
    items = "".join(f"<item><guid>{n}</guid></item>" for n in range(1_000))
    channel = f"<rss><channel><title>{'x' * 100_000}</title>{items}</channel></rss>"
    assert "shorten it" in refused(channel, "application/rss+xml")
    nested = f"<rss><channel>{'<item><guid>1</guid>' * 250}{'x' * 1_000_000}{'</item>' * 250}</channel></rss>"
    assert "shorten it" in refused(nested, "application/rss+xml")
    items = "".join(f'<item rdf:about="urn:{n}"><e:x rdf:resource="urn:all"/></item>' for n in range(1_000))
    common = "".join(f"<e:y>{n}</e:y>" for n in range(1_000))
    described = (
        f'{items}<rdf:Description rdf:about="urn:all" xmlns:e="urn:e#">{common}</rdf:Description></rdf:RDF>'
    )
    graph = RSS1.decode().replace("</rdf:RDF>", described).replace("<rdf:RDF", '<rdf:RDF xmlns:e="urn:e#"', 1)
    began = time.perf_counter()
    assert "in common" in refused(graph, "application/xml")
    assert time.perf_counter() - began < 20
    feed = {**JSON_FEED, "description": "x" * 100_000, "items": [{"id": str(n)} for n in range(1_000)]}
    assert "shorten it" in refused(feed, "application/feed+json")


def test_cut_and_changed_documents() -> None:
    for kind, body in (
        ("text/xml", RSS),
        ("text/xml", RSS1),
        ("application/rdf+xml", RDFXML),
        ("application/atom+xml", ATOM),
    ):
        for cut in range(0, len(body), 7):
            for changed in (body[:cut], body[:cut] + b"\xff" + body[cut:], body[:cut] + b"<" + body[cut:]):
                try:
                    read(changed, kind)
                except EventError:
                    pass


def test_what_takes_long_is_not_read_on_the_event_loop() -> None:
    batch = json.dumps([EVENT] * 100).encode()
    assert is_quick(batch, BATCH)
    assert not is_quick(batch * 10, BATCH)
    assert not is_quick(b"{}\n" * 10_000, "application/x-ndjson")
    assert not is_quick(b'{"version": "https://jsonfeed.org/version/1.1"}', "application/json")
    assert not is_quick(b"<rss/>", "application/rss+xml")
    assert not is_quick(b"[] .", "text/turtle")


def test_sources_of_the_service_itself_are_refused() -> None:
    for source in ("(messages) stocks", "(rows) s", "(service)"):
        with pytest.raises(EventError, match="are the service's own"):
            read({"specversion": "1.0", "id": "0/1 1", "type": "x", "source": source}, STRUCTURED)
