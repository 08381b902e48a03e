"""Addresses that lead inside, by every route that takes one, and at the moment of asking: names that lead elsewhere the
second time, redirects, and what is allowed by configuration."""

from __future__ import annotations

import asyncio
import http.server
import threading
import time
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from tests.service.conftest import Served
from tests.service.hostile.test_cross_site import visit
from tidings.feeds import http as feeds_http
from tidings.feeds.addresses import AddressRefused, AsyncGuard, guarded_client
from tidings.service.delivery.receivers import Receivers

# What a resolver does with them is in tests/feeds/test_addresses.py; here is that every way in asks.
INSIDE = [
    "http://127.0.0.1/",
    "http://localhost:8750/",
    "http://2130706433/",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://10.0.0.1/",
    "http://192.168.1.1/",
    "http://172.16.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/",
    "http://[fe80::1]/",
    "http://100.100.100.200/",
    "http://0.0.0.0/",
    "https://user@127.0.0.1/",
    "file:///etc/passwd",
    "ftp://example.org/",
    "gopher://127.0.0.1/",
    "http://",
]


@pytest.mark.parametrize("url", INSIDE)
def test_no_way_in_takes_it(served: Served, url: str) -> None:
    made, http = served.subscribe(), served.http
    assert http.post("/api/sources", json={"url": url}).status_code == 422
    assert http.post("/api/subscriptions", json={"text": "WHERE a = 1", "webhook": url}).status_code == 422
    body = {"url": url, "ticket": made["ticket"]}
    assert http.put(f"/api/subscriptions/{made['id']}/webhook", json=body).status_code == 422
    opml = f"<opml version='2.0'><body><outline xmlUrl='{url}'/></body></opml>"
    answer = http.post("/api/sources/opml", content=opml, headers={"Content-Type": "text/x-opml"}).json()
    assert (answer["added"], len(answer["refused"])) == (0, 1)
    client, token = visit(served)
    assert client.post("/sources", data={"csrf": token, "url": url}).status_code == 422
    form = {"csrf": token, "text": "WHERE a = 1", "webhook": url}
    assert client.post("/subscriptions", data=form).status_code == 422
    form = {"csrf": token, "ticket": made["ticket"], "url": url}
    assert client.post(f"/subscriptions/{made['id']}/webhook", data=form).status_code == 422
    form = {"hub.mode": "subscribe", "hub.topic": made["feeds"]["atom"], "hub.callback": url}
    assert http.post("/websub", data=form).status_code == 422
    assert served.service.registry.delivery(made["id"]) is None
    assert url not in [one["url"] for one in http.get("/api/sources").json()["items"]]


class Inside(http.server.BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        Inside.asked.append(self.path)
        self.send_response(302 if self.path == "/away" else 200)
        if self.path == "/away":
            self.send_header("Location", f"http://inner.example:{self.server.server_address[1]}/inner")  # type: ignore[attr-defined]
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def inside() -> Iterator[int]:
    Inside.asked = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Inside)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def test_a_name_that_leads_elsewhere_the_second_time(inside: int) -> None:
    """It was good when it was checked; where it leads is looked at when it is asked, and asked there."""
    answers = iter([["192.0.2.1"], ["127.0.0.1"], ["::1"], ["169.254.169.254"]])
    url = f"http://rebound.example:{inside}/"
    with guarded_client(resolve=lambda host, port: next(answers), timeout=1) as client:
        for _ in range(4):
            with pytest.raises(AddressRefused):
                client.get(url)

    async def post() -> None:
        receivers = Receivers(AsyncGuard(resolve=lambda host, port: ["127.0.0.1"]))
        with pytest.raises(AddressRefused):
            await receivers.request("POST", url, {}, b"")

    asyncio.run(post())
    assert Inside.asked == []


def test_a_callback_that_leads_inside_is_not_called(
    served: Served, inside: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is looked up when the hub calls it."""
    hub = served.service.websub_hub
    monkeypatch.setattr(hub._receivers._guard, "_resolve", lambda host, port: ["127.0.0.1"])
    callback = f"http://inner.example:{inside}/callback"
    for mode in ("subscribe", "unsubscribe"):
        form = {"hub.mode": mode, "hub.topic": served.subscribe()["feeds"]["atom"], "hub.callback": callback}
        assert served.http.post("/websub", data=form).status_code == 202
    while hub._pending:
        time.sleep(0.01)
    assert Inside.asked == []
    assert hub._store.all(0.0) == []


def test_a_redirect_from_an_allowed_place_leads_nowhere_else(inside: int) -> None:
    places = {"outer.example": ["127.0.0.1"], "inner.example": ["10.0.0.1"]}
    with guarded_client(("127.0.0.1",), resolve=lambda host, port: places[host]) as client:
        answer = feeds_http.get(client, f"http://outer.example:{inside}/away", None, None, 1_000)
    assert answer.status == "error"
    assert "private network" in (answer.error or "")
    assert Inside.asked == ["/away"]


def test_what_is_allowed_by_configuration_is_asked(running: Any, inside: int) -> None:
    with running(allowed=("127.0.0.1/32",)) as served:
        url = f"http://127.0.0.1:{inside}/feed"
        assert served.http.post("/api/sources", json={"url": url}).status_code == 201
        assert served.http.post("/api/sources", json={"url": "http://127.0.0.2/"}).status_code == 422
        assert served.http.post("/api/sources", json={"url": "http://10.0.0.1/"}).status_code == 422
        made = served.subscribe("WHERE topic = 'hook'", webhook=f"http://127.0.0.1:{inside}/hook")
        served.publish({"source": "s", "topic": "hook"})
        served.notifications(made["id"])
        for _ in range(500):
            if {"/feed", "/hook"} <= set(Inside.asked):
                break
            threading.Event().wait(0.02)
        assert {"/feed", "/hook"} <= set(Inside.asked)
