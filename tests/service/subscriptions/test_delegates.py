"""A delegate acts for users without tokens: what is one user's does not exist for another, and the delegate has all of it."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.service.conftest import Served
from tidings import AsyncClient, Client
from tidings.client import ServiceError
from tidings.service.model import HIDDEN, Role
from tidings.service.owners import (
    UserError,
    check_user,
    is_of_all_users,
    owner_of,
    owns,
    token_of,
    user_of,
)

USERS = ["4", "42", "4/2", "(service)", "%", "jürgen müller", "t", "/", "*"]
NAMES = st.text("4/2( %zü", min_size=1, max_size=6).map(str.strip).filter(bool)


class Site:
    """A delegate's token, its clients, and what its users have asked for."""

    def __init__(self, served: Served, **limits: Any) -> None:
        self.served = served
        self.token, self.secret = served.service.access.grant(
            "site", Role.DELEGATE, requests_per_second=1e6, **limits
        )
        self.client = Client(served.url, self.secret)

    def ask(self, method: str, path: str, *users: str | bytes, **sent: Any) -> httpx.Response:
        headers: list[tuple[str, str | bytes]] = [("Authorization", f"Bearer {self.secret}")]
        headers += [("Tidings-User", user) for user in users]
        return self.served.http.request(method, path, headers=headers, **sent)


@pytest.fixture(scope="module")
def site(guarded: Served) -> Site:
    site = Site(guarded)
    for user in USERS:
        site.client.for_user(user).subscribe(f"WHERE number = {USERS.index(user)} AND a > 1", title="mine")
    return site


@given(user=NAMES, other=NAMES, token=st.sampled_from(["tabc", "tabz", "t2"]))
@examples(60)
def test_owners_of_users_are_their_own(user: str, other: str, token: str) -> None:
    owner = owner_of(token, check_user(user))
    assert (token_of(owner), user_of(owner)) == (token, user)
    assert owns(owner, owner_of(token, other)) == (user == other)
    assert owns(owner_of(token), owner)
    assert not owns(owner_of(token[:-1]), owner)
    assert not owns(token, owner)
    assert not owns(owner, token)
    assert not owner.startswith(HIDDEN)
    assert not is_of_all_users(owner)


@pytest.mark.parametrize("user", ["", " ", " a", "a\nb", "a\0", "x" * 201, "ü" * 101, "\ud800"])
def test_what_is_no_user_is_refused(user: str) -> None:
    with pytest.raises(UserError, match="is no user; give Tidings-User 1 to 200 bytes"):
        check_user(user)


@pytest.mark.parametrize("user", USERS)
def test_a_user_has_what_it_asked_for_and_nothing_else(site: Site, user: str) -> None:
    client = site.client.for_user(user)
    (mine,) = client.subscriptions()
    assert (mine.user, mine.text) == (user, f"WHERE number = {USERS.index(user)} AND a > 1")
    assert [line["user"] for line in client.export()] == [user]
    assert client.status().subscriptions["active"] == 1
    assert [found.subscription for found in client.match({"number": USERS.index(user), "a": 2}).items] == [
        mine.id
    ]
    assert client.match({"number": (USERS.index(user) + 1) % len(USERS), "a": 2}).items == []
    covered = client.check(f"WHERE number = {USERS.index(user)} AND a > 5").covered_by
    assert [by.id for by in covered] == [mine.id]
    others = [one.id for one in site.client.subscriptions() if one.id != mine.id]
    assert len(others) == len(USERS) - 1
    for call in (client.subscription, client.pause, client.cancel):
        with pytest.raises(ServiceError, match="there is no subscription"):
            call(others[0])


def test_a_delegate_without_a_user_has_what_all_of_them_have(site: Site, guarded: Served) -> None:
    stranger = Site(guarded)
    stranger.client.for_user("42").subscribe("WHERE stranger = 1")
    assert {found.user for found in site.client.subscriptions()} == set(USERS)
    assert [found.user for found in site.client.subscriptions(user="4/2")] == ["4/2"]
    assert [found.user for found in site.client.subscriptions(search="number = 8")] == ["*"]
    assert list(site.client.subscriptions(user="nobody")) == []
    assert {line["user"] for line in site.client.export()} == set(USERS)
    (found,) = site.client.subscriptions(user="42")
    assert site.client.pause(found.id).state == "paused"
    assert site.client.for_user("42").resume(found.id).state == "active"
    page = site.ask("GET", "/").text
    assert "for 42<" in page
    assert "stranger" not in page


def test_a_delegate_subscribes_for_its_users_alone(site: Site) -> None:
    with pytest.raises(ServiceError, match="name one by the header Tidings-User") as error:
        site.client.subscribe("WHERE a = 1")
    assert error.value.status == 422
    (item,) = site.client.subscribe_many(["WHERE a = 1"])
    assert item.error is not None
    assert "Tidings-User" in item.error
    line = {"text": "WHERE a = 1", "user": "5"}
    (refused,) = site.client.for_user("6").subscribe_many([line])
    assert refused.error is not None
    assert "of the user '5'" in refused.error
    (taken,) = site.client.for_user("5").subscribe_many([line])
    assert taken.error is None
    site.client.for_user("5").cancel(taken.id or "")


