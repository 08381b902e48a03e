"""The client without a service: tries again where that is safe, goes on where a stream broke, reads what it may not know."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from tidings import Client, Event
from tidings.client import ServiceError, calls
from tidings.client.responses import Checked, Notification, Receipt, Trial, error_of
from tidings.client.stream import Parser
from tidings.errors import EventError
from tidings.formats import rdf


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "pause", lambda attempt, retry_after: 0.0)


def answering(*answers: httpx.Response | Exception) -> tuple[Client, list[httpx.Request]]:
    asked: list[httpx.Request] = []
    left = iter(answers)

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Client("http://tidings.example", transport=httpx.MockTransport(handle)), asked


ACCEPTED = httpx.Response(
    202, json={"accepted": 1, "duplicates": 0, "ids": ["1"], "rejected": [], "new": "member"}
)


def test_publishing_is_tried_again() -> None:
    client, asked = answering(
        httpx.ConnectError("refused"),
        httpx.Response(503, json={"detail": "busy"}, headers={"retry-after": "1"}),
        httpx.ReadTimeout("slow"),
        ACCEPTED,
    )
    assert client.publish({"a": 1}) == Receipt(1, 0, ["1"], [])
    assert len({request.content for request in asked}) == 1
    assert len(asked) == 4


def test_but_not_for_ever_and_not_what_is_wrong() -> None:
    client, asked = answering(*[httpx.ConnectError("refused")] * 10)
    with pytest.raises(ServiceError, match="does not answer"):
        client.publish({"a": 1})
    assert len(asked) == calls.TRIES
    client, asked = answering(httpx.Response(400, json={"detail": "wrong"}))
    with pytest.raises(ServiceError, match="wrong"):
        client.publish({"a": 1})
    assert len(asked) == 1


def test_what_must_not_happen_twice_is_not_tried_again() -> None:
    client, asked = answering(httpx.ReadTimeout("slow"))
    with pytest.raises(ServiceError):
        client.subscribe("WHERE a = 1")
    assert len(asked) == 1


def sse(*pieces: bytes | Exception) -> httpx.Response:
    class Stream(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            for piece in pieces:
                if isinstance(piece, Exception):
                    raise piece
                yield piece

    return httpx.Response(200, stream=Stream(), headers={"content-type": "text/event-stream"})


def piece(number: int) -> bytes:
    notification = {"id": f"n{number}", "number": number, "subscription": "s", "kind": "match"}
    return f"id: {number}\nevent: notification\ndata: {json.dumps(notification)}\n\n".encode()


def test_a_stream_that_breaks_goes_on_where_it_was() -> None:
    client, asked = answering(
        sse(b"retry: 5\n\n", piece(1), piece(2)[:20], httpx.ReadError("broken")),
        httpx.Response(503, json={"detail": "busy"}),
        sse(piece(2), b": still here\n\n", piece(3)),
        sse(),
        httpx.Response(204),
    )
    assert [notification.number for notification in client.listen("s", after=0)] == [1, 2, 3]
    assert [request.headers.get("last-event-id") for request in asked] == ["0", "1", "1", "3", "3"]


def test_a_stream_that_was_open_waits_for_a_service_that_starts_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls, "pause", lambda attempt, retry_after: 0.0)
    away = [httpx.Response(503, json={"detail": "away"})] * (2 * calls.TRIES)
    client, asked = answering(sse(), *away, sse(piece(1)), *away, httpx.Response(204))
    assert [notification.number for notification in client.listen("s", after=0)] == [1]
    client, asked = answering(*away)
    with pytest.raises(ServiceError, match="away"):
        next(client.listen("s", after=0))
    assert len(asked) == calls.TRIES + 1, "what was never there is not waited for"


def test_a_stream_that_is_refused_is_an_error() -> None:
    client, _ = answering(httpx.Response(404, json={"detail": "there is none"}))
    with pytest.raises(ServiceError, match="there is none"):
        next(client.listen("s", after=0))


def test_events_in_any_pieces() -> None:
    whole = b"retry: 100\n\n" + piece(1) + b'id: 9\nevent: missed\ndata: {"from": 2, "to": 9}\n\n' + piece(10)
    for size in (1, 7, 1_000):
        parser = Parser()
        found: list[Notification] = []
        for start in range(0, len(whole), size):
            found += parser.feed(whole[start : start + size])
        assert [one.number for one in found] == [1, 9, 10]
        assert found[1].kind == "missed"
        assert parser.last == 10
        assert parser.retry == 0.1


def test_errors_of_somebody_else() -> None:
    assert "502" in str(error_of(502, b"<html>Bad gateway</html>", None))
    assert error_of(429, b'{"detail": "slowly"}', "7").retry_after == 7
    assert error_of(500, b'["odd"]', "soon").status == 500
    client, _ = answering(httpx.Response(200, text="hello"))
    with pytest.raises(ServiceError, match="not Tidings"):
        client.check("WHERE a = 1")


def test_an_event_goes_as_a_cloudevent_and_comes_back_the_same() -> None:
    for event in (
        Event("s", {"a": [1, {"b": None}]}, id="1", type="t", time="2026-01-01T00:00:00Z"),
        Event("s", {"a": 1}, id="1", data=b"\x00", datacontenttype="application/x"),
        Event("s", {}, id="1", data=b"plain", datacontenttype="text/plain"),
    ):
        assert Event.from_cloudevent(json.loads(calls._line(event))) == event
    hidden = Event("s", {"id": 5, "data": 6}, id="1")
    assert Event.from_cloudevent(json.loads(calls._line(hidden))).attributes == {"id": 5, "data": 6}
    with pytest.raises(EventError, match="name it otherwise"):
        calls.to_cloudevent(Event("s", {"id": 5}, id="1", data=b"x"))


def test_every_short_name_of_rdf_is_a_format() -> None:
    for name in (name for name in rdf._FORMATS if "/" not in name):
        (call,) = calls.publish("<a> <b> <c> .", name.upper(), "")
        assert rdf._FORMATS[call.headers["Content-Type"]] == rdf._FORMATS[name], name


def test_batches_are_bounded() -> None:
    sizes = [len(batch) for batch in calls._batches([b"x"] * 1_201)]
    assert sizes == [500, 500, 201]
    assert len(list(calls._batches([b"x" * calls.BATCH_BYTES] * 3))) == 3


def test_equal_changes_of_rows_are_changes_each():
    change = Event.insert("stocks", {"symbol": "IBM", "per": 5})
    first, second = (calls.to_cloudevent(change)["id"] for _ in range(2))
    assert first != second
    assert calls.to_cloudevent(Event.insert("stocks", {"symbol": "IBM"}, id="mine"))["id"] == "mine"
    plain = Event("s", {"a": 1})
    assert calls.to_cloudevent(plain)["id"] == plain.id


def test_rows_that_are_not_known_and_warnings_of_an_older_service() -> None:
    assert Trial.read({"looked": 0, "matched": 0, "rows": None}).rows is None
    assert Trial.read({"looked": 0, "matched": 0, "rows": []}).rows == []
    older = Checked.read({"ok": True, "warnings": ["it matches everything"]})
    assert [warning.message for warning in older.warnings] == ["it matches everything"]
