"""Documents that grow or nest, on every route that reads any: refused, or read as what they are, in a moment."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import Served
from tests.service.hostile.documents import (
    BOMB,
    CALL,
    NESTED,
    OPML,
    PARAMETER,
    QUADRATIC,
    SELF,
    SHAPES,
    nested_json,
    outside,
)
from tests.service.hostile.routes import filled, routes_of
from tests.service.hostile.test_cross_site import visit
from tidings.service.ingest.request_bodies import ParsedBody, read_events
from tidings.service.web.api import events

SECONDS = 5.0  # on a busy machine; each takes milliseconds


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("secret") / "file"
    path.write_text("the-secret-of-a-file")
    return path


def documents(secret: Path) -> Iterator[tuple[str, str]]:
    """(doctype, what stands in the text)"""
    yield BOMB, "&l9;"
    yield QUADRATIC, "&a;" * 10_000
    yield PARAMETER, "x"
    yield SELF, "&a;"
    yield outside(secret.as_uri()), "&secret;"
    yield outside("http://127.0.0.1:9/inside"), "&secret;"
    yield "", "<x>" * 100_000
    yield "", "<x>" * 100_000 + "</x>" * 100_000
    yield "", "&#0;&#xffff;\x01"


def requests(doctype: str, text: str) -> Iterator[tuple[str, str, bytes]]:
    """(path, media type, body) of every route and form that takes XML."""
    for kind, shape in SHAPES.values():
        body = (doctype + shape.format(text)).encode()
        yield "/api/events", kind, body
        yield (
            "/xmlrpc",
            "text/xml",
            CALL.format("publish", f"<base64>{base64.b64encode(body).decode()}</base64>").encode(),
        )
        yield (
            "/xmlrpc",
            "text/xml",
            CALL.format("publish", f"<string>{escape(body.decode())}</string>").encode(),
        )
        yield (
            "/xmlrpc",
            "text/xml",
            CALL.format("subscribe", f"<string>{escape(body.decode())}</string>").encode(),
        )
    yield "/xmlrpc", "text/xml", (doctype + CALL.format("publish", text)).encode()
    yield "/xmlrpc", "text/xml", (doctype + CALL.format(text, "x")).encode()
    for where in (OPML.format(text, "t"), OPML.format("", text), f"<opml><body>{text}</body></opml>"):
        yield "/api/sources/opml", "text/x-opml", (doctype + where).encode()


def test_entities_and_depth(served: Served, secret: Path) -> None:
    for doctype, text in documents(secret):
        for path, kind, body in requests(doctype, text):
            began = time.monotonic()
            answer = served.http.post(path, content=body, headers={"Content-Type": kind})
            said = (path, kind, doctype[:60], text[:20], answer.text[:300])
            assert answer.status_code < 500, said
            assert time.monotonic() - began < SECONDS, said
            assert len(answer.content) < 100_000, said
            assert "the-secret-of-a-file" not in answer.text, said
    kept = [str(one) for one in served.service.log_writer.recent.events()]
    assert not [one for one in kept if "the-secret-of-a-file" in one or len(one) > 2_000_000]


@pytest.mark.parametrize(
    "item", ["<item><title>a</title></item>", "<item>", "&#60;item><guid>1</guid>&#60;/item>"]
)
def test_a_kilobyte_does_not_become_many_events(served: Served, item: str) -> None:
    nested = "".join(f'<!ENTITY e{n} "&e{n - 1};&e{n - 1};">' for n in range(1, 12))
    for level, times in ((11, 30), (7, 100)):
        body = f'<!DOCTYPE rss [<!ENTITY e0 "{item}">{nested}]><rss><channel>{f"&e{level};" * times}</channel></rss>'
        assert len(body) < 1_200
        for kind in ("application/rss+xml", "application/xml", "application/atom+xml"):
            answer = served.http.post("/api/events", content=body.encode(), headers={"Content-Type": kind})
            assert (answer.status_code, "tags" in answer.json()["detail"]) == (400, True), answer.text


def test_items_are_counted_after_entities_are_put_in(served: Served) -> None:
    bodies = [f"<item><guid>{n}</guid></item>" for n in range(9_990)]
    document = "<!DOCTYPE rss [{}]><rss><channel>{}&e;</channel></rss>"
    entity = f'<!ENTITY e "{"<item/>" * 20}">'
    answer = served.http.post(
        "/api/events",
        content=document.format(entity, "".join(bodies)).encode(),
        headers={"Content-Type": "application/rss+xml"},
    )
    assert (answer.status_code, "more than 10,000 items" in answer.text) == (400, True), answer.text[:300]


def test_no_xml_is_read_on_the_event_loop(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even a small one: what it takes cannot be told by its size."""
    on_loop: dict[str, bool] = {}

    def watched(body: bytes, kind: str, *more: Any) -> ParsedBody:
        try:
            asyncio.get_running_loop()
            on_loop[kind] = True
        except RuntimeError:
            on_loop[kind] = False
        return read_events(body, kind, *more)

    monkeypatch.setattr(events, "read_events", watched)
    for kind, shape in (*SHAPES.values(), ("application/json", '{{"source": "{}"}}')):
        body = shape.format("loop").encode()
        answer = served.http.post("/api/events", content=body, headers={"Content-Type": kind})
        assert answer.status_code == 202, answer.text
    assert on_loop.pop("application/json")
    assert not any(on_loop.values()), on_loop


