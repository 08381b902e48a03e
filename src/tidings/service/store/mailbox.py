"""Stores notifications, numbered over all subscriptions in the order of their commits.

A micro-batch is recorded under its query and batch, in slices of a transaction each: recording it again changes
nothing, and what is recorded of it stands. Deliveries read from a number on; once a number was read, no lower number appears.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa
from sqlalchemy import Connection, bindparam, case, delete, desc, func, select, tuple_, update

from tidings.model.event import Event
from tidings.service.model import (
    NO_SLICES,
    BatchRecord,
    Fault,
    Notice,
    NotificationKind,
    RecordedSlices,
    StoredNotification,
)
from tidings.service.store import tables
from tidings.service.store.mailbox_rows import MailboxRows, event_key, event_of, mailbox_rows, notification_id
from tidings.service.store.notification_search import Blocks, Span, numbers_of, numbers_of_each
from tidings.service.store.tables import block_of, clean
from tidings.service.store.transactions import Database, insert_columns
from tidings.storage.event_log import Offset, Position

HEAD: Final = "0006"
_PORTION = 5_000
_WINDOW = 20_000  # notifications that are looked through for those of a relay's filters
_FEW = 2_000  # notifications that are looked through for those of some subscriptions
_ROOM = 0.95  # of the size that is kept, after something was deleted because of it
_NUMBERS = (1 << 63) - 1
_ONCE = "ON CONFLICT (subscription, id) WHERE event IS NULL DO NOTHING"
_SEEN_AGAIN = "ON CONFLICT (key) DO UPDATE SET last = excluded.last"
_FURTHER = "ON CONFLICT (query) DO UPDATE SET batch = excluded.batch, segment = excluded.segment, byte = excluded.byte"
_SLICE = [column.name for column in tables.slices.c]
_NEXT_SLICE = "ON CONFLICT (query) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in _SLICE[1:]
)
_OF_ROLE = "ON CONFLICT (query) DO UPDATE SET role = excluded.role"

Missed = Callable[[Mapping[str, int]], Sequence[Notice]]
"""The notices to those who have not got what is deleted, by the largest deleted number of each subscription."""

_BATCH = [field.name for field in fields(BatchRecord)]
_columns = tables.notifications.c
_event = tables.events.c
_NOTIFICATIONS: Final = select(
    _columns.number,
    _columns.id,
    _columns.subscription,
    _columns.kind,
    _columns.at,
    _columns.bindings,
    _columns.part,
    _columns.sequence,
    _columns.changes,
    _columns.message,
    _columns.event,
    _event.key,
    _event.id.label("event_id"),
    _event.source,
    _event.type,
    _event.time,
    _event.datacontenttype,
    _event.data,
    _event.attributes,
).select_from(tables.notifications.outerjoin(tables.events, _columns.event == _event.key))

# Every micro-batch runs these, however small it is: made once, because making them took longer than running them.
_counted, _reached, _slices = tables.counters.c, tables.reached.c, tables.slices.c
_COUNTER = select(_counted.value).where(_counted.name == bindparam("counter"))
_RAISE = (
    update(tables.counters)
    .where(_counted.name == bindparam("counter"))
    .values(value=_counted.value + bindparam("by"))
    .returning(_counted.value)
)
_TOTALS = ("events", "notifications", "errors")
_RAISE_TOTALS = (
    update(tables.counters)
    .where(_counted.name.in_(_TOTALS))
    .values(value=_counted.value + case({name: bindparam(name) for name in _TOTALS}, value=_counted.name))
)
_LAST_BATCH = select(_reached.batch).where(_reached.query == bindparam("of_query"))
_SLICES_OF = select(tables.slices).where(
    _slices.query == bindparam("of_query"), _slices.batch == bindparam("of_batch")
)
_DROP_SLICES = delete(tables.slices).where(_slices.query == bindparam("of_query"))
_FIRST_NUMBER = select(func.min(_columns.number))
_BETWEEN = _columns.number > bindparam("after"), _columns.number <= bindparam("upto")
_OWNERS = select(_columns.number, _columns.subscription).where(*_BETWEEN).order_by(_columns.number)
_MISSED = _OWNERS.where(_columns.kind == NotificationKind.MISSED.value)
_EVENT_KEYS = _OWNERS.add_columns(_columns.event).where(_columns.event.is_not(None))
_NEWS = (
    select(_columns.subscription, func.max(_columns.number)).where(*_BETWEEN).group_by(_columns.subscription)
)
_WITH_NUMBERS = _NOTIFICATIONS.where(_columns.number.in_(bindparam("numbers", expanding=True)))
_WITH_KEYS = select(tables.events).where(_event.key.in_(bindparam("keys", expanding=True)))
_SIZES = select(
    _event.key, func.coalesce(func.length(_event.data), 0) + func.coalesce(func.length(_event.attributes), 0)
).where(_event.key.in_(bindparam("keys", expanding=True)))
_KNOWN_EVENTS = select(_event.key, _event.first, _event.last).where(
    _event.key.in_(bindparam("keys", expanding=True))
)


class Mailbox:
    """The mailbox; thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._announce: Callable[[], None] = lambda: None

    def on_commit(self, announce: Callable[[], None]) -> None:
        """Has a function called after each commit of notifications that is made through this object."""
        self._announce = announce

    @property
    def database(self) -> Database:
        """For what else is read from the same tables: see `received` and `reader_marks`."""
        return self._database

    def close(self) -> None:
        self._database.close()

    # --- writing

    def record(
        self, batch: BatchRecord, notifications: pa.Table, events: pa.Table, *, until: Position | None = None
    ) -> bool:
        """Stores the notifications of a micro-batch and their events. With `until` they are a slice of it that ends
        there, and the counts are the slice's; the last slice has none. Returns False, and changes nothing, if the batch
        or the slice is already recorded: both come in order. A notification that is known from another batch is not
        stored again."""
        rows = mailbox_rows(batch, notifications, events)
        with self._database.writing() as connection:
            last = raise_counter(connection, "number", rows.count)
            recorded = self._slice(connection, batch.query, batch.batch)
            if self._is_done(connection, batch) or (until is not None and recorded.until >= until):
                connection.rollback()
                return False
            before = last - rows.count
            new = _new_rows(connection, rows)
            numbers = [before + number for number in new["number"]]
            insert_columns(connection, tables.notifications, {**new, "number": numbers})
            spans = {name: [before + number for number in rows.events[name]] for name in ("first", "last")}
            insert_columns(connection, tables.events, {**rows.events, **spans}, _SEEN_AGAIN)
            if faults := len(rows.faults["message"]):
                end = raise_counter(connection, "fault", faults)
                insert_columns(
                    connection, tables.faults, {"number": range(end - faults + 1, end + 1), **rows.faults}
                )
            whole = replace(
                batch,
                events=recorded.events + batch.events,
                notifications=recorded.notifications + batch.notifications,
                errors=recorded.errors + batch.errors,
            )
            if until is None:
                self._settle(connection, whole)
            else:
                values = {**{name: getattr(whole, name, 0) for name in _SLICE}, **until._asdict()}
                insert_columns(
                    connection, tables.slices, {name: [value] for name, value in values.items()}, _NEXT_SLICE
                )
        self._announce()
        return True

    def recorded(self, query: str, batch: int) -> RecordedSlices:
        """What is recorded of a batch that is not complete."""
        with self._database.reading() as connection:
            return self._slice(connection, query, batch)

    def know(self, query: str, role: str, start: Offset, batch: int = -1) -> None:
        """Notes the role of a query, and where it goes on, after which batch, if it is not known here."""
        values = {"query": query, "batch": batch, "segment": start.segment, "byte": start.byte, "role": role}
        with self._database.writing() as connection:
            insert_columns(
                connection, tables.reached, {name: [value] for name, value in values.items()}, _OF_ROLE
            )

    def advance(self, query: str, end: Offset) -> None:
        """Notes that a query has nothing to answer up to there, although it has read no micro-batch of it, if it has not
        come further meanwhile."""
        kept = tables.reached.c
        is_further = tuple_(kept.segment, kept.byte) < tuple_(end.segment, end.byte)
        with self._database.writing() as connection:
            connection.execute(
                update(tables.reached)
                .where(kept.query == clean(query), is_further)
                .values(segment=end.segment, byte=end.byte)
            )

    def notify(self, notices: Iterable[Notice]) -> None:
        """Stores notices, once for each subscription and id."""
        with self._database.writing() as connection:
            _insert_notices(connection, list(notices))
        self._announce()

    def forget(self, before: float, now: float, missed: Missed) -> None:
        """Deletes notifications from before a time, lowest numbers first, up to the first that is younger; then the
        events that no notification needs. One that is stamped later than now says nothing of its age: it goes with
        what comes after it."""
        with self._database.reading() as connection:
            young = select(_columns.number).where(_columns.at >= before, _columns.at <= now)
            first = connection.execute(young.order_by(_columns.number).limit(1)).scalar()
            old = select(func.max(_columns.number)).where(_columns.at < before)
            end = connection.execute(old if first is None else old.where(_columns.number < first)).scalar()
        self._forget_to(end, missed)
        with self._database.writing() as connection:
            self._forget_batches(connection, before)

    def forget_beyond(self, size: int, missed: Missed) -> None:
        """Deletes notifications, lowest numbers first, until about `size` bytes are left, and a little more: the next
        ones have room."""
        last = self.last()  # the notices that come of it stay
        while (used := self._database.size()) > size:
            with self._database.reading() as connection:
                numbers = select(_columns.number).where(_columns.number <= last)
                kept = connection.execute(select(func.count()).select_from(numbers.subquery())).scalar_one()
                surplus = math.ceil(kept * (1 - _ROOM * size / used))
                ends = numbers.order_by(_columns.number).offset(max(0, surplus - 1)).limit(1)
                end = connection.execute(ends).scalar()
            if end is None:
                return
            self._forget_to(end, missed)

    def shrink(self) -> None:
        """Gives what was forgotten back to the disk, if it is much."""
        self._database.shrink()

    def _forget_to(self, end: int | None, missed: Missed) -> None:
        """Deletes notifications up to a number, in portions, so that others can write in between. `missed` is given the
        largest deleted number of each subscription, and what it answers is stored in the same transaction."""
        while end is not None:
            with self._database.writing() as connection:
                raise_counter(connection, "number", 0)  # first, as every writer does: they take turns
                rows = connection.execute(
                    select(_columns.number, _columns.subscription)
                    .where(_columns.number <= end)
                    .order_by(_columns.number)
                    .limit(_PORTION)
                ).all()
                if not rows:
                    return
                last = rows[-1].number
                connection.execute(delete(tables.notifications).where(_columns.number <= last))
                connection.execute(delete(tables.events).where(_event.last <= last))
                for marks in (tables.stars, tables.read_positions):
                    connection.execute(delete(marks).where(marks.c.number <= last))
                notices = missed({row.subscription: row.number for row in rows})
                for notice in notices:  # which replace those that say less
                    same = _columns.subscription == notice.subscription, _columns.id == notice.id
                    is_notice = _columns.event.is_(None)  # which the index of their ids says
                    connection.execute(delete(tables.notifications).where(*same, is_notice))
                _insert_notices(connection, notices)
            if notices:
                self._announce()

    # --- reading

    def page(
        self,
        subscriptions: Sequence[str],
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[StoredNotification]:
        """With `after` the notifications after that number, oldest first; otherwise newest first, from `before` on."""
        ids = sorted({clean(id) for id in subscriptions})
        newest = after is None
        with self._database.reading() as connection:
            kept = kept_numbers(connection)
            span = Span(
                kept.first if after is None else max(kept.first, _bounded(after) + 1),
                kept.last if before is None else min(kept.last, _bounded(before) - 1),
            )
            # The index has all that is needed to choose; whole rows and events are read of the chosen ones alone.
            found = stored_notifications(connection, numbers_of(connection, ids, span, limit, newest=newest))
        return found[::-1] if newest else found

    def pages(self, after: Mapping[str, int], limit: int) -> dict[str, list[StoredNotification]]:
        """The first notifications of each subscription after a number of its own, oldest first; those without any are
        left out."""
        cursors = {clean(id): _bounded(number) for id, number in after.items()}
        found: defaultdict[str, list[StoredNotification]] = defaultdict(list)
        lowest = min(cursors.values(), default=0)
        with self._database.reading() as connection:
            last = counter_value(connection, "number")
            if last - lowest <= _FEW:  # as with streams that wait for what comes
                numbers = _numbers_between(connection, cursors, Span(lowest + 1, last), limit)
            else:
                of_each = numbers_of_each(connection, cursors, kept_numbers(connection), limit)
                numbers = sorted(chain.from_iterable(of_each.values()))
            for notification in stored_notifications(connection, numbers):
                found[notification.subscription].append(notification)
        return found

    def find(self, subscription: str, id: str) -> StoredNotification | None:
        key = event_of(id)
        is_it = _columns.id == id if key is None else _columns.event == key  # a notice has its id, others may
        with self._database.reading() as connection:
            span = kept_numbers(connection) if key is None else _span_of(connection, key)
            for blocks in Blocks(connection).groups(span, newest=True):
                there = block_of(tables.notifications).in_(blocks), _columns.subscription == subscription
                query = _NOTIFICATIONS.where(*there, _columns.number.between(*span), is_it)
                for row in connection.execute(query.order_by(desc(_columns.number))):
                    notification = _notification(row, {})
                    if notification.id == clean(id):
                        return notification
        return None

    def news(self, after: int) -> tuple[int, dict[str, int]]:
        """The last number now, and the last number of each subscription that has notifications after `after`."""
        after = _bounded(after)
        with self._database.reading() as connection:
            last = counter_value(connection, "number")
            if last <= after:
                return last, {}
            # After each commit: rows of SQLAlchemy's own would take most of the time.
            return last, dict(connection.execute(_NEWS, {"after": after, "upto": last}).cursor.fetchall())

    def events_of(
        self, subscriptions: Collection[str], after: int, upto: int, limit: int, size: int = _NUMBERS
    ) -> tuple[list[tuple[int, Event]], int]:
        """The events that some of these subscriptions were notified of, each once, with the number of the first such
        notification after `after`; and the number up to which these are all. At most `limit` events, and `size` bytes
        unless the first has more."""
        after, upto = _bounded(after), _bounded(upto)
        keys: dict[bytes, int] = {}
        with self._database.reading() as connection:
            upto = min(upto, counter_value(connection, "number"))
            while after < upto and not keys and subscriptions:
                end = min(after + _WINDOW, upto)
                window = connection.execute(_EVENT_KEYS, {"after": after, "upto": end}).cursor.fetchall()
                after = end
                for number, subscription, event in window:
                    if subscription not in subscriptions or bytes(event) in keys:
                        continue
                    if len(keys) == limit:
                        after = number - 1
                        break
                    keys[bytes(event)] = number
            if (beyond := _first_beyond(connection, keys, size)) is not None:
                after = beyond - 1
                keys = {key: number for key, number in keys.items() if number < beyond}
            rows = connection.execute(_WITH_KEYS, {"keys": list(keys)}) if keys else ()
            found = sorted(((keys[bytes(row.key)], _event_of(row)) for row in rows), key=lambda pair: pair[0])
        return found, after if subscriptions else upto

    def missed(self, subscriptions: Collection[str], after: int, upto: int) -> dict[str, int]:
        """Those of these subscriptions that may miss something between two numbers, and up to which number: they have a
        notice of it there, or what was there is no longer kept, of whichever subscription it was."""
        after, upto = _bounded(after), _bounded(upto)
        if not subscriptions or upto <= after:
            return {}
        with self._database.reading() as connection:
            rows = connection.execute(_MISSED, {"after": after, "upto": upto}).cursor.fetchall()
            first = connection.execute(_FIRST_NUMBER).scalar()
        deleted = upto if first is None else min(int(first) - 1, upto)
        found = dict.fromkeys(subscriptions, deleted) if after < deleted else {}
        return found | {id: number for number, id in rows if id in subscriptions}

    def time_of(self, source: str, id: str) -> float | None:
        """When the notifications of an event were stored; None if there are none."""
        with self._database.reading() as connection:
            span = _span_of(connection, event_key(source, id))
            query = select(_columns.at).where(_columns.number.between(*span))
            return connection.execute(query.order_by(_columns.number).limit(1)).scalar()

    def number_before(self, at: float) -> int:
        """The number after which everything was stored at this time or later."""
        with self._database.reading() as connection:
            first = connection.execute(select(func.min(_columns.number)).where(_columns.at >= at)).scalar()
            return counter_value(connection, "number") if first is None else int(first) - 1

    def first(self) -> int:
        """The smallest number that is still kept; one above the last if there is none."""
        with self._database.reading() as connection:
            return kept_numbers(connection).first

    def last(self) -> int:
        """The largest number ever given; 0 before the first."""
        with self._database.reading() as connection:
            return counter_value(connection, "number")

    def reached(self) -> dict[str, Offset]:
        """The end of what the last batch of each query had read of the log."""
        kept = tables.reached.c
        with self._database.reading() as connection:
            rows = connection.execute(select(kept.query, kept.segment, kept.byte))
            return {query: Offset(segment, byte) for query, segment, byte in rows}

    def last_batch(self, query: str) -> int | None:
        """The number of the last batch of a query; None before its first."""
        with self._database.reading() as connection:
            found = connection.execute(_LAST_BATCH, {"of_query": clean(query)}).scalar()
        return None if found is None or found < 0 else int(found)

    def reached_by(self, role: str) -> Offset | None:
        """The furthest that queries of a role have come; None if there was none."""
        kept = tables.reached.c
        with self._database.reading() as connection:
            rows = connection.execute(select(kept.segment, kept.byte).where(kept.role == role))
            return max((Offset(segment, byte) for segment, byte in rows), default=None)

    def batches(self, limit: int = 100) -> list[BatchRecord]:
        """Newest first."""
        kept = tables.batches
        query = select(kept).order_by(kept.c.ended.desc(), kept.c.batch.desc()).limit(max(limit, 0))
        with self._database.reading() as connection:
            return [BatchRecord(**row._mapping) for row in connection.execute(query)]

    def faults(self, limit: int = 50) -> list[Fault]:
        """Newest first."""
        kept = tables.faults.c
        query = select(kept.source, kept.event, kept.message, kept.at).order_by(kept.number.desc())
        with self._database.reading() as connection:
            return [Fault(*row) for row in connection.execute(query.limit(max(limit, 0)))]

    def totals(self) -> dict[str, int]:
        """How many events the batches have read and how many notifications they gave, ever."""
        with self._database.reading() as connection:
            return {name: counter_value(connection, name) for name in _TOTALS}

    # ---

    def _is_done(self, connection: Connection, batch: BatchRecord) -> bool:
        done = connection.execute(_LAST_BATCH, {"of_query": clean(batch.query)}).scalar()
        return done is not None and batch.batch <= done

    def _slice(self, connection: Connection, query: str, batch: int) -> RecordedSlices:
        found = connection.execute(_SLICES_OF, {"of_query": clean(query), "of_batch": batch}).first()
        if found is None:
            return NO_SLICES
        until = Position(found.segment, found.byte, found.row)
        return RecordedSlices(until, found.events, found.notifications, found.errors)

    def _settle(self, connection: Connection, batch: BatchRecord) -> None:
        values = {name: [getattr(batch, name)] for name in _BATCH}
        values |= {name: [clean(value) for value in values[name]] for name in ("query", "version")}
        insert_columns(connection, tables.batches, values)
        reached = {name: values[name] for name in ("query", "batch", "segment", "byte")}
        insert_columns(connection, tables.reached, reached, _FURTHER)
        connection.execute(_DROP_SLICES, {"of_query": values["query"][0]})
        connection.execute(_RAISE_TOTALS, {name: getattr(batch, name) for name in _TOTALS})

    def _forget_batches(self, connection: Connection, before: float) -> None:
        """Deletes old batches; the last one of each query stays known."""
        connection.execute(delete(tables.batches).where(tables.batches.c.ended < before))
        connection.execute(delete(tables.faults).where(tables.faults.c.at < before))


def _insert_notices(connection: Connection, notices: Sequence[Notice]) -> None:
    last = raise_counter(connection, "number", len(notices))
    columns: dict[str, Sequence[Any]] = {
        "number": range(last - len(notices) + 1, last + 1),
        "subscription": [clean(notice.subscription) for notice in notices],
        "id": [clean(notice.id) for notice in notices],
        "kind": [notice.kind.value for notice in notices],
        "at": [notice.at for notice in notices],
        "message": [clean(notice.message) for notice in notices],
    }
    insert_columns(connection, tables.notifications, columns, _ONCE)


def kept_numbers(connection: Connection) -> Span:
    """The numbers that are kept; nothing is above the last before this transaction ends, as far as it sees."""
    last = counter_value(connection, "number")
    first = connection.execute(_FIRST_NUMBER).scalar()
    return Span(last + 1 if first is None else int(first), last)


def _numbers_between(connection: Connection, after: Mapping[str, int], span: Span, limit: int) -> list[int]:
    """The first numbers of each subscription after a number of its own, all within a span, in order."""
    found: Counter[str] = Counter()
    numbers = []
    rows = connection.execute(_OWNERS, {"after": span.first - 1, "upto": span.last}).cursor.fetchall()
    for number, subscription in rows:
        if number > after.get(subscription, span.last) and found[subscription] < limit:
            found[subscription] += 1
            numbers.append(number)
    return numbers


def _span_of(connection: Connection, key: bytes) -> Span:
    """Between which numbers the notifications of an event are; nothing if it is not known."""
    found = connection.execute(select(_event.first, _event.last).where(_event.key == key)).first()
    return Span(1, 0) if found is None else Span(found.first or kept_numbers(connection).first, found.last)


def stored_notifications(connection: Connection, numbers: Sequence[int]) -> list[StoredNotification]:
    """The notifications with these numbers, oldest first."""
    found = []
    events: dict[bytes, Event] = {}  # each is read once
    for begin in range(0, len(numbers), _PORTION):
        portion = {"numbers": numbers[begin : begin + _PORTION]}
        found += [_notification(row, events) for row in connection.execute(_WITH_NUMBERS, portion)]
    return sorted(found, key=attrgetter("number"))


def _first_beyond(connection: Connection, keys: Mapping[bytes, int], size: int) -> int | None:
    """The number of the first event, but for the very first, that no longer fits into so many bytes; None if all do. Only the
    sizes are read: the events may be more than the memory."""
    if len(keys) < 2 or size == _NUMBERS:
        return None
    found = connection.execute(_SIZES, {"keys": list(keys)}).cursor.fetchall()
    sizes, total = {bytes(key): length for key, length in found}, 0
    for at, (key, number) in enumerate(keys.items()):  # in the order of the numbers
        total += sizes.get(key, 0)
        if at and total > size:
            return number
    return None


def _new_rows(connection: Connection, rows: MailboxRows) -> dict[str, Sequence[Any]]:
    """The notifications that are not stored yet. Only events that are known may have others, and are few."""
    known: dict[bytes, Span] = {}
    whole, there = kept_numbers(connection), Blocks(connection)
    keys = rows.events["key"]
    for begin in range(0, len(keys), _PORTION):
        portion = {"keys": keys[begin : begin + _PORTION]}
        for key, first, last in connection.execute(_KNOWN_EVENTS, portion):
            known[key] = Span(first or whole.first, last)
    given = rows.notifications
    if not known:
        return given
    chosen = [_columns[name] for name in ("subscription", "event", "kind", "part", "sequence")]
    nulls = [None] * rows.count

    def is_new(row: tuple[Any, ...]) -> bool:
        if row[1] not in known:
            return True
        span = known[row[1]]
        same = _columns.subscription == row[0], _columns.event == row[1], _columns.number.between(*span)
        for blocks in there.groups(span, newest=True):
            query = select(*chosen).where(block_of(tables.notifications).in_(blocks), *same)
            if row in {tuple(found) for found in connection.execute(query)}:
                return False
        return True

    identities = zip(*(given.get(column.name, nulls) for column in chosen), strict=True)
    kept = [row for row, identity in enumerate(identities) if is_new(identity)]
    return {name: [values[row] for row in kept] for name, values in given.items()}


def raise_counter(connection: Connection, name: str, count: int) -> int:
    """Raises a counter and returns its new value; nobody else changes it before this transaction ends."""
    return int(connection.execute(_RAISE, {"counter": name, "by": count}).scalar_one())


def counter_value(connection: Connection, name: str) -> int:
    return int(connection.execute(_COUNTER, {"counter": name}).scalar_one())


def _bounded(number: int) -> int:
    """The cursor within 64 bits, which is what databases hold; a client may send any integer."""
    return max(-1, min(number, _NUMBERS))


def _notification(row: Any, events: dict[bytes, Event]) -> StoredNotification:
    event = None
    if row.key is not None and (event := events.get(bytes(row.key))) is None:
        event = events[bytes(row.key)] = _event_of(row, row.event_id)
    return StoredNotification(
        number=row.number,
        id=row.id
        if row.id is not None
        else notification_id(row.subscription, row.event, row.part, row.sequence, row.kind),
        subscription=row.subscription,
        kind=NotificationKind(row.kind),
        at=row.at,
        event=event,
        bindings=_object(row.bindings) if row.bindings else {},
        part=row.part,
        sequence=row.sequence,
        changes=_changes_of(row.changes) if row.changes else (),
        message=row.message,
    )


def _changes_of(written: str) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"table": table, "change": change, "row": _object(text)}
        for table, change, text in json.loads(written)
    )


def _event_of(row: Any, id: str | None = None) -> Event:
    return Event(
        source=row.source or "",
        attributes=_object(row.attributes),
        id=(row.id if id is None else id) or "",
        type=row.type or "",
        time=row.time,
        datacontenttype=row.datacontenttype or "",
        data=row.data or b"",
    )


def _object(written: str | None) -> dict[str, Any]:
    """A JSON object; empty if it cannot be read."""
    try:
        value = json.loads(written) if written else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
