"""Both clients against a real service: the same calls, the same answers."""

from __future__ import annotations

import asyncio
import inspect
import threading
from datetime import datetime, timedelta
from typing import Any

import pytest

import tidings
from tests.service.conftest import Served
from tidings import AsyncClient, Client, Event
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
            assert (await client.pause(one)).state == "paused"
            assert (await client.check("WHERE a = 1")).ok
            assert (await client.status()).version == tidings.__version__
            await client.cancel(one)
            assert [notification.kind async for notification in client.listen(one, after=0)] == ["match"]
            with pytest.raises(ServiceError):
                await client.resume(one)

    asyncio.run(all_of_it())


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
