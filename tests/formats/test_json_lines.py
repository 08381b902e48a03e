"""JSON lines in, notifications out: the same answers as for the events one by one."""

from __future__ import annotations

import json

from tidings import Engine, Event
from tidings.formats.json_lines import read_lines

LINES = b"""{"id": "first", "source": "shop", "price": 5, "tags": ["a", "b"]}

{"price": 50, "tags": []}\r
{"id": 7, "price": 5, "note": "caf\\u00e9"}
{"price": 5
{"price": "5", "type": "sale"}"""


def engine() -> Engine:
    engine = Engine()
    engine.subscribe("cheap", "WHERE price < 10")
    engine.subscribe("tagged", "WHERE tags = 'b'")
    engine.subscribe("noted", "WHERE note = 'café' OR type = 'sale'")
    return engine


def test_every_line_is_an_event() -> None:
    found = engine().publish_lines(LINES)
    rows = zip(*(found[name].to_pylist() for name in ("subscription", "event", "verdict")), strict=True)
    assert sorted(rows, key=str) == [
        ("cheap", "5", "match"),
        ("cheap", "7", "match"),
        ("cheap", "first", "match"),
        ("noted", "5", "match"),
        ("noted", "7", "match"),
        ("tagged", "first", "match"),
        (None, "4", "error"),
    ]


def test_the_envelope_is_read_from_members() -> None:
    table = read_lines(LINES)
    assert table["id"].to_pylist() == ["first", "2", "7", "4", "5"]
    assert table["source"].to_pylist() == ["shop", None, None, None, None]
    assert read_lines(b"").num_rows == read_lines(b"\n \n").num_rows == 0
    assert engine().publish_lines(b"").num_rows == 0


def test_lines_mean_what_events_mean() -> None:
    documents = [{"price": n, "tags": ["b"] * (n % 2), "note": "café" if n % 3 else None} for n in range(30)]
    data = b"\n".join(json.dumps(document).encode() for document in documents)
    subject = engine()
    together = subject.publish_lines(data).select(["subscription", "event"]).to_pylist()
    alone = [
        {"subscription": notification.subscription, "event": str(number)}
        for number, document in enumerate(documents, start=1)
        for notification in subject.publish(Event(attributes=document))
    ]
    assert sorted(together, key=str) == sorted(alone, key=str)
