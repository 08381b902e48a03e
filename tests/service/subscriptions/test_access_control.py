"""Who gets in, what they may see and change, and how much of it."""

import os
import stat

import pytest

from tests.service.stores import opened
from tidings.errors import TidingsError
from tidings.service.model import Principal, Role, State, Subscription
from tidings.service.settings import Settings
from tidings.service.subscriptions import tickets
from tidings.service.subscriptions.access_control import (
    SESSION,
    AccessControl,
    Bucket,
    Forbidden,
    OverQuota,
    TooMany,
    Unauthorized,
    grant,
    read_key,
)


class Clock:
    def __init__(self):
        self.now = 1_700_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def registry(tmp_path):
    registry, mailbox = opened(Settings(tmp_path))
    yield registry
    registry.close()
    mailbox.close()


@pytest.fixture
def access(registry, tmp_path, clock):
    return AccessControl(registry, Settings(tmp_path, open=False), clock)


def subscription(owner="", ticket="tkt_right", id="s1"):
    return Subscription(id, "WHERE a = 1", "a", owner, tickets.digest(ticket), f"feed-{id}", 0.0, None)


def test_a_token_gets_in_by_its_secret_alone(access):
    token, secret = access.grant("desk", Role.SUBSCRIBER)
    assert access.principal(f"Bearer {secret}") == Principal("desk", Role.SUBSCRIBER, token.id)
    assert access.principal(f"bearer  {secret} ").token == token.id
    for wrong in (
        f"Bearer {secret}x",
        f"Bearer {token.id}",
        f"Bearer {token.secret}",  # what is kept of a secret is no secret
        f"Basic {secret}",
        "Bearer",
        "Bearer ",
        secret,
        "Bearer \ud800",
        "Bearer ' OR 1=1 --",
    ):
        with pytest.raises(Unauthorized) as refused:
            access.principal(wrong)
        assert refused.value.status == 401


def test_without_a_token_nobody_gets_in_unless_it_is_open(access, registry, tmp_path, clock):
    with pytest.raises(Unauthorized, match="a token is needed"):
        access.principal()
    open_to_all = AccessControl(registry, Settings(tmp_path), clock)
    assert open_to_all.principal() == Principal("", Role.ADMIN, "")
    _, secret = open_to_all.grant("desk", Role.SUBSCRIBER)
    assert open_to_all.principal(f"Bearer {secret}").name == "desk"
    with pytest.raises(Unauthorized):  # who names a token means it
        open_to_all.principal("Bearer tid_wrong")


def test_an_ended_token_is_refused_at_once(access, registry):
    token, secret = access.grant("desk", Role.ADMIN)
    session = access.log_in(secret)
    assert access.principal(session=session).token == token.id
    assert access.end(token.id)
    assert not access.end(token.id)
    for given in ({"authorization": f"Bearer {secret}"}, {"session": session}):
        with pytest.raises(Unauthorized):
            access.principal(**given)
    with pytest.raises(Unauthorized):
        access.log_in(secret)


def test_a_token_ended_by_another_process_is_refused_within_a_second(access, registry, monkeypatch):
    token, secret = access.grant("desk", Role.ADMIN)
    access.principal(f"Bearer {secret}")
    registry.end_token(token.id, 1.0)
    from tidings.service.subscriptions import access_control as module

    later = module.time.monotonic() + 1.0
    monkeypatch.setattr(module.time, "monotonic", lambda: later)
    with pytest.raises(Unauthorized):
        access.principal(f"Bearer {secret}")


def test_a_token_made_by_another_process_gets_in_at_once(access, registry):
    _, secret = grant(registry, "other", Role.PUBLISHER, 1.0)
    assert access.principal(f"Bearer {secret}").role is Role.PUBLISHER


