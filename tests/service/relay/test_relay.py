"""A relay beside a centre, each a whole service over real HTTP: subscribers at the relay get what they would get at the
centre, and each event crosses the link once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import Running, Served


def until(what: Callable[[], Any], seconds: float = 15.0) -> Any:
    """The first value that is true."""
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return found


def relay_of(*upstream: Served, data: Path, **settings: Any) -> Running:
    urls = tuple(served.url for served in upstream)
    return Running(data=data, matching="process", upstream=urls, **settings)


def connected(relay: Served) -> bool:
    assert relay.service.upstream is not None
    return relay.service.upstream.states[0].status == "connected"


@contextmanager
def pair(tmp_path: Path) -> Iterator[tuple[Served, Served]]:
    with ExitStack() as stack:
        centre = stack.enter_context(Running(data=tmp_path / "centre"))
        relay = stack.enter_context(relay_of(centre, data=tmp_path / "relay"))
        until(lambda: connected(relay))
        yield centre, relay


def sent(centre: Served) -> int:
    """How many events have crossed the links of a service."""
    return sum(relay.messages for relay in centre.service.downstream.relays.all())


def test_each_event_crosses_the_link_once(tmp_path: Path) -> None:
    with pair(tmp_path) as (centre, relay):
        sport = [relay.subscribe(f"WHERE topic = 'sport' AND price < {price}")["id"] for price in (10, 20)]
        chess = relay.subscribe("WHERE topic = 'chess'")["id"]
        for id in range(5):
            centre.publish({"id": str(id), "source": "s", "topic": "sport", "price": 5})
            centre.publish({"id": str(id), "source": "other", "topic": "golf", "price": 5})
        for id in sport:
            items = relay.notifications(id, 5)
            assert [item["event"]["id"] for item in items] == ["4", "3", "2", "1", "0"]
        assert relay.http.get(f"/api/subscriptions/{chess}/notifications").json()["items"] == []
        assert sent(centre) == 5
        assert centre.http.get("/api/subscriptions").json()["items"] == []


def test_a_relay_goes_on_after_a_restart(tmp_path: Path) -> None:
    with Running(data=tmp_path / "centre") as centre:
        with relay_of(centre, data=tmp_path / "relay") as relay:
            until(lambda: connected(relay))
            id = relay.subscribe("WHERE topic = 'sport'")["id"]
            centre.publish({"id": "1", "source": "s", "topic": "sport"})
            relay.notifications(id, 1)
        centre.publish({"id": "2", "source": "s", "topic": "sport"})
        with relay_of(centre, data=tmp_path / "relay") as relay:
            items = relay.notifications(id, 2)
            assert [item["event"]["id"] for item in items] == ["2", "1"]


@pytest.mark.parametrize("bytes", [pytest.param(10, marks=pytest.mark.slow), 5_000])
def test_an_event_comes_whole(tmp_path: Path, bytes: int) -> None:
    with pair(tmp_path) as (centre, relay):
        id = relay.subscribe("WHERE topic = 'sport'")["id"]
        for number in range(3):
            event = {
                "specversion": "1.0",
                "id": str(number),
                "source": "s",
                "type": "t",
                "time": "2026-01-01T00:00:00Z",
                "topic": "sport",
                "datacontenttype": "text/plain",
                "data": "x" * bytes,
                "text": "é" * bytes,
            }
            centre.publish(event)
            relay.notifications(id, number + 1)
        stored, original = (
            service.mailbox.events_of(
                {*service.registry.ids(owner=None, states=["active"], limit=9), *extra}, 0, 99, 9
            )[0]
            for service, extra in (
                (relay.service, ()),
                (centre.service, centre.service.downstream.links()[0].ids),
            )
        )
        assert [event for _, event in stored] == [event for _, event in original]
        assert len(stored) == 3
        (below,) = centre.service.downstream.relays.all()
        assert below.stripped == (2 if bytes > 512 else 0)


def test_a_relay_takes_over_the_definitions_and_shows_its_links(tmp_path: Path) -> None:
    taxonomy = "<urn:Dog> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:Animal> ."
    with Running(data=tmp_path / "centre") as centre:
        turtle = {"Content-Type": "text/turtle"}
        assert centre.http.put("/api/taxonomy", content=taxonomy, headers=turtle).status_code == 200
        assert centre.http.put("/api/prefixes", json={"zoo": "urn:"}).status_code == 200
        network = {"edges": [{"source": "s", "target": "reader", "where": "age < 5"}]}
        assert centre.http.put("/api/networks/press", json=network).status_code == 200
        with relay_of(centre, data=tmp_path / "relay") as relay:
            until(lambda: connected(relay))
            id = relay.subscribe("WHERE (?x, rdf:type, ?c) AND ?c ISA zoo:Animal")["id"]
            via = relay.subscribe("WHERE age < 9 VIA press AT 'reader'")["id"]
            graph = "<urn:rex> a <urn:Dog> ."
            envelope = {"specversion": "1.0", "id": "1", "source": "s", "type": "t"}
            centre.publish({**envelope, "datacontenttype": "text/turtle", "data": graph})
            centre.publish({"id": "2", "source": "s", "age": 7}, {"id": "3", "source": "s", "age": 3})
            assert [item["event"]["id"] for item in relay.notifications(id, 1)] == ["1"]
            assert [item["event"]["id"] for item in relay.notifications(via, 1)] == ["3"]
            for served, arrow in ((centre, "↓"), (relay, "↑")):
                page = served.http.get("/status", headers={"Accept": "text/html"}).text
                assert arrow in page
                assert "✓ connected" in page
