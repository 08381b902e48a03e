"""Who may do what, as one table over all routes: a route that is not in it fails the test that looks for it.

A row says what is sent, and what the answer is to nobody, a publisher, a subscriber, a stranger (another subscriber)
and an admin. `{id}` is a subscription of the subscriber, `{nid}` a notification of it, `{channel}` a channel of the same. The subscriber is a user of a delegate, so
the delegate and another of its users are in the table too.
"""

from __future__ import annotations

import json
import time
from typing import Any, NamedTuple

import httpx
import pytest

from tests.service.conftest import Served
from tests.service.hostile.routes import routes_of
from tidings.service.model import Role
from tidings.service.relay.downstream import MEDIA_TYPE

XMLRPC = "<methodCall><methodName>tidings.subscribe</methodName><params><param><value>WHERE a = 1</value></param></params></methodCall>"


class Row(NamedTuple):
    route: str
    nobody: int
    publisher: int
    subscriber: int
    stranger: int
    admin: int
    sent: Any = None  # JSON, or bytes
    query: str = ""
    kind: str = "application/json"

    @property
    def user(self) -> int:
        """To another user of a delegate: as to a stranger."""
        return self.stranger

    @property
    def delegate(self) -> int:
        """To a delegate without a user, who has the subscription's: what a publisher or a subscriber may, but subscribe."""
        if self.route in OF_DELEGATES:
            return OF_DELEGATES[self.route]
        return self.publisher if self.subscriber == 403 else self.subscriber

    @property
    def named(self) -> int:
        """To an admin who names a user: nothing, wherever a token is needed."""
        return 403 if self.nobody == 401 else self.nobody