def test_a_delegate_publishes_and_defines_and_its_users_do_not(site: Site) -> None:
    assert site.client.publish({"number": 1, "a": 5}).accepted == 1
    assert site.client.set_taxonomy("<urn:a> a <urn:b> .").version >= 1
    assert site.client.set_prefixes({"site": "urn:site:"}).version >= 1
    user = site.client.for_user("42")
    for call in (lambda: user.publish({"a": 1}), lambda: user.set_prefixes({})):
        with pytest.raises(ServiceError, match="the user '42' of 'site' has the role subscriber") as error:
            call()
        assert error.value.status == 403
    with pytest.raises(ServiceError, match="this takes the role admin"):
        site.client.set_network("net", {"edges": []})
    (found,) = user.subscriptions()
    assert [one.event["attributes"]["a"] for one in _received(user, found.id)] == [5]


def _received(client: Client, id: str) -> list[Any]:
    for notification in client.listen(id, after=0):
        return [notification]
    return []


def test_marks_are_of_each_user(site: Site) -> None:
    (found,) = site.client.subscriptions(user="42")
    (notification,) = _received(site.client.for_user("42"), found.id)
    star = f"/api/subscriptions/{found.id}/notifications/{notification.id}/star"
    assert site.ask("PUT", star, "42").status_code == 204
    assert site.ask("PUT", star, "4").status_code == 404
    starred = [
        len(site.ask("GET", "/api/notifications?starred=true", *user).json()["items"])
        for user in (["42"], ["4"], [])
    ]
    assert starred == [1, 0, 0]


@pytest.mark.parametrize(
    ("users", "status", "message"),
    [
        (["a", "b"], 422, "the request names 2 users; send Tidings-User once"),
        ([b"\xff"], 422, "the user is not UTF-8"),
        (["x" * 201], 422, "is no user"),
        ([""], 422, "is no user"),
    ],
)
def test_a_header_that_names_no_user(site: Site, users: list[Any], status: int, message: str) -> None:
    for method, path in (("GET", "/api/subscriptions"), ("POST", "/api/events"), ("GET", "/api/status")):
        answer = site.ask(method, path, *users)
        assert answer.status_code == status
        assert message in answer.json()["detail"]


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.DELEGATE])
def test_no_other_role_names_a_user(guarded: Served, role: Role) -> None:
    _, secret = guarded.service.access.grant("x", role)
    client = Client(guarded.url, secret, user="42")
    for call in (client.status, lambda: client.publish({"a": 1}), lambda: list(client.subscriptions())):
        with pytest.raises(ServiceError, match="takes a token with the role delegate") as error:
            call()
        assert error.value.status == 403
    if role in (Role.ADMIN, Role.SUBSCRIBER):
        with pytest.raises(ServiceError, match="takes a token with the role delegate"):
            list(Client(guarded.url, secret).subscriptions(user="42"))


def test_nobody_names_a_user_on_an_open_service(served: Served) -> None:
    answer = served.http.get("/api/subscriptions", headers={"Tidings-User": "42"})
    assert answer.status_code == 403
    assert "this request has no token" in answer.json()["detail"]


def test_quotas_are_of_each_user(guarded: Served) -> None:
    site = Site(guarded, subscriptions=2)
    for user in ("a", "ab"):
        client = site.client.for_user(user)
        made = [client.subscribe("WHERE a = 1") for _ in range(2)]
        with pytest.raises(ServiceError, match=f"the user '{user}' of 'site' has 2 subscriptions"):
            client.subscribe("WHERE a = 1")
        client.cancel(made[0])
        client.subscribe("WHERE a = 1")
    # One that has expired counts again when the delegate renews it: against the quota of its user.
    (late, _) = site.client.subscriptions(user="a", state="active")
    registry = guarded.service.registry
    (found,) = registry.find_many([late.id])
    registry.expire([found])
    client = site.client.for_user("a")
    client.subscribe("WHERE a = 1")
    with pytest.raises(ServiceError, match="the user 'a' of 'site' has 2 subscriptions"):
        site.client.renew(late.id)


def test_a_scope_holds_for_users_and_keeps_from_defining(guarded: Served) -> None:
    site = Site(guarded, scope="WHERE topic = 'sport'")
    user = site.client.for_user("42")
    user.subscribe("WHERE topic = 'sport' AND a = 1")
    with pytest.raises(ServiceError, match="may only ask for what is contained in"):
        user.subscribe("WHERE topic = 'art'")
    for call in (
        lambda: site.client.set_prefixes({}),
        lambda: site.client.set_taxonomy("<urn:a> a <urn:b> ."),
    ):
        with pytest.raises(ServiceError, match="use a token without a scope"):
            call()


def test_an_ended_token_ends_all_its_users(guarded: Served) -> None:
    site = Site(guarded)
    mine = site.client.for_user("42").subscribe("WHERE a = 1")
    guarded.service.access.end(site.token.id)
    for client in (site.client, site.client.for_user("42"), site.client.for_user("new")):
        for call in (client.status, lambda client=client: client.pause(mine.id, ticket=mine.ticket)):
            with pytest.raises(ServiceError) as error:
                call()
            assert error.value.status == 401


def test_the_clients_name_the_user(site: Site) -> None:
    for user in ("", "a\n", " a"):
        with pytest.raises(ServiceError, match="is no user; give a text that can be printed"):
            site.client.for_user(user)

    async def texts() -> list[str]:
        async with AsyncClient(site.served.url, site.secret, user="jürgen müller") as client:
            assert [found.user async for found in client.for_user("4").subscriptions()] == ["4"]
            return [found.text async for found in client.subscriptions()]

    assert asyncio.run(texts()) == ["WHERE number = 5 AND a > 1"]