def test_a_session_ends_and_cannot_be_forged(access, registry, tmp_path, clock):
    token, secret = access.grant("desk", Role.SUBSCRIBER)
    admin, _ = access.grant("chief", Role.ADMIN)
    session = access.log_in(secret)
    assert secret not in session
    id, until, nonce, signature = session.split(".")
    again = AccessControl(registry, Settings(tmp_path, open=False), clock)
    assert again.principal(session=session).token == token.id  # the key outlives the process
    for forged in (
        f"{admin.id}.{until}.{nonce}.{signature}",
        f"{id}.{int(until) + 1}.{nonce}.{signature}",
        f"{id}.{until}.{nonce[:-1]}.{signature}",
        f"{id}.{until}.{nonce}.{signature[:-1]}",
        f"{id}.{until}.{nonce}.{access.sign('csrf', f'{id}.{until}.{nonce}')}",  # signed for something else
        f"{id}.{until}.{nonce}",
        f"{id}.{until}",
        "..",
        "",
        "ä.ö.ü",
        "\ud800",
    ):
        with pytest.raises(Unauthorized):
            access.principal(session=forged)
    clock.now += SESSION + 1
    with pytest.raises(Unauthorized, match="session is over"):
        access.principal(session=session)


def test_a_session_that_was_logged_out_of_is_over_everywhere_and_for_good(access, registry, tmp_path, clock):
    token, secret = access.grant("desk", Role.SUBSCRIBER)
    session, other = access.log_in(secret), access.log_in(secret)
    stream = access.principal(session=session)
    assert access.is_good(stream)
    access.log_out("no session")
    access.log_out(session)
    restarted = AccessControl(registry, Settings(tmp_path, open=False), clock)
    for control in (access, restarted):
        with pytest.raises(Unauthorized, match="session is over"):
            control.principal(session=session)
        assert control.principal(session=other).token == token.id
        assert not control.is_good(stream)
    said = f"{token.id}.{int(clock.now + SESSION)}"  # as sessions were before they had a number of their own
    before = f"{said}.{access.sign('session', said)}"
    assert access.principal(session=before).token == token.id
    access.log_out(before)
    with pytest.raises(Unauthorized):
        access.principal(session=before)
    clock.now += SESSION + 1
    access.log_out(access.log_in(secret))
    assert len(registry.ended_sessions()) == 1  # those that would be over by now are forgotten


def test_the_key_is_its_owners_alone(tmp_path):
    key = read_key(tmp_path / "data" / "key")
    assert read_key(tmp_path / "data" / "key") == key
    assert stat.S_IMODE(os.stat(tmp_path / "data" / "key").st_mode) == 0o600
    assert os.listdir(tmp_path / "data") == ["key"]
    (tmp_path / "data" / "key").write_bytes(b"")
    with pytest.raises(TidingsError, match="does not hold a key; remove it"):
        read_key(tmp_path / "data" / "key")


def test_roles(access):
    of = {role: Principal(role, role, "t1") for role in Role}
    access.need(of[Role.ADMIN], Role.PUBLISHER)
    access.need(of[Role.ADMIN], Role.SUBSCRIBER)
    access.need(of[Role.PUBLISHER], Role.PUBLISHER)
    for principal, role in (
        (of[Role.PUBLISHER], Role.SUBSCRIBER),
        (of[Role.SUBSCRIBER], Role.PUBLISHER),
        (of[Role.SUBSCRIBER], Role.ADMIN),
    ):
        with pytest.raises(Forbidden, match=f"takes the role {role}"):
            access.need(principal, role)


def test_who_sees_and_changes_what(access):
    mine = subscription(owner="t1")
    owner, other = Principal("a", Role.SUBSCRIBER, "t1"), Principal("b", Role.SUBSCRIBER, "t2")
    admin, nobody = Principal("c", Role.ADMIN, "t3"), Principal("", Role.ADMIN)
    publisher = Principal("d", Role.PUBLISHER, "t4")
    seen = [access.may_see(one, mine) for one in (owner, other, admin, nobody, publisher)]
    assert seen == [True, False, True, True, False]
    assert [access.may_change(one, mine, None) for one in (owner, other, admin, nobody)] == [
        True,
        False,
        True,
        False,
    ]
    assert all(access.may_change(one, mine, "tkt_right") for one in (other, nobody, publisher))
    assert not access.may_change(other, mine, "tkt_wrong")


