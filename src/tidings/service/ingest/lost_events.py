"""Sends notices of events that were accepted, and that a disk has lost before they were matched."""

from __future__ import annotations

import logging

from tidings.service.model import JOINS, MATCH, Notice, NotificationKind, State
from tidings.service.store.mailbox import Mailbox
from tidings.service.store.registry import Registry
from tidings.storage.event_log import EventLog

_AT_ONCE = 1_000
_MESSAGE = (
    "events that were accepted may be missing: the disk has lost the end of the event log before they were matched;"
    " who sends them again is not refused"
)

logger = logging.getLogger(__name__)


def notify_of_lost_events(log: EventLog, registry: Registry, mailbox: Mailbox, now: float) -> None:
    """Sends every active subscription a `missed` notice if the log has lost events that a query has not matched. To be called before matching begins: a stream goes on behind what is lost. A notice has an id, so
    a crash here repeats none."""
    reached = [offset for role in (MATCH, JOINS) if (offset := mailbox.reached_by(role)) is not None]
    for low, high in log.lost():
        if reached and min(reached) >= high:
            continue  # all of it was answered before it was lost
        after: str | None = None
        count = 0
        while page := registry.page(owner=None, state=State.ACTIVE, after=after, limit=_AT_ONCE):
            mailbox.notify(
                Notice(subscription.id, NotificationKind.MISSED, f"missed log {low}", now, _MESSAGE)
                for subscription in page
            )
            after, count = page[-1].id, count + len(page)
        logger.warning(
            "%d subscriptions are notified that events from %s to %s may be missing", count, low, high
        )
    log.forget_lost()
