"""Who is pushed which feed, in both databases."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import inspect, text

from tests.service.store.batches import subscription
from tidings.service.model import HubSubscription, State
from tidings.service.settings import Settings
from tidings.service.store.database import open_database, open_registry
from tidings.service.store.hub_subscriptions import HubSubscriptions
from tidings.service.store.registry import Registry

A = HubSubscription("1", "a", "feed-a", "atom", "http://c.example/1", "c.example", "s", 100.0, 7)


def test_a_renewal_keeps_how_far_it_is(registry: Registry) -> None:
    store = HubSubscriptions(registry)
    store.put(A)
    assert store.find("1", 99.0) == A
    moved = replace(A, cursor=9, failures=2, next_try=50.0, error="why")
    store.move([moved, replace(A, id="2")])
    store.put(replace(A, secret=None, until=200.0, cursor=0))
    assert store.all(0.0) == [replace(moved, secret=None, until=200.0)]
    store.remove("1")
    assert store.all(0.0) == []


def test_what_has_ended_is_not_found_and_forgotten(registry: Registry) -> None:
    store = HubSubscriptions(registry)
    store.put(A)
    store.put(replace(A, id="2", until=300.0, format="rss", host="d.example"))
    store.put(replace(A, id="3", until=300.0, key="other", subscription="b"))
    assert store.counts("feed-a", "c.example", 99.0) == (2, 2)
    assert store.counts("feed-a", "c.example", 100.0) == (1, 1)
    assert store.count(100.0) == 2
    assert [one.id for one in store.of(["a"], 100.0)] == ["2"]
    assert store.find("1", 100.0) is None
    store.forget_ended(100.0)
    assert sorted(one.id for one in store.all(0.0)) == ["2", "3"]
    assert store.of([], 0.0) == []


def test_feeds_that_are_gone(registry: Registry) -> None:
    store = HubSubscriptions(registry)
    registry.add(subscription("a"))
    registry.add(subscription("p", public=True))
    registry.add(subscription("q"))
    registry.add(subscription("c", state=State.CANCELLED))
    for id, of, key in (
        ("secret", "a", "feed-a"),
        ("public", "p", "p"),
        ("private", "q", "q"),
        ("changed", "a", "feed-before"),
        ("cancelled", "c", "feed-c"),
        ("lost", "nothing", "feed-x"),
    ):
        store.put(replace(A, id=id, subscription=of, key=key))
    gone = {one.id for one in store.without_feed(0.0)}
    assert gone == {"private", "changed", "cancelled", "lost"}
    assert store.without_feed(100.0) == []


def test_odd_letters_are_stored(registry: Registry) -> None:
    store = HubSubscriptions(registry)
    store.put(replace(A, secret="\ud800é\0", error="\0"))
    [found] = store.all(0.0)
    assert found.secret == "\ufffdé\ufffd"


def test_a_registry_from_before_the_hub_is_taken_over(empty: Settings) -> None:
    database = open_database(empty, "registry", new=True)
    with database.writing() as connection:
        database.create(connection, "0007")
        assert "hub_subscriptions" not in inspect(connection).get_table_names()
        connection.execute(
            text("INSERT INTO sources (url, title, owner, added) VALUES ('http://a/', '', '', 1)")
        )
    database.close()
    opened = open_registry(empty)
    assert [source.url for source in opened.sources()] == ["http://a/"]
    HubSubscriptions(opened).put(A)
    assert HubSubscriptions(opened).all(0.0) == [A]
    opened.close()
