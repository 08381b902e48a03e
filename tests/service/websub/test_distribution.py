"""What the hub pushes, to whom, in which order, and what it does about callbacks that do not take it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.service.conftest import Served
from tests.service.store.batches import subscription
from tests.service.websub.callbacks import Callbacks, signature, until
from tests.service.websub.conftest import ALLOWED, new_feed
from tests.service.websub.test_hub import subscribed, subscribers
from tidings.feeds.addresses import AsyncGuard
from tidings.feeds.read import read_feed
from tidings.service.delivery.feed_documents import FeedDocuments
from tidings.service.delivery.hub import Hub
from tidings.service.delivery.receivers import Receivers
from tidings.service.model import HubSubscription, Notice, NotificationKind
from tidings.service.settings import Settings
from tidings.service.store.database import open_stores
from tidings.service.store.hub_subscriptions import HubSubscriptions
from tidings.service.websub import distribution as module
from tidings.service.websub.distribution import Distribution
from tidings.service.websub.hub import WebSubHub


@pytest.fixture
def at_once(pushing: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed push is repeated without a pause."""
    monkeypatch.setattr(pushing.service.websub_hub._distribution, "_pause", lambda failures, after: 0.0)


def publish(served: Served, word: str, *names: str) -> None:
    served.publish(*({"source": "s", "id": f"{word}-{name}", "topic": word, "title": name} for name in names))


def titles(body: bytes) -> list[str]:
    return [item["title"] for item in json.loads(body)["items"]]


@pytest.mark.parametrize("format", ["atom", "rss", "rdf", "json"])
def test_every_feed_names_the_hub(pushing: Served, format: str) -> None:
    topic, word = new_feed(pushing, format)
    publish(pushing, word, *(str(number) for number in range(51)))
    until(lambda: pushing.http.get(topic).links.get("next"))
    answer = pushing.http.get(topic)
    assert answer.links["hub"]["url"] == f"{pushing.url}/websub"
    assert answer.links["self"]["url"] == topic
    older = pushing.http.get(answer.links["next"]["url"])
    assert "hub" not in older.links, "a page that does not change is no topic"
    assert b"/websub" not in older.content


@pytest.mark.parametrize("format", ["atom", "rss", "rdf", "json"])
def test_the_whole_feed_is_pushed_with_its_type_and_links(
    pushing: Served, callbacks: Callbacks, format: str
) -> None:
    topic, word = new_feed(pushing, format)
    publish(pushing, word, "before")
    until(lambda: b"before" in pushing.http.get(topic).content)
    subscribed(pushing, topic, callbacks.url("/a?b=c"))
    publish(pushing, word, "news")
    until(lambda: callbacks.posted)
    [posted] = callbacks.posted
    now = pushing.http.get(topic)
    assert posted.body == now.content, "all that is at the topic's address"
    assert len(read_feed(posted.body, topic, posted.headers["content-type"])) == 2
    assert posted.headers["content-type"] == now.headers["content-type"]
    assert posted.headers["link"] == f'<{pushing.url}/websub>; rel="hub", <{topic}>; rel="self"'
    assert posted.path == "/a?b=c", "the callback as it was given"
    assert "x-hub-signature" not in posted.headers


def test_a_feed_is_signed_with_the_secret(pushing: Served, callbacks: Callbacks) -> None:
    topic, word = new_feed(pushing)
    subscribed(pushing, topic, callbacks.url("/a"), secret="sesame")
    publish(pushing, word, "news")
    until(lambda: callbacks.posted)
    [posted] = callbacks.posted
    assert posted.headers["x-hub-signature"] == signature("sha256", "sesame", posted.body)


def test_another_secret_counts_from_the_next_push(
    pushing: Served, callbacks: Callbacks, at_once: None
) -> None:
    topic, word = new_feed(pushing)
    subscribed(pushing, topic, callbacks.url("/a"), secret="old")
    store = pushing.service.websub_hub._store

    def renewed(posted: object) -> int:
        if len(callbacks.posted) > 1:
            return 204
        [found] = subscribers(pushing, callbacks.url("/a"))
        store.put(replace(found, secret="new"))
        return 500

    callbacks.accept = renewed
    publish(pushing, word, "news")
    until(lambda: len(callbacks.posted) == 2)
    old, new = callbacks.posted
    assert old.headers["x-hub-signature"] == signature("sha256", "old", old.body)
    assert new.headers["x-hub-signature"] == signature("sha256", "new", new.body)


@pytest.mark.parametrize("status", [302, 307, 400, 404, 500, 503])
def test_every_answer_but_success_and_410_is_a_failure(
    pushing: Served, callbacks: Callbacks, at_once: None, status: int
) -> None:
    topic, word = new_feed(pushing)
    subscribed(pushing, topic, callbacks.url("/a"))
    callbacks.headers = {"Location": callbacks.url("/elsewhere")}
    callbacks.accept = lambda posted: status if len(callbacks.posted) == 1 else 299
    publish(pushing, word, "news")
    until(lambda: len(callbacks.posted) == 2)
    time.sleep(0.05)
    assert [posted.path for posted in callbacks.posted] == ["/a", "/a"], "no redirect, and no third time"


def test_410_ends_a_subscription(pushing: Served, callbacks: Callbacks) -> None:
    topic, word = new_feed(pushing)
    subscribed(pushing, topic, callbacks.url("/a"))
    callbacks.accept = lambda posted: 410
    publish(pushing, word, "news")
    until(lambda: not subscribers(pushing, callbacks.url("/a")))
    assert len(callbacks.posted) == 1


