"""Who may ask for what: tokens with a scope, relays with a scope, and their subscribers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import Running, Served
from tests.service.relay.test_relay import connected, relay_of, until
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
            wide = relay.subscribe("WHERE price < 5")["id"]
            narrow = relay.subscribe("WHERE topic = 'sport' AND price < 5")["id"]
            found = until(
                lambda: (
                    (answer := relay.http.get(f"/api/subscriptions/{wide}").json())["state"] == "unanswerable"
                    and answer
                )
            )
            assert "may only ask for what is contained in: WHERE topic = 'sport'" in found["reason"]
            until(lambda: not relay.service.own_filters.faults and relay.service.own_filters.registered == 1)
            relay.service.own_filters.await_upstream()
            for id, topic in (("1", "secret"), ("2", "sport")):
                event = {"id": id, "source": "s", "topic": topic, "price": 1}
                assert centre.http.post("/api/events", json=event, headers=admin).status_code == 202
            (item,) = relay.notifications(narrow, 1)
            assert item["event"]["id"] == "2"
            assert [link.messages for link in centre.service.downstream.links()] == [1]
            assert b'tidings_link_refused_total{what="filter"}' in centre.service.metrics.text()


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
