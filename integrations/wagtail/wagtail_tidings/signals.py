"""Signal handlers: each writes an entry into the outbox, and makes no call.

The taxonomy comes before the event in the outbox, so that the event is matched by a tree that has its section and its tags.
"""

from __future__ import annotations

import logging
from typing import Any

from django.db import transaction
from django.db.models.signals import pre_delete
from wagtail.models import Page
from wagtail.signals import page_published, page_unpublished, post_page_move

from wagtail_tidings import outbox
from wagtail_tidings.models import Alert, OutboxEntry, Visitor
from wagtail_tidings.page_event import CHANGED, PUBLISHED, UNPUBLISHED, page_event

log = logging.getLogger(__name__)


def connect() -> None:
    page_published.connect(on_published, dispatch_uid="wagtail_tidings.published")
    page_unpublished.connect(on_unpublished, dispatch_uid="wagtail_tidings.unpublished")
    post_page_move.connect(on_moved, dispatch_uid="wagtail_tidings.moved")
    pre_delete.connect(on_alert_deleted, sender=Alert, dispatch_uid="wagtail_tidings.alert")
    pre_delete.connect(on_visitor_deleted, sender=Visitor, dispatch_uid="wagtail_tidings.visitor")


def disconnect() -> None:
    """Pages are no longer published, as while many are imported that nobody should get mail about."""
    page_published.disconnect(on_published, dispatch_uid="wagtail_tidings.published")
    page_unpublished.disconnect(on_unpublished, dispatch_uid="wagtail_tidings.unpublished")


def on_published(instance: Page, **rest: Any) -> None:
    first = instance.first_published_at is None or instance.first_published_at == instance.last_published_at
    _add(instance, PUBLISHED if first else CHANGED)


def on_unpublished(instance: Page, **rest: Any) -> None:
    _add(instance, UNPUBLISHED)


def _add(page: Page, change: str) -> None:
    try:
        event = page_event(page, change)
    except Exception:  # a page's own code, such as a search field, must not keep it from being published
        log.exception("the page %s could not be made an event", page.pk)
        return
    with transaction.atomic():  # one commit for both
        outbox.add(OutboxEntry.Action.TAXONOMY)
        outbox.add(OutboxEntry.Action.EVENT, {"event": event})


def on_moved(instance: Page, **rest: Any) -> None:
    outbox.add(OutboxEntry.Action.TAXONOMY)


def on_alert_deleted(instance: Alert, **rest: Any) -> None:
    if instance.subscription:
        content = {"user": instance.visitor.key, "subscription": instance.subscription}
        outbox.add(OutboxEntry.Action.CANCEL, content)


def on_visitor_deleted(instance: Visitor, **rest: Any) -> None:
    if instance.channel:
        outbox.add(OutboxEntry.Action.END_CHANNEL, {"user": instance.key, "channel": instance.channel})