def test_the_same_by_the_forms_of_the_page(served: Served, secret: Path) -> None:
    client, token = visit(served)
    for doctype, text in documents(secret):
        for kind, shape in SHAPES.values():
            body = doctype + shape.format(text)
            form = {"csrf": token, "kind": kind, "body": body.replace("\x01", "")}
            answer = client.post("/publish", data=form)
            assert answer.status_code < 500, (kind, doctype[:60])
            assert "the-secret-of-a-file" not in answer.text
        files = {"file": ("o.opml", (doctype + OPML.format("", text)).encode())}
        assert client.post("/sources/opml", data={"csrf": token}, files=files).status_code < 500


JSON_KINDS = [
    "application/json",
    "application/cloudevents+json",
    "application/cloudevents-batch+json",
    "application/x-ndjson",
    "application/ld+json",
    "application/feed+json",
]


@pytest.mark.parametrize("name", NESTED)
def test_json_that_nests_on_every_route(served: Served, name: str) -> None:
    body = NESTED[name]
    for method, path in routes_of(served.service):
        if method in ("GET", "HEAD"):
            continue
        path = filled(path, "none", word="pause")
        for kind in JSON_KINDS if path == "/api/events" else JSON_KINDS[:1]:
            began = time.monotonic()
            answer = served.http.request(method, path, content=body, headers={"Content-Type": kind})
            assert answer.status_code < 500, (path, kind, answer.text[:300])
            assert time.monotonic() - began < SECONDS, (path, kind)
            assert len(answer.content) < 20_000, (path, kind)


@pytest.mark.parametrize("depth", [200, 250, 300, 100_000])
def test_json_that_nests_inside_an_event(served: Served, depth: int) -> None:
    """Whatever is accepted can be matched, shown and told: in attributes, as data, in base 64, in a header."""
    deep = nested_json(depth)
    packed = base64.b64encode(deep).decode()
    envelope = b'{"specversion":"1.0","id":"%d","source":"deep","type":"t",' % depth
    bodies = [
        ("application/json", envelope + b'"topic":"deep","a":' + deep + b"}", {}),
        ("application/cloudevents+json", envelope + b'"data":' + deep + b"}", {}),
        ("application/cloudevents+json", envelope + b'"datacontenttype":"application/json","data_base64":"'
         + packed.encode() + b'"}', {}),
        ("application/json", deep, {"ce-id": f"b{depth}", "ce-source": "deep", "ce-type": "t", "ce-specversion": "1.0"}),
        ("text/turtle", b"<http://a> <http://b> " + b"[ <http://c> " * depth + b"1" + b" ]" * depth + b" .", {}),
        ("text/turtle", b"<http://a> <http://b> " + b"( " * depth + b") " * depth + b" .", {}),
    ]  # fmt: skip
    for kind, body, headers in bodies:
        answer = served.http.post("/api/events", content=body, headers={"Content-Type": kind, **headers})
        assert answer.status_code in (202, 400), (kind, answer.text[:300])
    assert served.http.post("/api/try", json={"text": "WHERE EXISTS a"}).status_code == 200
    assert served.http.get("/subscriptions/new", headers={"Accept": "text/html"}).status_code == 200


