"""Hostile requests from a seed, over every route that the application has: paths, parameters, headers, bodies, and the way
in which they are sent. Names of parameters and members come from the application's own description, so routes that are
added later get requests that concern them."""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from tests.service.hostile.documents import CALL, NESTED, OPML, PARAMETER, SELF, SHAPES, nested_json, outside
from tests.service.hostile.test_exhaustion import QUESTIONS

# How a request is sent: whole, in pieces, as many small chunks, cut off, with more announced than sent, with more sent than
# announced, twice in one piece, after asking whether it may, and read by a client that stops reading.
MANNERS = ("whole",) * 12 + ("pieces", "pieces", "chunks", "cut", "short", "long", "twice", "expect", "deaf")
STREAMS = ("/stream",)  # whose answers do not end

VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1, 50, 2**31, 2**63, -(2**70), 10**400, 0.5, 1e308, float("nan"), float("inf"), "", " ", "none",
    "never", "\0", "\x1b[31m", "é", "😀", "\ud83d", "\u202e", "a" * 300, "a" * 70_000, "<script>alert(1)</script>", "' OR 1=1 --",
    "../../etc/passwd", "%00", "%zz", "http://127.0.0.1:1/", "https://example.org/feed", "javascript:alert(1)", "file:///etc/passwd",
    "http://[::1", "WHERE a = 1", "WHERE topic = 'sport' AND", "SELECT * WHERE (?a, ?b, ?c)", [], {}, [[]], {"": {}}, ["a"] * 500,
)  # fmt: skip
KINDS = (
    "application/json", "application/cloudevents+json", "application/cloudevents-batch+json", "application/x-ndjson",
    "application/ld+json", "application/feed+json", "application/rss+xml", "application/atom+xml", "application/rdf+xml",
    "application/xml", "text/xml", "text/turtle", "application/n-triples", "application/trig", "application/n-quads", "text/x-opml",
    "application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "application/json; charset=utf-16", "text/plain",
    "application/json; charset=none", "text/xml; charset=utf-7", "", "x" * 3_000, "application/octet-stream",
)  # fmt: skip
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=b")
HEADERS: tuple[tuple[str, str], ...] = (
    ("Authorization", "Bearer tid_none"), ("Authorization", "Basic \xff"), ("Cookie", "tidings_session=a.b.c"),
    ("Cookie", "tidings_visit=" + "x" * 5_000), ("Accept", "text/html"), ("Accept", "text/html, application/json"), ("Accept", "*/*" * 900),
    ("Tidings-Ticket", "tkt_none"), ("Tidings-Ticket", "x" * 300), ("Last-Event-ID", "-1"), ("Last-Event-ID", "9" * 400),
    ("If-None-Match", '"' * 2_000), ("If-None-Match", "*"), ("If-Modified-Since", "Thu, 99 Jan 99999 00:00:00 GMT"), ("Range", "bytes=0-,0-,0-"),
    ("X-Request-ID", "a\tb"), ("Origin", "http://[::1"), ("Origin", "null"), ("Sec-Fetch-Site", "cross-site"), ("Content-Encoding", "gzip"),
    ("Host", "evil.example"), ("ce-id", "%ff"), ("ce-source", "/s"), ("ce-specversion", "9"), ("Connection", "Upgrade"), ("Upgrade", "websocket"),
    ("Expect", "none"), ("X-Forwarded-For", "1.2.3.4"), ("Accept-Encoding", "gzip;q=NaN"), ("X-Long", "x" * 30_000), ("X-Empty", ""),
)  # fmt: skip


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    manner: str
    seed: int  # of what is left to chance while it is sent

    @property
    def is_stream(self) -> bool:
        return self.path.partition("?")[0].endswith(STREAMS)

    def __str__(self) -> str:
        kind = dict(self.headers).get("Content-Type", "")[:40]
        return f"{self.method} {self.path[:80]} ({kind}, {len(self.body):,} bytes, {self.manner}): {self.body[:60]!r}"


class Visit(NamedTuple):
    """What a visitor of the page has: the cookie that its forms are tied to, and their hidden field."""

    cookie: str
    field: str


