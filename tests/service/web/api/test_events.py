"""Publishing over HTTP: all forms, each event once, and what is said about those that cannot be read."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.service.conftest import Served
from tidings.service.web.api.models import Receipt

CLOUDEVENT = {"specversion": "1.0", "id": "c1", "source": "/c", "type": "t", "data": {"topic": "forms"}}
TURTLE = "@prefix dc: <http://purl.org/dc/elements/1.1/> . <http://example.org/1> dc:title 'forms' ."
RSS = (
    "<rss version='2.0'><channel><title>t</title><link>http://example.org</link><description>d</description>"
    "<item><guid>http://example.org/1</guid><title>forms</title></item></channel></rss>"
)


@pytest.mark.parametrize(
    ("kind", "body", "count"),
    [
        ("application/cloudevents+json", json.dumps(CLOUDEVENT), 1),
        (
            "application/cloudevents-batch+json",
            json.dumps([CLOUDEVENT | {"id": "c2"}, CLOUDEVENT | {"id": "c3"}]),
            2,
        ),
        ("application/json", '{"topic": "forms"}', 1),
        ("application/json; charset=utf-8", '[{"topic": "forms", "n": 2}]', 1),
        ("application/x-ndjson", '{"topic": "forms", "n": 3}\n{"topic": "forms", "n": 4}\n', 2),
        ("text/turtle", TURTLE, 1),
        ("application/rss+xml", RSS, 1),
        ("application/json", "[]", 0),
    ],
)
def test_every_form(served: Served, kind: str, body: str, count: int) -> None:
    for accepted in (count, 0):
        answer = served.http.post("/api/events", content=body, headers={"content-type": kind})
        assert answer.status_code == 202, answer.text
        receipt = Receipt.model_validate(answer.json())
        assert (receipt.accepted, receipt.duplicates) == (accepted, count - accepted)
        assert len(receipt.ids) == count


def test_the_binary_form(served: Served) -> None:
    one = served.subscribe("WHERE topic = 'binary' AND source = '/binary'")
    headers = {"ce-specversion": "1.0", "ce-id": "b1", "ce-source": "/binary", "ce-type": "t"}
    assert served.http.post("/api/events", json={"topic": "binary"}, headers=headers).json()["ids"] == ["b1"]
    assert served.notifications(one["id"])[0]["event"]["id"] == "b1"


def test_a_source_for_those_that_name_none(served: Served) -> None:
    one = served.subscribe("WHERE topic = 'source' AND source = '/mine'")
    served.http.post("/api/events", params={"source": "/mine"}, json={"topic": "source"})
    assert served.notifications(one["id"])[0]["event"]["source"] == "/mine"


def test_the_readable_ones_of_a_batch_are_accepted(served: Served) -> None:
    answer = served.http.post("/api/events", json=[{"n": 1, "topic": "some"}, 5, {"n": 2, "topic": "some"}])
    assert answer.status_code == 202
    assert answer.json()["accepted"] == 2
    assert answer.json()["rejected"][0]["place"] == "item 2"


def test_none_of_them_is_an_error_that_lists_them(served: Served) -> None:
    answer = served.http.post("/api/events", json=[5, "x", None])
    assert answer.status_code == 400
    assert [one["place"] for one in answer.json()["errors"]] == ["item 1", "item 2", "item 3"]


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/json", b"", 400),
        ("application/json", b"{", 400),
        ("application/json", b"[" * 200_000, 400),
        ("application/json", b'{"a":' * 30_000 + b"1" + b"}" * 30_000, 400),
        ("application/json", b'{"a": ' + b"9" * 10_000 + b"}", 400),
        ("application/json", b'{"a": NaN}', 400),
        ("application/json", b'{"a": 1e999}', 400),
        ("application/json", b'{"a": "\xff\xfe"}', 400),
        ("application/json", b'{"id": "a\\u0000b"}', 400),
        ("application/json", b'{"id": "\\ud800"}', 400),
        ("application/json", b'{"source": "a\\r\\nSet-Cookie: x=y"}', 400),
        (
            "application/cloudevents+json",
            b'{"specversion": "2.0", "id": "1", "source": "a", "type": "t"}',
            400,
        ),
        (
            "application/cloudevents+json",
            b'{"specversion": "1.0", "id": "1", "source": "a", "type": "t", "data_base64": "!"}',
            400,
        ),
        ("text/turtle", b"this is no turtle", 400),
        ("application/rdf+xml", b"<!DOCTYPE a [<!ENTITY a 'b'><!ENTITY c '&a;&a;'>]><a>&c;</a>", 400),
        ("application/rss+xml", b"<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><rss>&a;</rss>", 400),
        ("application/atom+xml", b"\x00\x01", 400),
        ("application/feed+json", b"5", 400),
        ("application/x-www-form-urlencoded", b"a=b", 415),
        ("image/png", b"\x89PNG", 415),
        ("", b"{}", 415),
        ("application/cloudevents+avro", b"x", 415),
        ("\xff/\xfe", b"x", 415),
    ],
)
def test_what_cannot_be_read(served: Served, kind: str, body: bytes, status: int) -> None:
    answer = served.http.post("/api/events", content=body, headers={"content-type": kind.encode("latin-1")})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert "Traceback" not in answer.text


def test_many_publishers_at_once_and_each_event_once(served: Served) -> None:
    one = served.subscribe("WHERE topic = 'race'")
    bodies = [[{"id": str(n % 10), "source": "race", "topic": "race"}] for n in range(40)]
    with ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(lambda body: served.publish(*body), bodies))
    assert sum(receipt["accepted"] for receipt in receipts) == 10
    assert {notification["event"]["id"] for notification in served.notifications(one["id"], 10)} == {
        str(n) for n in range(10)
    }


def test_a_publisher_over_its_rate_is_told_when(guarded: Served) -> None:
    from tidings.service.model import Role

    _, secret = guarded.service.access.grant("slow", Role.PUBLISHER, events_per_second=0.01)
    headers = {"Authorization": f"Bearer {secret}"}
    answers = [guarded.http.post("/api/events", json={"n": n}, headers=headers) for n in range(3)]
    assert answers[0].status_code == 202
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert answers[-1].json()["type"] == "/problems/too-many"
