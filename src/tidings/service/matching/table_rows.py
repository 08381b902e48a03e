"""Reads the rows of tables as the stream of joins has them.

Rows are in Spark's state, and nowhere else for good: events that brought them may be deleted. So the service subscribes to a table
that is read, requests a snapshot by an event, as any subscriber does, and keeps a replica. The subscription belongs to
the service, is renewed while the table is read, and expires by itself.
"""

from __future__ import annotations

import heapq
import json
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, NamedTuple

from tidings.errors import TidingsError
from tidings.kinds.joins.replica import Replica
from tidings.kinds.joins.schema.table import Table, plain
from tidings.model.event import Event
from tidings.model.notification import Notification, RowChange
from tidings.service.ingest.log_writer import LogWriter
from tidings.service.matching.index_writer import IndexWriter
from tidings.service.model import SERVICE, State, StoredNotification, Subscription
from tidings.service.store.mailbox import Mailbox
from tidings.service.store.registry import Conflict, Registry
from tidings.service.subscriptions import tickets

_KEPT = 600.0  # seconds that a table is followed after it was last read
_PATIENCE = 5.0  # for the snapshot
_POLL_SECONDS = 0.05
_PORTION = 200  # notifications read at once
_MOST = 10_000  # rows of a table that a subscription is tried on


class RowsUnavailable(TidingsError):
    """The stream has not answered yet."""

    status = 503
    retry_after = 2.0


class RowPage(NamedTuple):
    """Rows of a table; `total` counts all of them, and `next` is the cursor of the next page."""

    rows: list[dict[str, Any]]
    total: int
    next: str | None


@dataclass(slots=True)
class _Copy:
    """The replica of a table, and up to where the notifications of its subscription were applied."""

    table: Table
    replica: Replica
    subscription: str = ""
    cursor: int = 0
    asked: float = float("-inf")  # when the last snapshot was, by the monotonic clock
    lock: threading.Lock = field(default_factory=threading.Lock)


class TableRows:
    """Pages through the rows of tables. Thread-safe."""

    def __init__(
        self,
        registry: Registry,
        mailbox: Mailbox,
        index_writer: IndexWriter,
        log_writer: LogWriter,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._registry, self._mailbox = registry, mailbox
        self._index_writer, self._log_writer, self._clock = index_writer, log_writer, clock
        self._copies: dict[Table, _Copy] = {}
        self._lock = threading.Lock()

    def page(self, table: Table, after: str | None, limit: int) -> RowPage:
        """Rows in an order that stays the same, after the one that a cursor names."""
        deadline = time.monotonic() + _PATIENCE
        with self._lock:
            copy = self._copies.setdefault(table, _Copy(table, _replica(table)))
        if not copy.lock.acquire(timeout=_PATIENCE):
            raise _not_yet(table)
        try:
            self._follow(copy)
            self._catch_up(copy, deadline)
            rows = copy.replica.rows(table.name)
        finally:
            copy.lock.release()
        later = (row for row in _named(table, rows) if after is None or row[0] > after)
        found = heapq.nsmallest(limit + 1, later, key=lambda row: row[0])
        next = found[limit - 1][0] if len(found) > limit else None
        return RowPage([row for _, row in found[:limit]], len(rows), next)

    def present(self, tables: Collection[Table]) -> dict[str, list[dict[str, Any]]] | None:
        """The rows of tables; None if the stream does not answer, or if a table has more than 10,000."""
        try:
            pages = {table.name: self.page(table, None, _MOST) for table in tables}
        except RowsUnavailable:
            return None
        if any(page.next is not None for page in pages.values()):
            return None
        return {name: page.rows for name, page in pages.items()}

    def _follow(self, copy: _Copy) -> None:
        """Makes sure that the table is subscribed to, for a while from now on."""
        now = self._clock()
        known = self._registry.find(copy.subscription) if copy.subscription else None
        if known is None or known.state is not State.ACTIVE or (known.valid_until or now) <= now:
            self._begin(copy, now)
        elif (known.valid_until or now) < now + _KEPT / 2:
            try:
                self._registry.update(replace(known, valid_until=now + _KEPT, warned=False))
            except Conflict:  # it expires just now: the next reader begins another
                pass

    def _begin(self, copy: _Copy, now: float) -> None:
        name = copy.table.name
        unused = tickets.digest(tickets.new_secret())  # nobody else changes it
        new = Subscription(
            tickets.new_id("s"),
            f"SELECT * FROM {name}",
            f"Rows of {name}",
            SERVICE,
            unused,
            tickets.new_secret("f"),
            now,
            now + _KEPT,
        )
        cursor = self._mailbox.last()
        self._index_writer.wait_for(self._registry.add(new))
        copy.subscription, copy.cursor, copy.replica = new.id, cursor, _replica(copy.table)
        copy.asked = float("-inf")

    def _catch_up(self, copy: _Copy, deadline: float) -> None:
        """Applies what the mailbox has; requests a snapshot while something is missing."""
        while True:
            while page := self._mailbox.page([copy.subscription], after=copy.cursor, limit=_PORTION):
                for notification in page:
                    copy.replica.apply(_of_join(notification))
                copy.cursor = page[-1].number
            if copy.replica.missing is None:
                return
            if time.monotonic() - copy.asked > _PATIENCE:
                copy.asked = time.monotonic()
                self._log_writer.accept(
                    [Event.snapshot(copy.subscription, source=SERVICE, id=uuid.uuid4().hex)]
                )
            if time.monotonic() > deadline:
                raise _not_yet(copy.table)
            time.sleep(_POLL_SECONDS)


def _replica(table: Table) -> Replica:
    return Replica(f"SELECT * FROM {table.name}", [table])


def _of_join(stored: StoredNotification) -> Notification:
    changes = tuple(RowChange(change["table"], change["change"], change["row"]) for change in stored.changes)
    return Notification(
        stored.subscription,
        "",
        "",
        stored.kind.value,
        {},
        part=stored.part,
        sequence=stored.sequence,
        changes=changes,
    )


def _named(table: Table, rows: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows as JSON, with a name each: a hash of the key. Equal rows of a table without a key are counted."""
    copies: dict[str, int] = {}
    for row in rows:
        shown: Mapping[str, Any] = {name: plain(value) for name, value in row.items()}
        key = json.dumps([shown[name] for name in table.key or table.names])
        name = blake2b(key.encode(), digest_size=16).hexdigest()
        copies[name] = copies.get(name, 0) + 1
        yield f"{name}-{copies[name]:010}", dict(shown)


def _not_yet(table: Table) -> RowsUnavailable:
    return RowsUnavailable(
        f"the rows of {table.name!r} come from the stream, which has not answered yet; try again in a moment"
    )
