"""What the entries of the outbox do at the service. Each may be repeated without harm."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tidings import Client
from tidings.client import ServiceError
from wagtail_tidings.connection import absolute, site_client, visitor_client
from wagtail_tidings.models import Alert, OutboxEntry, PushedTaxonomy, Visitor
from wagtail_tidings.page_taxonomy import digest, site_taxonomy

VALIDITY = timedelta(days=365)  # of an alert that is not renewed
GONE = (404, 409, 410)  # what the service answers about something that has ended


def publish(event: dict[str, Any]) -> None:
    site_client().publish(event)


def push_taxonomy(always: bool = False) -> None:
    """Replaces the service's taxonomy if the site's has changed since it was sent last."""
    # Entries that are there already were written with changes that the document below has: one push is for all of them.
    waiting = list(
        OutboxEntry.objects.filter(action=OutboxEntry.Action.TAXONOMY).values_list("pk", flat=True)
    )
    document = site_taxonomy()
    current = digest(document)
    if always or not PushedTaxonomy.objects.filter(digest=current).exists():
        site_client().set_taxonomy(document, format="nt")
        PushedTaxonomy.objects.update_or_create(pk=1, defaults={"digest": current})
    OutboxEntry.objects.filter(pk__in=waiting).delete()


def activate(alert: int) -> None:
    """Makes the subscription of a confirmed alert, and adds it to the visitor's channel."""
    found = Alert.objects.select_related("visitor__user").filter(pk=alert, confirmed_at__isnull=False).first()
    if found is None:
        return  # cancelled meanwhile
    client = visitor_client(found.visitor)
    if not found.subscription:
        made = client.subscribe(found.text, title=found.title, valid_for=VALIDITY)
        if not Alert.objects.filter(pk=found.pk, subscription="").update(subscription=made.id):
            client.cancel(made)  # another process was quicker
    set_channel(found.visitor)


def set_channel(visitor: Visitor) -> None:
    """Gives the visitor's channel the visitor's schedule and subscriptions. One that has ended is replaced."""
    client = visitor_client(visitor)
    subscriptions = list(visitor.alerts.exclude(subscription="").values_list("subscription", flat=True))
    for _ in range(2):
        channel = _channel(client, visitor)
        try:
            client.change_channel(channel, schedule=visitor.schedule, subscriptions=subscriptions)
            return
        except ServiceError as error:
            if error.status not in GONE:
                raise
            Visitor.objects.filter(pk=visitor.pk, channel=channel).update(channel="", secret="")


def _channel(client: Client, visitor: Visitor) -> str:
    """The visitor's channel. A new one has no subscriptions: its id is stored before a message of it can come."""
    channel = Visitor.objects.values_list("channel", flat=True).get(pk=visitor.pk)
    if channel:
        return str(channel)
    made = client.add_channel("webhook", absolute("deliver"), schedule=visitor.schedule)
    if Visitor.objects.filter(pk=visitor.pk, channel="").update(channel=made.id, secret=made.secret):
        return made.id
    client.end_channel(made.id)  # another process was quicker
    return str(Visitor.objects.values_list("channel", flat=True).get(pk=visitor.pk))


def cancel(user: str, subscription: str) -> None:
    _unless_gone(lambda: visitor_client(user).cancel(subscription))


def end_channel(user: str, channel: str) -> None:
    _unless_gone(lambda: visitor_client(user).end_channel(channel))


def _unless_gone(call: Callable[[], Any]) -> None:
    try:
        call()
    except ServiceError as error:
        if error.status not in GONE:
            raise


ACTIONS: dict[str, Callable[..., None]] = {
    OutboxEntry.Action.EVENT: publish,
    OutboxEntry.Action.TAXONOMY: push_taxonomy,
    OutboxEntry.Action.ACTIVATE: activate,
    OutboxEntry.Action.CANCEL: cancel,
    OutboxEntry.Action.END_CHANNEL: end_channel,
}
