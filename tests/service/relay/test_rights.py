"""Who may ask for what: tokens with a scope, relays with a scope, and their subscribers."""

from __future__ import annotations

from contextlib import ExitStack
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import Running, Served
from tests.service.relay.test_relay import connected, relay_of, until
from tidings.client import Client
from tidings.errors import SubscriptionError
from tidings.service.model import Role
from tidings.service.subscriptions.scopes import check_scope


def bearer(served: Served, role: Role = Role.SUBSCRIBER, **more: Any) -> dict[str, str]:
    _, secret = served.service.access.grant("scoped", role, **more)
    return {"Authorization": f"Bearer {secret}"}


def test_a_token_asks_only_for_what_is_in_its_scope(guarded: Served) -> None:
    mine, admin = bearer(guarded, scope="WHERE topic = 'sport'"), bearer(guarded, Role.ADMIN)
    post = guarded.http.post
    for text in ("WHERE price < 5", "WHERE topic = 'sport' OR price < 5", "WHERE NOT (topic = 'chess')"):
        for refused in (
            post("/api/subscriptions", json={"text": text}, headers=mine),
            post("/api/try", json={"text": text}, headers=mine),
        ):
            assert refused.status_code == 403
            assert "WHERE topic = 'sport'" in refused.json()["detail"]
    made = post("/api/subscriptions", json={"text": "WHERE topic = 'sport' AND price < 5"}, headers=mine)
    assert made.status_code == 201
    edited = guarded.http.patch(
        f"/api/subscriptions/{made.json()['id']}", json={"text": "WHERE price < 5"}, headers=mine
    )
    assert edited.status_code == 403
    bulk = post("/api/subscriptions/bulk", json=[{"text": "WHERE a = 1"}], headers=mine).json()["items"]
    assert "WHERE topic = 'sport'" in bulk[0]["error"]
    post("/api/events", json=[{"id": "1", "topic": "sport"}, {"id": "2", "topic": "secret"}], headers=admin)
    tried = post("/api/try", json={"text": "WHERE topic = 'sport'"}, headers=mine).json()
    assert (tried["looked"], tried["matched"]) == (1, 1)
    page = guarded.http.get("/events", headers={**mine, "Accept": "text/html"}).text
    assert "secret" not in page
    assert guarded.http.get("/api/complete", params={"text": "WHERE "}, headers=mine).json()["items"] == []


def test_a_scope_is_a_subscription() -> None:
    assert check_scope(" WHERE  a = 1 ") == "WHERE a = 1"
    assert check_scope("") == ""
    with pytest.raises(SubscriptionError, match="the scope cannot be read"):
        check_scope("WHERE a =")


def test_a_relay_gets_what_its_token_may_ask_for(tmp_path: Path) -> None:
    with Running(data=tmp_path / "centre", open=False) as centre:
        admin = bearer(centre, Role.ADMIN)
        _, secret = centre.service.access.grant("lyon", Role.RELAY, scope="WHERE topic = 'sport'")
        with relay_of(centre, data=tmp_path / "relay", upstream_token=secret) as relay:
            until(lambda: connected(relay))
            assert relay.http.get("/ready").json()["upstream"] == {"status": "connected"}
            relay.subscribe("WHERE price < 5")
            narrow = relay.subscribe("WHERE topic = 'sport' AND price < 5")["id"]
            until(lambda: not relay.service.own_filters.faults and relay.service.own_filters.registered == 1)
            relay.service.own_filters.await_upstream()
            for id, topic in (("1", "secret"), ("2", "sport")):
                event = {"id": id, "source": "s", "topic": topic, "price": 1}
                assert centre.http.post("/api/events", json=event, headers=admin).status_code == 202
            (item,) = relay.notifications(narrow, 1)
            assert item["event"]["id"] == "2"
            assert [below.messages for below in centre.service.downstream.relays.all()] == [1]
            assert b'tidings_link_refused_total{what="filter"}' in centre.service.metrics.text()


def test_what_upstream_refuses_is_answered_as_unanswerable(tmp_path: Path) -> None:
    """By the answer itself, at the relay and at one below it, and whatever made the subscription active."""
    reason = "the upstream service refuses it: the token 'lyon' may only ask for what is contained in: WHERE"
    with ExitStack() as stack:
        centre = stack.enter_context(Running(data=tmp_path / "centre", open=False))
        _, secret = centre.service.access.grant("lyon", Role.RELAY, scope="WHERE topic = 'sport'")
        relay = stack.enter_context(relay_of(centre, data=tmp_path / "relay", upstream_token=secret))
        below = stack.enter_context(relay_of(relay, data=tmp_path / "below"))
        until(lambda: connected(relay) and connected(below))
        for at in (relay, below):
            for _ in range(2):  # the second time, its filter is known above
                made = at.subscribe("WHERE price < 5")
                assert made["state"] == "unanswerable"
                assert made["reason"].startswith(reason)
        texts = ["WHERE topic = 'sport'", "WHERE price < 6"]
        with Client(below.url) as client:
            narrow, wide = client.subscribe_many(texts)
            assert (narrow.state, wide.state) == ("active", "unanswerable")
            assert str(wide.reason).startswith(reason)
            edited = client.edit(narrow.id, text="WHERE price < 7", ticket=narrow.ticket)
            assert (edited.state, edited.revision) == (
                "unanswerable",
                client.subscription(narrow.id).revision,
            )
            assert client.resume(wide.id, ticket=wide.ticket).state == "unanswerable"
        page = below.http.get(f"/subscriptions/{wide.id}", headers={"Accept": "text/html"}).text
        assert f"No event can be matched: {reason}" in unescape(page)


def test_a_subscription_that_waits_for_upstream_says_so(tmp_path: Path) -> None:
    with Running(data=tmp_path / "centre", open=False) as centre:
        _, secret = centre.service.access.grant("reader", Role.SUBSCRIBER)
        with relay_of(centre, data=tmp_path / "relay", upstream_token=secret) as relay:
            made = relay.subscribe("WHERE price < 5")
            assert made["state"] == "active"  # it is matched as soon as upstream takes it
            (warning,) = (text for text in made["warnings"] if "upstream" in text)
            assert warning.startswith("it waits for the upstream service, and gets no event until then: ")
            assert "403" in warning
            until(lambda: relay.http.get("/ready").json()["upstream"]["status"] == "refuses")
            ready = relay.http.get("/ready")
            assert (ready.status_code, ready.json()["status"]) == (200, "ok")  # it serves what it has
            assert ready.json()["upstream"]["message"].startswith(
                "the upstream service refuses this relay, so no events come from it;"
            )
            assert centre.url not in ready.text  # everyone may read it


@pytest.mark.slow
def test_a_relay_needs_a_token_of_its_role(tmp_path: Path) -> None:
    with Running(data=tmp_path / "centre", open=False) as centre:
        for role, reason in ((None, "token is needed"), (Role.SUBSCRIBER, "takes the role relay")):
            secret = None if role is None else centre.service.access.grant("x", role)[1]
            data = tmp_path / f"relay {role}"
            with relay_of(centre, data=data, upstream_token=secret) as relay:
                assert relay.service.upstream is not None
                (state,) = relay.service.upstream.states
                until(lambda state=state: state.status == "refuses")
                assert reason in state.message
                assert relay.subscribe()["state"] == "active", "it serves on"
