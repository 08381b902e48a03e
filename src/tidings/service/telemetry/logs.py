"""Writes the log: one line per record, as text or JSON, with secrets removed.

A line has a time, a level, a message and fields: those given with it (`extra={"fields": {...}}`) and those of the
current request (`bound`). Tickets, tokens, keys, addresses of secret feeds and links of channels are removed from the finished line,
wherever they are: in a message, a field, or a traceback.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

from tidings.errors import TidingsError
from tidings.service.web.middleware import App, Message, Receive, Scope, Send

FORMATS = ("text", "json")
# Loggers that write a line for each request with the whole address, or for each start.
_TALKATIVE = ("httpx", "httpcore", "alembic", "py4j", "asyncio")

_SECRETS = (
    # By the prefixes of `tickets`.
    (re.compile(r"\b(tkt_|tid_|whsec_)[A-Za-z0-9_+/=-]+"), r"\1…"),
    (re.compile(r"(?i)\b(bearer|basic)([ :=\"']+)[A-Za-z0-9._~+/=-]{8,}"), r"\1\2…"),
    (re.compile(r"(/feeds/|%2Ffeeds%2F|/websub/callbacks/)[^\s/.?\"'\\]+"), r"\1…"),
    (re.compile(r"(/channels/(?:confirm|unsubscribe)/)[^\s/?\"'\\]+"), r"\1…"),
    (
        re.compile(
            r"(?i)\b(ticket|token|secret|password|session|csrf|cookie|authorization)(\"?'?\s*[=:]\s*\"?'?)(?!…)[^\s&;,\"'\\}]+"
        ),
        r"\1\2…",
    ),
    (re.compile(r"(://[^\s/:@]*+:)[^\s/@]++@"), r"\1…@"),  # postgresql://me:word@host
)

_bound: ContextVar[Mapping[str, object]] = ContextVar("tidings_log_fields", default={})  # noqa: B039 - never changed

access = logging.getLogger("tidings.access")


def without_secrets(text: str) -> str:
    """The text with its secrets replaced."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


@contextmanager
def bound(**fields: object) -> Iterator[None]:
    """Adds these fields to every line that is logged inside, also in threads and tasks begun there."""
    token = _bound.set({**_bound.get(), **fields})
    try:
        yield
    finally:
        _bound.reset(token)


def configure(format: str = "text", *, stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Sends all log lines of this process to `stream`, or to standard error; uvicorn's too, if it is started with
    `log_config=None`. Calling it again replaces the previous configuration."""
    if format not in FORMATS:
        raise TidingsError(f"there is no log format {format!r}; use one of {', '.join(FORMATS)}")
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if format == "json" else TextLines())
    handler.addFilter(_remember)
    root = logging.getLogger()
    for old in root.handlers[:]:
        if isinstance(old.formatter, _Lines):
            root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True


def _remember(record: logging.LogRecord) -> bool:
    """Stores the current fields in the record: a handler may write the line elsewhere and later."""
    given = getattr(record, "fields", None)
    record.fields = {**_bound.get(), **(given if isinstance(given, Mapping) else {})}
    return True


class _Lines(logging.Formatter):
    def _parts(self, record: logging.LogRecord) -> tuple[str, Mapping[str, object], str]:
        """Message, fields, traceback."""
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        if record.stack_info:
            trace = f"{trace}\n{record.stack_info}".strip()
        return _message(record), getattr(record, "fields", None) or {}, trace


class TextLines(_Lines):
    """`2026-11-16 10:06:50.123 INFO  message  subscription=s4… request=9f…`, in UTC; a traceback is below it."""

    def format(self, record: logging.LogRecord) -> str:
        message, fields, trace = self._parts(record)
        when = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        named = "".join(f" {name}={_shown(value)}" for name, value in fields.items())
        line = _one_line(f"{when} {record.levelname:<7} {message}{' ' if named else ''}{named}")
        # Indented, so that no line of an error looks like a log line.
        below = "".join(f"\n    {part}" for part in trace.splitlines())
        return without_secrets(line + below)


class JsonLines(_Lines):
    """One JSON object a line: time, level, logger, message, then the fields."""

    def format(self, record: logging.LogRecord) -> str:
        message, fields, trace = self._parts(record)
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": without_secrets(message),
        }
        for name, value in fields.items():
            plain = value if isinstance(value, int | float | bool | None) else without_secrets(str(value))
            line.setdefault(name, plain)
            if name.lower() in ("ticket", "token", "secret", "password", "authorization", "cookie"):
                line[name] = "…"
        if trace:
            line["traceback"] = without_secrets(trace)
        return json.dumps(line)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # a wrong format loses its line's arguments, not the line
        return str(record.msg)


def _shown(value: object) -> str:
    text = str(value)
    return (
        text
        if text and all(letter.isprintable() and letter not in ' "=' for letter in text)
        else json.dumps(text)
    )


def _one_line(text: str) -> str:
    """The text without line breaks and control characters, so that outside text cannot forge log lines."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


class RequestLog:
    """An ASGI middleware that logs a line for each request: method, path, status, milliseconds. It stands inside the
    one that assigns request ids. Paths in `quiet` are polled by machines; they are logged only when they fail."""

    def __init__(
        self,
        app: App,
        *,
        quiet: frozenset[str] = frozenset({"/health", "/ready", "/metrics"}),
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._app = app
        self._quiet = quiet
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = self._clock()
        status = 500

        async def forward(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with bound(request=scope.get("state", {}).get("request_id", "")):
            try:
                await self._app(scope, receive, forward)
            finally:
                # The path alone: the query may hold secrets.
                path = scope["path"]
                if status >= 500 or path not in self._quiet:
                    level = logging.ERROR if status >= 500 else logging.INFO
                    fields = {"status": status, "ms": round((self._clock() - began) * 1000, 1)}
                    access.log(level, "%s %s", scope["method"], path, extra={"fields": fields})
