"""A service that follows feeds of a publisher with a hub: what it asks the hub for, and what it answers at its callbacks.
One test for each requirement of WebSub that docs/howto/websub.md lists."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator

import pytest

from tests.service.conftest import Served
from tests.service.websub.callbacks import until
from tests.service.websub.conftest import ALLOWED, source_of
from tests.service.websub.publisher import Publisher, Request, publishing, rss
from tidings.feeds.addresses import guarded_client
from tidings.feeds.push_states import Push, PushState
from tidings.service.websub import callbacks as callbacks_module
from tidings.service.websub import subscriber as module
from tidings.service.websub.hub_asking import ask


@pytest.fixture
def publisher(following: Served) -> Iterator[Publisher]:
    with publishing() as publisher:
        yield publisher
        for source in following.http.get("/api/sources", params={"limit": 200}).json()["items"]:
            following.http.delete("/api/sources", params={"url": source["url"]})


def follow(served: Served, url: str) -> None:
    assert served.http.post("/api/sources", json={"url": url}).status_code == 201


def followed(served: Served, publisher: Publisher, path: str = "/feed", *names: str) -> tuple[str, Request]:
    """A feed that the hub pushes from now on."""
    url = publisher.serve(path, *names)
    count = len(publisher.requests)
    follow(served, url)
    request = publisher.request(count)
    assert publisher.verify(request).text == "c-123"
    until(lambda: _fetches(publisher, path) == 2)  # once more after the verification
    until(lambda: _due_in(served, url) > 3_600)
    return url, request


def state(served: Served, url: str) -> list[PushState]:
    with served.service.websub_subscriber.states() as states:
        return [push.state for push in states.of([url])]


def events(served: Served, url: str) -> list[str]:
    return [event.id for event in served.service.log_writer.recent.events() if event.source == url]


def pushes(served: Served, outcome: str) -> float:
    found = served.service.metrics.registry.get_sample_value(
        "tidings_websub_pushes_total", {"outcome": outcome}
    )
    return found or 0.0


def _fetches(publisher: Publisher, path: str) -> int:
    return publisher.gets.count(path)


def _due_in(served: Served, url: str) -> float:
    source = served.service.registry.source(url)
    assert source is not None
    return (served.service.feed_poller.health([source])[0].due or 0.0) - time.time()


def change(served: Served, url: str, **values: object) -> None:
    """Changes the active subscription of a feed, and has it looked at."""
    subscriber = served.service.websub_subscriber
    with subscriber.states() as states:
        for push in states.of([url]):
            states.change(push.key, [PushState.ACTIVE, PushState.ASKED], **values)
    subscriber.wake()


# --- requests


def test_a_request_is_a_form_with_callback_mode_and_topic(following: Served, publisher: Publisher) -> None:
    follow(following, publisher.serve("/feed", "1", topic="/topic?a=%C3%A4&b=c+d"))
    follow(following, publisher.serve("/other", "1"))
    request, other = publisher.request(0), publisher.request(1)
    if "other" in request.form["hub.topic"]:
        request, other = other, request
    assert request.content_type == "application/x-www-form-urlencoded"
    assert request.form["hub.mode"] == "subscribe"
    assert request.form["hub.topic"] == publisher.url("/topic?a=%C3%A4&b=c+d"), (
        "the address that it calls self"
    )
    assert request.callback.startswith(f"{following.url}/websub/callbacks/")
    assert len(request.callback.rpartition("/")[2]) > 40
    assert request.callback != other.callback
    assert int(request.form["hub.lease_seconds"]) == module.LEASE
    assert 40 < len(request.form["hub.secret"].encode()) < 200
    assert request.form["hub.secret"] != other.form["hub.secret"]


@pytest.mark.parametrize("status", [307, 308])
def test_a_hub_may_redirect_to_another(following: Served, publisher: Publisher, status: int) -> None:
    publisher.answers["/hub"] = status, {"Location": "/better"}
    follow(following, publisher.serve("/feed", "1"))
    first, second = publisher.request(0), publisher.request(1)
    assert (first.path, second.path) == ("/hub", "/better")
    assert first.form == second.form
    assert publisher.verify(second).status_code == 200


def test_a_hub_that_refuses_is_asked_again_later(following: Served, publisher: Publisher) -> None:
    publisher.answers["/hub"] = 500, {}
    url = publisher.serve("/feed", "1", hubs=("/hub", "/second"))
    follow(following, url)
    publisher.request()
    until(lambda: state(following, url) == [PushState.FAILED])
    source = source_of(following, url) or {}
    assert (source["hub"], source["push_note"]) == (None, f"the hub {publisher.url('/hub')} answered 500")
    assert _due_in(following, url) < 901, "it is polled as before"
    with following.service.websub_subscriber.states() as states:
        [push] = states.of([url])
        states.change(push.key, [PushState.FAILED], due=time.time() - 1)
    following.service.websub_subscriber.wake()
    assert publisher.request(1).path == "/second", "the next hub that the feed names"
    until(lambda: state(following, url) == [PushState.ASKED])


def test_hubs_inside_are_not_asked(publisher: Publisher) -> None:
    push = Push("key", "u", publisher.url("/hub"), "t", "s", PushState.ASKED, 0.0)
    with guarded_client(()) as client:
        failure = ask(client, push, "http://back.example/", 60)
    assert failure is not None
    assert "this machine, where this service makes no requests" in failure
    publisher.answers["/away"] = 307, {"Location": "http://10.0.0.1/hub"}
    with guarded_client(ALLOWED) as client:
        push = Push("key", "u", publisher.url("/away"), "t", "s", PushState.ASKED, 0.0)
        assert "a private network" in str(ask(client, push, "http://back.example/", 60))
    assert [request.path for request in publisher.requests] == ["/away"]


# --- verification


def test_a_challenge_is_echoed_for_what_was_asked_for(following: Served, publisher: Publisher) -> None:
    url = publisher.serve("/feed", "1")
    follow(following, url)
    answer = publisher.verify(publisher.request(), challenge="<script>ä b</script>", lease_seconds="1000")
    assert (answer.status_code, answer.text) == (200, "<script>ä b</script>")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    until(lambda: _due_in(following, url) > 3_600)
    source = source_of(following, url) or {}
    assert (source["hub"], source["push_note"]) == (publisher.url("/hub"), None)
    assert b"\ntidings_websub_pushed_feeds 1.0\n" in following.service.metrics.text()
    page = following.http.get("/sources").text
    assert f"Pushed by the hub {publisher.url('/hub')}, until " in page
    with following.service.websub_subscriber.states() as states:
        [push] = states.of([url])
    assert push.until == pytest.approx(time.time() + 1000, abs=20), "as the hub says"
    assert push.due == pytest.approx(time.time() + 800, abs=20)
    again = publisher.verify(publisher.request())
    assert (again.status_code, again.text) == (200, "c-123"), "a hub may ask again whether it is still wanted"


def test_what_was_not_asked_for_is_not_found(following: Served, publisher: Publisher) -> None:
    url = publisher.serve("/feed", "1")
    follow(following, url)
    request = publisher.request()
    for changed in (
        *({"topic": topic} for topic in ("http://other.example/", "", request.form["hub.topic"] + "#")),
        *({"mode": mode} for mode in ("unsubscribe", "other", "")),
        *({"challenge": challenge} for challenge in ("", "c" * 1_001, "\x00\x01")),
    ):
        assert publisher.verify(request, **changed).status_code == 404, changed
    assert state(following, url) == [PushState.ASKED]
    unknown = request._replace(form={**request.form, "hub.callback": request.callback[:-3] + "abc"})
    assert publisher.verify(unknown).status_code == 404


def test_a_denial_leaves_polling(following: Served, publisher: Publisher) -> None:
    url, request = followed(following, publisher)
    answer = publisher.verify(request, mode="denied", reason="no\nmore", challenge="")
    assert answer.status_code == 200
    until(lambda: _fetches(publisher, "/feed") == 3)
    until(lambda: _due_in(following, url) < 901)
    source = source_of(following, url) or {}
    assert source["hub"] is None
    assert source["push_note"] == f"the hub {publisher.url('/hub')} denied it: no more"
    assert "Polled: the hub" in following.http.get("/sources").text
    assert publisher.push(request, rss("2")).status_code == 410
    following.service.websub_subscriber.wake()
    time.sleep(0.15)
    assert len(publisher.requests) == 1, "it is not asked again for what it denied"
    publisher.serve("/feed", "1", "2", topic="/elsewhere")
    following.service.feed_poller.fetch_now(url)
    assert publisher.request(1).form["hub.topic"] == publisher.url("/elsewhere")


# --- leases


def test_a_lease_is_renewed_before_its_end(
    following: Served, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHECK", 0.1)
    url, request = followed(following, publisher)
    change(following, url, due=time.time() - 1)
    renewal = publisher.request(1)
    assert _fetches(publisher, "/feed") == 3, "the feed was fetched before: it may have moved"
    assert renewal.form["hub.mode"] == "subscribe"
    assert renewal.form["hub.topic"] == request.form["hub.topic"]
    assert renewal.callback != request.callback
    assert renewal.form["hub.secret"] != request.form["hub.secret"]
    assert publisher.push(request, rss("while", "1")).status_code == 202, "the old one still counts"
    until(lambda: len(events(following, url)) == 2)
    assert publisher.verify(renewal).status_code == 200
    ending = publisher.request(2)
    assert (ending.form["hub.mode"], ending.callback) == ("unsubscribe", request.callback)
    assert publisher.verify(ending).text == "c-123"
    until(lambda: state(following, url) == [PushState.ACTIVE])
    assert publisher.push(request, rss("late")).status_code == 410


def test_a_lease_that_ends_leaves_polling(following: Served, publisher: Publisher) -> None:
    url, request = followed(following, publisher)
    change(following, url, until=time.time() - 1)
    again = publisher.request(1)  # as the feed still names its hub
    assert again.callback != request.callback
    until(lambda: _due_in(following, url) < 901)
    assert (source_of(following, url) or {})["hub"] is None


def test_a_hub_that_does_not_verify_is_given_up_for_a_while(following: Served, publisher: Publisher) -> None:
    url = publisher.serve("/feed", "1")
    follow(following, url)
    request = publisher.request()
    change(following, url, due=time.time() - 1)
    until(lambda: state(following, url) == [PushState.FAILED])
    assert (source_of(following, url) or {})[
        "push_note"
    ] == f"the hub {publisher.url('/hub')} did not verify it"
    assert publisher.verify(request).status_code == 404, "it is too late"


def test_a_feed_that_moves_is_asked_for_at_its_new_topic_and_hub(
    following: Served, publisher: Publisher
) -> None:
    url, request = followed(following, publisher)
    publisher.serve("/new", "1", "2", hubs=("/new-hub",))
    publisher.feeds["/feed"] = 301, {"Location": "/new"}, b""
    following.service.feed_poller.fetch_now(url)
    moved = publisher.request(1)
    assert (moved.path, moved.form["hub.topic"]) == ("/new-hub", publisher.url("/new"))
    assert publisher.push(request, rss("3", "1")).status_code == 202, "until the new hub has verified"
    publisher.verify(moved)
    ending = publisher.request(2)
    assert (ending.path, ending.form["hub.mode"], ending.callback) == (
        "/hub",
        "unsubscribe",
        request.callback,
    )


def test_a_feed_that_is_not_followed_any_more_is_unsubscribed(
    following: Served, publisher: Publisher
) -> None:
    url, request = followed(following, publisher)
    following.http.delete("/api/sources", params={"url": url})
    ending = publisher.request(1)
    assert ending.form == {
        "hub.mode": "unsubscribe",
        "hub.callback": request.callback,
        "hub.topic": request.form["hub.topic"],
    }
    assert publisher.push(request, rss("2")).status_code == 410
    assert publisher.verify(ending, lease_seconds="77").text == "c-123"
    until(lambda: state(following, url) == [])
    assert publisher.verify(ending).status_code == 404


# --- pushed feeds


def test_a_pushed_feed_is_acknowledged_and_its_items_are_events_once(
    following: Served, publisher: Publisher
) -> None:
    url, request = followed(following, publisher, "/feed", "1")
    assert publisher.push(request, rss("2", "1")).is_success
    until(lambda: len(events(following, url)) == 2)
    assert publisher.push(request, rss("2", "1")).is_success
    assert publisher.push(request, rss("3", "2")).is_success
    until(lambda: len(events(following, url)) == 3)
    publisher.serve("/feed", "3", "2", "1")
    following.service.feed_poller.fetch_now(url)
    until(lambda: _fetches(publisher, "/feed") == 3)
    until(lambda: (source_of(following, url) or {})["new_items"] == 0)
    assert len(events(following, url)) == len(set(events(following, url))) == 3
    source = source_of(following, url) or {}
    assert source["items"] == 3
    assert source["pushed"] is not None


def test_link_headers_do_not_identify_a_pushed_feed(following: Served, publisher: Publisher) -> None:
    url, request = followed(following, publisher)
    links = '<http://elsewhere.example/>; rel="self", <http://other.example/>; rel="hub"'
    assert publisher.push(request, rss("2"), Link=links).is_success
    until(lambda: len(events(following, url)) == 1)
    assert state(following, url) == [PushState.ACTIVE]


def test_signatures_of_every_method_are_checked(following: Served, publisher: Publisher) -> None:
    url, request = followed(following, publisher)
    wrong = request._replace(form={**request.form, "hub.secret": "guessed"})
    before = pushes(following, "unsigned")
    for method in ("sha1", "sha256", "sha384", "sha512"):
        assert publisher.push(wrong, rss(f"forged {method}"), method).is_success
        assert publisher.push(request, rss(f"good {method}"), method).is_success
    until(lambda: len(events(following, url)) == 4)
    assert pushes(following, "unsigned") == before + 4
    assert "forged" not in str(following.service.log_writer.recent.events())


def test_a_feed_without_a_good_signature_is_dropped(following: Served, publisher: Publisher) -> None:
    url, request = followed(following, publisher)
    before = pushes(following, "unsigned")
    headers = (None, "", "sha256=", "sha256", "md5=00", "sha256=é", "crc=", "sha224=ab", "=")
    for header in headers:
        given = {} if header is None else {"X-Hub-Signature": header.encode("latin-1")}
        answer = publisher.http.post(request.callback, content=rss("forged"), headers=given)  # type: ignore[arg-type]
        assert answer.is_success, "a guess learns nothing"
    assert pushes(following, "unsigned") == before + len(headers)
    assert events(following, url) == []


def test_a_feed_that_cannot_be_read_is_dropped(following: Served, publisher: Publisher) -> None:
    url, request = followed(following, publisher)
    before = pushes(following, "unreadable")
    assert publisher.push(request, b"<html>").is_success
    until(lambda: pushes(following, "unreadable") == before + 1)
    assert publisher.push(request, rss("2")).is_success
    until(lambda: len(events(following, url)) == 1)


def test_bodies_are_bounded(following: Served, publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    _, request = followed(following, publisher)
    connection = http.client.HTTPConnection("127.0.0.1", following.service.settings.port, timeout=10)
    connection.putrequest("POST", request.callback.partition(following.url)[2])
    connection.putheader("Content-Length", str(following.service.settings.max_body + 1))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()
    monkeypatch.setattr(callbacks_module, "MOST_WAITING", 0)
    monkeypatch.setattr(following.service.websub_callbacks, "_waiting", 1)
    answer = publisher.push(request, rss("2"))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "30"), "the hub sends it again"


def test_what_the_log_does_not_take_is_fetched_later(
    following: Served, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, request = followed(following, publisher)
    publisher.serve("/feed", "2")

    def refuse(events: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(following.service.websub_callbacks, "_append", refuse)
    assert publisher.push(request, rss("2")).is_success
    until(lambda: len(events(following, url)) == 1)
    assert _fetches(publisher, "/feed") == 3
