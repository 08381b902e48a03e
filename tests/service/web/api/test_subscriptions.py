"""Subscriptions over HTTP: their life, who may change them, and what is said about wrong ones."""

from __future__ import annotations

import pytest

from tests.service.conftest import Served

PROBLEM = "application/problem+json"


def ticket(of: dict) -> dict[str, str]:
    return {"Tidings-Ticket": of["ticket"]}


def test_begun_found_and_listed(served: Served) -> None:
    answer = served.http.post(
        "/api/subscriptions", json={"text": "WHERE topic = 'sport'", "title": "Sport", "valid_for": 3600}
    )
    one = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{served.url}/api/subscriptions/{one['id']}"
    assert one["state"] == "active"
    assert one["ticket"].startswith("tkt_")
    assert one["feeds"]["atom"].startswith(f"{served.url}/feeds/")
    assert one["id"] not in one["feeds"]["atom"]
    assert answer.headers["cache-control"] == "no-store"
    found = served.http.get(f"/api/subscriptions/{one['id']}").json()
    assert {name: one[name] for name in found} == found
    assert "ticket" not in found
    listed = served.http.get("/api/subscriptions", params={"search": "sport", "state": "active"}).json()
    assert one["id"] in {item["id"] for item in listed["items"]}


def test_pages_lead_to_each_other(served: Served) -> None:
    wanted = {served.subscribe(f"WHERE page = {n}", title=f"of the pages {n}")["id"] for n in range(5)}
    found: list[str] = []
    url: str | None = "/api/subscriptions?search=of+the+pages&limit=2"
    while url is not None:
        answer = served.http.get(url)
        assert len(answer.json()["items"]) <= 2
        found += [item["id"] for item in answer.json()["items"]]
        url = answer.links["next"]["url"] if "next" in answer.links else None
        assert (url is None) == (answer.json()["next"] is None)
    assert len(found) == 5
    assert set(found) == wanted


def test_never_ends_or_ends_as_asked(served: Served) -> None:
    assert served.subscribe(valid_for="never")["valid_until"] is None
    assert served.subscribe(valid_for=60)["valid_until"] is not None


def test_renewed_paused_resumed_cancelled(served: Served) -> None:
    one = served.subscribe(valid_for=60)
    path = f"/api/subscriptions/{one['id']}"
    renewed = served.http.post(f"{path}/renew", json={"valid_for": 7200}, headers=ticket(one))
    assert renewed.json()["valid_until"] > one["valid_until"]
    assert served.http.post(f"{path}/renew", headers=ticket(one)).status_code == 200  # no body at all
    assert served.http.post(f"{path}/pause", json={"ticket": one["ticket"]}).json()["state"] == "paused"
    assert served.http.post(f"{path}/resume", headers=ticket(one)).json()["state"] == "active"
    assert served.http.delete(path, headers=ticket(one)).json()["state"] == "cancelled"
    gone = served.http.post(f"{path}/renew", headers=ticket(one))
    assert (gone.status_code, gone.headers["content-type"]) == (410, PROBLEM)


@pytest.mark.parametrize("given", [None, "tkt_wrong", "x" * 200])
@pytest.mark.parametrize(
    ("method", "what"), [("POST", "/renew"), ("POST", "/pause"), ("DELETE", ""), ("DELETE", "/webhook")]
)
def test_without_its_ticket_nothing_changes(
    served: Served, given: str | None, method: str, what: str
) -> None:
    one = served.subscribe()
    headers = {} if given is None else {"Tidings-Ticket": given}
    answer = served.http.request(method, f"/api/subscriptions/{one['id']}{what}", headers=headers)
    assert answer.status_code == 403
    assert answer.json()["type"] == "/problems/forbidden"
    assert served.http.get(f"/api/subscriptions/{one['id']}").json()["state"] == "active"


def test_the_ticket_of_another_is_no_ticket(served: Served) -> None:
    one, other = served.subscribe(), served.subscribe()
    assert served.http.delete(f"/api/subscriptions/{one['id']}", headers=ticket(other)).status_code == 403


@pytest.mark.parametrize(
    "id",
    [
        "snone",
        "s" + "a" * 20,
        "%00",
        "%ff%fe",
        "..%2f..%2fetc",
        "'; DROP TABLE subscriptions;--",
        "{{7*7}}",
        "x" * 500,
    ],
)
def test_unknown_ids(served: Served, id: str) -> None:
    for method, what in (
        ("GET", ""),
        ("POST", "/renew"),
        ("DELETE", ""),
        ("GET", "/notifications"),
        ("GET", "/stream"),
    ):
        answer = served.http.request(method, f"/api/subscriptions/{id}{what}")
        assert answer.status_code == 404, (method, what, answer.text)
        assert answer.headers["content-type"] == PROBLEM


