"""Texts that would be taken for something else: SQL, templates, markup, lines of a header or of the log. Whatever field
they come in by, they stay texts, and wherever they are shown they do nothing."""

from __future__ import annotations

import html
import io
import json
import logging
import re
import socket
import time
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.service.conftest import Served
from tests.service.hostile.test_cross_site import visit
from tidings.service.model import Notice, NotificationKind, Role
from tidings.service.telemetry import logs

HTML = {"Accept": "text/html"}
SCRIPT = "<script>alert(1)</script>"
PRODUCT = str(7919 * 7907)  # nobody writes it; a template that runs does
TEXTS = [
    "{{7919*7907}}",
    "{% for x in ().__class__.__base__.__subclasses__() %}{{x}}{% endfor %}",
    "${7919*7907} #{7919*7907} <%= 7919*7907 %>",
    "' OR 1=1 --",
    "'; DROP TABLE subscriptions; --",
    "%s %(x)s %n {0} {x} :name ? $1",
    "%' ESCAPE '\\",
    "a\0b",
    "half \ud83d",
    "\u202eright to left\u2066",
    "line\r\nSet-Cookie: a=b",
    SCRIPT,
    '"><img src=x onerror=alert(1)>',
    "'onmouseover='alert(1)",
    "]]><script>alert(1)</script><![CDATA[",
    "--><script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<svg/onload=alert(1)>",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "x" * 1_000_000,
]


def strings() -> list[tuple[str, str, Any]]:
    """(method, path, body) with TEXT in each field of each route."""
    return [
        ("POST", "/api/subscriptions", {"text": "TEXT"}),
        ("POST", "/api/subscriptions", {"text": "WHERE a = 'QUOTED'"}),
        ("POST", "/api/subscriptions", {"text": "WHERE a = 1", "title": "TEXT"}),
        ("POST", "/api/subscriptions", {"text": "WHERE a = 1", "valid_for": "TEXT"}),
        ("POST", "/api/subscriptions", {"text": "WHERE a = 1", "webhook": "TEXT"}),
        ("POST", "/api/subscriptions", {"text": "WHERE a = 1", "webhook": "https://hook.invalid/TEXT"}),
        ("POST", "/api/subscriptions", {"text": "WHERE a = 1", "TEXT": "TEXT"}),
        ("POST", "/api/channels", {"kind": "TEXT", "address": "TEXT"}),
        ("POST", "/api/channels", {"kind": "webhook", "address": "https://hook.invalid/TEXT", "title": "TEXT"}),
        ("POST", "/api/channels", {"kind": "webhook", "address": "https://hook.invalid/", "schedule": {"TEXT": "TEXT"}}),
        ("POST", "/api/channels", {"kind": "webhook", "address": "https://hook.invalid/", "schedule": {"zone": "TEXT"}}),
        ("POST", "/api/channels", {"kind": "webhook", "address": "https://hook.invalid/", "schedule": {"muted_until": "TEXT"}}),
        ("POST", "/api/channels", {"kind": "webhook", "address": "https://hook.invalid/", "subscriptions": ["TEXT"]}),
        ("POST", "/api/check", {"text": "TEXT"}),
        ("POST", "/api/try", {"text": "WHERE a = 'QUOTED'"}),
        ("POST", "/api/sources", {"url": "TEXT"}),
        ("POST", "/api/sources", {"url": "http://source.invalid/TEXT", "title": "TEXT"}),
        ("POST", "/api/tokens", {"name": "TEXT", "role": "publisher"}),
        ("POST", "/api/tokens", {"name": "n", "role": "TEXT"}),
        ("POST", "/api/events", {"source": "s", "id": "TEXT"}),
        ("POST", "/api/events", {"source": "TEXT", "type": "TEXT", "time": "TEXT"}),
        ("POST", "/api/events", {"source": "s", "topic": "TEXT", "TEXT": {"TEXT": ["TEXT"]}}),
        ("POST", "/api/events", {"specversion": "1.0", "id": "i", "source": "s", "type": "t",
                                 "datacontenttype": "TEXT", "data_base64": "TEXT"}),
        ("POST", "/api/subscriptions/{id}/renew", {"ticket": "TEXT"}),
        ("PUT", "/api/subscriptions/{id}/webhook", {"url": "TEXT", "ticket": "TICKET"}),
    ]  # fmt: skip


