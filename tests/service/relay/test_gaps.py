"""Events that an upstream service deletes before a relay has read them: subscribers at the relay, and below it, are notified."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

from tests.service.conftest import Running, Served
from tests.service.relay.test_joins import TABLES, TEXTS, Trial
from tests.service.relay.test_relay import connected, relay_of, until
from tidings.kinds.joins.schema.declarations import read_tables


def delete_all(served: Served) -> None:
    """As retention does."""
    now = time.time()
    served.service.mailbox.forget(now + 1, now + 2, lambda dropped: [])


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
