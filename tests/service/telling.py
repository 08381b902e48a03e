"""Real stores with something in them, for the tests of whatever delivers."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from tidings.model.event import EVENT_SCHEMA
from tidings.model.notification import to_table
from tidings.service.model import BatchRecord, Notice, NotificationKind, State, Subscription
from tidings.service.settings import Settings
from tidings.service.store.database import open_stores
from tidings.service.store.mailbox import Mailbox
from tidings.service.store.registry import Registry

_batches = itertools.count(1)


@contextmanager
def stores(folder: Path) -> Iterator[tuple[Registry, Mailbox]]:
    registry, mailbox = open_stores(Settings(data=folder))
    try:
        yield registry, mailbox
    finally:
        registry.close()
        mailbox.close()


def subscribe(registry: Registry, id: str, state: State = State.ACTIVE) -> Subscription:
    subscription = Subscription(id, "title = x", id, "", "ticket", f"f-{id}", 1.0, None, state)
    registry.add(subscription)
    return subscription


def record_matches(
    mailbox: Mailbox, subscriptions: str | list[str], *events: str, at: float | None = None
) -> None:
    """A micro-batch in which each event answers each subscription."""
    now = time.time() if at is None else at
    ids = [subscriptions] if isinstance(subscriptions, str) else subscriptions
    pairs = [(id, event) for event in events for id in ids]
    notifications = to_table(
        {
            "subscription": pa.array([id for id, _ in pairs]),
            "source": pa.array(["test"] * len(pairs)),
            "event": pa.array([event for _, event in pairs]),
            "verdict": pa.array(["match"] * len(pairs)),
        }
    )
    rows = [
        {"id": event, "source": "test", "attributes": f'{{"title": "{event}"}}', "data": b""}
        for event in events
    ]
    kept = pa.Table.from_pylist(rows, schema=EVENT_SCHEMA)
    number = next(_batches)
    batch = BatchRecord("q", number, "v", 0, number, len(events), len(pairs), 0, now, now)
    assert mailbox.record(batch, notifications, kept)


def expire(mailbox: Mailbox, subscription: str) -> None:
    mailbox.notify(
        [Notice(subscription, NotificationKind.EXPIRED, "expired 1.000", time.time(), "it is over")]
    )