def put(value: Any, text: str) -> Any:
    if isinstance(value, dict):
        return {put(name, text): put(inner, text) for name, inner in value.items()}
    if isinstance(value, list):
        return [put(one, text) for one in value]
    return value.replace("QUOTED", text.replace("'", "''")).replace("TEXT", text)


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_every_field_of_every_route(served: Served, number: int) -> None:
    text = TEXTS[number]
    keep = served.subscribe(title="stays")
    for method, path, body in strings():
        content = json.dumps(put(body, text)).encode()
        content = content.replace(b"TICKET", keep["ticket"].encode())
        headers = {"Content-Type": "application/json"}
        answer = served.http.request(method, path.format(id=keep["id"]), content=content, headers=headers)
        said = (path, body, answer.text[:300])
        assert answer.status_code < 500, said
        assert answer.headers["content-type"] in ("application/json", "application/problem+json"), said
        assert "set-cookie" not in answer.headers, said
        answer.json()
    parameter = text.encode("utf-8", "replace").decode()[:3_000]
    for path, name in (
        ("/api/subscriptions", "search"), ("/api/subscriptions", "cursor"), ("/api/subscriptions", "state"),
        ("/api/complete", "text"), ("/api/taxonomy", "class"), ("/api/taxonomy", "search"), ("/api/stream", "subscription"),
        (f"/api/subscriptions/{keep['id']}/notifications", "cursor"), ("/", "search"), ("/", "after"), ("/", "state"),
        ("/", "part"), ("/", "done"), ("/taxonomy", "search"), ("/taxonomy", "class"), ("/subscriptions/new", "text"),
        ("/login", "next"), ("/status", "part"),
    ):  # fmt: skip
        accept = "application/json" if path.startswith("/api/") else "text/html"
        with served.http.stream("GET", path, params={name: parameter}, headers={"Accept": accept}) as answer:
            assert answer.status_code < 500, (path, name)
            if not answer.headers["content-type"].startswith("text/event-stream"):
                answer.read()
                if answer.headers["content-type"].startswith("text/html"):
                    harmless(answer.text)
                    assert PRODUCT not in answer.text
    for path in ("/api/subscriptions/{}", "/feeds/{}.rss", "/subscriptions/{}", "/{}", "/static/{}",
                 "/api/subscriptions/" + keep["id"] + "/notifications/{}/why"):  # fmt: skip
        answer = served.http.get(
            path.format(re.sub(r"[^\w]", lambda c: "".join(f"%{b:02X}" for b in c[0].encode()), parameter)),
            headers=HTML,
        )
        assert answer.status_code in (404, 307, 405, 422), path
    for name in ("Last-Event-ID", "Tidings-Ticket", "If-None-Match", "If-Modified-Since", "X-Request-ID", "Accept", "Cookie", "Accept-Language"):  # fmt: skip
        value = re.sub(r"[\r\n\0]", " ", parameter).encode("latin-1", "replace")
        feed = keep["feeds"]["rss2"]
        assert served.http.get(feed, headers={name: value}).status_code in (200, 304)
        answer = served.http.get("/", headers={**HTML, name: value})
        assert answer.status_code == 200
        harmless(answer.text)
    assert served.http.get(f"/api/subscriptions/{keep['id']}").json()["title"] == "stays"


# Wherever something is shown


