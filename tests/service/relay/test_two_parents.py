"""A relay with two upstream services: what is registered at both, where it goes on, and whose refusal counts."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from tests.service.conftest import Running
from tests.service.relay.test_relay import connected, relay_of, until


def test_the_second_parent_has_what_it_matched_before_any_event_came(tmp_path: Path) -> None:
    with ExitStack() as stack:
        second = stack.enter_context(Running(data=tmp_path / "second"))
        with Running(data=tmp_path / "first") as first:
            relay = stack.enter_context(relay_of(first, second, data=tmp_path / "relay"))
            until(lambda: connected(relay))
            id = relay.subscribe("WHERE topic = 'sport'")["id"]
            until(lambda: list(second.service.registry.active()))
            second.publish({"id": "1", "source": "s", "topic": "sport"})
            until(lambda: second.service.mailbox.last() == 1)
        (item,) = relay.notifications(id, 1)
        assert item["event"]["id"] == "1"
