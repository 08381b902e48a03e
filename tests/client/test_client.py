"""Both clients against a real service: the same calls, the same answers."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import tidings
from tests.service.conftest import Running, Served
from tidings import AsyncClient, Client, Event, Replica, Table
from tidings.client import ServiceError
from tidings.errors import EventError
from tidings.service.model import Role

TURTLE = "<http://example.org/1> <http://purl.org/rss/1.0/title> 'By turtle' ."


@pytest.fixture
def client(served: Served) -> Any:
    with Client(served.url) as client:
        yield client


def wait(client: Client, subscription: Any, count: int = 1) -> list[Any]:
    """The first of what it is told, by listening."""
    listening = client.listen(subscription, after=0)
    return [next(listening) for _ in range(count)]


def test_the_life_of_a_subscription(client: Client) -> None:
    one = client.subscribe("WHERE topic = 'life'", title="Life", valid_for=timedelta(hours=1))
    assert one.ticket
    assert one.ticket not in repr(one)
    assert isinstance(one.created, datetime)
    assert client.subscription(one.id).title == "Life"
    assert client.renew(one, "never").valid_until is None
    assert client.pause(one.id).state == "paused"  # the client has the ticket
    assert client.resume(one).state == "active"
    assert one.id in {other.id for other in client.subscriptions(search="life")}
    assert client.cancel(one).state == "cancelled"
    with pytest.raises(ServiceError, match="cancelled") as caught:
        client.renew(one)
    assert caught.value.status == 410


def test_edited_in_place(client: Client) -> None:
    begun = client.subscribe("WHERE topic = 'before'", title="Edited")
    edited = client.edit(begun, text="WHERE topic = 'after'", valid_for=timedelta(hours=1))
    assert (edited.id, edited.text, edited.title) == (begun.id, "WHERE topic = 'after'", "Edited")
    client.publish([{"topic": "before"}, {"topic": "after"}])
    (told,) = wait(client, begun)
    assert told.event["attributes"] == {"topic": "after"}
    assert client.edit(begun, webhook="https://hook.invalid/").webhook_secret
    with pytest.raises(ServiceError) as caught:
        client.edit(begun, title="Late", revision=begun.revision)
    assert caught.value.status == 412
    assert client.edit(begun, public=True, revision=client.subscription(begun.id).revision).public


def test_many_at_once_and_exported(client: Client) -> None:
    texts = [f"WHERE topic = 'bulk' AND n = {n}" for n in range(600)]
    items = client.subscribe_many([*texts, "WHERE a =", {"text": "WHERE a = 1", "valid_for": timedelta(1)}])
    assert [item.place for item in items if item.error] == ["item 601"]
    assert (items[600].line, items[600].column) == (1, 10)
    assert client.pause(items[599].id).state == "paused"  # the client has the ticket
    exported = {line["id"]: line for line in client.export()}
    assert exported[items[599].id]["state"] == "paused"
    assert exported[items[0].id]["text"] == texts[0]
    assert client.subscribe_many([exported[items[0].id]])[0].id != items[0].id
    with pytest.raises(tidings.SubscriptionError, match="a dict with text"):
        client.subscribe_many([{"text": object()}])


def test_another_client_needs_the_ticket(served: Served, client: Client) -> None:
    one = client.subscribe("WHERE a = 1")
    with Client(served.url) as other:
        with pytest.raises(ServiceError) as caught:
            other.cancel(one.id)
        assert caught.value.status == 403
        assert other.cancel(one.id, ticket=one.ticket).state == "cancelled"


def test_published_in_every_form_and_told(client: Client) -> None:
    one = client.subscribe("WHERE topic = 'forms'")
    assert client.publish({"topic": "forms", "id": "1", "source": "d"}).accepted == 1
    assert client.publish({"topic": "forms", "id": "1", "source": "d"}).duplicates == 1
    assert client.publish(Event("e", {"topic": "forms"}, id="2")).ids == ["2"]
    assert (
        client.publish(
            [Event("e", {"topic": "forms", "data": 5, "id": "x"}, id="3"), {"topic": "forms"}]
        ).accepted
        == 2
    )
    found = wait(client, one, 4)
    assert {notification.event["source"] for notification in found if notification.event} >= {"d", "e"}
    assert [each.number for each in client.notifications(one, after=0, page=2)] == [
        each.number for each in found
    ]
    assert [each.number for each in client.notifications(one)] == sorted(
        (each.number for each in found), reverse=True
    )
    assert client.explain(found[0]).verdict == "match"
    assert "topic" in str(client.explain(found[0]))
    pattern = client.subscribe("SELECT ?t WHERE (?item, rss:title, ?t)")
    assert client.publish(TURTLE, format="turtle", source="rdf").accepted == 1
    assert wait(client, pattern)[0].bindings == {"t": "By turtle"}
    data = Event("e", {"topic": "forms"}, id="4", data=b"\x00\x01", datacontenttype="application/x")
    assert client.publish(data).accepted == 1


def test_many_events_are_split(client: Client) -> None:
    receipt = client.publish({"n": n, "topic": "many"} for n in range(1_200))
    assert receipt.accepted == 1_200
    assert len(receipt.ids) == 1_200


def test_what_cannot_be_published(client: Client) -> None:
    with pytest.raises(EventError, match="format"):
        client.publish("text")
    with pytest.raises(EventError, match="no format"):
        client.publish("text", format="prose")
    with pytest.raises(EventError, match="not int"):
        client.publish([5])
    with pytest.raises(ServiceError) as caught:
        client.publish("no turtle", format="turtle")
    assert caught.value.status == 400


def test_checked_and_tried(client: Client) -> None:
    assert client.check("WHERE a = 1")
    wrong = client.check("WHERE a =")
    assert not wrong
    assert wrong.line == 1
    with pytest.raises(ServiceError) as caught:
        client.subscribe("WHERE a =")
    assert (caught.value.status, caught.value.line) == (422, 1)
    client.publish({"topic": "trial"})
    assert client.try_("WHERE topic = 'trial'").matched == 1


def test_sources(client: Client) -> None:
    url = "https://feeds.example.org/client.xml"
    assert client.follow(url, title="Feed").title == "Feed"
    assert url in {source.url for source in client.sources()}
    client.unfollow(url)
    assert url not in {source.url for source in client.sources()}
    with pytest.raises(ServiceError):
        client.follow("http://127.0.0.1/")


def test_listening_from_now_on(client: Client, served: Served) -> None:
    one = client.subscribe("WHERE topic = 'now'")
    client.publish({"topic": "now", "id": "before", "source": "n"})
    wait(client, one)
    heard: list[str] = []
    begun = threading.Event()

    def listen() -> None:
        with Client(served.url) as other:
            after = other.status().last_number
            begun.set()
            for notification in other.listen(one, after=after):
                assert notification.event is not None
                heard.append(notification.event["id"])
                if len(heard) == 2:
                    return

    thread = threading.Thread(target=listen)
    thread.start()
    begun.wait()
    client.publish({"topic": "now", "id": "1", "source": "n"})
    client.publish({"topic": "now", "id": "2", "source": "n"})
    thread.join(timeout=20)
    assert heard == ["1", "2"]


def test_listening_ends_with_the_subscription(client: Client) -> None:
    one = client.subscribe("WHERE topic = 'ends'")
    client.publish({"topic": "ends"})
    assert len(wait(client, one)) == 1
    client.cancel(one)
    assert [notification.kind for notification in client.listen(one, after=0)] == ["match"]
    other = client.subscribe("WHERE topic = 'ends too'")
    client.cancel(other)
    assert [notification.kind for notification in client.listen([one, other], after=0)] == ["match"]


def test_a_service_that_is_away() -> None:
    with Client("http://127.0.0.1:9") as client, pytest.raises(ServiceError, match="is it running"):
        client.subscribe("WHERE a = 1")
    with pytest.raises(ServiceError, match="no address"):
        Client("localhost:8750")


def test_with_a_token(guarded: Served) -> None:
    _, secret = guarded.service.access.grant("me", Role.ADMIN)
    with Client(guarded.url, token=secret) as client:
        one = client.subscribe("WHERE a = 1")
        assert one.id in {other.id for other in client.subscriptions()}
    with Client(guarded.url) as client, pytest.raises(ServiceError) as caught:
        client.subscribe("WHERE a = 1")
    assert caught.value.status == 401


def test_awaited(served: Served) -> None:
    async def all_of_it() -> None:
        async with AsyncClient(served.url) as client:
            one = await client.subscribe("WHERE topic = 'awaited'", valid_for=60)
            assert (await client.publish({"topic": "awaited", "id": "1", "source": "a"})).accepted == 1
            async for notification in client.listen(one, after=0):
                assert notification.event is not None
                assert notification.event["id"] == "1"
                break
            assert [notification.kind async for notification in client.notifications(one)] == ["match"]
            assert one.id in [other.id async for other in client.subscriptions(search="awaited")]
            assert (await client.edit(one, title="Edited")).title == "Edited"
            assert (await client.subscribe_many(["WHERE a = 1"]))[0].id
            assert one.id in {line["id"] for line in await client.export()}
            assert (await client.pause(one)).state == "paused"
            assert (await client.check("WHERE a = 1")).ok
            assert (await client.status()).version == tidings.__version__
            await client.cancel(one)
            assert [notification.kind async for notification in client.listen(one, after=0)] == ["match"]
            with pytest.raises(ServiceError):
                await client.resume(one)

    asyncio.run(all_of_it())


STOCKS = Table("stocks", {"symbol": "text", "per": "number", "since": "date"}, key=["symbol"])
DEAR = "SELECT * FROM stocks WHERE per > 50"


@pytest.fixture
def joining(tmp_path: Path, running: Callable[..., Running]) -> Iterator[Served]:
    """A service over a table."""
    tables = tmp_path / "tables.toml"
    columns = '{ symbol = "text", per = "number", since = "date" }'
    tables.write_text(f'[stocks]\ncolumns = {columns}\nkey = ["symbol"]')
    with running(tables=tables) as served:
        yield served


def stock(symbol: str, per: float) -> dict[str, Any]:
    return {"symbol": symbol, "per": per, "since": "2026-01-31"}


CHANGES = [
    Event.insert("stocks", stock("IBM", 60)),
    Event.insert("stocks", stock("SAP", 40)),
    Event.update("stocks", stock("SAP", 70)),
    Event.delete("stocks", {"symbol": "IBM"}),
]


def test_a_replica_applies_what_a_client_hears(joining: Served) -> None:
    replica = Replica(DEAR, [STOCKS])
    with Client(joining.url) as client:
        dear = client.subscribe(DEAR)
        heard = client.listen(dear, after=0)
        client.publish([CHANGES[0], Event.snapshot(dear.id)])
        assert [replica.apply(notification) for notification in islice(heard, 2)] == [False, True]
        client.publish(CHANGES[1:])
        assert [replica.apply(notification) for notification in islice(heard, 2)] == [True, True]
    assert replica.missing is None
    assert replica.rows("stocks") == [{"symbol": "SAP", "per": 70.0, "since": date(2026, 1, 31)}]


def test_a_payload_is_sent_once(tmp_path: Path, running: Callable[..., Running]) -> None:
    products = Table("products", {"id": "integer", "rating": "integer", "photo": "text"}, ["id"], ["photo"])
    columns = '{ id = "integer", rating = "integer", photo = "text" }'
    (tmp_path / "t.toml").write_text(f'[products]\ncolumns = {columns}\nkey = ["id"]\npayload = ["photo"]')
    text, photo = "SELECT * FROM products WHERE rating >= 6", "p" * 5_000
    rows = [{"id": 1, "rating": rating, "photo": photo} for rating in (7, 8, 9)]
    with running(tables=tmp_path / "t.toml") as served, Client(served.url) as client:
        replica, good = Replica(text, [products]), client.subscribe(text)
        stream = client.listen(good, after=0, payload="once")
        client.publish(Event.snapshot(good.id))
        assert replica.apply(next(stream))
        client.publish([Event.insert("products", rows[0])])
        client.publish([Event.update("products", row) for row in rows[1:]])
        heard = list(islice(stream, 3))
        assert sum(photo in str(one) for one in heard) == 1
        assert all(replica.apply(one) for one in heard)
        assert replica.missing is None
        assert replica.rows("products") == rows[2:]
        whole = list(client.notifications(good, after=0))
        assert sum(photo in str(one.changes) for one in whole) == 3
        page = served.http.get(f"/api/subscriptions/{good.id}/notifications?payload=once&after=0").json()
        assert str(page).count(photo) == 1

    async def same(url: str) -> None:
        async with AsyncClient(url) as client:
            stream = client.listen(good, after=0, payload="once")
            assert sum([photo in str(await anext(stream)) for _ in range(4)]) == 1
            await stream.aclose()

    with running(tables=tmp_path / "t.toml") as served:
        asyncio.run(same(served.url))


def test_tables_rows_and_snapshots(joining: Served) -> None:
    with Client(joining.url) as client:
        assert client.tables() == [STOCKS]
        client.publish(CHANGES[:2])
        dear = client.subscribe(DEAR)
        replica, asked = Replica(DEAR, client.tables()), client.snapshot(dear)
        for notification in client.listen(dear, after=0):
            if replica.apply(notification):
                assert notification.event["id"] == asked
                break
        assert [row["symbol"] for row in replica.rows("stocks")] == ["IBM"]
        assert sorted(row["symbol"] for row in client.rows("stocks")) == ["IBM", "SAP"]
        with pytest.raises(ServiceError, match="no table"):
            list(client.rows("none"))

    async def same() -> None:
        async with AsyncClient(joining.url) as client:
            assert await client.tables() == [STOCKS]
            assert len([row async for row in client.rows("stocks")]) == 2
            assert await client.snapshot(dear.id, ticket=dear.ticket) != asked

    asyncio.run(same())


def test_what_an_event_would_match(client: Client) -> None:
    plain = client.subscribe("WHERE topic = 'would match'")
    pattern = client.subscribe("SELECT ?t WHERE (?i, rss:title, ?t) AND ?t = 'By turtle'")
    for event in ({"topic": "would match"}, Event("s", {"topic": "would match"})):
        found = client.match(event)
        assert (found.matched, [match.subscription for match in found.items]) == (1, [plain.id])
    bound = [
        match.bindings
        for match in client.match(TURTLE, format="ttl").items
        if match.subscription == pattern.id
    ]
    assert bound == [{"t": "By turtle"}]

    async def same() -> None:
        async with AsyncClient(client.address) as other:
            assert (await other.match({"topic": "would match"})).matched == 1

    asyncio.run(same())
    assert list(client.notifications(plain)) == []


def test_a_replica_applies_what_an_async_client_hears(joining: Served) -> None:
    replica = Replica(DEAR, [STOCKS])

    async def follow() -> None:
        async with AsyncClient(joining.url) as client:
            dear = await client.subscribe(DEAR)
            await client.publish([CHANGES[0], Event.snapshot(dear.id)])
            async for notification in client.listen(dear, after=0):
                if replica.apply(notification):
                    return

    asyncio.run(follow())
    assert [row["symbol"] for row in replica.rows("stocks")] == ["IBM"]


def test_leaving_a_stream_early_raises_nothing(served: Served) -> None:
    faults: list[Any] = []

    async def leave(way: str) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append((way, context)))
        async with AsyncClient(served.url) as client:
            left = await client.subscribe(f"WHERE topic = 'left by {way}'")
            await client.publish([{"topic": f"left by {way}", "n": n} for n in range(3)])
            stream = client.listen(left, after=0)
            if way == "break":
                async for _ in stream:
                    break
                del stream
            elif way == "exception":
                with suppress(ValueError):
                    async for _ in stream:
                        raise ValueError(way)
            elif way == "cancellation":
                waiting = asyncio.create_task(anext(client.listen(left)))
                await asyncio.sleep(0.1)
                waiting.cancel()
            elif way == "closing":
                await anext(stream)

    for way in ("break", "exception", "cancellation", "closing"):
        asyncio.run(leave(way))
        gc.collect()
    assert faults == []


def test_both_have_the_same_calls() -> None:
    def public(kind: type) -> dict[str, list[str]]:
        return {
            name: list(inspect.signature(member).parameters)
            for name, member in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_")
        }

    assert public(Client) == public(AsyncClient)
    assert all(
        member.__doc__
        for name, member in inspect.getmembers(Client, inspect.isfunction)
        if name in ("publish", "listen", "subscribe")
    )
