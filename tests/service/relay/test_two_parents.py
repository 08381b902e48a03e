"""A relay with two upstream services: what is registered at both, where it goes on, and whose refusal counts."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.service.conftest import Running
from tests.service.relay.test_relay import connected, relay_of, until
from tidings.service.model import DefinitionKind
from tidings.service.relay import downstream, upstream
from tidings.service.relay.parent import Welcome


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


def test_the_definitions_are_those_of_the_parent_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream, "HELLO_EVERY", 0.05)
    monkeypatch.setattr(downstream, "HEARTBEAT", 60.0)
    with ExitStack() as stack:
        second = stack.enter_context(Running(data=tmp_path / "second"))
        assert second.http.put("/api/prefixes", json={"zoo": "urn:second:"}).status_code == 200
        with Running(data=tmp_path / "first") as first:
            assert first.http.put("/api/prefixes", json={"zoo": "urn:first:"}).status_code == 200
            relay = stack.enter_context(relay_of(first, second, data=tmp_path / "relay"))
            until(lambda: connected(relay))
            definitions = relay.service.definitions
            assert definitions.engine.prefixes["zoo"] == "urn:first:"
            follow = relay.service.upstream
            assert follow is not None
            until(lambda: second.service.id in follow.path())  # both say hello
            before = definitions.version(DefinitionKind.PREFIXES)
            hello, answers = follow._parents[1].hello, list[Welcome]()
            monkeypatch.setattr(
                follow._parents[1], "hello", lambda *given: answers.append(hello(*given)) or answers[-1]
            )
            until(lambda: len(answers) > 3)
            assert definitions.version(DefinitionKind.PREFIXES) == before
            assert definitions.engine.prefixes["zoo"] == "urn:first:"
            began = time.monotonic()
        assert time.monotonic() - began < 8, "a service that stops ends its links at once"
        until(lambda: definitions.engine.prefixes["zoo"] == "urn:second:")