TEXT = {"text": "WHERE a = 1"}
HOOK = {"kind": "webhook", "address": "https://hook.invalid/"}
RELAY = "n" + "a" * 20
EVENT = {"source": "roles", "a": 1}
FORM = "application/x-www-form-urlencoded"
OF_DELEGATES = {
    "PUT /api/taxonomy": 200,
    "PUT /api/prefixes": 200,
    "POST /api/subscriptions": 422,  # for whom?
    "POST /api/sources": 200,  # it is followed already
    "DELETE /api/subscriptions/{id}": 410,  # by its user already
    "POST /api/channels": 422,  # for whom?
    "DELETE /api/channels/{channel}/subscriptions/{subscription}": 404,  # by its user already
    "DELETE /api/channels/{channel}": 404,
}
LAST = ("DELETE /api/channels/{channel}", "DELETE /api/subscriptions/{id}")
ROWS = [
    # route                                             nobody publisher subscriber stranger admin
    Row("GET /health", 200, 200, 200, 200, 200),
    Row("GET /ready", 503, 503, 503, 503, 503),
    Row("GET /metrics", 200, 200, 200, 200, 200),
    Row("GET /openapi.json", 200, 200, 200, 200, 200),
    Row("GET /api", 200, 200, 200, 200, 200),
    Row("GET /static/page.js", 200, 200, 200, 200, 200),
    Row("GET /api/status", 401, 200, 200, 200, 200),
    Row("POST /api/check", 401, 200, 200, 200, 200, TEXT),
    Row("POST /api/try", 401, 403, 200, 200, 200, TEXT),
    Row("POST /api/backtests", 401, 403, 202, 202, 202, TEXT),
    Row("GET /api/backtests/{id}", 401, 404, 404, 404, 404),  # there is none with this id
    Row("DELETE /api/backtests/{id}", 401, 404, 404, 404, 404),
    Row("GET /backtests/{id}", 401, 404, 404, 404, 404),
    Row("GET /api/complete", 401, 403, 200, 200, 200),
    Row("GET /api/taxonomy", 401, 200, 200, 200, 200),
    Row("GET /api/definitions", 401, 200, 200, 200, 200),
    Row("PUT /api/taxonomy", 401, 403, 403, 403, 200, b"<urn:a> a <urn:b> .", "", "text/turtle"),
    Row("GET /api/prefixes", 401, 200, 200, 200, 200),
    Row("PUT /api/prefixes", 401, 403, 403, 403, 200, {}),
    Row("GET /api/networks", 401, 200, 200, 200, 200),
    Row("PUT /api/networks/{name}", 401, 403, 403, 403, 200, {"edges": []}),
    Row("GET /api/networks/{name}", 401, 200, 200, 200, 200),
    Row("PATCH /api/networks/{name}", 401, 403, 403, 403, 422, {"changes": [{"action": "remove_node", "arguments": ["n"]}]}),
    Row("POST /api/events", 401, 202, 403, 403, 202, EVENT),
    Row("POST /api/match", 401, 403, 200, 200, 200, EVENT),
    Row("GET /api/tables", 401, 200, 200, 200, 200),
    Row("GET /api/tables/{name}/rows", 401, 403, 404, 404, 404),  # there is none
    Row("GET /api/sources", 401, 200, 200, 200, 200),
    Row("POST /api/sources", 401, 201, 403, 403, 200, {"url": "http://roles.invalid/feed"}),
    Row("POST /api/sources/fetch", 401, 404, 403, 403, 404, None, "?url=http://nobody.invalid/"),
    Row("POST /api/sources/opml", 401, 200, 403, 403, 200, b"<opml version='2.0'><body/></opml>", "", "text/x-opml"),
    Row("GET /api/sources.opml", 401, 200, 200, 200, 200),
    Row("PATCH /api/sources", 401, 404, 403, 403, 404, {"interval": 3600}, "?url=http://nobody.invalid/"),
    Row("DELETE /api/sources", 401, 404, 403, 403, 404, None, "?url=http://nobody.invalid/"),
    Row("GET /api/tokens", 401, 403, 403, 403, 200),
    Row("POST /api/tokens", 401, 403, 403, 403, 201, {"name": "n", "role": "subscriber"}),
    Row("DELETE /api/tokens", 401, 403, 403, 403, 404, None, "?id=none"),
    Row("POST /api/links", 401, 403, 403, 403, 200, {"relay": RELAY}),
    Row("GET /api/links/definitions", 401, 403, 403, 403, 200),
    Row("PUT /api/links/filters", 401, 403, 403, 403, 200, {"relay": RELAY, "filters": []}),
    Row("POST /api/links/filters", 401, 403, 403, 403, 200, {"relay": RELAY}),
    Row("POST /api/links/rows", 401, 403, 403, 403, 204, {"relay": RELAY, "filters": []}),
    Row("POST /api/links/acks", 401, 403, 403, 403, 204, {"relay": RELAY, "payloads": []}),
    Row("GET /api/links/packets", 401, 403, 403, 403, 200, None, f"?relay={RELAY}"),
    Row("GET /api/links/payloads", 401, 403, 403, 403, 404, None, f"?relay={RELAY}&number=1&id={'0' * 32}"),
    Row("GET /api/subscriptions", 401, 403, 200, 200, 200),
    Row("POST /api/subscriptions", 401, 403, 201, 201, 201, TEXT),
    Row("POST /api/subscriptions/bulk", 401, 403, 200, 200, 200, [TEXT]),
    Row("GET /api/subscriptions.ndjson", 401, 403, 200, 200, 200),
    Row("GET /api/stream", 401, 403, 200, 200, 200),
    Row("GET /api/subscriptions/{id}", 401, 404, 200, 404, 200),
    Row("GET /api/subscriptions/{id}/notifications", 401, 404, 200, 404, 200),
    Row("GET /api/subscriptions/{id}/notifications/{notification}/why", 401, 404, 200, 404, 200),
    Row("GET /api/notifications", 401, 403, 200, 200, 200, None, "?q=x"),
    Row("PUT /api/subscriptions/{id}/notifications/{notification}/star", 401, 404, 204, 404, 204),
    Row("DELETE /api/subscriptions/{id}/notifications/{notification}/star", 401, 404, 204, 404, 204),
    Row("GET /api/subscriptions/{id}/read", 401, 404, 200, 404, 200),
    Row("PUT /api/subscriptions/{id}/read", 401, 404, 200, 404, 200, {"number": 1}),
    Row("GET /api/subscriptions/{id}/stream", 401, 404, 200, 404, 200),
    Row("PATCH /api/subscriptions/{id}", 401, 404, 200, 404, 200, {"title": "edited"}),
    Row("POST /api/subscriptions/{id}/renew", 401, 404, 200, 404, 200, {}),
    Row("POST /api/subscriptions/{id}/pause", 401, 404, 200, 404, 200, {}),
    Row("POST /api/subscriptions/{id}/resume", 401, 404, 200, 404, 200, {}),
    Row("POST /api/subscriptions/{id}/snapshot", 401, 404, 422, 404, 422, {}),  # it is over no tables
    Row("PUT /api/subscriptions/{id}/webhook", 401, 404, 200, 404, 200, {"url": "https://hook.invalid/"}),
    Row("POST /api/subscriptions/{id}/webhook/test", 401, 404, 200, 404, 200, {}),
    Row("DELETE /api/subscriptions/{id}/webhook", 401, 404, 204, 404, 204),
    Row("DELETE /api/subscriptions/{id}", 401, 404, 200, 404, 410),
    Row("GET /api/channels", 401, 403, 200, 200, 200),
    Row("POST /api/channels", 401, 403, 201, 201, 201, HOOK),
    Row("GET /api/channels/{channel}", 401, 404, 200, 404, 200),
    Row("PATCH /api/channels/{channel}", 401, 404, 200, 404, 200, {"title": "changed"}),
    Row("POST /api/channels/{channel}/test", 401, 404, 200, 404, 200),
    Row("PUT /api/channels/{channel}/subscriptions/{subscription}", 401, 404, 200, 404, 200),
    Row("DELETE /api/channels/{channel}/subscriptions/{subscription}", 401, 404, 200, 404, 404),
    Row("DELETE /api/channels/{channel}", 401, 404, 204, 404, 404),
    Row("GET /feeds/{key}.{format}", 404, 404, 404, 404, 404),  # by its id: it is not public
    Row("POST /websub", 415, 415, 415, 415, 415, {}),  # whoever knows the address of a feed, which is its secret
    Row("GET /websub/callbacks/{key}", 404, 404, 404, 404, 404),  # for hubs: there is none
    Row("POST /websub/callbacks/{key}", 410, 410, 410, 410, 410, b"", "", "application/atom+xml"),
    Row("POST /xmlrpc", 401, 200, 200, 200, 200, XMLRPC.encode(), "", "text/xml"),
    Row("GET /", 401, 303, 200, 200, 200),
    Row("GET /login", 200, 200, 200, 200, 200),
    Row("GET /sources", 401, 200, 200, 200, 200),
    Row("GET /status", 401, 200, 200, 200, 200),
    Row("GET /tokens", 401, 403, 403, 403, 200),
    Row("GET /definitions", 401, 200, 200, 200, 200),
    Row("GET /definitions/tables/{name}", 401, 403, 404, 404, 404),  # there is none
    Row("GET /definitions/networks/{name}", 401, 200, 200, 200, 200),
    Row("GET /taxonomy", 401, 200, 200, 200, 200),
    Row("GET /subscriptions/new", 401, 403, 200, 200, 200),
    Row("GET /subscriptions/{id}", 401, 404, 200, 404, 200),
    Row("GET /subscriptions/{id}/edit", 401, 404, 200, 404, 200),
    Row("GET /events", 401, 403, 200, 200, 200),
    Row("GET /events/match", 401, 403, 200, 200, 200),
    Row("GET /notifications", 401, 403, 200, 200, 200, None, "?q=x"),
    Row("GET /subscriptions/{id}/notifications/{notification}", 401, 404, 200, 404, 200),
    Row("GET /channels", 401, 403, 200, 200, 200),
    Row("GET /channels/{channel}", 401, 404, 200, 404, 200),
    Row("GET /channels/confirm/{secret}", 404, 404, 404, 404, 404),
    Row("GET /channels/unsubscribe/{secret}", 404, 404, 404, 404, 404),
    Row("POST /channels/unsubscribe/{secret}", 404, 404, 404, 404, 404, b"List-Unsubscribe=One-Click", "", FORM),
    Row("POST /channels/confirm/{secret}", 403, 403, 403, 403, 403, b"", "", FORM),
    # Forms: who is not logged in is told so first; a form without its token is refused, whoever sends it.
    Row("POST /login", 403, 403, 403, 403, 403, b"token=x", "", FORM),
    Row("POST /logout", 403, 403, 403, 403, 403, b"", "", FORM),
    *(
        Row(f"POST {path}", 401, 403, 403, 403, 403, b"text=WHERE+a=1&url=http://a.invalid/&kind=application/json", "", FORM)
        for path in (
            "/publish", "/backtests", "/sources", "/sources/fetch", "/sources/interval", "/sources/opml", "/sources/remove", "/tokens", "/tokens/revoke", "/subscriptions", "/subscriptions/new",
            "/subscriptions/{id}/renew", "/subscriptions/{id}/{word}", "/subscriptions/{id}/edit", "/subscriptions/{id}/compare",
            "/events/match", "/notifications/read", "/channels", "/channels/{channel}", "/channels/{channel}/{word}",
            "/subscriptions/{id}/read", "/subscriptions/{id}/notifications/{notification}/star",
        )
    ),
]  # fmt: skip
# Last, because they change what the others look at.
ORDER = sorted(ROWS, key=lambda row: LAST.index(row.route) if row.route in LAST else -1)
WHO = ("nobody", "publisher", "stranger", "user", "named", "subscriber", "delegate", "admin")


