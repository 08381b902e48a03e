"""Stores who is pushed which feed by the hub of this service (WebSub), and how far.

A subscriber is a feed and a callback. The lease ends by itself: rows after `until` are never read, and deleted in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, delete, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from tidings.service.model import HubSubscription, State
from tidings.service.store import tables
from tidings.service.store.registry import Registry

_COLUMNS = [tables.hub_subscriptions.c[field.name] for field in fields(HubSubscription)]
_RENEWED = ("callback", "secret", "until", "subscription")
_MOVED = ("cursor", "failures", "next_try", "error")


class HubSubscriptions:
    """The subscribers of the hub; thread-safe."""

    def __init__(self, registry: Registry) -> None:
        self._database = registry.database
        self._insert: Any = (postgresql if self._database.on_postgresql else sqlite).insert

    def put(self, new: HubSubscription) -> None:
        """Adds a subscriber. One that is there already keeps how far it is, and has the new lease and secret."""
        values = {field.name: getattr(new, field.name) for field in fields(new)}
        renewed = {name: values[name] for name in _RENEWED}
        statement = self._insert(tables.hub_subscriptions).values(values)
        with self._database.writing() as connection:
            connection.execute(statement.on_conflict_do_update(index_elements=["id"], set_=renewed))

    def remove(self, id: str) -> None:
        kept = tables.hub_subscriptions
        with self._database.writing() as connection:
            connection.execute(delete(kept).where(kept.c.id == id))

    def find(self, id: str, now: float) -> HubSubscription | None:
        found = self._all(tables.hub_subscriptions.c.id == id, now)
        return found[0] if found else None

    def of(self, subscriptions: Sequence[str], now: float) -> list[HubSubscription]:
        """The subscribers of the feeds of these subscriptions."""
        return self._all(tables.hub_subscriptions.c.subscription.in_(subscriptions), now)

    def all(self, now: float) -> list[HubSubscription]:
        return self._all(None, now)

    def counts(self, key: str, host: str, now: float) -> tuple[int, int]:
        """The number of subscribers of a feed, in all its formats, and of those at a host."""
        kept = tables.hub_subscriptions.c
        with self._database.reading() as connection:
            of_key, of_host = (
                connection.execute(select(func.count()).where(which, kept.until > now)).scalar_one()
                for which in (kept.key == key, kept.host == host)
            )
        return int(of_key), int(of_host)

    def count(self, now: float) -> int:
        kept = tables.hub_subscriptions.c
        with self._database.reading() as connection:
            return int(connection.execute(select(func.count()).where(kept.until > now)).scalar_one())

    def move(self, moved: Sequence[HubSubscription]) -> None:
        """Stores how far subscribers are, and the state of their retries."""
        kept = tables.hub_subscriptions
        statement = update(kept).where(kept.c.id == bindparam("old_id"))
        statement = statement.values({name: bindparam(f"new_{name}") for name in _MOVED})
        rows = [
            {"old_id": each.id} | {f"new_{name}": getattr(each, name) for name in _MOVED} for each in moved
        ]
        if rows:
            with self._database.writing() as connection:
                connection.execute(statement, rows)

    def forget_ended(self, now: float) -> None:
        """Deletes those whose lease has ended."""
        kept = tables.hub_subscriptions
        with self._database.writing() as connection:
            connection.execute(delete(kept).where(kept.c.until <= now))

    def without_feed(self, now: float) -> list[HubSubscription]:
        """Those whose feed is gone: its subscription was cancelled, or is no longer public and they know only its id."""
        kept, of = tables.hub_subscriptions.c, tables.subscriptions.c
        there = or_(of.feed == kept.key, and_(of.id == kept.key, of.public))
        query = select(*_COLUMNS).outerjoin(tables.subscriptions, of.id == kept.subscription)
        query = query.where(kept.until > now, or_(of.id.is_(None), of.state == State.CANCELLED, ~there))
        with self._database.reading() as connection:
            return [HubSubscription(*row) for row in connection.execute(query)]

    def _all(self, which: ColumnElement[bool] | None, now: float) -> list[HubSubscription]:
        query = select(*_COLUMNS).where(tables.hub_subscriptions.c.until > now)
        if which is not None:
            query = query.where(which)
        with self._database.reading() as connection:
            return [HubSubscription(*row) for row in connection.execute(query)]
