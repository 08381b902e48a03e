"""The hub of a running service: who may subscribe to its feeds, and how their callbacks are asked. One test for each
requirement of WebSub that docs/howto/websub.md lists."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.service.conftest import Served
from tests.service.websub.callbacks import Callbacks, until
from tests.service.websub.conftest import new_feed, numbers
from tidings.service.model import HubSubscription
from tidings.service.subscriptions.access_control import TooMany
from tidings.service.websub import hub as module
from tidings.service.websub import hub_requests


def send(served: Served, topic: str, callback: str, mode: str = "subscribe", **more: str) -> httpx.Response:
    form = {"hub.mode": mode, "hub.topic": topic, "hub.callback": callback}
    return served.http.post(
        "/websub", data={**form, **{f"hub.{name}": value for name, value in more.items()}}
    )


def subscribers(served: Served, callback: str) -> list[HubSubscription]:
    found = served.service.websub_hub._store.all(served.service.clock())
    return [one for one in found if one.callback == callback]


def subscribed(served: Served, topic: str, callback: str, **more: str) -> None:
    """Subscribes, and waits until it is done."""
    before = len(subscribers(served, callback))
    assert send(served, topic, callback, **more).status_code == 202
    until(lambda: len(subscribers(served, callback)) > before)


def quiet(served: Served) -> None:
    """Waits until every request was verified."""
    until(lambda: not served.service.websub_hub._pending)


# --- requests


def test_a_request_with_mode_topic_and_callback_is_accepted(pushing: Served, callbacks: Callbacks) -> None:
    topic, _ = new_feed(pushing)
    answer = send(pushing, topic, callbacks.url("/a"))
    assert answer.status_code == 202
    until(lambda: subscribers(pushing, callbacks.url("/a")))
    [found] = subscribers(pushing, callbacks.url("/a"))
    assert (found.secret, found.callback) == (None, callbacks.url("/a"))
    assert topic.endswith(f"/feeds/{found.key}.{found.format}")


def test_a_request_with_a_secret_is_accepted(pushing: Served, callbacks: Callbacks) -> None:
    topic, _ = new_feed(pushing)
    subscribed(pushing, topic, callbacks.url("/a"), secret="s" * 199)
    assert [one.secret for one in subscribers(pushing, callbacks.url("/a"))] == ["s" * 199]
    answer = send(pushing, topic, callbacks.url("/b"), secret="é" * 100)
    assert (answer.status_code, "200 bytes" in answer.text) == (400, True)


def test_unknown_parameters_are_ignored(pushing: Served, callbacks: Callbacks) -> None:
    topic, _ = new_feed(pushing)
    subscribed(pushing, topic, callbacks.url("/a"), foo="bar", verify="sync")
    form = {"hub.mode": "subscribe", "hub.topic": topic, "hub.callback": callbacks.url("/b"), "x": "y"}
    assert pushing.http.post("/websub", data=form).status_code == 202


def test_the_answer_does_not_wait_for_the_verification(pushing: Served, callbacks: Callbacks) -> None:
    topic, _ = new_feed(pushing)
    go = time.monotonic() + 0.5

    def slowly(asked: Any) -> tuple[int, bytes]:
        time.sleep(max(0.0, go - time.monotonic()))
        return 404, b""

    callbacks.answer = slowly
    began = time.monotonic()
    assert send(pushing, topic, callbacks.url("/a")).status_code == 202
    assert time.monotonic() - began < 0.4
    until(lambda: callbacks.asked)
    quiet(pushing)
    assert subscribers(pushing, callbacks.url("/a")) == []


@pytest.mark.parametrize(
    ("form", "part"),
    [
        ({"hub.mode": None}, "hub.mode is missing"),
        ({"hub.topic": None}, "hub.topic is missing"),
        ({"hub.callback": None}, "hub.callback is missing"),
        ({"hub.mode": "publish"}, "subscribe or unsubscribe"),
        ({"hub.mode": ["subscribe", "unsubscribe"]}, "2 times"),
        ({"hub.topic": "http://elsewhere.example/feed"}, "not a feed of this service"),
        ({"hub.callback": "ftp://here.example/"}, "not an address on the web"),
        ({"hub.callback": "http://here.example/#part"}, "fragment"),
        ({"hub.callback": "http://here.example/ä b"}, "escape them"),
        ({"hub.callback": "http://here.example/" + "a" * 2_000}, "at most 2,000"),
        ({"hub.lease_seconds": "-5"}, "positive whole number"),
        ({"hub.lease_seconds": "0"}, "positive whole number"),
        ({"hub.lease_seconds": "soon"}, "positive whole number"),
    ],
)
def test_errors_of_a_request_are_plain_text(pushing: Served, form: dict[str, Any], part: str) -> None:
    topic = f"{pushing.url}/feeds/abc.atom"
    whole = {"hub.mode": "subscribe", "hub.topic": topic, "hub.callback": "http://here.example/", **form}
    answer = pushing.http.post("/websub", data={name: value for name, value in whole.items() if value})
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"].startswith("text/plain")
    assert part in answer.text


def test_other_bodies_than_forms_are_refused(pushing: Served) -> None:
    assert pushing.http.post("/websub", json={"hub.mode": "subscribe"}).status_code == 415
    wrong = {"Content-Type": hub_requests.FORM}
    assert pushing.http.post("/websub", content=b"hub.mode=%ff", headers=wrong).status_code == 400
    assert pushing.http.post("/websub", content=b"\xff\xfe", headers=wrong).status_code == 400
    assert pushing.http.post("/websub", content=b"a=1&" * 1_000, headers=wrong).status_code == 400


def test_escaped_letters_of_a_topic_are_decoded(pushing: Served, callbacks: Callbacks) -> None:
    topic, word = new_feed(pushing)
    escaped = topic[:-7] + f"%{ord(topic[-7]):02x}" + topic[-6:]
    assert escaped != topic
    subscribed(pushing, escaped, callbacks.url("/a"))
    assert callbacks.asked[0].query["hub.topic"] == [escaped], "as it was given"
    subscribed_again = send(pushing, topic, callbacks.url("/%61"))
    assert subscribed_again.status_code == 202
    quiet(pushing)
    found = pushing.service.websub_hub._store.all(pushing.service.clock())
    assert len([one for one in found if topic.endswith(f"{one.key}.atom")]) == 1, "the same feed and callback"
    pushing.publish({"source": "s", "topic": word})
    until(lambda: callbacks.posted)


# --- verification


def test_a_verification_has_mode_topic_challenge_and_lease(pushing: Served, callbacks: Callbacks) -> None:
    topic, _ = new_feed(pushing)
    subscribed(pushing, topic, callbacks.url("/a"), lease_seconds="3600")
    [asked] = callbacks.asked
    assert asked.query["hub.mode"] == ["subscribe"]
    assert asked.query["hub.topic"] == [topic]
    assert asked.query["hub.lease_seconds"] == ["3600"]
    assert len(asked.query["hub.challenge"][0]) > 30
    [found] = subscribers(pushing, callbacks.url("/a"))
    assert found.until == pytest.approx(time.time() + 3600, abs=30)
    send(pushing, topic, callbacks.url("/a"), lease_seconds="3600")
    until(lambda: len(callbacks.asked) == 2)
    assert callbacks.asked[1].query["hub.challenge"] != asked.query["hub.challenge"], "used once"


def test_the_query_of_a_callback_is_kept(pushing: Served, callbacks: Callbacks) -> None:
    topic, word = new_feed(pushing)
    subscribed(pushing, topic, callbacks.url("/a?foo=bar&hub.mode=mine&red=fish"))
    assert callbacks.asked[0].raw.startswith("foo=bar&hub.mode=mine&red=fish&hub.mode=subscribe&hub.topic=")
    pushing.publish({"source": "s", "topic": word})
    until(lambda: callbacks.posted)
    assert callbacks.posted[0].path == "/a?foo=bar&hub.mode=mine&red=fish"


@pytest.mark.parametrize(
    "answer", [(404, None), (500, None), (302, None), (200, b"something else"), (200, b""), (200, b"too")]
)
def test_a_verification_that_fails_changes_nothing(
    pushing: Served, callbacks: Callbacks, answer: tuple[int, bytes | None]
) -> None:
    topic, _ = new_feed(pushing)
    status, body = answer
    callbacks.headers = {"Location": callbacks.url("/elsewhere")} if status == 302 else {}

    def wrongly(asked: Any) -> tuple[int, bytes]:
        challenge = asked.query["hub.challenge"][0].encode()
        return status, challenge if body is None else challenge + body if body == b"too" else body

    callbacks.answer = wrongly
    assert send(pushing, topic, callbacks.url("/a")).status_code == 202
    until(lambda: callbacks.asked)
    quiet(pushing)
    assert subscribers(pushing, callbacks.url("/a")) == []
    assert callbacks.asked_at("/elsewhere") == [], "no redirect is followed"


def test_a_subscription_is_left_alone_by_requests_that_are_not_verified(
    pushing: Served, callbacks: Callbacks
) -> None:
    topic, _ = new_feed(pushing)
    subscribed(pushing, topic, callbacks.url("/a"), secret="first")
    before = subscribers(pushing, callbacks.url("/a"))
    callbacks.answer = lambda asked: (404, b"")
    send(pushing, topic, callbacks.url("/a"), secret="second")
    send(pushing, topic, callbacks.url("/a"), mode="unsubscribe")
    until(lambda: len(callbacks.asked) == 3)
    quiet(pushing)
    assert subscribers(pushing, callbacks.url("/a")) == before


def test_an_active_subscription_can_be_requested_again(pushing: Served, callbacks: Callbacks) -> None:
    topic, _ = new_feed(pushing)
    subscribed(pushing, topic, callbacks.url("/a"), secret="first", lease_seconds="100")
    send(pushing, topic, callbacks.url("/a"), lease_seconds="5000")
    until(lambda: [one.secret for one in subscribers(pushing, callbacks.url("/a"))] == [None])
    [found] = subscribers(pushing, callbacks.url("/a"))
    assert found.until == pytest.approx(time.time() + 5000, abs=30)


def test_unsubscribing_is_verified_and_ends_it(pushing: Served, callbacks: Callbacks) -> None:
    topic, _ = new_feed(pushing)
    subscribed(pushing, topic, callbacks.url("/a"))
    assert (
        send(pushing, topic, callbacks.url("/a"), mode="unsubscribe", lease_seconds="no number").status_code
        == 202
    )
    until(lambda: not subscribers(pushing, callbacks.url("/a")))
    assert callbacks.asked[-1].query["hub.mode"] == ["unsubscribe"]
    assert "hub.lease_seconds" not in callbacks.asked[-1].query


def test_leases_end(pushing: Served, callbacks: Callbacks, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, word = new_feed(pushing)
    for given, granted in (("9" * 30, hub_requests.LONGEST_LEASE), ("1", hub_requests.SHORTEST_LEASE)):
        callbacks.asked.clear()
        send(pushing, topic, callbacks.url("/a"), lease_seconds=given)
        until(lambda: callbacks.asked)
        assert callbacks.asked[0].query["hub.lease_seconds"] == [str(granted)], "none is for ever"
    quiet(pushing)
    store, hub = pushing.service.websub_hub._store, pushing.service.websub_hub
    [found] = subscribers(pushing, callbacks.url("/a"))
    store.put(replace(found, until=time.time() - 1))
    pushing.publish({"source": "s", "topic": word})
    time.sleep(0.3)
    assert callbacks.posted == []
    monkeypatch.setattr(module, "SWEEP", 0.0)
    hub._call({})
    until(lambda: store.find(found.id, 0.0) is None)


# --- denial


def test_a_feed_that_does_not_exist_is_denied_like_one_that_is_not_public(
    pushing: Served, callbacks: Callbacks
) -> None:
    private = pushing.subscribe("WHERE topic = 'private'")
    topics = [f"{pushing.url}/feeds/{key}.atom" for key in (private["id"], "s" + "a" * 20)]
    answers = [send(pushing, topic, callbacks.url(f"/{i}")) for i, topic in enumerate(topics)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].content == answers[1].content
    until(lambda: len(callbacks.asked) == 2)
    for i, topic in enumerate(topics):
        [asked] = callbacks.asked_at(f"/{i}")
        expected = {"hub.mode": ["denied"], "hub.topic": [topic], "hub.reason": ["there is no such feed"]}
        assert asked.query == expected


def test_the_end_of_a_feed_is_a_denial(
    pushing: Served, callbacks: Callbacks, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = f"word{next(numbers)}"
    made = pushing.subscribe(f"WHERE topic = '{word}'", public=True)
    cancelled = pushing.subscribe(f"WHERE topic = '{word}'")
    by_id, by_secret = made["feeds"]["atom"], cancelled["feeds"]["rss2"]
    assert made["id"] in by_id
    subscribed(pushing, by_id, callbacks.url("/a"))
    subscribed(pushing, by_secret, callbacks.url("/b"))
    ticket = {"Tidings-Ticket": made["ticket"]}
    assert pushing.http.patch(
        f"/api/subscriptions/{made['id']}", json={"public": False}, headers=ticket
    ).is_success
    ticket = {"Tidings-Ticket": cancelled["ticket"]}
    assert pushing.http.delete(f"/api/subscriptions/{cancelled['id']}", headers=ticket).is_success
    monkeypatch.setattr(module, "SWEEP", 0.0)
    # A sweep begins before the last one has ended, so a callback may be denied more than once.
    until(lambda: {asked.query["hub.topic"][0] for asked in callbacks.asked[2:]} == {by_id, by_secret})
    until(lambda: not subscribers(pushing, callbacks.url("/a")))
    until(lambda: not subscribers(pushing, callbacks.url("/b")))
    denied = {asked.query["hub.topic"][0]: asked.query for asked in callbacks.asked[2:]}
    assert denied[by_id]["hub.mode"] == ["denied"]


# --- limits


def test_a_host_is_asked_only_so_often(pushing: Served) -> None:
    access = pushing.service.access
    for _ in range(200):
        access.count_verification("victim.example")
    with pytest.raises(TooMany, match="for this host"):
        access.count_verification("victim.example")
    access.count_verification("other.example")
    topic, _ = new_feed(pushing)
    answer = send(pushing, topic, "http://victim.example/x")
    assert (answer.status_code, int(answer.headers["retry-after"]) >= 1) == (429, True)


def test_subscribers_of_a_feed_and_of_a_host_are_limited(
    pushing: Served, callbacks: Callbacks, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, _ = new_feed(pushing)
    subscribed(pushing, topic, callbacks.url("/a"))
    monkeypatch.setattr(module, "OF_FEED", 1)
    send(pushing, topic.replace(".atom", ".rss"), callbacks.url("/b"))
    until(lambda: callbacks.asked_at("/b"))
    assert callbacks.asked_at("/b")[0].query["hub.reason"] == ["the feed has 1 subscribers already"]
    send(pushing, topic, callbacks.url("/a"), secret="new")
    until(
        lambda: [one.secret for one in subscribers(pushing, callbacks.url("/a"))] == ["new"]
    )  # it is no more than before
    monkeypatch.setattr(module, "OF_FEED", 100)
    monkeypatch.setattr(module, "OF_HOST", 1)
    send(pushing, topic, callbacks.url("/c"))
    until(lambda: callbacks.asked_at("/c"))
    assert "this host" in callbacks.asked_at("/c")[0].query["hub.reason"][0]


def test_too_many_waiting_requests_are_refused(
    pushing: Served, callbacks: Callbacks, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, _ = new_feed(pushing)
    monkeypatch.setattr(module, "PENDING", 0)
    assert send(pushing, topic, callbacks.url("/a")).status_code == 429
