"""A line for each thing, and never a secret in it."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tidings.errors import TidingsError
from tidings.service.settings import Settings
from tidings.service.subscriptions.tickets import new_secret, new_webhook_secret
from tidings.service.telemetry.logs import RequestLog, TextLines, bound, configure, without_secrets
from tidings.service.web.middleware import RequestIds

log = logging.getLogger("tidings.test")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Other tests have their own logging."""
    names = [
        "",
        "httpx",
        "httpcore",
        "alembic",
        "py4j",
        "asyncio",
        "uvicorn",
        "uvicorn.error",
        "uvicorn.access",
    ]
    before = [(logging.getLogger(name), logging.getLogger(name).level) for name in names]
    root = logging.getLogger()
    handlers = root.handlers[:]
    yield
    root.handlers[:] = handlers
    for logger, level in before:
        logger.setLevel(level)


def said(format: str) -> io.StringIO:
    stream = io.StringIO()
    configure(format, stream=stream)
    return stream


def test_text_is_one_readable_line() -> None:
    stream = said("text")
    with bound(request="9f"):
        log.warning("it took %d tries", 3, extra={"fields": {"subscription": "s1", "error": "no route"}})
    line = stream.getvalue()
    assert line.endswith(' WARNING it took 3 tries  request=9f subscription=s1 error="no route"\n')
    assert line.count("\n") == 1


def test_json_has_time_level_message_and_fields() -> None:
    stream = said("json")
    with bound(request="9f"):
        log.info("done", extra={"fields": {"count": 3}})
    line = json.loads(stream.getvalue())
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "info",
        "logger": "tidings.test",
        "message": "done",
        "request": "9f",
        "count": 3,
    }


def test_fields_end_with_their_block_and_reach_threads() -> None:
    stream = said("json")

    async def work() -> None:
        with bound(request="inner"):
            await asyncio.to_thread(log.info, "in a thread")
        log.info("after")

    asyncio.run(work())
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first["request"] == "inner"
    assert "request" not in second


SECRETS = [new_secret("tkt_"), new_secret("tid_"), new_webhook_secret(), new_secret("f")]


@pytest.mark.parametrize("format", ["text", "json"])
def test_secrets_are_never_said(format: str) -> None:
    stream = said(format)
    ticket, token, key, feed = SECRETS
    log.info("renewed with %s", ticket)
    log.info("asked", extra={"fields": {"header": f"Bearer {token}", "ticket": "short", "token": 7}})
    log.info('127.0.0.1 - "GET /feeds/%s.atom?x=1 HTTP/1.1" 200', feed)
    log.info("GET /websub/callbacks/%s?hub.topic=http%%3A%%2F%%2Fhost%%2Ffeeds%%2F%s.atom", feed, feed)
    log.info("POST /renew?ticket=abcdef&valid_for=3")
    log.info("store postgresql://me:wordword@host/db")
    try:
        raise ValueError(f"cannot sign by {key}")
    except ValueError:
        log.exception("a fault")
    text = stream.getvalue()
    for secret in (*SECRETS, "abcdef", "wordword", "short"):
        assert secret not in text
        assert secret[-12:] not in text
    assert "ValueError" in text
    assert "valid_for=3" in text
    assert "@host/db" in text


def test_plain_words_stay() -> None:
    for words in (
        "the ticket is wrong",
        "3 tokens, 2 secrets",
        "/feeds",
        "http://host:80/x",
        "s4kd subscribed",
    ):
        assert without_secrets(words) == words


def test_what_comes_from_outside_begins_no_line() -> None:
    stream = said("text")
    log.info("path %s", "/x\n2026-01-01 00:00:00.000 ERROR forged\x1b[2J")
    assert stream.getvalue().count("\n") == 1
    assert "\x1b" not in stream.getvalue()
    try:
        raise ValueError("one\n2026-01-01 00:00:00.000 ERROR forged")
    except ValueError:
        log.exception("a fault")
    assert not any(line.startswith("2026-01-01") for line in stream.getvalue().splitlines())


def test_uvicorn_speaks_through_it_and_clients_are_quiet() -> None:
    stream = said("json")
    logging.getLogger("uvicorn.error").info("Started")
    logging.getLogger("httpx").info("HTTP Request: POST https://hooks.example/T0/secret-path")
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["logger"] == "uvicorn.error"


def test_configuring_twice_says_everything_once() -> None:
    said("text")
    stream = said("text")
    log.info("once")
    assert stream.getvalue().count("once") == 1


def test_a_wrong_format_or_message_is_told() -> None:
    with pytest.raises(TidingsError, match="use one of text, json"):
        configure("xml")
    wrong = logging.LogRecord("x", logging.INFO, "", 1, "%d of %s", ("x",), None)
    assert TextLines().format(wrong).endswith("%d of %s")


def test_a_line_for_each_request() -> None:
    stream = said("json")
    app = FastAPI()

    @app.get("/feeds/{name}")
    def feed(name: str) -> str:
        log.info("inside")
        return name

    @app.get("/health")
    def health() -> str:
        return "ok"

    @app.get("/bad")
    def bad() -> str:
        raise RuntimeError("a fault of ours")

    async def ask() -> Any:
        layers = RequestIds(RequestLog(app), Settings(data=None))  # type: ignore[arg-type]
        transport = httpx.ASGITransport(layers, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            first = await client.get(f"/feeds/{SECRETS[3]}.atom?token=abc")
            await client.get("/health")
            await client.get("/bad")
            return first.headers["x-request-id"]

    id = asyncio.run(ask())
    inside, first, second = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert inside["request"] == id, "also what is said while it is answered"
    assert (first["message"], first["status"], first["request"]) == ("GET /feeds/….atom", 200, id)
    assert first["ms"] >= 0
    assert (second["message"], second["level"], second["status"]) == ("GET /bad", "error", 500)
    assert SECRETS[3] not in stream.getvalue()
