"""Events that an upstream service deletes before a relay has read them: subscribers at the relay, and below it, are notified."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.service.conftest import Running, Served
from tests.service.relay.test_joins import TABLES, TEXTS, Trial
from tests.service.relay.test_relay import connected, relay_of, until
from tidings.kinds.joins.schema.declarations import read_tables
from tidings.service.model import State


def delete_all(served: Served) -> None:
    """As retention does."""
    now = time.time()
    served.service.mailbox.forget(now + 1, now + 2, lambda dropped: [])


def later(served: Served, monkeypatch: pytest.MonkeyPatch, retentions: float) -> None:
    """What expires, and what is deleted, when so many retention times have passed at once."""
    sweeper = served.service.expiry
    passed = retentions * served.service.settings.retention
    with monkeypatch.context() as patch:
        patch.setattr(sweeper, "_clock", lambda: time.time() + passed)
        patch.setattr(sweeper, "_retention_due", float("-inf"))
        for _ in range(3):  # what has expired leaves when all events from before are matched
            sweeper.sweep()
    sweeper._retention_due = sweeper._far_due = float("-inf")


def kinds(served: Served, id: str) -> list[str]:
    """What a subscription was notified of, oldest first: the ids of events, and the kinds of notices."""
    found = served.service.mailbox.page([id], after=0)
    return [one.kind.value if one.event is None else one.event.id for one in found]


def test_subscribers_are_notified_once_of_what_was_deleted_upstream(tmp_path: Path) -> None:
    with Running(data=tmp_path / "centre") as centre:
        with (
            relay_of(centre, data=tmp_path / "middle") as middle,
            relay_of(middle, data=tmp_path / "leaf") as leaf,
        ):
            until(lambda: connected(middle) and connected(leaf))
            near, far = (served.subscribe("WHERE topic = 'sport'")["id"] for served in (middle, leaf))
            centre.publish({"id": "1", "source": "s", "topic": "sport"})
            until(lambda: kinds(middle, near) == kinds(leaf, far) == ["1"])
        centre.publish({"id": "2", "source": "s", "topic": "sport"})
        until(lambda: centre.service.mailbox.last() == 2)
        delete_all(centre)
        centre.publish({"id": "3", "source": "s", "topic": "sport"})
        for start in range(2):  # before the second start, what both have is deleted
            with ExitStack() as stack:
                middle = stack.enter_context(relay_of(centre, data=tmp_path / "middle"))
                leaf = stack.enter_context(relay_of(middle, data=tmp_path / "leaf"))
                until(lambda: connected(middle) and connected(leaf))  # noqa: B023
                centre.publish({"id": f"{4 + start}", "source": "s", "topic": "sport"})
                expected = ["1", "missed", "3", "4", "5"][: 4 + start]
                until(lambda: kinds(middle, near) == kinds(leaf, far) == expected)  # noqa: B023
                notice = leaf.service.mailbox.page([far], after=0)[1]
                assert "the upstream service did not keep them" in str(notice.message)
            delete_all(centre)


@pytest.mark.parametrize("retentions", [1.5, pytest.param(2.5, marks=pytest.mark.slow)])
def test_subscribers_are_notified_of_what_expired_filters_did_not_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retentions: float
) -> None:
    """After one retention time the filters of a relay that is away have expired, after another one they are deleted."""
    with Running(data=tmp_path / "centre") as centre:
        with relay_of(centre, data=tmp_path / "relay") as relay:
            until(lambda: connected(relay))
            id = relay.subscribe("WHERE topic = 'sport'", valid_for="never")["id"]
            centre.publish({"id": "1", "source": "s", "topic": "sport"})
            until(lambda: kinds(relay, id) == ["1"])
            (link,) = centre.service.downstream.links()
        later(centre, monkeypatch, 1.5)
        if retentions > 2:
            later(centre, monkeypatch, retentions)
        filters = centre.service.registry.owned(link.owner)
        assert [one.state for one in filters] == ([State.EXPIRED] if retentions < 2 else [])
        centre.publish({"id": "2", "source": "s", "topic": "sport"})
        until(lambda: centre.service.stream_health.waiting() == [])
        for start in range(2):  # once, also if it is started again
            with relay_of(centre, data=tmp_path / "relay") as relay:
                until(lambda: connected(relay))
                centre.publish({"id": f"{3 + start}", "source": "s", "topic": "sport"})
                until(lambda: kinds(relay, id) == ["1", "missed", "3", "4"][: 3 + start])  # noqa: B023


@pytest.mark.parametrize("at_second", ["deleted", "late", pytest.param("unknown", marks=pytest.mark.slow)])
def test_the_second_parent_says_whether_events_may_be_missing(tmp_path: Path, at_second: str) -> None:
    """The last event of the relay was deleted there; it has not come there yet; or the relay was never there."""
    with ExitStack() as stack:
        second = stack.enter_context(Running(data=tmp_path / "second"))
        with Running(data=tmp_path / "first") as first:
            parents = [first] if at_second == "unknown" else [first, second]
            with relay_of(*parents, data=tmp_path / "relay") as relay:
                until(lambda: connected(relay))
                id = relay.subscribe("WHERE topic = 'sport'")["id"]
                first.publish({"id": "1", "source": "s", "topic": "sport"})
                until(lambda: kinds(relay, id) == ["1"])
                until(lambda: at_second == "unknown" or list(second.service.registry.active()))
        if at_second == "deleted":
            for event in ("1", "2"):
                second.publish({"id": event, "source": "s", "topic": "sport"})
            until(lambda: second.service.mailbox.last() == 2)
            delete_all(second)
        relay = stack.enter_context(relay_of(first, second, data=tmp_path / "relay"))
        upstream = relay.service.upstream
        assert upstream is not None
        until(lambda: upstream.states[1].status == "connected")
        second.publish({"id": "3", "source": "s", "topic": "sport"})
        until(lambda: kinds(relay, id) == ["1", *(["missed"] if at_second != "late" else []), "3"])


def test_no_notice_of_what_the_first_parent_deleted_and_the_second_delivered(tmp_path: Path) -> None:
    with (
        Running(data=tmp_path / "first") as first,
        Running(data=tmp_path / "second") as second,
    ):

        def publish(event: str) -> None:
            for served in (first, second):
                served.publish({"id": event, "source": "s", "topic": "sport"})

        with relay_of(first, second, data=tmp_path / "relay") as relay:
            until(lambda: connected(relay))
            id = relay.subscribe("WHERE topic = 'sport'")["id"]
            until(lambda: list(second.service.registry.active()))
            publish("1")
            until(lambda: kinds(relay, id) == ["1"])
        with relay_of(second, data=tmp_path / "relay") as relay:
            publish("2")
            publish("3")
            until(lambda: kinds(relay, id) == ["1", "2", "3"])
        until(lambda: first.service.mailbox.last() == 3)
        first.service.mailbox._forget_to(2, lambda dropped: [])
        with relay_of(first, second, data=tmp_path / "relay") as relay:
            until(lambda: connected(relay))
            publish("4")
            until(lambda: kinds(relay, id) == ["1", "2", "3", "4"])


def test_rows_come_again_when_messages_were_deleted_upstream(tmp_path: Path) -> None:
    declared = tmp_path / "tables.toml"
    declared.write_text(TABLES)
    with Running(data=tmp_path / "centre", tables=declared) as centre:
        trial = Trial(centre, read_tables(declared))
        with relay_of(centre, data=tmp_path / "relay", tables=declared) as relay:
            until(lambda: connected(relay))
            trial.insert()
            trial.subscribe(relay, [TEXTS[4]])
        (person,) = trial.people
        trial.change(6, compared=False)
        assert trial.told[person.id]
        until(lambda: centre.service.stream_health.waiting() == [])
        delete_all(centre)
        with relay_of(centre, data=tmp_path / "relay", tables=declared) as relay:
            edge = relay.service._edge
            until(
                lambda: (
                    edge._edge is not None
                    and (rows := edge._edge.rows(person.id)) is not None
                    and rows[0].result == trial.naive.forms[person.id]
                )
            )
            assert "missed" not in kinds(relay, person.id)
