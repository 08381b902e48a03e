"""Stores channels and which subscriptions they have.

A subscription is of a channel from one number of the mailbox to another, so that what is in a message is settled for good.
Whoever changes channels or their messages holds the counter "assigned" until the commit: they take turns.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, func, select, update

from tidings.errors import TidingsError
from tidings.service.model import Channel, ChannelState
from tidings.service.owners import is_of_all_users
from tidings.service.store import tables
from tidings.service.store.mailbox import Mailbox, counter_value, kept_numbers, raise_counter
from tidings.service.store.registry import begins
from tidings.service.store.tables import clean
from tidings.service.store.transactions import insert_columns

CONFIRMATION: Final = "confirmation"
_NAMED: Final = 1_000  # channels in one statement
_COLUMNS = [field.name for field in fields(Channel)]
_kept, _member, _message = tables.channels.c, tables.channel_subscriptions.c, tables.channel_messages.c
CHANNEL: Final = [_kept[name] for name in _COLUMNS]

Due = Callable[[str, Sequence[float], float], float]
"""When a message is due, by its channel's schedule as it is stored, by when the last ones were sent, and by when its first
notification arrived."""


class TooManyChannels(TidingsError):
    """The owner has as many channels as it may have."""

    status = 422


class ChannelStore:
    """The channels of a mailbox; thread-safe."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._database = mailbox.database

    # --- reading

    def find(self, id: str) -> Channel | None:
        with self._database.reading() as connection:
            return find_channel(connection, id)

    def page(self, *, owner: str | None, after: str | None = None, limit: int = 50) -> list[Channel]:
        """Newest first, after the one with the id `after`; of an owner, as `owns` says, or of all."""
        query = select(*CHANNEL).order_by(_kept.created.desc(), _kept.id.desc()).limit(max(0, limit))
        if owner is not None:
            owner = clean(owner)
            query = query.where(
                begins(_kept.owner, owner) if is_of_all_users(owner) else _kept.owner == owner
            )
        with self._database.reading() as connection:
            last = None if after is None else find_channel(connection, after)
            if last is not None:
                is_older = (_kept.created < last.created) | (
                    (_kept.created == last.created) & (_kept.id < last.id)
                )
                query = query.where(is_older)
            return [channel_of(row) for row in connection.execute(query)]

    def subscriptions(self, channels: Sequence[str]) -> dict[str, list[str]]:
        """The subscriptions that each channel has now, in their order."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        with self._database.reading() as connection:
            for begin in range(0, len(channels), _NAMED):
                ids = [clean(id) for id in channels[begin : begin + _NAMED]]
                query = select(_member.channel, _member.subscription).where(
                    _member.channel.in_(ids), _member.until.is_(None)
                )
                for channel, subscription in connection.execute(query.order_by(_member.subscription)):
                    found[channel].append(subscription)
        return found

    def channels_of(self, subscription: str) -> list[Channel]:
        """The channels that a subscription is in now, oldest first."""
        query = (
            select(*CHANNEL)
            .join(tables.channel_subscriptions, _member.channel == _kept.id)
            .where(_member.subscription == clean(subscription), _member.until.is_(None))
        )
        with self._database.reading() as connection:
            return [channel_of(row) for row in connection.execute(query.order_by(_kept.created, _kept.id))]

    def counts(self) -> dict[str, int]:
        """How many channels there are in each state."""
        query = select(_kept.state, func.count()).group_by(_kept.state)
        with self._database.reading() as connection:
            return {state: int(count) for state, count in connection.execute(query)}

    # --- writing

    def add(self, channel: Channel, subscriptions: Iterable[str], *, most: int) -> Channel:
        """Adds a channel that begins with what comes now; TooManyChannels if its owner has `most` already. One that is
        unconfirmed has a message that asks for it."""
        with self._database.writing() as connection:
            number = _take_turn(connection)
            held = select(func.count()).where(_kept.owner == clean(channel.owner))
            if connection.execute(held).scalar_one() >= most:
                raise TooManyChannels(f"there are {most:,} channels already; remove some of them first")
            values = {name: getattr(channel, name) for name in _COLUMNS} | {
                "cursor": number,
                "sent": json.dumps(channel.sent),
            }
            connection.execute(tables.channels.insert().values(values))
            _add_members(connection, channel.id, subscriptions, number)
            if channel.state is ChannelState.UNCONFIRMED:
                connection.execute(tables.channel_messages.insert().values(_confirmation(channel)))
            found = find_channel(connection, channel.id)
        assert found is not None
        return found

    def change(self, id: str, values: Mapping[str, Any], due: Due, now: float) -> Channel | None:
        """Changes title or schedule; the message that collects is due by the new schedule. None if there is no channel."""
        with self._database.writing() as connection:
            _take_turn(connection)
            if values:
                connection.execute(update(tables.channels).where(_kept.id == clean(id)).values(values))
            found = find_channel(connection, id)
            if found is not None and "schedule" in values:
                is_its = _message.channel == found.id, _message.kind != CONFIRMATION
                for row in connection.execute(select(tables.channel_messages).where(*is_its)).all():
                    # What is being sent is tried again at once: whoever sends asks the schedule.
                    moment = (
                        due(found.schedule, found.sent, row.first_at) if row.until_number is None else now
                    )
                    connection.execute(
                        update(tables.channel_messages)
                        .where(*is_its, _message.after_number == row.after_number)
                        .values(due=moment, next_try=moment, written=now)
                    )
        return found

    def join(self, id: str, subscriptions: Iterable[str]) -> None:
        """Adds subscriptions to a channel, from the next notification on; those it has are left as they are."""
        with self._database.writing() as connection:
            number = _take_turn(connection)
            has = select(_member.subscription).where(_member.channel == clean(id), _member.until.is_(None))
            there = set(connection.execute(has).scalars())
            _add_members(connection, id, [name for name in subscriptions if clean(name) not in there], number)

    def leave(self, id: str, subscriptions: Sequence[str]) -> None:
        """Takes subscriptions out of a channel. What waits of them is still sent."""
        with self._database.writing() as connection:
            number = _take_turn(connection)
            for begin in range(0, len(subscriptions), _NAMED):
                ids = [clean(name) for name in subscriptions[begin : begin + _NAMED]]
                is_member = (
                    _member.channel == clean(id),
                    _member.subscription.in_(ids),
                    _member.until.is_(None),
                )
                connection.execute(
                    delete(tables.channel_subscriptions).where(*is_member, _member.since >= number)
                )
                connection.execute(
                    update(tables.channel_subscriptions).where(*is_member).values(until=number)
                )

    def confirm(self, id: str) -> Channel | None:
        """Makes an unconfirmed channel active: it begins with what comes now. None if there is no such channel."""
        with self._database.writing() as connection:
            number = _take_turn(connection)
            is_it = _kept.id == clean(id), _kept.state == ChannelState.UNCONFIRMED
            values = {
                "state": ChannelState.ACTIVE,
                "cursor": number,
                "failures": 0,
                "refusals": 0,
                "error": None,
            }
            connection.execute(update(tables.channels).where(*is_it).values(values))
            connection.execute(
                delete(tables.channel_messages).where(
                    _message.channel == clean(id), _message.kind == CONFIRMATION
                )
            )
            return find_channel(connection, id)

    def end(self, id: str, reason: str) -> Channel | None:
        """Ends a channel for good; what waits is not sent. None if there is no channel."""
        with self._database.writing() as connection:
            _take_turn(connection)
            end_channels(connection, {clean(id): reason})
            return find_channel(connection, id)

    def remove(self, id: str) -> bool:
        """Removes a channel with all that is of it. False if there is none."""
        with self._database.writing() as connection:
            _take_turn(connection)
            for kept, name in (
                (tables.channel_messages, _message.channel),
                (tables.channel_subscriptions, _member.channel),
            ):
                connection.execute(delete(kept).where(name == clean(id)))
            return connection.execute(delete(tables.channels).where(_kept.id == clean(id))).rowcount > 0

    def forget_members(self) -> None:
        """Removes the memberships that ended before all notifications that are kept."""
        with self._database.writing() as connection:
            _take_turn(connection)
            first = kept_numbers(connection).first
            connection.execute(delete(tables.channel_subscriptions).where(_member.until < first))

    def forget_unconfirmed(self, before: float) -> int:
        """Removes the channels that were made before a time and were never confirmed; returns how many."""
        query = select(_kept.id).where(_kept.state == ChannelState.UNCONFIRMED, _kept.created < before)
        with self._database.reading() as connection:
            old = list(connection.execute(query.limit(_NAMED)).scalars())
        return sum(self.remove(id) for id in old)


def find_channel(connection: Connection, id: str) -> Channel | None:
    row = connection.execute(select(*CHANNEL).where(_kept.id == clean(id))).first()
    return None if row is None else channel_of(row)


def channel_of(row: Row[Any]) -> Channel:
    """The channel of a row that begins with the columns of `CHANNEL`."""
    values = dict(zip(_COLUMNS, row, strict=False))
    return Channel(
        **values | {"state": ChannelState(values["state"]), "sent": tuple(json.loads(values["sent"]))}
    )


def end_channels(connection: Connection, reasons: Mapping[str, str]) -> None:
    """Ends channels that have not ended, each for a reason."""
    for id, reason in reasons.items():
        is_it = _kept.id == id, _kept.state != ChannelState.ENDED
        connection.execute(
            update(tables.channels).where(*is_it).values(state=ChannelState.ENDED, reason=reason)
        )
        connection.execute(delete(tables.channel_messages).where(_message.channel == id))


def _take_turn(connection: Connection) -> int:
    """Waits for others who change channels; the last number of the mailbox then."""
    raise_counter(connection, "assigned", 0)
    return counter_value(connection, "number")


def _add_members(connection: Connection, channel: str, subscriptions: Iterable[str], number: int) -> None:
    ids = list(dict.fromkeys(clean(name) for name in subscriptions))
    columns: dict[str, Sequence[Any]] = {
        "channel": [channel] * len(ids),
        "subscription": ids,
        "since": [number] * len(ids),
    }
    # One that left at this very number goes on.
    insert_columns(
        connection,
        tables.channel_subscriptions,
        columns,
        "ON CONFLICT (channel, subscription, since) DO UPDATE SET until = NULL",
    )


def _confirmation(channel: Channel) -> dict[str, Any]:
    times = dict.fromkeys(("first_at", "due", "next_try", "written"), channel.created)
    return {"channel": channel.id, "after_number": -1, "until_number": -1, "kind": CONFIRMATION, **times}