def test_a_callback_that_fails_too_often_keeps_its_subscription(
    pushing: Served, callbacks: Callbacks, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TRIES", 3)
    topic, word = new_feed(pushing, "json")
    subscribed(pushing, topic, callbacks.url("/a"))
    callbacks.accept = lambda posted: 500
    publish(pushing, word, "one")
    until(lambda: len(callbacks.posted) == 3)
    until(lambda: not pushing.service.websub_hub._distribution._lanes)
    assert len(callbacks.posted) == 3, "it was given up"
    until(lambda: [one.error for one in subscribers(pushing, callbacks.url("/a"))] == ["the receiver answered 500 Internal Server Error"])  # fmt: skip
    callbacks.accept = lambda posted: 204
    publish(pushing, word, "two")
    until(lambda: len(callbacks.posted) == 4)
    assert titles(callbacks.posted[-1].body) == ["two", "one"]


def test_more_than_a_page_of_news_is_pushed_without_a_gap_and_in_order(
    pushing: Served, callbacks: Callbacks, at_once: None
) -> None:
    topic, word = new_feed(pushing, "json")
    subscribed(pushing, topic, callbacks.url("/a"))
    callbacks.accept = lambda posted: 503 if len(callbacks.posted) % 2 else 204
    names = [f"n{number:03d}" for number in range(130)]
    publish(pushing, word, *names)
    until(lambda: {name for posted in callbacks.posted for name in titles(posted.body)} == set(names))
    newest = [titles(posted.body)[0] for posted in callbacks.posted]
    assert newest == sorted(newest), "an older state never comes after a newer one"
    assert all(len(titles(posted.body)) <= 50 for posted in callbacks.posted)


# --- without a service


class Desk:
    """Stores, the feed of one subscription, and a hub that runs for a moment."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings(folder, url="http://pub.example", allowed=ALLOWED)
        self.registry, self.mailbox = open_stores(self.settings)
        self.registry.add(replace(subscription("a"), feed="secret"))
        self.store = HubSubscriptions(self.registry)
        self.documents = FeedDocuments(self.registry, self.mailbox, self.settings)
        self.rendered = 0

    def notify(self, name: str) -> None:
        self.mailbox.notify([Notice("a", NotificationKind.MISSED, name, time.time(), name)])

    def subscriber(self, callback: str, cursor: int = 0, until: float = 3_600.0) -> HubSubscription:
        made = HubSubscription(
            callback, "a", "secret", "json", callback, "127.0.0.1", None, time.time() + until, cursor
        )
        self.store.put(made)
        return made

    def run(self, done, during=lambda: None) -> None:
        """Runs the hub until something is so."""

        async def work() -> None:
            receivers = Receivers(AsyncGuard(ALLOWED))
            hub = Hub(self.mailbox, interval=0.01)
            hub.start()
            render = FeedDocuments._rendered

            def counted(*given):
                self.rendered += 1
                return render(self.documents, *given)

            self.documents._rendered = counted  # type: ignore[method-assign]
            spread = Distribution(self.store, self.documents, receivers, self.mailbox.last, between=0.0)
            websub = WebSubHub(self.store, self.documents, self.mailbox, hub, receivers, distribution=spread)
            stop = asyncio.Event()
            running = asyncio.create_task(websub.run(stop))
            await asyncio.sleep(0.02)
            during()
            end = time.monotonic() + 20
            while not done():
                assert time.monotonic() < end, "it did not come to that"
                await asyncio.sleep(0.005)
            stop.set()
            await running
            hub.stop()

        asyncio.run(work())


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with ExitStack() as stack:
        desk = Desk(tmp_path)
        stack.callback(desk.registry.close)
        stack.callback(desk.mailbox.close)
        yield desk


def test_a_restart_goes_on_where_it_was(desk: Desk, callbacks: Callbacks) -> None:
    desk.notify("one")
    desk.subscriber(callbacks.url("/new"), cursor=desk.mailbox.last())
    desk.subscriber(callbacks.url("/behind"))
    desk.subscriber(callbacks.url("/ended"), until=-1.0)
    desk.run(lambda: callbacks.posted)
    assert [posted.path for posted in callbacks.posted] == ["/behind"]
    desk.run(lambda: len(callbacks.posted) == 3, lambda: desk.notify("two"))
    assert {posted.path for posted in callbacks.posted[1:]} == {"/new", "/behind"}
    assert len(titles(callbacks.posted[-1].body)) == 2
    assert {one.cursor for one in desk.store.all(time.time())} == {desk.mailbox.last()}
    assert desk.store.all(0.0) == desk.store.all(time.time()), "the ended lease was forgotten"


@pytest.mark.parametrize("count", [150, pytest.param(1_000, marks=pytest.mark.slow)])
def test_many_subscribers_get_the_same_bytes_rendered_once(
    desk: Desk, callbacks: Callbacks, count: int
) -> None:
    for number in range(count):
        desk.subscriber(callbacks.url(f"/{number}"))
    desk.run(lambda: len(callbacks.posted) >= count, lambda: desk.notify("one"))
    assert {posted.path for posted in callbacks.posted} == {f"/{number}" for number in range(count)}
    assert len(callbacks.posted) == count
    assert len({posted.body for posted in callbacks.posted}) == 1
    assert desk.rendered <= 2, "for all of them, and once more if the news came while it was"


def test_a_slow_callback_does_not_delay_the_others(
    desk: Desk, callbacks: Callbacks, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        desk.subscriber(callbacks.url(f"/{number}"))
    gate = time.monotonic() + 0.5

    def slowly(posted) -> int:
        if posted.path == "/0":
            time.sleep(max(0.0, gate - time.monotonic()))
        return 204

    callbacks.accept = slowly
    desk.run(lambda: len(callbacks.posted) >= 10, lambda: desk.notify("one"))
    assert time.monotonic() < gate + 5
    assert {one.cursor for one in desk.store.all(time.time())} == {desk.mailbox.last()}