def test_a_wrong_text_has_its_place(served: Served) -> None:
    answer = served.http.post("/api/subscriptions", json={"text": "WHERE topic ="})
    problem = answer.json()
    assert answer.status_code == 422
    assert problem["type"] == "/problems/subscription"
    assert problem["line"] == 1
    assert problem["column"] > 1
    assert problem["instance"] == "/api/subscriptions"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": ""},
        {"text": 5},
        {"text": None},
        {"text": "WHERE a = 1", "valid_for": 0},
        {"text": "WHERE a = 1", "valid_for": -1},
        {"text": "WHERE a = 1", "valid_for": 1e300},
        {"text": "WHERE a = 1", "valid_for": "tomorrow"},
        {"text": "WHERE a = 1", "valid_for": True},
        {"text": "WHERE a = 1", "title": "x" * 1_000},
        {"text": "WHERE a = 1", "title": "a\0b"},
        {"text": "WHERE a = 'a\0b'"},
        {"text": "WHERE a = 1", "titel": "unknown member"},
        {"text": "WHERE a = 1", "public": "perhaps"},
        {"text": "WHERE a = 1", "webhook": "ftp://example.org"},
        {"text": "WHERE a = 1", "webhook": "http://127.0.0.1/hook"},
        {"text": "WHERE a = 1", "webhook": "http://169.254.169.254/latest"},
        {"text": "WHERE a = " + "(" * 5_000 + "1"},
        [],
        "text",
        None,
        5,
    ],
)
def test_what_cannot_be_accepted_is_told(served: Served, body: object) -> None:
    answer = served.http.post("/api/subscriptions", json=body)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == PROBLEM
    assert len(answer.json()["detail"]) > 10


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"", 422),
        (b"\xff\xfe\x00", 400),
        (b'{"text": "\xff"}', 400),
        (b'{"text": "WHERE a = 1", "valid_for": NaN}', 422),
        (b'{"text": "WHERE a = 1", "valid_for": ' + b"9" * 5_000 + b"}", 400),
        (b'{"text": "\\ud800"}', 422),
        (b"[" * 100_000, 400),
        (b'{"text":' * 50_000, 400),
    ],
)
def test_bodies_that_are_no_json(served: Served, body: bytes, status: int) -> None:
    answer = served.http.post(
        "/api/subscriptions", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == PROBLEM


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/json", "x", ""]
)
def test_only_json_is_json(served: Served, kind: str) -> None:
    answer = served.http.post(
        "/api/subscriptions", content=b'{"text": "WHERE a = 1"}', headers={"content-type": kind}
    )
    assert answer.status_code == 415


def test_a_body_over_the_limit(served: Served) -> None:
    def pieces():
        for _ in range(20):
            yield b" " * (1 << 20)

    limit = served.service.settings.max_body
    for content in (b"x" * (limit + 1), pieces()):
        try:
            answer = served.http.post(
                "/api/events", content=content, headers={"content-type": "application/json"}
            )
        except OSError:
            continue
        assert answer.status_code == 413


def test_methods_that_are_not_taken(served: Served) -> None:
    answer = served.http.put("/api/subscriptions", json={})
    assert answer.status_code == 405
    assert "GET" in answer.headers["allow"]
    assert answer.headers["content-type"] == PROBLEM
    assert served.http.get("/api/nothing").json()["type"] == "/problems/not-found"


def test_text_is_kept_as_it_is_and_harms_nobody(served: Served) -> None:
    nasty = "<script>alert(1)</script> {{ 7 * 7 }} '; DROP TABLE subscriptions; --"
    one = served.subscribe(title=nasty)
    assert served.http.get(f"/api/subscriptions/{one['id']}").json()["title"] == nasty
    assert served.http.get("/api/subscriptions", params={"search": nasty}).json()["items"]
    assert served.http.get("/api/subscriptions", params={"search": "%_\\"}).status_code == 200
    assert served.http.get("/api/subscriptions?search=%00%ff").status_code == 200


@pytest.mark.parametrize(
    "params", [{"limit": 0}, {"limit": 10**9}, {"limit": "x"}, {"cursor": "a b"}, {"state": "odd"}]
)
def test_wrong_parameters(served: Served, params: dict) -> None:
    answer = served.http.get("/api/subscriptions", params=params)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == PROBLEM


def test_headers_cannot_be_injected(served: Served) -> None:
    answer = served.http.get("/api/subscriptions", params={"search": "a\r\nSet-Cookie: a=b", "limit": 1})
    assert "set-cookie" not in answer.headers


def test_with_a_webhook(running) -> None:
    with running(allowed=("127.0.0.0/8",)) as served:
        one = served.subscribe(webhook="http://127.0.0.1:9/hook")
        assert one["webhook_secret"].startswith("whsec_")
        path = f"/api/subscriptions/{one['id']}"
        found = served.http.get(path).json()
        assert found["webhook"]["url"] == "http://127.0.0.1:9/hook"
        assert "whsec_" not in str(found)
        put = served.http.put(f"{path}/webhook", json={"url": "http://127.0.0.1:9/b"}, headers=ticket(one))
        assert put.json()["secret"].startswith("whsec_")
        assert put.json()["secret"] != one["webhook_secret"]
        assert (
            served.http.put(
                f"{path}/webhook", json={"url": "http://10.0.0.1/"}, headers=ticket(one)
            ).status_code
            == 422
        )
        assert served.http.delete(f"{path}/webhook", headers=ticket(one)).status_code == 204
        assert served.http.get(path).json()["webhook"] is None
