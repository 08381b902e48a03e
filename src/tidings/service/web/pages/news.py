"""Lists of notifications on pages: a line each, a snapshot as one, and what is undecided as one line for each cause.

A list shows so many lines and where the next ones begin. What arrives while a page is open comes as a fragment with the
same lines; it says up to which number it is complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from tidings.service.delivery.notification_json import moment
from tidings.service.model import NotificationKind, StoredNotification
from tidings.service.store.received import Causes
from tidings.service.web.api.callers import Caller
from tidings.service.web.api.received import Filter, find
from tidings.service.web.pages.cards import notification_card

_READ = 4  # notifications that are read for each line: a snapshot has one of each part
_ARRIVED = 100  # in one fragment

Titles = Mapping[str, str]
"""Subscriptions by id, with what each is called."""


def listing(
    visiting: Caller, titles: Titles, wanted: Filter, *, before: int | None = None, lines: int
) -> dict[str, Any]:
    """The newest notifications of these subscriptions that are wanted, and the number to go on before."""
    if not titles:
        return {"notifications": [], "next": None}
    page = find(visiting, list(titles), wanted, before=before, limit=_READ * lines)
    groups = list(_grouped(page.notifications))
    further = page.further
    if len(groups) > lines:
        groups = groups[:lines]
        further = groups[-1][-1].number
    return {"notifications": _cards(visiting, titles, groups), "next": further}


def undecided_causes(
    visiting: Caller, titles: Titles, *, after: int = 0, until: int | None = None
) -> list[dict[str, Any]]:
    """Why events could not be decided, the latest cause first."""
    found = (
        visiting.service.received.causes(list(titles), after=after, until=until)
        if titles
        else Causes([], False)
    )
    return [
        {
            "cause": cause.name,
            "message": cause.message,
            "count": cause.count,
            "more": found.more,
            "number": cause.last,
            "time": moment(cause.at),
            "subscriptions": sorted(cause.subscriptions),
        }
        for cause in found.causes
    ]


def arrivals(visiting: Caller, titles: Titles, after: int) -> dict[str, Any]:
    """What came after a number, oldest first. It is complete up to the number `reached`, and there is more if `full`."""
    service = visiting.service
    last = service.mailbox.last()  # before the lists: what comes in between is sent again, not missed
    news = service.received.news(list(titles), after, _ARRIVED) if titles else []
    news = [notification for notification in news if notification.number <= last]
    full = len(news) == _ARRIVED
    reached = news[-1].number if full else max(after, last)
    return {
        "notifications": _cards(visiting, titles, list(_grouped(news))),
        "causes": undecided_causes(visiting, titles, after=after, until=reached),
        "reached": reached,
        "full": full,
    }


def _grouped(notifications: Sequence[StoredNotification]) -> Iterator[list[StoredNotification]]:
    """Notifications of one line: those of a snapshot together, which has one of each part."""

    def key(notification: StoredNotification) -> object:
        if notification.kind is not NotificationKind.SNAPSHOT or notification.event is None:
            return notification.number
        return notification.subscription, notification.event.source, notification.event.id

    return (list(group) for _, group in groupby(notifications, key))


def _cards(
    visiting: Caller, titles: Titles, groups: Sequence[Sequence[StoredNotification]]
) -> list[dict[str, Any]]:
    service, reader = visiting.service, visiting.principal.token
    firsts = [max(group, key=lambda notification: notification.number) for group in groups]
    starred = service.marks.starred(reader, [first.number for first in firsts])
    read = service.marks.positions(reader, sorted({first.subscription for first in firsts}))
    cards = []
    for first, group in zip(firsts, groups, strict=True):
        changes = tuple(change for notification in group for change in notification.changes)
        title = titles.get(first.subscription) or _title(visiting, first.subscription)
        cards.append(
            {
                **notification_card(replace(first, changes=changes), service.settings, title),
                "starred": first.number in starred,
                "unread": first.number > read[first.subscription],
            }
        )
    return cards


def _title(visiting: Caller, id: str) -> str:
    found = visiting.service.registry.find(id)
    return id if found is None else found.title
