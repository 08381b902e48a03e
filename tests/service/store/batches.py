"""Subscriptions and micro-batches to put into stores, and a process of its own that does it.

`python -m tests.service.store.batches FOLDER STORE QUERY COUNT SIZE` records COUNT batches; with "stop" after it, it
says "middle" in the midst of the last one's transaction and goes no further.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidings.model.event import Event, to_table
from tidings.model.notification import NOTIFICATION_SCHEMA
from tidings.service.model import BatchRecord, Notice, Subscription
from tidings.service.settings import Settings
from tidings.service.store.database import open_mailbox
from tidings.service.store.mailbox import Mailbox

ROOT = Path(__file__).parents[3]


def subscription(id: str, **changed: Any) -> Subscription:
    given = {
        "text": f"WHERE topic = '{id}'", "title": f"About {id}", "owner": "", "ticket": f"hash {id}",
        "feed": f"feed-{id}", "created": 1.0, "valid_until": None, **changed,
    }  # fmt: skip
    return Subscription(id=id, **given)


def event(id: str, **more: Any) -> Event:
    return Event(
        **{"source": "//here", "id": id, "type": "t", "attributes": {"n": id}, "data": b"\0x", **more}
    )


def notification_row(subscription: str | None, event: str | None, **more: Any) -> dict[str, Any]:
    row = dict.fromkeys(NOTIFICATION_SCHEMA.names)
    return {
        **row,
        "subscription": subscription,
        "source": "//here",
        "event": event,
        "verdict": "match",
        **more,
    }


def batch(
    number: int,
    rows: Sequence[dict[str, Any]],
    events: Sequence[Event] | None = None,
    *,
    query: str = "q",
    ended: float = 0.0,
    **more: Any,
) -> tuple[BatchRecord, pa.Table, pa.Table]:
    """What `record` takes. The events are those that the rows name."""
    if events is None:
        events = [event(id) for id in dict.fromkeys(row["event"] for row in rows if row["subscription"])]
    errors = sum(row["subscription"] is None for row in rows)
    given: dict[str, Any] = {
        "version": "v1", "segment": 1, "byte": 100 * number, "events": len(events),
        "notifications": len(rows) - errors, "errors": errors, "began": ended - 0.5, **more,
    }  # fmt: skip
    record = BatchRecord(query=query, batch=number, ended=ended or float(number), **given)
    return record, pa.Table.from_pylist(list(rows), NOTIFICATION_SCHEMA), to_table(events)


def of_size(query: str, number: int, size: int) -> tuple[BatchRecord, pa.Table, pa.Table]:
    return batch(
        number,
        [notification_row(f"s{i % 7}", f"{query}-{number}-{i // 7}") for i in range(size)],
        query=query,
    )


def forgotten(mailbox: Mailbox, before: float, now: float = 1e9) -> dict[str, int]:
    """Forgets, and returns the largest deleted number of each subscription."""
    gone: dict[str, int] = {}

    def missed(dropped: Mapping[str, int]) -> list[Notice]:
        gone.update(dropped)
        return []

    mailbox.forget(before, now, missed)
    return gone


def start(settings: Settings, query: str, count: int, size: int, *more: str) -> subprocess.Popen[str]:
    words = [str(settings.data), settings.store or "", query, str(count), str(size), *more]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.service.store.batches", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def main(folder: str, store: str, query: str, count: str, size: str, stop: str = "") -> None:
    mailbox = open_mailbox(Settings(Path(folder), store=store or None))
    for number in range(int(count)):
        if stop and number == int(count) - 1:
            mailbox._settle = _stop  # type: ignore[method-assign]
        assert mailbox.record(*of_size(query, number, int(size)))
    mailbox.close()


def _stop(connection: object, record: BatchRecord) -> None:
    """Notifications and events are written by now; the batch is not, and nothing is committed."""
    print("middle", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
