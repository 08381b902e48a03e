"""Each guard alone, around an app that tells what reached it; then all of them in their order."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tidings.service.settings import Settings
from tidings.service.web.middleware import (
    MIDDLEWARE,
    BodyLimit,
    HostCheck,
    OriginCheck,
    RequestIds,
    SecurityHeaders,
    host_name,
    with_middleware,
)


class Reader:
    """Reads the whole body and answers its length; `seen` counts what reached it."""

    def __init__(self, headers: list[tuple[bytes, bytes]] | None = None) -> None:
        self.seen = 0
        self.state: dict[str, Any] = {}
        self.headers = headers or []

    async def __call__(self, scope, receive, send) -> None:
        self.state = dict(scope.get("state", {}))
        while True:
            message = await receive()
            self.seen += len(message.get("body", b""))
            if not message.get("more_body"):
                break
        await send({"type": "http.response.start", "status": 200, "headers": self.headers})
        await send({"type": "http.response.body", "body": str(self.seen).encode()})


def ask(app, method="GET", headers=None, chunks=(b"",)) -> tuple[int, dict[str, str], bytes]:
    """One request, straight to an ASGI app. `chunks` are an iterable: what is left of it was not read."""
    headers = {"host": "localhost:8750", **(headers or {})}
    pairs = [
        (name.lower().encode(), value.encode("latin-1"))
        for name, value in headers.items()
        if value is not None
    ]
    scope = {"type": "http", "method": method, "path": "/", "headers": pairs, "query_string": b""}
    chunks = iter(chunks)
    sent: list[dict[str, Any]] = []

    async def receive():
        chunk = next(chunks, None)
        return {"type": "http.request", "body": chunk or b"", "more_body": chunk is not None}

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    start = next(message for message in sent if message["type"] == "http.response.start")
    assert sum(message["type"] == "http.response.start" for message in sent) == 1
    body = b"".join(m.get("body", b"") for m in sent if m["type"] == "http.response.body")
    return start["status"], {k.decode(): v.decode() for k, v in start["headers"]}, body


def settings(**changes) -> Settings:
    return Settings(**{"data": Path("nowhere"), **changes})


def test_a_request_has_an_id() -> None:
    app = Reader()
    _, headers, _ = ask(RequestIds(app, settings()))
    assert app.state["request_id"] == headers["x-request-id"]
    assert len(headers["x-request-id"]) == 16


def test_a_plain_id_of_a_proxy_is_kept_and_another_is_not() -> None:
    app = RequestIds(Reader(), settings())
    assert ask(app, headers={"x-request-id": "trace-1"})[1]["x-request-id"] == "trace-1"
    for bad in ("a b", "x" * 65, "é", "1\r\nset-cookie: a=b"):
        assert ask(app, headers={"x-request-id": bad})[1]["x-request-id"] != bad


def test_security_headers() -> None:
    _, headers, _ = ask(SecurityHeaders(Reader(), settings()))
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"
    assert "strict-transport-security" not in headers


def test_what_an_answer_says_itself_stays() -> None:
    app = SecurityHeaders(Reader([(b"cache-control", b"public, max-age=60")]), settings())
    assert ask(app)[1]["cache-control"] == "public, max-age=60"


def test_hsts_where_the_service_is_known_by_https() -> None:
    app = SecurityHeaders(Reader(), settings(url="https://tidings.example"))
    assert "max-age" in ask(app)[1]["strict-transport-security"]


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8750", "127.0.0.1:8750", "[::1]:8750", "LOCALHOST", "localhost."]
)
def test_local_names_are_answered(host: str) -> None:
    assert ask(HostCheck(Reader(), settings()), headers={"host": host})[0] == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8750", "", "10.0.0.7", "a@localhost"],
)
def test_other_names_are_not(host: str) -> None:
    app = Reader()
    status, headers, body = ask(HostCheck(app, settings()), headers={"host": host})
    assert (status, app.seen) == (421, 0)
    assert headers["content-type"] == "application/problem+json"
    assert json.loads(body)["status"] == 421


def test_a_request_without_a_host_is_refused() -> None:
    assert ask(HostCheck(Reader(), settings()), headers={"host": None})[0] == 400


def test_the_name_outside_and_the_address_listened_on() -> None:
    app = HostCheck(Reader(), settings(host="10.1.2.3", url="https://tidings.example"))
    for host in ("10.1.2.3:8750", "tidings.example", "localhost"):
        assert ask(app, headers={"host": host})[0] == 200
    assert ask(app, headers={"host": "other.example"})[0] == 421


def test_on_every_address_numbers_are_answered_and_names_are_not() -> None:
    app = HostCheck(Reader(), settings(host="0.0.0.0"))
    assert ask(app, headers={"host": "192.168.1.20:8750"})[0] == 200
    assert ask(app, headers={"host": "[fd00::2]:8750"})[0] == 200
    assert ask(app, headers={"host": "rebound.example:8750"})[0] == 421


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),  # no browser
        ({"origin": "http://localhost:8750"}, True),
        ({"origin": "http://localhost:8750", "sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "none"}, True),
        ({"origin": "null", "sec-fetch-site": "same-origin"}, True),
        ({"origin": "null"}, False),
        ({"origin": "http://evil.example"}, False),
        ({"origin": "http://localhost:9999"}, False),  # another service of this machine
        ({"origin": "http://localhost:8750", "sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"origin": "http://evil.example/?localhost:8750"}, False),
        ({"origin": ""}, False),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_only_pages_of_our_own_change_something(method: str, headers: dict[str, str], allowed: bool) -> None:
    app = Reader()
    status, _, body = ask(OriginCheck(app, settings()), method, headers)
    assert status == (200 if allowed else 403)
    if not allowed:
        assert json.loads(body)["type"] == "/problems/cross-site"


def test_anybody_may_follow_a_link_to_us() -> None:
    for method in ("GET", "HEAD"):
        assert ask(OriginCheck(Reader(), settings()), method, {"sec-fetch-site": "cross-site"})[0] == 200


def test_behind_a_proxy_the_name_outside_is_ours() -> None:
    app = OriginCheck(Reader(), settings(url="https://tidings.example"))
    assert ask(app, "POST", {"host": "127.0.0.1:8750", "origin": "https://tidings.example"})[0] == 200


def test_a_declared_length_over_the_limit_is_refused_unread() -> None:
    app = Reader()
    status, headers, body = ask(
        BodyLimit(app, settings(max_body=10)), "POST", {"content-length": "11"}, [b"x" * 11]
    )
    assert (status, app.seen, headers["connection"]) == (413, 0, "close")
    assert "10 bytes" in json.loads(body)["detail"]
    assert ask(BodyLimit(Reader(), settings(max_body=10)), "POST", {"content-length": "9" * 400})[0] == 413


def test_a_body_without_length_is_read_up_to_the_limit_only() -> None:
    app, chunks = Reader(), iter([b"x" * 6] * 1000)
    assert ask(BodyLimit(app, settings(max_body=10)), "POST", {}, chunks)[0] == 413
    assert app.seen == 6
    assert len(list(chunks)) == 998


def test_a_body_of_just_the_limit_passes() -> None:
    assert ask(BodyLimit(Reader(), settings(max_body=10)), "POST", {}, [b"x" * 5, b"y" * 5])[2] == b"10"


def test_an_app_that_hides_errors_does_not_answer_twice() -> None:
    async def stubborn(scope, receive, send) -> None:
        try:
            while (await receive()).get("more_body"):
                pass
        except Exception:
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"fine"})

    assert ask(BodyLimit(stubborn, settings(max_body=10)), "POST", {}, [b"x" * 11])[0] == 413


def test_errors_of_the_app_itself_go_on() -> None:
    async def broken(scope, receive, send) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ask(BodyLimit(broken, settings()))


def test_all_in_their_order() -> None:
    assert [layer.__name__ for layer in MIDDLEWARE] == [
        "RequestIds",
        "SecurityHeaders",
        "HostCheck",
        "OriginCheck",
        "BodyLimit",
    ]
    app = with_middleware(Reader(), settings(max_body=10))
    status, headers, _ = ask(app, "POST", {"host": "evil.example"})
    assert status == 421
    assert {"x-request-id", "content-security-policy"} <= headers.keys()
    assert ask(app, "POST", {"origin": "http://evil.example", "content-length": "99"})[0] == 403


def test_other_scopes_pass() -> None:
    seen = []

    async def app(scope, receive, send) -> None:
        seen.append(scope["type"])

    asyncio.run(with_middleware(app, settings())({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert seen == ["lifespan"]


@pytest.mark.parametrize(
    ("given", "name"),
    [("[::1]:80", "::1"), ("[::1]", "::1"), ("A.example:1", "a.example"), ("a.", "a"), ("", ""), ("[", "")],
)
def test_names_in_host_headers(given: str, name: str) -> None:
    assert host_name(given) == name