class House(NamedTuple):
    served: Served
    headers: dict[str, dict[str, str]]
    id: str
    notification: str
    channel: str

    def ask(self, row: Row, who: str) -> httpx.Response:
        method, path = row.route.split()
        path = (
            path.replace("{id}", self.id)
            .replace("{key}", self.id)
            .replace("{format}", "rss")
            .replace("{notification}", self.notification)
            .replace("{word}", "pause")
            .replace("{channel}", self.channel)
            .replace("{subscription}", self.id)
            .replace("{secret}", f"{self.channel}.{'0' * 64}")
            .replace("{name}", "exchange")
        )
        headers = {"Accept": "application/json", **self.headers[who]}
        content = (
            row.sent if isinstance(row.sent, bytes) or row.sent is None else json.dumps(row.sent).encode()
        )
        if content is not None:
            headers["Content-Type"] = row.kind
        with self.served.http.stream(method, path + row.query, content=content, headers=headers) as answer:
            if not answer.headers.get("content-type", "").startswith(("text/event-stream", MEDIA_TYPE)):
                answer.read()
            return answer


@pytest.fixture(scope="module")
def house(guarded: Served) -> House:
    grant, headers = guarded.service.access.grant, {"nobody": {}}
    roles = {
        "publisher": Role.PUBLISHER,
        "delegate": Role.DELEGATE,
        "stranger": Role.SUBSCRIBER,
        "admin": Role.ADMIN,
    }
    for who, role in roles.items():
        secret = grant(who, role, requests_per_second=1e6)[1]
        headers[who] = {"Authorization": f"Bearer {secret}"}
    headers["subscriber"] = {**headers["delegate"], "Tidings-User": "42"}
    headers["user"] = {**headers["delegate"], "Tidings-User": "4"}
    headers["named"] = {**headers["admin"], "Tidings-User": "42"}
    http = guarded.http
    made = http.post("/api/subscriptions", json={"text": "WHERE topic = 'x'"}, headers=headers["subscriber"])
    id = made.json()["id"]
    http.post("/api/events", json={"source": "s", "topic": "x"}, headers=headers["publisher"])
    for _ in range(600):
        time.sleep(0.05)
        items = http.get(f"/api/subscriptions/{id}/notifications", headers=headers["subscriber"]).json()[
            "items"
        ]
        if items:
            break
    channel = http.post("/api/channels", json=HOOK, headers=headers["subscriber"]).json()["id"]
    return House(guarded, headers, id, items[0]["id"], channel)


