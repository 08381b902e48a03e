"""Sends notices of events that are lost before they were matched: by the disk that had them, or by an upstream service."""

from __future__ import annotations

import logging
from itertools import islice

from tidings.service.model import JOINS, MATCH, Notice, NotificationKind
from tidings.service.store.mailbox import Mailbox
from tidings.service.store.registry import Registry
from tidings.storage.event_log import EventLog

_AT_ONCE = 1_000
_BY_DISK = (
    "events that were accepted may be missing: the disk has lost the end of the event log before they were matched;"
    " who sends them again is not refused"
)
_UPSTREAM = "events may be missing: the upstream service did not keep them until this relay could read them, or lost them itself"

logger = logging.getLogger(__name__)


def notify_of_lost_events(log: EventLog, registry: Registry, mailbox: Mailbox, now: float) -> None:
    """Sends every active subscription a `missed` notice if the log has lost events that a query has not matched. To be called before matching begins: a stream goes on behind what is lost. A notice has an id, so
    a crash here repeats none."""
    reached = [offset for role in (MATCH, JOINS) if (offset := mailbox.reached_by(role)) is not None]
    for low, high in log.lost():
        if reached and min(reached) >= high:
            continue  # all of it was answered before it was lost
        count = _notify_all(registry, mailbox, f"missed log {low}", _BY_DISK, now)
        logger.warning(
            "%d subscriptions are notified that events from %s to %s may be missing", count, low, high
        )
    log.forget_lost()


def notify_of_gap(registry: Registry, mailbox: Mailbox, service: str, number: int, now: float) -> None:
    """Sends every active subscription of a relay a `missed` notice: events of an upstream service up to this number may be
    missing. Repeated for the same number, it is one notice."""
    count = _notify_all(registry, mailbox, f"missed upstream {service} {number}", _UPSTREAM, now)
    logger.warning(
        "%d subscriptions are notified that events up to number %d of %s may be missing",
        count,
        number,
        service,
    )


def _notify_all(registry: Registry, mailbox: Mailbox, id: str, message: str, now: float) -> int:
    """Notifies all active subscriptions, also the filters of relays below, which notify theirs; how many there are."""
    ids, count = (id for id, _ in registry.active()), 0
    while portion := list(islice(ids, _AT_ONCE)):
        mailbox.notify(
            Notice(subscription, NotificationKind.MISSED, id, now, message) for subscription in portion
        )
        count += len(portion)
    return count