class Page(HTMLParser):
    """What a browser would make of it: elements that run or load, attributes that do."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: (value or "").strip().lower() for name, value in attributes}
        if tag in ("iframe", "object", "embed", "base", "applet", "frame") or (
            tag == "meta" and "http-equiv" in given
        ):
            self.found.append(tag)
        if tag == "script" and not given.get("src", "").startswith("/static/"):
            self.found.append(tag)
        for name, value in given.items():
            if name.startswith("on") or (
                name in ("style", "srcdoc", "formaction")
                and not value.startswith(("/subscriptions/", "/sources/", "/backtests"))
            ):
                self.found.append(f"{tag} {name}")
            plain = re.sub(r"[\s\x00-\x20]", "", value)
            if name in ("href", "src", "action", "xlink:href") and re.match(
                r"(javascript|data|vbscript|file|blob):", plain
            ):
                self.found.append(f"{tag} {name}={value[:40]}")


def harmless(text: str) -> None:
    page = Page()
    page.feed(text)
    assert page.found == []


EVIL_HTML = (
    SCRIPT
    + "<img src=x onerror=alert(1)><svg onload=alert(1)><a href='javascript:alert(1)'>x</a><a href='data:text/html,x'>d</a>"
    + "<iframe src='//evil.example'></iframe><style>*{}</style><p style='position:fixed'>p</p><form action=//e.example><input></form>"
    + "<math><mtext></p><img src=x onerror=alert(1)></math><a href='java\tscript:alert(1)'>t</a><base href=//e.example>"
    + "<meta http-equiv=refresh content='0;url=//e.example'><b>kept</b>"
)


@pytest.fixture(scope="module")
def shown(served: Served) -> dict[str, Any]:
    """A subscription that was told hostile things of every kind, with hostile names."""
    http = served.http
    text = f"SELECT ?t WHERE (?i, rss:title, ?t) AND NOT ?t = '{SCRIPT}x'"
    graphs = served.subscribe(text, title=SCRIPT, public=True)
    plain = served.subscribe(f"WHERE topic = 'evil' AND NOT a = '{SCRIPT}'", title="{{7919*7907}}\u202e<b>")
    item = (
        f"<guid>gNUMBER</guid><title>{html.escape(SCRIPT)} NUMBER</title><link>javascript:alert(1)</link>"
        f"<description>{html.escape(EVIL_HTML)}</description><author>{html.escape(SCRIPT)}</author>"
        f"<category>{html.escape(SCRIPT)}</category>"
    )
    items = "".join(f"<item>{item.replace('NUMBER', str(n))}</item>" for n in range(2))
    rss = f"<rss version='2.0'><channel><title>{html.escape(SCRIPT)}</title><link>http://c.example/</link>{items}</channel></rss>"
    assert (
        http.post("/api/events", content=rss, headers={"Content-Type": "application/rss+xml"}).status_code
        == 202
    )
    served.publish(
        {"source": SCRIPT, "id": SCRIPT, "type": SCRIPT, "topic": "evil", "title": SCRIPT, "summary": EVIL_HTML,
         "url": "javascript:alert(1)", "author": SCRIPT, "tags": [SCRIPT], SCRIPT: {SCRIPT: SCRIPT}},
        {"source": "//evil.example", "id": "2", "topic": "evil", "link": "data:text/html,x", "text": EVIL_HTML},
    )  # fmt: skip
    service = served.service
    service.mailbox.notify(
        [Notice(plain["id"], NotificationKind.MISSED, f"missed {SCRIPT}", time.time(), SCRIPT)]
    )
    http.post("/api/sources", json={"url": "http://source.invalid/<script>", "title": SCRIPT})
    service.access.grant(SCRIPT, Role.ADMIN)
    return {
        "graphs": (graphs, served.notifications(graphs["id"], 2)),
        "plain": (plain, served.notifications(plain["id"], 3)),
    }


def test_pages_show_it_and_nothing_runs(served: Served, shown: dict[str, Any]) -> None:
    pages = [
        "/",
        "/sources",
        "/status",
        "/taxonomy",
        "/subscriptions/new",
        "/?search=%3Cscript%3E",
        "/?part=news&after=0",
    ]
    for made, notifications in shown.values():
        pages += [f"/subscriptions/{made['id']}", f"/subscriptions/{made['id']}?part=news&after=0"]
        pages += [
            f"/subscriptions/{made['id']}/notifications/{one['id']}" for one in notifications if one["event"]
        ]
    for path in pages:
        answer = served.http.get(path, headers=HTML)
        assert answer.status_code == 200, path
        harmless(answer.text)
        assert SCRIPT not in answer.text
        assert PRODUCT not in answer.text
    client, token = visit(served)
    form = {
        "csrf": token,
        "text": f"WHERE NOT a = '{SCRIPT}'",
        "title": SCRIPT,
        "webhook": SCRIPT,
        "valid_for": SCRIPT,
    }
    for path, more in (
        ("/subscriptions/new", {}),
        ("/subscriptions/new?part=trial", {}),
        ("/subscriptions", {}),
        ("/publish", {"kind": SCRIPT, "body": SCRIPT}),
        ("/publish", {"kind": "application/json", "body": SCRIPT}),
        ("/sources", {"url": SCRIPT}),
        ("/sources/remove", {"url": SCRIPT}),
        (f"/subscriptions/{shown['plain'][0]['id']}/webhook", {"url": SCRIPT, "ticket": SCRIPT}),
        (f"/subscriptions/{shown['plain'][0]['id']}/pause", {"ticket": SCRIPT}),
        ("/login", {"token": SCRIPT, "next": SCRIPT}),
    ):
        answer = client.post(path, data={**form, **more})
        harmless(answer.text)
        assert SCRIPT not in answer.text, path
    opml = f"<opml version='2.0'><body><outline xmlUrl='javascript:alert(1)' title='{html.escape(SCRIPT)}'/></body></opml>"
    answer = client.post("/sources/opml", data={"csrf": token}, files={"file": (SCRIPT, opml.encode())})
    harmless(answer.text)


@pytest.mark.parametrize("format", ["rdf", "rss", "atom", "json"])
def test_feeds_carry_nothing_that_runs(served: Served, shown: dict[str, Any], format: str) -> None:
    for made, _ in shown.values():
        address = {"rdf": "rss1", "rss": "rss2", "atom": "atom", "json": "json_feed"}[format]
        answer = served.http.get(made["feeds"][address])
        assert answer.status_code == 200
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "html" not in answer.headers["content-type"]
        if format == "json":
            items = answer.json()["items"]
            htmls = [one.get("content_html", "") for one in items]
            links = [one.get(name) or "" for one in items for name in ("url", "external_url")]
        else:
            tree = ElementTree.fromstring(answer.content)
            texts = [(one.tag.rpartition("}")[2], one.text or "", one) for one in tree.iter()]
            assert "script" not in {tag for tag, _, _ in texts}
            # What a reader takes for HTML; titles and names are plain texts in RSS 1.0 and where Atom says so.
            htmls = [
                text
                for tag, text, one in texts
                if tag in ("description", "encoded", "content", "summary")
                and one.get("type", "html") == "html"
            ]
            links = [text for tag, text, _ in texts if tag in ("link", "guid")]
            links += [
                value
                for _, _, one in texts
                for name, value in one.attrib.items()
                if name.endswith(("href", "url"))
            ]
        assert len(htmls) >= 2
        for one in htmls:
            harmless(one)
        assert not [one for one in links if re.match(r"\s*(javascript|data):", one)]


def test_json_is_json_and_its_links_are_of_the_web(served: Served, shown: dict[str, Any]) -> None:
    for made, notifications in shown.values():
        for one in notifications:
            link = (one["event"] or {}).get("link")
            assert link is None or link.startswith(("http://", "https://"))
            harmless((one["event"] or {}).get("summary", ""))
            why = served.http.get(f"/api/subscriptions/{made['id']}/notifications/{one['id']}/why")
            assert why.headers["content-type"].partition(";")[0] in (
                "application/json",
                "application/problem+json",
            )


# Headers and lines


@pytest.mark.parametrize("name", ["id", "source", "type", "subject", "time"])
@pytest.mark.parametrize(
    "value", ["a%0d%0aSet-Cookie:%20b", "a%0Ab", "a%00b", "%ff", "%F0%9F", '"a\\"b', "a\tb"]
)
def test_headers_of_an_event(served: Served, name: str, value: str) -> None:
    headers = {
        "ce-specversion": "1.0",
        "ce-id": "1",
        "ce-source": "s",
        "ce-type": "t",
        "Content-Type": "application/json",
    }
    given = {**{key: item.encode() for key, item in headers.items()}, f"ce-{name}": value.encode("latin-1")}
    answer = served.http.post("/api/events", content=b'{"topic": "lines"}', headers=given)
    assert answer.status_code in (202, 400)
    assert "set-cookie" not in answer.headers
    if name != "subject" and "%0" in value:
        assert answer.status_code == 400
    for id in answer.json().get("ids", ()):
        assert "\n" not in id


def test_lines_of_a_request_are_its_own(served: Served) -> None:
    """Line ends where none may be are refused by the server, before any of this code."""
    port = served.service.settings.port
    for head in (
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nce-id: a\rb\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nce-id: a\x00b\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
        b"GET /he\nalth HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"POST /api/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
            raw.sendall(head)
            assert raw.recv(65536).startswith(b"HTTP/1.1 400")


def test_webhooks_and_sources_with_line_ends(served: Served) -> None:
    made = served.subscribe()
    for url in (
        "https://a.invalid/\r\nX: y",
        "https://a.invalid/\nx",
        "https://a\r\n.invalid/",
        "http://a.invalid/\x00",
    ):
        body = {"url": url, "ticket": made["ticket"]}
        assert served.http.put(f"/api/subscriptions/{made['id']}/webhook", json=body).status_code == 422
        assert served.http.post("/api/sources", json={"url": url}).status_code == 422
        assert (
            served.http.post("/api/subscriptions", json={"text": "WHERE a = 1", "webhook": url}).status_code
            == 422
        )
    assert served.http.post("/api/sources", json={"url": "http://me:word@a.invalid/"}).status_code == 422


def test_the_log_has_no_line_and_no_secret_of_a_request(running: Any) -> None:
    output = io.StringIO()
    with running(log_format="json") as served:
        try:
            logs.configure("json", stream=output)
            made = served.subscribe(webhook="https://hook.invalid/")
            served.http.get(made["feeds"]["atom"])
            served.http.get("/feeds/" + "a" * 30 + "%0a%7b%22level%22:1%7d.rss")
            served.http.get("/x%0d%0aforged%1b[2J")
            served.http.post(
                f"/api/subscriptions/{made['id']}/pause", headers={"Tidings-Ticket": made["ticket"]}
            )
            served.http.get("/api/status", headers={"Authorization": "Bearer tid_abcdefghijklmnop"})
            served.http.get(f"/api/subscriptions?search={made['ticket']}")
        finally:
            logging.getLogger().handlers[:] = [
                one for one in logging.getLogger().handlers if getattr(one, "stream", None) is not output
            ]
    lines = output.getvalue().splitlines()
    assert len(lines) >= 6
    assert all("message" in json.loads(line) for line in lines)
    secret = made["feeds"]["atom"].rpartition("/")[2].partition(".")[0]
    for one in (made["ticket"], secret, made["webhook_secret"], "tid_abcdef", "\x1b"):
        assert one not in output.getvalue()
