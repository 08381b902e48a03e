"""Assigns notifications to messages of channels, and keeps the messages until they are sent.

A message is a range of the mailbox's numbers. The counter "assigned" says up to which number notifications were looked at: it moves
in the transaction that opens messages for them. A message collects until it is sealed: its range ends at the last number then,
and the next message of the channel begins there, in one transaction. So each notification is in exactly one message,
wherever a process was killed.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Row, Select, bindparam, delete, exists, func, select, update

from tidings.service.model import Channel, ChannelState, NotificationKind, QueuedMessage, StoredNotification
from tidings.service.store import tables
from tidings.service.store.channels import CHANNEL, CONFIRMATION, Due, channel_of, end_channels
from tidings.service.store.mailbox import (
    Mailbox,
    counter_value,
    kept_numbers,
    raise_counter,
    stored_notifications,
)
from tidings.service.store.notification_search import Among, Span, numbers_of_each
from tidings.service.store.tables import clean
from tidings.service.store.transactions import insert_columns

NOTIFICATIONS: Final = "notifications"
_WINDOW: Final = 20_000  # notifications that are looked at in a transaction: recording waits for it
_PORTION: Final = 1_000  # channels in a statement
_COUNTED: Final = 1_000  # notifications of a subscription that are counted
_UNDECIDED: Final = NotificationKind.UNDECIDED.value

_channel, _member, _message, _notified = (
    tables.channels.c,
    tables.channel_subscriptions.c,
    tables.channel_messages.c,
    tables.notifications.c,
)
_other = tables.channel_messages.alias("other")
_NEWS: Final = select(_notified.subscription, _notified.number, _notified.at).where(
    _notified.number > bindparam("after"), _notified.number <= bindparam("upto"), _notified.kind != _UNDECIDED
)
_MEMBERS: Final = (
    select(
        _member.subscription,
        _member.since,
        _member.until,
        *(_channel[name] for name in ("id", "cursor", "schedule", "sent")),
    )
    .join(tables.channels, _channel.id == _member.channel)
    .where(
        _member.subscription.in_(bindparam("subscriptions", expanding=True)),
        _channel.state == ChannelState.ACTIVE.value,
    )
)
_COLLECTING: Final = (
    select(_message.channel, _message.after_number, _message.first_at, _channel.schedule, _channel.sent)
    .select_from(tables.channel_messages)
    .join(tables.channels, _channel.id == _message.channel)
    .where(_message.until_number.is_(None))
)
_WINDOW_END: Final = (  # numbers may have large gaps, such as after the restoration of a backup
    select(_notified.number)
    .where(_notified.number > bindparam("after"))
    .order_by(_notified.number)
    .limit(1)
    .offset(_WINDOW - 1)
)
_DUE_TO_SEAL: Final = (
    _COLLECTING.where(
        _message.next_try <= bindparam("now"),
        _channel.state == ChannelState.ACTIVE.value,
        ~exists().where(_other.c.channel == _channel.id, _other.c.until_number.is_not(None)),
    )
    .order_by(_message.next_try)
    .limit(bindparam("most"))
)
_DUE_TO_SEND: Final[Select[Any]] = (
    select(*CHANNEL, _message.kind, _message.after_number, _message.until_number, _message.due)
    .join(tables.channels, _channel.id == _message.channel)
    .where(_message.until_number.is_not(None), _message.next_try <= bindparam("now"))
    .order_by(_message.next_try)
    .limit(bindparam("most"))
)

_ITS = _message.channel == bindparam("its_channel"), _message.after_number == bindparam("its_after")
_SENT: Final = delete(tables.channel_messages).where(*_ITS)
_AGAIN: Final = (
    update(tables.channel_messages)
    .where(*_ITS)
    .values({name: bindparam(name) for name in ("next_try", "written")})
)
_COUNTED_ANEW: Final = (
    update(tables.channels)
    .where(_channel.id == bindparam("its_id"))
    .values({name: bindparam(name) for name in ("sent", "failures", "refusals", "error")})
)


@dataclass(frozen=True, slots=True)
class Settled:
    """What an attempt to send a message came to: it is sent; or it is tried again, by the channel's new counts; or the
    channel ends."""

    message: QueuedMessage
    channel: Channel  # as it is now
    at: float
    next_try: float | None = None  # None: it is sent


class Lane(NamedTuple):
    """The channels that share workers."""

    kind: str | None  # None: of all kinds that this service cannot send
    is_failing: bool


class Contents(NamedTuple):
    """The first notifications of a message, and how many there are."""

    first: list[StoredNotification]
    total: int


class ChannelMessages:
    """The messages of all channels that are not sent; thread-safe."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._database = mailbox.database

    # --- assigning

    def assign(self, due: Due, now: float) -> bool:
        """Opens a message for each channel that has notifications after those that were looked at, and has none that
        collects. Returns whether there may be more to look at."""
        with self._database.reading() as connection:
            after, last = counter_value(connection, "assigned"), counter_value(connection, "number")
            is_used = connection.execute(select(_member.channel).limit(1)).first() is not None
        if after >= last or (not is_used and last - after < _WINDOW):
            return False
        with self._database.writing() as connection:
            after = raise_counter(connection, "assigned", 0)
            last = counter_value(connection, "number")
            end = connection.execute(_WINDOW_END, {"after": after}).scalar() if is_used else None
            upto = last if end is None else int(end)
            found = _with_news(connection, after, upto)
            has_one = _with_collecting(connection, list(found))
            rows = [(id, *row) for id, row in found.items() if id not in has_one]
            ids, cursors, schedules, sent, arrived = zip(*rows, strict=True) if rows else ((),) * 5
            first = [min(at, now) for at in arrived]  # the clock may have been set back since
            dues = [due(*each) for each in zip(schedules, map(json.loads, sent), first, strict=True)]
            columns: dict[str, Sequence[Any]] = {
                "channel": ids,
                "after_number": cursors,
                "kind": [NOTIFICATIONS] * len(ids),
                "first_at": first,
                "due": dues,
                "next_try": dues,
                "written": [now] * len(ids),
            }
            insert_columns(connection, tables.channel_messages, columns)
            raise_counter(connection, "assigned", upto - after)
        return upto < last

    def seal(self, due: Due, now: float, most: int) -> int:
        """Ends the collecting of messages that are due, at most so many, each with all that is there now. One that is due
        later than it was written, because messages were sent or a clock was set meanwhile, is put off. Returns how many
        were looked at."""
        with self._database.reading() as connection:
            if connection.execute(_DUE_TO_SEAL, {"now": now, "most": 1}).first() is None:
                return 0
        with self._database.writing() as connection:
            raise_counter(connection, "assigned", 0)
            last = counter_value(connection, "number")
            found = connection.execute(_DUE_TO_SEAL, {"now": now, "most": most}).cursor.fetchall()
            ready = []
            for channel, after, first, schedule, sent in found:
                moment = due(schedule, json.loads(sent), first)
                if moment <= now:
                    ready.append(channel)
                else:
                    _put_off(connection, channel, after, due=moment, next_try=moment, written=now)
            for begin in range(0, len(ready), _PORTION):
                ids = ready[begin : begin + _PORTION]
                is_ready = _message.channel.in_(ids), _message.until_number.is_(None)
                values = {"until_number": last, "next_try": now, "written": now}
                connection.execute(update(tables.channel_messages).where(*is_ready).values(values))
                connection.execute(update(tables.channels).where(_channel.id.in_(ids)).values(cursor=last))
        return len(found)

    def set_back(self, due: Due, now: float) -> None:
        """Reckons the times anew that were reckoned later than now: the clock was set back since."""
        with self._database.reading() as connection:
            latest = connection.execute(select(func.max(_message.written))).scalar()
        if latest is None or latest <= now:
            return
        with self._database.writing() as connection:
            raise_counter(connection, "assigned", 0)
            collecting = connection.execute(_COLLECTING.where(_message.written > now)).all()
            for channel, after, at, schedule, sent in collecting:
                first = min(at, now)
                moment = due(schedule, json.loads(sent), first)
                times = {"first_at": first, "due": moment, "next_try": moment, "written": now}
                _put_off(connection, channel, after, **times)
            is_late = _message.written > now, _message.until_number.is_not(None)
            connection.execute(
                update(tables.channel_messages).where(*is_late).values(next_try=now, written=now)
            )

    # --- sending

    def to_send(self, now: float, most: int, without: Iterable[Lane] = ()) -> list[QueuedMessage]:
        """The messages that are sealed and may be tried now, those first that have waited longest; not those of the lanes
        `without`."""
        query = _DUE_TO_SEND
        for lane in without:
            is_failing = _channel.failures > 0 if lane.is_failing else _channel.failures == 0
            query = query.where(~((_channel.kind == lane.kind) & is_failing))
        with self._database.reading() as connection:
            return [_queued(row) for row in connection.execute(query, {"now": now, "most": most})]

    def contents(self, messages: Sequence[QueuedMessage], most: int) -> list[Contents]:
        """The first notifications of each message, at most so many, in the order of their numbers."""
        ranges = [_Range(message.channel.id, message.after, message.until) for message in messages]
        with self._database.reading() as connection:
            numbers = _numbers(connection, ranges)
            chosen = sorted({number for found in numbers for number in found[:most]})
            known = {each.number: each for each in stored_notifications(connection, chosen)}
        return [
            Contents([known[number] for number in found[:most] if number in known], len(found))
            for found in numbers
        ]

    def settle(self, settled: Sequence[Settled]) -> None:
        """Stores what attempts came to, in one transaction. What was ended or removed meanwhile stays so."""
        if not settled:
            return
        with self._database.writing() as connection:
            raise_counter(connection, "assigned", 0)
            sent = [done for done in settled if done.next_try is None]
            if sent:
                connection.execute(_SENT, [_key(done.message) for done in sent])
            if again := [done for done in settled if done.next_try is not None]:
                connection.execute(
                    _AGAIN,
                    [{**_key(done.message), "next_try": done.next_try, "written": done.at} for done in again],
                )
            connection.execute(
                _COUNTED_ANEW,
                [
                    {
                        "its_id": done.channel.id,
                        "sent": json.dumps(done.channel.sent),
                        "failures": done.channel.failures,
                        "refusals": done.channel.refusals,
                        "error": None if done.channel.error is None else clean(done.channel.error),
                    }
                    for done in settled
                ],
            )
            ended = {
                done.channel.id: done.channel.reason or ""
                for done in settled
                if done.channel.state is ChannelState.ENDED
            }
            end_channels(connection, ended)

    # --- what waits

    def waiting(self, channels: Sequence[Channel]) -> dict[str, int]:
        """How many notifications of each channel are not sent yet; of a subscription at most a thousand are counted."""
        ids = [channel.id for channel in channels]
        with self._database.reading() as connection:
            query = select(_message.channel, func.min(_message.after_number)).where(
                _message.channel.in_(ids), _message.kind != CONFIRMATION
            )
            begun = dict(connection.execute(query.group_by(_message.channel)).all())
            ranges = [_Range(id, after, None) for id, after in begun.items()]
            return {
                range.channel: len(found)
                for range, found in zip(ranges, _numbers(connection, ranges), strict=True)
            }

    def next_messages(self, channels: Sequence[str]) -> dict[str, float]:
        """When the next message of each channel is tried; those that have none are left out."""
        query = select(_message.channel, func.min(_message.next_try)).where(_message.channel.in_(channels))
        with self._database.reading() as connection:
            return dict(connection.execute(query.group_by(_message.channel)).all())

    def count(self) -> int:
        """How many messages are not sent, those that collect included."""
        with self._database.reading() as connection:
            return int(
                connection.execute(select(func.count()).select_from(tables.channel_messages)).scalar_one()
            )

    def unsent(self) -> dict[str, int]:
        """The subscriptions of which something waits in a channel, with the number after which it does."""
        query = select(_member.subscription, func.min(_message.after_number), func.min(_member.since)).join(
            tables.channel_messages, _message.channel == _member.channel
        )
        is_member = _member.until.is_(None) | (_member.until > _message.after_number)
        query = query.where(_message.kind != CONFIRMATION, is_member).group_by(_member.subscription)
        with self._database.reading() as connection:
            return {id: max(after, since) for id, after, since in connection.execute(query)}


