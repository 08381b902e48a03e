"""Nobody finds out what there is: of another's subscription, of one that never was, the answers are the same, down to
their headers; tickets of others, of the past and guessed ones open nothing."""

from __future__ import annotations

import re
import xmlrpc.client
from typing import Any

import httpx
import pytest

from tests.service.conftest import Served
from tidings.service.model import Role
from tidings.service.subscriptions.tickets import new_id

ASKED = [
    ("GET", "/api/subscriptions/{id}", None),
    ("DELETE", "/api/subscriptions/{id}", None),
    ("GET", "/api/subscriptions/{id}/notifications", None),
    ("GET", "/api/subscriptions/{id}/notifications?after=0&limit=5", None),
    ("GET", "/api/subscriptions/{id}/notifications/{nid}/why", None),
    ("GET", "/api/subscriptions/{id}/stream", None),
    ("GET", "/api/stream?subscription={id}", None),
    ("GET", "/api/stream?subscription={mine}&subscription={id}", None),
    ("POST", "/api/subscriptions/{id}/renew", {}),
    ("POST", "/api/subscriptions/{id}/renew", {"valid_for": "never"}),
    ("POST", "/api/subscriptions/{id}/pause", {}),
    ("POST", "/api/subscriptions/{id}/resume", {}),
    ("PUT", "/api/subscriptions/{id}/webhook", {"url": "https://hook.invalid/"}),
    ("PUT", "/api/subscriptions/{id}/webhook", {"url": "http://127.0.0.1/"}),
    ("DELETE", "/api/subscriptions/{id}/webhook", None),
    ("GET", "/subscriptions/{id}", None),
    ("GET", "/subscriptions/{id}?part=news&after=0", None),
    ("GET", "/subscriptions/{id}/notifications/{nid}", None),
    ("GET", "/feeds/{id}.rss", None),
    ("GET", "/feeds/{id}.json?before=9", None),
    ("HEAD", "/feeds/{id}.atom", None),
]


class Neighbours:
    """Mine, and another's that is active, paused, cancelled."""

    def __init__(self, served: Served, *, by_delegate: bool) -> None:
        self.served, grant = served, served.service.access.grant
        self.tokens = {
            name: {"Authorization": f"Bearer {grant(name, Role.SUBSCRIBER, requests_per_second=1e6)[1]}"}
            for name in ("me", "other")
        }
        delegate = {
            "Authorization": f"Bearer {grant('site', Role.DELEGATE, requests_per_second=1e6)[1]}",
        }
        if by_delegate:  # both are users of one token, whose names begin alike
            users = {"me": "4", "other": "42"}
            self.tokens = {who: {**delegate, "Tidings-User": user} for who, user in users.items()}
        self.mine = self.begin("me")
        self.others = {state: self.begin("other") for state in ("active", "paused", "cancelled")}
        other, http = self.tokens["other"], served.http
        http.post(f"/api/subscriptions/{self.others['paused']['id']}/pause", json={}, headers=other)
        http.delete(f"/api/subscriptions/{self.others['cancelled']['id']}", headers=other)
        _, publisher = grant("publisher", Role.PUBLISHER)
        event = {"a": 1, "by_delegate": by_delegate}  # the same one twice would be a duplicate
        http.post("/api/events", json=event, headers={"Authorization": f"Bearer {publisher}"})
        notifications: list[Any] = []
        while not notifications:
            notifications = http.get(
                f"/api/subscriptions/{self.others['active']['id']}/notifications", headers=other
            ).json()["items"]
        self.notification = notifications[0]["id"]

    def begin(self, who: str) -> dict[str, Any]:
        made = self.served.http.post(
            "/api/subscriptions", json={"text": "WHERE a = 1"}, headers=self.tokens[who]
        )
        return made.json()

    def ask(
        self, method: str, path: str, body: Any, id: str, accept: str, ticket: str | None = None
    ) -> httpx.Response:
        path = path.format(id=id, nid=self.notification, mine=self.mine["id"])
        headers = {"Accept": accept, **self.tokens["me"], **({"Tidings-Ticket": ticket} if ticket else {})}
        return self.served.http.request(method, path, json=body, headers=headers)


@pytest.fixture(scope="module", params=[False, True], ids=["tokens", "users"])
def neighbours(guarded: Served, request: pytest.FixtureRequest) -> Neighbours:
    return Neighbours(guarded, by_delegate=request.param)


def seen(answer: httpx.Response, id: str) -> tuple[int, dict[str, str], str]:
    """All that an asker sees, but for what changes with every request."""
    headers = {
        name: value
        for name, value in answer.headers.items()
        if name not in ("date", "x-request-id", "set-cookie")
    }
    text = re.sub(r'name="csrf" value="[0-9a-f]+"|data-csrf="[0-9a-f]+"', "", answer.text)
    return answer.status_code, headers, text.replace(id, "ID")


