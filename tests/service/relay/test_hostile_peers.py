"""Peers that send nonsense: a parent whose packets are none, a relay whose requests are none. Each is refused and counted, and
nothing else is disturbed."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import Running, Served
from tests.service.relay.test_relay import relay_of, until
from tidings.dissemination.wire import MAX_PACKET, Frames, decode, encode, event_of, event_packet, frame
from tidings.model.event import Event
from tidings.service.model import Principal, Role
from tidings.service.relay import downstream
from tidings.service.relay.downstream import _MARK, Start, read_mark

ID = "n" + "b" * 20
GOOD = frame(encode(event_packet(Event("s", {"topic": "sport"}, "1"), 1)))


class Parent:
    """What a parent answers: a welcome, and then these bytes."""

    def __init__(self, content: bytes, path: list[str]) -> None:
        self.content, self.path, self.asked = content, path, 0
        parent = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                parent.asked += 1
                self.send_response(200)
                self.end_headers()
                self.wfile.write(parent.content)
                self.close_connection = True

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                told = {"service": ID, "path": parent.path, "last": 0, "definitions": ""}
                welcome = json.dumps({**told, "refused": []})
                self.send_response(200)
                self.send_header("Content-Length", str(len(welcome)))
                self.end_headers()
                self.wfile.write(welcome.encode())

            do_PUT = do_POST

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Parent:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def fed(
    tmp_path: Path, content: bytes, path: list[str] | None = None
) -> Iterator[tuple[Served, Parent, Any]]:
    with ExitStack() as stack:
        parent = stack.enter_context(Parent(content, [ID] if path is None else path))
        relay = stack.enter_context(relay_of(parent, data=tmp_path / "relay"))  # type: ignore[arg-type]
        assert relay.service.upstream is not None
        yield relay, parent, relay.service.upstream.states[0]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (frame(b"\x01nonsense"), "the packet"),
        (struct.pack(">I", MAX_PACKET + 1), "at most"),
        pytest.param(frame(b"\x07" + b"x" * 50), "version", marks=pytest.mark.slow),
        pytest.param(b"\xff" * 1_000, "at most", marks=pytest.mark.slow),
        pytest.param(frame(GOOD[4:-3]), "packet", marks=pytest.mark.slow),
    ],
    ids=["malformed", "oversized", "another version", "noise", "cut off"],
)
def test_what_is_no_packet_is_refused(
    tmp_path: Path, content: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    with fed(tmp_path, GOOD + content) as (relay, _, _):
        id = relay.subscribe()["id"]
        until(lambda: reason in caplog.text)
        assert b'tidings_link_refused_total{what="packet"}' in relay.service.metrics.text()
        relay.publish({"id": "own", "source": "t", "topic": "sport"})
        path = f"/api/subscriptions/{id}/notifications"
        until(lambda: "own" in {item["event"]["id"] for item in relay.http.get(path).json()["items"]})


def test_a_replay_changes_nothing(tmp_path: Path) -> None:
    with fed(tmp_path, GOOD * 50 + frame(_MARK.pack(0, 1, 0.0))) as (relay, parent, state):
        id = relay.subscribe()["id"]
        until(lambda: parent.asked > 2)
        until(lambda: state.duplicates == state.messages - 1 >= 99)  # the two are counted by another thread
        assert relay.service.log_writer.lag(None).events <= 1
        # None if the event came before the subscription.
        assert len(relay.http.get(f"/api/subscriptions/{id}/notifications").json()["items"]) <= 1


@pytest.mark.slow
def test_an_endless_path_is_refused(tmp_path: Path) -> None:
    with fed(tmp_path, b"", [f"n{number:020d}" for number in range(40)]) as (_, _, state):
        until(lambda: state.status == "refuses")
        assert "services away from the centre" in state.message


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/api/links", {"relay": "../../etc"}, 422),
        ("POST", "/api/links", {}, 422),
        ("PUT", "/api/links/filters", {"relay": ID, "filters": ["WHERE ("]}, 200),
        ("PUT", "/api/links/filters", {"relay": ID, "filters": "WHERE a = 1"}, 422),
        ("PUT", "/api/links/filters", {"relay": ID, "filters": ["x" * 100_000]}, 422),
        ("POST", "/api/links/acks", {"relay": ID, "payloads": ["zz"]}, 422),
        ("POST", "/api/links/acks", {"relay": ID, "payloads": ["0" * 32] * 20_000}, 422),
        ("GET", f"/api/links/payloads?relay={ID}&id={'0' * 32}&number=5", None, 404),
        ("GET", f"/api/links/packets?relay={ID}&after=-1", None, 422),
        ("GET", f"/api/links/packets?relay={ID}&since=nan", None, 422),
    ],
)
def test_a_relay_that_sends_nonsense_is_refused(
    served: Served, method: str, path: str, body: Any, status: int
) -> None:
    answer = served.http.request(method, path, json=body)
    assert answer.status_code == status, answer.text
    if status == 200:
        assert len(answer.json()["refused"]) == 1
    assert served.http.get("/api/subscriptions").json()["items"] == []


def test_more_filters_than_the_quota_are_refused(guarded: Served) -> None:
    _, secret = guarded.service.access.grant("small", Role.RELAY, subscriptions=3)
    headers = {"Authorization": f"Bearer {secret}"}
    filters = [f"WHERE a = {number}" for number in range(4)]
    put = {"relay": ID, "filters": filters}
    assert guarded.http.put("/api/links/filters", json=put, headers=headers).status_code == 403
    put["filters"] = filters[:3]
    for _ in range(2):  # the same again is no more
        assert guarded.http.put("/api/links/filters", json=put, headers=headers).json() == {"refused": []}
    # A relay chooses its id: another one with the same token has no quota of its own, with another token it has.
    other = {"relay": "n" + "c" * 20, "filters": filters[:1]}
    refused = guarded.http.put("/api/links/filters", json=other, headers=headers)
    assert refused.status_code == 403
    assert "have 3 filters" in refused.json()["detail"]
    _, secret = guarded.service.access.grant("another", Role.RELAY, subscriptions=3)
    accepted = guarded.http.put(
        "/api/links/filters", json=other, headers={"Authorization": f"Bearer {secret}"}
    )
    assert accepted.json() == {"refused": []}
    # What is withdrawn counts no more.
    guarded.http.put("/api/links/filters", json={"relay": ID, "filters": []}, headers=headers)
    assert guarded.http.put("/api/links/filters", json=other, headers=headers).status_code == 200


def test_a_relay_that_does_not_read_holds_nobody_up(tmp_path: Path) -> None:
    with Running(data=tmp_path / "centre") as centre:
        centre.http.put("/api/links/filters", json={"relay": ID, "filters": ["WHERE topic = 'sport'"]})
        with socket.create_connection(("127.0.0.1", centre.service.settings.port)) as lazy:
            lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            lazy.sendall(
                f"GET /api/links/packets?relay={ID}&after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
            )
            id = centre.subscribe()["id"]
            for number in range(20):
                centre.publish({"id": str(number), "source": "s", "topic": "sport", "text": "x" * 200_000})
            centre.notifications(id, 20)
            assert len(centre.service.downstream.links()) == 1


def test_a_page_of_a_link_is_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downstream, "PAGE_BYTES", 100_000)
    sizes = [30_000] * 10 + [250_000, 10, 250_000] + [10] * 20

    async def read(centre: Served) -> list[bytes]:
        packets = centre.service.downstream.packets(Principal("", Role.ADMIN), ID, Start(after=0))
        events, pages = 0, list[bytes]()
        async for page in packets:
            found = [data for data in Frames().feed(page) if read_mark(data) is None]
            events += len(found)
            pages += [page] if found else []
            if events == len(sizes):
                await packets.aclose()
        return pages

    with Running(data=tmp_path / "centre") as centre:
        centre.http.put("/api/links/filters", json={"relay": ID, "filters": ["WHERE topic = 'sport'"]})
        for number, size in enumerate(sizes):
            text = {"text": "x" * (size // 2), "datacontenttype": "text/plain", "data": "y" * (size // 2)}
            centre.publish(
                {
                    "id": str(number),
                    "source": "s",
                    "topic": "sport",
                    "specversion": "1.0",
                    "type": "t",
                    **text,
                }
            )
        until(lambda: centre.service.mailbox.last() == len(sizes))
        pages = asyncio.run(read(centre))
    packets = [data for page in pages for data in Frames().feed(page) if read_mark(data) is None]
    assert [event_of(decode(data)).id for data in packets] == [str(number) for number in range(len(sizes))]
    assert all(len(page) < 110_000 for page in pages if b"x" * 125_000 not in page)
    assert len(pages) == 8  # of 3, 3, 3 and 1 of 30,000, then 250,000, 10, 250,000, and the rest
