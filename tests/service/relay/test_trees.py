"""Trees of relays: relays below relays, a second parent for when the first is gone, and no circles."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import Running, Served
from tests.service.relay.test_relay import connected, relay_of, sent, until
from tidings.service.relay import upstream


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "HELLO_EVERY", 0.3)


def event(number: int, **more: Any) -> dict[str, Any]:
    return {"id": str(number), "source": "s", "topic": "sport", **more}


def ids(served: Served, id: str, count: int) -> list[str]:
    return [item["event"]["id"] for item in reversed(served.notifications(id, count))]


def test_a_relay_below_a_relay(tmp_path: Path) -> None:
    with ExitStack() as stack:
        centre = stack.enter_context(Running(data=tmp_path / "centre"))
        middle = stack.enter_context(relay_of(centre, data=tmp_path / "middle"))
        leaves = [stack.enter_context(relay_of(middle, data=tmp_path / name)) for name in ("one", "two")]
        until(lambda: all(map(connected, (middle, *leaves))))
        made = [leaf.subscribe("WHERE topic = 'sport'")["id"] for leaf in leaves]
        for number in range(3):
            centre.publish(event(number))
        for leaf, id in zip(leaves, made, strict=True):
            assert ids(leaf, id, 3) == ["0", "1", "2"]
        assert (sent(centre), sent(middle)) == (3, 6)
        assert middle.http.get("/api/subscriptions").json()["items"] == []


@pytest.mark.slow
def test_the_second_parent_serves_while_the_first_is_gone(tmp_path: Path) -> None:
    with ExitStack() as stack:
        centre = stack.enter_context(Running(data=tmp_path / "centre"))
        standby = stack.enter_context(relay_of(centre, data=tmp_path / "standby"))
        first = relay_of(centre, data=tmp_path / "first")
        port = first.settings.port
        with first as served:
            until(lambda: connected(standby) and connected(served))
            leaf = stack.enter_context(relay_of(served, standby, data=tmp_path / "leaf"))
            until(lambda: connected(leaf))
            id = leaf.subscribe("WHERE topic = 'sport'")["id"]
            until(lambda: standby.service.own_filters.registered == 1)
            centre.publish(event(0))
            assert ids(leaf, id, 1) == ["0"]
        centre.publish(event(1))
        assert ids(leaf, id, 2) == ["0", "1"]
        assert leaf.service.upstream is not None
        states = leaf.service.upstream.states
        assert (states[0].status, states[1].status) == ("away", "connected")
        again = relay_of(centre, data=tmp_path / "first", port=port)
        again._listener.close()
        again._listener = socket.create_server(("127.0.0.1", port))
        stack.enter_context(again)
        until(lambda: states[0].status == "connected")
        assert states[1].status == "idle"
        centre.publish(event(2))
        assert ids(leaf, id, 3) == ["0", "1", "2"]


@pytest.mark.slow
def test_circles_are_refused(tmp_path: Path) -> None:
    with ExitStack() as stack:
        centre = Running(data=tmp_path / "centre")
        below = relay_of(_Address(centre.settings.address), data=tmp_path / "below")  # type: ignore[arg-type]
        object.__setattr__(centre.settings, "upstream", (below.settings.address,))
        object.__setattr__(centre.settings, "matching", "process")
        one, two = stack.enter_context(centre), stack.enter_context(below)
        found = until(
            lambda: [
                state.message
                for served in (one, two)
                if served.service.upstream is not None
                for state in served.service.upstream.states
                if state.status == "refuses"
            ]
        )
        assert any("gets its events from" in message for message in found)
        id = one.subscribe()["id"]
        one.publish(event(1))
        assert ids(one, id, 1) == ["1"], "it serves on"


class _Address:
    def __init__(self, url: str) -> None:
        self.url = url