class _Range(NamedTuple):
    channel: str
    after: int
    until: int | None


class _Membership(NamedTuple):
    subscription: str
    since: int
    until: int | None


def _numbers(connection: Connection, ranges: Sequence[_Range]) -> list[list[int]]:
    """The numbers of the notifications in each range of a channel, in order; of a subscription at most `_COUNTED`."""
    kept = kept_numbers(connection)
    members = _members(connection, [range.channel for range in ranges])
    spans = [
        [
            (
                member.subscription,
                max(range.after, member.since),
                min(kept.last if end is None else end for end in (range.until, member.until)),
            )
            for member in members[range.channel]
        ]
        for range in ranges
    ]
    found = _numbers_after(
        connection, {span[:2] for each in spans for span in each if span[1] < span[2]}, kept
    )
    return [
        sorted({number for span in each for number in _until(found.get(span[:2], ()), span[2])})
        for each in spans
    ]


def _numbers_after(
    connection: Connection, begins: set[tuple[str, int]], kept: Span
) -> dict[tuple[str, int], list[int]]:
    """The first decided numbers of a subscription after a number, for each of these pairs."""
    found: dict[tuple[str, int], list[int]] = {}
    rest = sorted(begins)
    while rest:  # a subscription once in each round
        after = dict(rest)
        numbers = numbers_of_each(connection, after, kept, _COUNTED, Among.DECIDED)
        found |= {(id, after[id]): of_it for id, of_it in numbers.items()}
        rest = [pair for pair in rest if after[pair[0]] != pair[1]]
    return found