@pytest.mark.parametrize("accept", ["application/json", "text/html"])
@pytest.mark.parametrize(("method", "path", "body"), ASKED)
def test_what_is_anothers_is_not_there(
    neighbours: Neighbours, method: str, path: str, body: Any, accept: str
) -> None:
    never = new_id("s")
    nothing = seen(neighbours.ask(method, path, body, never, accept), never)
    assert nothing[0] == 404
    for state, other in neighbours.others.items():
        found = seen(neighbours.ask(method, path, body, other["id"], accept), other["id"])
        assert found == nothing, state


@pytest.mark.parametrize(
    ("method", "path", "body"), [one for one in ASKED if one[0] != "GET" and "/api/" in one[1]]
)
def test_guessing_tickets_tells_nothing_either(
    neighbours: Neighbours, method: str, path: str, body: Any
) -> None:
    """Guesses are slowed down after a few; those of what is not there, after as many."""
    never, other = new_id("s"), neighbours.begin("other")["id"]
    histories = [
        [
            neighbours.ask(method, path, body, id, "application/json", "tkt_" + "A" * 43).status_code
            for _ in range(8)
        ]
        for id in (never, other)
    ]
    assert histories[0] == histories[1]
    assert histories[0][0] == 404
    assert histories[0][-1] == 429


def test_the_same_by_xmlrpc(neighbours: Neighbours) -> None:
    never, other = new_id("s"), neighbours.begin("other")["id"]
    headers = list(neighbours.tokens["me"].items())
    proxy = xmlrpc.client.ServerProxy(f"{neighbours.served.url}/xmlrpc", headers=headers)
    for name in ("renew", "unsubscribe", "notifications"):
        for parameters in ((), ("",), ("tkt_guess",)):
            faults = []
            for id in (never, other):
                with pytest.raises(xmlrpc.client.Fault) as fault:
                    getattr(proxy.tidings, name)(id, *parameters)
                faults.append((fault.value.faultCode, fault.value.faultString.replace(id, "ID")))
            assert faults[0] == faults[1]


def test_tickets_of_others_of_the_past_and_of_other_kinds(served: Served) -> None:
    """On an open service everybody sees everything, and the ticket alone changes it."""
    one, two = served.subscribe(), served.subscribe(webhook="https://hook.invalid/")
    secret = one["feeds"]["atom"].rpartition("/")[2].partition(".")[0]
    forged = [
        two["ticket"],
        two["webhook_secret"],
        secret,
        one["id"],
        one["ticket"][:-1],
        one["ticket"] + "A",
        one["ticket"].upper(),
        one["ticket"].removeprefix("tkt_"),
        "' OR 1=1 --",
    ]
    for method, path in (("POST", "pause"), ("POST", "renew"), ("DELETE", ""), ("DELETE", "webhook")):
        for number, ticket in enumerate(forged):
            answer = served.http.request(
                method,
                f"/api/subscriptions/{one['id']}/{path}".rstrip("/"),
                headers={"Tidings-Ticket": ticket},
            )
            assert answer.status_code in (403, 429), (path, number)
    right = {"Tidings-Ticket": one["ticket"]}
    assert served.http.delete(f"/api/subscriptions/{one['id']}", headers=right).status_code == 200
    for path in ("renew", "pause", "resume"):
        again = served.http.post(f"/api/subscriptions/{one['id']}/{path}", headers=right)
        assert again.status_code == 410
    assert served.http.get(f"/api/subscriptions/{one['id']}").json()["state"] == "cancelled"


def test_secrets_are_in_no_list_page_metric_or_other_persons_answer(neighbours: Neighbours) -> None:
    other = neighbours.others["active"]
    secrets = [other["ticket"], other["feeds"]["rss2"].rpartition("/")[2].partition(".")[0], other["id"]]
    feed = neighbours.served.http.get(other["feeds"]["rss2"])
    assert feed.status_code == 200
    assert feed.headers["referrer-policy"] == "same-origin"
    assert feed.headers["cache-control"].startswith("private")
    for path in ("/api/subscriptions", "/api/status", "/api/sources", "/", "/status", "/sources", "/metrics"):
        text = neighbours.served.http.get(path, headers=neighbours.tokens["me"]).text
        assert not [secret for secret in secrets if secret in text], path
    mine = neighbours.served.http.get(
        f"/api/subscriptions/{other['id']}", headers=neighbours.tokens["other"]
    ).text
    assert other["ticket"] not in mine
    hashed = neighbours.served.service.registry.find(other["id"]).ticket
    assert hashed not in mine