class Generator:
    """`requests` gives the same ones for the same seed, routes and description, but for the secrets of this service:
    `known` are ids that there are, `visit` is what makes a form acceptable."""

    def __init__(
        self,
        seed: int,
        routes: list[tuple[str, str]],
        description: dict[str, Any],
        known: Sequence[str],
        visit: Visit,
    ) -> None:
        self._random = random.Random(seed)
        self._taken = {route: _media_types(route, description) for route in routes}
        # The more forms the body of a route may have, the more requests it gets.
        self._routes = [route for route in routes for _ in range(1 + 3 * len(self._taken[route]))]
        self._known, self._visit = known, visit
        schemas = description["components"]["schemas"].values()
        self._members = sorted({name for schema in schemas for name in schema.get("properties", ())})
        operations = [operation for path in description["paths"].values() for operation in path.values()]
        named = {one["name"] for operation in operations for one in operation.get("parameters", ())}
        self._parameters = sorted(named | {"next", "done", "part", "after", "text"})
        json_kinds, rdf = KINDS[:6], ("text/turtle", "application/n-triples", "application/trig")
        feeds = tuple(sorted({kind for kind, _ in SHAPES.values()}))
        # What makes a body, and of which kinds it may be.
        self._bodies: tuple[tuple[Callable[[], tuple[str, bytes]], tuple[str, ...]], ...] = (
            (self._object, json_kinds),
            (self._object, json_kinds),
            (self._lines, ("application/x-ndjson",)),
            (self._nested, (*json_kinds, *rdf)),
            (self._bomb, (*feeds, "text/x-opml")),
            (self._bomb, feeds),
            (self._items, ("application/rss+xml",)),
            (self._feed, feeds),
            (self._turtle, rdf),
            (self._opml, ("text/x-opml",)),
            (self._call, ("text/xml",)),
            (self._question, ("application/json",)),
            (self._form, FORMS[:1]),
            (self._multipart, FORMS[1:]),
            (self._junk, KINDS),
        )
        self._questions = sorted(QUESTIONS.values())

    def requests(self, count: int) -> Iterator[Request]:
        for number in range(count):
            # In turn, so that each route gets its share.
            yield self._request(*self._routes[number % len(self._routes)])

    def _request(self, method: str, template: str) -> Request:
        chance = self._random
        path = re.sub(r"\{[^}]+\}", lambda _: self._part(), template)
        if chance.random() < 0.5:
            given = [(chance.choice(self._parameters), self._text()) for _ in range(chance.randint(1, 4))]
            path += "?" + urlencode(given, errors="surrogatepass")[:30_000]
        headers: list[tuple[str, str]] = []
        body = b""
        if method not in ("GET", "HEAD") or chance.random() < 0.05:
            taken = self._taken.get((method, template), ())
            # Most of them are of a kind that the route reads.
            fit = [
                make
                for make, kinds in self._bodies
                if chance.random() < 0.1 or not {*kinds}.isdisjoint(taken)
            ]
            kind, body = chance.choice(fit)() if fit else self._junk()
            if chance.random() < 0.1:
                kind = chance.choice(KINDS)
            if chance.random() < 0.05:
                body = gzip.compress(body)
            headers.append(("Content-Type", kind))
            if "form" in kind:
                headers.append(("Cookie", self._visit.cookie))
        if chance.random() < 0.3:
            headers += [chance.choice(HEADERS) for _ in range(chance.randint(1, 3))]
        if chance.random() < 0.02:
            method = chance.choice(("OPTIONS", "TRACE", "PATCH", "PROPFIND", "PUT", "DELETE", "POST"))
        return Request(method, path, tuple(headers), body, chance.choice(MANNERS), chance.getrandbits(32))

    # What stands in a request

    def _part(self) -> str:
        if self._random.random() < 0.3:
            return self._random.choice(self._known)
        return _quoted(self._text(), safe="%")[:3_000] or "x"

    def _value(self) -> Any:
        return self._random.choice(VALUES)

    def _text(self) -> str:
        value = self._value()
        return value if isinstance(value, str) else str(value)[:400]

    def _object(self) -> tuple[str, bytes]:
        chance = self._random
        given = {name: self._value() for name in chance.sample(self._members, chance.randint(1, 6))}
        body = json.dumps(given if chance.random() < 0.8 else [given] * chance.randint(0, 50)).encode()
        if chance.random() < 0.2:
            body = body[: chance.randint(0, len(body))]
        if chance.random() < 0.1:
            body = body.replace(b"{", b'{"id": 1, "id": 2, ', 1)
        return chance.choice(KINDS[:6]), body

    def _lines(self) -> tuple[str, bytes]:
        lines = [self._object()[1][:2_000] for _ in range(self._random.randint(1, 100))]
        return "application/x-ndjson", b"\n".join(lines)

    def _nested(self) -> tuple[str, bytes]:
        chance = self._random
        if chance.random() < 0.7:
            return chance.choice(KINDS[:6]), NESTED[chance.choice(sorted(NESTED))]
        depth = chance.choice((200, 255, 256, 257, 5_000))
        xml = b"<item>" * depth + b"x" + b"</item>" * depth
        return chance.choice(
            [
                ("application/json", nested_json(depth)),
                ("text/turtle", b"<urn:a> <urn:b> " + b"[ <urn:c> " * depth + b"1" + b" ]" * depth + b" ."),
                ("text/turtle", b"<< " * depth + b"<urn:a> <urn:b> <urn:c>" + b" >>" * depth + b" ."),
                ("application/rss+xml", b"<rss><channel>" + xml + b"</channel></rss>"),
            ]
        )

    def _bomb(self) -> tuple[str, bytes]:
        """Entities within entities: of characters, of elements, of attributes; and those from elsewhere."""
        chance = self._random
        base = chance.choice(("lol", "<item><title>a</title></item>", "<item>", "&#60;entry/>", "a='b' "))
        depth, times = chance.randint(1, 18), chance.randint(1, 10)
        nested = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * times}">' for n in range(1, depth))
        doctype = f'<!DOCTYPE x [<!ENTITY e0 "{base}">{nested}]>'
        if chance.random() < 0.2:
            doctype = chance.choice(
                (PARAMETER, SELF, outside("file:///etc/passwd"), outside("http://127.0.0.1:1/"))
            )
        kind, shape = chance.choice(sorted(SHAPES.values()))
        inside = f"&e{depth - 1};" * chance.choice((1, 10, 200))
        if chance.random() < 0.3:
            document = f"<rss><channel>{inside}</channel></rss>"
        elif chance.random() < 0.2:
            kind, document = "text/x-opml", OPML.format(inside, inside)
        else:
            document = shape.format(inside)
        return kind, (doctype + document).encode()

    def _items(self) -> tuple[str, bytes]:
        count = self._random.choice((1, 100, 3_000, 11_000))
        return "application/rss+xml", b"<rss><channel>" + b"<item><guid>1</guid></item>" * count

    def _feed(self) -> tuple[str, bytes]:
        kind, shape = self._random.choice(sorted(SHAPES.values()))
        return kind, shape.format(_quoted(self._text()[:1_000])).encode()

    def _turtle(self) -> tuple[str, bytes]:
        subject = self._random.choice(
            ("<urn:a>", "_:b", "[]", "<" + "x" * 5_000 + ">", "ex:undeclared", '"literal"')
        )
        triples = f"{subject} <urn:p> {json.dumps(self._text()[:2_000])} .\n" * self._random.choice(
            (1, 10, 500)
        )
        return self._random.choice(
            ("text/turtle", "application/n-triples", "application/trig")
        ), triples.encode("utf-8", "replace")

    def _opml(self) -> tuple[str, bytes]:
        text = _quoted(self._text()[:500])
        return "text/x-opml", OPML.format(text, text).replace(
            "<outline", "<outline " * self._random.choice((1, 1, 500)), 1
        ).encode()

    def _call(self) -> tuple[str, bytes]:
        word = self._random.choice(("subscribe", "unsubscribe", "renew", "publish", "notifications", "none"))
        kind = self._random.choice(
            ("string", "int", "double", "base64", "dateTime.iso8601", "boolean", "nil", "array")
        )
        return "text/xml", CALL.format(word, f"<{kind}>{_quoted(self._text()[:2_000])}</{kind}>").encode()

    def _form(self) -> tuple[str, bytes]:
        """Half of them with the hidden field that they need."""
        chance = self._random
        kind, document = chance.choice(self._bodies[:10])[0]()
        fields = {
            name: self._text()
            for name in chance.sample(("url", "text", "title", "ticket", "token", "next"), 3)
        }
        fields |= {"kind": kind, "body": document.decode("latin-1")[:100_000]}
        fields["csrf"] = self._visit.field if chance.random() < 0.5 else self._text()
        body = urlencode(fields, errors="surrogatepass").encode()
        hostile = (b"%" * 200_000, b"&" * 200_000, b"a=%ff%", body + b"&" + body)
        return "application/x-www-form-urlencoded", chance.choice((*[body] * 6, *hostile))

    def _multipart(self) -> tuple[str, bytes]:
        chance = self._random
        part = b'--b\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
        file = part % (b"file", b'; filename="a"', chance.choice((self._opml, self._bomb))()[1])
        parts = part % (b"csrf", b"", self._visit.field.encode()) + file * chance.choice((1, 1, 100))
        return "multipart/form-data; boundary=b", parts + chance.choice((b"--b--\r\n", b""))

    def _question(self) -> tuple[str, bytes]:
        return "application/json", json.dumps(
            {"text": self._random.choice(self._questions)[: 64 << 10]}
        ).encode()

    def _junk(self) -> tuple[str, bytes]:
        junk = self._random.randbytes(self._random.choice((0, 1, 100, 50_000)))
        return self._random.choice(KINDS), self._random.choice((junk, base64.b64encode(junk)))


def _quoted(text: str, safe: str = "/") -> str:
    return quote(text, safe, errors="surrogatepass")


def _media_types(route: tuple[str, str], description: dict[str, Any]) -> tuple[str, ...]:
    """Those that a route reads; of the page's, which are not described, those of forms."""
    method, path = route
    if method in ("GET", "HEAD"):
        return ()
    operation = description["paths"].get(path, {}).get(method.lower())
    if operation is None:
        return FORMS
    return tuple(operation.get("requestBody", {}).get("content", ()))