def _until(numbers: Sequence[int], until: int) -> Sequence[int]:
    return numbers[: bisect_right(numbers, until)]


def _members(connection: Connection, channels: Sequence[str]) -> Mapping[str, list[_Membership]]:
    found: defaultdict[str, list[_Membership]] = defaultdict(list)
    for begin in range(0, len(channels), _PORTION):
        query = select(_member.channel, _member.subscription, _member.since, _member.until)
        for channel, *rest in connection.execute(
            query.where(_member.channel.in_(channels[begin : begin + _PORTION]))
        ):
            found[channel].append(_Membership(*rest))
    return found


def _with_news(connection: Connection, after: int, upto: int) -> dict[str, tuple[int, str, str, float]]:
    """The active channels with notifications between two numbers that are not in a message yet: cursor, schedule, times of
    sending, and when the first of these arrived. Joined here: PostgreSQL, which knows little of tables that change so much,
    took minutes to join 100,000."""
    news: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    # Rows of SQLAlchemy's own would take most of the time, with many channels.
    for subscription, number, at in connection.execute(
        _NEWS, {"after": after, "upto": upto}
    ).cursor.fetchall():
        news[subscription].append((number, at))
    names, found = list(news), dict[str, tuple[int, str, str, float]]()
    for begin in range(0, len(names), _PORTION):
        asked = {"subscriptions": names[begin : begin + _PORTION]}
        for subscription, since, until, id, cursor, schedule, sent in connection.execute(
            _MEMBERS, asked
        ).cursor.fetchall():
            low, high = max(since, cursor), upto if until is None else until
            times = [at for number, at in news[subscription] if low < number <= high]
            if times:
                first = min(times) if id not in found else min(*times, found[id][3])
                found[id] = cursor, schedule, sent, first
    return found


def _with_collecting(connection: Connection, channels: Sequence[str]) -> set[str]:
    """Those of these channels that have a message that collects."""
    found: set[str] = set()
    for begin in range(0, len(channels), _PORTION):
        portion = _message.channel.in_(channels[begin : begin + _PORTION])
        query = select(_message.channel).where(portion, _message.until_number.is_(None))
        found.update(connection.execute(query).scalars())
    return found


def _put_off(connection: Connection, channel: str, after: int, **times: float) -> None:
    is_it = _message.channel == channel, _message.after_number == after
    connection.execute(update(tables.channel_messages).where(*is_it).values(times))


def _key(message: QueuedMessage) -> dict[str, Any]:
    return {"its_channel": message.channel.id, "its_after": message.after}


def _queued(row: Row[Any]) -> QueuedMessage:
    return QueuedMessage(channel_of(row), *row[len(CHANNEL) :])