XMLRPC_VALUES = [
    "<array><data>" + "<value><i4>1</i4></value>" * 10_000 + "</data></array>",
    "<struct>" + "<member><name>a</name><value>1</value></member>" * 4_000 + "</struct>",
    "<array><data><value>" * 5_000 + "</value></data></array>" * 5_000,
    "<dateTime.iso8601>99999999T99:99:99</dateTime.iso8601>",
    "<dateTime.iso8601>20260101T00:00:00</dateTime.iso8601>",
    "<dateTime.iso8601></dateTime.iso8601>",
    "<base64>!!!!</base64>",
    "<base64>/////w==</base64>",
    "<int>" + "9" * 100_000 + "</int>",
    "<i8>-99999999999999999999</i8>",
    "<int>x</int>",
    "<double>1e999</double>",
    "<double>nan</double>",
    "<boolean>2</boolean>",
    "<nil/>",
    "<ex:nil/>",
    "<bigdecimal>1</bigdecimal>",
    "<unknown>1</unknown>",
    "<string>\ud7ff&#xD800;</string>",
    "<string>&#1;</string>",
    "",
]


@pytest.mark.parametrize("number", range(len(XMLRPC_VALUES)))
def test_values_of_xmlrpc(served: Served, number: int) -> None:
    value = XMLRPC_VALUES[number]
    for method in ("subscribe", "unsubscribe", "renew", "publish", "notifications", "none"):
        for count in (1, 3, 500) if len(value) < 10_000 else (1,):
            values = (
                f"<param><value>{value if count < 500 or len(value) < 300 else 1}</value></param>" * count
            )
            body = (
                f"<methodCall><methodName>tidings.{method}</methodName><params>{values}</params></methodCall>"
            )
            answer = served.http.post("/xmlrpc", content=body.encode(), headers={"Content-Type": "text/xml"})
            assert answer.status_code == 200, (method, count)
            if "<fault>" in answer.text:
                code = int(answer.text.partition("<int>")[2].partition("</int>")[0])
                assert code != 500, (method, count, answer.text)


def test_an_answer_is_not_longer_than_its_question_by_much(served: Served) -> None:
    many = {f"key-{number}": 1 for number in range(20_000)}
    for path in ("/api/check", "/api/subscriptions", "/api/sources", "/api/tokens"):
        answer = served.http.post(path, json=many)
        assert answer.status_code == 422
        assert len(answer.content) < 20_000
        assert len(answer.json()["errors"]) <= 100
    long = served.http.post("/api/check", json={"k" * 900_000: 1})
    assert (long.status_code, len(long.content) < 2_000) == (422, True)
    wrong = served.http.post("/api/events", json=[1] * 9_999 + [{"source": "few"}])
    assert wrong.status_code == 202
    assert len(wrong.content) < 1_500_000
    assert served.http.post("/api/events", json=[1] * 10_001).status_code == 400
    none = served.http.post("/api/events", json=[1] * 10_000)
    assert (none.status_code, len(none.json()["errors"])) == (400, 100)


def test_half_a_character_is_refused_in_json_that_any_reader_takes(served: Served) -> None:
    answer = served.http.post(
        "/api/events", content=b'{"source":"\\ud800"}', headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 400
    json.loads(answer.content)