def test_one_without_an_owner_is_changed_by_its_ticket_alone(access):
    free = subscription(owner="")
    nobody = Principal("", Role.ADMIN)
    assert not access.may_change(nobody, free, None)
    assert not access.may_change(nobody, free, "")
    assert not access.may_change(Principal("x", Role.SUBSCRIBER, ""), free, None)
    assert not access.may_see(Principal("x", Role.SUBSCRIBER, ""), free)
    assert access.may_change(nobody, free, "tkt_right")


def test_a_ticket_fits_no_other_subscription(access):
    nobody = Principal("", Role.ADMIN)
    one, two = subscription(ticket="tkt_one"), subscription(ticket="tkt_two", id="s2")
    assert access.may_change(nobody, one, "tkt_one")
    assert not access.may_change(nobody, two, "tkt_one")
    assert not access.may_change(nobody, two, two.ticket)  # the hash, as it is stored


def test_wrong_tickets_are_slowed_down_and_the_right_one_is_not(access, clock):
    nobody = Principal("", Role.ADMIN)
    attacked, other = subscription(), subscription(id="s2")
    for _ in range(5):
        assert not access.may_change(nobody, attacked, "tkt_wrong")
    with pytest.raises(TooMany) as refused:
        access.may_change(nobody, attacked, "tkt_wrong")
    assert refused.value.status == 429
    assert refused.value.retry_after == pytest.approx(10)
    assert access.may_change(nobody, attacked, "tkt_right")
    assert not access.may_change(nobody, other, "tkt_wrong")
    clock.now += 10
    assert not access.may_change(nobody, attacked, "tkt_wrong")


def test_requests_are_limited_by_token(access, clock):
    made = [access.grant(name, Role.ADMIN, requests_per_second=2) for name in "ab"]
    one, two = (access.principal(f"Bearer {secret}") for _, secret in made)
    for _ in range(4):
        access.count_request(one)
    with pytest.raises(TooMany, match="too many requests; try again in 0.5 seconds"):
        access.count_request(one)
    access.count_request(two)
    clock.now += 0.5
    access.count_request(one)
    with pytest.raises(TooMany):
        access.count_request(one)
    for _ in range(1_000):
        access.count_request(Principal("", Role.ADMIN))


def test_a_large_batch_gets_in_and_is_waited_for_afterwards(access, clock):
    _, secret = access.grant("press", Role.PUBLISHER, events_per_second=100)
    press = access.principal(f"Bearer {secret}")
    access.count_events(press, 1_200)
    with pytest.raises(TooMany) as refused:
        access.count_events(press, 1)
    assert refused.value.retry_after == pytest.approx(10.01)
    clock.now += refused.value.retry_after
    access.count_events(press, 1)
    clock.now -= 3_600  # a clock that is set back gives nothing
    with pytest.raises(TooMany):
        access.count_events(press, 1)


def test_a_bucket_never_holds_more_than_its_burst():
    bucket = Bucket(10, 20, 0.0)
    assert sum(bucket.take(1, 1_000.0) == 0 for _ in range(30)) == 20


def test_quota_counts_what_lives(access, registry):
    _, secret = access.grant("desk", Role.SUBSCRIBER, subscriptions=2)
    desk = access.principal(f"Bearer {secret}")
    access.check_quota(desk, 2)
    with pytest.raises(OverQuota, match="has 0 subscriptions and may have 2"):
        access.check_quota(desk, 3)
    for id, state in (
        ("s1", State.ACTIVE),
        ("s2", State.PAUSED),
        ("s3", State.CANCELLED),
        ("s4", State.EXPIRED),
    ):
        registry.add(Subscription(id, "WHERE a = 1", "a", desk.token, "x", f"f{id}", 0.0, None, state))
    with pytest.raises(OverQuota) as refused:
        access.check_quota(desk)
    assert refused.value.status == 403
    access.check_quota(Principal("", Role.ADMIN), 1_000_000)