def test_the_table_has_every_route(house: House) -> None:
    known = {row.route for row in ROWS}
    found = {f"{method} {path}" for method, path in routes_of(house.served.service)}
    assert found == known, "a route without a row here has no rule of who may use it"


@pytest.mark.parametrize("row", ORDER, ids=lambda row: row.route)
def test_everybody_gets_the_answer_of_their_role(house: House, row: Row) -> None:
    got = {who: house.ask(row, who).status_code for who in WHO}
    assert got == {who: getattr(row, who) for who in WHO}


@pytest.mark.parametrize("row", [row for row in ROWS if row.nobody == 401], ids=lambda row: row.route)
def test_no_other_way_in(house: House, row: Row) -> None:
    """Tokens that are none, sessions that nobody signed, a user's name and password."""
    for headers in (
        {"Authorization": "Bearer tid_" + "A" * 43},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic YTpi"},
        {"Authorization": "Bearer tid_é\u00ff".encode("latin-1")},
        {"Cookie": "tidings_session=t.99999999999.00"},
        {"Cookie": "tidings_session=" + "." * 50},
        {"Cookie": "tidings_visit=x"},
    ):
        house.headers["forged"] = headers
        assert house.ask(row, "forged").status_code == 401


def test_an_ended_token_is_refused_everywhere_at_once(house: House) -> None:
    access = house.served.service.access
    token, secret = access.grant("short", Role.ADMIN)
    house.headers["short"] = {"Authorization": f"Bearer {secret}"}
    rows = [row for row in ROWS if row.nobody == 401]
    assert house.ask(rows[0], "short").status_code == 200
    session = access.log_in(secret)
    house.headers["short session"] = {"Cookie": f"tidings_session={session}"}
    assert house.ask(rows[0], "short session").status_code == 200
    admin = house.headers["admin"]
    assert house.served.http.delete(f"/api/tokens?id={token.id}", headers=admin).status_code == 204
    for who in ("short", "short session"):
        assert {row.route: house.ask(row, who).status_code for row in rows} == {
            row.route: 401 for row in rows
        }


def test_xmlrpc_asks_for_the_same_roles(house: House) -> None:
    calls = {
        "tidings.subscribe": ["WHERE a = 1"],
        "tidings.publish": ['{"a": 1}'],
        "tidings.renew": [house.id],
        "tidings.unsubscribe": [house.id],
        "tidings.notifications": [house.id],
    }
    expected = {
        "publisher": {
            "tidings.subscribe": 403,
            "tidings.publish": None,
            **dict.fromkeys(list(calls)[2:], 404),
        },
        "stranger": {
            "tidings.subscribe": None,
            "tidings.publish": 403,
            **dict.fromkeys(list(calls)[2:], 404),
        },
    }
    for who, codes in expected.items():
        for name, parameters in calls.items():
            values = "".join(f"<param><value>{one}</value></param>" for one in parameters)
            body = f"<methodCall><methodName>{name}</methodName><params>{values}</params></methodCall>"
            row = Row("POST /xmlrpc", 0, 0, 0, 0, 0, body.encode(), "", "text/xml")
            text = house.ask(row, who).text
            code = text.partition("<int>")[2].partition("</int>")[0] if "faultCode" in text else None
            assert (None if code is None else int(code)) == codes[name], (who, name, text)
