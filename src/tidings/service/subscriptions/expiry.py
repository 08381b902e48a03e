"""Expires subscriptions, sends the notices around expiry, and deletes data after its retention time.

A subscription whose validity is over leaves the index in two steps. First the end of the event log is recorded;
when the stream has matched up to there, the subscription is removed. So no event that was accepted in time is
lost, however far behind the stream is, and matching reads no clock: a replay gives the same answer. Every step
can be repeated after a crash.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

from tidings.service.matching.stream_position import answered, current_queries
from tidings.service.model import HIDDEN, IN_PROCESS, Notice, NotificationKind, State, Subscription
from tidings.service.settings import DAY, Settings
from tidings.service.store.channel_messages import ChannelMessages
from tidings.service.store.channels import ChannelStore
from tidings.service.store.transactions import StoreAway
from tidings.spark.offsets import batch_range, is_committed
from tidings.storage.event_log import START, EventLog, Offset

if TYPE_CHECKING:
    from tidings.service.ingest.deduplication import Deduplication
    from tidings.service.matching.index_writer import IndexWriter
    from tidings.service.store.mailbox import Mailbox
    from tidings.service.store.registry import Registry

EVERY = 1.0
UNCONFIRMED = 7 * DAY  # after which a channel that nobody has confirmed is removed
RETENTION_EVERY = 300.0
SIZE_EVERY = 30.0
_FAR_EVERY = 60.0
_SHARE = 0.1  # of the validity that is left when its end is announced
_LONGEST, _SHORTEST = 3_600.0, 60.0
_AT_ONCE = 1_000
_MANY = 100_000

logger = logging.getLogger(__name__)


class Expiry:
    """A thread that runs `sweep` every second; without the thread, a caller may run it."""

    def __init__(
        self,
        registry: Registry,
        mailbox: Mailbox,
        log: EventLog,
        deduplication: Deduplication,
        index_writer: IndexWriter,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._mailbox = mailbox
        self._log = log
        self._deduplication = deduplication
        self._index_writer = index_writer
        self._retention, self._keep_size = settings.retention, settings.keep_size
        self._checkpoint = settings.data / "checkpoint"
        self._clock = clock
        self._channels, self._messages = ChannelStore(mailbox), ChannelMessages(mailbox)
        self._ends: dict[str, Offset] = {}  # whose time is over -> the log's end when that was seen
        self._expired_told = False
        self._far_due = self._retention_due = self._size_due = float("-inf")
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._steps = (
            self.notify_missed_expiries,
            self.expire,
            self.notify_expiring,
            self.retain,
            self.bound_size,
        )

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="sweeper", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=30)

    def sweep(self) -> None:
        """Runs every step once. A failing step is logged and repeated in the next round; the others go on."""
        for step in self._steps:
            try:
                step()
            except StoreAway as error:
                logger.warning("the sweeper could not %s: %s", step.__name__.replace("_", " "), error)
                return
            except Exception:
                if self._stopping.is_set():
                    return
                logger.exception("the sweeper could not %s", step.__name__.replace("_", " "))

    def _run(self) -> None:
        while not self._stopping.wait(EVERY):
            self.sweep()

    def _notify(self, notices: list[Notice]) -> None:
        if notices:
            self._mailbox.notify(notices)

    # Expiry

    def notify_missed_expiries(self) -> None:
        """Sends the expiry notices that a crash prevented, once after a start. A notice has an id, so those already
        sent are not repeated."""
        if self._expired_told:
            return
        oldest, after = self._clock() - self._retention, None
        while page := self._registry.page(owner=None, state=State.EXPIRED, after=after, limit=_AT_ONCE):
            unnotified = [
                subscription
                for subscription in page
                if subscription.valid_until is not None and subscription.valid_until > oldest
            ]
            self._notify(
                [_expired(subscription, subscription.valid_until or 0.0) for subscription in unnotified]
            )
            after = page[-1].id
        self._expired_told = True

    def expire(self) -> None:
        """Records subscriptions whose validity is over, and ends those whose events are all matched."""
        due = self._registry.expiring(self._clock(), limit=_AT_ONCE + len(self._ends))
        if not due:
            self._ends.clear()
            return
        end = self._log.end()
        # Who was renewed meanwhile is not due any more, and forgotten here.
        self._ends = {subscription.id: self._ends.get(subscription.id, end) for subscription in due}
        matched = answered(self._checkpoint, self._mailbox, self._log)
        clear: dict[Offset, bool] = {}  # most were seen at the same end
        ready = []
        for subscription in due:
            upto = self._ends[subscription.id]
            if upto not in clear:
                clear[upto] = self._nothing_between(matched, upto)
            if clear[upto] or subscription.state is not State.ACTIVE:
                ready.append(subscription)
        if not ready:
            return
        # Who is renewed or cancelled at this moment is left out.
        ended, change = self._registry.expire(ready)
        now = self._clock()
        self._notify(
            [
                _expired(subscription, now)
                for subscription in ready
                if subscription.id in ended and not subscription.owner.startswith(HIDDEN)
            ]
        )
        for id in ended:
            del self._ends[id]
        if change is not None:
            self._index_writer.wait_for(change)

    def _nothing_between(self, low: Offset, high: Offset) -> bool:
        """Whether no event lies between two offsets. The end of a segment and the start of the next are the same
        position with two offsets, so comparing is not enough."""
        low = max(low, self._log.start())
        return low >= high or next(self._log.frames(low, high), None) is None

    # The notice before it

    def notify_expiring(self) -> None:
        """Sends the notice before expiry, once for each end of validity."""
        now = self._clock()
        # Whatever is within a minute is looked for every second; what is farther has time for a longer look.
        horizon, limit = now + _SHORTEST, _AT_ONCE + len(self._ends)
        if now >= self._far_due:
            horizon, limit = now + _LONGEST, _MANY
            self._far_due = now + _FAR_EVERY
        soon = self._registry.expiring(horizon, warned=False, limit=limit)
        due = [
            subscription
            for subscription in soon
            if subscription.valid_until is not None
            and now < subscription.valid_until <= now + _notice_period(subscription)
        ]
        for first in range(0, len(due), _AT_ONCE):
            chunk = due[first : first + _AT_ONCE]
            # Notified first, then recorded: in the other order a crash between the two would lose the notice. A
            # subscription that is changed at this moment is checked again in the next round.
            self._notify([_expires_soon(subscription, now) for subscription in chunk])
            self._registry.warn(chunk)

    # Retention

    def retain(self) -> None:
        """Deletes what is older than the retention time, every few minutes, and notifies subscribers who missed
        notifications by it."""
        now = self._clock()
        if now < self._retention_due:
            return
        before = now - self._retention
        self._drop_old_events(before, now)
        self._mailbox.forget(before, now, self._missed(f"within {_days(self._retention)}"))
        self._mailbox.shrink()
        self._index_writer.drop()
        self._registry.remove_ended(before)
        self._channels.forget_unconfirmed(now - UNCONFIRMED)
        self._channels.forget_members()
        self._retention_due = now + RETENTION_EVERY

    def bound_size(self) -> None:
        """Deletes the oldest of what is more than the size that is kept, in the log and in the mailbox."""
        now, size = self._clock(), self._keep_size
        if size is None or now < self._size_due:
            return
        self._drop_surplus_events(size)
        self._mailbox.forget_beyond(size, self._missed("before there was no room for them"))
        self._mailbox.shrink()
        self._size_due = now + SIZE_EVERY

    def _missed(self, when: str) -> Callable[[Mapping[str, int]], list[Notice]]:
        """The notice to subscriptions whose webhooks or channels have not got what is deleted. Repeated for more, it is one
        notice. A channel gets it with the message that waits."""

        @cache
        def cursors() -> dict[str, int]:
            found = self._messages.unsent()
            for delivery in self._registry.deliveries():
                id = delivery.subscription
                found[id] = min(delivery.cursor, found.get(id, delivery.cursor))
            return found

        def notices(dropped: Mapping[str, int]) -> list[Notice]:
            return [
                Notice(
                    id,
                    NotificationKind.MISSED,
                    f"missed {cursors()[id]}",
                    self._clock(),
                    f"notifications after number {cursors()[id]} up to number {last} could not be delivered {when},"
                    " and are not kept any longer",
                )
                for id, last in dropped.items()
                if last > cursors().get(id, last)
            ]

        return notices

    def _drop_old_events(self, before: float, now: float) -> None:
        """Drops segments that were last written to before then. One with a time that is yet to come goes with what
        comes after it."""
        keep = self._log.start().segment
        for segment in self._droppable():
            written = _file(self._log, segment).st_mtime
            if before <= written <= now:
                break
            if written < before:
                keep = segment + 1
        self._drop_segments(keep)

    def _drop_surplus_events(self, size: int) -> None:
        start, end = self._log.start(), self._log.end()
        total = sum(_file(self._log, segment).st_size for segment in range(start.segment, end.segment + 1))
        keep = start.segment
        for segment in self._droppable():
            if total <= size:
                break
            total -= _file(self._log, segment).st_size
            keep = segment + 1
        self._drop_segments(keep)

    def _drop_segments(self, keep: int) -> None:
        if keep > self._log.start().segment:
            self._log.drop_before(Offset(keep, START))
        self._deduplication.drop_before(keep)

    def _droppable(self) -> range:
        """The segments that the stream will not read again. A recorded micro-batch may be one that Spark has not
        committed: after a crash it is read again from its start."""
        start, reached = self._log.start(), self._mailbox.reached()
        safe = []
        for folder, query in current_queries(self._checkpoint):
            batch = self._mailbox.last_batch(query)
            if batch is None or query == IN_PROCESS or is_committed(folder, batch):
                safe.append(reached.get(query, start))
            else:
                safe.append(batch_range(folder, batch).start or start)
        return range(start.segment, min(self._log.end().segment, min(safe, default=start).segment))


def _notice_period(subscription: Subscription) -> float:
    """How long before its end a subscription gets the notice: a tenth of its validity, between a minute and an hour;
    half of a validity of a minute or two."""
    began = subscription.created if subscription.renewed is None else subscription.renewed
    validity = (subscription.valid_until or began) - began
    return min(max(_SHARE * validity, _SHORTEST), _LONGEST, validity / 2)


def _expires_soon(subscription: Subscription, now: float) -> Notice:
    message = f"this subscription ends at {_time(subscription.valid_until)}; renew it to go on"
    return Notice(
        subscription.id,
        NotificationKind.EXPIRES_SOON,
        f"expires-soon {subscription.valid_until:.3f}",
        now,
        message,
    )


def _expired(subscription: Subscription, at: float) -> Notice:
    message = f"this subscription ended at {_time(subscription.valid_until)}; while it is kept, renewing it wakes it again"
    return Notice(
        subscription.id, NotificationKind.EXPIRED, f"expired {subscription.valid_until:.3f}", at, message
    )


def _time(at: float | None) -> str:
    return datetime.fromtimestamp(at or 0.0, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _days(seconds: float) -> str:
    days = seconds / DAY
    return f"{days:g} day{'' if days == 1 else 's'}" if days >= 1 else f"{seconds:,.0f} seconds"


def _file(log: EventLog, segment: int) -> os.stat_result:
    return (log.folder / f"{segment:012d}.log").stat()
