"""The middleware in front of every request, one plain ASGI layer each, in the order of `MIDDLEWARE`. Blocks DNS
rebinding and cross-site writes.

    RequestIds       adds the id of the request to every answer and every line of the log
    SecurityHeaders  forbids foreign scripts and framing, and the caching of private answers
    HostCheck        refuses unknown host names (DNS rebinding)
    OriginCheck      refuses writes from pages of another origin; clients that are no browsers send neither header
    BodyLimit        refuses a body as soon as it exceeds the limit, and one that comes too slowly
"""

from __future__ import annotations

import asyncio
import ipaddress
import random
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from tidings.service.settings import Settings
from tidings.service.web.problems import Problem

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' https: data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
SMALL = 1 << 20  # bytes: the longest text of a subscription, however it is escaped
LARGE = frozenset(
    {
        "/api/events",
        "/api/subscriptions/bulk",
        "/api/links/filters",
        "/api/links/rows",
        "/api/taxonomy",
        "/api/sources/opml",
        "/xmlrpc",
        "/publish",
        "/sources/opml",
    }
)
CALLBACKS = "/websub/callbacks/"  # where hubs post feeds
SLOWEST = 120.0  # seconds for a whole body


class RequestIds:
    """Sets `scope["state"]["request_id"]` and the header X-Request-ID. An id from a proxy is kept if it is plain."""

    def __init__(self, app: App, settings: Settings) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = _header(scope, b"x-request-id") or ""
        id = given if _REQUEST_ID.fullmatch(given) else f"{random.getrandbits(64):016x}"  # no secret
        scope.setdefault("state", {})["request_id"] = id
        header = (b"x-request-id", id.encode())

        async def forward(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), header]
            await send(message)

        await self._app(scope, receive, forward)


class SecurityHeaders:
    """Adds security headers that an answer does not set itself: static files and feeds have their own Cache-Control."""

    def __init__(self, app: App, settings: Settings) -> None:
        self._app = app
        headers = [
            ("content-security-policy", CONTENT_SECURITY_POLICY),
            ("x-content-type-options", "nosniff"),
            # Addresses of feeds are secrets. "no-referrer" would make browsers send "Origin: null" with our forms.
            ("referrer-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
            ("cache-control", "no-store"),
        ]
        if settings.address.startswith("https:"):
            headers.append(("strict-transport-security", "max-age=31536000; includeSubDomains"))
        self._headers = [(name.encode(), value.encode()) for name, value in headers]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def forward(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", ()))
                names = {name.lower() for name, _ in given}
                message["headers"] = given + [header for header in self._headers if header[0] not in names]
            await send(message)

        await self._app(scope, receive, forward)


class HostCheck:
    """Refuses requests for other host names than the service's own. Where it listens on every address of the
    machine, IP addresses are accepted too: a number in the Host header cannot have been rebound."""

    def __init__(self, app: App, settings: Settings) -> None:
        self._app = app
        self._names = set(_LOCAL) | {host_name(urlsplit(settings.address).netloc)}
        self._numbers = settings.host in ("", "0.0.0.0", "::")
        if not self._numbers:
            self._names.add(settings.host.lower())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            hosts = [value for name, value in scope["headers"] if name == b"host"]
            if len(hosts) != 1:
                problem = Problem(400, "a request names its host once; send one Host header")
                await problem.response()(scope, receive, send)
                return
            host = host_name(hosts[0].decode("latin-1"))
            if host not in self._names and not (self._numbers and _is_number(host)):
                problem = Problem(
                    421,
                    f"this service is not known as {host[:100]!r}; start it with --url http://{host[:100]}… if it should be",
                )
                await problem.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)


class OriginCheck:
    """Refuses writes from pages of another origin, by the headers that browsers send."""

    def __init__(self, app: App, settings: Settings) -> None:
        self._app = app
        self._own = urlsplit(settings.address).netloc.lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in _SAFE and not self._is_own(scope):
            problem = Problem(
                403,
                "this request comes from a page of another site, which may change nothing here; use the service's own page, or a client that is no browser",
                kind="cross-site",
            )
            await problem.response()(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_own(self, scope: Scope) -> bool:
        site = _header(scope, b"sec-fetch-site")
        if site is not None and site not in ("same-origin", "none"):
            return False
        origin = _header(scope, b"origin")
        if origin is None:
            return True
        if origin == "null":  # a page that hides its address; Sec-Fetch-Site decides
            return site == "same-origin"
        try:
            own = urlsplit(origin).netloc.lower()
        except ValueError:  # no browser sends such a thing
            return False
        return own in ((_header(scope, b"host") or "").lower(), self._own)


class BodyLimit:
    """Answers 413 by the Content-Length where there is one, otherwise as soon as too much has come. Only events and
    files may be large: other bodies are read before the principal is known."""

    def __init__(self, app: App, settings: Settings, *, seconds: float = SLOWEST) -> None:
        self._app = app
        self._most = settings.max_body
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_large = scope["path"] in LARGE or scope["path"].startswith(CALLBACKS)
        limit = self._most if is_large else min(self._most, SMALL)
        length = _header(scope, b"content-length") or ""
        if length.isdecimal() and (len(length) > 18 or int(length) > limit):
            await self._too_large(limit).response()(scope, receive, send)
            return
        came, begun, refused, whole = 0, False, False, False
        until = time.monotonic() + self._seconds

        async def refuse(problem: Problem) -> None:
            nonlocal refused
            refused = True
            await problem.response()(scope, receive, send)
            raise _Refused

        async def count() -> Message:
            nonlocal came, whole
            if whole or begun:  # what is waited for now is that the client goes away
                return await receive()
            try:
                async with asyncio.timeout(until - time.monotonic()):
                    message = await receive()
            except TimeoutError:
                await refuse(_too_slow(self._seconds))
                raise
            if message["type"] == "http.request":
                came += len(message.get("body", b""))
                whole = not message.get("more_body", False)
                if came > limit:
                    await refuse(self._too_large(limit))
            return message

        async def forward(message: Message) -> None:
            nonlocal begun
            if not refused:  # what the rest of the service makes of a body cut short is of no interest
                begun = True
                await send(message)

        try:
            await self._app(scope, count, forward)
        except Exception:
            if not refused:
                raise

    def _too_large(self, limit: int) -> Problem:
        return Problem(
            413,
            f"a body has at most {limit:,} bytes here; send it in parts",
            headers={"Connection": "close"},
        )


def _too_slow(seconds: float) -> Problem:
    return Problem(
        408,
        f"the body did not come within {seconds:g} seconds; send it again, in smaller parts",
        headers={"Connection": "close"},
    )


class _Refused(Exception):
    """Ends the request: the answer has been sent already."""


MIDDLEWARE: tuple[type, ...] = (RequestIds, SecurityHeaders, HostCheck, OriginCheck, BodyLimit)


def with_middleware(app: App, settings: Settings) -> App:
    """The app behind all middleware; the first of `MIDDLEWARE` sees a request first."""
    for layer in reversed(MIDDLEWARE):
        app = layer(app, settings)
    return app


def _header(scope: Scope, name: bytes) -> str | None:
    """The first header of this name; Starlette's takes several microseconds for each."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return None


def host_name(netloc: str) -> str:
    """The name in a Host header, without port and brackets: "[::1]:8750" is "::1"."""
    netloc = netloc.strip().lower()
    if netloc.startswith("["):
        return netloc[1:].partition("]")[0]
    return netloc.partition(":")[0].rstrip(".")


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
