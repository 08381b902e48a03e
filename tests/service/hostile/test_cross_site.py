"""What a page of another site could do by way of somebody's browser: nothing, on any route; and what our own pages
give away to it: nothing."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from tests.service.conftest import Running, Served
from tests.service.hostile.routes import filled, routes_of
from tidings.service.model import Role

HTML = {"Accept": "text/html"}
WORDS = ("pause", "resume", "cancel", "webhook", "webhook-test")  # of /subscriptions/{id}/{word}
SITES: list[dict[str, str]] = [
    {"Origin": "https://evil.example"},
    {"Origin": "http://evil.example:8750"},
    {"Origin": "http://127.0.0.1"},  # another port is another site
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "http://localhost.evil.example"},
    {"Origin": "null"},
    {"Origin": "http://["},
    {"Origin": "://"},
    {"Origin": ""},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "null"},
]


def visit(served: Served, path: str = "/login", **headers: str) -> tuple[httpx.Client, str]:
    """A browser that has been on one of our pages, and the token of its form."""
    client = httpx.Client(base_url=served.url, headers={**HTML, **headers}, timeout=20)
    found = re.search(r'name="csrf" value="([0-9a-f]+)"', client.get(path).text)
    assert found is not None
    return client, found[1]


def test_no_route_is_changed_from_elsewhere(served: Served) -> None:
    for method, path in routes_of(served.service):
        if method in ("GET", "HEAD"):
            continue
        for site in SITES:
            answer = served.http.request(method, filled(path, word="pause"), headers=site)
            assert answer.status_code == 403, (method, path, site)
            assert answer.json()["type"] == "/problems/cross-site"
            assert "content-security-policy" in answer.headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "[::2]", "a b"])
def test_no_route_answers_to_another_name(served: Served, host: str) -> None:
    """A name that was bound anew to this address."""
    for method, path in routes_of(served.service):
        answer = served.http.request(
            method,
            filled(path, format="rss"),
            headers={"Host": host},
        )
        assert answer.status_code in (400, 421), (method, path)


def forms_of(served: Served, id: str) -> set[str]:
    """The addresses that take a form, which are those outside the API, XML-RPC and WebSub; and but for the click that ends a
    channel, whose address is a secret."""
    return {
        filled(path, id=id, word=word)
        for method, path in routes_of(served.service)
        if method == "POST" and not path.startswith(("/api/", "/xmlrpc", "/websub", "/channels/unsubscribe/"))
        for word in WORDS
    }


def test_forms_without_their_token_and_with_anothers(served: Served) -> None:
    id = served.subscribe()["id"]
    forms = forms_of(served, id)
    assert len(forms) > 20
    for path in sorted(forms):
        refuse(served, path)
    assert served.http.get(f"/api/subscriptions/{id}").json()["state"] == "active"


def refuse(served: Served, path: str) -> None:
    mine, token = visit(served)
    other, others = visit(served)
    stripped = httpx.Client(base_url=served.url, headers=HTML)
    tried: list[tuple[httpx.Client, Any]] = [
        (mine, {}),
        (mine, {"csrf": ""}),
        (mine, {"csrf": "0" * 64}),
        (mine, {"csrf": others}),
        (other, {"csrf": token}),
        (stripped, {"csrf": token}),
        (mine, {"csrf": token[:-1] + "\ud83d"}),
    ]
    for client, form in tried:
        encoded = "&".join(f"{name}={value}" for name, value in form.items()).encode("utf-8", "replace")
        answer = client.post(
            path, content=encoded, headers={"Content-Type": "application/x-www-form-urlencoded"}
        )
        assert answer.status_code == 403, (path, form)
    answer = mine.post(path, content=f"csrf={token}", headers={"Content-Type": "text/plain"})
    assert answer.status_code in (400, 403, 415), path


@pytest.mark.parametrize(
    "path",
    ["/", "/login", "/subscriptions/new", "/sources", "/taxonomy", "/status", "/nothing", "/subscriptions/none",
     "/subscriptions/new?text=" + "x" * 50_000, "/taxonomy?class=none", "/?after=%00", "/static/none.js"],
)  # fmt: skip
def test_every_page_and_every_error_is_framed_by_nobody_and_runs_no_script_but_ours(
    served: Served, path: str
) -> None:
    answer = served.http.get(path, headers=HTML)
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in answer.headers
    scripts = re.findall(r"<script[^>]*>", answer.text)
    assert all(re.search(r' src="/static/', script) for script in scripts)
    assert not re.search(r"<[^>]+\s(?:on\w+|style)\s*=", answer.text)


def test_who_logs_in_gets_a_session_of_their_own(guarded: Served) -> None:
    """Whatever cookies were there before (session fixation), and nowhere but here."""
    _, secret = guarded.service.access.grant("me", Role.SUBSCRIBER)
    client, token = visit(guarded)
    before = client.cookies["tidings_visit"]
    wrong = client.post("/login", data={"csrf": token, "token": "tid_wrong"})
    assert wrong.status_code == 401
    assert "tidings_session" not in client.cookies
    answer = client.post("/login", data={"csrf": token, "token": secret, "next": "/status"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/status")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    session = client.cookies["tidings_session"]
    assert before not in session
    assert secret not in session
    # The token of the form before belongs to the visit before.
    assert client.post("/logout", data={"csrf": token}).status_code == 403
    assert client.get("/api/status").status_code == 200
    client.cookies.set("tidings_session", session[:-1] + ("0" if session[-1] != "0" else "1"))
    assert client.get("/api/status").status_code == 401


def test_who_logs_out_is_out_wherever_the_cookie_was_copied_to(guarded: Served) -> None:
    _, secret = guarded.service.access.grant("leaver", Role.SUBSCRIBER)
    client, token = visit(guarded)
    client.post("/login", data={"csrf": token, "token": secret})
    session = client.cookies["tidings_session"]
    thief = {"Cookie": f"tidings_session={session}"}
    assert guarded.http.get("/api/status", headers=thief).status_code == 200
    form = client.get("/", headers=HTML).text
    csrf = re.search(r'name="csrf" value="([^"]+)"', form)
    assert csrf is not None
    assert client.post("/logout", data={"csrf": csrf[1]}).status_code == 303
    assert "tidings_session" not in client.cookies
    assert guarded.http.get("/api/status", headers=thief).status_code == 401


@pytest.mark.parametrize(
    "wanted",
    ["//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example", "evil.example",
     "/%0d%0aSet-Cookie:a=b\r\nX: y", "javascript:alert(1)", "/login?next=/login", " //evil.example", "/\x00", "///e.example"],
)  # fmt: skip
def test_a_login_leads_nowhere_else(guarded: Served, wanted: str) -> None:
    _, secret = guarded.service.access.grant("me", Role.SUBSCRIBER)
    client, token = visit(guarded)
    answer = client.post("/login", data={"csrf": token, "token": secret, "next": wanted})
    assert answer.status_code == 303
    target = answer.headers["location"]
    assert httpx.URL(guarded.url).join(target).host == "127.0.0.1"
    assert not target.startswith(("//", "/\\"))
    assert "\n" not in target
    assert "x" not in {name.lower() for name in answer.headers}
    shown = guarded.http.get("/login", params={"next": wanted}, headers=HTML)
    assert f'value="{wanted}"' not in shown.text or wanted == "/"


def test_cookies_over_https_are_for_https_alone(running: Any) -> None:
    service: Running = running(url="https://tidings.example")
    with service as served:
        answer = served.http.get("/login", headers=HTML)
        assert "secure" in answer.headers["set-cookie"].lower()
        assert "max-age" in answer.headers["strict-transport-security"]


@pytest.mark.parametrize(
    "path",
    ["/static/../service.py", "/static/%2e%2e/rendering.py", "/static/..%2f..%2fguards.py", "/static//etc/passwd",
     "/static/%2fetc%2fpasswd", "/static/....//....//middleware.py", "/static/..%5c..%5cmiddleware.py", "/static/page.js%00.html",
     "/feeds/..%2f..%2fkey.rss", "/feeds/../key.rss", "/feeds/%2e%2e%2fkey.json", "/static/", "/static/" + "a" * 5_000],
)  # fmt: skip
def test_no_path_leads_out_of_its_folder(served: Served, path: str) -> None:
    port = served.service.settings.port
    raw = httpx.get(
        httpx.URL(f"http://127.0.0.1:{port}").copy_with(raw_path=path.encode()), headers={"Accept": "*/*"}
    )
    assert raw.status_code in (400, 404, 405), raw.text[:200]
    assert "root:" not in raw.text
    assert "import " not in raw.text
